"""How far a number may be off: tolerances as written in a golden file, and the rule for one cell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from operator import add, sub
from typing import TYPE_CHECKING

from pytest_ctxfp._cells import (
    EXACT,
    decimal_of_int,
    decimal_of_key,
    is_key_in_reach,
    is_number,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ctxfp._cells import KeyReader, NumberKey

_ZERO = Decimal(0)
# No two numbers in reach lie further apart, so a larger tolerance would say nothing more.
_LARGEST_NUMERIC = Decimal("1e401")
_LARGEST_RELATIVE = Decimal("1e802")
_KNOWN = ("numeric", "relative", "columns")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far an answer may lie from an expected number: the larger of both, both exact.

    ``relative`` is a share of the expected number's absolute value.
    """

    numeric: Decimal = _ZERO
    relative: Decimal = _ZERO

    @property
    def is_exact(self) -> bool:
        """Whether only the same number will do."""
        return self.numeric.is_zero() and self.relative.is_zero()

    def allowance(self, expected: Decimal) -> Decimal:
        """Return how far an answer may lie from this number, which must be in reach."""
        return max(self.numeric, EXACT.multiply(self.relative, expected.copy_abs()))

    def bounds(self, expected: Sequence[Decimal]) -> tuple[list[Decimal], list[Decimal]]:
        """Return the least and the greatest answer to each of these numbers, which must be in reach."""
        with localcontext(EXACT):
            if self.relative.is_zero():
                numeric = self.numeric
                return [value - numeric for value in expected], [value + numeric for value in expected]
            allowances = [max(self.numeric, self.relative * value.copy_abs()) for value in expected]
            return list(map(sub, expected, allowances)), list(map(add, expected, allowances))


@dataclass(frozen=True, slots=True)
class TableTolerance:
    """The tolerances of a table: one for all columns, and those that replace it in columns of a name."""

    general: Tolerance = field(default_factory=Tolerance)
    by_name: Mapping[str, Tolerance] = field(default_factory=dict)

    def of_columns(self, names: Sequence[str], n_columns: int) -> list[Tolerance]:
        """Return the tolerance of each expected column; columns beyond the names have the general one."""
        named = [self.by_name.get(name, self.general) for name in names[:n_columns]]
        return named + [self.general] * (n_columns - len(named))


def read_tolerance(tolerance: object, column_names: Sequence[str]) -> TableTolerance:
    """Read a tolerance as it stands in a golden file.

    Args:
        tolerance: None, or a mapping with any of ``numeric``, ``relative`` and ``columns``.
        column_names: the names of the expected columns.

    Raises:
        ValueError: an unknown key or column, or a tolerance that is not a finite number >= 0.
    """
    if tolerance is None:
        return TableTolerance()
    if not isinstance(tolerance, Mapping):
        message = f'tolerance is {tolerance!r:.80}: write a mapping such as {{"numeric": 0.01}}'
        raise ValueError(message)
    for key in tolerance:
        if key not in _KNOWN:
            message = f"unknown tolerance {key!r:.80}: use {', '.join(_KNOWN)}"
            raise ValueError(message)
    general = Tolerance(
        numeric=min(_read_number(tolerance.get("numeric", 0), "numeric"), _LARGEST_NUMERIC),
        relative=min(_read_number(tolerance.get("relative", 0), "relative"), _LARGEST_RELATIVE),
    )
    return TableTolerance(general, _read_columns(tolerance.get("columns", {}), column_names))


def _read_columns(columns: object, column_names: Sequence[str]) -> dict[str, Tolerance]:
    if not isinstance(columns, Mapping):
        message = f"tolerance of columns is {columns!r:.80}: write a mapping of column names to numbers"
        raise ValueError(message)
    by_name = {}
    for name, value in columns.items():
        if name not in column_names:
            known = list(column_names)
            message = f"tolerance for an unknown column {name!r:.80}: expected has {known!r:.200}"
            raise ValueError(message)
        by_name[name] = Tolerance(numeric=min(_read_number(value, f"column {name!r:.80}"), _LARGEST_NUMERIC))
    return by_name


def _read_number(value: object, place: str) -> Decimal:
    if isinstance(value, float) and math.isfinite(value) and value >= 0:
        return Decimal(float.__repr__(value))
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return decimal_of_int(value)
    message = f"tolerance of {place} is {value!r:.80}: write a finite number >= 0"
    raise ValueError(message)


def cells_match(reader: KeyReader, expected: object, actual: object, tolerance: Tolerance) -> bool:
    """Whether an answer's cell is what is expected.

    Source of the rule: an expected number equals a number, or a text that is a finite decimal, within the
    tolerance; an expected text is a label and equals only the same text, exact number or day.

    Raises:
        ValueError: a cell is no JSON value.
    """
    expected_key, actual_key = reader.read(expected), reader.read(actual)
    if expected_key == actual_key:
        return True
    if isinstance(expected, str) or not is_number(expected_key):
        return False
    value = reader.odd_values.get(actual_key) if isinstance(actual_key, str) else actual_key
    return value is not None and is_within(expected_key, value, tolerance)


def is_within(expected: NumberKey, actual: NumberKey, tolerance: Tolerance) -> bool:
    """Whether two numbers are the same, or both in reach and no further apart than the tolerance."""
    if expected == actual:
        return True
    if tolerance.is_exact or not (is_key_in_reach(expected) and is_key_in_reach(actual)):
        return False
    wanted = decimal_of_key(expected)
    return difference(expected, actual).copy_abs() <= tolerance.allowance(wanted)


def difference(expected: NumberKey, actual: NumberKey) -> Decimal:
    """Return actual minus expected, exactly; both must be in reach."""
    return EXACT.subtract(decimal_of_key(actual), decimal_of_key(expected))
