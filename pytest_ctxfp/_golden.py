"""Golden files: YAML, JSON or JSON Lines in, a validated ``GoldenSet`` out, or all faults at once."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pytest_ctxfp._case import case_from_dict, case_id_of, read_case
from pytest_ctxfp._display import item_name
from pytest_ctxfp._errors import GoldenError
from pytest_ctxfp._fields import read_mapping, read_optional_text, refuse_unknown
from pytest_ctxfp._model import GoldenCase, GoldenSet
from pytest_ctxfp._tree import (
    Fault,
    Faults,
    Mapping,
    Node,
    Parsed,
    Sequence,
    TooManyFaults,
    TreeError,
    describe,
    shown,
)
from pytest_ctxfp._tree_file import parse_text, read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Mapping as _ABCMapping

    from pytest_ctxfp._golden_copies import GoldenCopies
    from pytest_ctxfp._model import JSONValue

__all__ = ["case_from_dict", "load_golden", "load_if_golden"]

# `$schema` is how editors find the schema of a JSON file; YAML has a comment for that.
TOP_KEYS = ("dataset", "context_version", "metadata", "cases", "$schema")


_T = TypeVar("_T")


def load_golden(path: str | os.PathLike[str]) -> GoldenSet:
    """Read a golden file.

    Args:
        path: a ``.yaml``, ``.yml``, ``.json`` or ``.jsonl`` file; errors name it as given here.

    Raises:
        GoldenError: the first fault by line; the file's other faults are in ``more``.
    """
    golden = _load(os.fsdecode(path), must_be_golden=True)
    assert golden is not None
    return golden


def golden_set(path: str, cases: Iterable[GoldenCase | _ABCMapping[str, JSONValue]]) -> GoldenSet:
    """Return the cases that a hook read from a file, checked as those of a golden file are.

    Args:
        path: the file.
        cases: each as it would stand in a golden file, or as a `GoldenCase`.

    Raises:
        GoldenError: the first fault; the others are in ``more``.
    """
    errors: list[GoldenError] = []
    names: dict[str, tuple[str, int]] = {}
    checked = []
    for data in cases:
        try:
            case = data if isinstance(data, GoldenCase) else case_from_dict(data)
        except GoldenError as error:
            errors += [GoldenError(path, one.line, one.case, one.reason) for one in (error, *error.more)]
            continue
        faults: list[Fault] = []
        _check_name(case.id, case.line, names=names, faults=faults)
        errors += [GoldenError(path, case.line or None, case.id, fault.reason) for fault in faults]
        checked.append(replace(case, path=path))
    if errors:
        first, *more = errors
        raise GoldenError(path, first.line, first.case, first.reason, more)
    return GoldenSet(path=path, cases=tuple(checked))


def load_if_golden(path: str | os.PathLike[str]) -> GoldenSet | None:
    """Read a file that may be a golden file, parsing it once.

    Returns:
        None where the file is someone else's: it can be read, but has no top-level ``cases`` (JSON Lines:
        its first line is no object with ``question`` and an expectation).

    Raises:
        GoldenError: as from ``load_golden``; also for a file that can't be parsed, as it may be ours.
    """
    return _load(os.fsdecode(path), must_be_golden=False)


def load_with_copies(path: str, copies: GoldenCopies | None, *, must_be_golden: bool) -> GoldenSet | None:
    """Read a file as `load_golden` does, or as `load_if_golden`, from its copy where that has the same text.

    Raises:
        GoldenError: as from these.
    """
    return _load(path, must_be_golden=must_be_golden, copies=copies)


def _load(path: str, *, must_be_golden: bool, copies: GoldenCopies | None = None) -> GoldenSet | None:
    try:
        text = read_file(path)
        golden = None if copies is None else copies.find(path, text)
        if golden is None:
            golden = _load_text(path, text, must_be_golden=must_be_golden)
            if golden is not None and copies is not None:
                copies.keep(golden, text)
    except TreeError as error:
        raise GoldenError(path, error.line, None, error.reason) from None
    except TooManyFaults as error:
        raise _join_errors(path, error.faults) from None
    return golden


def _load_text(path: str, text: str, *, must_be_golden: bool) -> GoldenSet | None:
    parsed = parse_text(path, text)
    root, is_golden = _find_root(path, parsed)
    if not (is_golden or must_be_golden):
        return None
    if not (parsed.roots or parsed.faults):
        raise GoldenError(path, None, None, "the file is empty: write a case a line, or delete it")
    faults = _name_cases(parsed, root)
    golden = _read_set(path, root, faults)
    if golden is None:
        raise _join_errors(path, faults)
    return golden


def _find_root(path: str, parsed: Parsed) -> tuple[Node, bool]:
    """Return the tree that holds the cases, and whether the file is a golden file at all."""
    if path.lower().endswith(".jsonl"):
        return _join_lines(parsed), _is_golden_line(parsed)
    for root in parsed.roots:
        if isinstance(root, Mapping) and "cases" in root.entries:
            return root, True
    return parsed.roots[0], False


def _join_lines(parsed: Parsed) -> Mapping:
    return Mapping(1, {"cases": Sequence(1, list(parsed.roots))}, {"cases": 1})


def _is_golden_line(parsed: Parsed) -> bool:
    """Tell whether the first line of JSON Lines is a case, or is unreadable and so may be one."""
    if not parsed.starts:
        return False
    first = parsed.roots[0] if parsed.roots else None
    if first is None or first.line > parsed.starts[0]:
        return True
    if not isinstance(first, Mapping) or "question" not in first.entries:
        return False
    return not first.entries.keys().isdisjoint(("expected", "expected_sql"))


def _read_set(path: str, root: Node, faults: list[Fault]) -> GoldenSet | None:
    """Check a whole file; None where it has a fault."""
    if not isinstance(root, Mapping) or "cases" not in root.entries:
        faults.append(
            Fault(root.line, f"no `cases` at the top level, which is {_describe_top(root)}: {_CASES}")
        )
        return None
    refuse_unknown(root, TOP_KEYS, faults, place=" at the top level")
    dataset = _read_top("dataset", root, faults, read_optional_text)
    context_version = _read_top("context_version", root, faults, read_optional_text)
    metadata = _read_top("metadata", root, faults, read_mapping) or {}
    cases = _read_cases(root.entries["cases"], path, faults)
    if faults:
        return None
    return GoldenSet(
        path=path, cases=cases, dataset=dataset, context_version=context_version, metadata=metadata
    )


def _read_top(
    key: str, root: Mapping, faults: list[Fault], read: Callable[[str, Node, list[Fault]], _T | None]
) -> _T | None:
    return read(key, root.entries[key], faults) if key in root.entries else None


_CASES = "write `cases:` and a list, each with id, question and expected"


def _describe_top(root: Node) -> str:
    if not isinstance(root, Mapping):
        return describe(root)
    keys = ", ".join(shown(key) for key in list(root.entries)[:5])
    return f"a mapping of {keys}" if keys else "an empty mapping"


def _read_cases(node: Node, path: str, faults: list[Fault]) -> tuple[GoldenCase, ...]:
    if not isinstance(node, Sequence):
        faults.append(Fault(node.line, f"`cases` is {describe(node)}: {_CASES}"))
        return ()
    cases = []
    names: dict[str, tuple[str, int]] = {}
    for item in node.items:
        own_faults = Faults()
        case = read_case(item, own_faults, path=path)
        case_id = case_id_of(item)
        if case_id is not None:
            _check_name(case_id, item.line, names=names, faults=own_faults)
        if case is not None:
            cases.append(case)
        faults.extend(Fault(fault.line, fault.reason, case_id) for fault in own_faults)
    return tuple(cases)


def _check_name(case_id: str, line: int, *, names: dict[str, tuple[str, int]], faults: list[Fault]) -> None:
    """Refuse a second case of the same id, or of an id that gives the same test item name."""
    name = item_name(case_id)
    own = (case_id, line)
    first = names.setdefault(name, own)
    if first is own:
        return
    first_id, first_line = first
    if first_id == case_id:
        first_place = f", first on line {first_line}" if first_line else ""
        reason = f"duplicate id{first_place}: give each case its own"
    else:
        reason = (
            f"its item name {shown(name)} is that of {shown(first_id)} too, on line {first_line}: rename one"
        )
    faults.append(Fault(line, reason))


def _name_cases(parsed: Parsed, root: Node) -> Faults:
    """Give the faults of the parser, which knows no cases, the id of the case on whose lines they stand."""
    starts = _list_starts(parsed, root) if parsed.faults else []
    return Faults(replace(fault, case=_find_owner(fault.line or 0, starts)) for fault in parsed.faults)


def _list_starts(parsed: Parsed, root: Node) -> list[tuple[int, str | None]]:
    """List where each case begins, and (None) each tree and each entry of the top level, in order."""
    if not isinstance(root, Mapping):
        return []
    starts: list[tuple[int, str | None]] = [(line, None) for line in (*parsed.starts, *root.lines.values())]
    cases = root.entries.get("cases")
    if isinstance(cases, Sequence):
        starts += [(item.line, case_id_of(item)) for item in cases.items]
    return sorted(starts, key=_first)


def _find_owner(line: int, starts: list[tuple[int, str | None]]) -> str | None:
    """Return the id of the only case that begins last before a line's end: with two, it may be either."""
    end = bisect_right(starts, line, key=_first)
    begin = bisect_left(starts, starts[end - 1][0], key=_first) if end else 0
    owners = [case_id for _, case_id in starts[begin:end] if case_id is not None]
    return owners[0] if len(owners) == 1 else None


def _first(start: tuple[int, str | None]) -> int:
    return start[0]


def _join_errors(path: str, faults: Iterable[Fault]) -> GoldenError:
    """Return one error for all faults, in the order of their lines."""
    faults = sorted(faults, key=lambda fault: fault.line or 0)
    first, *more = [GoldenError(path, fault.line, fault.case, fault.reason) for fault in faults]
    return GoldenError(path, first.line, first.case, first.reason, more)
