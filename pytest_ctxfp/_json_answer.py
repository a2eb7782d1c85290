"""Find a JSON answer of any shape in a text."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from pytest_ctxfp._extract import find_fenced_blocks
from pytest_ctxfp._strict_json import find_objects, is_strict_json

if TYPE_CHECKING:
    from pytest_ctxfp._model import JSONValue

_JSON_SPACE = " \t\r\n"


class FoundJson(NamedTuple):
    """A value found in a text; null is one too."""

    value: JSONValue


def find_json(text: str) -> FoundJson | None:
    """Find the JSON value that a text answers with, or None where there is none.

    The last fenced block that is JSON as a whole, or holds a JSON object, gives it; else the whole text, if
    it is JSON; else the last outermost JSON object in it. Lists and bare values are therefore found in a
    fenced block or as the whole text, not within prose.
    """
    blocks = find_fenced_blocks(text)
    for start, end in zip(blocks.starts[::-1], blocks.ends[::-1], strict=True):
        inside = text[start:end]
        found = _read_whole(inside) or _last_object(inside)
        if found is not None:
            return found
    return _read_whole(text) or _last_object(text)


def _read_whole(text: str) -> FoundJson | None:
    """Read a text that is one JSON value, by the rules that objects in prose are read by."""
    text = text.strip(_JSON_SPACE)
    if not text:
        return None
    try:
        value: JSONValue = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return FoundJson(value) if is_strict_json(text) else None


def _last_object(text: str) -> FoundJson | None:
    last = deque(find_objects(text), maxlen=1)
    return FoundJson(json.loads(text[slice(*last[0])])) if last else None
