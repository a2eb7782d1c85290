"""Table against table: cells, modes, columns, reasons, bad input."""

from __future__ import annotations

import json
import re
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pytest_ctxfp import _columns, compare_tables
from pytest_ctxfp._model import Table

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "compare.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_vector(vector: dict[str, Any]) -> None:
    """Each vector has the verdict, or the error, that it names."""
    given = vector["input"]
    tables = given.get("expected"), given.get("actual")
    options = {"match": given.get("match"), "tolerance": given.get("tolerance")}
    if "error" in vector["expected"]:
        with pytest.raises(ValueError, match=r"expected|tolerance|match mode"):
            compare_tables(*tables, **options)
    else:
        assert compare_tables(*tables, **options).passed == vector["expected"]["pass"]


def scalar(expected: object, actual: object, **tolerance: object) -> bool:
    """The verdict on one cell."""
    return compare_tables(
        {"rows": [[expected]]}, {"rows": [[actual]]}, match="scalar", tolerance=tolerance
    ).passed


def rows(*cells: object) -> dict[str, Any]:
    """A table of one column."""
    return {"rows": [[cell] for cell in cells]}


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (True, "true"),
        ("true", True),
        (7, "007"),
        ("007", "007"),
        ("7", 7.0),
        ("1e3", 1000),
        (-0.0, 0),
        (1e17, 10**17),
        (10**400, "1e400"),
        (10**5000, "1" + "0" * 5000),
        (10**5000, 10**5000),
        (["e\u0301"], '["\u00e9"]'),
        ({"b": 1, "a": 2}, '{"a":2,"b":1}'),
        ("2024-01-01 00:00:00", "2024-01-01T00:00:00"),
        (float("nan"), "NaN"),
        ("\ud800", " \ud800"),
    ],
    ids=count(),
)
def test_cells_that_are_equal(expected: object, actual: object) -> None:
    """Values are equal whatever their spelling, where the rule for the expected kind says so."""
    assert scalar(expected, actual)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (True, 1),
        (1, True),
        (True, "True"),
        ("007", 7),
        ("7", "007"),
        ("+7", 7),
        (2**53 + 1, 2.0**53),
        (2**60, 2.0**60),  # the float was written as 1.152921504606847e+18
        (0.1, "0.1000000000000000055511151231257827021181583404541015625"),
        ("0e462097431906509", "0e830400451993494"),
        (10**500, "1e500"),  # text, by its exponent
        (10**5000, 10**5000 + 1),
        ([True], [1]),
        (None, "null"),
        (None, ""),
        ("2024-01-01", "2024-01-01T00:00:01"),
        (5, "\x1c5"),
        (5, "\u0665"),
        (1000, "1_000"),
    ],
    ids=count(),
)
def test_cells_that_differ(expected: object, actual: object) -> None:
    """Different values are never equal, even where Python says that they are."""
    assert not scalar(expected, actual)
    assert not compare_tables(rows(expected, "x"), rows("x", actual), match="set").passed


def test_tolerances_are_exact() -> None:
    """The edge of a tolerance is inside it, in decimals, and nothing beyond it is."""
    assert scalar(1.0, 1.01, numeric=0.01)
    assert scalar(70, 70.1, numeric=0.1)
    assert not scalar(1.0, "1.010000000000000000000000000001", numeric=0.01)
    assert scalar(-200, -210, relative=0.05)
    assert not scalar(-200, "-210.0000000001", relative=0.05)
    assert scalar(200, 210, numeric=1, relative=0.05)
    assert scalar(2, 3, numeric=1, relative=0.05)


@pytest.mark.parametrize("actual", [10**401, "0." + "0" * 400 + "1", "0." + "3" * 1001], ids=count())
def test_numbers_out_of_reach_have_no_tolerance(actual: object) -> None:
    """A number beyond 10^±400, or of more than 1,000 digits, is within no tolerance."""
    assert not scalar(0.3, actual, numeric=10**500, relative=10**900)
    assert scalar(0.3, 10**400, numeric=10**500)


def test_tolerance_of_a_column_replaces_the_others() -> None:
    """A column's own tolerance applies in its place, also where it is smaller, and follows a permutation."""
    expected = {"columns": ["a", "b"], "rows": [[10, 500]]}
    tolerance = {"numeric": 5, "columns": {"a": 1}}
    actual = {"columns": ["y", "x"], "rows": [[504, 11]]}
    assert compare_tables(expected, actual, match="set", tolerance=tolerance).passed
    actual = {"columns": ["y", "x"], "rows": [[504, 14]]}
    assert not compare_tables(expected, actual, match="set", tolerance=tolerance).passed


def test_labels_compete_with_numbers_for_an_odd_spelling() -> None:
    """``007`` is the number 7 or the label ``007``, and rows are matched so that both are found."""
    assert compare_tables(rows(7, "007"), rows("007", 7), match="set").passed
    assert compare_tables(rows(7, "7"), rows("7", "007"), match="set").passed
    assert not compare_tables(rows(7, "7"), rows("007", "007"), match="set").passed
    assert not compare_tables(
        rows("7", "007"), rows("+7", "007"), match="set", tolerance={"numeric": 1}
    ).passed


def test_subclasses_are_read_as_what_they_are() -> None:
    """A text or number of a derived type is a text or a number: a label stays one."""

    class Label(str):
        __slots__ = ()

    class Real(float):
        __slots__ = ()

        def __repr__(self) -> str:
            return "Real()"

    tolerance = {"numeric": 1}
    assert not compare_tables(rows(Label("2019")), rows(2020), match="set", tolerance=tolerance).passed
    assert compare_tables(rows(Label("2019"), 1), rows(1, 2019), match="set", tolerance=tolerance).passed
    assert compare_tables(rows(Real(2.5)), rows(Real(3.5)), match="set", tolerance=tolerance).passed
    assert not compare_tables(rows(Real(2.5)), rows(3.6), match="set", tolerance=tolerance).passed


def test_a_table_record_is_compared_as_its_dict() -> None:
    """The expectation of a golden case can be passed as it is."""
    table = Table(("n",), ((1,), (2,)))
    assert compare_tables(table, {"columns": ["n"], "rows": [[2], [1.0]]}, match="set").passed
    assert compare_tables({"rows": [[1], [2]]}, table, match="ordered").passed


def test_scalar_takes_the_only_cell_that_is_not_null() -> None:
    """Nulls around one value are looked past; two values, even equal ones, are no scalar."""
    expected = {"rows": [[7]]}
    assert compare_tables(expected, {"rows": [[None, 7], [None]]}, match="scalar").passed
    assert not compare_tables(expected, {"rows": [[7, 7]]}, match="scalar").passed
    assert not compare_tables(expected, {"rows": []}, match="scalar").passed


def test_extra_columns_are_left_out_by_name() -> None:
    """Where the answer may have further columns, the expected ones are found by name."""
    expected = {"columns": ["id", "n"], "rows": [[1, 10], [2, 20]]}
    actual = {"columns": ["n", "note", "id"], "rows": [[20, "x", 2], [10, "y", 1]]}
    assert compare_tables(expected, actual, match="set", extra_columns=True).passed
    assert not compare_tables(expected, actual, match="ordered", extra_columns=True).passed
    assert not compare_tables(expected, actual, match="set").passed
    scalars = {"columns": ["n"], "rows": [[10]]}
    assert compare_tables(
        scalars, {"columns": ["id", "n"], "rows": [[1, 10]]}, match="scalar", extra_columns=True
    ).passed


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["n", "note", "key"], "column 'id' is missing among the answer's columns"),
        (["n", "id", "id"], "column 'id' is 2 times among the answer's columns"),
        ([], "expected 2 columns, actual 3: name all columns of both"),
    ],
)
def test_extra_columns_need_the_expected_names(names: list[str], reason: str) -> None:
    """An expected column that the answer doesn't name once is a failure that says so."""
    expected = {"columns": ["id", "n"], "rows": [[1, 10]]}
    actual = {"columns": names, "rows": [[10, "x", 1]]}
    comparison = compare_tables(expected, actual, match="set", extra_columns=True)
    assert not comparison.passed
    assert comparison.reason.startswith(reason)


@pytest.mark.parametrize(
    ("expected", "actual", "tolerance", "reason"),
    [
        ("b", "B", 0, "expected 'b', actual 'B' (differs in case only)"),
        (10.5, 11.2, 0, "expected 10.5, actual 11.2 (off by 0.7)"),
        (10.5, 11.2, 0.5, "expected 10.5, actual 11.2 (off by 0.7, tolerance 0.5)"),
        (2, "0.1234567891", 0, "expected 2, actual '0.1234567891' (off by about 1.87654)"),
        (0.3, 0.3000000001, 0, "expected 0.3, actual 0.3000000001 (differs by 1e-10: set a tolerance)"),
        (10**12, 10**12 + 1, 0, "expected 1000000000000, actual 1000000000001 (off by 1)"),
        ("2019", 2020, 0, "expected '2019', actual 2020"),
        ("2019", 2020, 1, "expected '2019', actual 2020 (a text in expected is a label)"),
        ("02134", 2134, 0, "expected '02134', actual 2134 (a text in expected is a label)"),
        (1000, "1,000", 0, "expected 1000, actual '1,000' (no finite decimal)"),
        (1, 10**5000, 1, "expected 1, actual (16,610 bits) (too large, small or long for a tolerance)"),
        (None, "null", 0, "expected null, actual 'null'"),
        ("x\n\u202e" + "y" * 90, "x", 0, "expected 'x\\n\\u202e" + "y" * 37 + "'…, actual 'x'"),
    ],
    ids=count(),
)
def test_reason_of_a_cell(expected: object, actual: object, tolerance: float, reason: str) -> None:
    """The reason shows both values in one line, and by how much they are off or what kept them apart."""
    for match in ("scalar", "set", "ordered"):
        comparison = compare_tables(
            rows(expected), rows(actual), match=match, tolerance={"numeric": tolerance}
        )
        assert (comparison.passed, comparison.reason) == (False, f"row 1, column 1: {reason}")


@pytest.mark.parametrize(
    ("expected", "actual", "match", "reason"),
    [
        ([[1], [2], [3]], [[3], [1]], "set", "expected 3 rows, actual 2; row 2 is missing: (2)"),
        ([[1]], [[1], [5]], "ordered", "expected 1 row, actual 2; 1 extra row: row 2 (5)"),
        ([[1]], [], "set", "expected 1 row, actual 0; row 1 is missing: (1)"),
        ([[1, 2]], [[1]], "set", "expected 2 columns, actual 1"),
        (
            [[1, "a"], [2, "b"], [3, "c"]],
            [[3, "c"], [1, "a"], [2, "d"]],
            "set",
            (
                "no order of the columns fits; as they stand, row 2 (the answer's row 3), column 2: "
                "expected 'b', actual 'd'"
            ),
        ),
        (
            [[1], [2], [5]],
            [[1], [7], [9]],
            "set",
            "row 2, column 1: expected 2, actual 7 (off by 5); 1 more row differs",
        ),
        (
            [[1], [2]],
            [[2], [1]],
            "ordered",
            "the rows are right but in another order: row 1, column 1: expected 1, actual 2 (off by 1)",
        ),
        (
            [[1], [2, 3]],
            [[1], [3, 4]],
            "set",
            (
                "rows of different length, compared as bags of cells: row 2 is missing: (2, 3); "
                "1 extra row: row 2 (3, 4)"
            ),
        ),
    ],
    ids=count(),
)
def test_reason_of_rows(expected: list[Any], actual: list[Any], match: str, reason: str) -> None:
    """The reason names the rows that are wrong, missing or extra, and the column."""
    comparison = compare_tables({"rows": expected}, {"rows": actual}, match=match)
    assert (comparison.passed, comparison.reason) == (False, reason)


def test_reason_names_swapped_columns() -> None:
    """Values that stand under each other's name are reported as a swap."""
    expected = {"columns": ["from", "to"], "rows": [[1, 2], [3, 4]]}
    actual = {"columns": ["from", "to"], "rows": [[2, 1], [4, 3]]}
    for match in ("set", "ordered"):
        reason = compare_tables(expected, actual, match=match).reason
        assert reason.startswith("column 'from' and column 'to' are swapped: ")


def test_reason_shows_where_long_texts_part() -> None:
    """Two long texts are shown from shortly before their first difference."""
    reason = compare_tables(rows("a" * 900 + "b"), rows("a" * 900 + "c" + "d" * 99), match="scalar").reason
    assert "'aaaaaaaaaab'" in reason
    assert "'aaaaaaaaaac" in reason
    assert len(reason) < 200


def test_a_permutation_that_is_not_found_in_time_fails() -> None:
    """Columns of which every choice but all of them looks alike are given up on, not passed."""
    numbers = [(number, number.bit_count() % 2) for number in range(2**8)]
    even, odd = (
        [[number >> bit & 1 for bit in range(8)] for number, parity in numbers if parity == wanted]
        for wanted in (0, 1)
    )
    comparison = compare_tables({"rows": even}, {"rows": odd}, match="set")
    assert (comparison.passed, comparison.reason) == (False, "too many columns look alike: name them")


def test_many_columns_that_are_the_same_are_no_riddle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that hold the same in every row are tried once."""
    monkeypatch.setattr(_columns, "MAX_ASSIGNMENTS", 100)
    expected = {"rows": [[0] * 12 + [1, 2], [0] * 12 + [2, 1]]}
    actual = {"rows": [[0] * 12 + [1, 1], [0] * 12 + [2, 2]]}
    reason = compare_tables(expected, actual, match="set").reason
    assert reason.startswith("no order of the columns fits")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"match": "Set"}, "unknown match mode 'Set': use scalar, set, ordered"),
        ({"match": None}, "unknown match mode None"),
        ({"match": ["set"]}, "unknown match mode"),
        ({"expected": {}}, "expected has no `rows`"),
        ({"actual": {"rows": {}}}, "actual has no `rows`"),
        ({"actual": {"rows": ["ab"]}}, "actual has no `rows`"),
        ({"actual": [[1]]}, "actual is"),
        ({"expected": {"columns": [1], "rows": []}}, "expected has columns"),
        ({"expected": {"columns": "ab", "rows": []}}, "expected has columns"),
        ({"match": "scalar", "expected": {"rows": [[1], [2]]}}, "a scalar is expected as one row"),
        ({"match": "scalar", "expected": {"rows": []}}, "a scalar is expected as one row"),
        ({"tolerance": 0.01}, "tolerance is 0.01: write a mapping"),
        ({"tolerance": {"numeric": -1}}, "tolerance of numeric is -1"),
        ({"tolerance": {"numeric": True}}, "tolerance of numeric is True"),
        ({"tolerance": {"numeric": "1"}}, "tolerance of numeric is '1'"),
        ({"tolerance": {"numeric": None}}, "tolerance of numeric is None"),
        ({"tolerance": {"relative": float("nan")}}, "tolerance of relative is nan"),
        ({"tolerance": {"relative": float("inf")}}, "tolerance of relative is inf"),
        ({"tolerance": {"absolute": 1}}, "unknown tolerance 'absolute': use numeric, relative, columns"),
        ({"tolerance": {"columns": {"b": 1}}}, "tolerance for an unknown column 'b'"),
        ({"tolerance": {"columns": {"a": -1}}}, "tolerance of column 'a' is -1"),
        ({"tolerance": {"columns": 1}}, "tolerance of columns is 1"),
        ({"actual": {"rows": [[{1}]]}}, "not a JSON value"),
        ({"actual": {"rows": [[{1: 2}]]}}, "not a JSON value"),
        ({"actual": {"rows": [[[float("nan")]]]}}, "JSON"),
    ],
    ids=count(),
)  # fmt: skip
def test_bad_input_is_a_value_error(arguments: dict[str, Any], message: str) -> None:
    """Whatever can't be compared is refused, with the remedy."""
    usual: dict[str, Any] = {
        "expected": {"columns": ["a"], "rows": [[1]]},
        "actual": {"columns": ["a"], "rows": [[1.5]]},
        "match": "set",
        "tolerance": None,
    }
    given = usual | arguments
    with pytest.raises(ValueError, match=re.escape(message)):
        compare_tables(given.pop("expected"), given.pop("actual"), **given)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("1e999999999", "1e999999998"),
        ("1e" + "9" * 5000, 1),
        (10**10_000, "1" + "0" * 10_000 + "1"),
        ("0." + "0" * 100_000 + "1", 0),
        (0, "9" * 100_000),
        ("+" * 100_000, "-" * 100_000),
        ([[[[]]]] * 1000, "[" * 100_000),
    ],
    ids=count(),
)
def test_monstrous_cells_differ_at_once(expected: object, actual: object) -> None:
    """Huge numbers and texts take no time and raise nothing."""
    start = time.perf_counter()
    for match in ("scalar", "set", "ordered"):
        comparison = compare_tables(
            rows(expected), rows(actual), match=match, tolerance={"numeric": 1, "relative": 9}
        )
        assert not comparison.passed
        assert len(comparison.reason) < 300
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("step", [0, 1, 2])
def test_chains_of_close_rows_are_matched_exactly(step: int) -> None:
    """Rows that each could take several partners are matched if, and only if, all find one."""
    n = 3_000
    expected = [[i / 100, i / 50] for i in range(n)]
    actual = [[(i + step) / 100, (i + step) / 50] for i in range(n)]
    tolerance = {"columns": {"a": 0.01, "b": 0.02}}
    comparison = compare_tables(
        {"columns": ["a", "b"], "rows": expected},
        {"columns": ["a", "b"], "rows": actual[::-1]},
        match="set",
        tolerance=tolerance,
    )
    assert comparison.passed == (step < 2)


def test_crowded_rows_are_matched() -> None:
    """Rows with hundreds of candidates each are matched, or found not to match, without listing them all."""
    grid = [[i % 40, i // 40] for i in range(1_600)]
    near = [[x + 0.4 - (y % 3) / 5, y - 0.4 + (x % 4) / 5] for x, y in grid]
    names = {"columns": ["x", "y"]}
    assert compare_tables(
        {**names, "rows": grid}, {**names, "rows": near[::-1]}, match="set", tolerance={"numeric": 8}
    ).passed
    far = [*near[1:], [100, 100]]
    assert not compare_tables(
        {**names, "rows": grid}, {**names, "rows": far}, match="set", tolerance={"numeric": 8}
    ).passed
