"""Facts that an agent is told, and the files that hold them."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ctxfp._errors import GoldenError
from pytest_ctxfp._fields import read_number, refuse_unknown
from pytest_ctxfp._tree import (
    Fault,
    Faults,
    Mapping,
    Scalar,
    Sequence,
    TooManyFaults,
    TreeError,
    core_type,
    describe,
    is_null,
)
from pytest_ctxfp._tree_file import parse_text, read_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ctxfp._tree import Node, Parsed

_KEYS = ("category", "key", "value", "salience")
_ONE = "{category: ..., key: ..., value: ...}"


@dataclass(frozen=True, slots=True)
class KnowledgeFact:
    """One fact.

    Args:
        category: what it is about; facts of one category are rendered under one header.
        key: its name.
        value: what holds.
        salience: how much it matters, any finite number, the greater the more; None where nobody said.

    Raises:
        ValueError: a category, key or value that is no text, a salience that is no finite number.
    """

    category: str
    key: str
    value: str
    salience: float | None = None

    def __post_init__(self) -> None:
        for name in ("category", "key", "value"):
            text: object = getattr(self, name)
            if not isinstance(text, str):
                message = f"the {name} of a fact must be a text, got {type(text).__name__!r}: convert it"
                raise ValueError(message)
        if not _is_salience(self.salience):
            message = "the salience of a fact must be a finite number or None"
            raise ValueError(message)


def _is_salience(value: object) -> bool:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return True
    return isinstance(value, float) and math.isfinite(value)


def load_facts(path: str | os.PathLike[str]) -> list[KnowledgeFact]:
    """Read facts, in the order of the file.

    YAML (core schema of YAML 1.2) and JSON hold a list of facts, at the top or under ``facts``; JSON Lines
    holds a fact a line. A key or value that isn't quoted is taken as written: ``value: 0123`` is "0123".

    Args:
        path: a ``.yaml``, ``.yml``, ``.json`` or ``.jsonl`` file; errors name it as given here.

    Raises:
        GoldenError: the first fault by line; the file's other faults are in ``more``.

    Example of a file::

        - {category: policies, key: return window, value: 30 days with the receipt}
        - {category: terms, key: gold members, value: "customers.tier = 'gold'", salience: 0.9}
    """
    path = os.fsdecode(path)
    try:
        nodes, faults = _read_nodes(path)
        facts = [fact for node in nodes if (fact := _read_fact(node, faults)) is not None]
    except TreeError as error:
        raise GoldenError(path, error.line, None, error.reason) from None
    except TooManyFaults as error:
        raise _join_faults(path, error.faults) from None
    if faults:
        raise _join_faults(path, faults)
    return facts


def _read_nodes(path: str) -> tuple[list[Node], Faults]:
    text = read_file(path)
    is_lines = path.lower().endswith(".jsonl")
    if not is_lines and not any(map(_has_content, text.split("\n"))):
        raise TreeError(None, "the file is empty: write a list of facts, or `[]` for none")
    parsed = parse_text(path, text)
    return list(parsed.roots) if is_lines else _list_items(parsed), Faults(parsed.faults)


def _has_content(line: str) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith("#")


def _list_items(parsed: Parsed) -> list[Node]:
    root = parsed.roots[0]
    if isinstance(root, Mapping) and "facts" in root.entries:
        faults: list[Fault] = []
        refuse_unknown(root, ("facts", "$schema"), faults, place=" at the top level")
        if faults:
            raise TreeError(faults[0].line, faults[0].reason)
        root = root.entries["facts"]
    if isinstance(root, Sequence):
        return root.items
    raise TreeError(root.line, f"the facts are {describe(root)}: write a list, each {_ONE}")


def _read_fact(node: Node, faults: list[Fault]) -> KnowledgeFact | None:
    if not isinstance(node, Mapping):
        faults.append(Fault(node.line, f"a fact is {describe(node)}: write {_ONE}"))
        return None
    n_before = len(faults)
    refuse_unknown(node, _KEYS, faults, place=" in a fact")
    fact = KnowledgeFact(
        category=_read_text("category", node, faults),
        key=_read_text("key", node, faults),
        value=_read_text("value", node, faults),
        salience=_read_salience(node, faults),
    )
    return fact if len(faults) == n_before else None


def _read_text(name: str, fact: Mapping, faults: list[Fault]) -> str:
    node = fact.entries.get(name)
    if node is None:
        faults.append(Fault(fact.line, f"a fact has no `{name}`: write {_ONE}"))
    elif not isinstance(node, Scalar) or is_null(node):
        faults.append(Fault(node.line, f'the `{name}` of a fact is {describe(node)}: write a text, "..."'))
    elif name == "category" and node.plain and core_type(node.text) != "str":
        # One category spelled 7 and 7.0 would be two: nobody means that.
        faults.append(Fault(node.line, f"the `category` of a fact is {describe(node)}: quote it"))
    elif name == "key" and not node.text.strip():
        faults.append(Fault(node.line, "the `key` of a fact is empty: name the fact"))
    else:
        return node.text
    return ""


def _read_salience(fact: Mapping, faults: list[Fault]) -> float | None:
    node = fact.entries.get("salience")
    if node is None or is_null(node):
        return None
    return read_number("salience", node, faults, wanted="a finite number", fits=lambda _: True)


def _join_faults(path: str, faults: Iterable[Fault]) -> GoldenError:
    faults = sorted(faults, key=lambda fault: fault.line or 0)
    first, *more = [GoldenError(path, fault.line, None, fault.reason) for fault in faults]
    return GoldenError(path, first.line, None, first.reason, more)
