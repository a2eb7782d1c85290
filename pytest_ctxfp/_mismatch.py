"""Why two tables don't match: one line that a person can act on."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context
from itertools import combinations, islice
from typing import TYPE_CHECKING

from pytest_ctxfp._cells import EXACT, decimal_of_key, is_key_in_reach, is_number
from pytest_ctxfp._table_text import MAX_CELL, quote_cell
from pytest_ctxfp._tolerance import difference, is_within

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from pytest_ctxfp._cells import KeyReader, NumberKey
    from pytest_ctxfp._columns import ColumnComparer, Pair
    from pytest_ctxfp._grid import Grid
    from pytest_ctxfp._tolerance import Tolerance

_MAX_ROW_CELLS = 6
_MAX_NEIGHBOURS = 200
_MAX_SWAP_WORK = 2_000_000  # cells looked at in search of two swapped columns
_MAX_SWAP_COLUMNS = 40
_NOISE_DIGITS = 9  # a difference that many digits smaller than the number is rounding
_SHORT = Context(prec=6)
_LABEL_HINT = "a text in expected is a label"


def explain_cells(reader: KeyReader, expected: object, actual: object, tolerance: Tolerance) -> str:
    """Return what was expected of a cell, what came instead and by how much it is off.

    Example: ``expected 10.5, actual 11.2 (off by 0.7, tolerance 0.5)``.
    """
    shown, other = _quote_both(expected, actual)
    hint = _hint(reader, expected, actual, tolerance)
    return f"expected {shown}, actual {other}" + (f" ({hint})" if hint else "")


def _quote_both(expected: object, actual: object) -> tuple[str, str]:
    """Quote two cells; long texts from where they begin to differ."""
    if isinstance(expected, str) and isinstance(actual, str) and len(expected) > MAX_CELL < len(actual):
        pairs = zip(expected, actual, strict=False)
        same = next((i for i, (one, two) in enumerate(pairs) if one != two), min(len(expected), len(actual)))
        start = max(0, same - MAX_CELL // 4)
        if start:
            return "…" + quote_cell(expected[start:]), "…" + quote_cell(actual[start:])
    return quote_cell(expected), quote_cell(actual)


def _hint(reader: KeyReader, expected: object, actual: object, tolerance: Tolerance) -> str:
    wanted, given = reader.read(expected), reader.read(actual)
    value = reader.odd_values.get(given, given) if isinstance(given, str) else given
    if is_number(wanted) and is_number(value):
        return describe_numbers(wanted, value, tolerance, is_label=isinstance(expected, str))
    if isinstance(wanted, str):
        if isinstance(given, str) and wanted.casefold() == given.casefold():
            return "differs in case only"
        is_same_number = is_number(value) and reader.odd_values.get(wanted) == value
        return _LABEL_HINT if is_same_number else ""
    return "no finite decimal" if is_number(wanted) and isinstance(actual, str) else ""


def describe_numbers(wanted: NumberKey, given: NumberKey, tolerance: Tolerance, *, is_label: bool) -> str:
    """Return how far a number is from what is expected, such as ``off by 0.7, tolerance 0.5``."""
    if is_label:
        return _LABEL_HINT if is_within(wanted, given, tolerance) else ""
    if is_key_in_reach(wanted) and is_key_in_reach(given):
        return _describe_distance(difference(wanted, given), decimal_of_key(wanted), tolerance)
    return "too large, small or long for a tolerance"


def _describe_distance(change: Decimal, wanted: Decimal, tolerance: Tolerance) -> str:
    distance = change.copy_abs()
    is_integer = distance == distance.to_integral_value(context=EXACT)
    is_noise = distance.scaleb(_NOISE_DIGITS, EXACT) < wanted.copy_abs() and not is_integer
    if tolerance.is_exact and is_noise:
        return f"differs by {_show_decimal(distance)}: set a tolerance"
    text = f"off by {_show_decimal(distance)}"
    return text if tolerance.is_exact else f"{text}, tolerance {_show_decimal(tolerance.allowance(wanted))}"


def _show_decimal(value: Decimal) -> str:
    """Return a decimal in at most six digits, such as ``0.7``, ``2e-13`` or ``about 0.333333``."""
    rounded = _SHORT.normalize(value)
    text = f"{rounded:f}" if -6 <= rounded.adjusted() <= 15 else f"{rounded:e}"
    return text if rounded == value else f"about {text}"


@dataclass(frozen=True, slots=True)
class RowExplainer:
    """Speaks of the rows of two tables, seen through pairs of their columns.

    Args:
        expected: the expected table.
        actual: the answer.
        comparer: compares both.
        pairs: an expected column and the answer's column that is compared with it.
    """

    expected: Grid
    actual: Grid
    comparer: ColumnComparer
    pairs: Sequence[Pair]

    def explain(self, *, is_ordered: bool) -> str:
        """Return why the rows don't match."""
        if len(self.expected.rows) != len(self.actual.rows):
            return explain_leftovers(
                self.expected.rows, self.actual.rows, *self.comparer.find_leftovers(self.pairs)
            )
        return self._explain_sequence() if is_ordered else self._explain_set()

    def _explain_set(self) -> str:
        """Return why no matching of the rows exists.

        Example: ``row 2, column 'usd': expected 10.5, actual 11.2 (off by 0.7); 1 more row differs``.
        """
        missing, extra = self.comparer.find_leftovers(self.pairs)
        row, others = missing[0], extra[:_MAX_NEIGHBOURS]
        nearest = max(others, key=lambda other: self._likeness(row, other))
        more = f"; {count(len(missing) - 1, 'more row differs', 'more rows differ')}" if missing[1:] else ""
        wrong = self._find_wrong(row, nearest)
        if len(wrong) > max(1, len(self.pairs) // 2):
            return explain_leftovers(self.expected.rows, self.actual.rows, missing, extra)
        return self._explain_row(row, nearest, wrong) + more

    def _explain_sequence(self) -> str:
        """Return where two tables that are compared in sequence differ first."""
        rows = range(len(self.expected.rows))
        row = next(row for row in rows if self._find_wrong(row, row))
        text = self._explain_row(row, row, self._find_wrong(row, row))
        if self.comparer.fits_as_set(self.pairs):
            return f"the rows are right but in another order: {text}"
        return text

    def explain_swap(self) -> str | None:
        """Return which two columns would have to be swapped, if that is all there is to it."""
        n_cells = len(self.expected.rows) * len(self.pairs)
        if n_cells * len(self.pairs) > _MAX_SWAP_WORK or len(self.pairs) > _MAX_SWAP_COLUMNS:
            return None
        for (one, first), (two, second) in combinations(self.pairs, 2):
            crossed = [(one, second), (two, first)]
            if all(self.comparer.fits([pair]) for pair in crossed):
                others = [pair for pair in self.pairs if pair[0] not in (one, two)]
                if self.comparer.fits([*others, *crossed]):
                    return f"{self.expected.label(one)} and {self.expected.label(two)} are swapped"
        return None

    def _find_wrong(self, row: int, other: int) -> list[Pair]:
        return [pair for pair in self.pairs if not self.comparer.cells_match(row, other, pair)]

    def _likeness(self, row: int, other: int) -> tuple[int, float]:
        """Return how many cells match and, on a tie, how close the first other number is."""
        wrong = self._find_wrong(row, other)
        return -len(wrong), -self._distance(row, other, wrong[0]) if wrong else 0.0

    def _distance(self, row: int, other: int, pair: Pair) -> float:
        reader = self.comparer.reader
        wanted = reader.read(self.expected.rows[row][pair[0]])
        given = reader.read(self.actual.rows[other][pair[1]])
        if is_number(wanted) and is_number(given) and is_key_in_reach(wanted) and is_key_in_reach(given):
            return float(difference(wanted, given).copy_abs())
        return float("inf")

    def _explain_row(self, row: int, other: int, wrong: Sequence[Pair]) -> str:
        column, actual_column = wrong[0]
        place = f"row {row + 1}" if row == other else f"row {row + 1} (the answer's row {other + 1})"
        more = f", and {count(len(wrong) - 1, 'more column')}" if wrong[1:] else ""
        cells = explain_cells(
            self.comparer.reader,
            self.expected.rows[row][column],
            self.actual.rows[other][actual_column],
            self.comparer.tolerances[column],
        )
        return f"{place}, {self.expected.label(column)}: {cells}{more}"


def explain_leftovers(
    expected: Sequence[Sequence[object]],
    actual: Sequence[Sequence[object]],
    missing: Sequence[int],
    extra: Sequence[int],
) -> str:
    """Return which rows found no partner.

    Example: ``expected 3 rows, actual 4; 1 extra row: row 4 ('Lima', 7)``.

    Args:
        expected: the expected rows.
        actual: the answer's rows.
        missing: 0-based numbers of expected rows without a partner.
        extra: 0-based numbers of the answer's rows without a partner.
    """
    parts = []
    if missing:
        parts.append(f"row {missing[0] + 1} is missing: {show_row(expected[missing[0]])}")
        if missing[1:]:
            parts.append(count(len(missing) - 1, "more row is missing", "more rows are missing"))
    if extra:
        parts.append(f"{count(len(extra), 'extra row')}: row {extra[0] + 1} {show_row(actual[extra[0]])}")
    text = "; ".join(parts)
    if len(expected) == len(actual):
        return text
    return f"expected {count(len(expected), 'row')}, actual {len(actual):,}; {text}"


def show_row(row: Sequence[object]) -> str:
    """Return a row's cells, such as ``('Rome', 3)``, further ones as an ellipsis."""
    cells = [quote_cell(cell) for cell in islice(row, _MAX_ROW_CELLS)]
    return f"({', '.join(cells)}{', …' if len(row) > _MAX_ROW_CELLS else ''})"


def count(n: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun, such as ``1 row`` or ``2 rows``."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
