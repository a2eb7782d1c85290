"""Copies of large golden files: what they give is what the file gives, or they are not used."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ctxfp import GoldenError, load_golden
from pytest_ctxfp._golden import load_with_copies
from pytest_ctxfp._golden_copies import WORTH_A_COPY, GoldenCopies
from pytest_ctxfp._model import GoldenCase, GoldenSet, ResultKind, Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PADDING = f"# {'-' * WORTH_A_COPY}\n"
CASES = """\
dataset: shop
context_version: 1234567
metadata: {since: 2024-01-01, parts: [1, 1.0, true, null]}
cases:
  - id: orders
    question: How many?
    tags: [easy, "1"]
    tolerance: {numeric: 0.01, columns: {n: 1}}
    expected: {columns: [n], rows: [[-0.0]]}
    marks: [slow]
    inputs: {history: [hi, {role: user}]}
    min_pass_rate: 0.8
  - {id: wide, question: Which?, match: set, expected: {rows: [[1, 1.0, true, null, "1", 1e300]]}}
  - {id: text, question: How long?, result_kind: text, match: contains, expected: ["30 days"], xfail: later}
  - {id: fresh, question: Is it?, result_kind: verdict, expected: warn}
  - {id: sql, question: How much?, expected_sql: select 1}
  - {id: nothing, question: What?, result_kind: json, expected: {table: [[1], []]}}
"""


@pytest.fixture
def golden_file(tmp_path: Path) -> Path:
    """A golden file that is worth a copy."""
    path = tmp_path / "golden.yaml"
    path.write_text(PADDING + CASES, encoding="utf-8")
    return path


@pytest.fixture
def copies(tmp_path: Path) -> GoldenCopies:
    """An empty folder of copies."""
    return GoldenCopies(lambda: tmp_path / "copies", version="1")


def spelled(golden: GoldenSet) -> str:
    """Return all that a golden set holds, types told apart."""
    values = [[(one.name, getattr(case, one.name)) for one in fields(GoldenCase)] for case in golden.cases]
    return repr((golden, values))


def only_file(folder: Path) -> Path:
    """Return the one copy that there is."""
    (found,) = (folder / "copies").iterdir()
    return found


def test_copy_gives_what_the_file_gives(golden_file: Path, copies: GoldenCopies) -> None:
    """A file read from its copy equals the one that was parsed, in every value and its type."""
    first = load_with_copies(str(golden_file), copies, must_be_golden=True)
    found = copies.find(str(golden_file), golden_file.read_text(encoding="utf-8"))
    assert first is not None
    assert found is not None
    assert spelled(found) == spelled(first) == spelled(load_golden(golden_file))


def test_changed_file_is_read_anew(golden_file: Path, copies: GoldenCopies) -> None:
    """A copy is of one text: after a change of one character the file itself is read, and copied anew."""
    load_with_copies(str(golden_file), copies, must_be_golden=True)
    golden_file.write_text((PADDING + CASES).replace("How many?", "How few?"), encoding="utf-8")
    for _ in range(2):
        golden = load_with_copies(str(golden_file), copies, must_be_golden=True)
        assert golden is not None
        assert golden.cases[0].question == "How few?"


def test_faults_are_told_each_time(golden_file: Path, copies: GoldenCopies) -> None:
    """A file with a fault is never copied: its fault is told as often as it is read."""
    golden_file.write_text(PADDING + CASES.replace("How many?", "{}"), encoding="utf-8")
    for _ in range(2):
        with pytest.raises(GoldenError, match="question"):
            load_with_copies(str(golden_file), copies, must_be_golden=True)


def test_small_and_foreign_files_have_no_copy(tmp_path: Path, copies: GoldenCopies) -> None:
    """A small file is parsed each time, and a large one of somebody else's stays theirs."""
    small, foreign = tmp_path / "golden_small.yaml", tmp_path / "golden_foreign.yaml"
    small.write_text(CASES, encoding="utf-8")
    foreign.write_text(f"{PADDING}theirs: [1, 2]\n", encoding="utf-8")
    assert load_with_copies(str(small), copies, must_be_golden=False) == load_golden(small)
    assert load_with_copies(str(foreign), copies, must_be_golden=False) is None
    assert not (tmp_path / "copies").exists()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: "",
        lambda _: "[]",
        lambda _: "[" * 100_000,
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"question"', '"other"'),
        lambda text: text.replace('"text"', '"no kind"'),
        lambda text: text.replace('"cases"', '"none"'),
        lambda text: json.dumps({**json.loads(text), "cases": 7}),
        lambda text: json.dumps({**json.loads(text), "cases": [7]}),
        lambda text: json.dumps({**json.loads(text), "cases": [{"id": "a", "question": "b", "table": 7}]}),
    ],
)
def test_copy_that_is_broken_is_as_none(
    golden_file: Path, copies: GoldenCopies, spoil: Callable[[str], str]
) -> None:
    """What is wrong with a copy is nobody's concern: the file itself is read, and copied anew."""
    expected = load_with_copies(str(golden_file), copies, must_be_golden=True)
    good = only_file(golden_file.parent).read_text()
    only_file(golden_file.parent).write_text(spoil(good))
    assert load_with_copies(str(golden_file), copies, must_be_golden=True) == expected
    assert only_file(golden_file.parent).read_text() == good


def test_copy_of_another_version_is_not_used(golden_file: Path, copies: GoldenCopies, tmp_path: Path) -> None:
    """Another version of the plugin may read a file otherwise, so its copies don't count."""
    load_with_copies(str(golden_file), copies, must_be_golden=True)
    text = golden_file.read_text(encoding="utf-8")
    assert copies.find(str(golden_file), text) is not None
    assert GoldenCopies(lambda: tmp_path / "copies", version="2").find(str(golden_file), text) is None


def test_place_that_cannot_be_written_costs_nothing(golden_file: Path, tmp_path: Path) -> None:
    """Where no copy can be kept, the file is read as without copies."""
    (tmp_path / "file").write_text("in the way")
    copies = GoldenCopies(lambda: tmp_path / "file" / "copies", version="1")
    assert load_with_copies(str(golden_file), copies, must_be_golden=True) == load_golden(golden_file)


def test_number_too_long_to_print_costs_nothing(golden_file: Path, copies: GoldenCopies) -> None:
    """A number that is read in hexadecimal, and that this interpreter doesn't print, only has no copy."""
    golden_file.write_text(f"{PADDING}{CASES}".replace("[1, 1.0", f"[0x{'f' * 600}, 1.0"), encoding="utf-8")
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        golden = load_with_copies(str(golden_file), copies, must_be_golden=True)
    finally:
        sys.set_int_max_str_digits(limit)
    assert golden is not None
    assert not (golden_file.parent / "copies").exists()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
TEXTS = st.text() | st.just("a\ud800")
TABLES = st.builds(
    Table,
    st.none() | st.lists(TEXTS, max_size=3).map(tuple),
    st.lists(st.lists(JSON, max_size=3).map(tuple), max_size=3).map(tuple),
)
GOLDEN_CASES = st.builds(
    GoldenCase,
    id=TEXTS,
    question=TEXTS,
    result_kind=st.sampled_from(ResultKind),
    expected=TABLES | JSON,
    tolerance=st.dictionaries(TEXTS, JSON, max_size=2),
    extra_columns=st.booleans(),
    ignore_case=st.booleans(),
    tags=st.lists(TEXTS, max_size=3).map(tuple),
    inputs=st.dictionaries(TEXTS, JSON, max_size=2),
    min_score=st.none() | st.floats(0, 1),
    skip=st.none() | TEXTS,
    marks=st.lists(TEXTS, max_size=2).map(tuple),
    line=st.integers(0),
    path=st.just("golden.yaml"),
)


@given(st.lists(GOLDEN_CASES, max_size=3), st.none() | TEXTS)
def test_no_value_is_changed_by_a_copy(
    tmp_path_factory: pytest.TempPathFactory, cases: list[GoldenCase], dataset: str | None
) -> None:
    """Whatever a case holds, its copy holds the same, types told apart."""
    golden = GoldenSet(path="golden.yaml", cases=tuple(cases), dataset=dataset)
    folder = tmp_path_factory.getbasetemp() / "of-any"
    copies = GoldenCopies(lambda: folder, version="1")
    copies.keep(golden, PADDING)
    found = copies.find("golden.yaml", PADDING)
    assert found is not None
    assert spelled(found) == spelled(golden)
