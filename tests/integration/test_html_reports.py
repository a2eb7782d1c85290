"""``--ctx-report=run.html`` and ``ctxfp report -o run.html``: the page of a run."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp._cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Project

REPORTS = ("--ctx-report=run.json", "--ctx-report=run.html")
WITHOUT_JINJA2 = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name == "jinja2" or name.startswith("jinja2."):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocker())
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "jinja2" else find(name, *rest)
"""


@pytest.fixture
def shop(project: Project, table: Callable[[object], object]) -> Project:
    """The project with rules, and one answer that is wrong."""
    project.write("rules.md", "## Rules\n- count all\n")
    project.answer({"How many orders?": table(98), "How many customers?": table(12)})
    return project


def read_page(project: Project) -> str:
    """Return the page that a run wrote."""
    return (project.path / "run.html").read_text(encoding="utf-8")


def test_page_of_a_run(shop: Project, how: list[str]) -> None:
    """The page has each case with question, expectation, answer and context, however the run was spread."""
    shop.run("--ctx-cache", *REPORTS, *how).assert_outcomes(passed=1, failed=1)
    page = read_page(shop)
    assert "1 of 2 cases passed" in page
    assert "How many customers?" in page
    assert "<mark>98</mark>" in page
    assert "auto: stored answers replayed" in page
    assert page.count('<tbody id="case-') == 2
    report = json.loads((shop.path / "run.json").read_text(encoding="utf-8"))
    assert sorted(report["texts"].values()) == [
        *("- count all\n", "How many customers?\n", "How many orders?\n")
    ]
    assert (report["mode"], report["cases"][0]["question"]) == ("auto", "How many orders?")


def test_page_against_a_baseline(shop: Project) -> None:
    """With a baseline the page has the gate, and the changed layer's texts side by side."""
    shop.run("--ctx-report=main.json").assert_outcomes(passed=1, failed=1)
    shop.edit("rules.md", "count all", "count open ones")
    shop.run("--ctx-baseline=main.json", *REPORTS)
    page = read_page(shop)
    assert "Gate: green" in page
    assert "<del>all</del>" in page
    assert "<ins>open ones</ins>" in page
    shop.write("again.html", "")
    assert main(["report", "run.json", "--baseline", "main.json", "-o", "again.html"]) == 0
    assert (shop.path / "again.html").read_text(encoding="utf-8") == page


def test_texts_can_be_left_out(shop: Project) -> None:
    """With ``ctx_report_texts = false`` no report holds a text of a context."""
    shop.edit("pytest.ini", "[pytest]\n", "[pytest]\nctx_report_texts = false\n")
    shop.run(*REPORTS)
    assert json.loads((shop.path / "run.json").read_text(encoding="utf-8"))["texts"] == {}
    assert "count all" not in read_page(shop)


def test_secrets_stay_out(shop: Project, table: Callable[[object], object], how: list[str]) -> None:
    """What is redacted in other reports is in no text, question, answer or diff of the page either."""
    shop.edit("pytest.ini", "[pytest]\n", "[pytest]\nctx_redact = hunter\\d\n")
    shop.edit("golden.yaml", "How many orders?", "How many orders of hunter2?")
    shop.answer({"How many orders of hunter2?": table("hunter3"), "How many customers?": table(12)})
    shop.edit("rules.md", "count all", "count all of hunter4")
    shop.run("--ctx-report=main.json", *how)
    shop.edit("rules.md", "hunter4", "hunter5 and more")
    shop.run("--ctx-baseline=main.json", *REPORTS, *how)
    for name in ("main.json", "run.json", "run.html"):
        assert "hunter" not in (shop.path / name).read_text(encoding="utf-8"), name
    assert "count all of [redacted]" in read_page(shop)


def test_without_jinja2_nothing_is_asked(shop: Project) -> None:
    """Where jinja2 is lacking the run ends before the first call, with the command that installs it."""
    shop.write("without_jinja2.py", WITHOUT_JINJA2)
    command = [sys.executable, "-m", "pytest", "-p", "without_jinja2", "--ctx-report=run.html"]
    done = subprocess.run(command, cwd=shop.path, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "needs jinja2, which isn't installed: pip install 'pytest-ctxfp[html]'" in done.stderr
    assert shop.calls() == []
    command = [sys.executable, "-m", "pytest", "-p", "without_jinja2", "--ctx-report=run.md"]
    assert subprocess.run(command, cwd=shop.path, capture_output=True, check=False).returncode == 1


def test_command_without_jinja2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command says what to install, and writes nothing."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert main(["report", "lacking.json", "-o", str(tmp_path / "run.html")]) == 2
    assert "pip install 'pytest-ctxfp[html]'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
