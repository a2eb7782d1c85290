"""Texts and figures as the page shows them: what is cut says how much, what is unknown says so."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ctxfp._display import escape_line, escape_lines
from pytest_ctxfp._table_text import show_cell

if TYPE_CHECKING:
    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._report import Usage

MAX_TEXT = 4_000
MAX_NAME = 200
MAX_CELL = 300
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownText:
    """A text as it is shown.

    Attributes:
        text: its beginning, or all of it, escaped for people.
        note: how much is left out and where that is; empty where nothing is.
    """

    text: str
    note: str = ""


def show_text(text: str, *, limit: int = MAX_TEXT, where: str = "in the JSON report") -> ShownText:
    """Return the beginning of a text, and a note where that isn't all.

    Args:
        text: anything.
        limit: characters to show.
        where: where the whole is.
    """
    shown = escape_lines(text[:limit])
    if len(text) <= limit:
        return ShownText(text=shown)
    return ShownText(text=shown, note=f"{limit:,} of {len(text):,} characters shown; all of them are {where}")


def show_name(text: str) -> str:
    """Return a name on one line, cut with ``…``."""
    return escape_line(text, limit=MAX_NAME)


def show_value(value: JSONValue) -> str:
    """Return an answer as text: a text as it is, anything else as JSON on several lines."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except (RecursionError, ValueError):  # an integer of more than 4,300 digits
        return show_cell(value)


def show_table_cell(cell: object) -> str:
    """Return a cell; of a long text the beginning and how long it is."""
    if isinstance(cell, str) and len(cell) > MAX_CELL:
        return f"{escape_line(cell[:MAX_CELL])}… ({len(cell):,} characters)"
    return show_cell(cell, limit=MAX_CELL)


def show_cost(cost: float | None) -> str:
    """Return ``0.0123 USD``; ``unknown`` is not 0, and what is paid is never shown as 0.0000."""
    if cost is None:
        return UNKNOWN
    return "<0.0001 USD" if 0 < cost < 0.00005 else f"{cost:,.4f} USD"


def show_usage(usage: Usage) -> str:
    """Return what answers cost: ``0.0202 USD``, ``unknown`` where that is known of none of them."""
    is_unknown = usage.answers and usage.unknown_costs == usage.answers
    return UNKNOWN if is_unknown else show_cost(usage.cost)


def show_seconds(latency_ms: int | None) -> str:
    """Return ``1.2 s``, or ``850 ms`` below a second."""
    if latency_ms is None:
        return UNKNOWN
    return f"{latency_ms} ms" if latency_ms < 1000 else f"{latency_ms / 1000:,.1f} s"


def show_count(number: int | None) -> str:
    """Return a whole number with separators."""
    return UNKNOWN if number is None else f"{number:,}"
