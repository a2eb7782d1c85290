"""What ``ctxfp plan`` says about the report of a run that asked nobody."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp import RunReport
from pytest_ctxfp._cli import main, plan
from pytest_ctxfp._cli.plan import make_plan, plan_lines, plan_to_json
from pytest_ctxfp._report import CaseReport, SampleReport
from pytest_ctxfp._report_json import report_to_json

if TYPE_CHECKING:
    from collections.abc import Sequence


def case(case_id: str, *samples: SampleReport) -> CaseReport:
    """Return a case of a report."""
    return CaseReport(id=case_id, file="golden.yaml", samples=samples)


def missed(why: str, cost: float | None = None, sample: int = 0) -> SampleReport:
    """Return a sample that was skipped because its answer isn't stored."""
    return SampleReport(state="skipped", sample=sample, why=(why,), estimated_cost=cost)


REPORT = RunReport(
    cases=(
        case("a", missed("context: Rules", 0.02), missed("context: Rules", 0.04, 1)),
        case("b", missed("new case")),
        case("c", SampleReport(state="passed", origin="hit"),
             SampleReport(state="failed", origin="hit", sample=1)),
        case("d", SampleReport(state="error", reason="boom\x1b[2J")),
        case("e", SampleReport(state="skipped", reason="too slow")),
    ),
    complete=False,
)  # fmt: skip


def test_misses_are_grouped_by_their_reason_with_what_they_cost() -> None:
    """The most frequent reason comes first, an unknown cost is said and not taken for zero."""
    assert plan_lines(make_plan(REPORT)) == [
        "would ask 3 times: about 0.0600 USD, 1 of unknown cost",
        "  2  context: Rules: about 0.0600 USD",
        "  1  new case: unknown cost",
        "answered from the cache: 2",
        "errors: 1, which may ask too once they are mended",
        r"  d: boom\x1b[2J",
        "skipped for other reasons: 1",
        "the run was cut short: there may be more",
    ]


def test_a_plan_as_json() -> None:
    """A program gets the same figures, with null for a cost that nobody knows."""
    said = plan_to_json(make_plan(REPORT))
    assert (said["asks"], said["unknown_costs"], said["cached"], said["skipped"]) == (3, 1, 2, 1)
    assert said["groups"][1] == {
        "why": "new case", "asks": 1, "estimated_cost": None, "unknown_costs": 1, "cases": ["b"]
    }  # fmt: skip
    assert said["groups"][0]["cases"] == ["a"]


@pytest.fixture
def _no_pytest(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[list[str]]:
    """Let the test's report be what the run of pytest writes; return the commands."""
    commands: list[list[str]] = []

    def run(command: Sequence[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        commands.append(list(command))
        path = next(word for word in command if word.startswith("--ctx-report=")).partition("=")[2]
        Path(path).write_text(report_to_json(request.param), encoding="utf-8")
        return subprocess.CompletedProcess(command, 0, b"", b"")

    monkeypatch.setattr(plan.subprocess, "run", run)
    return commands


@pytest.mark.parametrize(
    ("_no_pytest", "code"),
    [(REPORT, 1), (RunReport(cases=(case("c", SampleReport(state="failed", origin="hit")),)), 0)],
    indirect=["_no_pytest"],
)
def test_the_exit_status_says_whether_anything_would_be_asked(
    _no_pytest: list[list[str]],
    code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All arguments go to pytest, also those that look like options of ours; 0 says nothing is asked."""
    assert main(["plan", "--json", "tests", "-k", "x", "--json"]) == code
    assert capsys.readouterr().out.startswith("{")
    assert main(["plan", "--", "-x", "--version"]) == code
    (first, second) = _no_pytest
    assert first[:3] == [sys.executable, "-m", "pytest"]
    assert {"--ctx-cache", "--ctx-on-miss=skip", "-q"} < set(first)
    assert first[-4:] == ["tests", "-k", "x", "--json"]
    assert second[-2:] == ["-x", "--version"]


def test_a_pytest_that_cannot_run_is_exit_2_and_its_words_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong usage is no plan: what pytest printed says why."""
    monkeypatch.chdir(tmp_path)
    assert main(["plan", "--no-such-flag"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("ctxfp: plan: pytest ended with status 4 (wrong usage)\n")
    assert "--no-such-flag" in err


def test_help_is_ours(capsys: pytest.CaptureFixture[str]) -> None:
    """The help of the command is not that of pytest."""
    assert main(["plan", "--help"]) == 0
    assert "ctxfp plan tests/golden -k refund" in capsys.readouterr().out
