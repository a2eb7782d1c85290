"""Which column of an answer is which expected column: by name, or by one permutation that fits."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from pytest_ctxfp._bipartite import NONE, ListedCandidates, complete_matching
from pytest_ctxfp._cells import KeyReader
from pytest_ctxfp._pairedcolumn import PairedColumn, Side, pair_column
from pytest_ctxfp._rowmatch import find_unmatched
from pytest_ctxfp._tolerance import cells_match

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ctxfp._grid import Grid
    from pytest_ctxfp._rowmatch import Leftovers
    from pytest_ctxfp._tolerance import Tolerance

    Pair = tuple[int, int]

MAX_ASSIGNMENTS = 10_000


class LookAlikeError(Exception):
    """So many permutations of columns fit in part that the search was given up."""


class ColumnComparer:
    """Two tables, none of them ragged, to be compared on any choice of pairs of columns.

    Args:
        expected: the expected table.
        actual: the answer.
        tolerances: one for each expected column.
        is_ordered: whether rows are compared in sequence.
    """

    def __init__(
        self, expected: Grid, actual: Grid, *, tolerances: Sequence[Tolerance], is_ordered: bool
    ) -> None:
        self.reader = KeyReader()
        self.tolerances = tolerances
        self._is_ordered = is_ordered
        self._n_rows = (len(expected.rows), len(actual.rows))
        self._expected = [Side(cells, self.reader) for cells in expected.columns()]
        self._actual = [Side(cells, self.reader) for cells in actual.columns()]
        self._paired: dict[Pair, PairedColumn] = {}
        self._leftovers: tuple[Sequence[Pair], Leftovers] | None = None  # of the last pairs: they may be many

    def fits(self, pairs: Sequence[Pair]) -> bool:
        """Whether the rows match, seen through these pairs of an expected column and one of the answer."""
        if self._n_rows[0] != self._n_rows[1]:
            return False
        if self._is_ordered:
            return all(self._fits_in_sequence(pair) for pair in pairs)
        return self.fits_as_set(pairs)

    def fits_as_set(self, pairs: Sequence[Pair]) -> bool:
        """Whether the rows match in some order; there must be as many of both."""
        if self._is_equal_multiset(pairs):
            return True
        if all(self._pair(pair).is_exact for pair in pairs):
            return False
        return not any(self.find_leftovers(pairs))

    def find_leftovers(self, pairs: Sequence[Pair]) -> Leftovers:
        """Return the rows, missing and extra, that a maximum matching leaves over, whatever their order."""
        if self._leftovers is None or self._leftovers[0] != pairs:
            columns = [self._pair(pair) for pair in pairs]
            groups = list(find_unmatched(columns, *self._n_rows))
            missing = sorted(chain.from_iterable(some for some, _ in groups))
            self._leftovers = pairs, (missing, sorted(chain.from_iterable(others for _, others in groups)))
        return self._leftovers[1]

    def cells_match(self, row: int, actual_row: int, pair: Pair) -> bool:
        """Whether one expected cell matches one cell of the answer."""
        expected, actual = self._expected[pair[0]].cells[row], self._actual[pair[1]].cells[actual_row]
        return cells_match(self.reader, expected, actual, self.tolerances[pair[0]])

    def _fits_in_sequence(self, pair: Pair) -> bool:
        expected, actual = self._expected[pair[0]].cells, self._actual[pair[1]].cells
        tolerance, reader = self.tolerances[pair[0]], self.reader
        return all(
            cells_match(reader, cell, other, tolerance) for cell, other in zip(expected, actual, strict=True)
        )

    def _is_equal_multiset(self, pairs: Sequence[Pair]) -> bool:
        """Whether every row occurs as often in both, by its keys; tolerances are not needed then."""
        sides = [(self._expected[column], self._actual[other]) for column, other in pairs]
        if any(
            expected.distinct != actual.distinct
            for (column, _), (expected, actual) in zip(pairs, sides, strict=True)
            if not self.tolerances[column].is_exact
        ):
            return False
        if len(pairs) == 1:
            return sides[0][0].counts == sides[0][1].counts
        wanted = Counter(zip(*(expected.keys for expected, _ in sides), strict=True))
        return wanted == Counter(zip(*(actual.keys for _, actual in sides), strict=True))

    def _pair(self, pair: Pair) -> PairedColumn:
        if pair not in self._paired:
            expected, actual = self._expected[pair[0]], self._actual[pair[1]]
            self._paired[pair] = pair_column(
                expected, actual, tolerance=self.tolerances[pair[0]], odd_values=self.reader.odd_values
            )
        return self._paired[pair]

    def find_permutation(self) -> list[Pair] | None:
        """Return pairs of all columns through which the rows match, or None where there are none.

        Raises:
            LookAlikeError: after 10,000 partial assignments.
        """
        numbers = range(len(self._expected))
        identity = [(column, column) for column in numbers]
        if self.fits(identity):
            return identity
        candidates: list[list[int]] = []
        for column in numbers:
            candidates.append([other for other in numbers if self.fits([(column, other)])])
            if not candidates[-1]:
                return None
        assignment = _assign(candidates)
        if assignment is None or self._is_ordered:
            return assignment
        return _Search(self, candidates, self._find_twins()).run()

    def _find_twins(self) -> list[int]:
        """Return, for each column of the answer, the first one that holds the same in the same rows."""
        firsts: list[int] = []
        for column, side in enumerate(self._actual):
            earlier = (first for first in set(firsts) if self._actual[first].keys == side.keys)
            firsts.append(next(earlier, column))
        return firsts


def _assign(candidates: Sequence[Sequence[int]]) -> list[Pair] | None:
    """Give each column a candidate of its own: where rows are in sequence, that is all there is to it."""
    listed = ListedCandidates(candidates)
    partners = listed.match_greedily()
    complete_matching(partners, len(candidates), listed)
    return None if NONE in partners else list(enumerate(partners))


class _Search:
    """Assigns columns one by one, those of few candidates first, keeping only what fits so far."""

    def __init__(
        self, comparer: ColumnComparer, candidates: Sequence[Sequence[int]], twins: Sequence[int]
    ) -> None:
        self._comparer = comparer
        self._twins = twins
        self._order = sorted(range(len(candidates)), key=lambda column: len(candidates[column]))
        self._candidates = [candidates[column] for column in self._order]
        self._n_tried = 0

    def run(self) -> list[Pair] | None:
        """Return the first whole assignment that fits."""
        chosen: list[int] = []
        untried = [self._choices(chosen)]
        while untried:
            other = next(untried[-1], None)
            if other is None:
                untried.pop()
                chosen = chosen[:-1]
                continue
            longer = [*chosen, other]
            if not self._keep(longer):
                continue
            if len(longer) == len(self._order):
                return sorted(zip(self._order, longer, strict=True))
            chosen = longer
            untried.append(self._choices(chosen))
        return None

    def _choices(self, chosen: Sequence[int]) -> Iterator[int]:
        """Yield the free candidates of the next column, one of those that are the same."""
        tried: set[int] = set()
        for other in self._candidates[len(chosen)]:
            if other not in chosen and self._twins[other] not in tried:
                tried.add(self._twins[other])
                yield other

    def _keep(self, chosen: Sequence[int]) -> bool:
        self._n_tried += 1
        if self._n_tried > MAX_ASSIGNMENTS:
            raise LookAlikeError
        is_whole = len(chosen) == len(self._order)
        if len(chosen) == 1 or (not is_whole and len(self._candidates[len(chosen)]) == 1):
            return True  # known to fit, or decided with the next column, which has no choice
        return self._comparer.fits(list(zip(self._order, chosen, strict=False)))
