"""JSON texts, and values that Python already holds, to the trees that YAML gives.

Lines: a JSON parser tells none, so a node has the line of the value it was read with: an entry or item of
the top level, an item of the top-level ``cases`` or ``facts``, a line of JSON Lines.
"""

from __future__ import annotations

import re
from collections import abc
from json import JSONDecodeError, JSONDecoder
from typing import TYPE_CHECKING

from pytest_ctxfp._tree import (
    MAX_LEVELS,
    MAX_NODES,
    Fault,
    Faults,
    Mapping,
    Node,
    Parsed,
    Scalar,
    Sequence,
    TreeError,
    repeated_key,
    too_many_nodes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_LISTS = ("cases", "facts")  # of the top level, whose items have lines of their own
_MAX_VALUES = 1_000_000  # of one Python value: lists that share lists can stand for any number of values
_SKIP_SPACE = re.compile("[ \t\n\r]*").match
_EMPTY = "the file is empty: write `cases` and a list, or delete it"
_TOO_DEEP = "more than 100 levels: flatten this value, or hold it as a text"


def parse_json(text: str) -> Parsed:
    """Read a JSON text.

    Args:
        text: the whole text, without a byte order mark.

    Raises:
        TreeError: text that is empty or no JSON, or more than 100 levels.
    """
    reader = _JsonReader()
    reader.start(text)
    root = reader.read_split()
    return Parsed((root,), tuple(reader.faults))


def parse_json_lines(text: str) -> Parsed:
    """Read JSON Lines: a root a line; blank lines are skipped and lines that are no JSON are faults."""
    roots: list[Node] = []
    reader = _JsonReader()
    starts: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip(" \t\r"):
            continue
        starts.append(number)
        reader.start(line, first_line=number)
        try:
            roots.append(reader.read_whole())
        except TreeError as error:
            reader.faults.append(Fault(number, error.reason))
    return Parsed(tuple(roots), tuple(reader.faults), tuple(starts))


def node_from_value(value: object) -> Node:
    """Return the tree of a Python value made of mappings, lists, tuples, texts, numbers, booleans and None.

    Raises:
        TreeError: another type, a key that is no text, more than 100 levels or 1,000,000 values, or an
            integer too long to be written.
    """
    return _ValueReader(line=0, max_values=_MAX_VALUES).read(value)


class _ValueReader:
    """Turns Python values into nodes on the current line; those that are nodes already stay."""

    def __init__(self, *, line: int, max_values: int) -> None:
        self.line = line
        self._n_left = self._max_values = max_values

    def read(self, value: object, depth: int = 0) -> Node:
        if isinstance(value, str):
            return Scalar(str.__str__(value), self.line, plain=False)
        if isinstance(value, (Scalar, Mapping)):
            return value
        if value is None or isinstance(value, (bool, int, float)):
            return Scalar(_spell(value), self.line, plain=True)
        if depth >= MAX_LEVELS:
            raise TreeError(self.line, _TOO_DEEP)
        if isinstance(value, (list, tuple)):
            self._count(len(value))
            return Sequence(self.line, [self.read(item, depth + 1) for item in value])
        if isinstance(value, abc.Mapping):
            return self._read_mapping(value, depth)
        raise TreeError(self.line, f"a value of type {type(value).__name__!r} is no JSON value: convert it")

    def _read_mapping(self, value: abc.Mapping[object, object], depth: int) -> Mapping:
        self._count(len(value))
        mapping = Mapping(self.line)
        for key, item in value.items():
            if not isinstance(key, str):
                reason = f"a key of type {type(key).__name__!r} is no text: write it as one"
                raise TreeError(self.line, reason)
            mapping.entries[key] = self.read(item, depth + 1)
            mapping.lines[key] = self.line
        return mapping

    def _count(self, n: int) -> None:
        self._n_left -= n
        if self._n_left < 0:
            raise TreeError(self.line, f"more than {self._max_values:,} values: make it smaller")


def _spell(value: float | None) -> str:
    """Return a Python constant or number as the core schema spells it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        try:
            return int.__repr__(value)
        except ValueError:
            raise TreeError(0, "a number has more than 4,300 digits: make it a text") from None
    text = float.__repr__(value)
    return text if text[-1].isdigit() else text.replace("inf", ".inf").replace("nan", ".nan")


class _JsonReader:
    """Reads JSON texts of one file; numbers stay as they are written."""

    def __init__(self) -> None:
        self.faults = Faults()
        self._n_left = MAX_NODES
        self._decoder = JSONDecoder(
            object_pairs_hook=self._read_pairs,
            parse_int=self._read_number,
            parse_float=self._read_number,
            parse_constant=self._refuse_constant,
        )

    def start(self, text: str, *, first_line: int = 1) -> None:
        """Begin a text; what was read before still counts."""
        self._text = text
        self._first_line = first_line
        self._counted_to = 0
        self._values = _ValueReader(line=first_line, max_values=MAX_NODES)
        self._count(1)

    def read_whole(self) -> Node:
        """Read the text as one value on its first line."""
        return self._read(self._read_value)

    def read_split(self) -> Node:
        """Read the text entry by entry, and case by case, so that each has its own line."""
        readers = {"{": self._read_entries, "[": self._read_items}
        return self._read(readers.get(self._char(self._skip(0)), self._read_value))

    def _read(self, read_at: Callable[[int], tuple[Node, int]]) -> Node:
        try:
            root, end = read_at(self._skip(0))
            if self._char(end):
                raise JSONDecodeError("Extra data", self._text, end)
        except JSONDecodeError as error:
            line = self._first_line + error.lineno - 1
            reason = f"is no JSON: {error.msg[0].lower()}{error.msg[1:]} (column {error.colno})"
            raise TreeError(line, reason if self._char(self._skip(0)) else _EMPTY) from None
        except RecursionError:
            raise TreeError(self._values.line, _TOO_DEEP) from None
        _check_levels(root, MAX_LEVELS)
        return root

    def _read_entries(self, position: int) -> tuple[Node, int]:
        mapping = Mapping(self._go_to(position))
        position, ended = self._open(position, "}")
        while not ended:
            if self._char(position) != '"':
                raise JSONDecodeError(
                    "Expecting property name enclosed in double quotes", self._text, position
                )
            line = self._go_to(position)
            key, position = self._decoder.raw_decode(self._text, position)
            position = self._skip(position)
            if self._char(position) != ":":
                raise JSONDecodeError("Expecting ':' delimiter", self._text, position)
            position = self._skip(position + 1)
            is_list = key in _LISTS and self._char(position) == "["
            value, position = (self._read_items if is_list else self._read_value)(position)
            self._count(2)
            self._add_entry(mapping, key, value, line)
            position, ended = self._go_on(position, "}")
        return mapping, position

    def _read_items(self, position: int) -> tuple[Node, int]:
        sequence = Sequence(self._go_to(position))
        position, ended = self._open(position, "]")
        while not ended:
            value, position = self._read_value(position)
            self._count(1)
            sequence.items.append(value)
            position, ended = self._go_on(position, "]")
        return sequence, position

    def _read_value(self, position: int) -> tuple[Node, int]:
        self._go_to(position)
        value, end = self._decoder.raw_decode(self._text, position)
        return self._values.read(value), self._skip(end)

    def _open(self, position: int, closing: str) -> tuple[int, bool]:
        """Step into an object or list: where its first entry begins, or where it ends if it has none."""
        position = self._skip(position + 1)
        is_empty = self._char(position) == closing
        return (self._skip(position + 1) if is_empty else position), is_empty

    def _go_on(self, position: int, closing: str) -> tuple[int, bool]:
        """Step over what follows an entry: where the next one begins, or where the whole ends."""
        char = self._char(position)
        if char not in (",", closing):
            raise JSONDecodeError("Expecting ',' delimiter", self._text, position)
        return self._skip(position + 1), char == closing

    def _skip(self, position: int) -> int:
        match = _SKIP_SPACE(self._text, position)
        assert match is not None
        return match.end()

    def _char(self, position: int) -> str:
        return self._text[position : position + 1]

    def _go_to(self, position: int) -> int:
        """Move the current line to that of a later position, and return it."""
        self._values.line += self._text.count("\n", self._counted_to, position)
        self._counted_to = position
        return self._values.line

    def _read_number(self, text: str) -> Scalar:
        self._count(1)
        return Scalar(text, self._values.line, plain=True)

    def _count(self, n_nodes: int) -> None:
        """Count what takes most memory: numbers, and objects with their keys."""
        self._n_left -= n_nodes
        if self._n_left < 0:
            raise too_many_nodes(self._values.line)

    def _refuse_constant(self, name: str) -> None:
        raise TreeError(self._values.line, f"is no JSON: {name} is no JSON number, write it as a text")

    def _read_pairs(self, pairs: list[tuple[str, object]]) -> Mapping:
        line = self._values.line
        mapping = Mapping(line)
        self._count(1 + len(pairs))
        for key, value in pairs:
            self._add_entry(mapping, key, self._values.read(value), line)
        return mapping

    def _add_entry(self, mapping: Mapping, key: str, value: Node, line: int) -> None:
        if key in mapping.lines:
            self.faults.append(repeated_key(key, line, mapping.lines[key]))
        mapping.entries[key] = value
        mapping.lines[key] = line


def _check_levels(node: Node, n_left: int) -> None:
    if isinstance(node, Scalar):
        return
    if n_left == 0:
        raise TreeError(node.line, _TOO_DEEP)
    for child in node.items if isinstance(node, Sequence) else node.entries.values():
        _check_levels(child, n_left - 1)
