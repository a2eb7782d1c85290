"""Tables of other libraries, known by their attributes: none of them is imported here."""

from __future__ import annotations

import json
from math import isnan
from typing import TYPE_CHECKING, Any

from pytest_ctxfp._errors import AgentError, describe_error
from pytest_ctxfp._values import to_json_value, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_ctxfp._model import JSONValue


def read_frame(value: object) -> dict[str, object] | None:
    """Read a DataFrame, an Arrow table or a cursor with a result set.

    Args:
        value: anything; pandas, polars and pyarrow tables and DB-API 2.0 (PEP 249) cursors are known.
            The index of a pandas frame is left out; NaN in a column of floats stays NaN, as it can't be
            told from a missing number.

    Returns:
        ``{"columns": [...], "rows": [...]}`` with cells as the library gives them, or None where the
        value is no such table.

    Raises:
        AgentError: the table can't be read: the database fails, or the cursor has no result set.
    """
    reader = _find_reader(value)
    if reader is None:
        return None
    try:
        labels, rows = reader(value)
        return {"columns": [_name_column(label) for label in labels], "rows": [list(row) for row in rows]}
    except AgentError:
        raise
    except Exception as error:  # drivers raise what they like
        message = f"the returned {type_name(value)!r} can't be read: {describe_error(error)}"
        raise AgentError(message) from error


_Parts = tuple["Iterable[object]", "Iterable[Iterable[object]]"]


def _find_reader(value: object) -> Callable[[Any], _Parts] | None:
    if _has_methods(value, "fetchall") and _has(value, "description", (list, tuple, type(None))):
        return _read_cursor
    if _has(value, "column_names", (list,)) and _has(value, "columns", (list,)):
        return _read_arrow
    if not _has(value, "shape", (tuple,)) or not hasattr(value, "columns"):
        return None
    if _has_methods(value, "itertuples"):
        return _read_pandas
    return _read_polars if _has_methods(value, "rows") else None


def _has(value: object, name: str, types: tuple[type, ...]) -> bool:
    # A mock has every attribute: only one of the right type tells a table.
    missing = object()
    return isinstance(getattr(value, name, missing), types)


def _has_methods(value: object, name: str) -> bool:
    return callable(getattr(value, name, None))


def _read_cursor(cursor: Any) -> _Parts:
    if cursor.description is None:
        message = f"the returned {type_name(cursor)!r} has no result set: return it after a SELECT"
        raise AgentError(message)
    labels = [column[0] for column in cursor.description]
    return labels, (_read_row(row, labels) for row in cursor.fetchall())


def _read_row(row: Sequence[object] | Mapping[object, object], labels: list[object]) -> Iterable[object]:
    """Return a row's cells in the order of the columns; some drivers give rows as dictionaries."""
    return [row[label] for label in labels] if isinstance(row, dict) else row


def _read_arrow(table: Any) -> _Parts:
    return table.column_names, zip(*(column.to_pylist() for column in table.columns), strict=True)


def _read_pandas(frame: Any) -> _Parts:
    kinds = [dtype.kind for dtype in frame.dtypes]
    rows = frame.itertuples(index=False, name=None)
    return frame.columns, ([_null_missing(*cell) for cell in zip(row, kinds, strict=True)] for row in rows)


def _null_missing(cell: object, kind: str) -> object:
    """Return None for pandas' NaN in a column that doesn't hold floats: there it is no number but a gap."""
    return None if kind != "f" and isinstance(cell, float) and isnan(cell) else cell


def _read_polars(frame: Any) -> _Parts:
    return frame.columns, frame.rows()


def _name_column(label: object) -> str:
    """Return a column's name; a label that is no text, as pandas allows, becomes its JSON: ``0``."""
    name: JSONValue = to_json_value(label)
    return name if isinstance(name, str) else json.dumps(name, ensure_ascii=False, separators=(",", ":"))
