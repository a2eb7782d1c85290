"""The command ``ctxfp plan``: what a run of a real project would ask."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp._cli import main

if TYPE_CHECKING:
    from .conftest import Project


@pytest.fixture(autouse=True)
def _folder(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.path)
    monkeypatch.delenv("CTXFP_CACHE_DIR", raising=False)
    project.edit(
        "conftest.py", "return answers[question]", "return AgentResult(answers[question], cost=0.02)"
    )
    project.edit("conftest.py", "import pytest\n", "import pytest\nfrom pytest_ctxfp import AgentResult\n")


def test_a_plan_of_an_empty_cache_asks_for_everything(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every case is new, nobody knows what it costs, and planning asks nobody and stores nothing."""
    assert main(["plan"]) == 1
    out = capsys.readouterr().out
    assert out == (
        "would ask 2 times: unknown cost\n  2  new cases: unknown cost\nanswered from the cache: 0\n"
    )
    assert (project.calls(), project.traces()) == ([], [])


def test_a_plan_names_the_layer_that_changed_and_what_it_costs(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """With all answers stored nothing is asked; after an edit of the rules each case is, for that layer."""
    project.run("--ctx-cache")
    project.calls()
    capsys.readouterr()
    assert main(["plan"]) == 0
    assert capsys.readouterr().out == "would ask nothing\nanswered from the cache: 2\n"
    project.edit("rules.md", "- count all", "- count some")
    assert main(["plan", "--json", "-k", "orders"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["asks"], said["estimated_cost"], said["cases"]) == (1, 0.02, ["orders"])
    (group,) = said["groups"]
    assert group["why"].startswith("context: Business Rules")
    assert project.calls() == []


def test_a_case_that_fails_is_answered_from_the_cache(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong answer is stored too, so a failing run is still one that asks nothing."""
    project.run("--ctx-cache")
    project.edit("golden.yaml", "rows: [[99]]", "rows: [[98]]")
    assert main(["plan"]) == 0
    assert "answered from the cache: 2\n" in capsys.readouterr().out


@pytest.mark.parametrize("args", [["-k", "nothing"], ["gone.yaml"], ["--ctx-refresh"]])
def test_a_run_that_can_not_be_is_exit_2(capsys: pytest.CaptureFixture[str], args: list[str]) -> None:
    """Where no test is selected, or the usage is wrong, pytest's own words are shown."""
    assert main(["plan", *args]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ctxfp: plan: pytest ended with status ")
