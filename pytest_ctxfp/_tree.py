"""Values as a file spells them, with their lines: what YAML and JSON become before anything is judged.

A scalar keeps its text until somebody asks for a value, so ``id: 12e4567`` and ``context_version: 1.0``
stay what was written where a text is wanted, and are numbers where a number is.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from pytest_ctxfp._errors import CtxfpError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_ctxfp._model import JSONValue

MAX_LEVELS = 100
MAX_NODES = 500_000
"""Values that one file may hold: about 50,000 cases; reading more takes long."""

MAX_FAULTS = 1_000
"""Faults of a file that are told at once: nobody reads more, and a wrong file has one in each line."""

MAX_DIGITS = 4300
"""CPython's default limit for turning an int into text: a longer one can't be printed or stored."""

_MAX_BITS = 14_284  # 2**14284 is the last power of two below 10**4300
_SHOWN = 60


# The nodes aren't frozen: a builder fills collections, and a frozen scalar costs three times as much.
@dataclass(slots=True)
class Scalar:
    """A leaf. ``plain`` is False where it is a text whatever it looks like (quoted, or tagged so)."""

    text: str
    line: int
    plain: bool


@dataclass(slots=True)
class Sequence:
    """A list of nodes."""

    line: int
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Mapping:
    """Nodes by key; ``lines`` are those of the keys. A key is the text as written."""

    line: int
    entries: dict[str, Node] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)


Node: TypeAlias = "Scalar | Sequence | Mapping"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong that doesn't stop the reading: what, and how to mend it."""

    line: int | None
    reason: str
    case: str | None = None


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text as trees: one a YAML document, one for JSON, one a line for JSON Lines.

    ``starts`` are the lines where a tree begins, also one that can't be read.
    """

    roots: tuple[Node, ...]
    faults: tuple[Fault, ...] = ()
    starts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySpan:
    """Where an entry stands in a text, in characters; ``style`` is the value's quote, if it has one."""

    key_start: int
    value_start: int
    value_end: int
    style: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopLevel:
    """Where the entries of a document's top-level mapping stand; ``is_flow`` where it is in braces."""

    start: int
    is_flow: bool
    entries: dict[str, EntrySpan]


class TreeError(CtxfpError):
    """A text that can't be read to its end.

    Args:
        line: 1-based, or None where the whole text is meant.
        reason: what is wrong and how to mend it.
    """

    def __init__(self, line: int | None, reason: str) -> None:
        super().__init__(line, reason)
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class TooManyFaults(CtxfpError):
    """The reading was given up.

    Args:
        faults: those that were found, and last that there may be more.
    """

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__(faults)
        self.faults = faults


class Faults(list[Fault]):
    """Faults in the order in which they are found; one too many ends the reading.

    Raises:
        TooManyFaults: by `append` and `extend`.
    """

    def append(self, fault: Fault) -> None:
        """Add a fault."""
        super().append(fault)
        if len(self) >= MAX_FAULTS:
            line = max(known.line or 0 for known in self)
            note = f"{MAX_FAULTS:,} faults are listed, and the rest was not checked: mend these first"
            raise TooManyFaults((*self, Fault(line or None, note)))

    def extend(self, faults: Iterable[Fault]) -> None:
        """Add faults."""
        for fault in faults:
            self.append(fault)


def too_many_nodes(line: int) -> TreeError:
    """Return the error of a file that holds too many values."""
    return TreeError(line, f"more than {MAX_NODES:,} values: split the file")


# YAML 1.2.2, section 10.3.2 "Tag Resolution"; but a decimal with a leading zero is none of these.
_CORE = re.compile(
    r"""(?P<null> null | Null | NULL | ~ | )
      | (?P<true> true | True | TRUE )
      | (?P<false> false | False | FALSE )
      | (?P<int> [-+]? (?: 0 | [1-9][0-9]* ) )
      | (?P<octal> 0o [0-7]+ )
      | (?P<hex> 0x [0-9a-fA-F]+ )
      | (?P<float> [-+]? (?: \.[0-9]+ | (?: 0 | [1-9][0-9]* ) (?: \.[0-9]* )? ) (?: [eE] [-+]? [0-9]+ )? )
      | (?P<inf> [-+]? \. (?: inf | Inf | INF ) )
      | (?P<nan> \. (?: nan | NaN | NAN ) )""",
    re.VERBOSE,
).fullmatch
_MAY_BE_CORE = frozenset("0123456789-+.~nNtTfF")


def core_type(text: str) -> str:
    """Return the core-schema type of a plain scalar: null, bool, int, float or str."""
    if text and text[0] not in _MAY_BE_CORE:
        return "str"
    match = _CORE(text)
    group = "str" if match is None else match.lastgroup or "null"
    return _TYPES.get(group, group)


_TYPES = {"true": "bool", "false": "bool", "octal": "int", "hex": "int", "inf": "float", "nan": "float"}


def resolve_plain(text: str) -> JSONValue:
    """Return the value of a plain scalar under the YAML 1.2 core schema.

    Infinities and NaN are returned as such: whoever wants a number or JSON refuses them.

    Raises:
        ValueError: an integer of more than 4,300 digits, or a number that no double is near to.
    """
    if text and text[0] not in _MAY_BE_CORE:
        return text
    match = _CORE(text)
    if match is None:
        return text
    kind = match.lastgroup
    assert kind is not None
    return _READERS[kind](text)


def _read_int(text: str) -> int:
    if len(text.lstrip("+-")) > MAX_DIGITS:
        raise ValueError(_too_long(text))
    try:
        return int(text)
    except ValueError:  # the interpreter runs with a lower limit of its own
        raise ValueError(_too_long(text)) from None


def _read_based_int(text: str) -> int:
    value = int(text, 0)
    if value.bit_length() > _MAX_BITS:
        raise ValueError(_too_long(text))
    return value


def _too_long(text: str) -> str:
    return f"the number {shown(text)} has more than 4,300 digits: quote it to have it as a text"


def _read_float(text: str) -> float:
    value = float(text)
    mantissa = re.split("[eE]", text, maxsplit=1)[0]
    if math.isinf(value) or (value == 0 and mantissa.strip("+-0.")):
        message = f"the number {shown(text)} is beyond a double: quote it to have it as a text"
        raise ValueError(message)
    return value


_READERS: dict[str, Callable[[str], JSONValue]] = {
    "null": lambda _: None,
    "true": lambda _: True,
    "false": lambda _: False,
    "int": _read_int,
    "octal": _read_based_int,
    "hex": _read_based_int,
    "float": _read_float,
    "inf": lambda text: float(text.replace(".", "")),
    "nan": lambda _: math.nan,
}


def construct(node: Node, faults: list[Fault]) -> JSONValue:
    """Return a node as a JSON value; what JSON can't hold becomes None and a fault."""
    if isinstance(node, Scalar):
        return _construct_scalar(node, faults)
    if isinstance(node, Sequence):
        return [construct(item, faults) for item in node.items]
    return {key: construct(value, faults) for key, value in node.entries.items()}


def _construct_scalar(node: Scalar, faults: list[Fault]) -> JSONValue:
    if not node.plain:
        return node.text
    try:
        value = resolve_plain(node.text)
    except ValueError as error:
        faults.append(Fault(node.line, str(error)))
        return None
    if isinstance(value, float) and not math.isfinite(value):
        spelled = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
        faults.append(Fault(node.line, f'{node.text} is no JSON number: write the text "{spelled}"'))
        return None
    return value


def is_null(node: Node) -> bool:
    """Tell whether a node is a null."""
    return isinstance(node, Scalar) and node.plain and core_type(node.text) == "null"


def repeated_key(key: str, line: int, first_line: int) -> Fault:
    """Return the fault of a key that stands twice in one mapping."""
    return Fault(line, f"duplicate key {shown(key)}, first on line {first_line}: keep one of them")


def shown(text: str) -> str:
    """Return a text as a message shows it: quoted, escaped and never long."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."


def describe(node: Node) -> str:
    """Return what a node is, for a message: ``a list``, ``the text 'no'``, ``the int 3``, ``empty``."""
    if isinstance(node, Sequence):
        return "a list"
    if isinstance(node, Mapping):
        return "a mapping"
    kind = core_type(node.text) if node.plain else "str"
    if kind == "null":
        return "empty"
    return f"the text {shown(node.text)}" if kind == "str" else f"the {kind} {node.text[:_SHOWN]}"
