"""``--ctx-on-miss=fail|skip``: no call, no credentials, the agent is not built."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project


@pytest.fixture
def unbuildable(project: Project) -> Project:
    """The project with an agent fixture that raises when it is built."""
    project.edit("conftest.py", "def ctx_agent():\n", "def ctx_agent():\n    raise RuntimeError('built!')\n")
    return project


def test_fail_makes_errors(unbuildable: Project, how: list[str]) -> None:
    """With an empty cache every item is an ERROR with the reason and the remedy; no agent is built."""
    result = unbuildable.run("--ctx-on-miss=fail", *how)
    result.assert_outcomes(errors=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "no stored answer (new case); asking would cost an unknown amount",
            "ask and store it: pytest golden.yaml::orders --ctx-cache --ctx-on-miss=call",
            "cache*replay, .ctxfp/traces",
            "answers*0 hit, 2 miss",
            "missed*2 new cases",
            "*asking would cost an unknown amount",
        ]
    )
    assert "built!" not in result.stdout.str()
    assert not (unbuildable.path / ".ctxfp").exists()


def test_skip_skips(unbuildable: Project, how: list[str]) -> None:
    """With an empty cache every item skips with the reason; no agent is built."""
    result = unbuildable.run("--ctx-on-miss=skip", "-rs", *how)
    result.assert_outcomes(skipped=2)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["SKIPPED*golden.yaml*no stored answer (new case)*"])
    assert "built!" not in result.stdout.str()


def test_hits_are_replayed_and_nothing_is_written(project: Project) -> None:
    """Stored answers are scored as usual; the estimate of a miss is the mean of what such answers cost."""
    project.edit("conftest.py", "import pytest\n", "import pytest\nfrom pytest_ctxfp import AgentResult\n")
    project.edit("conftest.py", "return answers[question]", "return AgentResult(answers[question], cost=0.5)")
    project.run("--ctx-cache")
    before = [(path.name, path.read_bytes()) for path in project.traces()]
    project.edit("golden.yaml", "How many orders?", "How many orders now?")
    project.calls()
    result = project.run("--ctx-on-miss=fail")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["no stored answer (question; context: Question (+4 bytes)); asking would cost about 0.5000 USD"]
    )
    assert project.calls() == []
    assert [(path.name, path.read_bytes()) for path in project.traces()] == before


@pytest.mark.parametrize("flag", ["--ctx-refresh", "--no-cache", "--no-ctx-cache"])
def test_contradiction_is_a_usage_error(project: Project, flag: str) -> None:
    """Asking for everything and allowing no call can't both be meant."""
    result = project.run("--ctx-on-miss=fail", flag)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *--ctx-on-miss=fail*"])


def test_unknown_value_is_a_usage_error(project: Project) -> None:
    """Another word is refused by the option parser, which names those there are."""
    result = project.run("--ctx-on-miss=ask")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--ctx-on-miss*call*fail*skip*"])


def test_corrupt_trace_is_said(project: Project) -> None:
    """Where the stored file is corrupt, the refusal says so and names the file."""
    project.run("--ctx-cache", "-k", "orders")
    [path] = project.traces()
    path.write_text("{")
    result = project.run("--ctx-on-miss=fail", "-k", "orders")
    result.assert_outcomes(errors=1, deselected=1)
    result.stdout.fnmatch_lines([f"no stored answer (*{path.name}: not JSON*"])
    result.stdout.fnmatch_lines(["answers*0 hit, 1 miss, 1 corrupt", f"warning*{path.name}: not JSON*"])
    assert path.read_text() == "{"
