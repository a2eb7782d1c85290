"""Table against table: the verdict, with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ctxfp._bags import compare_bags
from pytest_ctxfp._cells import KeyReader
from pytest_ctxfp._columns import ColumnComparer, LookAlikeError
from pytest_ctxfp._grid import Grid, is_written_alike, read_grid
from pytest_ctxfp._mismatch import RowExplainer, count, explain_cells, explain_leftovers, show_row
from pytest_ctxfp._model import Comparison
from pytest_ctxfp._tolerance import TableTolerance, cells_match, read_tolerance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ctxfp._columns import Pair
    from pytest_ctxfp._model import JSONValue, Table

_PLAIN = (bool, int, str)
"""Types whose equal values are equal cells, whatever the tolerance."""

TABLE_MODES = ("scalar", "set", "ordered")


def compare_tables(
    expected: Table | Mapping[str, object],
    actual: Table | Mapping[str, object],
    *,
    match: str,
    tolerance: Mapping[str, JSONValue] | None = None,
    extra_columns: bool = False,
) -> Comparison:
    """Compare the table of an answer with the expected one.

    Numbers are compared as the exact decimals that were written, texts in ``expected`` are labels.

    Args:
        expected: ``{"columns": [...], "rows": [[...], ...]}``; ``columns`` may be absent.
        actual: the answer's table, in the same form.
        match: ``scalar``: one cell; ``set``: the rows in any order; ``ordered``: the rows in sequence.
        tolerance: any of ``numeric``, ``relative`` (a share of the expected number) and ``columns``
            (``{name: n}``, instead of both others in that column); the larger of the first two applies.
        extra_columns: whether the answer may have columns that are not expected; all expected columns
            then must be found in it by name.

    Returns:
        the verdict, with a reason of one line.

    Raises:
        ValueError: an unknown mode, a malformed table, a cell that is no JSON value, a scalar expectation
            that is not one cell, a tolerance for an unknown column or one that is no finite number >= 0.
    """
    if match not in TABLE_MODES:
        message = f"unknown match mode {match!r:.80}: use {', '.join(TABLE_MODES)}"
        raise ValueError(message)
    wanted, given = read_grid(expected, "expected"), read_grid(actual, "actual")
    tolerances = read_tolerance(tolerance, wanted.names)
    if match == "scalar":
        return _compare_scalar(wanted, given, tolerances, extra_columns=extra_columns)
    if not wanted.rows and not given.rows:
        return Comparison(passed=True, reason="no rows, as expected")
    if wanted.is_ragged or given.is_ragged:
        return compare_bags(wanted, given, tolerance=tolerances.general, is_ordered=match == "ordered")
    return _compare_rectangles(
        wanted, given, tolerances, is_ordered=match == "ordered", extra_columns=extra_columns
    )


def _compare_scalar(
    expected: Grid, actual: Grid, tolerances: TableTolerance, *, extra_columns: bool
) -> Comparison:
    if len(expected.rows) != 1 or len(expected.rows[0]) != 1:
        widths = sorted(set(map(len, expected.rows)))
        message = (
            f"a scalar is expected as one row of one cell, not {count(len(expected.rows), 'row')} of {widths}"
            " cells: use match set or ordered"
        )
        raise ValueError(message)
    cells = _find_scalars(expected, actual, extra_columns=extra_columns)
    if len(cells) != 1:
        n_cells = sum(map(len, actual.rows))
        found = f"{count(n_cells, 'cell')}, {len(cells)} of them not null" if n_cells > 1 else "none"
        return Comparison(passed=False, reason=f"expected one cell, actual has {found}")
    wanted, given = expected.rows[0][0], cells[0]
    if type(wanted) is type(given) and type(wanted) in _PLAIN and wanted == given:
        return Comparison(passed=True, reason="the cell is as expected")
    reader, tolerance = KeyReader(), tolerances.of_columns(expected.names, 1)[0]
    passed = cells_match(reader, wanted, given, tolerance)
    reason = explain_cells(reader, wanted, given, tolerance)
    return Comparison(passed=passed, reason=reason if passed else f"row 1, {expected.label(0)}: {reason}")


def _find_scalars(expected: Grid, actual: Grid, *, extra_columns: bool) -> list[object]:
    """Return the only cell, or else all cells that are not null; only one of them is an answer."""
    rows = actual.rows
    if extra_columns and expected.is_named and actual.names.count(expected.names[0]) == 1:
        column = actual.names.index(expected.names[0])
        rows = [row[column : column + 1] for row in rows]
    cells = [cell for row in rows for cell in row]
    return cells if len(cells) == 1 else [cell for cell in cells if cell is not None]


def _compare_rectangles(
    expected: Grid, actual: Grid, tolerances: TableTolerance, *, is_ordered: bool, extra_columns: bool
) -> Comparison:
    pairs = _align(expected, actual, extra_columns=extra_columns)
    if isinstance(pairs, str):
        return Comparison(passed=False, reason=pairs)
    identity = [(column, column) for column in range(expected.width)]
    passed = Comparison(passed=True, reason=f"{count(len(expected.rows), 'row')} as expected")
    if pairs in (None, identity) and is_written_alike(expected, actual):
        return passed
    comparer = ColumnComparer(
        expected,
        actual,
        tolerances=tolerances.of_columns(expected.names, expected.width),
        is_ordered=is_ordered,
    )
    if pairs is None:
        return _compare_permuted(
            RowExplainer(expected, actual, comparer, identity), passed, is_ordered=is_ordered
        )
    if comparer.fits(pairs):
        return passed
    explainer = RowExplainer(expected, actual, comparer, pairs)
    swap = explainer.explain_swap()
    text = explainer.explain(is_ordered=is_ordered)
    return Comparison(passed=False, reason=f"{swap}: {text}" if swap else text)


def _align(expected: Grid, actual: Grid, *, extra_columns: bool) -> list[Pair] | str | None:
    """Return pairs of columns by name, None where a permutation must be found, or why nothing can fit."""
    if not expected.rows or not actual.rows:
        rows = (range(len(expected.rows)), range(len(actual.rows)))
        return explain_leftovers(expected.rows, actual.rows, *rows)
    if expected.width == actual.width:
        if not expected.is_named or not actual.is_named or set(expected.names) != set(actual.names):
            return None
        return [(column, actual.names.index(name)) for column, name in enumerate(expected.names)]
    if extra_columns and expected.is_named and len(actual.names) == actual.width:
        return _align_some(expected, actual)
    hint = ""
    if expected.width < actual.width:
        hint = ": name all columns of both" if extra_columns else ": ask for fewer, or allow extra columns"
    columns = f"expected {count(expected.width, 'column')}, actual {actual.width:,}"
    return f"{columns}{_show_names(expected, actual)}{hint}"


def _align_some(expected: Grid, actual: Grid) -> list[Pair] | str:
    for name in expected.names:
        n_found = actual.names.count(name)
        if n_found != 1:
            found = f"{n_found} times" if n_found else "missing"
            return f"column {name!r:.80} is {found} among the answer's columns{_show_names(expected, actual)}"
    return [(column, actual.names.index(name)) for column, name in enumerate(expected.names)]


def _show_names(expected: Grid, actual: Grid) -> str:
    if not expected.names or not actual.names:
        return ""
    return f" (expected {show_row(expected.names)}, actual {show_row(actual.names)})"


def _compare_permuted(explainer: RowExplainer, passed: Comparison, *, is_ordered: bool) -> Comparison:
    """Compare tables whose columns can't be aligned by name."""
    try:
        pairs = explainer.comparer.find_permutation()
    except LookAlikeError:
        return Comparison(passed=False, reason="too many columns look alike: name them")
    if pairs is not None:
        return passed
    text = explainer.explain(is_ordered=is_ordered)
    if len(explainer.pairs) > 1:
        text = f"no order of the columns fits; as they stand, {text}"
    return Comparison(passed=False, reason=text)
