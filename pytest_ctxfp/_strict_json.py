"""Find JSON objects in a text, strictly: no NaN, no number beyond a double, no lone surrogate."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ctxfp._model import JSONValue

    _Container = list[JSONValue] | dict[str, JSONValue]

MAX_NESTING = 128
"""How many objects and lists may stand in each other; a deeper one is no answer."""

_QUICK_FAILURES = 8
"""How often a text's quick reading may fail: each time, Python's decoder may have read it to the end."""

_SPACE = r"[ \t\n\r]*"
_BARE = r'[^"\\\x00-\x1f\ud800-\udfff]*'
_ESCAPE = (
    r"\\(?:[\"\\/bfnrt]|u(?:[0-9a-cefA-CEF][0-9a-fA-F]{3}|[dD](?:[0-7][0-9a-fA-F]{2}"
    r"|[89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})))"
)
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"

# A brace with a first key behind it: what fails at once never leaves the regex engine.
_START = re.compile(
    rf'\{{{_SPACE}"{_BARE}(?:(?:{_ESCAPE}{_BARE}){{0,20}}"{_SPACE}:|(?:{_ESCAPE}{_BARE}){{21}})'
)
# The repetition is bounded because the regex engine keeps a frame for each round.
_STRING_PART = re.compile(rf"{_BARE}(?:{_ESCAPE}{_BARE}){{0,200}}")
_PLAIN_KEY = re.compile(rf'{_SPACE}"{_BARE}"{_SPACE}:')
_KEY_START = re.compile(rf'{_SPACE}"')
_COLON = re.compile(rf"{_SPACE}:")
_DELIMITER = re.compile(rf"{_SPACE}([,}}\]])")
_VALUE = re.compile(
    rf'{_SPACE}(?:(?P<plain>"{_BARE}"|true|false|null)|(?P<number>{_NUMBER})|(?P<quote>")'
    rf"|(?P<empty>\{{{_SPACE}\}}|\[{_SPACE}\])|(?P<open>[{{\[]))"
)
_UNSURE = re.compile(r"[0-9]{200}|[eE]\+?[0-9]{3}|\\u[dD][89a-fA-F]|[\ud800-\udfff]")
"""What may stand for a number beyond a double or a lone surrogate; without it, a text holds neither."""


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def find_objects(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end offset of each outermost JSON object that isn't empty, from each ``{`` in turn.

    A ``{`` that begins no object is passed over and the scan goes on behind it. What a failed
    attempt learnt about the braces behind its own is kept, so none is read twice the same way. A
    brace inside one of its strings is still unknown; an attempt from there sees strings where the
    first saw none, so each character is read at most twice.
    """
    known: dict[int, int] = {}
    quick = _QuickReader(text)
    position = 0
    while found := _START.search(text, position):
        start = found.start()
        end = known.get(start)
        if end is None:
            end = quick.find_end(start)
        if end is None:
            attempt = _Attempt(text)
            end = attempt.read_object(start)
            if not end:
                known.update(attempt.ends)
        if end:
            yield start, end
        position = end or start + 1


def is_strict_json(text: str) -> bool:
    """Tell whether a text that Python's decoder takes for one JSON value is so by this module's rules."""
    wrapped = f'{{"": {text}}}'
    end = _QuickReader(wrapped).find_end(0) or _Attempt(wrapped).read_object(0)
    return end == len(wrapped)


class _QuickReader:
    """Reads with Python's decoder, about six times as fast, what is strict JSON beyond doubt.

    Args:
        text: the text that holds the objects.
    """

    __slots__ = ("_n_failures_left", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._n_failures_left = _QUICK_FAILURES

    def find_end(self, start: int) -> int | None:
        """Return the offset behind the object that begins at ``start``; None says nothing."""
        if not self._n_failures_left:
            return None
        try:
            value, end = _DECODER.raw_decode(self._text, start)
        except (ValueError, RecursionError):
            self._n_failures_left -= 1
            return None
        if _UNSURE.search(self._text, start, end) or _is_nested_too_deep(value):
            self._n_failures_left -= 1
            return None
        return int(end)


def _is_nested_too_deep(value: JSONValue) -> bool:
    level = _containers([value])
    for _ in range(MAX_NESTING):
        level = [
            inner
            for outer in level
            for inner in _containers(outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def _containers(values: Iterable[JSONValue]) -> list[_Container]:
    return [value for value in values if isinstance(value, (list, dict))]


class _Attempt:
    """One attempt to read an object; a position of 0 stands for failure.

    Args:
        text: the text that holds the object.
    """

    __slots__ = ("ends", "heights", "starts", "text", "value_due")

    def __init__(self, text: str) -> None:
        self.text = text
        self.ends: dict[int, int] = {}
        """End of every object met, by its start; 0 while it is open, and for good if it failed."""
        self.starts: list[int] = []
        """Where the open containers began, outermost first; -1 for a list."""
        self.heights: list[int] = []
        """Nesting inside each open container, itself included."""
        self.value_due = True

    def read_object(self, start: int) -> int:
        """Return the offset behind the object that begins at ``start``, or 0 if none does."""
        position = self._read_value(start)
        while position and self.starts:
            position = self._read_value(position) if self.value_due else self._read_delimiter(position)
        return self.ends[start]

    def _read_value(self, position: int) -> int:
        found = _VALUE.match(self.text, position)
        if found is None:
            return 0
        group = found.lastgroup
        if group == "open":
            return self._open(found.end())
        self.value_due = False
        if group == "quote":
            return _find_string_end(self.text, found.end())
        if group == "number" and not isfinite(float(found["number"])):
            return 0
        if group == "empty":
            self.heights[-1] = max(self.heights[-1], 2)
        return found.end()

    def _open(self, position: int) -> int:
        self.heights.append(1)
        if self.text[position - 1] == "[":
            self.starts.append(-1)
        else:
            self.starts.append(position - 1)
            self.ends[position - 1] = 0
        return self._expect_value(position)

    def _expect_value(self, position: int) -> int:
        self.value_due = True
        return position if self.starts[-1] < 0 else _find_key_end(self.text, position)

    def _read_delimiter(self, position: int) -> int:
        found = _DELIMITER.match(self.text, position)
        if found is None:
            return 0
        if found[1] == ",":
            return self._expect_value(found.end())
        if (found[1] == "]") is not (self.starts[-1] < 0):
            return 0
        return self._close(found.end())

    def _close(self, position: int) -> int:
        start, height = self.starts.pop(), self.heights.pop()
        if start >= 0 and height <= MAX_NESTING:
            self.ends[start] = position
        if self.heights:
            self.heights[-1] = max(self.heights[-1], height + 1)
        return position


def _find_key_end(text: str, position: int) -> int:
    """Return the offset behind a key and its colon, or 0 if there is none at ``position``."""
    plain = _PLAIN_KEY.match(text, position)
    if plain:
        return plain.end()
    quote = _KEY_START.match(text, position)
    end = _find_string_end(text, quote.end()) if quote else 0
    colon = _COLON.match(text, end) if end else None
    return colon.end() if colon else 0


def _find_string_end(text: str, position: int) -> int:
    """Return the offset behind a string's closing quote, or 0 if the string is broken."""
    while True:
        part = _STRING_PART.match(text, position)
        assert part is not None, "the pattern matches the empty text"
        end = part.end()
        if text.startswith('"', end):
            return end + 1
        if end == position:
            return 0
        position = end
