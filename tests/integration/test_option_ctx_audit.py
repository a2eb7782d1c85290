"""``--ctx-audit``: some stored answers are asked for again, and their verdicts compared."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import CaseSuite

OK, USAGE = pytest.ExitCode.OK, pytest.ExitCode.USAGE_ERROR


@pytest.fixture
def stored(suite: CaseSuite) -> CaseSuite:
    """Eight cases whose answers are stored."""
    suite.make(8)
    suite.run("--ctx-cache").assert_outcomes(passed=8)
    suite.calls()
    return suite


def test_so_many_hits_are_asked_again(stored: CaseSuite, how: list[str]) -> None:
    """N hits are asked again, the same ones in every process; all stay hits, and no trace is touched."""
    before = {path.name: path.read_bytes() for path in stored.traces()}
    result = stored.run("--ctx-cache", "--ctx-audit=3", *how)
    result.assert_outcomes(passed=8)
    assert stored.calls() == ["c00#0", "c02#0", "c05#0"]
    assert {path.name: path.read_bytes() for path in stored.traces()} == before
    result.stdout.fnmatch_lines(
        [
            "answers*8 hit, 0 miss*",
            "audit*3 of 3 stored answers that were asked again have the same verdict",
            "cost*in 3 calls*",
        ]
    )


def test_other_verdicts_are_said(stored: CaseSuite, how: list[str]) -> None:
    """An answer that would get another verdict today is listed in summary and report; the case passes."""
    stored.flip([2])
    result = stored.run("--ctx-cache", "--ctx-audit=3", "--ctx-report=run.json", "--ctx-report=run.md", *how)
    result.assert_outcomes(passed=8)
    assert result.ret == OK
    said = "2 of 3 stored answers that were asked again have the same verdict"
    result.stdout.fnmatch_lines([f"audit*{said}", "*c02: stored passed, asked again failed"])
    report = json.loads((stored.path / "run.json").read_text(encoding="utf-8"))
    assert report["notes"][:2] == [said, "c02: stored passed, asked again failed"]
    assert [case["pass"] for case in report["cases"]] == [True] * 8
    assert said in (stored.path / "run.md").read_text(encoding="utf-8")


def test_more_than_there_are(stored: CaseSuite) -> None:
    """An audit larger than the suite asks for all."""
    stored.run("--ctx-cache", "--ctx-audit=99").assert_outcomes(passed=8)
    assert len(stored.calls()) == 8


def test_only_hits_are_audited(suite: CaseSuite) -> None:
    """What was asked in this run is not asked twice."""
    suite.make(4)
    result = suite.run("--ctx-cache", "--ctx-audit=4")
    result.assert_outcomes(passed=4)
    assert len(suite.calls()) == 4
    result.stdout.no_fnmatch_line("audit*")


@pytest.mark.parametrize("arguments", [[], ["--ctx-cache", "--no-cache"], ["--ctx-refresh"]], ids=" ".join)
def test_nothing_is_audited_where_nothing_is_replayed(stored: CaseSuite, arguments: list[str]) -> None:
    """Without hits there is nothing to audit."""
    stored.run("--ctx-audit=3", *arguments).assert_outcomes(passed=8)
    assert len(stored.calls()) == 8


def test_error_does_not_fail_the_case(stored: CaseSuite) -> None:
    """An agent that raises when asked again is counted, and its case keeps its stored verdict."""
    stored.flip([2], None)
    result = stored.run("--ctx-cache", "--ctx-audit=3")
    result.assert_outcomes(passed=8)
    assert result.ret == OK
    result.stdout.fnmatch_lines(
        ["audit*2 of 2 stored answers*same verdict, 1 ended with an error", "cost*in 3 calls*"]
    )


def test_failing_answer_is_audited_too(suite: CaseSuite) -> None:
    """A stored answer that fails keeps failing; that it would pass today is said."""
    suite.make(2, wrong=[0])
    suite.run("--ctx-cache")
    suite.calls()
    suite.flip([0], 1)
    result = suite.run("--ctx-cache", "--ctx-audit=2")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["audit*1 of 2 *", "*c00: stored failed, asked again passed"])


def test_limit_of_calls_holds(stored: CaseSuite) -> None:
    """``--ctx-max-calls`` holds for the audit too, and skips no case that is stored."""
    result = stored.run("--ctx-cache", "--ctx-audit=8", "--ctx-max-calls=2")
    result.assert_outcomes(passed=8)
    assert len(stored.calls()) == 2


def test_audit_beside_a_baseline(stored: CaseSuite) -> None:
    """What an audit says is a note: it is no sample of the run, and changes no verdict of the gate."""
    stored.record()
    stored.flip([2])
    result = stored.hold("--ctx-audit=3")
    result.assert_outcomes(passed=8)
    assert result.ret == OK
    result.stdout.fnmatch_lines(["audit*2 of 3*", "gate*GREEN", "flips*0 pass -> fail*"])


def test_python_tests_are_audited(stored: CaseSuite) -> None:
    """Cases in Python tests are audited as golden items are."""
    stored.write(
        "test_marked.py",
        """
import pytest

@pytest.mark.ctx_golden("golden.yaml")
def test_case(ctx_case, ctx_trace):
    ctx_trace(ctx_case).check()
""",
    )
    result = stored.run("--ctx-cache", "--ctx-audit=3")
    assert result.parseoutcomes()["passed"] == 8
    assert len(stored.calls()) == 3
    result.stdout.fnmatch_lines(["audit*3 of 3*"])


@pytest.mark.parametrize("on_miss", ["fail", "skip"])
def test_audit_where_nobody_may_be_asked_is_a_usage_error(stored: CaseSuite, on_miss: str) -> None:
    """``--ctx-on-miss=fail`` asks nobody, so an audit beside it is refused."""
    result = stored.run("--ctx-cache", "--ctx-audit=3", f"--ctx-on-miss={on_miss}")
    assert result.ret == USAGE
    assert stored.calls() == []
    result.stderr.fnmatch_lines(["*--ctx-audit asks again and --ctx-on-miss=* drop one"])


@pytest.mark.parametrize("value", ["-1", "1.5", "all", ""])
def test_bad_value_is_a_usage_error(stored: CaseSuite, value: str) -> None:
    """What is no number of cases ends the run before it asks."""
    result = stored.run("--ctx-cache", f"--ctx-audit={value}")
    assert result.ret == USAGE
    assert stored.calls() == []
    result.stderr.fnmatch_lines(["*--ctx-audit*write a whole number*"])
