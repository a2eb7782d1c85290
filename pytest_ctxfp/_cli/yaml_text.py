"""Values as YAML that our own loader, and any other, reads back as the same values."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ctxfp._model import JSONValue

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_-]*")
_WORDS_OF_YAML = frozenset({"null", "true", "false", "yes", "no", "on", "off"})


def write_text(text: str) -> str:
    r"""Return a text as a YAML scalar: a plain name as it is, anything else in double quotes.

    A JSON string is one in YAML too, if what can't be shown is escaped: ``"a\u202eb"``.

    Raises:
        ValueError: a lone surrogate, which no YAML file can hold.
    """
    if _NAME.fullmatch(text) and text.lower() not in _WORDS_OF_YAML:
        return text
    return quote(text)


def quote(text: str) -> str:
    """Return a text as a YAML scalar in double quotes.

    Raises:
        ValueError: as `write_text`.
    """
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted if quoted.isascii() and quoted.isprintable() else "".join(map(_escape, quoted))


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        message = f"a lone surrogate (U+{code:04X}) can't stand in a YAML file"
        raise ValueError(message)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def write_flow(value: JSONValue) -> str:
    """Return a value in flow style: ``{columns: [n], rows: [[99]]}``.

    Raises:
        ValueError: as `write_text`; a value nested too deep or a number that isn't finite.
    """
    try:
        return _write_flow(value)
    except RecursionError:
        message = "a value is nested too deep"
        raise ValueError(message) from None


def _write_flow(value: JSONValue) -> str:
    if isinstance(value, str):
        return write_text(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_write_flow, value)) + "]"
    if isinstance(value, dict):
        entries = (f"{write_text(key)}: {_write_flow(inner)}" for key, inner in value.items())
        return "{" + ", ".join(entries) + "}"
    return json.dumps(value, allow_nan=False)
