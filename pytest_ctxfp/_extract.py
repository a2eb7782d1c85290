"""Find an agent's answer in the text it returned: the outermost JSON objects, read strictly."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from pytest_ctxfp._model import ResultKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_ctxfp._model import JSONValue

MAX_NESTING = 128
"""How many objects and lists may stand in each other; a deeper one is no answer."""

VERDICT_FIELDS = ("fresh", "severity")

_SPACE = r"[ \t\n\r]*"
_BARE = r'[^"\\\x00-\x1f\ud800-\udfff]*'
_ESCAPE = (
    r"\\(?:[\"\\/bfnrt]|u(?:[0-9a-cefA-CEF][0-9a-fA-F]{3}|[dD](?:[0-7][0-9a-fA-F]{2}"
    r"|[89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})))"
)
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"

# A brace with a first key behind it: what fails at once never leaves the regex engine.
_START = re.compile(rf'\{{{_SPACE}"{_BARE}(?:\\|"{_SPACE}:)')
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
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)", re.MULTILINE)


def is_table(value: JSONValue) -> TypeGuard[dict[str, JSONValue]]:
    """Tell whether a value is ``{"rows": [[...]]}``, with ``columns`` absent or a list of texts."""
    if not isinstance(value, dict):
        return False
    rows, columns = value.get("rows"), value.get("columns", [])
    return (
        isinstance(rows, list)
        and all(isinstance(row, list) for row in rows)
        and isinstance(columns, list)
        and all(isinstance(name, str) for name in columns)
    )


def is_verdict(value: JSONValue) -> bool:
    """Tell whether a value is a verdict envelope: it has ``verdict``, or a list of ``blocks``."""
    return isinstance(value, dict) and ("verdict" in value or isinstance(value.get("blocks"), list))


_SHAPES: dict[ResultKind, Callable[[JSONValue], bool]] = {
    ResultKind.TABLE: is_table,
    ResultKind.VERDICT: is_verdict,
    ResultKind.TEXT: lambda value: isinstance(value, str),
    ResultKind.JSON: lambda _: True,
}


def has_shape(value: JSONValue, kind: ResultKind) -> bool:
    """Tell whether a value is what a case of this kind asks for."""
    return _SHAPES[kind](value)


def read_verdict_field(envelope: JSONValue, field: str) -> bool | str | None:
    """Return what a verdict envelope says, or None where it doesn't say it.

    Args:
        envelope: a verdict envelope (Warble's), or anything else, which says nothing.
        field: ``fresh``: the boolean ``verdict.fresh``; ``severity``: the text of that name in the first
            block of type ``status``, else in ``verdict``.

    Raises:
        ValueError: an unknown field.
    """
    if field not in VERDICT_FIELDS:
        message = f"{field!r} is no verdict field: use {' or '.join(VERDICT_FIELDS)}"
        raise ValueError(message)
    if not isinstance(envelope, dict):
        return None
    verdict = envelope.get("verdict")
    stated = verdict.get(field) if isinstance(verdict, dict) else None
    if field == "fresh":
        return stated if isinstance(stated, bool) else None
    severity = _first_status(envelope.get("blocks")).get("severity")
    return next((text for text in (severity, stated) if isinstance(text, str)), None)


def _first_status(blocks: JSONValue) -> dict[str, JSONValue]:
    for block in blocks if isinstance(blocks, list) else []:
        if isinstance(block, dict) and block.get("type") == "status":
            return block
    return {}


def extract_result(text: str, kind: ResultKind | str = "table") -> JSONValue:
    """Find the answer in what an agent wrote.

    Candidates are the outermost JSON objects of the wanted shape. The last one that begins in a
    fenced block wins, else the last one. Numbers beyond a double, NaN, lone surrogates and nesting
    beyond 128 levels make an object none; integers keep all digits. The time taken is linear in
    the length of the text, whatever the text is.

    Args:
        text: the whole answer, prose and all.
        kind: ``table``, ``verdict``, ``text`` (the text is its own answer) or ``json``, any JSON value: the
            last fenced block that is JSON, else the whole text, else the last object in it.

    Returns:
        The object as written, further keys included, or None where there is none.

    Raises:
        ValueError: an unknown kind.
    """
    kind = ResultKind(kind)
    if kind is ResultKind.TEXT:
        return text
    if kind is ResultKind.JSON:
        from pytest_ctxfp._json_answer import find_json

        found = find_json(text)
        return None if found is None else found.value
    return _last_object(text, is_wanted=_SHAPES[kind])


def _last_object(text: str, *, is_wanted: Callable[[JSONValue], bool]) -> JSONValue:
    blocks = find_fenced_blocks(text)
    read = json.JSONDecoder().raw_decode
    last: JSONValue = None
    last_fenced: JSONValue = None
    for start, _ in find_objects(text):
        value: JSONValue = read(text, start)[0]
        if is_wanted(value):
            last = value
            if blocks.holds(start):
                last_fenced = value
    return last if last_fenced is None else last_fenced


class _Blocks(NamedTuple):
    """The insides of fenced blocks, as offsets in ascending order."""

    starts: list[int]
    ends: list[int]

    def holds(self, offset: int) -> bool:
        before = bisect_right(self.starts, offset)
        return before > 0 and offset < self.ends[before - 1]


def find_fenced_blocks(text: str) -> _Blocks:
    """Find fenced code blocks by CommonMark's rule (0.31, section 4.5); lines end at LF or CRLF."""
    blocks = _Blocks([], [])
    opener = ""
    for line in _FENCE.finditer(text):
        marker, rest = line.groups()
        if not opener:
            if marker[0] == "~" or "`" not in rest:
                opener = marker
                blocks.starts.append(line.end())
        elif marker.startswith(opener) and not rest.strip(" \t\r"):
            opener = ""
            blocks.ends.append(line.start())
    if opener:
        blocks.ends.append(len(text))
    return blocks


def find_objects(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end offset of each outermost JSON object that isn't empty, from each ``{`` in turn.

    A ``{`` that begins no object is passed over and the scan goes on behind it. What a failed
    attempt learnt about the braces behind its own is kept, so none is read twice the same way. A
    brace inside one of its strings is still unknown; an attempt from there sees strings where the
    first saw none, so each character is read at most twice.
    """
    known: dict[int, int] = {}
    position = 0
    while found := _START.search(text, position):
        start = found.start()
        end = known.get(start)
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
    return _Attempt(wrapped).read_object(0) == len(wrapped)


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
