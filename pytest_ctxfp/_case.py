"""One case of a golden file: its tree, checked, as a ``GoldenCase``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_ctxfp._errors import GoldenError
from pytest_ctxfp._expectation import check_table, read_expectation, read_match, read_tolerance
from pytest_ctxfp._extract import VERDICT_FIELDS
from pytest_ctxfp._fields import (
    read_choice,
    read_flag,
    read_mapping,
    read_marks,
    read_optional_text,
    read_reason,
    read_seconds,
    read_share,
    read_text,
    read_texts,
    refuse_unknown,
)
from pytest_ctxfp._model import GoldenCase, ResultKind, Table
from pytest_ctxfp._tree import Fault, Faults, Mapping, Node, Scalar, TooManyFaults, TreeError, describe

if TYPE_CHECKING:
    from collections.abc import Callable
_FIELDS: dict[str, Callable[[str, Node, list[Fault]], object]] = {
    "id": read_text,
    "question": read_text,
    "tags": read_texts,
    "match": read_text,
    "tolerance": read_tolerance,
    "expected_sql": read_optional_text,
    "extra_columns": partial(read_choice, choices=("forbid", "allow")),
    "result_kind": partial(read_choice, choices=tuple(kind.value for kind in ResultKind)),
    "verdict_field": partial(read_choice, choices=VERDICT_FIELDS),
    "ignore_case": read_flag,
    "inputs": read_mapping,
    "metadata": read_mapping,
    "min_pass_rate": read_share,
    "min_score": read_share,
    "skip": read_reason,
    "xfail": read_reason,
    "marks": read_marks,
    "timeout": read_seconds,
}
_NO_FILE = "<case>"
CASE_KEYS = (*_FIELDS, "expected")


def read_case(node: Node, faults: list[Fault], *, path: str = "") -> GoldenCase | None:
    """Check one case.

    Args:
        node: the case as it stands in the file.
        faults: gets whatever is wrong with it.
        path: the golden file.

    Returns:
        The case, or None where it has a fault.
    """
    if not isinstance(node, Mapping):
        faults.append(
            Fault(node.line, f"a case is {describe(node)}: write a mapping, id: ..., question: ...")
        )
        return None
    n_faults = len(faults)
    values = _read_fields(node, faults)
    if "result_kind" in values or "result_kind" not in node.entries:
        _read_by_kind(node, values, faults)
    return GoldenCase(line=node.line, path=path, **values) if len(faults) == n_faults else None


def _read_fields(node: Mapping, faults: list[Fault]) -> dict[str, Any]:
    """Read all fields whose meaning rests on no other field; those not set are left out."""
    values: dict[str, Any] = {}
    refuse_unknown(node, CASE_KEYS, faults)
    for key, child in node.entries.items():
        read = _FIELDS.get(key)
        if read is not None and (value := read(key, child, faults)) is not None:
            values[key] = value
    missing = [key for key in ("id", "question") if key not in node.entries]
    faults.extend(Fault(node.line, f'a case without `{key}`: add {key}: "..."') for key in missing)
    return values


def _read_by_kind(node: Mapping, values: dict[str, Any], faults: list[Fault]) -> None:
    """Turn words into the record's values, and read what depends on the kind of result."""
    kind = values["result_kind"] = ResultKind(values.get("result_kind", "table"))
    values["extra_columns"] = values.get("extra_columns") == "allow"
    values["match"] = match = read_match(kind, values.get("match"), node, faults)
    verdict_field = values.get("verdict_field", VERDICT_FIELDS[0])
    values["expected"] = expected = read_expectation(node, kind, verdict_field, faults)
    if isinstance(expected, Table):
        check_table(node, expected, kind=kind, match=match, faults=faults)


def case_from_dict(data: object) -> GoldenCase:
    """Read one case as it stands in a golden file; see ``GoldenCase.from_dict``.

    Raises:
        GoldenError: the first fault, with the further ones in ``more``.
    """
    from pytest_ctxfp._json import node_from_value

    faults = Faults()
    case_id = None
    try:
        node = node_from_value(data)
        case_id = case_id_of(node)
        case = read_case(node, faults)
    except TreeError as error:
        raise GoldenError(_NO_FILE, None, case_id, error.reason) from None
    except TooManyFaults as error:
        case, faults = None, Faults(error.faults)
    if case is None:
        first, *more = [GoldenError(_NO_FILE, None, case_id, fault.reason) for fault in faults]
        raise GoldenError(_NO_FILE, None, case_id, first.reason, more)
    return case


def case_id_of(node: Node) -> str | None:
    """Return the id of a case that may have faults, or None where it has none."""
    child = node.entries.get("id") if isinstance(node, Mapping) else None
    return child.text or None if isinstance(child, Scalar) else None
