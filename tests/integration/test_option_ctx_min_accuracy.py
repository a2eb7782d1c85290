"""``--ctx-min-accuracy``: the share that passes decides the exit status, not the single case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import CaseSuite

OK, RED, USAGE = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize(
    ("least", "how"),
    [
        ("0.8", "plain"),
        ("0.8", "xdist"),
        ("0.8", "without-xdist"),
        ("80%", "plain"),
        (".8", "plain"),
        ("0", "plain"),
        ("0.80", "plain"),
    ],
    indirect=["how"],
)
def test_reached_share_is_green(suite: CaseSuite, how: list[str], least: str) -> None:
    """Cases that fail are expected to, and a share that is reached, even just, leaves the run green."""
    suite.make(5, wrong=[1])
    result = suite.run(f"--ctx-min-accuracy={least}", "-rx", *how)
    result.assert_outcomes(passed=4, xfailed=1)
    assert result.ret == OK
    result.stdout.fnmatch_lines(["XFAIL*c01*counts for --ctx-min-accuracy"])
    result.stdout.no_fnmatch_line("*is below*")


@pytest.mark.parametrize("least", ["0.81", "81%", "1", "100%"])
def test_missed_share_is_red(suite: CaseSuite, least: str) -> None:
    """Below it the run fails, with a line that says by how much; the cases still don't fail one by one."""
    suite.make(5, wrong=[1])
    result = suite.run(f"--ctx-min-accuracy={least}")
    result.assert_outcomes(passed=4, xfailed=1)
    assert result.ret == RED
    shown = "100%" if least.startswith("1") else "81%"
    result.stdout.fnmatch_lines([f"accuracy 80% of 5 cases is below {shown}"])


def test_share_needs_no_keys(suite: CaseSuite) -> None:
    """Without the cache a share needs nothing of what keys are made of: a path that is wrong does no harm."""
    suite.make(2)
    suite.edit("pytest.ini", "ctx_agent_paths = agent", "ctx_agent_paths = nowhere")
    result = suite.run("--ctx-min-accuracy=1")
    result.assert_outcomes(passed=2)
    assert result.ret == OK


def test_share_of_a_tag(suite: CaseSuite) -> None:
    """A tag's share is over the cases that have it; several may be asked for, with one for all."""
    suite.make(6, wrong=[1])
    result = suite.run("--ctx-min-accuracy=even=1", "--ctx-min-accuracy=0.8")
    result.assert_outcomes(passed=5, xfailed=1)
    assert result.ret == OK
    result = suite.run("--ctx-min-accuracy=odd=0.7", "--ctx-min-accuracy=0.9")
    result.assert_outcomes(passed=5, xfailed=1)
    assert result.ret == RED
    result.stdout.fnmatch_lines(
        ["accuracy of odd 66.7% of 3 cases is below 70%", "accuracy 83.3% of 6 cases is below 90%"]
    )


@pytest.mark.parametrize(("least", "ret"), [("0.6666", OK), ("0.6667", RED), ("66.66%", OK), ("66.67%", RED)])
def test_shares_are_exact(suite: CaseSuite, least: str, ret: int) -> None:
    """2 of 3 is neither more nor less than two thirds."""
    suite.make(3, wrong=[1])
    assert suite.run(f"--ctx-min-accuracy={least}").ret == ret


def test_share_that_looks_alike_is_shown_apart(suite: CaseSuite) -> None:
    """A line that says what is below what never shows the same figure twice."""
    suite.make(3, wrong=[1])
    result = suite.run("--ctx-min-accuracy=0.6667")
    result.stdout.fnmatch_lines(["accuracy 66.667% of 3 cases is below 66.670%"])


def test_repeats_count_by_their_share(suite: CaseSuite) -> None:
    """Accuracy is the mean pass rate: a case that passes half the time counts half."""
    suite.make(2)
    suite.flip([1], 1, 0)
    arguments = ["--ctx-cache", "--ctx-repeat=2"]
    result = suite.run("--ctx-min-accuracy=0.75", *arguments)
    result.assert_outcomes(passed=1, xfailed=1)
    assert result.ret == OK
    result = suite.run("--ctx-min-accuracy=0.76", *arguments)
    assert result.ret == RED
    result.stdout.fnmatch_lines(["accuracy 75% of 2 cases is below 76%"])


def test_errors_always_fail(suite: CaseSuite) -> None:
    """An agent that raises fails the run, whatever the share; it is in neither side of it."""
    suite.make(4, wrong=[1])
    suite.flip([0], None)
    result = suite.run("--ctx-min-accuracy=0.6")
    result.assert_outcomes(passed=2, xfailed=1, errors=1)
    assert result.ret == RED
    result.stdout.no_fnmatch_line("*is below*")


def test_other_tests_still_fail(suite: CaseSuite) -> None:
    """The share stands for golden cases only."""
    suite.make(2, wrong=[1])
    suite.write("test_other.py", "def test_other(): assert 0\n")
    result = suite.run("--ctx-min-accuracy=0.5")
    result.assert_outcomes(passed=1, xfailed=1, failed=1)
    assert result.ret == RED


def test_no_case_is_red(suite: CaseSuite) -> None:
    """A share of nothing is not reached: not of no case, and not of a tag that no case has."""
    suite.write("test_other.py", "def test_other(): pass\n")
    result = suite.run("--ctx-min-accuracy=0.5")
    result.assert_outcomes(passed=1)
    assert result.ret == RED
    result.stdout.fnmatch_lines(["accuracy: no case has a verdict, 50% are asked for"])
    suite.make(2)
    result = suite.run("--ctx-min-accuracy=od=0.5")
    assert result.ret == RED
    result.stdout.fnmatch_lines(["accuracy of od: no case has a verdict, 50% are asked for"])


def test_python_tests(suite: CaseSuite) -> None:
    """A Python test that checks a case is judged so too; its own assertions still fail."""
    suite.make(4, wrong=[1])
    suite.write(
        "test_marked.py",
        """
import pytest

@pytest.mark.ctx_golden("golden.yaml")
def test_case(ctx_case, ctx_trace):
    ctx_trace(ctx_case).check()
    assert ctx_case.id != "c03"
""",
    )
    result = suite.run("--ctx-min-accuracy=0.75")
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["xfailed"], outcomes["failed"]) == (2, 1, 1)
    assert result.ret == RED
    result.stdout.no_fnmatch_line("*is below*")


def test_with_a_baseline_both_must_hold(suite: CaseSuite) -> None:
    """A regression is red above the share, and a missed share is red under a green gate."""
    suite.make(10, wrong=[0, 1])
    suite.record()
    result = suite.hold("--ctx-min-accuracy=0.8")
    result.assert_outcomes(passed=8, xfailed=2)
    assert result.ret == OK
    result = suite.hold("--ctx-min-accuracy=0.9")
    assert result.ret == RED
    result.stdout.fnmatch_lines(["gate*GREEN", "accuracy 80% of 10 cases is below 90%"])
    suite.edit_rule()
    suite.flip([5])
    result = suite.hold("--ctx-min-accuracy=0.5")
    result.assert_outcomes(passed=7, xfailed=3)
    assert result.ret == RED
    result.stdout.fnmatch_lines(["gate*RED: 1 case worse*c05"])


@pytest.mark.parametrize(
    "value",
    [
        "",
        "1.1",
        "101%",
        "-0.1",
        "much",
        "80",
        "nan",
        "1e-1",
        "1/2",
        "odd=",
        "odd=2",
        "%",
        "٠.٨",
        "0." + "1" * 99,
    ],
)
def test_bad_value_is_a_usage_error(suite: CaseSuite, value: str) -> None:
    """What is no share ends the run before it asks, with what to write instead."""
    suite.make(1)
    result = suite.run(f"--ctx-min-accuracy={value}")
    assert result.ret == USAGE
    assert suite.calls() == []
    result.stderr.fnmatch_lines(["*--ctx-min-accuracy*write a share from 0 to 1*"])
