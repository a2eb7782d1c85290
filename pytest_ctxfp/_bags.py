"""Tables whose rows differ in length: each row is a bag of cells."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, TypeVar

from pytest_ctxfp._bipartite import NONE, ListedCandidates, complete_matching
from pytest_ctxfp._boxes import Boxes, match_boxes
from pytest_ctxfp._cells import KeyReader
from pytest_ctxfp._mismatch import explain_leftovers
from pytest_ctxfp._model import Comparison
from pytest_ctxfp._pairedcolumn import Side, pair_column
from pytest_ctxfp._rowmatch import find_unmatched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_ctxfp._cells import Key
    from pytest_ctxfp._grid import Grid
    from pytest_ctxfp._pairedcolumn import PairedColumn
    from pytest_ctxfp._rowmatch import Leftovers
    from pytest_ctxfp._tolerance import Tolerance

    Row = Sequence[object]
    Span = tuple[int, int]

T = TypeVar("T", int, "tuple[int, int]")


def compare_bags(expected: Grid, actual: Grid, *, tolerance: Tolerance, is_ordered: bool) -> Comparison:
    """Compare two tables of which at least one is ragged.

    Two rows match if their cells can be paired so that each pair matches.

    Args:
        expected: the expected table.
        actual: the answer.
        tolerance: that of all cells; tolerances of columns don't apply.
        is_ordered: whether rows are compared in sequence.
    """
    comparer = _BagComparer(expected, actual, tolerance)
    if is_ordered and len(expected.rows) == len(actual.rows):
        wrong = comparer.find_wrong_rows()
        missing, extra = wrong, wrong
    else:
        missing, extra = comparer.find_leftovers()
    if not missing and not extra:
        return Comparison(passed=True, reason="rows of different length match as bags of cells")
    text = explain_leftovers(expected.rows, actual.rows, missing, extra)
    return Comparison(passed=False, reason=f"rows of different length, compared as bags of cells: {text}")


class _BagComparer:
    def __init__(self, expected: Grid, actual: Grid, tolerance: Tolerance) -> None:
        self._expected = expected.rows
        self._actual = actual.rows
        self._tolerance = tolerance
        self._reader = KeyReader()
        self._cells_of = _slices(expected.rows)
        self._others_of = _slices(actual.rows)

    def find_wrong_rows(self) -> list[int]:
        """Return the rows that don't match the row beside them."""
        pairs = zip(self._expected, self._actual, strict=True)
        return [number for number, (row, other) in enumerate(pairs) if not self._rows_match(row, other)]

    def _rows_match(self, expected: Row, actual: Row) -> bool:
        if len(expected) != len(actual):
            return False
        column = self._pair(expected, actual)
        return next(find_unmatched([column], len(expected), len(actual)), None) is None

    def _pair(self, expected: Row, actual: Row) -> PairedColumn:
        """Set cells beside cells, in no order, as if both were a column."""
        return pair_column(
            Side(expected, self._reader),
            Side(actual, self._reader),
            tolerance=self._tolerance,
            odd_values=self._reader.odd_values,
        )

    def find_leftovers(self) -> Leftovers:
        """Return the rows that a maximum matching leaves over, whatever their order."""
        column = self._pair(
            list(chain.from_iterable(self._expected)), list(chain.from_iterable(self._actual))
        )
        groups = _group_bags(self._cells_of, column.expected)
        answer_groups = _group_bags(self._others_of, column.actual)
        match_group = self._choose_matcher(column)
        missing: list[int] = []
        extra = list(chain.from_iterable(rows for key, rows in answer_groups.items() if key not in groups))
        for key, rows in groups.items():
            others = answer_groups.get(key, [])
            partners = match_group(rows, others)
            matched = set(partners)
            missing += [row for row, partner in zip(rows, partners, strict=True) if partner == NONE]
            extra += [row for number, row in enumerate(others) if number not in matched]
        return sorted(missing), sorted(extra)

    def _choose_matcher(self, column: PairedColumn) -> Callable[[list[int], list[int]], list[int]]:
        """Return what finds the partners of rows that are alike in all that must be equal."""
        if not column.dimensions:
            return _match_alike
        first = column.dimensions[0]
        spans = list(zip(first.lows, first.highs, strict=True))
        bags = [_loose_values(column, column.expected, spans, cells) for cells in self._cells_of]
        if len(column.dimensions) > 1 or not all(map(_is_orderly, bags)):
            return self._match_by_pairs
        others = [_loose_values(column, column.actual, first.places, cells) for cells in self._others_of]
        return partial(_match_orderly, bags, others)

    def _match_by_pairs(self, rows: list[int], others: list[int]) -> list[int]:
        """Match rows by looking at every pair: where labels compete with numbers, no order helps."""
        candidates = ListedCandidates(
            [
                [
                    n
                    for n, other in enumerate(others)
                    if self._rows_match(self._expected[row], self._actual[other])
                ]
                for row in rows
            ]
        )
        partners = candidates.match_greedily()
        complete_matching(partners, len(others), candidates)
        return partners


def _match_alike(rows: list[int], others: list[int]) -> list[int]:
    return [number if number < len(others) else NONE for number in range(len(rows))]


def _match_orderly(
    bags: Sequence[Sequence[Span]], other_bags: Sequence[Sequence[int]], rows: list[int], others: list[int]
) -> list[int]:
    """Match bags that can be paired at all exactly if their cells, both in order, can be paired in order."""
    cells = list(zip(*(bags[row] for row in rows), strict=True))
    return match_boxes(
        Boxes(
            [[low for low, _ in spans] for spans in cells],
            [[high for _, high in spans] for spans in cells],
            list(zip(*(other_bags[row] for row in others), strict=True)) or [()] * len(cells),
        ),
        len(rows),
        len(others),
    )


def _slices(rows: Iterable[Row]) -> list[slice]:
    """Return where the cells of each row stand among all cells."""
    ends = [0, *accumulate(map(len, rows))]
    return [slice(start, end) for start, end in pairwise(ends)]


def _group_bags(
    slices: Iterable[slice], entries: Sequence[Key]
) -> dict[frozenset[tuple[Key, int]], list[int]]:
    groups: defaultdict[frozenset[tuple[Key, int]], list[int]] = defaultdict(list)
    for row, cells in enumerate(slices):
        groups[frozenset(Counter(entries[cells]).items())].append(row)
    return groups


def _loose_values(column: PairedColumn, entries: Sequence[Key], values: Sequence[T], cells: slice) -> list[T]:
    """Return, in order, the values of those of a row's cells that need a tolerance."""
    pairs = zip(entries[cells], values[cells], strict=True)
    return sorted(value for entry, value in pairs if column.is_loose(entry))


def _is_orderly(spans: Sequence[Span]) -> bool:
    """Whether spans in order of their beginnings are in order of their ends too."""
    return all(high <= next_high for (_, high), (_, next_high) in pairwise(spans))
