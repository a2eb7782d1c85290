"""Cells and tables as plain text."""

from __future__ import annotations

from itertools import count

import pytest

from pytest_ctxfp._table_text import quote_cell, render_table, show_cell


def test_a_table_is_aligned_under_its_names() -> None:
    """Columns stand below their names, and rows left out are counted."""
    table = {"columns": ["city", "n"], "rows": [["Rome", 3], ["Oslo", 12], ["Lima", 7]]}
    assert render_table(table, max_rows=2) == [
        "city  n",
        "----  --",
        "Rome  3",
        "Oslo  12",
        "... 1 more row",
    ]


def test_a_table_without_names_has_no_head() -> None:
    """Rows alone are aligned too."""
    assert render_table({"rows": [[1, "a"], [100, "b"]]}) == ["1    a", "100  b"]


@pytest.mark.parametrize(
    ("table", "lines"),
    [
        ({"columns": ["n"], "rows": []}, ["n", "-", "(no rows)"]),
        ({"rows": []}, ["(no rows)"]),
        ({}, ["(no rows)"]),
        ({"rows": [[]]}, [""]),
        ({"columns": ["a", "b"], "rows": [[1], [1, 2, 3]]}, ["a  b", "-  -", "1", "1  2  3"]),
    ],
)
def test_odd_shapes_are_shown_too(table: dict[str, object], lines: list[str]) -> None:
    """Empty and ragged tables are shown as what they are."""
    assert render_table(table) == lines


def test_further_columns_and_rows_are_counted() -> None:
    """Cuts are announced with the number of what is left out."""
    table = {"columns": list("abcd"), "rows": [[1, 2, 3, 4]] * 1_500}
    assert render_table(table, max_rows=1, max_columns=2) == [
        "a  b",
        "-  -",
        "1  2",
        "... 2 more columns",
        "... 1,499 more rows",
    ]


def test_nothing_breaks_a_line() -> None:
    """Control characters, line separators, direction marks and lone surrogates are escaped."""
    table = {"columns": ["a\nb"], "rows": [["x\u2028\x1b[31m\u202e\ud800"], [{"k\r": "\x85"}]]}
    lines = render_table(table)
    assert lines[0] == r"a\x0ab"
    assert lines[2] == r"x\u2028\x1b[31m\u202e\ud800"
    assert all(len(line.splitlines()) == 1 for line in lines)


@pytest.mark.parametrize(
    ("cell", "shown", "quoted"),
    [
        (None, "null", "null"),
        (True, "true", "true"),
        (1.0, "1.0", "1.0"),
        ("1", "1", "'1'"),
        ("it's\n", r"it's\x0a", '"it\'s\\n"'),
        ([1, "é"], '[1, "é"]', '[1, "é"]'),
        ("x" * 50, "x" * 39 + "…", "'" + "x" * 40 + "'…"),
        (10**5000, "(16,610 bits)", "(16,610 bits)"),
        (object, "(type)", "(type)"),
    ],
    ids=count(),
)
def test_cells_are_short_and_texts_are_told_from_numbers(cell: object, shown: str, quoted: str) -> None:
    """In a table texts are bare, in a sentence they are quoted; both are cut."""
    assert show_cell(cell) == shown
    assert quote_cell(cell) == quoted
