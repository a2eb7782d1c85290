"""Writing a pin into a golden file: one value changes, every other byte stays."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

from pytest_ctxfp._cli.yaml_text import quote
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._pins import classify_pin
from pytest_ctxfp._tree import EntrySpan, Mapping, Scalar, Sequence, TopLevel, TreeError
from pytest_ctxfp._tree_file import parse_text

if TYPE_CHECKING:
    from pytest_ctxfp._model import GoldenSet
    from pytest_ctxfp._tree import Node

PIN_DIGITS = 12
KEY = "context_version"

_BARE_PIN = re.compile("[0-9a-fA-F]{7,64}")
_PLAIN = re.compile("[A-Za-z0-9_][A-Za-z0-9_./@+-]*")
_LIKE_NUMBER = re.compile("[0-9]+(?:[eE][0-9]+)?")
_SPACE = re.compile("[ \t\r\n]*")


def new_version(golden: GoldenSet, sha: str) -> str:
    """Return the pin of a golden file for a state of the context: its dataset and 12 digits of the SHA.

    A bare pin stays bare; a text that is no pin becomes the dataset, else the file's ``dataset`` or its name
    without the suffix is.
    """
    pin = sha[:PIN_DIGITS]
    old = golden.context_version
    if old is not None and _BARE_PIN.fullmatch(old):
        return pin
    stem = os.path.splitext(os.path.basename(golden.path))[0]
    dataset = old.partition("@")[0] if old else (golden.dataset or stem).replace("@", "-")
    return f"{dataset}@{pin}"


def stamp_text(golden: GoldenSet, text: str, *, sha: str) -> tuple[str, str]:
    """Return the text of a golden file with a new pin in it, and the pin.

    Args:
        golden: the file, read.
        text: what it holds, without a byte order mark.
        sha: tree SHA of the context sources.

    Raises:
        CtxfpError: a file without a place for a pin (JSON Lines), or one where it can't be written safely.
    """
    version = new_version(golden, sha)
    suffix = os.path.splitext(golden.path)[1].lower()
    if suffix == ".jsonl":
        message = (
            f"{golden.path}: JSON Lines hold a case a line and have no place for a pin: keep it as .yaml or"
            " .json to stamp it"
        )
        raise CtxfpError(message)
    try:
        is_json = suffix == ".json"
        edited = edit_json(text, KEY, json.dumps(version)) if is_json else _edit_yaml(text, version)
    except ValueError as error:
        message = f"{golden.path}: the pin {version!r} can't be written: {error}"
        raise CtxfpError(message) from None
    if (
        not _is_only_change(golden.path, text, edited, version)
        or classify_pin(version, sha).freshness != "fresh"
    ):
        message = (
            f"{golden.path}: its {KEY} can't be edited where it stands: write `{KEY}: {version}` on a line of"
            " its own"
        )
        raise CtxfpError(message)
    return edited, version


def _is_only_change(path: str, before: str, after: str, version: str) -> bool:
    """Whether two texts of a golden file differ in the pin alone, whatever the lines."""
    try:
        old, new = parse_text(path, before), parse_text(path, after)
    except TreeError:
        return False
    if new.faults or len(new.roots) != len(old.roots):
        return False
    trees = [_find_mapping(root) for root in (old.roots[0], new.roots[0])]
    pin = trees[1].pop(KEY, None)
    trees[0].pop(KEY, None)
    is_written = isinstance(pin, Scalar) and pin.text == version
    return (
        is_written
        and trees[0].keys() == trees[1].keys()
        and all(_is_same(node, trees[1][name]) for name, node in trees[0].items())
    )


def _find_mapping(root: Node) -> dict[str, Node]:
    return dict(root.entries) if isinstance(root, Mapping) else {}


def _is_same(left: Node, right: Node) -> bool:
    if isinstance(left, Scalar) and isinstance(right, Scalar):
        return (left.text, left.plain) == (right.text, right.plain)
    if isinstance(left, Sequence) and isinstance(right, Sequence):
        return len(left.items) == len(right.items) and all(map(_is_same, left.items, right.items))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.entries.keys() == right.entries.keys() and all(
            _is_same(node, right.entries[name]) for name, node in left.entries.items()
        )
    return False


def _edit_yaml(text: str, version: str) -> str:
    from pytest_ctxfp._yaml import find_top_level

    top = find_top_level(text)
    if top is None:
        return text
    old = top.entries.get(KEY)
    if old is not None:
        return _replace(text, old, _spell(version, old.style))
    if top.is_flow:
        return _insert_in_braces(text, top, f"{KEY}: {quote(version)}")
    return _insert_line(text, top, f"{KEY}: {_spell(version, None)}")


def _spell(version: str, style: str | None) -> str:
    """Return the pin in the quotes that stood there, or plain where any reader takes that for a text."""
    if style == "'" and version.isprintable():
        return "'" + version.replace("'", "''") + "'"
    is_plain = _PLAIN.fullmatch(version) and not _LIKE_NUMBER.fullmatch(version)
    return version if is_plain and style != '"' else quote(version)


def _replace(text: str, span: EntrySpan, value: str) -> str:
    gap = " " if span.value_start == span.value_end else ""  # `context_version:` and nothing
    return f"{text[: span.value_start]}{gap}{value}{text[span.value_end :]}"


def _insert_in_braces(text: str, top: TopLevel, entry: str) -> str:
    """Put an entry first between the braces, spaced as the first one is."""
    first = min(span.key_start for span in top.entries.values())
    gap = text[top.start + 1 : first]
    return f"{text[:first]}{entry},{gap if gap and not gap.strip() else ' '}{text[first:]}"


def _insert_line(text: str, top: TopLevel, line: str) -> str:
    """Put a line below the ``dataset``, else above the first entry."""
    first = min(span.key_start for span in top.entries.values())
    line_start = text.rfind("\n", 0, first) + 1
    indent = text[line_start:first]
    line_end = "\r\n" if "\r\n" in text else "\n"
    dataset = top.entries.get("dataset")
    place = line_start if dataset is None else _end_of_line(text, dataset.value_end)
    if indent.strip():  # `--- dataset: shop`: nothing can stand before it
        return text
    return f"{text[:place]}{indent}{line}{line_end}{text[place:]}"


def _end_of_line(text: str, position: int) -> int:
    """Return where the next line begins; a block scalar ends there already."""
    if text[position - 1] == "\n":
        return position
    return text.find("\n", position) + 1 or len(text)


def edit_json(text: str, key: str, value: str) -> str:
    """Return the text of a non-empty JSON object with another value of a key, or with the key put first.

    Args:
        text: known to be an object in JSON.
        key: a key that needs no escaping.
        value: as it stands in JSON.
    """
    top = _find_json_entries(text)
    old = top.entries.get(key)
    return _insert_in_braces(text, top, f'"{key}": {value}') if old is None else _replace(text, old, value)


def _find_json_entries(text: str) -> TopLevel:
    """Return where the entries of a JSON object stand; the text is known to be one."""
    start = position = _skip(text, 0)
    # Numbers of any length, which are only passed over.
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    entries = {}
    while text[position] != "}":
        key_start = _skip(text, position + 1)
        key, position = decoder.raw_decode(text, key_start)
        value_start = _skip(text, _skip(text, position) + 1)
        _, value_end = decoder.raw_decode(text, value_start)
        entries[key] = EntrySpan(key_start=key_start, value_start=value_start, value_end=value_end)
        position = _skip(text, value_end)
    return TopLevel(start=start, is_flow=True, entries=entries)


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    assert match is not None, "it matches the empty text too"
    return match.end()
