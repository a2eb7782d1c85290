"""Counting tokens in a run: ini ``ctx_tokens``, the hook, token deltas and budgets of snapshots."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project

TEST = """
import pathlib
HERE = pathlib.Path(__file__).parent

def test_context(ctx_snapshot):
    ctx_snapshot.check((HERE / "context.md").read_text()BUDGET)
"""
CONTEXT = "## Identity\nYou answer.\n\n## Project Facts\n- one fact\n"


def write_suite(project: Project, *, budget: str = "", ini: str = "") -> None:
    """Write a suite of one snapshot test."""
    project.write("pytest.ini", f"[pytest]\n{ini}\n")
    project.write("test_context.py", TEST.replace("BUDGET", budget))
    project.write("context.md", CONTEXT)


@pytest.mark.parametrize(
    ("ini", "says"),
    [("", "~+3 tokens"), ("ctx_tokens = estimate", "~+3 tokens"), ("ctx_tokens = off", None)],
)
def test_snapshot_failures_show_token_deltas(empty_project: Project, ini: str, says: str | None) -> None:
    """A changed layer's row says by how many tokens it grew, marked as an estimate; ``off`` says none."""
    write_suite(empty_project, ini=ini)
    empty_project.run("--ctx-snapshot-create")
    empty_project.edit("context.md", "- one fact\n", "- one fact\n- another\n")
    result = empty_project.run()
    result.stdout.fnmatch_lines([f"E*~ Project Facts *{says or ''}*"])
    assert (" tokens" in result.stdout.str()) is (says is not None)


def test_a_hook_counts_exactly(empty_project: Project, how: list[str]) -> None:
    """A hook's numbers replace the estimate, and are shown without its mark."""
    write_suite(empty_project)
    empty_project.write("conftest.py", "def pytest_ctxfp_count_tokens(text): return len(text.split())\n")
    empty_project.run("--ctx-snapshot-create", *how)
    empty_project.edit("context.md", "- one fact\n", "- one fact\n- and another one\n")
    empty_project.run(*how).stdout.fnmatch_lines(["E*~ Project Facts *, +4 tokens"])


def test_budget_fails_before_anything_is_stored(empty_project: Project) -> None:
    """``budget=`` raises BudgetExceeded with layer, count, limit and how much to cut; nothing is stored."""
    write_suite(empty_project, budget=", budget={'Project Facts': 2, '*': 4000}")
    result = empty_project.run("--ctx-snapshot-create")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*pytest_ctxfp.BudgetExceeded: layer 'Project Facts' has ~3 tokens, its budget is 2: cut ~1",
            "FAILED *- layer 'Project Facts' has ~3 tokens*",
        ]
    )
    assert not (empty_project.path / "__ctxfp__").exists()
    write_suite(empty_project, budget=", budget={'Project Facts': 3, '*': 4000}")
    empty_project.run("--ctx-snapshot-create").assert_outcomes(passed=1)


@pytest.mark.parametrize("budget", ["{'Facts': 3}", "{'*': -1}", "5"])
def test_bad_budgets_are_errors(empty_project: Project, budget: str) -> None:
    """A budget for a layer that is not there, or that is no number, is an error that says so."""
    write_suite(empty_project, budget=f", budget={budget}")
    result = empty_project.run("--ctx-snapshot-create")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*pytest_ctxfp.CtxfpError: ctx_snapshot.check: budget:*"])


def test_a_missing_vocabulary_is_said_once_and_estimated(
    empty_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``ctx_tokens = tiktoken`` without its vocabulary: one warning, and the estimate."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(empty_project.path / "none"))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    write_suite(empty_project, ini="ctx_tokens = tiktoken")
    empty_project.run("--ctx-snapshot-create")
    empty_project.edit("context.md", "- one fact\n", "- one fact\n- another\n")
    result = empty_project.run_apart()
    result.stdout.fnmatch_lines(["E*~ Project Facts *~+3 tokens", "*tokens are estimated, as *"])
    assert result.stdout.str().count("tokens are estimated") == 1


def test_traces_hold_exact_counts_only(project: Project) -> None:
    """The fingerprint in a trace has tokens per layer where a hook counts, and none of the estimate."""
    for hook, expected in [("", None), ("def pytest_ctxfp_count_tokens(text): return 7\n", 7)]:
        project.write("conftest.py", hook + (project.path / "conftest.py").read_text())
        project.run("--ctx-refresh", "-k", "orders")
        [path] = project.traces()
        layers = json.loads(path.read_text())["context"]["layers"]
        assert {layer.get("tokens") for layer in layers.values()} == {expected}


def test_bad_ini_value(empty_project: Project) -> None:
    """Another word for ``ctx_tokens`` is a usage error that names those there are."""
    write_suite(empty_project, ini="ctx_tokens = exact")
    result = empty_project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *ctx_tokens = 'exact'*estimate, tiktoken, off*"])
