"""YAML 1.2 text to trees, on the events of PyYAML's C parser (its Python parser where that is absent).

PyYAML reads YAML 1.1. Types are resolved elsewhere (the core schema), so only two things of 1.1 are left
to keep out: the line breaks NEL, LS and PS, which 1.2 took back, and ``<<``, which is an ordinary key here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.scanner import Scanner

from pytest_ctxfp._tree import (
    MAX_LEVELS,
    MAX_NODES,
    EntrySpan,
    Fault,
    Faults,
    Mapping,
    Node,
    Parsed,
    Scalar,
    Sequence,
    TopLevel,
    TreeError,
    core_type,
    repeated_key,
    shown,
    too_many_nodes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_EXPANDED = 100_000
"""Nodes that all aliases of a file together may stand for."""

_CORE_TYPES = ("str", "null", "bool", "int", "float")
_CORE_TAGS = "tag:yaml.org,2002:"
_SCALAR_TAGS = {"!": "str", **{f"{_CORE_TAGS}{name}": name for name in _CORE_TYPES}}
_FITTING = {("float", "int"), *((name, name) for name in _CORE_TYPES)}  # wanted type, type as written
_MAX_DOCUMENTS = 100
_MAX_TAG_DIRECTIVES = 100  # each is compared with all before it, which is quadratic in the parser
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]").search
_OLD_BREAKS = "\x85\u2028\u2029"


class _PythonParser(Reader, Scanner, Parser):
    """PyYAML's parser in Python, which must refuse what the one in C refuses."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)

    def get_event(self) -> Any:
        event = super().get_event()  # type: ignore[no-untyped-call] # so are the stubs
        if isinstance(event, ScalarEvent) and re.search("[\ud800-\udfff]", event.value):
            message = "found invalid Unicode character escape code"
            raise yaml.MarkedYAMLError(None, None, message, event.start_mark)  # type: ignore[arg-type] # see _Builder
        return event


def parse_yaml(text: str) -> Parsed:
    """Read a YAML stream.

    Args:
        text: the whole text, without a byte order mark.

    Returns:
        A tree for each document. Duplicate keys, tags beyond the core schema, keys that are no scalars and
        documents after the first are faults, so that all of them are reported at once.

    Raises:
        TreeError: text that is empty or no YAML, an alias without or within its anchor, more than
            100 levels, or aliases that stand for more than 100,000 nodes.
    """
    if text.count("\n%TAG") > _MAX_TAG_DIRECTIVES:
        raise TreeError(None, "more than 100 %TAG directives: remove them, tags have no use here")
    hidden = _hide_old_breaks(text)
    builder = _Builder(restore={ord(mark): char for char, mark in hidden.items()})
    for char, stand_in in hidden.items():
        text = text.replace(char, stand_in)
    try:
        _run(builder, text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise TreeError(mark.line + 1 if mark else None, _syntax_reason(error)) from None
    except ReaderError:
        raise _unprintable_error(text) from None
    except (ValueError, OverflowError):  # chr() and int() of the Python parser, on absurd escapes
        raise TreeError(None, "is no YAML: an escape or directive holds a number that is too large") from None
    if not builder.roots:
        raise TreeError(None, "the file is empty: write `cases:` and a list, or delete it")
    return Parsed(tuple(builder.roots), tuple(builder.faults), tuple(builder.starts))


def find_top_level(text: str) -> TopLevel | None:
    """Return where the entries of the top level stand, so that one can be edited in the text.

    Args:
        text: one that `parse_yaml` reads without a fault.

    Returns:
        None where the top level is no mapping.
    """
    for char, stand_in in _hide_old_breaks(text).items():
        text = text.replace(char, stand_in)
    parser = _make_parser(text)
    first: Any = None
    while not isinstance(first, (MappingStartEvent, SequenceStartEvent, ScalarEvent)):
        first = parser.get_event()
    if not isinstance(first, MappingStartEvent):
        return None
    entries = {}
    while not isinstance(key := parser.get_event(), MappingEndEvent):
        value = last = parser.get_event()
        depth = int(isinstance(value, _STARTS))
        while depth:
            last = parser.get_event()
            depth += isinstance(last, _STARTS) - isinstance(last, _ENDS)
        entries[key.value] = EntrySpan(
            key_start=key.start_mark.index,
            value_start=value.start_mark.index,
            value_end=last.end_mark.index,
            style=getattr(value, "style", None),
        )
    start: Any = first.start_mark
    return TopLevel(start=start.index, is_flow=bool(first.flow_style), entries=entries)


_STARTS = (MappingStartEvent, SequenceStartEvent)
_ENDS = (MappingEndEvent, SequenceEndEvent)


def _run(builder: _Builder, text: str) -> None:
    parser = _make_parser(text)
    get_event = parser.get_event
    handlers = builder.handlers
    while (event := get_event()) is not None:
        handle = handlers.get(type(event))
        if handle is not None:
            handle(event)


def _make_parser(text: str) -> Any:
    if not yaml.__with_libyaml__:
        return _PythonParser(text)
    from yaml._yaml import CParser

    return CParser(text)


def _hide_old_breaks(text: str) -> dict[str, str]:
    """Map each 1.1 line break in the text to a private character that the text doesn't use."""
    free = (mark for mark in map(chr, range(0xE000, 0xF900)) if mark not in text)
    return {char: next(free, char) for char in _OLD_BREAKS if char in text}


def _syntax_reason(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "unreadable"
    return f"is no YAML: {problem}" if error.context is None else f"is no YAML: {problem} ({error.context})"


def _unprintable_error(text: str) -> TreeError:
    match = _UNPRINTABLE(text)
    if match is None:
        return TreeError(None, "is no YAML: it holds a character that YAML forbids")
    line = text.count("\n", 0, match.start()) + 1
    code = ord(match.group())
    return TreeError(line, f'is no YAML: it holds the character U+{code:04X}: write "\\u{code:04x}" instead')


_REFUSED_KEY = "a key that is no scalar"  # told apart from a text by identity


@dataclass(slots=True)
class _Anchored:
    """What an anchor names: a node, how many nodes it stands for, and how many levels it has."""

    node: Node
    size: int
    height: int


@dataclass(slots=True)
class _Frame:
    """The surroundings of an open collection, to go back to when it ends."""

    parent: Node | None
    key: str | None
    anchor: str | None
    n_before: int
    deepest: int


class _Builder:
    """Builds trees from parser events, bounded in depth and in what aliases expand to.

    Events are ``Any``: the two parsers have marks of different classes, of which the stubs know one.
    """

    def __init__(self, *, restore: dict[int, str]) -> None:
        self.roots: list[Node] = []
        self.faults = Faults()
        self.starts: list[int] = []
        self.handlers: dict[type[yaml.Event], Callable[..., None]] = {
            ScalarEvent: self._add_scalar,
            MappingStartEvent: self._start_mapping,
            SequenceStartEvent: self._start_sequence,
            MappingEndEvent: self._end_collection,
            SequenceEndEvent: self._end_collection,
            AliasEvent: self._add_alias,
            DocumentStartEvent: self._start_document,
            DocumentEndEvent: self._end_document,
        }
        self._restore = restore
        self._open: Node | None = None
        self._key: str | None = None
        self._stack: list[_Frame] = []
        self._anchors: dict[str, _Anchored | None] = {}  # None while the anchor's collection is open
        self._n_nodes = 0
        self._n_expanded = 0
        self._deepest = 0

    def _start_document(self, event: Any) -> None:
        line = event.start_mark.line + 1
        self.starts.append(line)
        if len(self.starts) == 2:
            reason = "a second document begins here: a file holds one, write the rest to a file of its own"
            self.faults.append(Fault(line, reason))
        elif len(self.starts) > _MAX_DOCUMENTS:
            raise TreeError(line, f"more than {_MAX_DOCUMENTS} documents: a file holds one")

    def _end_document(self, _event: object) -> None:
        self._anchors.clear()

    def _add_scalar(self, event: Any) -> None:
        text = event.value
        if self._restore:
            text = text.translate(self._restore)
        node = Scalar(text, event.start_mark.line + 1, not event.style)
        if event.tag is not None:
            self._apply_tag(node, event.tag)
        self._n_nodes += 1
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(node, 1, 0)
        self._place(node)

    def _apply_tag(self, node: Scalar, tag: str) -> None:
        """Make an explicitly tagged scalar one that resolves to its tag's type, if its text can."""
        wanted = _SCALAR_TAGS.get(tag)
        node.plain = wanted != "str"
        if wanted is None:
            self._refuse_tag(node, tag)
        elif node.plain and (wanted, core_type(node.text)) not in _FITTING:
            reason = f"{shown(node.text)} is no {wanted}: correct it, or remove the tag !!{wanted}"
            self.faults.append(Fault(node.line, reason))

    def _refuse_tag(self, node: Node, tag: str) -> None:
        reason = f"unknown tag {shown(tag)}: remove it, only YAML's core schema is read here"
        self.faults.append(Fault(node.line, reason))

    def _start_mapping(self, event: Any) -> None:
        node = Mapping(event.start_mark.line + 1)
        if event.tag not in (None, "!", f"{_CORE_TAGS}map"):
            self._refuse_tag(node, event.tag)
        self._start_collection(node, event.anchor)

    def _start_sequence(self, event: Any) -> None:
        node = Sequence(event.start_mark.line + 1)
        if event.tag not in (None, "!", f"{_CORE_TAGS}seq"):
            self._refuse_tag(node, event.tag)
        self._start_collection(node, event.anchor)

    def _start_collection(self, node: Node, anchor: str | None) -> None:
        self._place(node)
        self._stack.append(_Frame(self._open, self._key, anchor, self._n_nodes, self._deepest))
        self._n_nodes += 1
        self._open = node
        self._key = None
        depth = len(self._stack)
        if anchor is not None:
            self._anchors[anchor] = None
            self._deepest = depth
        self._reach(depth, node.line)

    def _end_collection(self, _event: object) -> None:
        frame = self._stack.pop()
        if frame.anchor is not None and self._open is not None:
            height = self._deepest - len(self._stack)
            self._anchors[frame.anchor] = _Anchored(self._open, self._n_nodes - frame.n_before, height)
            self._deepest = max(self._deepest, frame.deepest)
        self._open = frame.parent
        self._key = frame.key

    def _add_alias(self, event: Any) -> None:
        line = event.start_mark.line + 1
        name = event.anchor
        if name not in self._anchors:
            raise TreeError(line, f"the alias *{name} has no anchor before it: define &{name} first")
        anchored = self._anchors[name]
        if anchored is None:
            raise TreeError(line, f"the alias *{name} stands within its own anchor: remove it")
        self._n_nodes += anchored.size
        self._n_expanded += anchored.size
        if self._n_expanded > MAX_EXPANDED:
            raise TreeError(line, "aliases stand for more than 100,000 nodes: write out fewer of them")
        self._reach(len(self._stack) + anchored.height, line)
        self._place(anchored.node)

    def _reach(self, depth: int, line: int) -> None:
        if depth > self._deepest:
            self._deepest = depth
            if depth > MAX_LEVELS:
                raise TreeError(line, "more than 100 levels: flatten this value, or hold it as a text")

    def _place(self, node: Node) -> None:
        """Put a node where the parser stands: as a root, a list's item, a key or a key's value."""
        if self._n_nodes > MAX_NODES:
            raise too_many_nodes(node.line)
        parent = self._open
        if parent is None:
            self.roots.append(node)
        elif isinstance(parent, Sequence):
            parent.items.append(node)
        elif self._key is None:
            assert isinstance(parent, Mapping)
            self._key = self._take_key(parent, node)
        else:
            assert isinstance(parent, Mapping)
            if self._key is not _REFUSED_KEY:
                parent.entries[self._key] = node
            self._key = None

    def _take_key(self, parent: Mapping, node: Node) -> str:
        if not isinstance(node, Scalar):
            self.faults.append(Fault(node.line, "a key is a list or a mapping: quote it to have a text"))
            return _REFUSED_KEY
        key = node.text
        if key in parent.lines:
            self.faults.append(repeated_key(key, node.line, parent.lines[key]))
        parent.lines[key] = node.line
        return key
