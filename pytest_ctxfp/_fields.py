"""Readers of single fields of a golden file: a node in, a value of the record out, or a fault.

Every reader is called as ``(key, node, faults)``. None means "not set", and is also what comes back after
a fault was added.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_ctxfp._tree import (
    Fault,
    Mapping,
    Node,
    Scalar,
    Sequence,
    construct,
    core_type,
    describe,
    is_null,
    resolve_plain,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_ctxfp._model import JSONValue


_MAX_KNOWN = 100
_MAX_SHOWN = 10
_NO_MERGE = "YAML 1.2 has no merge keys, write the keys out"


def read_text(key: str, node: Node, faults: list[Fault]) -> str | None:
    """Read a text that isn't blank; a plain scalar is taken as written."""
    if not isinstance(node, Scalar):
        faults.append(Fault(node.line, f'`{key}` is {describe(node)}: write a text, "..."'))
        return None
    if not node.text or node.text.isspace():
        faults.append(Fault(node.line, f'`{key}` is empty: write a text, "..."'))
        return None
    return node.text


def read_optional_text(key: str, node: Node, faults: list[Fault]) -> str | None:
    """Read a text, or null for none."""
    return None if is_null(node) else read_text(key, node, faults)


def read_reason(key: str, node: Node, faults: list[Fault]) -> str | None:
    """Read why a case is skipped or expected to fail; ``skip: false`` must not skip, so it is refused."""
    if isinstance(node, Scalar) and node.plain and core_type(node.text) in ("null", "bool"):
        reason = f'`{key}` is {describe(node)}: write why, {key}: "...", or remove the key'
        faults.append(Fault(node.line, reason))
        return None
    return read_text(key, node, faults)


def read_texts(key: str, node: Node, faults: list[Fault]) -> tuple[str, ...] | None:
    """Read a list of texts, or null for none."""
    if is_null(node):
        return None
    if not isinstance(node, Sequence):
        faults.append(Fault(node.line, f"`{key}` is {describe(node)}: write a list, {key}: [...]"))
        return None
    texts = (read_text(f"{key}[{i}]", item, faults) for i, item in enumerate(node.items))
    return tuple(text for text in texts if text is not None)


def read_marks(key: str, node: Node, faults: list[Fault]) -> tuple[str, ...] | None:
    """Read names of pytest marks: identifiers that don't begin with an underscore (pytest refuses those)."""
    marks = read_texts(key, node, faults)
    for mark in marks or ():
        if not mark.isidentifier() or mark.startswith("_"):
            reason = (
                f"the mark {shown(mark)} is no name: write one as in `@pytest.mark.NAME`, without arguments"
            )
            faults.append(Fault(node.line, reason))
    return marks


def read_flag(key: str, node: Node, faults: list[Fault]) -> bool | None:
    """Read true or false."""
    if isinstance(node, Scalar) and node.plain and core_type(node.text) == "bool":
        return node.text.lower() == "true"
    faults.append(Fault(node.line, f"`{key}` is {describe(node)}: write true or false"))
    return None


def read_number(
    key: str, node: Node, faults: list[Fault], *, wanted: str, fits: Callable[[float], bool]
) -> int | float | None:
    """Read a finite number that ``fits``; ``wanted`` says which ones do, as in ``a number above 0``."""
    value = _resolve_number(node)
    if value is None:
        faults.append(Fault(node.line, f"`{key}` is {describe(node)}: write {wanted}"))
    elif not abs(value) <= sys.float_info.max or not fits(value):  # "not <=": NaN is below nothing
        faults.append(Fault(node.line, f"`{key}` is {describe(node)}, out of range: write {wanted}"))
    else:
        return value
    return None


def _resolve_number(node: Node) -> int | float | None:
    """Return a node's number, infinity where it is beyond a double, or None where it is none."""
    if not isinstance(node, Scalar) or not node.plain or core_type(node.text) not in ("int", "float"):
        return None
    try:
        value = resolve_plain(node.text)
    except ValueError:
        return math.inf
    assert isinstance(value, (int, float))
    return value


def read_not_negative(key: str, node: Node, faults: list[Fault]) -> int | float | None:
    """Read a finite number of at least 0."""
    return read_number(key, node, faults, wanted="a number of at least 0", fits=lambda value: value >= 0)


def read_share(key: str, node: Node, faults: list[Fault]) -> float | None:
    """Read a number from 0 to 1, or null for none."""
    if is_null(node):
        return None
    value = read_number(key, node, faults, wanted="a number from 0 to 1", fits=lambda value: 0 <= value <= 1)
    return None if value is None else float(value)


def read_seconds(key: str, node: Node, faults: list[Fault]) -> float | None:
    """Read a number of seconds above 0, or null for none."""
    if is_null(node):
        return None
    value = read_number(key, node, faults, wanted="a number of seconds above 0", fits=lambda value: value > 0)
    return None if value is None else float(value)


def read_choice(key: str, node: Node, faults: list[Fault], *, choices: tuple[str, ...]) -> str | None:
    """Read one of a few words."""
    if isinstance(node, Scalar) and node.text in choices:
        return node.text
    hint = suggest(node.text, choices) if isinstance(node, Scalar) else ""
    reason = f"`{key}` is {describe(node)}: {hint or f'write {join_words(choices)}'}"
    faults.append(Fault(node.line, reason))
    return None


def read_mapping(key: str, node: Node, faults: list[Fault]) -> dict[str, JSONValue] | None:
    """Read a mapping of anything JSON can hold, or null for none."""
    if is_null(node):
        return None
    value = construct(node, faults)
    if isinstance(value, dict):
        return value
    faults.append(Fault(node.line, f"`{key}` is {describe(node)}: write a mapping, {key}: {{name: value}}"))
    return None


def refuse_unknown(mapping: Mapping, known: tuple[str, ...], faults: list[Fault], *, place: str = "") -> None:
    """Add a fault for every key that isn't known; ``place`` is where, as in ``" in `expected`"``."""
    for key in mapping.entries:
        if key not in known:
            remedy = (
                _NO_MERGE
                if key == "<<"
                else suggest(key, known) or f"remove it, known are {join_words(known)}"
            )
            faults.append(Fault(mapping.lines[key], f"unknown key {shown(key)}{place}: {remedy}"))


def suggest(word: str, known: tuple[str, ...]) -> str:
    """Return ``did you mean 'match'?`` where a known word is near, else an empty text."""
    # The search takes the time of comparing with each, and the cache hashes all.
    return _suggest(word, known) if len(word) <= 40 and len(known) <= _MAX_KNOWN else ""


@lru_cache(maxsize=1024)
def _suggest(word: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word.lower(), known, n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def join_words(words: Iterable[str]) -> str:
    """Return ``a, b or c``, of many words the first ones."""
    known = list(words)
    *head, last = (
        known
        if len(known) <= _MAX_KNOWN
        else [*known[:_MAX_SHOWN], f"one of the {len(known) - _MAX_SHOWN} others"]
    )
    return f"{', '.join(head)} or {last}" if head else last
