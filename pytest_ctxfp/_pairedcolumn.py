"""A pair of columns as small integers: what must be equal, and what may lie within a tolerance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, TypeGuard, Union, cast

from pytest_ctxfp._cells import is_number
from pytest_ctxfp._ladder import Ladder, Spans, are_short, split_by_reach

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from pytest_ctxfp._cells import Key, KeyReader, NumberKey
    from pytest_ctxfp._tolerance import Tolerance

# An expected cell: the key of a number, or a label's key in a tuple of its own.
Token = Union["Key", "tuple[Key]"]

NO_PARTNER = -1
NO_RANK = -1


@dataclass(frozen=True, slots=True)
class Dimension:
    """Spans of the expected cells, by row, and places of the answer's: one must lie in the other."""

    lows: list[int]
    highs: list[int]
    places: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedColumn:
    """An expected column beside a column of the answer.

    Two cells match exactly if their entries are equal and, where `is_loose` says so of the entry, each
    dimension holds. Entries are keys where ``is_exact``, then counting them decides; else small integers,
    `NO_PARTNER` for an expected cell that matches nothing.
    """

    expected: Sequence[Key]
    actual: Sequence[Key]
    dimensions: tuple[Dimension, ...] = ()
    loose: Sequence[bool] = ()
    is_exact: bool = False

    def is_loose(self, entry: Key) -> bool:
        """Whether cells of this entry are numbers of which not every one accepts every other."""
        return isinstance(entry, int) and 0 <= entry < len(self.loose) and self.loose[entry]


class Side:
    """One column as written; its keys, and how often each occurs, are found when first asked for."""

    __slots__ = ("_counts", "_distinct", "_keys", "_reader", "cells")

    def __init__(self, cells: Sequence[object], reader: KeyReader) -> None:
        self.cells = cells
        self._reader = reader
        self._keys: list[Key] | None = None
        self._distinct: set[Key] | None = None
        self._counts: Counter[Key] | None = None

    @property
    def keys(self) -> list[Key]:
        """The key of each cell."""
        if self._keys is None:
            self._keys = self._reader.read_column(self.cells)
        return self._keys

    @property
    def distinct(self) -> set[Key]:
        """The keys, each once."""
        if self._distinct is None:
            self._distinct = set(self.keys)
        return self._distinct

    @property
    def counts(self) -> Counter[Key]:
        """How often each key occurs."""
        if self._counts is None:
            self._counts = Counter(self.keys)
        return self._counts


def pair_column(
    expected: Side, actual: Side, *, tolerance: Tolerance, odd_values: Mapping[str, NumberKey]
) -> PairedColumn:
    """Set an expected column beside a column of the answer.

    Args:
        expected: the expected column.
        actual: the answer's column.
        tolerance: that of the expected column.
        odd_values: numbers behind labels such as ``007``, from the `KeyReader` that read both columns.
    """
    keys = actual.distinct
    if not tolerance.is_exact or not odd_values.keys().isdisjoint(keys):
        cells = _ExpectedCells(expected)
        if cells.n_numbers:
            ladder = Ladder(keys, odd_values)
            return _Pairing(cells, ladder, cells.find_spans(ladder, tolerance), odd_values).pair(actual.keys)
    return PairedColumn(expected=expected.keys, actual=actual.keys, is_exact=True)


class _ExpectedCells:
    """The distinct cells of an expected column: its numbers, then its labels, and where each row's cell is.

    A text that is a plain number is a label too, and not the number that has the same key.
    """

    def __init__(self, side: Side) -> None:
        tokens = _tokenize(side)
        distinct: AbstractSet[Token] = side.distinct if tokens is side.keys else set(tokens)
        self._near, self._far = split_by_reach(_select_numbers(distinct))
        self.n_numbers = len(self._near) + len(self._far)
        index: dict[Token, int] = {token: place for place, token in enumerate(self._near + self._far)}
        rest = distinct - index.keys() if len(index) < len(distinct) else set()
        self.labels = [token[0] if _is_label(token) else cast("Key", token) for token in rest]
        index.update((token, place) for place, token in enumerate(rest, start=self.n_numbers))
        self.places = list(map(index.__getitem__, tokens))

    def find_spans(self, ladder: Ladder, tolerance: Tolerance) -> Spans:
        """Return what each number accepts; labels accept nothing so far."""
        spans = ladder.find_spans(self._near, self._far, tolerance)
        n_labels = len(self.labels)
        return Spans(spans.lows + [1] * n_labels, spans.highs + [0] * n_labels)


def _tokenize(side: Side) -> Sequence[Token]:
    if not any(issubclass(kind, str) for kind in set(map(type, side.cells))):
        return side.keys
    return [(key,) if isinstance(cell, str) else key for cell, key in zip(side.cells, side.keys, strict=True)]


def _is_label(token: Token) -> TypeGuard[tuple[Key]]:
    return isinstance(token, tuple) and len(token) == 1


def _select_numbers(tokens: AbstractSet[Token]) -> Collection[NumberKey]:
    if are_short(tokens):
        return cast("AbstractSet[NumberKey]", tokens)
    return [token for token in tokens if is_number(token) and not _is_label(token)]


class _Pairing:
    """Tells the cells of one pair of columns that must be equal from those that need a tolerance.

    Numbers that tolerances tie together are a cluster. An odd label (``007``) that an expected number
    accepts is *contested* where its text is an expected label too, or its plain form (``7``) is: it is the
    number 7 and the label ``007``, but not the label ``7``. A second dimension tells these apart: class 0
    is a number as such, each contested label has a class of its own, an expected number accepts them all.
    """

    def __init__(
        self, cells: _ExpectedCells, ladder: Ladder, spans: Spans, odd_values: Mapping[str, NumberKey]
    ) -> None:
        self._cells = cells
        self._ladder = ladder
        self._spans = spans
        covered = spans.covered(ladder.n_ranks)
        self._ranks = [rank if is_covered else NO_RANK for rank, is_covered in enumerate(covered)]
        self._ranks += [NO_RANK] * (len(ladder.index) - ladder.n_ranks)
        labels = set(cells.labels)
        contested = []
        for label in odd_values.keys() & ladder.index.keys():
            rank = ladder.rank_of(label)
            if rank is not None and covered[rank]:
                self._ranks[ladder.index[label]] = rank
                if label in labels or odd_values[label] in labels:
                    contested.append(label)
        self._classes: dict[Key, int] = {label: number for number, label in enumerate(contested, start=1)}
        self._class_spans = Spans([0] * len(spans.lows), [len(contested)] * len(spans.highs))
        self._let_labels_compete(covered)
        self._clusters = _Clusters(spans, ladder.n_ranks)
        self._clusters.loosen(self._ranks[ladder.index[label]] for label in contested)

    def _let_labels_compete(self, covered: Sequence[bool]) -> None:
        """Give spans to expected labels that want a cell which an expected number accepts too."""
        for place, key in enumerate(self._cells.labels, start=self._cells.n_numbers):
            rank = self._ladder.rank_of(key)
            if rank is not None and covered[rank] and (is_number(key) or key in self._classes):
                self._spans.lows[place] = self._spans.highs[place] = rank
                own_class = self._classes.get(key, 0)
                self._class_spans.lows[place] = self._class_spans.highs[place] = own_class

    def pair(self, keys: Sequence[Key]) -> PairedColumn:
        """Return the columns by their entries."""
        rows, other_rows = self._cells.places, list(map(self._ladder.index.__getitem__, keys))
        dimensions = []
        if any(self._clusters.is_loose):
            dimensions.append(_dimension(self._spans, rows, self._ranks, other_rows))
        if self._classes:
            classes = [self._classes.get(key, 0) for key in self._ladder.index]
            dimensions.append(_dimension(self._class_spans, rows, classes, other_rows))
        return PairedColumn(
            expected=list(map(self._code_expected().__getitem__, rows)),
            actual=list(map(self._code_actual().__getitem__, other_rows)),
            dimensions=tuple(dimensions),
            loose=self._clusters.is_loose,
        )

    def _code_expected(self) -> list[int]:
        of_rank, n_numbers = self._clusters.of_rank, self._cells.n_numbers
        codes = [
            of_rank[low] if low <= high else NO_PARTNER
            for low, high in zip(self._spans.lows, self._spans.highs, strict=True)
        ]
        n_clusters, index = len(self._clusters.is_loose), self._ladder.index
        for place, key in enumerate(self._cells.labels, start=n_numbers):
            if codes[place] == NO_PARTNER and key in index:
                codes[place] = n_clusters + index[key]
        return codes

    def _code_actual(self) -> list[int]:
        of_rank, n_clusters = self._clusters.of_rank, len(self._clusters.is_loose)
        return [
            n_clusters + place if rank == NO_RANK else of_rank[rank] for place, rank in enumerate(self._ranks)
        ]


class _Clusters:
    """Ranks that one span holds, directly or by others: ``of_rank``, and whether each is loose."""

    def __init__(self, spans: Spans, n_ranks: int) -> None:
        changes = [0] * (n_ranks + 1)
        for low, high in zip(spans.lows, spans.highs, strict=True):
            if low < high:
                changes[low] += 1
                changes[high] -= 1
        is_new = [True, *(depth == 0 for depth in accumulate(changes))]  # not tied to the rank before
        self.of_rank = [number - 1 for number in accumulate(is_new[:n_ranks])]
        firsts = [rank for rank in range(n_ranks) if is_new[rank]]
        lasts = [rank for rank in range(n_ranks) if is_new[rank + 1]]
        self.is_loose = [False] * len(firsts)
        for low, high in zip(spans.lows, spans.highs, strict=True):
            if low <= high:
                cluster = self.of_rank[low]
                if low != firsts[cluster] or high != lasts[cluster]:
                    self.is_loose[cluster] = True

    def loosen(self, ranks: Iterable[int]) -> None:
        """Make the clusters of these ranks loose."""
        for rank in ranks:
            self.is_loose[self.of_rank[rank]] = True


def _dimension(
    spans: Spans, rows: Sequence[int], places: Sequence[int], other_rows: Sequence[int]
) -> Dimension:
    return Dimension(
        list(map(spans.lows.__getitem__, rows)),
        list(map(spans.highs.__getitem__, rows)),
        list(map(places.__getitem__, other_rows)),
    )
