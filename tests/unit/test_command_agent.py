"""An agent that is a program, against real programs."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ctxfp import AgentError
from pytest_ctxfp.agents import AsyncCommandAgent, CommandAgent

if TYPE_CHECKING:
    from pathlib import Path

ECHO = "import sys; print('|'.join(sys.argv[1:]) + '<' + sys.stdin.read())"
LEAVE_GRANDCHILD = """
import subprocess, sys, time
later = "import time, pathlib, sys; time.sleep(1.5); pathlib.Path(sys.argv[1]).write_text('alive')"
subprocess.Popen([sys.executable, "-c", later, sys.argv[1]])
time.sleep(60)
"""


def python(code: str, *arguments: str) -> list[str]:
    """Return the command that runs a piece of Python."""
    return [sys.executable, "-c", code, *arguments]


def ask(agent: CommandAgent, question: str = "q", context: object = "c") -> Any:
    """Ask an agent of either kind."""
    result = agent(question, context)
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


both = pytest.mark.parametrize("kind", [CommandAgent, AsyncCommandAgent])


@both
def test_question_in_an_argument_and_context_on_standard_input(kind: type[CommandAgent]) -> None:
    """The question stands where it is named, other braces stay, and the context comes on standard input."""
    agent = kind(python(ECHO, "{question}!", "{x} {}"))
    assert ask(agent, "how {context}?", "## A\n").value == "how {context}?!|{x} {}<## A\n\n"


@both
def test_context_in_an_argument(kind: type[CommandAgent]) -> None:
    """Where an argument names the context, standard input is empty; what is put in is not searched again."""
    agent = kind(python(ECHO, "{context}", "{question}"))
    assert ask(agent, "{context}", "{question}").value == "{question}|{context}<\n"


@pytest.mark.parametrize(
    ("context", "given"),
    [
        (None, ""),
        (b"caf\xc3\xa9", "café"),
        ({"a": [1]}, '{"a":[1]}'),
        ([{"role": "user"}], '[{"role":"user"}]'),
    ],
)
def test_contexts_of_other_types(context: object, given: str) -> None:
    """Bytes come as they are, requests and mappings as canonical JSON, and no context as nothing."""
    assert ask(CommandAgent(python(ECHO, "{question}")), "q", context).value == f"q<{given}\n"


ENVELOPE = {"type": "result", "result": "42", "total_cost_usd": 0.5, "duration_ms": 7, "num_turns": 3}


@pytest.mark.parametrize("printed", [ENVELOPE, [{"type": "system"}, ENVELOPE]])
def test_envelope(printed: object) -> None:
    """The common JSON envelope gives the answer, its cost, its time and its turns."""
    result = ask(CommandAgent(python(f"print({json.dumps(printed)!r})")))
    assert (result.value, result.cost, result.latency_ms, result.turns) == ("42", 0.5, 7, 3)


@pytest.mark.parametrize(
    ("envelope", "said"),
    [
        (
            {"type": "result", "subtype": "error_max_turns", "num_turns": 9, "is_error": False},
            "error_max_turns",
        ),
        (
            {"type": "result", "subtype": "error_during_execution", "total_cost_usd": 1},
            "error_during_execution",
        ),
        ({"result": "overloaded", "is_error": True}, "it failed: 'overloaded'"),
        ({"result": None, "num_turns": 1}, "holds no result"),
        ({"result": "", "num_turns": 1}, "holds no result"),
    ],
)
def test_envelope_without_an_answer_is_an_error(envelope: object, said: str) -> None:
    """An agent that gave up, as Claude Code after its turns, has not answered wrongly: it is an error."""
    with pytest.raises(AgentError, match=said):
        ask(CommandAgent(python(f"print({json.dumps(envelope)!r})")))


@pytest.mark.parametrize("printed", ['{"result": 5}', '{"a": 1}', '{"num_turns": 1}', "[1]", "plain"])
def test_other_output_is_the_answer_itself(printed: str) -> None:
    """JSON that is no envelope is an answer, and its cost is unknown, not zero."""
    result = ask(CommandAgent(python(f"print({printed!r}, end='')")))
    assert (result.value, result.cost, result.turns) == (printed, None, None)


@both
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; print('no quota', file=sys.stderr); sys.exit(3)", "exit status 3: no quota"),
        ("import sys; print('on stdout'); sys.exit(1)", "exit status 1: on stdout"),
        ("import os; os.kill(os.getpid(), 9)", "killed by signal 9"),
        ("pass", "printed nothing"),
        ("import sys; sys.stdout.buffer.write(b'a\\xff')", "no UTF-8, at byte 1"),
        ('print(\'{"result": "rate limit", "num_turns": 1, "is_error": true}\')', "it failed: 'rate limit'"),
    ],
)
def test_failures_say_what_happened(kind: type[CommandAgent], code: str, said: str) -> None:
    """A program that fails gives an error with its status and what it said, never an answer."""
    with pytest.raises(AgentError, match=said):
        ask(kind(python(code)))


@both
def test_program_that_is_not_there(kind: type[CommandAgent]) -> None:
    """A program that can't be found is named, with the way out."""
    with pytest.raises(AgentError, match="'no-such-agent' is not found: install it"):
        ask(kind(["no-such-agent", "{question}"]))


def test_arguments_that_are_too_long() -> None:
    """A context too long for an argument says that standard input takes it."""
    with pytest.raises(AgentError, match=r"leave \{context\} out"):
        ask(CommandAgent(python(ECHO, "{context}")), "q", "x" * 3_000_000)
    assert len(ask(CommandAgent(python(ECHO, "{question}")), "q", "x" * 3_000_000).value) > 3_000_000


@both
def test_output_has_a_limit(kind: type[CommandAgent], monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that prints without end is killed, one that printed too much gives no answer."""
    monkeypatch.setattr("pytest_ctxfp.agents._streams.MAX_OUTPUT", 100_000)
    for code in ("while True: print('x' * 9999)", "print('x' * 100_000)"):
        with pytest.raises(AgentError, match="printed more than 100,000 bytes"):
            ask(kind(python(code)))
    assert len(ask(kind(python("print('x' * 99_999)"))).value) == 100_000


@both
def test_program_that_leaves_another_behind(kind: type[CommandAgent]) -> None:
    """A call ends with its program, though another one has its standard output still open."""
    later = "import time; time.sleep(3)"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {later!r}]); print('x')"
    started = time.monotonic()
    assert ask(kind(python(code))).value == "x\n"
    assert time.monotonic() - started < 2.5


def test_working_folder_that_is_not_there(tmp_path: Path) -> None:
    """A folder that isn't there is named, not the program."""
    with pytest.raises(AgentError, match=r"can't be run in .*gone': make this folder"):
        ask(CommandAgent(python("pass"), cwd=tmp_path / "gone"))


def test_nul_in_a_question() -> None:
    """A question that no argument can hold is an error of the agent."""
    with pytest.raises(AgentError, match="can't be run"):
        ask(CommandAgent(python(ECHO, "{question}")), "a\0b")


@both
def test_timeout_kills_all_that_was_started(kind: type[CommandAgent], tmp_path: Path) -> None:
    """After the timeout neither the program nor what it started is left."""
    mark = tmp_path / "mark"
    started = time.monotonic()
    with pytest.raises(AgentError, match=r"longer than its timeout of 0\.5 s"):
        ask(kind(python(LEAVE_GRANDCHILD, str(mark)), timeout=0.5))
    assert time.monotonic() - started < 10
    time.sleep(1.6)
    assert not mark.exists()


def test_cancelled_call_kills_its_program(tmp_path: Path) -> None:
    """A call that is cancelled, as by a case's timeout, leaves no program behind."""
    mark = tmp_path / "mark"

    async def cancel() -> None:
        await asyncio.wait_for(
            AsyncCommandAgent(python(LEAVE_GRANDCHILD, str(mark)))("q", "c"),  # type: ignore[arg-type]
            0.5,
        )

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(cancel())
    time.sleep(1.6)
    assert not mark.exists()


def test_environment_is_an_allow_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program gets the variables that are named, and those without which programs don't run."""
    monkeypatch.setenv("ALLOWED", "yes")
    monkeypatch.setenv("SECRET_OF_CI", "no")
    code = "import os; print(os.environ.get('ALLOWED'), os.environ.get('SECRET_OF_CI'), 'PATH' in os.environ)"
    assert ask(CommandAgent(python(code), env=["ALLOWED"])).value == "yes None True\n"


def test_secrets_of_the_environment_are_not_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a failing program prints of an allowed variable is left out."""
    monkeypatch.setenv("MY_KEY", "very-secret-value")
    ended = "import os, sys; sys.exit('bad key ' + os.environ['MY_KEY'])"
    told = "import json, os; print(json.dumps({'is_error': 1, 'result': 'bad key ' + os.environ['MY_KEY']}))"
    slow = "import os, time; os.write(2, b'bad key ' + os.environb[b'MY_KEY']); time.sleep(9)"
    for code in (ended, told, slow):
        with pytest.raises(AgentError) as caught:
            ask(CommandAgent(python(code), env=["MY_KEY"], timeout=1))
        assert "very-secret-value" not in str(caught.value)
        assert "bad key [MY_KEY]" in str(caught.value)


def test_working_folder(tmp_path: Path) -> None:
    """A program runs in the folder that is named."""
    assert ask(CommandAgent(python("import os; print(os.getcwd())"), cwd=tmp_path)).value == f"{tmp_path}\n"


def test_building_does_nothing_and_says_what_the_key_holds() -> None:
    """An agent is inert when built: a program that isn't there is no matter yet."""
    agent = CommandAgent(["no-such", "{question}"], cwd="/no/such", env=["B", "A"], timeout=5)
    assert agent.key_parts() == {
        "params": {"command": ["no-such", "{question}"], "command_env": ["A", "B"]},
    }
    assert "no-such" in repr(agent)
    assert os.getcwd() not in repr(agent)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"command": "claude -p"}, TypeError),
        ({"command": ["x"], "env": "HOME"}, TypeError),
        ({"command": []}, ValueError),
        ({"command": ["x"], "timeout": 0}, ValueError),
        ({"command": ["x"], "timeout": float("nan")}, ValueError),
        ({"command": ["x"], "timeout": float("inf")}, ValueError),
        ({"command": ["x"], "timeout": "5"}, TypeError),
        ({"command": ["x", 5]}, TypeError),
        ({"command": b"ls"}, TypeError),
        ({"command": ["x"], "env": ["KEY=value"]}, ValueError),
        ({"command": ["x"], "env": [5]}, TypeError),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception]) -> None:
    """What can't be right is refused when the agent is built."""
    with pytest.raises(error):
        CommandAgent(**arguments)


def test_neither_question_nor_context() -> None:
    """A command that would be told nothing is refused."""
    with pytest.raises(AgentError, match="neither question nor context"):
        ask(CommandAgent(python(ECHO)), "q", None)
