"""Python values to JSON values, without ever taking an object's ``str()``."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from pytest_ctxfp._errors import AgentError
from pytest_ctxfp._strict_json import MAX_NESTING

if TYPE_CHECKING:
    from decimal import Decimal

    from pytest_ctxfp._model import JSONValue

_STORABLE = (
    "use texts, numbers, booleans, None, lists, mappings with text keys, dates, decimals or UTF-8 bytes"
)
_TOO_DEEP = f"lists and mappings are nested more than {MAX_NESTING} levels deep, or hold themselves"
_MISSING = frozenset({"NAType", "NaTType", "MaskedConstant"})
"""Type names of pandas' and numpy's markers for a missing value, which hold no value to convert."""


def to_json_value(value: object, *, depth: int = 0) -> JSONValue:
    """Convert a value to what JSON holds.

    Decimals become numbers where that keeps every digit, else texts; dates and times ISO 8601 texts;
    NaN and infinities the texts ``NaN``, ``Infinity`` and ``-Infinity``; numpy scalars what they hold.

    Args:
        value: anything.
        depth: how many containers, arrays and scalars of other libraries the value stands in.

    Raises:
        AgentError: a type that JSON can't hold, bytes that are not UTF-8, an integer beyond a double's
            range, or more than 128 levels.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (int, float)):
        return _convert_number(value)
    if isinstance(value, (list, tuple, Mapping)):
        return _convert_container(value, depth)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _decode(bytes(value))
    return _convert_scalar(value, depth)


def _convert_number(value: float) -> JSONValue:
    try:
        number = float(value)
    except OverflowError:
        message = "an integer is beyond the range of a double: make it a text"
        raise AgentError(message) from None
    if isinstance(value, int):
        return int(value)
    return number if isfinite(number) else _spell_non_finite(number)


def _spell_non_finite(number: float) -> str:
    if number > 0:
        return "Infinity"
    return "-Infinity" if number < 0 else "NaN"


def _convert_container(
    value: list[object] | tuple[object, ...] | Mapping[object, object], depth: int
) -> JSONValue:
    if depth >= MAX_NESTING:
        raise AgentError(_TOO_DEEP)
    if isinstance(value, Mapping):
        return {_convert_key(key): to_json_value(inner, depth=depth + 1) for key, inner in value.items()}
    return [to_json_value(inner, depth=depth + 1) for inner in value]


def _convert_key(key: object) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    message = f"a mapping has a key of type {type_name(key)!r}: make it a text"
    raise AgentError(message)


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"bytes are not UTF-8 ({error.reason} at offset {error.start}): decode them to text"
        raise AgentError(message) from None


def _convert_scalar(value: object, depth: int) -> JSONValue:
    from datetime import date, time
    from decimal import Decimal

    if depth > MAX_NESTING:
        raise AgentError(_TOO_DEEP)
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, Decimal):
        return _convert_decimal(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    held = _unwrap(value)
    if held is value:
        message = f"a value of type {type_name(value)!r} is no JSON: {_STORABLE}"
        raise AgentError(message)
    return to_json_value(held, depth=depth + 1)


def _convert_decimal(value: Decimal) -> JSONValue:
    from decimal import Decimal

    if value.is_nan():
        return "NaN"
    number = float(value)
    if value.is_infinite():
        return _spell_non_finite(number)
    if isfinite(number):
        if value == value.to_integral_value() and "." not in Decimal.__str__(value):
            return int(value)
        if Decimal(repr(number)) == value:
            return number
    return Decimal.__str__(value)


def _unwrap(value: object) -> object:
    """Return what a numpy array or scalar, a tensor or a pyarrow scalar holds; anything else as it is.

    They are known by their attributes, since none of these packages may be there.
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and hasattr(value, "dtype"):
        return _unwrap_array(value) if shape else _unwrap_scalar(value)
    # Of the type, since a mock has every attribute and would be unwrapped for ever.
    as_py = getattr(type(value), "as_py", None)
    return as_py(value) if callable(as_py) else value


def _unwrap_array(value: Any) -> object:
    return list(value)


def _unwrap_scalar(value: Any) -> object:
    kind = getattr(value.dtype, "kind", "")
    if kind == "m":
        return value
    # With nanoseconds, item() gives a bare integer.
    held: object = (value.astype("datetime64[us]") if kind == "M" else value).item()
    return value if type(held) is type(value) else held


def type_name(value: object) -> str:
    """Return a type's name as one would import it: ``decimal.Decimal``, but ``set``."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
