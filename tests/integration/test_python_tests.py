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
    project.run("--ctx-cache")
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
        project.run("-p", "no:asyncio", "-W", "error", *how).assert_outcomes(passed=2)


def test_timeout_of_an_async_agent_is_an_error(project: Project) -> None:
    """A case's ``timeout`` ends an async agent: an ERROR that says how long was waited, nothing stored."""
    project.write("conftest.py", ASYNC_CONFTEST.replace("DELAY", "30"))
    text = (project.path / "golden.yaml").read_text()
    project.write("golden.yaml", text.replace("    match:", "    timeout: 0.05\n    match:"))
    result = project.run("--ctx-cache")
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
    project.run("-p", "no:asyncio", "-W", "error", "test_async.py").assert_outcomes(passed=4)


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
def test_fixtures_that_do_not_fit_are_errors(project: Project, fixture: str, says: str) -> None:
    """A fixture that can't be used here is an ERROR that names it and the way out; nobody is asked."""
    text = (project.path / "conftest.py").read_text()
    name = fixture.split("def ")[1].split("(", maxsplit=1)[0]
    project.write("conftest.py", text.replace(f"def {name}(", f"def other_{name}(") + "\n" + fixture + "\n")
    result = project.run("--ctx-cache", "-W", "ignore")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines([f"*{name}*{says}*"])
    assert project.calls() == []


def test_no_agent_shows_the_lines_to_write(project: Project) -> None:
    """A suite without ``ctx_agent`` is told what to write."""
    project.write("conftest.py", "")
    result = project.run()
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
        ["identity*model stub-9", "missed*2 model: stub-1 -> stub-9; max_turns; ctx_agent_key: db"]
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
    project.run("--ctx-cache").stdout.fnmatch_lines(["missed*2 context: rules.md"])


def test_assembler_inside_the_agent_paths_is_warned_of(project: Project) -> None:
    """Where the assembler's file is one of the agent's, refactoring it would not be free: said once."""
    project.edit("pytest.ini", "ctx_agent_paths = agent", "ctx_agent_paths = agent conftest.py")
    result = project.run("--ctx-cache")
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


PARAMETRISED = """
import pytest

@pytest.fixture(params=[1, 2])
def ctx_agent(request, temperature):
    return lambda question: {"rows": [[request.param * 10 + temperature]]}

@pytest.mark.parametrize("temperature", [0, 5])
@pytest.mark.ctx_golden("golden.yaml")
def test_answer(ctx_case, ctx_trace, ctx_agent, temperature, request):
    answer = ctx_trace(ctx_case).answer
    assert answer == {"rows": [[request.node.callspec.params["ctx_agent"] * 10 + temperature]]}
"""


def test_parameters_of_the_agent_are_in_the_key(project: Project) -> None:
    """Two agents made by parameters never share an answer: each gets its own, cold and warm."""
    project.write("test_parametrised.py", PARAMETRISED)
    for _ in range(2):
        project.run("--ctx-cache", "test_parametrised.py").assert_outcomes(passed=8)
    assert len(project.traces()) == 8


def test_parameters_without_a_json_form_are_refused(project: Project) -> None:
    """A parameter that no key can hold is an error that shows the way out, which works."""
    project.write("test_parametrised.py", PARAMETRISED.replace("[0, 5]", "[object()]"))
    result = project.run("--ctx-cache", "test_parametrised.py")
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(["E*ctx_agent depends on the parameter*temperature*ctx_agent_key*"])
    keyed = PARAMETRISED.replace("[0, 5]", "[object()]").replace("+ temperature", "") + (
        "\n@pytest.fixture\ndef ctx_agent_key(temperature): return {'params': {'t': 0}}\n"
    )
    project.write("test_parametrised.py", keyed)
    project.run("--ctx-cache", "test_parametrised.py").assert_outcomes(passed=4)


def test_case_asked_for_at_run_time_is_an_error(project: Project) -> None:
    """A fixture that fetches ``ctx_case`` while it runs would hide it from the key: an error says so."""
    project.write(
        "conftest.py",
        """
import pytest

@pytest.fixture
def ctx_agent(request):
    case = request.getfixturevalue("ctx_case")
    return lambda question: {"rows": [[case.inputs["n"]]]}
""",
    )
    project.write(
        "golden.yaml",
        "cases: [{id: a, question: q, match: scalar, expected: {rows: [[1]]}, inputs: {n: 1}}]\n",
    )
    result = project.run("--ctx-cache")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ask for ctx_case while they run*name ctx_case as an argument*"])


def test_marks_and_tags_of_a_case_hold_in_python_tests(project: Project) -> None:
    """``skip``, ``xfail`` and tags of a case mean in a marked test what they mean in a golden item."""
    project.write(
        "golden.yaml",
        """cases:
  - {id: a, question: How many orders?, tags: [easy], match: scalar, expected: {rows: [[99]]}}
  - {id: b, question: not asked, match: scalar, expected: {rows: [[1]]}, skip: not yet}
  - {id: c, question: How many customers?, match: scalar, expected: {rows: [[1]]}, xfail: known}
""",
    )
    project.write(
        "test_marked.py",
        "import pytest\n@pytest.mark.ctx_golden('golden.yaml')\n"
        "def test_answer(ctx_case, ctx_trace): ctx_trace(ctx_case).check()\n",
    )
    project.run("test_marked.py").assert_outcomes(passed=1, skipped=1, xfailed=1)
    assert project.calls() == ["How many customers?", "How many orders?"]
    project.run("test_marked.py", "-k", "easy").assert_outcomes(passed=1, deselected=2)


def test_deselected_tests_claim_no_file(project: Project) -> None:
    """Where ``-k`` leaves the marked test out, the plain items of its file run."""
    project.write("test_marked.py", MARKED)
    project.run("-k", "not test_answer").assert_outcomes(passed=2, deselected=2)


def test_suites_do_not_learn_from_each_other(project: Project) -> None:
    """What one file's agent names says nothing of another's: its stored answers stay hits."""
    agent = "import pytest\n@pytest.fixture\ndef ctx_agent(): return lambda ARGS: {'rows': [[1]]}\n"
    case = "cases: [{id: ID, question: q, match: scalar, expected: {rows: [[1]]}, inputs: {n: 1}}]\n"
    (project.path / "golden.yaml").unlink()
    for folder, arguments in (("a", "question, inputs"), ("b", "question")):
        project.write(f"{folder}/conftest.py", agent.replace("ARGS", arguments))
        project.write(f"{folder}/golden.yaml", case.replace("ID", folder))
    project.run("--ctx-cache").stdout.fnmatch_lines(["answers*0 hit, 2 miss"])
    project.edit("a/golden.yaml", "n: 1", "n: 2")
    project.run("--ctx-cache").stdout.fnmatch_lines(["answers*1 hit, 1 miss*", "missed*1 inputs"])


def test_agent_may_change_what_it_is_given(project: Project) -> None:
    """An agent and an assembler get copies: what they do to inputs or context changes no key and no case."""
    project.write(
        "conftest.py",
        """
import pytest

@pytest.fixture
def ctx_assembler():
    def assemble(question, inputs):
        inputs["history"].append("assembled")
        return {"Question": question, "History": " ".join(inputs["history"])}
    return assemble

@pytest.fixture
def ctx_agent():
    def ask(inputs, context):
        assert inputs.pop("history") == ["first"]
        context["Question"] = "another"
        return {"rows": [[1]]}
    return ask
""",
    )
    project.write(
        "golden.yaml",
        "cases: [{id: a, question: q, match: scalar, expected: {rows: [[1]]}, inputs: {history: [first]}}]\n",
    )
    project.run("--ctx-cache").assert_outcomes(passed=1)
    project.run("--ctx-cache").stdout.fnmatch_lines(["answers*1 hit, 0 miss*"])


def test_figures_that_cannot_be_recorded_cost_no_answer(project: Project) -> None:
    """Odd figures beside a good answer are converted or left out with a warning; the answer is stored."""
    project.edit(
        "conftest.py",
        "import pytest\n",
        "import decimal\nimport pytest\nfrom pytest_ctxfp import AgentResult\n",
    )
    project.edit(
        "conftest.py",
        "return answers[question]",
        "return AgentResult(answers[question], cost=decimal.Decimal('0.5'), latency_ms=12.5, turns='two',"
        " tool_calls=[object()])",
    )
    result = project.run("--ctx-cache")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["cost*spent 1.0000 USD in 2 calls*"])
    result.stdout.fnmatch_lines(["*AgentResult.turns was not recorded: 'two' is no number"])
    result.stdout.fnmatch_lines(["*AgentResult.tool_calls was not recorded:*"])
    project.run("--ctx-cache").stdout.fnmatch_lines(["answers*2 hit*"])


def test_calls_that_end_in_an_error_are_counted(project: Project) -> None:
    """An agent that was called and raised was paid for: the summary counts the call, at an unknown cost."""
    project.answer({"How many orders?": {"rows": [[99]]}})
    result = project.run("--ctx-cache")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["cost*spent an unknown amount in 2 calls*"])


def test_unscorable_cases_are_refused_before_the_call(project: Project) -> None:
    """A case whose answer could not be scored is an error, and nobody is asked."""
    project.write("golden.yaml", "cases: [{id: a, question: q, match: set, expected_sql: select 1}]\n")
    project.run("--ctx-cache").assert_outcomes(errors=1)
    assert project.calls() == []


def test_changing_context_is_no_error_without_a_cache(project: Project) -> None:
    """With the cache off, a clock in the context costs nothing and stops nothing."""
    project.edit(
        "conftest.py",
        'f"## Question\\n{question}\\n"',
        'f"## Clock\\n{os.urandom(8)}\\n## Question\\n{question}\\n"',
    )
    project.edit("conftest.py", "import json\n", "import json\nimport os\n")
    project.run().assert_outcomes(passed=2)


def test_one_failing_answer_leaves_the_loop_to_others(project: Project) -> None:
    """A client's background task survives another case's error."""
    project.write(
        "conftest.py",
        """
import asyncio
import pytest

class Client:
    reader = None

    async def ask(self, question):
        if self.reader is None:
            self.queue = asyncio.Queue()
            self.reader = asyncio.get_running_loop().create_task(self.read())
        if "orders" in question:
            raise RuntimeError("this one fails")
        answer = asyncio.get_running_loop().create_future()
        await self.queue.put(answer)
        return await asyncio.wait_for(answer, 5)

    async def read(self):
        while True:
            (await self.queue.get()).set_result({"rows": [[12]]})

@pytest.fixture(scope="session")
def client(): return Client()

@pytest.fixture
def ctx_agent(client): return client.ask
""",
    )
    project.run("-p", "no:asyncio", "-W", "error").assert_outcomes(passed=1, errors=1)


def test_timeout_that_nobody_enforces_is_said(project: Project) -> None:
    """A case's timeout without an async agent and without pytest-timeout is said once, not passed over."""
    project.edit("golden.yaml", "id: orders\n", "id: orders\n    timeout: 5\n")
    result = project.run("-p", "no:timeout")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["warning*timeout*pytest-timeout*"])


def test_agent_outside_the_agent_paths_is_warned_of(project: Project) -> None:
    """An agent defined in a file that is not one of the agent's is said: a change there gives old answers."""
    result = project.run("--ctx-cache")
    result.stdout.fnmatch_lines(["warning*conftest.py defines the agent and is not in ctx_agent_paths*"])
    project.edit(
        "conftest.py",
        "    def ask(question, context):\n",
        "    from agent.ask import ask\n    return ask\n\n    def _(question, context):\n",
    )
    project.write("agent/__init__.py", "")
    project.write("agent/ask.py", "def ask(question): return {'rows': [[99]]}\n")
    result = project.run_apart("--ctx-cache")
    assert "defines the agent" not in result.stdout.str()


def test_options_that_name_files_collect_nothing(project: Project) -> None:
    """Files that are values of other options are none of ours."""
    project.write("settings.yaml", "colour: red\n")
    project.write("other.yaml", (project.path / "golden.yaml").read_text())
    project.write(
        "conftest.py",
        "def pytest_addoption(parser): parser.addoption('--own-settings')\n"
        + (project.path / "conftest.py").read_text(),
    )
    project.run("--own-settings", "settings.yaml", "--deselect", "other.yaml::orders").assert_outcomes(
        passed=2
    )


def test_cache_by_ini_without_identity_is_an_error_of_the_cases_alone(project: Project) -> None:
    """With ``ctx_cache = true`` and no agent files other tests run; every case says what is missing."""
    project.edit("pytest.ini", "ctx_agent_paths = agent\n", "ctx_cache = true\n")
    project.write("test_plain.py", "def test_plain(): pass\n")
    result = project.run()
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(["*ctx_agent_paths = agent/*"])
    assert project.calls() == []


def test_golden_files_by_path(project: Project) -> None:
    """A pattern with a slash in ``ctx_golden_files`` matches paths from the rootdir."""
    (project.path / "evals").mkdir()
    (project.path / "golden.yaml").rename(project.path / "evals/one.yaml")
    project.edit("pytest.ini", "[pytest]\n", "[pytest]\nctx_golden_files = evals/*.yaml\n")
    project.run().assert_outcomes(passed=2)


def test_changed_verdict_under_the_same_expectation_is_listed(project: Project) -> None:
    """A hit whose verdict is not the recorded one is listed even where the expectation is the same."""
    project.run("--ctx-cache", "-k", "orders")
    [path] = project.traces()
    path.write_text(path.read_text().replace('"passed_then": true', '"passed_then": false'))
    project.run("--ctx-cache", "-k", "orders").stdout.fnmatch_lines(["re-scored*orders: failed -> passed"])
