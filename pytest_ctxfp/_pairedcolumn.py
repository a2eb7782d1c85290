"""A pair of columns as small integers: what must be equal, and what may lie within a tolerance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, TypeGuard, cast

from pytest_ctxfp._cells import is_number
from pytest_ctxfp._ladder import Ladder, Spans, are_short

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pytest_ctxfp._cells import Key, KeyReader, NumberKey
    from pytest_ctxfp._ladder import Token
    from pytest_ctxfp._tolerance import Tolerance

NO_PARTNER = -1


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

    __slots__ = ("_counts", "_keys", "_reader", "cells")

    def __init__(self, cells: Sequence[object], reader: KeyReader) -> None:
        self.cells = cells
        self._reader = reader
        self._keys: list[Key] | None = None
        self._counts: Counter[Key] | None = None

    @property
    def keys(self) -> list[Key]:
        """The key of each cell."""
        if self._keys is None:
            self._keys = self._reader.read_column(self.cells)
        return self._keys

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
    keys = set(actual.keys)
    if not tolerance.is_exact or not odd_values.keys().isdisjoint(keys):
        tokens = _tokenize(expected)
        distinct = set(tokens)
        numbers = _select_numbers(distinct)
        if numbers:
            ladder = Ladder(keys, odd_values)
            spans = ladder.find_spans(numbers, tolerance)
            return _Pairing(ladder, distinct, keys, spans).pair(tokens, actual.keys)
    return PairedColumn(expected=expected.keys, actual=actual.keys, is_exact=True)


def _select_numbers(tokens: set[Token]) -> Collection[NumberKey]:
    if are_short(tokens):
        return cast("set[NumberKey]", tokens)
    return [token for token in tokens if is_number(token) and not _is_label(token)]


def _tokenize(expected: Side) -> Sequence[Token]:
    if str not in set(map(type, expected.cells)):
        return expected.keys
    return [
        (key,) if isinstance(cell, str) else key
        for cell, key in zip(expected.cells, expected.keys, strict=True)
    ]


class _Pairing:
    """Tells the cells of one pair of columns that must be equal from those that need a tolerance.

    Numbers that tolerances tie together are a cluster. An odd label (``007``) that an expected number
    accepts is *contested* where its text is an expected label too, or its plain form (``7``) is: it is the
    number 7 and the label ``007``, but not the label ``7``. A second dimension tells these apart: class 0
    is a number as such, each contested label has a class of its own, an expected number accepts them all.
    """

    def __init__(self, ladder: Ladder, tokens: set[Token], keys: set[Key], spans: Spans) -> None:
        self._tokens = tokens
        self._spans = spans
        is_covered = _find_covered(spans, len(ladder))
        self._places = ladder.find_places(keys, is_covered)
        odd_values = ladder.odd_values
        contested = [
            label
            for label in odd_values.keys() & self._places.keys()
            if (label,) in tokens or (odd_values[label],) in tokens
        ]
        self._classes: dict[Key, int] = {label: number for number, label in enumerate(contested, start=1)}
        self._class_spans = Spans({}, {})
        if contested:
            self._class_spans = Spans(
                dict.fromkeys(spans.lows, 0), dict.fromkeys(spans.highs, len(contested))
            )
        self._add_labels(ladder, is_covered)
        self._clusters = _Clusters(spans, len(ladder))
        self._clusters.loosen(self._places[label] for label in contested)
        n_clusters = len(self._clusters.is_loose)
        others = keys - self._places.keys()
        self._codes: dict[Key, int] = {key: code for code, key in enumerate(others, start=n_clusters)}

    def _add_labels(self, ladder: Ladder, is_covered: Sequence[bool]) -> None:
        """Give spans to expected labels that compete with expected numbers for a cell."""
        for token in self._tokens:
            if _is_label(token):
                (key,) = token
                rank = ladder.rank_of(key)
                if rank is not None and is_covered[rank] and (is_number(key) or key in self._classes):
                    self._spans.add(token, rank, rank)
                    self._class_spans.add(token, self._classes.get(key, 0), self._classes.get(key, 0))

    def pair(self, tokens: Sequence[Token], keys: Sequence[Key]) -> PairedColumn:
        """Return the columns by their entries."""
        of_rank = self._clusters.of_rank
        codes = {token: of_rank[low] for token, low in self._spans.lows.items()}
        codes.update((token, self._code_rest(token)) for token in self._tokens - codes.keys())
        answer_codes = {key: of_rank[rank] for key, rank in self._places.items()}
        answer_codes |= self._codes
        dimensions = []
        if any(self._clusters.is_loose):
            dimensions.append(_dimension(tokens, keys, self._spans, self._places))
        if self._classes:
            dimensions.append(_dimension(tokens, keys, self._class_spans, self._classes))
        return PairedColumn(
            expected=list(map(codes.__getitem__, tokens)),
            actual=list(map(answer_codes.__getitem__, keys)),
            dimensions=tuple(dimensions),
            loose=self._clusters.is_loose,
        )

    def _code_rest(self, token: Token) -> int:
        key = token[0] if _is_label(token) else cast("Key", token)
        if is_number(token) and not _is_label(token):
            return NO_PARTNER
        return self._codes.get(key, NO_PARTNER)


def _is_label(token: Token) -> TypeGuard[tuple[Key]]:
    return isinstance(token, tuple) and len(token) == 1


def _find_covered(spans: Spans, n_ranks: int) -> list[bool]:
    changes = [0] * (n_ranks + 1)
    for low in spans.lows.values():
        changes[low] += 1
    for high in spans.highs.values():
        changes[high + 1] -= 1
    return [depth > 0 for depth in accumulate(changes)]


class _Clusters:
    """Ranks that one span holds, directly or by others: ``of_rank``, and whether each is loose."""

    def __init__(self, spans: Spans, n_ranks: int) -> None:
        changes = [0] * (n_ranks + 1)
        for low in spans.lows.values():
            changes[low] += 1
        for high in spans.highs.values():
            changes[high] -= 1
        is_new = [True, *(depth == 0 for depth in accumulate(changes))]  # not tied to the rank before
        self.of_rank = [number - 1 for number in accumulate(is_new[:n_ranks])]
        firsts = [rank for rank in range(n_ranks) if is_new[rank]]
        lasts = [rank for rank in range(n_ranks) if is_new[rank + 1]]
        self.is_loose = [False] * len(firsts)
        for token, low in spans.lows.items():
            cluster = self.of_rank[low]
            if low != firsts[cluster] or spans.highs[token] != lasts[cluster]:
                self.is_loose[cluster] = True

    def loosen(self, ranks: Iterable[int]) -> None:
        """Make the clusters of these ranks loose."""
        for rank in ranks:
            self.is_loose[self.of_rank[rank]] = True


def _dimension(
    tokens: Iterable[Token], keys: Iterable[Key], spans: Spans, places: Mapping[Key, int]
) -> Dimension:
    return Dimension(
        list(map(spans.lows.get, tokens, repeat(0))),
        list(map(spans.highs.get, tokens, repeat(0))),
        list(map(places.get, keys, repeat(0))),
    )
