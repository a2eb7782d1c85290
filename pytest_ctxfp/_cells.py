"""When two cells are equal: exact decimals, labels, dates, and the key that stands for a cell's value.

A *key* is what a cell is looked up by: None for null, a text for a label, and for a number an int, a float
or, where neither can hold the decimal that was written, a tagged ``Decimal``. Two keys are equal exactly if
the cells hold the same value; in particular a float key stands for its shortest decimal, not for the binary
fraction behind it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from operator import ne
from typing import TYPE_CHECKING, TypeGuard, Union, cast

from pytest_ctxfp._hashing import canonical_json
from pytest_ctxfp._layers import WHITE_SPACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NumberKey = Union[int, float, "tuple[str, Decimal]"]
Key = str | NumberKey | None

# Room for the widest sum of two numbers in reach and a tolerance; an inexact result would be a wrong verdict.
EXACT = Context(prec=5_000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation])

_MAX_EXPONENT = 400
_MAX_DIGITS = 1_000
_LARGEST = Decimal("1e400")
_SMALLEST = Decimal("1e-400")
_MANY_BITS = 1 << 15
_BITS_IN_REACH = 1_328  # 2**1328 < 10**400
_FIRST_INEXACT_FLOAT = 2.0**53
_SAFE_DIGITS = 15  # that many decimal digits survive a float unchanged
_FINITE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_MIDNIGHT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]00:00:00")


def trim(text: str) -> str:
    """Return the text without White_Space at its ends (U+001C to U+001F are none, and stay)."""
    return text.strip(WHITE_SPACE)


def parse_finite(text: str) -> Decimal | None:
    """Return the number that a text is, once trimmed, or None.

    A decimal whose written exponent is beyond 400 is text: ``12e4567`` is a hash, not a number.
    """
    match = _FINITE.fullmatch(trim(text))
    if match is None:
        return None
    exponent = (match[1] or "").lstrip("+-").lstrip("0")
    if len(exponent) > 3 or int(exponent or "0") > _MAX_EXPONENT:
        return None
    return Decimal(match[0])


def is_in_reach(value: Decimal) -> bool:
    """Whether tolerances apply: zero, or within 10^±400 and of at most 1,000 significant digits."""
    if value.is_zero():
        return True
    if not _SMALLEST <= value.copy_abs() <= _LARGEST:
        return False
    digits = value.as_tuple().digits
    return len(digits) <= _MAX_DIGITS or not any(digits[_MAX_DIGITS:])


def key_of_decimal(value: Decimal) -> NumberKey:
    """Return the key of an exact decimal."""
    if not is_in_reach(value):
        return ("#", value)
    if value == value.to_integral_value(context=EXACT):
        return int(value)
    nearest = float(value)
    return nearest if Decimal(repr(nearest)) == value else ("#", value)


def decimal_of_key(key: NumberKey) -> Decimal:
    """Return the exact decimal that a number's key stands for."""
    if isinstance(key, tuple):
        return key[1]
    return Decimal(float.__repr__(key)) if isinstance(key, float) else decimal_of_int(key)


def decimal_of_int(value: int) -> Decimal:
    """Return an integer as a decimal, in halves where one conversion would be quadratic."""
    n_bits = value.bit_length()
    if n_bits <= _MANY_BITS:
        return Decimal(value)
    n_low = n_bits // 2
    exact = Context(prec=n_bits, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact])
    high = decimal_of_int(value >> n_low)
    low = decimal_of_int(value & ((1 << n_low) - 1))
    return exact.add(exact.multiply(high, exact.power(Decimal(2), n_low)), low)


def is_key_in_reach(key: NumberKey) -> bool:
    """Whether tolerances apply to the number behind a key."""
    return not isinstance(key, tuple) or is_in_reach(key[1])


def is_number(key: object) -> TypeGuard[NumberKey]:
    """Whether a key is that of a number, or of a text that is a plain number."""
    return key is not None and not isinstance(key, str)


class KeyReader:
    """Reads cells into keys, each text once.

    A finite decimal that is no plain number (``+5``, ``007``, ``.5``) has its text as key: as a label it
    equals nothing else. `odd_values` has the number that it is where a number is expected.
    """

    def __init__(self) -> None:
        self.odd_values: dict[str, NumberKey] = {}
        self._texts: dict[str, Key] = {}

    def read_column(self, cells: Sequence[object]) -> list[Key]:
        """Return the keys of many cells; columns of one type take a short way.

        Raises:
            ValueError: a cell is no JSON value.
        """
        if _are_keys(cells):
            return list(cells)
        if _are_texts(cells):
            texts = self._read_texts(set(cells))
            return list(map(texts.__getitem__, cells))
        return list(map(self.read, cells))

    def read(self, cell: object) -> Key:
        """Return the key of one cell.

        Raises:
            ValueError: the cell is no JSON value.
        """
        if cell is None:
            return None
        if isinstance(cell, str):
            return self._read_texts((cell,))[cell]
        if isinstance(cell, bool):
            return "true" if cell else "false"
        if isinstance(cell, float):
            return _key_of_float(cell)
        if isinstance(cell, int):
            return _key_of_int(cell)
        return _label(canonical_json(cell))

    def _read_texts(self, texts: Iterable[str]) -> dict[str, Key]:
        known = self._texts
        for text in texts:
            if text not in known:
                known[text] = self._read_text(text.strip(WHITE_SPACE))
        return known

    def _read_text(self, trimmed: str) -> Key:
        if _FINITE.fullmatch(trimmed) is None:
            return _label(trimmed)
        is_plain = _PLAIN.fullmatch(trimmed) is not None
        if is_plain and len(trimmed) <= _SAFE_DIGITS and "e" not in trimmed and "E" not in trimmed:
            return float(trimmed)
        value = parse_finite(trimmed)
        if value is None:
            return trimmed
        key = key_of_decimal(value)
        if is_plain:
            return key
        self.odd_values[trimmed] = key
        return trimmed


def _label(text: str) -> str:
    trimmed = trim(text)
    label = trimmed if trimmed.isascii() else unicodedata.normalize("NFC", trimmed)
    midnight = _MIDNIGHT.fullmatch(label)
    return midnight[1] if midnight else label


def _are_texts(cells: Sequence[object]) -> TypeGuard[Sequence[str]]:
    return set(map(type, cells)) == {str}


def _are_keys(cells: Sequence[object]) -> TypeGuard[Sequence[int | float]]:
    """Whether every cell is a number that is its own key."""
    kinds = set(map(type, cells))
    if not kinds or not kinds <= {int, float}:
        return False
    numbers = cast("Sequence[float]", cells)
    limit: float = 1 << _BITS_IN_REACH
    if float in kinds:
        limit = _FIRST_INEXACT_FLOAT
        if any(map(ne, numbers, numbers)):  # an order with NaN in it means nothing
            return False
    return -limit < min(numbers) and max(numbers) < limit


def _key_of_float(cell: float) -> Key:
    if -_FIRST_INEXACT_FLOAT < cell < _FIRST_INEXACT_FLOAT:
        return float(cell)
    if math.isfinite(cell):
        return key_of_decimal(Decimal(float.__repr__(cell)))
    return "NaN" if math.isnan(cell) else "Infinity" if cell > 0 else "-Infinity"


def _key_of_int(cell: int) -> Key:
    if cell.bit_length() <= _BITS_IN_REACH:
        return int(cell)
    return key_of_decimal(decimal_of_int(int(cell)))
