"""What scorers return, read as verdicts; the key of a judge's verdict."""

from __future__ import annotations

import pickle
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from pytest_ctxfp import Comparison, CtxfpError, GoldenCase, ScorerError, cached_scorer
from pytest_ctxfp._judging import judge_key
from pytest_ctxfp._scorers import (
    find_scorer,
    judge_opinion,
    opinion_from_dict,
    read_opinion,
)

CASE = GoldenCase.from_dict(
    {"id": "a", "question": "q", "result_kind": "text", "match": "tone", "expected": {"tone": "kind"}}
)


@pytest.mark.parametrize(
    ("returned", "min_score", "passed", "reason"),
    [
        (True, None, True, "scorer tone: passed"),
        (False, 0.1, False, "scorer tone: failed"),
        (1, None, True, "scorer tone: passed, score 1 of at least 1"),
        (0.99, None, False, "scorer tone: failed, score 0.99 of at least 1"),
        (Decimal("0.5"), 0.5, True, "scorer tone: passed, score 0.5 of at least 0.5"),
        (0, 0, True, "scorer tone: passed, score 0 of at least 0"),
        (Comparison(True, "kind", 0.2), None, True, "scorer tone: passed, score 0.2: kind"),
        (Comparison(True, "kind", 0.2), 0.3, False, "scorer tone: failed, score 0.2 of at least 0.3: kind"),
        (Comparison(False, "rude", 0.9), 0.3, False, "scorer tone: failed, score 0.9 of at least 0.3: rude"),
        (Comparison(False, ""), None, False, "scorer tone: failed"),
    ],
)
def test_verdicts(returned: Any, min_score: float | None, passed: bool, reason: str) -> None:
    """A bool is a verdict, a score is weighed, and a Comparison may need both."""
    opinion = read_opinion("tone", returned)
    assert opinion_from_dict(opinion.to_dict()) == opinion
    comparison = judge_opinion(replace(CASE, min_score=min_score), opinion)
    assert (comparison.passed, comparison.reason) == (passed, reason)


@pytest.mark.parametrize(
    "returned",
    [None, "yes", -0.1, 1.1, float("nan"), 10**400, [], object(), Comparison(True, "", 2), Comparison(1, "")],  # type: ignore[arg-type]
)
def test_no_verdicts(returned: Any) -> None:
    """Anything else is an error that names the scorer and what it may return; it pickles."""
    with pytest.raises(ScorerError, match="scorer 'tone' returned") as caught:
        read_opinion("tone", returned)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        {},
        {"passed": None, "score": None, "reason": ""},
        {"passed": 1, "score": None, "reason": ""},
        {"passed": True, "score": 2, "reason": ""},
        {"passed": True, "score": None, "reason": None},
    ],
)
def test_stored_verdicts_of_another_shape(stored: Any) -> None:
    """A stored verdict that is none is not used."""
    assert opinion_from_dict(stored) is None


@pytest.mark.parametrize(
    ("scorers", "reason"),
    [
        ({}, "nor a scorer of the fixture ctx_scorers .none."),
        ([], "ctx_scorers gave list: return a dict"),
        ({"exact": len}, "names a scorer 'exact', which is a match mode"),
        ({"tone": 3}, "scorer 'tone' of ctx_scorers gave 'int', which is not callable"),
        ({"tone": lambda question: question}, "asks for an argument 'question'"),
        ({"tone": cached_scorer(version="1")(lambda trace: trace)}, "asks for an argument 'trace'"),
    ],
)
def test_scorers_that_cannot_be_called(scorers: Any, reason: str) -> None:
    """What is wrong with the fixture is said before anybody is asked."""
    with pytest.raises(CtxfpError, match=reason):
        find_scorer(CASE, scorers, modes=("exact",))


@pytest.mark.parametrize("arguments", [{"version": ""}, {"version": 1}, {"version": "1", "model": None}])
def test_cached_scorer_takes_texts(arguments: Any) -> None:
    """Version and model are texts of at least one character."""
    with pytest.raises(TypeError, match="as a text"):
        cached_scorer(**arguments)


def test_key_of_a_verdict() -> None:
    """The key holds what determines a verdict, and neither ``min_score``, tags nor the case's id."""
    judge = cached_scorer(version="1", model="m")(lambda answer: answer)
    key = judge_key(judge, CASE, "x", sample=0)
    same = replace(CASE, id="b", min_score=0.5, tags=("t",), inputs={"a": 1}, line=7)
    assert judge_key(judge, same, "x", sample=0) == key
    others = [
        judge_key(judge, CASE, "y", sample=0),
        judge_key(judge, CASE, "x", sample=1),
        judge_key(judge, replace(CASE, question="r"), "x", sample=0),
        judge_key(judge, replace(CASE, expected={"tone": "rude"}), "x", sample=0),
        judge_key(judge, replace(CASE, match="style"), "x", sample=0),
        judge_key(cached_scorer(version="2", model="m")(judge.function), CASE, "x", sample=0),
        judge_key(cached_scorer(version="1", model="n")(judge.function), CASE, "x", sample=0),
        judge_key(cached_scorer(version="1", model="m")(lambda case: case), CASE, "x", sample=0),
    ]
    assert len({key, *others}) == len(others) + 1


def test_judge_is_called_as_its_function() -> None:
    """Outside of a run a cached scorer is the function it wraps."""
    judge = cached_scorer(version="1")(lambda answer: len(answer) / 10)
    assert judge("abcde") == 0.5
