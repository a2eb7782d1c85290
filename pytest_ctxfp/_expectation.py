"""What a case expects: its table, verdict, text or JSON value, and the match mode and tolerance with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ctxfp._fields import join_words, read_not_negative, read_text, refuse_unknown, suggest
from pytest_ctxfp._model import JSONValue, ResultKind, Table
from pytest_ctxfp._tree import Fault, Mapping, Node, Scalar, Sequence, construct, describe, is_null, shown

if TYPE_CHECKING:
    from pytest_ctxfp._model import Expectation

TABLE_MATCHES = ("scalar", "set", "ordered")
TEXT_MATCHES = ("exact", "contains", "not_contains", "regex", "number")
TABLE_KEYS = ("columns", "rows")
TOLERANCE_KEYS = ("numeric", "relative", "columns")

_TABLE_EXAMPLE = "{columns: [n], rows: [[99]]}"
_MAX_NAME = 60
_TABULAR = (ResultKind.TABLE, ResultKind.VERDICT)


def read_match(kind: ResultKind, match: str | None, node: Mapping, faults: list[Fault]) -> str:
    """Return the match mode of a case: as given, checked against its kind, or the kind's default.

    A name that text and JSON don't know may be a custom scorer's, which only a run can tell.
    """
    if match is None and "match" in node.entries:
        return ""  # it was no text: a fault already, which nothing should be added to
    if match is None:
        return "scalar" if kind in _TABULAR else "exact"
    if kind in _TABULAR and match not in TABLE_MATCHES:
        remedy = suggest(match, TABLE_MATCHES) or f"write {join_words(TABLE_MATCHES)}"
        reason = f"unknown `match` {shown(match)} for a {kind.value}: {remedy}"
        faults.append(Fault(node.entries["match"].line, reason))
    return match


def read_tolerance(key: str, node: Node, faults: list[Fault]) -> dict[str, JSONValue] | None:
    """Read ``{numeric: n, relative: n, columns: {name: n}}``, any of them, or null for none."""
    if is_null(node):
        return None
    if not isinstance(node, Mapping):
        reason = f"`{key}` is {describe(node)}: write a mapping, {key}: {{numeric: 0.01}}"
        faults.append(Fault(node.line, reason))
        return None
    refuse_unknown(node, TOLERANCE_KEYS, faults, place=f" in `{key}`")
    tolerance: dict[str, JSONValue] = {}
    for name, child in node.entries.items():
        if name == "columns":
            tolerance[name] = _read_column_tolerances(f"{key}.{name}", child, faults)
        elif name in TOLERANCE_KEYS:
            tolerance[name] = read_not_negative(f"{key}.{name}", child, faults)
    return tolerance


def _read_column_tolerances(key: str, node: Node, faults: list[Fault]) -> dict[str, JSONValue]:
    if not isinstance(node, Mapping):
        reason = f"`{key}` is {describe(node)}: write a mapping, {{name: 0.01}}"
        faults.append(Fault(node.line, reason))
        return {}
    return {name: read_not_negative(f"{key}.{name}", child, faults) for name, child in node.entries.items()}


def read_expectation(node: Mapping, kind: ResultKind, verdict_field: str, faults: list[Fault]) -> Expectation:
    """Read ``expected`` of a case as its kind wants it.

    Args:
        node: the whole case; one with ``expected_sql`` has no ``expected``.
        kind: the kind of the case's result.
        verdict_field: the column's name where a verdict is written short, ``expected: true``.
        faults: gets whatever is wrong with it.

    Returns:
        A ``Table`` for tables and verdicts, else the value; None after a fault and for ``expected_sql``.
    """
    sql = node.entries.get("expected_sql")
    expected = node.entries.get("expected")
    if sql is not None and not is_null(sql):
        _check_sql(node, kind, faults)
        return None
    if expected is None:
        reason = f"a case without an expectation: add expected: {_example(kind)}"
        faults.append(Fault(node.line, reason))
        return None
    if kind is not ResultKind.JSON and is_null(expected):
        faults.append(Fault(expected.line, f"`expected` is empty: write expected: {_example(kind)}"))
        return None
    return _read_expected(expected, node, kind, verdict_field, faults)


def _read_expected(
    expected: Node, node: Mapping, kind: ResultKind, verdict_field: str, faults: list[Fault]
) -> Expectation:
    if kind is ResultKind.JSON:
        return construct(expected, faults)
    if kind is ResultKind.TEXT:
        return _read_text_expectation(expected, node, faults)
    if kind is ResultKind.VERDICT and isinstance(expected, Scalar):
        return Table((verdict_field,), ((construct(expected, faults),),))
    return _read_table(expected, faults)


def _check_sql(node: Mapping, kind: ResultKind, faults: list[Fault]) -> None:
    line = node.lines["expected_sql"]
    expected = node.entries.get("expected")
    if expected is not None and not is_null(expected):
        faults.append(Fault(line, "both `expected` and `expected_sql`: keep one of them"))
    if kind is not ResultKind.TABLE:
        reason = f"`expected_sql` gives a table, but `result_kind` is {kind.value}: write `expected` instead"
        faults.append(Fault(line, reason))


def _example(kind: ResultKind) -> str:
    examples = {ResultKind.TABLE: _TABLE_EXAMPLE, ResultKind.VERDICT: "true", ResultKind.TEXT: '"..."'}
    return examples.get(kind, "{...}")


def _read_table(node: Node, faults: list[Fault]) -> Table | None:
    if not isinstance(node, Mapping):
        faults.append(Fault(node.line, f"`expected` is {describe(node)}: write {_TABLE_EXAMPLE}"))
        return None
    refuse_unknown(node, TABLE_KEYS, faults, place=" in `expected`")
    n_faults = len(faults)
    columns = _read_columns(node.entries.get("columns"), faults)
    rows = _read_rows(node, faults)
    return Table(columns, rows) if len(faults) == n_faults else None


def _read_columns(node: Node | None, faults: list[Fault]) -> tuple[str, ...] | None:
    if node is None or is_null(node):
        return None
    if not isinstance(node, Sequence):
        reason = f"`expected.columns` is {describe(node)}: write a list of names, [n, total]"
        faults.append(Fault(node.line, reason))
        return None
    return tuple(_read_column(i, item, faults) for i, item in enumerate(node.items))


def _read_column(index: int, node: Node, faults: list[Fault]) -> str:
    if isinstance(node, Scalar) and (node.text or not node.plain):
        return node.text
    return read_text(f"expected.columns[{index}]", node, faults) or ""


def _read_rows(node: Mapping, faults: list[Fault]) -> tuple[tuple[JSONValue, ...], ...]:
    rows = node.entries.get("rows")
    if not isinstance(rows, Sequence):
        found = "missing" if rows is None else describe(rows)
        line = node.line if rows is None else rows.line
        faults.append(Fault(line, f"`expected.rows` is {found}: write a list of lists, {_TABLE_EXAMPLE}"))
        return ()
    return tuple(_read_row(i, row, faults) for i, row in enumerate(rows.items))


def _read_row(index: int, node: Node, faults: list[Fault]) -> tuple[JSONValue, ...]:
    if isinstance(node, Sequence):
        return tuple(construct(cell, faults) for cell in node.items)
    reason = f"`expected.rows[{index}]` is {describe(node)}: write a list, one cell a column"
    faults.append(Fault(node.line, reason))
    return ()


def _read_text_expectation(node: Node, case: Mapping, faults: list[Fault]) -> JSONValue:
    """Read a text, a list of texts or ``{any: [texts]}``; a custom scorer may want anything else."""
    match_node = case.entries.get("match")
    match = match_node.text if isinstance(match_node, Scalar) else "exact"
    if isinstance(node, Scalar):
        return _read_sought(node, match, faults)
    if isinstance(node, Sequence) and all(isinstance(item, Scalar) for item in node.items):
        return _read_sought_list(node, match, faults)
    if isinstance(node, Mapping) and list(node.entries) == ["any"] and match != "not_contains":
        texts = node.entries["any"]
        if isinstance(texts, Sequence) and all(isinstance(item, Scalar) for item in texts.items):
            return {"any": _read_sought_list(texts, match, faults)}
    if match in TEXT_MATCHES:
        others = "or a list of texts" if match == "not_contains" else "a list of texts, or {any: [...]}"
        reason = f"`expected` is {describe(node)}: write a text, {others}"
        faults.append(Fault(node.line, reason))
        return None
    return construct(node, faults)


def _read_sought_list(node: Sequence, match: str, faults: list[Fault]) -> list[JSONValue]:
    if not node.items and match in TEXT_MATCHES:
        faults.append(Fault(node.line, "`expected` is an empty list: write at least one text"))
    return [_read_sought(item, match, faults) for item in node.items if isinstance(item, Scalar)]


def _read_sought(node: Scalar, match: str, faults: list[Fault]) -> str:
    if not node.text.strip() and match in TEXT_MATCHES and match != "exact":
        reason = f"`expected` holds an empty text, which {match} can't look for: write what is sought"
        faults.append(Fault(node.line, reason))
    elif match == "regex":
        _check_pattern(node, faults)
    elif match == "number":
        _check_number(node, faults)
    return node.text


def _check_pattern(node: Scalar, faults: list[Fault]) -> None:
    from pytest_ctxfp._text_match import compile_pattern

    try:
        compile_pattern(node.text, ignore_case=False)
    except ValueError as error:
        reason = f"{error}: correct it (in YAML single quotes keep backslashes as they are)"
        faults.append(Fault(node.line, reason))


def _check_number(node: Scalar, faults: list[Fault]) -> None:
    from pytest_ctxfp._cells import parse_finite

    if parse_finite(node.text) is None:
        faults.append(
            Fault(node.line, f"`expected` is {describe(node)}: match number wants one, expected: 99")
        )


def check_table(case: Mapping, table: Table, *, kind: ResultKind, match: str, faults: list[Fault]) -> None:
    """Check an expected table against the kind, the match mode and the tolerance of its case."""
    shape = [len(row) for row in table.rows]
    if kind is ResultKind.VERDICT and shape != [1]:
        faults.append(Fault(case.lines["expected"], "a verdict is a single cell: write expected: true"))
    elif match == "scalar" and shape != [1]:
        width = f"{shape[0]}" if len(set(shape)) == 1 else "?"
        reason = f"`expected` has {len(shape)} rows of {width} cells: scalar wants a single cell, [[99]]"
        faults.append(Fault(case.lines["expected"], f"{reason}; or write match: set"))
    _check_tolerated_columns(case, table, faults)


def _check_tolerated_columns(case: Mapping, table: Table, faults: list[Fault]) -> None:
    tolerance = case.entries.get("tolerance")
    columns = tolerance.entries.get("columns") if isinstance(tolerance, Mapping) else None
    if not isinstance(columns, Mapping):
        return
    named = table.columns or ()
    known = frozenset(named)
    has = f"it has {join_words(name[:_MAX_NAME] for name in named)}" if named else "name its columns"
    for name in columns.entries:
        if name not in known:
            remedy = suggest(name, named) or has
            reason = f"`tolerance.columns` names {shown(name)}, which `expected.columns` has not: {remedy}"
            faults.append(Fault(columns.lines[name], reason))
