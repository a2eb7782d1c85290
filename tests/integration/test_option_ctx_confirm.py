"""``--ctx-confirm``: a case that got worse under a changed key is asked again before it counts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import CaseSuite

OK, RED, USAGE = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.USAGE_ERROR


@pytest.fixture
def changed(suite: CaseSuite) -> CaseSuite:
    """Four cases with a baseline, and a rule that was edited since; what flips is left to each test."""
    suite.make(4)
    suite.record()
    suite.edit_rule()
    return suite


@pytest.mark.parametrize(
    ("n", "answers", "n_failed"),
    [(2, (0, 1, 0), 2), (1, (0, 0), 2), (9, (0, 1, 1, 1, 1, 0, 0, 0, 0, 0), 6)],
)
def test_most_of_all_samples_decide(
    changed: CaseSuite, n: int, answers: tuple[int, ...], n_failed: int
) -> None:
    """N further answers are asked for, for flips only, and most of all must fail."""
    changed.flip([2], *answers)
    result = changed.hold(f"--ctx-confirm={n}")
    result.assert_outcomes(passed=3, failed=1)
    assert result.ret == RED
    asked = [call for call in changed.calls() if call.startswith("c02")]
    assert asked == [f"c02#{sample}" for sample in range(n + 1)]
    result.stdout.fnmatch_lines([f"REGRESSION c02: *({n_failed} of {n + 1} samples failed)"])


def test_half_of_the_samples_are_not_most(changed: CaseSuite, how: list[str]) -> None:
    """A tie is noise."""
    changed.flip([2], 0, 0, 1, 1)
    result = changed.hold("--ctx-confirm=3", *how)
    result.assert_outcomes(passed=3, xfailed=1)
    assert result.ret == OK
    result.stdout.fnmatch_lines(["gate*GREEN", "NOISE*c02*(2 of 4 samples failed*"])


def test_without_confirming_one_answer_decides(changed: CaseSuite) -> None:
    """``--ctx-confirm=0`` asks nothing more: the flip is red, and said to rest on one answer."""
    changed.flip([2], 0, 1, 1, 1, 1)
    result = changed.hold("--ctx-confirm=0")
    result.assert_outcomes(passed=3, failed=1)
    assert result.ret == RED
    assert len(changed.calls()) == 4
    result.stdout.fnmatch_lines(["note*1 case not confirmed, one answer each*: c02"])


def test_confirming_answers_are_stored(changed: CaseSuite) -> None:
    """They are samples of their own: the next run replays them, and so does a run with more repeats."""
    changed.flip([2], 0, 1, 1, 1, 1)
    changed.hold().assert_outcomes(passed=3, xfailed=1)
    assert len(changed.calls()) == 4 + 4
    result = changed.hold()
    result.assert_outcomes(passed=3, xfailed=1)
    assert result.ret == OK
    assert changed.calls() == []
    changed.run("--ctx-cache", "--ctx-repeat=5", "-k", "c02")
    assert changed.calls() == []


def test_confirming_answers_are_in_the_report(changed: CaseSuite) -> None:
    """A report keeps them apart from the samples that make the verdict."""
    changed.flip([2], 0, 0, 0, 1, 0)
    changed.hold("--ctx-report=current.json")
    report = json.loads((changed.path / "current.json").read_text(encoding="utf-8"))
    case = next(case for case in report["cases"] if case["id"] == "c02")
    assert [sample["state"] for sample in case["confirming"]] == ["failed", "failed", "passed", "failed"]
    assert [sample["sample"] for sample in case["confirming"]] == [1, 2, 3, 4]
    assert case["samples"] == 1
    assert all(case["confirming"] == [] for case in report["cases"] if case["id"] != "c02")


def test_refused_misses_confirm_with_what_is_stored(changed: CaseSuite) -> None:
    """Where no agent may be called, stored answers alone confirm; without any, one answer decides."""
    changed.flip([2], 0)
    changed.run("--ctx-cache")
    changed.calls()
    result = changed.hold("--ctx-on-miss=fail")
    result.assert_outcomes(passed=3, failed=1)
    assert result.ret == RED
    result.stdout.fnmatch_lines(["note*1 case not confirmed, one answer each*: c02"])
    changed.flip([2], 0, 1, 1)
    changed.run("--ctx-cache", "--ctx-repeat=3", "-k", "c02")
    changed.calls()
    result = changed.hold("--ctx-on-miss=fail")
    result.assert_outcomes(passed=3, xfailed=1)
    assert result.ret == OK
    assert changed.calls() == []
    result.stdout.fnmatch_lines(["NOISE*c02*(1 of 3 samples failed*"])


@pytest.mark.parametrize(("n_calls", "n_weighed"), [(4, 1), (6, 3), (8, 5)])
def test_limit_of_calls_ends_confirming(changed: CaseSuite, n_calls: int, n_weighed: int) -> None:
    """``--ctx-max-calls`` holds for confirming too: what was asked so far decides."""
    changed.flip([3], 0)
    result = changed.hold(f"--ctx-max-calls={n_calls}")
    result.assert_outcomes(passed=3, failed=1)
    assert len(changed.calls()) == n_calls
    result.stdout.fnmatch_lines([f"REGRESSION c03: *({n_weighed} of {n_weighed} samples failed)"])


def test_limit_of_calls_holds_on_workers(changed: CaseSuite) -> None:
    """All workers together make no more calls than are allowed."""
    changed.flip([0, 1, 2, 3], 0)
    changed.hold("--ctx-max-calls=7", "-n2")
    assert len(changed.calls()) == 7


def test_error_while_confirming_is_no_answer(changed: CaseSuite) -> None:
    """An agent that raises while it confirms neither fails the case nor confirms it."""
    changed.flip([2], 0, None, 1, None, 1)
    result = changed.hold()
    result.assert_outcomes(passed=3, xfailed=1)
    assert result.ret == OK
    assert len(changed.calls()) == 4 + 4
    result.stdout.fnmatch_lines(["NOISE*c02*(1 of 3 samples failed*"])


def test_repeats_are_weighed_with_what_confirms(suite: CaseSuite) -> None:
    """With ``--ctx-repeat`` all samples of the run count, and the confirming ones come after them."""
    suite.make(2)
    suite.record("--ctx-repeat=2")
    suite.edit_rule()
    suite.flip([1], 0, 1, 0, 0)
    result = suite.hold("--ctx-repeat=2", "--ctx-confirm=2")
    result.assert_outcomes(passed=1, failed=1)
    assert [call for call in suite.calls() if call.startswith("c01")] == [f"c01#{i}" for i in range(4)]
    result.stdout.fnmatch_lines(["REGRESSION c01: *(3 of 4 samples failed)"])


def test_nothing_else_is_confirmed(suite: CaseSuite) -> None:
    """Flips on the same key, new cases and cases that failed before are asked once."""
    suite.make(3, wrong=[0])
    suite.record()
    suite.make(4, wrong=[0, 1, 3])
    suite.hold("--no-cache")
    assert suite.calls() == ["c00#0", "c01#0", "c02#0", "c03#0"]


@pytest.mark.parametrize("value", ["-1", "1.5", "many", "", "9" * 30])
def test_bad_value_is_a_usage_error(changed: CaseSuite, value: str) -> None:
    """What is no number of answers ends the run before it asks."""
    result = changed.hold(f"--ctx-confirm={value}")
    assert result.ret == USAGE
    assert changed.calls() == []
    result.stderr.fnmatch_lines(["*--ctx-confirm*write a whole number*"])
