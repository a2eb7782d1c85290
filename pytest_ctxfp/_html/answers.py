"""What was expected against what was answered, as tables with the differing cells marked."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_ctxfp._cells import KeyReader
from pytest_ctxfp._grid import Grid, read_grid
from pytest_ctxfp._hashing import canonical_json
from pytest_ctxfp._html.texts import MAX_TEXT, ShownText, show_name, show_table_cell, show_text, show_value
from pytest_ctxfp._tolerance import Tolerance, cells_match, read_tolerance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._report import SampleReport

Mark = Literal["", "differs", "missing", "extra"]

MAX_ROWS = 50
MAX_COLUMNS = 20
_MAX_COMPARED = 2_000  # rows of one table
_MAX_LEFT_OVER = 60  # rows without an equal one, which are held against each other one by one


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A cell and what is wrong with it."""

    text: str
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row: its 1-based number in its table, its cells, and whether the other table lacks it."""

    number: int
    cells: tuple[ShownCell, ...]
    mark: Mark = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTable:
    """A table as it is shown; ``note`` says what is left out."""

    columns: tuple[str, ...]
    rows: tuple[ShownRow, ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAnswer:
    """One side of the comparison: a table, or a text."""

    table: ShownTable | None = None
    text: ShownText | None = None


@dataclass(frozen=True, slots=True)
class _Pairing:
    """Which row of the one table is which of the other, and which columns stand for each other."""

    columns: tuple[tuple[int, int], ...]
    rows: tuple[tuple[int, int], ...]
    differing: frozenset[tuple[int, int, int, int]]
    missing: frozenset[int]
    extra: frozenset[int]


def show_both(
    expectation: Mapping[str, JSONValue] | None, sample: SampleReport
) -> tuple[ShownAnswer | None, ShownAnswer | None]:
    """Return what was expected and what was answered; None for what the report doesn't have.

    Only where the answer is wrong, and both are tables of a size that can be compared, cells are marked.
    """
    expected_value = None if expectation is None else expectation.get("expected")
    expected = _grid_of(expected_value)
    actual = None if sample.answer_cut else _grid_of(sample.answer)
    pairing = None
    if expected is not None and actual is not None and sample.state == "failed":
        pairing = _pair(expected, actual, expectation or {})
    shown_expected = None if expected_value is None else _show(expected_value, expected, pairing, side=0)
    if sample.answer_cut:
        return shown_expected, ShownAnswer(text=_show_cut_answer(sample))
    if sample.answer is None:
        return shown_expected, None
    return shown_expected, _show(sample.answer, actual, pairing, side=1)


def _grid_of(value: JSONValue) -> Grid | None:
    if not isinstance(value, dict):
        return None
    try:
        return read_grid(value, "the answer")
    except ValueError:
        return None


def _show(value: JSONValue, grid: Grid | None, pairing: _Pairing | None, *, side: int) -> ShownAnswer:
    if grid is None:
        return ShownAnswer(text=show_text(show_value(value)))
    return ShownAnswer(table=_show_table(grid, pairing, side=side))


def _show_cut_answer(sample: SampleReport) -> ShownText:
    """Return the beginning of an answer of which the report itself has no more than that."""
    text = show_value(sample.answer)
    shown = show_text(text)
    size = "more than 64 kB" if sample.answer_bytes is None else f"{sample.answer_bytes:,} bytes"
    where = f"in the stored answer {sample.key}.json" if sample.key else "in the run's own output"
    n_shown = min(len(text), MAX_TEXT)
    return ShownText(
        text=shown.text,
        note=f"the answer is {size} of JSON, of which {n_shown:,} characters are shown; the JSON report has"
        f" the first 32 kB, all of it is {where}, if that was kept",
    )


def _show_table(grid: Grid, pairing: _Pairing | None, *, side: int) -> ShownTable:
    cell_marks, row_marks = _marks(pairing, side=side)
    chosen = _choose_rows(len(grid.rows), {row for row, _ in cell_marks} | row_marks.keys())
    width = max((len(grid.rows[index]) for index in chosen), default=len(grid.names))
    names = [show_name(name) for name in grid.names[:MAX_COLUMNS]]
    if not names:
        names = [f"column {number}" for number in range(1, min(width, MAX_COLUMNS) + 1)]
    rows = tuple(
        ShownRow(
            index + 1,
            tuple(
                ShownCell(show_table_cell(cell), cell_marks.get((index, column), ""))
                for column, cell in enumerate(grid.rows[index][:MAX_COLUMNS])
            ),
            row_marks.get(index, ""),
        )
        for index in chosen
    )
    return ShownTable(columns=tuple(names), rows=rows, note=_describe_rest(grid, len(rows), width))


def _describe_rest(grid: Grid, n_shown: int, width: int) -> str:
    parts = []
    if n_shown < len(grid.rows):
        parts.append(f"{n_shown:,} of {len(grid.rows):,} rows shown, those that differ first")
    if width > MAX_COLUMNS:
        parts.append(f"{MAX_COLUMNS} of {width:,} columns shown")
    return "; ".join([*parts, "all of them are in the JSON report"]) if parts else ""


def _choose_rows(n_rows: int, marked: set[int]) -> list[int]:
    """Return the rows to show, in their order: what is wrong must be among them."""
    if n_rows <= MAX_ROWS:
        return list(range(n_rows))
    chosen = set(sorted(marked)[:MAX_ROWS])
    for index in range(MAX_ROWS):
        if len(chosen) >= MAX_ROWS:
            break
        chosen.add(index)
    return sorted(chosen)


def _marks(pairing: _Pairing | None, *, side: int) -> tuple[dict[tuple[int, int], Mark], dict[int, Mark]]:
    if pairing is None:
        return {}, {}
    cells: dict[tuple[int, int], Mark] = {
        (found[side], found[side + 2]): "differs" for found in pairing.differing
    }
    if side == 0:
        return cells, dict.fromkeys(pairing.missing, "missing")
    return cells, dict.fromkeys(pairing.extra, "extra")


def _pair(expected: Grid, actual: Grid, expectation: Mapping[str, JSONValue]) -> _Pairing | None:
    """Say which cells differ, by the rules that judged; None where that can't be told cell by cell."""
    columns = _pair_columns(expected, actual)
    if columns is None or max(len(expected.rows), len(actual.rows)) > _MAX_COMPARED:
        return None
    try:
        tolerances = read_tolerance(expectation.get("tolerance") or None, expected.names)
        matcher = _Matcher(expected, actual, columns, tolerances.of_columns(expected.names, expected.width))
        rows = matcher.in_order() if expectation.get("match") in ("ordered", "scalar") else matcher.as_sets()
    except (ValueError, TypeError, RecursionError):
        return None
    paired_expected, paired_actual = {row for row, _ in rows}, {row for _, row in rows}
    return _Pairing(
        columns=tuple(columns),
        rows=tuple(rows),
        differing=frozenset(
            (row, other, column, other_column)
            for row, other in rows
            for column, other_column in columns
            if not matcher.is_equal(row, other, column, other_column)
        ),
        missing=frozenset(set(range(len(expected.rows))) - paired_expected),
        extra=frozenset(set(range(len(actual.rows))) - paired_actual),
    )


def _pair_columns(expected: Grid, actual: Grid) -> list[tuple[int, int]] | None:
    if expected.is_ragged or actual.is_ragged:
        return None
    if expected.is_named and actual.is_named and set(expected.names) <= set(actual.names):
        return [(column, actual.names.index(name)) for column, name in enumerate(expected.names)]
    if expected.width == actual.width:
        return [(column, column) for column in range(expected.width)]
    return None


class _Matcher:
    """Finds the rows of two tables that stand for each other."""

    def __init__(
        self,
        expected: Grid,
        actual: Grid,
        columns: list[tuple[int, int]],
        tolerances: Sequence[Tolerance],
    ) -> None:
        self._expected = expected.rows
        self._actual = actual.rows
        self._columns = columns
        self._tolerances = tolerances
        self._reader = KeyReader()

    def is_equal(self, row: int, other: int, column: int, other_column: int) -> bool:
        """Whether a cell is as expected."""
        wanted, given = self._expected[row][column], self._actual[other][other_column]
        return cells_match(self._reader, wanted, given, self._tolerances[column])

    def in_order(self) -> list[tuple[int, int]]:
        """Pair the n-th row with the n-th."""
        return [(index, index) for index in range(min(len(self._expected), len(self._actual)))]

    def as_sets(self) -> list[tuple[int, int]]:
        """Pair rows that are written alike, then those that match, then those with the fewest differences."""
        pairs = self._written_alike()
        left = self._left_over(pairs, side=0)
        right = self._left_over(pairs, side=1)
        if max(len(left), len(right)) > _MAX_LEFT_OVER:
            return pairs
        candidates = sorted((self._n_differences(row, other), row, other) for row in left for other in right)
        taken: tuple[set[int], set[int]] = (set(), set())
        for n_differences, row, other in candidates:
            is_alike = n_differences < len(self._columns) or len(self._columns) == 1
            if row not in taken[0] and other not in taken[1] and is_alike:
                taken[0].add(row)
                taken[1].add(other)
                pairs.append((row, other))
        return sorted(pairs)

    def _written_alike(self) -> list[tuple[int, int]]:
        places: dict[str, deque[int]] = {}
        for index, row in enumerate(self._actual):
            text = canonical_json([row[column] for _, column in self._columns])
            places.setdefault(text, deque()).append(index)
        pairs = []
        for index, row in enumerate(self._expected):
            found = places.get(canonical_json([row[column] for column, _ in self._columns]))
            if found:
                pairs.append((index, found.popleft()))
        return pairs

    def _left_over(self, pairs: list[tuple[int, int]], *, side: int) -> list[int]:
        taken = {pair[side] for pair in pairs}
        n_rows = len((self._expected, self._actual)[side])
        return [index for index in range(n_rows) if index not in taken]

    def _n_differences(self, row: int, other: int) -> int:
        return sum(not self.is_equal(row, other, *columns) for columns in self._columns)
