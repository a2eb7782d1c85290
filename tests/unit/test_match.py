"""The verdict on an answer, fresh or stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ctxfp._answer import take_answer
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._match import rescore, score_answer
from pytest_ctxfp._model import GoldenCase, ResultKind, Table
from pytest_ctxfp._trace import Trace

if TYPE_CHECKING:
    from pytest_ctxfp._model import JSONValue

_DATA = Path(__file__).parent.parent / "data" / "rescore.jsonl"
_VECTORS = [json.loads(line) for line in _DATA.read_text(encoding="utf-8").splitlines()]


def _trace(result: JSONValue, *, raw: str | None = None, status: Any = "ok") -> Trace:
    return Trace(
        case_id="q1",
        agent_sha="a",
        model="m",
        context_sha="c",
        question="?",
        result=result,
        latency_ms=1,
        raw=raw,
        status=status,
    )


def _table_case(cell: JSONValue = 42, **further: Any) -> GoldenCase:
    return GoldenCase(id="q1", question="?", expected=Table(("n",), ((cell,),)), **further)


def _verdict_case(cell: JSONValue = True, field: str = "fresh") -> GoldenCase:
    return _table_case(cell, result_kind=ResultKind.VERDICT, verdict_field=field)


@pytest.mark.parametrize("vector", _VECTORS, ids=[vector["name"] for vector in _VECTORS])
def test_vectors(vector: dict[str, Any]) -> None:
    """A stored value is scored against its case, or the case has to run again."""
    case = GoldenCase.from_dict(vector["input"]["case"])
    comparison = rescore(_trace(vector["input"]["result"]), case)
    expected = vector["expected"]
    assert (comparison and {"pass": comparison.passed}) == expected


def test_table() -> None:
    """A table is compared under the case's mode, tolerance and rule for further columns."""
    near: JSONValue = {"columns": ["n"], "rows": [[42.5]]}
    wide: JSONValue = {"columns": ["x", "n"], "rows": [["a", 42]]}
    assert not score_answer(_table_case(), near).passed
    assert score_answer(_table_case(tolerance={"numeric": 1}), near).passed
    assert not score_answer(_table_case(match="set"), wide).passed
    assert score_answer(_table_case(match="set", extra_columns=True), wide).passed


@pytest.mark.parametrize(
    ("expected", "actual", "passed", "reason"),
    [
        (True, True, True, "fresh: expected true, actual true"),
        (True, False, False, "fresh: expected true, actual false"),
        (False, False, True, "fresh: expected false, actual false"),
        ("true", True, True, 'fresh: expected "true", actual true'),
        (1, True, False, "fresh: expected 1, actual true"),
    ],
)
def test_fresh(expected: JSONValue, actual: bool, passed: bool, reason: str) -> None:
    """A verdict's freshness is a boolean, and the reason says both sides."""
    comparison = score_answer(_verdict_case(expected), {"verdict": {"fresh": actual}})
    assert (comparison.passed, comparison.reason) == (passed, reason)


@pytest.mark.parametrize(
    ("actual", "passed", "reason"),
    [
        ("critical", True, 'severity: expected "critical", actual "critical"'),
        (" critical\n", True, 'severity: expected "critical", actual " critical\\n"'),
        ("Critical", False, 'severity: expected "critical", actual "Critical"'),
        ("\ud800\u202e", False, 'severity: expected "critical", actual "\\ud800\\u202e"'),
    ],
)
def test_severity(actual: str, passed: bool, reason: str) -> None:
    """A severity is a label, and whatever it holds the reason is one printable line."""
    comparison = score_answer(
        _verdict_case("critical", "severity"), {"blocks": [{"type": "status", "severity": actual}]}
    )
    assert (comparison.passed, comparison.reason) == (passed, reason)


@pytest.mark.parametrize(
    ("case", "value", "reason"),
    [
        (_table_case(), None, "no table in the answer: 'null'"),
        (_table_case(), {"rows": [1]}, "no table in the answer: '{\"rows\": [1]}'"),
        (_verdict_case(), {"blocks": []}, "fresh: expected true, the answer has none: '{\"blocks\": []}'"),
        (_verdict_case("a", "severity"), None, "severity: expected \"a\", the answer has none: 'null'"),
    ],
)
def test_another_shape(case: GoldenCase, value: JSONValue, reason: str) -> None:
    """A value of another shape fails when it is scored, and makes a stored case run again."""
    comparison = score_answer(case, value)
    assert (comparison.passed, comparison.reason) == (False, reason)
    assert rescore(_trace(value), case) is None


def test_unparseable_fails() -> None:
    """Prose fails with its beginning in the reason, and the case doesn't run again."""
    comparison = rescore(_trace(None, raw="I don't\nknow \ud800", status="unparseable"), _table_case())
    assert comparison is not None
    assert not comparison.passed
    assert comparison.reason == 'no table in the answer: "I don\'t\\nknow \\ud800"'


@pytest.mark.parametrize("raw", ["x" * 10_000, "\n" * 10_000, "\u2028" * 10_000])
def test_reason_stays_short(raw: str) -> None:
    """The reason is one line of bounded length, however long the answer is."""
    comparison = rescore(_trace(None, raw=raw, status="unparseable"), _table_case())
    assert comparison is not None
    assert len(comparison.reason.splitlines()) == 1
    assert len(comparison.reason) < 600


def test_unparseable_is_looked_at_again() -> None:
    """What today's extraction finds in the text of an unparseable trace is scored."""
    trace = _trace(None, raw='{"rows": [[42]]}', status="unparseable")
    passed = rescore(trace, _table_case())
    failed = rescore(trace, _table_case(43))
    assert passed is not None
    assert failed is not None
    assert (passed.passed, failed.passed) == (True, False)
    unread = rescore(_trace(None, status="unparseable"), _table_case())
    assert unread is not None
    assert not unread.passed


def test_verdict_without_the_field_is_not_paid_twice() -> None:
    """An envelope without the case's field is stored such that it fails again, not runs again."""
    answer = take_answer({"blocks": []}, "verdict", verdict_field="fresh")
    comparison = rescore(_trace(answer.value, raw=answer.raw, status=answer.status), _verdict_case())
    assert comparison is not None
    assert not comparison.passed


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (_table_case(result_kind=ResultKind.TEXT), "'q1': match 'scalar' is no mode of text answers"),
        (_table_case(result_kind=ResultKind.JSON), "'q1': match 'scalar' is no mode of json answers"),
        (_table_case(match="my_scorer"), "'q1': .*'my_scorer'"),
        (GoldenCase(id="q1", question="?", expected_sql="select 1"), "run its expected_sql first"),
        (GoldenCase(id="q1", question="?"), "add expected"),
        (_verdict_case(field="age"), "'age' is no verdict field"),
        (
            GoldenCase(id="q1", question="?", expected=Table(None, ()), result_kind=ResultKind.VERDICT),
            "one cell",
        ),
    ],
)
def test_cases_that_cannot_be_scored(case: GoldenCase, message: str) -> None:
    """A case that can't be scored is an error that names it, never a verdict."""
    value: JSONValue = {"rows": [[42]], "verdict": {"fresh": True}}
    with pytest.raises(CtxfpError, match=message):
        score_answer(case, value)
    with pytest.raises(CtxfpError, match=message):
        rescore(_trace(value), case)


def test_answer_is_taken_from_the_text_when_the_kind_changes() -> None:
    """A case whose kind was edited is scored by what today's kind finds in the stored text."""
    raw = 'Prose.\n```json\n{"rows": [[42]]}\n```'
    text = GoldenCase(id="q1", question="?", result_kind=ResultKind.TEXT, match="contains", expected="Prose")
    json_case = GoldenCase(id="q1", question="?", result_kind=ResultKind.JSON, match="exact", expected=[1])
    found = rescore(_trace({"rows": [[42]]}, raw=raw), text)
    assert found is not None
    assert found.passed
    found = rescore(_trace(raw, raw=raw), _table_case())
    assert found is not None
    assert found.passed
    assert rescore(_trace("Prose.", raw="Prose."), _table_case()) is None
    found = rescore(_trace({"rows": []}, raw='{"rows": []} and\n```\n[1]\n```'), json_case)
    assert found is not None
    assert found.passed


def test_null_is_a_json_answer_and_prose_is_none() -> None:
    """An answer of null passes where null is expected; prose is no JSON and fails."""
    case = GoldenCase(id="q1", question="?", result_kind=ResultKind.JSON, match="exact", expected=None)
    null, prose = take_answer("null", "json"), take_answer("I don't know", "json")
    assert (null.status, prose.status) == ("ok", "unparseable")
    passed = rescore(_trace(null.value, raw=null.raw, status=null.status), case)
    failed = rescore(_trace(prose.value, raw=prose.raw, status=prose.status), case)
    assert passed is not None
    assert failed is not None
    assert (passed.passed, failed.passed) == (True, False)
    assert failed.reason == 'no json in the answer: "I don\'t know"'
