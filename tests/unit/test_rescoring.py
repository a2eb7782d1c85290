"""Answers of an older report, scored by what is expected today."""

from __future__ import annotations

import pytest

from pytest_ctxfp import GoldenCase
from pytest_ctxfp._report import CaseReport, SampleReport
from pytest_ctxfp._rescoring import is_same_answer, judge_as_today
from pytest_ctxfp._suite import expectation_dict, expectation_sha


def make_report(case: GoldenCase, **facts: object) -> CaseReport:
    """Return a case's report with one failed answer."""
    defaults = {"state": "failed", "reason": "then", "origin": "miss", "key": "k"}
    return CaseReport(
        id=case.id,
        expectation=expectation_dict(case),
        expectation_sha=expectation_sha(case),
        samples=(SampleReport(**{**defaults, **facts}),),
    )


def golden(**facts: object) -> GoldenCase:
    """Return a golden case as a file gives it."""
    return GoldenCase.from_dict({"id": "a", "question": "q", **facts})


OLD = golden(match="scalar", expected={"rows": [[1]]})


def judge(after: GoldenCase, answer: object, /, **facts: object) -> str | None:
    """Return the verdict on an older answer, or None where it is unknown."""
    judged = judge_as_today(make_report(OLD, **{"answer": answer, **facts}), make_report(after))
    return None if judged is None else judged[0].state


@pytest.mark.parametrize(
    ("facts", "answer", "state"),
    [
        ({"match": "scalar", "expected": {"rows": [[2]]}}, {"rows": [[2]]}, "passed"),
        ({"match": "scalar", "expected": {"rows": [[2]]}}, {"rows": [[3]]}, "failed"),
        (
            {"match": "scalar", "expected": {"rows": [[2]]}, "tolerance": {"numeric": 1}},
            {"rows": [[3]]},
            "passed",
        ),
        (
            {"match": "set", "expected": {"columns": ["n"], "rows": [[1], [2]]}},
            {"columns": ["n"], "rows": [[2], [1]]},
            "passed",
        ),
        (
            {"match": "set", "expected": {"columns": ["n"], "rows": [[1]]}, "extra_columns": "allow"},
            {"columns": ["n", "m"], "rows": [[1, 7]]},
            "passed",
        ),
        ({"match": "scalar", "expected": {"rows": [[2]]}}, "no table at all", "failed"),
    ],
    ids=["meets", "misses", "tolerance", "set", "extra columns", "no table"],
)
def test_scored_by_the_report_alone(facts: dict, answer: object, state: str) -> None:
    """What a report carries of an expectation is enough to score an older answer, all options included."""
    assert judge(golden(**facts), answer) == state


@pytest.mark.parametrize(
    "facts",
    [
        {"match": "scalar", "expected_sql": "select 1"},
        {"result_kind": "verdict", "expected": True},
    ],
    ids=["by a query", "another kind"],
)
def test_unknown(facts: dict) -> None:
    """A query nobody runs now, and an answer of another kind, leave the verdict unknown."""
    assert judge(golden(**facts), {"rows": [[1]]}) is None


@pytest.mark.parametrize(
    "facts",
    [{"answer": None}, {"answer_cut": True}, {"state": "error"}, {"state": "skipped"}],
    ids=["not kept", "cut", "error", "skipped"],
)
def test_without_an_answer(facts: dict) -> None:
    """Without a whole answer there is no verdict to be had."""
    assert judge(golden(match="scalar", expected={"rows": [[2]]}), {"rows": [[2]]}, **facts) is None


@pytest.mark.parametrize(
    "expectation",
    [
        {},
        {"result_kind": "nonsense", "match": "scalar", "expected": {"rows": [[1]]}},
        {"result_kind": "table", "match": "scalar", "expected": {"rows": [1]}},
        {"result_kind": "table", "match": "scalar", "expected": {"rows": []}},
        {"result_kind": "table", "match": "nonsense", "expected": {"rows": [[1]]}},
        {"result_kind": "table", "match": "scalar", "expected": {"columns": 1, "rows": [[1]]}},
        {
            "result_kind": "table",
            "match": "scalar",
            "expected": {"rows": [[1]]},
            "tolerance": {"numeric": "x"},
        },
    ],
)
def test_damaged_expectations_are_unknown(expectation: dict) -> None:
    """An expectation from an edited report can't raise, and is not scored by halves."""
    before = CaseReport(
        id="a",
        expectation_sha="1",
        expectation={"result_kind": expectation.get("result_kind")},
        samples=(SampleReport(state="passed", answer={"rows": [[1]]}),),
    )
    after = CaseReport(
        id="a", expectation_sha="2", expectation=expectation, samples=(SampleReport(state="passed"),)
    )
    assert judge_as_today(before, after) is None


def test_the_same_expectation_is_not_scored_again() -> None:
    """The verdict of the report stands, whatever scoring would say today."""
    assert judge(OLD, {"rows": [[1]]}) == "failed"


@pytest.mark.parametrize(
    ("facts", "is_same"),
    [
        ({"origin": "hit"}, True),
        ({"origin": "miss"}, False),
        ({"origin": "hit", "key": "other"}, False),
        ({"origin": "hit", "recorded_at": "then"}, True),
        ({"origin": "hit", "recorded_at": "later"}, False),
    ],
)
def test_same_answer(facts: dict, is_same: bool) -> None:
    """A hit under the same key is the older answer unless it was recorded at another time."""
    old = SampleReport(state="passed", key="k", origin="miss", recorded_at="then")
    assert is_same_answer(old, SampleReport(**{"state": "failed", "key": "k", **facts})) is is_same
