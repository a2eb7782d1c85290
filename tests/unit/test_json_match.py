"""The match modes of JSON answers, and where in a text the JSON is found."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ctxfp import CtxfpError, GoldenCase
from pytest_ctxfp._answer import take_answer
from pytest_ctxfp._json_answer import find_json
from pytest_ctxfp._match import score_answer

if TYPE_CHECKING:
    from pytest_ctxfp._model import Comparison


def score(match: str, expected: Any, answer: Any, **further: Any) -> Comparison:
    """Score a value as a golden file's case would be."""
    case = {"id": "a", "question": "q", "result_kind": "json", "match": match, "expected": expected}
    return score_answer(GoldenCase.from_dict({**case, **further}), answer)


@pytest.mark.parametrize(
    ("expected", "answer", "exact", "subset"),
    [
        ({"a": 1}, {"a": 1}, True, True),
        ({"a": 1}, {"a": 1, "b": 2}, False, True),
        ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 2, "d": 3}]}}, False, True),
        ([1, 2], [1, 2, 3], False, False),
        ([1, 2], [2, 1], False, False),
        ({"a": 1}, {}, False, False),
        (1, 1.0, True, True),
        (1, "1.0", True, True),
        ("1", 1, False, False),
        (1, True, False, False),
        (True, 1, False, False),
        (True, "true", False, False),
        (None, None, True, True),
        (None, 0, False, False),
        ("a", "a ", False, False),
        ({}, [], False, False),
        ({}, {"a": 1}, False, True),
    ],
)
def test_modes(expected: Any, answer: Any, exact: bool, subset: bool) -> None:
    """Numbers equal by value, other leaves exactly; only objects under ``subset`` may hold more."""
    assert score("exact", expected, answer).passed is exact
    assert score("subset", expected, answer).passed is subset


def test_tolerance() -> None:
    """Numbers anywhere in the value are compared within the tolerance."""
    assert score("exact", {"a": [1.0]}, {"a": [1.01]}, tolerance={"numeric": 0.01}).passed
    assert not score("exact", {"a": [1.0]}, {"a": [1.02]}, tolerance={"numeric": 0.01}).passed
    with pytest.raises(CtxfpError, match="unknown column"):
        score("exact", 1, 1, tolerance={"columns": {"n": 1}})


@pytest.mark.parametrize(
    ("expected", "answer", "reason"),
    [
        ({"a": {"b c": [3]}}, {"a": {"b c": [4]}}, '$.a["b c"][0]: expected 3, actual 4 (off by 1)'),
        (
            {"a": 1},
            {"b": 1, "c": 2},
            (
                '$.a is missing (keys there: "b", "c"); $.b is not expected: 1; match: '
                "subset allows it; $.c is not expected: 2; match: subset allows it"
            ),
        ),
        ([1], [], "$: expected a list of 1, actual 0: []"),
        (None, "x\u202e", '$: expected null, actual "x\\u202e"'),
        (
            [1, 2, 3, 4, 5],
            [0] * 5,
            (
                "$[0]: expected 1, actual 0 (off by 1); $[1]: expected 2, actual 0 (off by 2); "
                "$[2]: expected 3, actual 0 (off by 3); and more"
            ),
        ),
    ],
)
def test_reasons(expected: Any, answer: Any, reason: str) -> None:
    """A reason names the first places that differ."""
    comparison = score("exact", expected, answer)
    assert (comparison.passed, comparison.reason) == (False, reason)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        (" [1, 2]\n", [1, 2]),
        ('"x"', "x"),
        ("null", None),
        ('So: {"a": 1} or {"a": 2}.', {"a": 2}),
        ('```json\n[1]\n```\nor {"a": 2}', [1]),
        ("```json\n[1]\n```\nthen\n```\n[2]\n```\n", [2]),
        ("```json\n[1]\n```\n```sql\nselect 1, 2\n```\n", [1]),
        ('```\nx = {"a": 1}\n```\n', {"a": 1}),
        ("~~~\n7\n~~~", 7),
        ("```json\n[1]", [1]),
    ],
)
def test_found(text: str, value: Any) -> None:
    """JSON is the last fenced block that holds some, else the whole text, else the last object."""
    found = find_json(text)
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "prose",
        "see [1]",
        "NaN",
        "1e999",
        "{",
        '{"a": 1e999}',
        '"\\ud800"',
        '"\ud800"',
        '1], "": [2',
        "[" * 100_000,
        "[" * 200 + "]" * 200,
        "9" * 5000,
    ],
)
def test_not_found(text: str) -> None:
    """What is no JSON that can be stored is none, however it looks."""
    assert find_json(text) is None
    assert take_answer(text, "json").status == "unparseable"


@pytest.mark.parametrize("piece", ["```\n[\n", '```\n{"a": ', "```\n```\n", '{"a":[', "```x\n{}\n"])
def test_hostile_texts_are_read_in_time(piece: str) -> None:
    """Many fences and openings take time in proportion to their length."""
    started = time.perf_counter()
    find_json(piece * (300_000 // len(piece)))
    assert time.perf_counter() - started < 8
