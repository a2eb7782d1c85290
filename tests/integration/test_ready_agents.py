"""Ready agents in whole runs: what they answer is stored, and asked for again only when they change."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .conftest import Project

SECRET = "sk-test-abcdefghijklmnopqrstuvwxyz"

COMMAND_CONFTEST = """
import pathlib
import sys

import pytest

from pytest_ctxfp.agents import {kind}

HERE = pathlib.Path(__file__).parent
AGENT = {kind}([sys.executable, str(HERE / "bot.py"), "{{question}}", *{more}])


@pytest.fixture
def ctx_assembler():
    return lambda question: "## Rules\\ncount all\\n"


@pytest.fixture
def ctx_agent_key():
    return AGENT.key_parts()


@pytest.fixture
def ctx_agent():
    return AGENT
"""

BOT = """
import json, pathlib, sys
with open(pathlib.Path(__file__).parent / "calls.txt", "a") as log:
    log.write(sys.argv[1] + "\\n")
table = {"columns": ["n"], "rows": [[99 if "orders" in sys.argv[1] else 12]]}
print(json.dumps({"result": json.dumps(table), "total_cost_usd": 0.25, "num_turns": 2, "duration_ms": 5}))
"""

CHAT_CONFTEST = """
import pytest

from pytest_ctxfp.agents import ChatAgent

AGENT = ChatAgent("{url}", "small-1", parameters={{"temperature": {temperature}}})


@pytest.fixture
def ctx_agent_key():
    return AGENT.key_parts()


@pytest.fixture
def ctx_agent():
    return AGENT
"""


def test_command_is_asked_once(project: Project, how: list[str]) -> None:
    """A command is run once a case, then never, until it is written otherwise; what it cost is known."""
    project.write("bot.py", BOT)
    project.write("conftest.py", COMMAND_CONFTEST.format(kind="CommandAgent", more=[]))
    result = project.run("--ctx-cache", *how)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["cost *spent 0.5000 USD in 2 calls*"])
    assert len(project.calls()) == 2
    project.run("--ctx-cache", *how).assert_outcomes(passed=2)
    assert project.calls() == []
    project.write("conftest.py", COMMAND_CONFTEST.format(kind="CommandAgent", more=["--fast"]))
    result = project.run("--ctx-cache", *how)
    result.stdout.fnmatch_lines(["missed *2 ctx_agent_key: command"])
    assert len(project.calls()) == 2


def test_async_command_in_golden_items(project: Project) -> None:
    """An async agent runs on the session's loop; its answers are stored as any other's."""
    project.write("bot.py", BOT)
    project.write("conftest.py", COMMAND_CONFTEST.format(kind="AsyncCommandAgent", more=[]))
    project.run("--ctx-cache").assert_outcomes(passed=2)
    project.run("--ctx-on-miss=fail").assert_outcomes(passed=2)
    assert len(project.calls()) == 2


LEAVE_GRANDCHILD = """
import pathlib, subprocess, sys, time
mark = pathlib.Path(__file__).parent / "mark"
later = "import pathlib, sys, time; time.sleep(1.5); pathlib.Path(sys.argv[1]).write_text('alive')"
subprocess.Popen([sys.executable, "-c", later, str(mark)])
time.sleep(30)
"""


def test_timeout_of_a_case_kills_an_async_command(project: Project) -> None:
    """A case's own timeout is an error, and neither the program nor what it started is left."""
    project.write("bot.py", LEAVE_GRANDCHILD)
    project.write("conftest.py", COMMAND_CONFTEST.format(kind="AsyncCommandAgent", more=[]))
    project.write("golden.yaml", "cases: [{id: a, question: q, timeout: 0.5, expected: {rows: [[1]]}}]\n")
    started = time.monotonic()
    result = project.run("--ctx-cache")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no answer within its timeout of 0.5 s*"])
    assert time.monotonic() - started < 10
    time.sleep(1.6)
    assert not (project.path / "mark").exists()
    assert project.traces() == []


def test_async_endpoint_in_golden_items(
    project: Project, serve_chat: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An async agent of an endpoint that is busy at first is asked once a case, and then never."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    answer = {"choices": [{"message": {"content": '{"rows": [[99]]}'}, "finish_reason": "stop"}]}
    conftest = CHAT_CONFTEST.replace("ChatAgent", "AsyncChatAgent")
    with serve_chat((429, {"Retry-After": "0"}, b"busy"), answer) as server:
        project.write("conftest.py", conftest.format(url=server.url, temperature=0))
        project.run("--ctx-cache").assert_outcomes(passed=1, failed=1)
        assert len(server.asked) == 3
        project.run("--ctx-on-miss=fail").assert_outcomes(passed=1, failed=1)
        assert len(server.asked) == 3


def test_failing_command_is_an_error_and_not_stored(project: Project) -> None:
    """A command that fails makes its cases errors, with what it said; nothing is stored or scored."""
    project.write("bot.py", "import sys; sys.exit('no quota')")
    project.write("conftest.py", COMMAND_CONFTEST.format(kind="CommandAgent", more=[]))
    result = project.run("--ctx-cache")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*exit status 1: no quota*"])
    assert project.traces() == []


TEST = """
def test_answer(ctx_agent):
    assert ctx_agent("orders", "## A\\n")
"""


@pytest.mark.parametrize(
    "shown", [(), ("-l", "--tb=long"), ("-l", "--full-trace")], ids=["plain", "l", "full"]
)
def test_key_is_in_no_traceback(
    project: Project, serve_chat: Any, monkeypatch: pytest.MonkeyPatch, shown: tuple[str, ...]
) -> None:
    """Pytest shows arguments and locals of what raised: the API key is in none, refused or not answered."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    project.write("test_answer.py", TEST)
    refused: list[Any] = [(401, {}, SECRET.encode()), (200, {"Content-Length": "999"}, b"x"), SECRET.encode()]
    for reply in refused:
        with serve_chat(reply) as server:
            more = ', retries=0, parameters={{"temperature"'
            conftest = CHAT_CONFTEST.replace(', parameters={{"temperature"', more)
            project.write("conftest.py", conftest.format(url=server.url, temperature=0))
            result = project.run(*shown)
        result.assert_outcomes(failed=1, errors=2)
        assert SECRET not in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize("shown", [(), ("-l", "--full-trace")], ids=["plain", "full"])
def test_variables_of_a_command_are_in_no_traceback(
    project: Project, monkeypatch: pytest.MonkeyPatch, shown: tuple[str, ...]
) -> None:
    """Nor are the values of a command's variables, whatever it prints when it fails."""
    monkeypatch.setenv("BOT_KEY", SECRET)
    project.write("test_answer.py", TEST)
    conftest = COMMAND_CONFTEST.format(kind="CommandAgent", more=[])
    project.write("conftest.py", conftest.replace("*[]])", '], env=["BOT_KEY"])'))
    for fail in (
        "sys.exit(os.environ['BOT_KEY'])",
        "print('{\"is_error\":1,\"result\":\"'+os.environ['BOT_KEY']+'\"}')",
    ):
        project.write("bot.py", f"import os, sys; {fail}")
        result = project.run(*shown)
        result.assert_outcomes(failed=1, errors=2)
        assert "[BOT_KEY]" in result.stdout.str()
        assert SECRET not in result.stdout.str()


def test_chat_endpoint_is_asked_once_and_its_key_is_nowhere(
    project: Project, serve_chat: Any, monkeypatch: pytest.MonkeyPatch, how: list[str]
) -> None:
    """An endpoint is asked once a case, again for another parameter; no file or line has the API key."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    answer = {"choices": [{"message": {"content": '{"rows": [[99]]}'}, "finish_reason": "stop"}]}
    with serve_chat(answer) as server:
        project.write("conftest.py", CHAT_CONFTEST.format(url=server.url, temperature=0))
        first = project.run("--ctx-cache", "--ctx-report=run.json", *how)
        assert len(server.asked) == 2
        second = project.run("--ctx-cache", *how)
        assert len(server.asked) == 2
        project.write("conftest.py", CHAT_CONFTEST.format(url=server.url, temperature=1))
        third = project.run("--ctx-cache", *how)
        assert len(server.asked) == 4
    for result in (first, second, third):
        result.assert_outcomes(passed=1, failed=1)
        assert SECRET not in result.stdout.str()
    third.stdout.fnmatch_lines(["missed *2 ctx_agent_key: chat_parameters"])
    for path in project.path.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes()
