"""``--ctx-models``: each case once for each model, which the agent is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project

MODELS = "--ctx-models=small,large"


@pytest.fixture
def told(project: Project) -> Project:
    """The project with an agent that takes the model and logs it."""
    project.edit("conftest.py", "def ask(question, context):", "def ask(question, context, model):")
    project.edit("conftest.py", 'log.write(question + "\\n")', 'log.write(f"{model}: {question}\\n")')
    return project


@pytest.fixture
def by_fixture(project: Project) -> Project:
    """The project with an agent fixture that asks for ``ctx_model``."""
    project.edit("conftest.py", "def ctx_agent():", "def ctx_agent(ctx_model):")
    project.edit("conftest.py", 'log.write(question + "\\n")', 'log.write(f"{ctx_model}: {question}\\n")')
    return project


ALL_CALLS = [
    "large: How many customers?",
    "large: How many orders?",
    "small: How many customers?",
    "small: How many orders?",
]


def test_items_are_named_by_model(told: Project) -> None:
    """Each case is an item a model, the models in the order of the flag; with one model names stay plain."""
    told.run("--co", "-q", MODELS).stdout.fnmatch_lines(
        [
            "golden.yaml::orders[[]small]",
            "golden.yaml::orders[[]large]",
            "golden.yaml::customers[[]small]",
            "golden.yaml::customers[[]large]",
        ],
        consecutive=True,
    )
    told.run("--co", "-q", "--ctx-models=small").stdout.fnmatch_lines(
        ["golden.yaml::orders", "golden.yaml::customers"], consecutive=True
    )


def test_models_are_picked_by_keyword_and_node_id(told: Project) -> None:
    """``-k`` finds models, and a node id runs one of them."""
    told.run(MODELS, "-k", "large and orders").assert_outcomes(passed=1, deselected=3)
    assert told.calls() == ["large: How many orders?"]
    told.run(MODELS, "golden.yaml::customers[small]").assert_outcomes(passed=1)
    assert told.calls() == ["small: How many customers?"]


def test_models_never_share_an_answer(told: Project, how: list[str]) -> None:
    """Each model is asked for itself and replayed for itself, one alone as well as among others."""
    told.run("--ctx-cache", "--ctx-models=small", *how).assert_outcomes(passed=2)
    assert told.calls() == ALL_CALLS[2:]
    result = told.run("--ctx-cache", MODELS, *how)
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["identity*model large, small*", "answers*2 hit, 2 miss*"])
    result.stdout.fnmatch_lines(["missed*2 model: small -> large"])
    assert told.calls() == ALL_CALLS[:2]
    told.run("--ctx-cache", MODELS, *how).assert_outcomes(passed=4)
    told.run("--ctx-cache", "--ctx-models=large", *how).assert_outcomes(passed=2)
    assert told.calls() == []
    told.run("--ctx-cache", *how).assert_outcomes(passed=2)
    assert len(told.calls()) == 2
    assert len(told.traces()) == 6


def test_accuracy_and_report_by_model(told: Project) -> None:
    """Summary and reports have each model's accuracy, and name failing cases with their model."""
    told.edit(
        "conftest.py",
        "return answers",
        "if model == 'small':\n            return {'rows': [[0]]}\n        return answers",
    )
    result = told.run(MODELS, "--ctx-report=run.json", "--ctx-report=run.md")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["accuracy*50% (2 of 4;*", "*large * 100% (2 of 2*", "*small * 0% (0 of 2*"])
    report = json.loads((told.path / "run.json").read_text(encoding="utf-8"))
    assert [(config["model"], config["accuracy"]) for config in report["configs"]] == [
        ("large", 1),
        ("small", 0),
    ]
    assert [(case["id"], case["model"]) for case in report["cases"]] == [
        ("orders", "large"),
        ("orders", "small"),
        ("customers", "large"),
        ("customers", "small"),
    ]
    assert (report["selected_cases"], report["total_cases"]) == (2, 2)
    assert "`orders[small]`" in (told.path / "run.md").read_text(encoding="utf-8")


def test_fixture_gets_the_model_of_its_item(by_fixture: Project) -> None:
    """An agent fixture that asks for ``ctx_model`` is built for each model, in whatever order items run."""
    by_fixture.run(MODELS).assert_outcomes(passed=4)
    assert by_fixture.calls() == ALL_CALLS
    by_fixture.run("--ctx-models=large").assert_outcomes(passed=2)
    assert by_fixture.calls() == ALL_CALLS[:2]
    by_fixture.run().assert_outcomes(passed=2)
    assert by_fixture.calls() == ["stub-1: How many customers?", "stub-1: How many orders?"]


def test_session_scoped_agent_that_asks_for_the_model(by_fixture: Project) -> None:
    """A fixture of a wider scope can't know each test's model: an error says what to do about it."""
    by_fixture.edit(
        "conftest.py", "@pytest.fixture\ndef ctx_agent", "@pytest.fixture(scope='session')\ndef ctx_agent"
    )
    by_fixture.run().assert_outcomes(passed=2)
    by_fixture.calls()
    result = by_fixture.run(MODELS, "-rE")
    result.assert_outcomes(errors=4)
    result.stdout.fnmatch_lines(
        [
            "fixture ctx_agent, *has a wider scope than ctx_model, *: make it a fixture of function scope, *",
            "ERROR golden.yaml::* - fixture ctx_agent, or one behind it, *",
        ]
    )
    assert by_fixture.calls() == []


def test_agent_that_is_not_told_is_an_error(project: Project) -> None:
    """A label that nothing is told of would be a lie: the case is an error that shows both ways out."""
    for models, n in ((MODELS, 4), ("--ctx-models=large", 2)):
        result = project.run("--ctx-cache", models)
        result.assert_outcomes(errors=n)
        result.stdout.fnmatch_lines(
            ["*nothing tells the agent: let the agent have an argument 'model', or*ctx_model*"]
        )
        assert project.calls() == []
        assert project.traces() == []


def test_model_known_by_the_test_only(project: Project) -> None:
    """A test that asks for ``ctx_model`` itself tells the agent nothing."""
    project.write("test_marked.py", MARKED)
    result = project.run(MODELS, "test_marked.py")
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(["*nothing tells the agent: *"])
    assert project.calls() == []


def test_model_that_a_fixture_asks_for_while_it_runs(by_fixture: Project) -> None:
    """An agent fixture may ask for ``ctx_model`` by ``request.getfixturevalue`` too, for every sample."""
    by_fixture.edit("conftest.py", "def ctx_agent(ctx_model):", "def ctx_agent(request):")
    by_fixture.edit(
        "conftest.py", "    def ask(", "    ctx_model = request.getfixturevalue('ctx_model')\n\n    def ask("
    )
    by_fixture.run(MODELS, "--ctx-repeat=2").assert_outcomes(passed=4)
    assert by_fixture.calls() == sorted(ALL_CALLS * 2)
    by_fixture.edit(
        "conftest.py",
        "return answers",
        "asked = (HERE / 'calls.txt').read_text()\n"
        "        assert asked.count(f'{ctx_model}: {question}') > 1\n        return answers",
    )
    by_fixture.run(MODELS, "--reruns=1").assert_outcomes(passed=4)


def test_overriding_model_fixture(by_fixture: Project) -> None:
    """A suite whose own ``ctx_model`` doesn't take the flag's is an error, not a run under a false label."""
    by_fixture.edit(
        "conftest.py",
        "@pytest.fixture\ndef ctx_agent",
        "@pytest.fixture\ndef ctx_model():\n    return 'mine'\n\n\n@pytest.fixture\ndef ctx_agent",
    )
    by_fixture.run().assert_outcomes(passed=2)
    assert by_fixture.calls() == ["mine: How many customers?", "mine: How many orders?"]
    result = by_fixture.run(MODELS)
    result.assert_outcomes(errors=4)
    assert by_fixture.calls() == []


def test_model_fixture_that_passes_the_flag_on(by_fixture: Project) -> None:
    """A suite's ``ctx_model`` that builds on ours gets each test's model."""
    by_fixture.edit(
        "conftest.py",
        "@pytest.fixture\ndef ctx_agent",
        "@pytest.fixture\ndef ctx_model(ctx_model):\n  return ctx_model\n\n\n@pytest.fixture\ndef ctx_agent",
    )
    by_fixture.run(MODELS).assert_outcomes(passed=4)
    assert by_fixture.calls() == ALL_CALLS


MARKED = """
import pytest

@pytest.mark.ctx_golden("golden.yaml")
def test_answer(ctx_case, ctx_trace, ctx_model):
    outcome = ctx_trace(ctx_case)
    assert outcome.trace.model == ctx_model
    outcome.check()
"""


def test_marker_tests_run_once_a_model(told: Project) -> None:
    """A test with the marker has parameters ``id-model``, and each knows its model."""
    told.write("test_marked.py", MARKED)
    result = told.run("--co", "-q", MODELS, "test_marked.py")
    result.stdout.fnmatch_lines(["*test_answer[[]orders-small]", "*test_answer[[]orders-large]"])
    told.run("--ctx-cache", MODELS).assert_outcomes(passed=4, deselected=4)
    assert told.calls() == ALL_CALLS
    told.run("--ctx-cache", MODELS).assert_outcomes(passed=4, deselected=4)
    assert told.calls() == []


OWN_CASE = """
from pathlib import Path
from pytest_ctxfp import load_golden

def test_own(ctx_trace):
    ctx_trace(load_golden(Path(__file__).with_name("golden.yaml")).cases[0]).check()
"""


def test_case_of_a_tests_own(told: Project) -> None:
    """A test that traces a case of its own runs for one model, and for several it is told of the marker."""
    told.write("test_own.py", OWN_CASE)
    told.run("test_own.py", "--ctx-models=large").assert_outcomes(passed=1)
    assert told.calls() == ["large: How many orders?"]
    result = told.run("test_own.py", MODELS)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*--ctx-models names several, and this test traces its case once: *ctx_golden*"]
    )
    assert told.calls() == []


CALLS = """
import pytest
from pytest_ctxfp import cached_call

@cached_call()
def helper(question):
    print("asked helper")
    return question

@pytest.mark.ctx_golden("golden.yaml")
def test_call(ctx_case, ctx_trace, ctx_model):
    question = ctx_case.question
    assert ctx_trace.call("own", lambda: [ctx_model, question], key={"m": ctx_model}) == [ctx_model, question]
    assert helper(question) == question
"""


def test_calls_of_a_test_are_keyed_by_its_model(told: Project) -> None:
    """``ctx_trace.call`` and ``cached_call`` have the model of their test in their keys."""
    told.write("test_calls.py", CALLS)
    flags = ["test_calls.py", "--ctx-cache"]
    told.run(*flags, "--ctx-models=small").assert_outcomes(passed=2)
    told.run(*flags, MODELS).stdout.fnmatch_lines(["calls*8: 4 hit, 4 miss*"])
    told.run(*flags, MODELS).stdout.fnmatch_lines(["calls*8: 8 hit, 0 miss*"])


OWN_CALLS = """
import pytest
from pytest_ctxfp import cached_call

@pytest.fixture
def ctx_model():
    return "mine"

@cached_call()
def helper(question):
    return question

def test_call(ctx_trace):
    assert ctx_trace.call("own", lambda: "x") == "x"
    assert helper("y") == "y"
"""


def test_calls_without_a_case_are_keyed_by_the_named_model(told: Project) -> None:
    """A test without a case has the one model that is named, whatever the suite's ``ctx_model`` says."""
    told.write("test_calls.py", OWN_CALLS)
    flags = ["test_calls.py", "--ctx-cache"]
    for model in ("small", "large"):
        told.run(*flags, f"--ctx-models={model}").stdout.fnmatch_lines(["calls*2: 0 hit, 2 miss*"])
        told.run(*flags, f"--ctx-models={model}").stdout.fnmatch_lines(["calls*2: 2 hit, 0 miss*"])
    told.run(*flags).stdout.fnmatch_lines(["calls*2: 0 hit, 2 miss*"])


PARAMETRISED = """
import pytest

@pytest.mark.ctx_golden("golden.yaml")
def test_answer(ctx_case, ctx_trace, {name}):
    ctx_trace(ctx_case).check()
"""


@pytest.mark.parametrize("name", ["ctx_agent", "ctx_assembler"])
def test_parametrised_fixture(told: Project, name: str) -> None:
    """A fixture with ``params`` fails in a golden item with the way out, and works in a marked test."""
    told.edit(
        "conftest.py",
        f"@pytest.fixture\ndef {name}():",
        f"@pytest.fixture(params=['a', 'b'])\ndef {name}(request):",
    )
    result = told.run("--ctx-cache", MODELS)
    result.assert_outcomes(errors=4)
    result.stdout.fnmatch_lines([f"*fixture {name} has params,*write a test with @pytest.mark.ctx_golden*"])
    assert told.calls() == []
    told.write("test_marked.py", PARAMETRISED.format(name=name))
    told.run("--ctx-cache", MODELS, "test_marked.py").assert_outcomes(passed=8)
    n_answers = 8 if name == "ctx_agent" else 4
    assert len(told.calls()) <= 8
    assert len(told.traces()) == n_answers
    told.run("--ctx-cache", MODELS, "test_marked.py").assert_outcomes(passed=8)
    assert told.calls() == []


def test_command_under_a_failure_names_the_models(told: Project) -> None:
    """The item's name holds the model, so the command that asks again names the models too."""
    told.edit("conftest.py", "return answers", "return {'rows': [[0]]} or answers")
    told.run("--ctx-cache", MODELS)
    told.calls()
    result = told.run("--ctx-cache", MODELS)
    command = "pytest 'golden.yaml::orders[[]small]' --ctx-refresh --ctx-models=small,large"
    result.stdout.fnmatch_lines([f"ask again  {command}"])
    told.run("golden.yaml::orders[small]", "--ctx-refresh", MODELS).assert_outcomes(failed=1)
    assert told.calls() == ["small: How many orders?"]


def test_weird_labels(told: Project) -> None:
    """Labels with brackets, colons and spaces make items that run, and stay as they are in reports."""
    labels = ["a/b", "x::y", "ü [1]", "{0}"]
    result = told.run(f"--ctx-models= {labels[0]} ,{','.join(labels[1:])}", "--ctx-report=run.json")
    result.assert_outcomes(passed=8)
    report = json.loads((told.path / "run.json").read_text(encoding="utf-8"))
    assert {case["model"] for case in report["cases"]} == set(labels)


@pytest.mark.parametrize("value", ["", ",", "a,a", " , ", "a\nb", "a,\x1b[31m"])
def test_bad_names_are_a_usage_error(told: Project, value: str) -> None:
    """No name, one name twice and names that can't be shown end the run with what to write."""
    result = told.run(f"--ctx-models={value}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--ctx-models*names*"])
    assert told.calls() == []
