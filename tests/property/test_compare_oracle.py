"""Table comparison against a slow oracle that states each rule once and tries every pairing."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ctxfp import compare_tables

Cell = Any
Table = dict[str, Any]

WHITE_SPACE = re.compile(
    "^[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
    "|[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+$"
)
FINITE = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE]([+-]?[0-9]+))?")
PLAIN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
DAY = re.compile("([0-9]{4}-[0-9]{2}-[0-9]{2})([T ]00:00:00)?")


def is_nan(cell: Cell) -> bool:
    """Whether a cell is the float NaN, which stands for the text ``NaN``."""
    return isinstance(cell, float) and math.isnan(cell)


def is_number(cell: Cell) -> bool:
    """Whether a cell is a number; booleans never are."""
    return isinstance(cell, (int, float)) and not isinstance(cell, bool) and not is_nan(cell)


def as_text(cell: Cell) -> str | None:
    """The text that a cell is, trimmed and in NFC; lists and objects are their canonical JSON."""
    if isinstance(cell, (list, dict)):
        cell = json.dumps(cell, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    if is_nan(cell):
        cell = "NaN"
    if not isinstance(cell, str):
        return None
    return unicodedata.normalize("NFC", WHITE_SPACE.sub("", cell))


def exact(cell: Cell, form: re.Pattern[str] = FINITE) -> Fraction | None:
    """The number that a cell is, as written; of texts, those of this form with an exponent up to 400."""
    text = repr(cell) if is_number(cell) else as_text(cell)
    if text is None or (isinstance(cell, str) and not form.fullmatch(text)):
        return None
    match = FINITE.fullmatch(text)
    if match is None or abs(int(match[4] or 0)) > 400:
        return None
    return Fraction(text.rstrip("."))


def in_reach(value: Fraction) -> bool:
    """Whether tolerances apply to a number of few digits."""
    return value == 0 or Fraction(10) ** -400 <= abs(value) <= Fraction(10) ** 400


def cell_equal(expected: Cell, actual: Cell, tolerance: tuple[Fraction, Fraction]) -> bool:
    """Whether two cells are equal, by the rule for the expected cell's kind."""
    if expected is None or actual is None:
        return expected is actual
    if isinstance(expected, bool) or isinstance(actual, bool):
        words = [json.dumps(cell) if isinstance(cell, bool) else as_text(cell) for cell in (expected, actual)]
        return words[0] == words[1]
    return number_equal(expected, actual, tolerance) if is_number(expected) else label_equal(expected, actual)


def number_equal(expected: Cell, actual: Cell, tolerance: tuple[Fraction, Fraction]) -> bool:
    """Whether a cell is a number, or a finite decimal, that is near enough."""
    wanted, value = exact(expected), exact(actual)
    if wanted is None or value is None or wanted == value:
        return value is not None
    allowed = max(tolerance[0], tolerance[1] * abs(wanted))
    return in_reach(wanted) and in_reach(value) and abs(wanted - value) <= allowed


def label_equal(expected: Cell, actual: Cell) -> bool:
    """Whether a cell is the same text, the same exact number or the same day."""
    text, other = as_text(expected), as_text(actual)
    wanted = exact(text, PLAIN)
    if text == other or wanted is not None:
        return text == other or wanted == exact(actual, FINITE if is_number(actual) else PLAIN)
    days = [DAY.fullmatch(item or "") for item in (text, other)]
    return bool(days[0] and days[1] and days[0][1] == days[1][1])


def paired(expected: list[Any], actual: list[Any], matches: Any) -> bool:
    """Whether each item has a partner of its own."""
    return len(expected) == len(actual) and any(
        all(matches(one, other) for one, other in zip(expected, order, strict=True))
        for order in permutations(actual)
    )


def tables_match(expected: Table, actual: Table, match: str, tolerance: Table) -> bool:
    """Whether two tables match in mode set or ordered."""
    rows, others = expected["rows"], actual["rows"]
    if len(rows) != len(others) or not rows:
        return len(rows) == len(others)
    general = (exact(tolerance.get("numeric", 0)), exact(tolerance.get("relative", 0)))
    widths, other_widths = ({len(row) for row in table} for table in (rows, others))

    def sequences(same: Any) -> bool:
        if match == "set":
            return paired(rows, others, same)
        return all(same(row, other) for row, other in zip(rows, others, strict=True))

    if len(widths) > 1 or len(other_widths) > 1:
        return sequences(lambda row, other: paired(row, other, lambda *cells: cell_equal(*cells, general)))
    width, names = len(rows[0]), expected.get("columns", [])
    by_column = {name: (exact(value), Fraction(0)) for name, value in tolerance.get("columns", {}).items()}
    tolerances = [by_column.get(name, general) for name in names[:width]] + [general] * (width - len(names))

    def alike(order: tuple[int, ...]) -> Any:
        return lambda row, other: all(
            cell_equal(row[i], other[j], tolerances[i]) for i, j in enumerate(order)
        )

    return widths == other_widths and any(
        sequences(alike(order)) for order in orders(names, actual.get("columns", []), width)
    )


def orders(names: list[str], others: list[str], width: int) -> Any:
    """The orders of the answer's columns that may be tried."""
    if len(names) == width == len(set(names)) and sorted(names) == sorted(others):
        return [tuple(others.index(name) for name in names)]
    return permutations(range(width))


CELLS: list[Cell] = [
    *(0, 1, 2, 7, -7, 1.0, 0.5, 1.5, 7.25, 0.1, 0.3, 0.30000000000000004, -0.0, 5e-324),
    *(2**53 + 1, 2.0**53, 10**17, 1e17, 2**60, 2.0**60, 10**400, 10**401, 10**401 + 1),
    *("0", "1", "1.0", " 1", "+1", "01", "1.", "1e0", "7", "007", "07", "+7", "7.0", "7.2", ".5", "0.5"),
    *("-0", "+0", "-7", "0e0", "0.1", "0.10000000000000001", "1e400", "10e399", "1e401", "10e400"),
    *("9007199254740993", "9007199254740992.0", "1152921504606847000", "12e4567", "0e999", "1_0", "\u0667"),
    *(
        True,
        False,
        "true",
        "false",
        "True",
        None,
        "null",
        "",
        " ",
        "a",
        "A",
        "a ",
        "\x1ca",
        "\u00e9",
        "e\u0301",
    ),
    *("2024-01-01", "2024-01-01T00:00:00", "2024-01-01 00:00:00", "2024-01-01T00:00:01", "2024-01-02"),
    *(
        [1, 2],
        [1.0, 2],
        "[1,2]",
        "[1, 2]",
        {"b": 1, "a": "e\u0301"},
        '{"a":"\u00e9","b":1}',
        [True],
        "[true]",
    ),
    *(float("nan"), "NaN", "Infinity", "\ud800"),
]
NUMBERS: list[Cell] = [0, 1, 2, 3, 1.5, 2.5, "1", "2", "+2", "02", 2.25, "2.5", 10, 11]
NAMES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=3)
TOLERANCES = st.fixed_dictionaries(
    {},
    optional={
        "numeric": st.sampled_from([0, 0.5, 1, 1.25, 6]),
        "relative": st.sampled_from([0, 0.1, 0.5, 1.5]),
    },
)


@st.composite
def pairs_of_tables(draw: st.DrawFn, *, is_ragged: bool = False) -> tuple[Table, Table, Table]:
    """Two small tables that are likely to match, or nearly, and a tolerance."""
    pool = draw(st.lists(st.sampled_from(CELLS + NUMBERS * 4), min_size=1, max_size=6))
    width = draw(st.integers(0, 3))
    widths = st.integers(0, 4) if is_ragged else st.just(width)
    row = widths.flatmap(lambda n: st.lists(st.sampled_from(pool), min_size=n, max_size=n))
    rows = draw(st.lists(row, max_size=4))
    if draw(st.booleans()):
        others = draw(st.lists(row, min_size=len(rows), max_size=len(rows)))
    else:
        others = [list(cells) for cells in draw(st.permutations(rows))]
        if others and others[0] and draw(st.booleans()):
            others[0][0] = draw(st.sampled_from(pool))
    expected: Table = {"rows": rows}
    actual: Table = {"rows": others}
    if draw(st.booleans()):
        expected["columns"] = draw(NAMES)
        actual["columns"] = draw(st.one_of(st.permutations(expected["columns"]), NAMES))
    tolerance = draw(TOLERANCES)
    if expected.get("columns") and draw(st.booleans()):
        tolerance["columns"] = {expected["columns"][0]: draw(st.sampled_from([0, 1, 0.75]))}
    return expected, actual, tolerance


def check(tables: tuple[Table, Table, Table], match: str) -> None:
    """Assert that the verdict is the oracle's, with a reason of one line."""
    expected, actual, tolerance = tables
    comparison = compare_tables(expected, actual, match=match, tolerance=tolerance)
    assert comparison.passed == tables_match(expected, actual, match, tolerance), comparison.reason
    assert comparison.reason
    assert len(comparison.reason.splitlines()) == 1


@pytest.mark.parametrize("match", ["set", "ordered"])
@given(tables=pairs_of_tables())
def test_rectangles_match_as_the_oracle_says(match: str, tables: tuple[Table, Table, Table]) -> None:
    """Small tables of all kinds of cells match exactly when some pairing of rows and columns does."""
    check(tables, match)


@pytest.mark.parametrize("match", ["set", "ordered"])
@given(tables=pairs_of_tables(is_ragged=True))
def test_ragged_tables_match_as_the_oracle_says(match: str, tables: tuple[Table, Table, Table]) -> None:
    """Rows of different length match exactly when some pairing of rows and of their cells does."""
    check(tables, match)


@given(tables=pairs_of_tables(), data=st.data())
def test_order_of_rows_is_nothing_to_a_set(tables: tuple[Table, Table, Table], data: st.DataObject) -> None:
    """A set comparison gives the same verdict however the rows of either table are ordered."""
    expected, actual, tolerance = tables
    before = compare_tables(expected, actual, match="set", tolerance=tolerance)
    expected = {**expected, "rows": data.draw(st.permutations(expected["rows"]))}
    actual = {**actual, "rows": data.draw(st.permutations(actual["rows"]))}
    assert compare_tables(expected, actual, match="set", tolerance=tolerance).passed == before.passed


@pytest.mark.parametrize("match", ["set", "ordered"])
@given(tables=pairs_of_tables(), data=st.data())
def test_order_of_columns_is_nothing(
    match: str, tables: tuple[Table, Table, Table], data: st.DataObject
) -> None:
    """The verdict stays when the answer's columns are permuted along with their names."""
    expected, actual, tolerance = tables
    before = compare_tables(expected, actual, match=match, tolerance=tolerance)
    width, names = len(actual["rows"][0]) if actual["rows"] else 0, actual.get("columns", [])
    order = data.draw(st.permutations(range(width)))
    moved = {**actual, "rows": [[row[i] for i in order] for row in actual["rows"]]}
    if len(names) == width:
        moved["columns"] = [names[i] for i in order]
    else:
        moved.pop("columns", None)
    assert compare_tables(expected, moved, match=match, tolerance=tolerance).passed == before.passed


@given(cells=st.lists(st.sampled_from(CELLS), min_size=2, max_size=2), tolerance=TOLERANCES)
def test_a_scalar_matches_as_the_oracle_says(cells: list[Cell], tolerance: Table) -> None:
    """One cell matches one cell by the rule for cells, and nulls around it change nothing."""
    expected, actual = {"rows": [[cells[0]]]}, {"rows": [[cells[1]], [None, None]]}
    general = (exact(tolerance.get("numeric", 0)), exact(tolerance.get("relative", 0)))
    passed = compare_tables(expected, actual, match="scalar", tolerance=tolerance).passed
    assert passed == (cells[1] is not None and cell_equal(*cells, general))
