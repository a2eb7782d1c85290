"""Golden cases in Python tests: the marker, ``ctx_trace``, async agents and async tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Project

MARKED = """
import pytest

@pytest.mark.ctx_golden("golden.yaml")
def test_answer(ctx_case, ctx_trace):
    outcome = ctx_trace(ctx_case)
    assert outcome.answer == {"columns": ["n"], "rows": [[ctx_case.expected.rows[0][0]]]}
    assert outcome.trace.model == "stub-1"
    print("hit:", outcome.hit)
    outcome.check()
"""


def test_marker_parametrises_and_outcome_checks(project: Project, how: list[str]) -> None:
    """A marked test runs once a case, resolves it, and the plain items of that file are left to it."""
    project.write("test_marked.py", MARKED)
    result = project.run("--ctx-cache", "-v", *how)
    result.stdout.fnmatch_lines(["*test_marked.py::test_answer[[]orders]*"])
    result.stdout.fnmatch_lines(["answers*0 hit, 2 miss"])
    assert len(project.calls()) == 2
    result = project.run("--ctx-cache", "-s", *how)
    result.stdout.fnmatch_lines(["answers*2 hit, 0 miss*"])
    assert project.calls() == []


def test_file_alone_runs_the_plain_items(project: Project) -> None:
    """A run of the golden file alone runs its items; in a whole run they are deselected, and counted so."""
    project.write("test_marked.py", MARKED)
    project.run("golden.yaml").assert_outcomes(passed=2)
    project.run().assert_outcomes(passed=2, deselected=2)


def test_marker_without_files_is_an_error(project: Project) -> None:
    """A marker whose globs match nothing is a collection error that says where was looked."""
    project.write("test_marked.py", MARKED.replace("golden.yaml", "nowhere/*.yaml"))
    result = project.run("test_marked.py")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ctx_golden*nowhere/*no golden file*"])


def test_failed_check_shows_the_tables(project: Project, table: Callable[[object], object]) -> None:
    """``check`` of a wrong answer fails with the reason first and both tables."""
    project.write("test_marked.py", MARKED.replace("    assert outcome.answer ==", "    _ ="))
    project.answer({"How many orders?": table(98), "How many customers?": table(12)})
    result = project.run("--ctx-cache", "-rf")
    result.assert_outcomes(failed=1, passed=1, deselected=2)
    result.stdout.fnmatch_lines(
        [
            "E*CaseMismatch: *",
            "E*ask again*pytest 'test_marked.py::test_answer[[]orders]' --ctx-refresh",
            "FAILED *orders[]] - row 1, column 'n': expected 99*",
        ]
    )


def test_case_without_marker_says_what_to_do(project: Project) -> None:
    """``ctx_case`` in a test without a marker is an error that shows the marker."""
    project.write("test_plain.py", "def test_plain(ctx_case): pass\n")
    result = project.run("test_plain.py")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*@pytest.mark.ctx_golden(*"])


def test_trace_of_something_else_is_refused(project: Project) -> None:
    """``ctx_trace`` takes a golden case and says so."""
    project.write("test_plain.py", "def test_plain(ctx_trace): ctx_trace('orders')\n")
    result = project.run("test_plain.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ctx_trace takes a golden case, got str*"])


ASYNC_CONFTEST = """
import asyncio
import pytest

LOOPS = set()

@pytest.fixture
def ctx_assembler():
    async def assemble(question):
        await asyncio.sleep(0)
        return f"## Question\\n{question}\\n"
    return assemble

@pytest.fixture
def ctx_agent():
    async def ask(question):
        LOOPS.add(asyncio.get_running_loop())
        assert len(LOOPS) == 1
        await asyncio.sleep(DELAY)
        return {"rows": [[99 if "orders" in question else 12]]}
    return ask
"""


def test_async_agents_run_on_one_loop(project: Project, how: list[str]) -> None:
    """An async assembler and agent are awaited, every case on the same loop."""
    project.write("conftest.py", ASYNC_CONFTEST.replace("DELAY", "0"))
    if how == ["-n2"]:
        project.run(*how).assert_outcomes(passed=2)
    else:
        project.run("-W", "error", *how).assert_outcomes(passed=2)


def test_timeout_of_an_async_agent_is_an_error(project: Project, how: list[str]) -> None:
    """A case's ``timeout`` ends an async agent: an ERROR that says how long was waited, nothing stored."""
    project.write("conftest.py", ASYNC_CONFTEST.replace("DELAY", "30"))
    text = (project.path / "golden.yaml").read_text()
    project.write("golden.yaml", text.replace("    match:", "    timeout: 0.05\n    match:"))
    result = project.run("--ctx-cache", *how)
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["the agent raised TimeoutError: no answer within its timeout of 0.05 s"])
    assert project.traces() == []


ASYNC_TEST = """
import asyncio
import pytest
from pytest_ctxfp import CtxfpError

def run(test):  # what pytest-asyncio and anyio do, in small
    def wrapped(ctx_case, ctx_trace):
        asyncio.run(test(ctx_case, ctx_trace))
    return wrapped

async def awaited(ctx_case, ctx_trace):
    outcome = await ctx_trace(ctx_case)
    outcome.check()

async def blocking(ctx_case, ctx_trace):
    outcome = ctx_trace(ctx_case)
    with pytest.raises(CtxfpError, match="await ctx_trace"):
        outcome.check()

test_awaited = pytest.mark.ctx_golden("golden.yaml")(run(awaited))
test_blocking = pytest.mark.ctx_golden("golden.yaml")(run(blocking))
"""


def test_async_tests_await(project: Project) -> None:
    """Where a loop runs, ``await ctx_trace(case)`` resolves; the blocking form is an error that says so."""
    project.write("conftest.py", ASYNC_CONFTEST.replace("DELAY", "0").replace("assert len(LOOPS) == 1", ""))
    project.write("test_async.py", ASYNC_TEST)
    project.run("-W", "error", "test_async.py").assert_outcomes(passed=4)


@pytest.mark.parametrize(
    ("fixture", "says"),
    [
        ("@pytest.fixture(params=[1, 2])\ndef ctx_agent(request): return lambda question: 1", "has params"),
        ("@pytest.fixture\nasync def ctx_assembler(): return None", "*is async*"),
        ("@pytest.fixture\ndef ctx_agent(): return 5", "not callable"),
        ("@pytest.fixture\ndef ctx_agent(): return lambda query: 5", "argument 'query'*called by name"),
        ("@pytest.fixture\ndef ctx_agent_key(): return {'colour': 1}", "'colour'*params"),
        ("@pytest.fixture\ndef ctx_agent_key(): return {'backend': 'Not OK'}", "backend"),
        ("@pytest.fixture\ndef ctx_agent_key(): return 5", "return a dict"),
        ("@pytest.fixture\ndef ctx_model(): return None", "return a text"),
    ],
)
def test_fixtures_that_do_not_fit_are_errors(
    project: Project, how: list[str], fixture: str, says: str
) -> None:
    """A fixture that can't be used here is an ERROR that names it and the way out; nobody is asked."""
    text = (project.path / "conftest.py").read_text()
    name = fixture.split("def ")[1].split("(", maxsplit=1)[0]
    project.write("conftest.py", text.replace(f"def {name}(", f"def other_{name}(") + "\n" + fixture + "\n")
    result = project.run("--ctx-cache", "-W", "ignore", *how)
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines([f"*{name}*{says}*"])
    assert project.calls() == []


def test_no_agent_shows_the_lines_to_write(project: Project, how: list[str]) -> None:
    """A suite without ``ctx_agent`` is told what to write."""
    project.write("conftest.py", "")
    result = project.run(*how)
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["no agent to ask*", "*def ctx_agent():", "*def ask(question, context):"])


def test_model_and_key_parts_are_in_the_key(project: Project) -> None:
    """``ctx_model`` and ``ctx_agent_key`` override the ini and enter the key."""
    project.run("--ctx-cache")
    extra = """
@pytest.fixture
def ctx_model(): return "stub-9"

@pytest.fixture
def ctx_agent_key(): return {"max_turns": 8, "params": {"db": "2024"}}
"""
    project.write("conftest.py", (project.path / "conftest.py").read_text() + extra)
    project.run("--ctx-cache").stdout.fnmatch_lines(
        ["identity*model stub-9", "missed*2 model: stub-1 -> stub-9; max_turns; db"]
    )
    project.run("--ctx-cache").stdout.fnmatch_lines(["answers*2 hit*"])


def test_context_files_stand_for_the_context_without_an_assembler(project: Project) -> None:
    """Without an assembler ``ctx_context_paths`` are in the key."""
    text = (project.path / "conftest.py").read_text()
    project.write(
        "conftest.py", text.replace("def ctx_assembler", "def other").replace("question, context", "question")
    )
    project.edit("pytest.ini", "[pytest]\n", "[pytest]\nctx_context_paths = rules.md\n")
    project.run("--ctx-cache").stdout.fnmatch_lines(["identity*context * (1 file)*"])
    project.run("--ctx-cache").stdout.fnmatch_lines(["answers*2 hit*"])
    project.edit("rules.md", "count all", "count some")
    project.run("--ctx-cache").stdout.fnmatch_lines(["missed*2 context: *"])


def test_assembler_inside_the_agent_paths_is_warned_of(project: Project, how: list[str]) -> None:
    """Where the assembler's file is one of the agent's, refactoring it would not be free: said once."""
    project.edit("pytest.ini", "ctx_agent_paths = agent", "ctx_agent_paths = agent conftest.py")
    result = project.run("--ctx-cache", *how)
    result.stdout.fnmatch_lines(["warning*conftest.py*ctx_assembler*ctx_agent_paths*"])


def test_settings_can_be_asked_for(project: Project) -> None:
    """``ctx_settings`` says what flags, ini and environment say together."""
    project.write(
        "test_settings.py",
        "def test_settings(ctx_settings):\n"
        "    assert ctx_settings.mode == 'refresh'\n"
        "    assert ctx_settings.cache_dir.name == 'traces'\n",
    )
    project.run("--ctx-refresh", "test_settings.py").assert_outcomes(passed=1)
