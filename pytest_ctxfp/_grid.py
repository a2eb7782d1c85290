"""Tables as they come in, checked for their shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

from pytest_ctxfp._model import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SIMPLE = {type(None), bool, int, float, str}
_SEQUENCES = {list, tuple}


@dataclass(frozen=True, slots=True)
class Grid:
    """A table whose shape was checked; ``names`` is empty where columns have none."""

    names: tuple[str, ...]
    rows: Sequence[Sequence[object]]

    @property
    def width(self) -> int:
        """The number of cells in a row; of names where there is no row."""
        return len(self.rows[0]) if self.rows else len(self.names)

    @property
    def is_ragged(self) -> bool:
        """Whether rows differ in length."""
        return len(set(map(len, self.rows))) > 1

    @property
    def is_named(self) -> bool:
        """Whether every column has a name, and no two the same."""
        return len(self.names) == self.width == len(set(self.names))

    def columns(self) -> list[Sequence[object]]:
        """Return the cells by column; rows must not be ragged."""
        return [list(map(itemgetter(column), self.rows)) for column in range(self.width)]

    def label(self, column: int) -> str:
        """Return how to speak of a column: by its name, or else by its 1-based number."""
        return f"column {self.names[column]!r:.80}" if column < len(self.names) else f"column {column + 1}"


def read_grid(table: object, role: str) -> Grid:
    """Check a table's shape; its cells are read when they are compared.

    Args:
        table: a `Table`, or a mapping with ``rows`` and perhaps ``columns``.
        role: what the table is to the user, for messages.

    Raises:
        ValueError: ``rows`` is no list of lists, or ``columns`` no list of texts.
    """
    if isinstance(table, Table):
        return Grid(table.columns or (), table.rows)
    if not isinstance(table, Mapping):
        message = f'{role} is {table!r:.80}: write a table as {{"columns": [...], "rows": [[...], ...]}}'
        raise ValueError(message)
    names, rows = table.get("columns"), table.get("rows")
    if not isinstance(rows, (list, tuple)) or not _are_sequences(rows):
        message = f'{role} has no `rows` as a list of lists: write {{"rows": [[...], ...]}}'
        raise ValueError(message)
    if names is None:
        return Grid((), rows)
    if not _is_sequence(names) or not all(isinstance(name, str) for name in names):
        message = f"{role} has columns {names!r:.80}: write a list of texts, or leave `columns` out"
        raise ValueError(message)
    return Grid(tuple(names), rows)


def _is_sequence(value: object) -> bool:
    return isinstance(value, (list, tuple))


def _are_sequences(values: Iterable[object]) -> bool:
    return _SEQUENCES.issuperset(map(type, values)) or all(map(_is_sequence, values))


def is_written_alike(expected: Grid, actual: Grid) -> bool:
    """Whether all cells stand in the same order in both, each of the same type and spelling.

    Nothing is said of tables that hold lists or objects: in these Python takes ``True`` for ``1``.
    """
    is_start_alike = _are_alike(expected.rows[:1], actual.rows[:1])
    return is_start_alike and _are_alike(expected.rows, actual.rows)


def _are_alike(rows: Sequence[Sequence[object]], others: Sequence[Sequence[object]]) -> bool:
    if list(map(len, rows)) != list(map(len, others)):
        return False
    cells, other_cells = list(chain.from_iterable(rows)), list(chain.from_iterable(others))
    kinds = list(map(type, cells))
    return _SIMPLE.issuperset(kinds) and cells == other_cells and kinds == list(map(type, other_cells))
