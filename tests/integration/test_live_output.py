"""What a terminal shows while agents are asked; elsewhere the output is as it was."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project

SLOW = """
import time

import pytest

import pytest_ctxfp.plugin.live
from pytest_ctxfp import AgentResult

pytest_ctxfp.plugin.live.FIRST_BEAT = 0.4

@pytest.fixture
def ctx_agent():
    def ask(question):
        time.sleep(1.5 if "orders" in question else 0)
        return AgentResult({"rows": [[99]]}, cost=0.25, turns=4, latency_ms=3210)
    return ask
"""
BLOCKED = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:anyio", "-p", "no:rerunfailures")


def run_in_terminal(project: Project, *args: str) -> str:
    """Run pytest with a terminal for its output, and return what it showed, without colours."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pytest", "--color=no", *BLOCKED, *args]
    environment = {**os.environ, "COLUMNS": "200", "TERM": "xterm"}
    with subprocess.Popen(
        command, cwd=project.path, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:  # the other end is closed
            pass
        process.wait()
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


@pytest.fixture
def slow(project: Project) -> Project:
    """The project with an agent that takes long for one of two questions."""
    project.write("conftest.py", SLOW)
    return project


def test_words_say_what_answers_took(slow: Project) -> None:
    """``-v`` says miss or hit, seconds, cost and turns behind pytest's word, but not in its summary."""
    shown = run_in_terminal(slow, "--ctx-cache", "-v", "-rA")
    assert "golden.yaml::orders PASSED (miss 3.2 s, 0.2500 USD, 4 turns)" in shown
    assert "golden.yaml::customers FAILED (miss 3.2 s, 0.2500 USD, 4 turns)" in shown
    summary = shown.partition("short test summary info")[2]
    assert "PASSED golden.yaml::orders" in summary
    assert "FAILED golden.yaml::customers - row 1" in summary
    shown = run_in_terminal(slow, "--ctx-cache", "-v")
    assert "golden.yaml::orders PASSED (replayed, saved 3.2 s, 0.2500 USD, 4 turns)" in shown


@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["plain", "xdist"])
def test_long_calls_are_told(slow: Project, workers: list[str]) -> None:
    """A call that takes long is told after a while, again after twice as long, on lines of their own."""
    shown = run_in_terminal(slow, "--ctx-cache", "-v", *workers)
    beats = re.findall(r"(?m)^ctxfp: golden.yaml::(\w+) still runs, after ([\d.]+) s$", shown)
    assert beats[:2] == [("orders", "0.4"), ("orders", "0.8")]
    assert re.search(r"(?m)^(\[gw0\].*)?golden.yaml::orders PASSED|^\[gw0\].*PASSED.*orders", shown)


def test_dots_stay_dots(slow: Project) -> None:
    """Without ``-v`` a terminal shows pytest's letters, and long calls."""
    shown = run_in_terminal(slow, "--ctx-cache")
    assert "(miss" not in shown
    assert "still runs" in shown


def test_nothing_changes_where_the_output_is_no_terminal(slow: Project) -> None:
    """In a file or a CI log the words are pytest's own, and no long call is told."""
    result = slow.run("--ctx-cache", "-v")
    result.stdout.fnmatch_lines(["golden.yaml::orders PASSED *%]", "golden.yaml::customers FAILED *%]"])
    result.stdout.no_fnmatch_line("*still runs*")
    result.stdout.no_fnmatch_line("*(miss*")
