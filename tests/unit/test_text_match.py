"""The match modes of text answers."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pytest_ctxfp import CtxfpError, GoldenCase, GoldenError
from pytest_ctxfp._expectation import TEXT_MATCHES
from pytest_ctxfp._match import score_answer
from pytest_ctxfp._model import Comparison, ResultKind
from pytest_ctxfp._numbers import find_numbers
from pytest_ctxfp._text_match import TEXT_MODES

LONG = f"Dear customer, {'we are glad to help. ' * 50}You have 30 days. Bye."


def score(match: str, expected: Any, answer: str, **further: Any) -> Comparison:
    """Score an answer as a golden file's case would be."""
    case = {"id": "a", "question": "q", "result_kind": "text", "match": match, "expected": expected}
    return score_answer(GoldenCase.from_dict({**case, **further}), answer)


def test_modes_are_those_of_golden_files() -> None:
    """What a golden file knows as a mode of texts is what can be scored."""
    assert TEXT_MODES == TEXT_MATCHES


@pytest.mark.parametrize(
    ("match", "expected", "answer", "passed"),
    [
        ("exact", "Yes.", "\n Yes.\u2003", True),
        ("exact", "caf\u00e9", "cafe\u0301", True),
        ("exact", "Yes.", "yes.", False),
        ("exact", {"any": ["Yes", "No"]}, "No", True),
        ("contains", "30 days", "within 130 days", True),
        ("contains", ["30 days", "receipt"], "30 days with the receipt", True),
        ("contains", ["30 days", "receipt"], "30 days", False),
        ("contains", {"any": ["30 days", "a month"]}, "a month", True),
        ("contains", {"any": ["30 days", "a month"]}, "a week", False),
        ("contains", "caf\u00e9", "the cafe\u0301 is open", True),
        ("not_contains", "refund", "No money back", True),
        ("not_contains", ["refund", "money"], "No money back", False),
        ("regex", r"\b30 days\b", "within 130 days", False),
        ("regex", r"\b30 days\b", "within 30 days", True),
        ("regex", ["^a", "c$"], "abc", True),
        ("regex", "(?i)ABC", "abc", True),
        ("regex", "[[a]", "[", True),
        ("number", 99, "It is 99.00 AUD.", True),
        ("number", 99, "On 2024-06-30 it was 99", True),
        ("number", 99, "It was 99 on 2024-06-30", True),
        ("number", 99, "99, then 98", False),
        ("number", 1204, "$1,204", True),
        ("number", 5, "5%", True),
        ("number", "-5", "\u22125", True),
        ("number", {"any": [1, 2]}, "2", True),
        ("number", 9007199254740993, "9007199254740992", False),
        ("number", 9007199254740993, "9007199254740993", True),
        ("number", 0.1, "0.1000", True),
        ("number", 0.1, "0.10000000000000000001", False),
    ],
)
def test_modes(match: str, expected: Any, answer: str, passed: bool) -> None:
    """Each mode looks at the stripped answer in NFC, for a text, all of a list or any of them."""
    assert score(match, expected, answer).passed is passed


@pytest.mark.parametrize("match", ["exact", "contains", "regex"])
def test_ignore_case(match: str) -> None:
    """``ignore_case`` holds in every mode that compares letters, also where folding lengthens them."""
    assert score(match, "straße", "STRASSE" if match != "regex" else "STRAßE", ignore_case=True).passed
    assert not score(match, "abc", "ABC").passed


def test_ignore_case_of_what_may_not_be_there() -> None:
    """``not_contains`` under ``ignore_case`` finds other letters too."""
    assert score("not_contains", "Refund", "no refund").passed
    assert not score("not_contains", "Refund", "no refund", ignore_case=True).passed


def test_tolerance_of_numbers() -> None:
    """A number is compared within the tolerance of its case, exactly as decimals."""
    assert score("number", 1.0, "1.01", tolerance={"numeric": 0.01}).passed
    assert not score("number", 1.0, "1.011", tolerance={"numeric": 0.01}).passed
    assert score("number", 200, "about 202", tolerance={"relative": 0.01}).passed
    with pytest.raises(CtxfpError, match="unknown column 'n'"):
        score("number", 1, "1", tolerance={"columns": {"n": 1}})


@pytest.mark.parametrize(
    ("match", "expected", "answer", "reason"),
    [
        ("exact", "a", "b", "expected 'a', actual 'b'"),
        ("contains", "x", "abc", "'x' is not in the answer 'abc'"),
        (
            "contains",
            "B",
            "abc",
            "'B' is not in the answer 'abc'; it is there in other letters: set ignore_case: true",
        ),
        ("contains", {"any": ["x", "y"]}, "abc", "none of 2 fits; 'x' is not in the answer 'abc'"),
        ("not_contains", "b", "abc", "'b' is in the answer: 'abc'"),
        ("regex", "x+", "abc", "nothing in the answer matches 'x+': 'abc'"),
        ("number", 99, "98", "expected 99, actual '98' (off by 1)"),
        (
            "number",
            99,
            "1 or $98",
            "expected 99, actual '$98' (off by 1); the last of 2 numbers in the answer",
        ),
        ("number", 99, "none", "expected 99, no number in the answer 'none'"),
        ("contains", "x", "a\nb\u202e\ud800", r"'x' is not in the answer 'a\nb\u202e\ud800'"),
    ],
)
def test_reasons(match: str, expected: Any, answer: str, reason: str) -> None:
    """A reason says what was sought and where, on one line."""
    comparison = score(match, expected, answer)
    assert (comparison.passed, comparison.reason) == (False, reason)


@pytest.mark.parametrize("match", ["exact", "contains", "regex", "number"])
def test_long_answers_are_shown_by_head_and_tail(match: str) -> None:
    """Of a long answer the reason shows both ends and the length, and stays short."""
    reason = score(match, "1" if match == "number" else "nowhere", LONG.replace("30", "no")).reason
    assert "Dear customer" in reason
    assert "Bye." in reason
    assert f"({len(LONG):,} characters)" in reason
    assert len(reason) < 500


def test_long_texts_differ_somewhere() -> None:
    """Two long texts are told apart by the place where they begin to differ."""
    reason = score("exact", LONG, LONG.replace("30", "31")).reason
    assert f"they differ from character {LONG.index('30') + 2:,} on: '1 days. Bye.'" in reason


@pytest.mark.parametrize(
    ("match", "expected", "reason"),
    [
        ("regex", "(", "the regular expression '(' is none: missing ), unterminated subpattern"),
        ("regex", ["a", "a{99999999999}"], "is none"),
        ("number", "many", "`expected` is the text 'many': match number wants one"),
        ("number", [1, "2024-01-01"], "'2024-01-01': match number wants one"),
        ("not_contains", {"any": ["a"]}, "`expected` is a mapping: write a text, or a list of texts"),
        ("contains", {"some": ["a"]}, "write a text, a list of texts, or {any: [...]}"),
    ],
)
def test_bad_expectations_are_faults_of_the_file(match: str, expected: Any, reason: str) -> None:
    """What a mode can't look for is refused when the golden file is read."""
    with pytest.raises(GoldenError) as caught:
        score(match, expected, "")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("match", "expected"),
    [("regex", "("), ("number", "x"), ("contains", None), ("contains", []), ("exact", [[1]])],
)
def test_bad_expectations_of_cases_made_in_python(match: str, expected: Any) -> None:
    """A case that no file was read for is refused when it is scored, by its name."""
    case = GoldenCase(id="a", question="q", result_kind=ResultKind.TEXT, match=match, expected=expected)
    with pytest.raises(CtxfpError, match="case 'a': "):
        score_answer(case, "x")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("On 2024-06-30 (Q2) we had 1,204 orders, +3.5%", ["1,204", "+3.5"]),
        ("2024-06-30T17:00:00Z, 30/06/2024, 30.6.2024, 17:00, 30 June 2024, June 3, 2024, May 2024", []),
        ("1.2.3, 192.168.1.1, v2.0, gpt-4.1, Q3, 2nd, 5kg", []),
        ("1.234,56 and 1,2 and 12,34", []),
        ("$-5.00 -$7 10-20 (8) .5 5.", ["$-5.00", "-$7", "10", "20", "8", ".5", "5."]),
        ("1e3 1e999 -1E-2", ["1e3", "-1E-2"]),
        ("\u517199\u4e2a, \u20ac1,204.50", ["99", "\u20ac1,204.50"]),
        ("\u0663 \u00bd \u00b2", []),
    ],
)
def test_numbers_in_texts(text: str, numbers: list[str]) -> None:
    """Decimals count, with thousands commas and currency signs; dates, times, versions and words don't."""
    assert [number.written for number in find_numbers(text)] == numbers


@pytest.mark.parametrize(
    "piece", ["1.", "1", "a-", "1,", "1 June ", "+-$", "2024-1-", "1:11", "9" * 5000 + " "]
)
def test_numbers_of_hostile_texts_are_found_in_time(piece: str) -> None:
    """Whatever the text is, looking for numbers takes time in proportion to its length."""
    started = time.perf_counter()
    list(find_numbers(piece * (200_000 // len(piece))))
    assert time.perf_counter() - started < 5
