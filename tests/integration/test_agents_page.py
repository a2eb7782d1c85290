"""The examples of the page on ready agents, as they stand."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ctxfp.agents import ChatAgent

if TYPE_CHECKING:
    import pytest

    from .conftest import Project

PAGE = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")
BLOCKS = [(kind, text) for kind, text in re.findall(r"(?ms)^```(\w+)\n(.*?)^```$", PAGE)]
CLAUDE = """#!{python}
import json, sys
assert sys.argv[1] == "-p" and sys.argv[3:] == ["--output-format", "json"], sys.argv
answer = json.dumps({{"rows": [[99 if "orders" in sys.argv[2] else 12]]}})
figures = {{"total_cost_usd": 0.25, "num_turns": 1, "duration_ms": 5}}
print(json.dumps({{"type": "result", "result": answer, **figures}}))
"""


def test_the_first_example_is_a_whole_suite(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The conftest and the ini lines of the page run a program, whose answers are replayed."""
    program = project.write("bin/claude", CLAUDE.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    (_, conftest), (_, ini) = BLOCKS[:2]
    project.write("conftest.py", conftest)
    project.write("pytest.ini", ini)
    result = project.run("--ctx-cache")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["cost *spent 0.5000 USD in 2 calls*"])
    program.unlink()
    project.run("--ctx-on-miss=fail").assert_outcomes(passed=2)


def test_the_second_example_builds_an_agent() -> None:
    """The endpoint of the page is built without being asked."""
    names: dict[str, object] = {}
    exec(BLOCKS[2][1], names)
    assert isinstance(names["AGENT"], ChatAgent)
