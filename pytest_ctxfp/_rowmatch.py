"""Set comparison: which rows of two tables find no partner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ctxfp._bipartite import NONE
from pytest_ctxfp._boxes import Boxes, match_boxes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ctxfp._cells import Key
    from pytest_ctxfp._pairedcolumn import Dimension, PairedColumn

    Leftovers = tuple[list[int], list[int]]


def find_unmatched(columns: Sequence[PairedColumn], n_expected: int, n_actual: int) -> Iterator[Leftovers]:
    """Yield the rows that a maximum matching leaves over, group by group; nothing if all rows match.

    Rows are grouped by all that must be equal, so partners are always in one group.

    Args:
        columns: the expected columns, each beside its column of the answer.
        n_expected: how many rows are expected.
        n_actual: how many rows the answer has.

    Yields:
        indices of expected rows that are missing and of rows that are extra, at least one of both.
    """
    loose = [column for column in columns if column.dimensions]
    for expected, actual in _group_rows(*_combine(columns, n_expected, n_actual)):
        dimensions: list[Dimension] = []
        if expected and actual:
            for column in loose:
                if column.is_loose(column.expected[expected[0]]):
                    dimensions += column.dimensions
        missing, extra = _match_group(expected, actual, dimensions)
        if missing or extra:
            yield missing, extra


def _combine(columns: Sequence[PairedColumn], n_expected: int, n_actual: int) -> tuple[list[int], list[int]]:
    """Return one number for all entries of a row, the same for rows that agree in all of them."""
    if not columns:
        return [0] * n_expected, [0] * n_actual
    numbers: dict[tuple[Key, ...], int] = {}
    give = numbers.setdefault
    rows = zip(*(column.expected for column in columns), strict=True)
    codes = [give(row, len(numbers)) for row in rows]
    rows = zip(*(column.actual for column in columns), strict=True)
    return codes, [give(row, len(numbers)) for row in rows]


def _group_rows(codes: Sequence[int], other_codes: Sequence[int]) -> Iterator[Leftovers]:
    """Yield the rows of both tables that share a code."""
    rows = sorted(range(len(codes)), key=codes.__getitem__)
    others = sorted(range(len(other_codes)), key=other_codes.__getitem__)
    start, other_start = 0, 0
    while start < len(rows) or other_start < len(others):
        if start == len(rows):
            yield [], others[other_start:]
            return
        code = codes[rows[start]]
        end = _end_of_run(rows, codes, start, code)
        low = other_start
        while low < len(others) and other_codes[others[low]] < code:
            low += 1
        if low > other_start:
            yield [], others[other_start:low]
        other_start = _end_of_run(others, other_codes, low, code)
        yield rows[start:end], others[low:other_start]
        start = end


def _end_of_run(rows: Sequence[int], codes: Sequence[int], start: int, code: int) -> int:
    end = start
    while end < len(rows) and codes[rows[end]] == code:
        end += 1
    return end


def _match_group(expected: list[int], actual: list[int], dimensions: Sequence[Dimension]) -> Leftovers:
    if not dimensions:
        return expected[len(actual) :], actual[len(expected) :]
    if len(expected) == len(actual) == 1:
        row, other = expected[0], actual[0]
        for dimension in dimensions:
            if not dimension.lows[row] <= dimension.places[other] <= dimension.highs[row]:
                return expected, actual
        return [], []
    boxes = Boxes(
        [[dimension.lows[row] for row in expected] for dimension in dimensions],
        [[dimension.highs[row] for row in expected] for dimension in dimensions],
        [[dimension.places[row] for row in actual] for dimension in dimensions],
    )
    partners = match_boxes(boxes, len(expected), len(actual))
    matched = set(partners)
    missing = [row for row, partner in zip(expected, partners, strict=True) if partner == NONE]
    extra = [row for number, row in enumerate(actual) if number not in matched]
    return missing, extra
