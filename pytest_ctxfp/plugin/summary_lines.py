"""The look of the summary's lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LABEL_WIDTH = 11
_MAX_ROWS = 20


def block(label: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines behind a label, which stands before the first one."""
    for line in lines:
        yield f"{label:<{_LABEL_WIDTH}}{line}"
        label = ""


def capped(lines: list[str]) -> list[str]:
    """Return the first lines of a long list, and how many more there are."""
    return (
        lines if len(lines) <= _MAX_ROWS else [*lines[:_MAX_ROWS], f"... and {len(lines) - _MAX_ROWS} more"]
    )
