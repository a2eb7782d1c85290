"""Find an agent's answer in the text it returned."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from pytest_ctxfp._model import ResultKind
from pytest_ctxfp._strict_json import find_objects

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ctxfp._model import JSONValue

VERDICT_FIELDS = ("fresh", "severity")

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
