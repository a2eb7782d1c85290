"""Cells and tables as plain text for a terminal: one line each, nothing unprintable, cuts announced."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_ctxfp._display import escape_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_ROWS = 10
MAX_COLUMNS = 8
MAX_CELL = 40


def show_cell(cell: object, *, limit: int = MAX_CELL) -> str:
    """Return a cell as it stands in a table: texts bare, the rest as JSON.

    Args:
        cell: any JSON value; other objects by ``repr``.
        limit: cut to this many characters, the last being ``…``.
    """
    return escape_line(cell if isinstance(cell, str) else _spell(cell), limit=limit)


def quote_cell(cell: object, *, limit: int = MAX_CELL) -> str:
    """Return a cell as it stands in a sentence: texts in quotes, so that ``'1'`` is no ``1``."""
    if not isinstance(cell, str):
        return show_cell(cell, limit=limit)
    return repr(cell) if len(cell) <= limit else f"{cell[:limit]!r}…"


def _spell(cell: object) -> str:
    try:
        return json.dumps(cell, ensure_ascii=False)
    except RecursionError:
        return "(nested too deep to be shown)"
    except (TypeError, ValueError):  # no JSON value, or an integer of more than 4,300 digits
        return f"({cell.bit_length():,} bits)" if isinstance(cell, int) else f"({type(cell).__name__})"


def render_table(
    table: Mapping[str, object],
    *,
    max_rows: int = MAX_ROWS,
    max_columns: int = MAX_COLUMNS,
    max_cell: int = MAX_CELL,
) -> list[str]:
    """Return a table as aligned lines of plain text.

    Example: ``{"columns": ["city", "n"], "rows": [["Rome", 3], ["Oslo", 12], ["Lima", 7]]}`` with
    ``max_rows=2`` is::

        city  n
        ----  --
        Rome  3
        Oslo  12
        ... 1 more row

    Args:
        table: ``rows``, and ``columns`` where they have names.
        max_rows: rows shown; the rest is counted.
        max_columns: columns shown; the rest is counted.
        max_cell: characters shown of a cell.

    Returns:
        the lines, at least one, none with a line break or another control character in it.
    """
    names, rows = _as_sequence(table.get("columns")), _as_sequence(table.get("rows"))
    width = max([len(names), *(len(_as_sequence(row)) for row in rows)])
    shown = [[*names]] if names else []
    shown += [[*_as_sequence(row)] for row in rows[:max_rows]]
    texts = [[show_cell(cell, limit=max_cell) for cell in row[:max_columns]] for row in shown]
    lines = _align(texts, is_headed=bool(names))
    if width > max_columns:
        lines.append(f"... {_count(width - max_columns, 'more column')}")
    if len(rows) > max_rows:
        lines.append(f"... {_count(len(rows) - max_rows, 'more row')}")
    return lines if rows else [*lines, "(no rows)"]


def _as_sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, (list, tuple)) else ()


def _align(texts: list[list[str]], *, is_headed: bool) -> list[str]:
    n_columns = max(map(len, texts), default=0)
    widths = [max(len(row[column]) for row in texts if column < len(row)) for column in range(n_columns)]
    if is_headed:
        texts.insert(1, ["-" * width for width in widths[: len(texts[0])]])
    return ["  ".join(map(str.ljust, row, widths)).rstrip(" ") for row in texts]


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
