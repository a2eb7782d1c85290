"""``--ctx-cache``: hits, re-scored hits, and misses that say why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project


def test_second_run_makes_no_call(project: Project, how: list[str]) -> None:
    """A run after a run asks nobody and says so: hits, nothing spent, something saved."""
    project.run("--ctx-cache", *how).assert_outcomes(passed=2)
    assert len(project.calls()) == 2
    result = project.run("--ctx-cache", *how)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "cache*auto, .ctxfp/traces",
            "identity*agent * (1 file), model stub-1",
            "answers*2 hit, 0 miss; oldest*",
        ]
    )
    assert project.calls() == []


def test_ini_turns_the_cache_on(project: Project) -> None:
    """``ctx_cache = true`` is the same as the flag."""
    project.edit("pytest.ini", "[pytest]\n", "[pytest]\nctx_cache = true\n")
    project.run()
    project.run().assert_outcomes(passed=2)
    assert len(project.calls()) == 2


def test_edited_expectation_is_rescored_without_a_call(project: Project, how: list[str]) -> None:
    """After an edit of ``expected`` the stored answer is scored anew, with 0 calls, and marked re-scored with
    its old and its new verdict.
    """
    project.run("--ctx-cache", *how)
    project.calls()
    project.edit("golden.yaml", "[[99]]", "[[100]]")
    result = project.run("--ctx-cache", *how)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["answers*2 hit (1 re-scored), 0 miss*", "re-scored*orders: passed -> failed", "cost*0 calls*"]
    )
    result.stdout.fnmatch_lines(["answer*re-scored: passed -> failed*"])
    assert project.calls() == []


@pytest.mark.parametrize(
    "edit",
    [
        (
            "match: scalar\n    expected: {columns: [n], rows: [[99]]}",
            "match: set\n    expected: {rows: [[99]]}",
        ),
        ("[[99]]", "[[99.4]]\n    tolerance: {numeric: 0.5}".replace("]]\n", "]]}\n").rstrip("}")),
        ("tags: [easy]\n", "tags: [hard]\n"),
    ],
)
def test_nothing_of_the_expectation_is_in_the_key(project: Project, edit: tuple[str, str]) -> None:
    """Match mode, tolerance and tags may change without a call."""
    project.run("--ctx-cache")
    project.calls()
    text = (project.path / "golden.yaml").read_text()
    if edit[0] == "[[99]]":
        text = text.replace("rows: [[99]]}", "rows: [[99.4]]}\n    tolerance: {numeric: 0.5}")
    else:
        assert edit[0] in text
        text = text.replace(*edit)
    project.write("golden.yaml", text)
    project.run("--ctx-cache").assert_outcomes(passed=2)
    assert project.calls() == []


def test_rescored_word_under_verbose(project: Project) -> None:
    """``-v`` says PASSED (re-scored) for a hit under another expectation and PASSED (replayed) otherwise."""
    project.run("--ctx-cache")
    project.edit("golden.yaml", "[[99]]", "[[99.0]]")
    result = project.run("--ctx-cache", "-v")
    result.stdout.fnmatch_lines(["*orders PASSED (re-scored)*", "*customers PASSED (replayed)*"])
    result.stdout.fnmatch_lines(["re-scored*1 with the verdict they had"])


def test_progress_letter(project: Project) -> None:
    """A hit that passes shows the letter r, a fresh answer a dot."""
    project.run("--ctx-cache").stdout.fnmatch_lines(["golden.yaml ..*"])
    project.run("--ctx-cache").stdout.fnmatch_lines(["golden.yaml rr*"])


def test_edited_agent_file_is_a_miss_that_names_it(project: Project) -> None:
    """A changed, a new and a removed file under ``ctx_agent_paths`` miss, and the summary names the file."""
    project.write("agent/tools.py", "A = 1\n")
    project.run("--ctx-cache")
    project.write("agent/prompt.md", "Answer with a table, please.\n")
    project.run("--ctx-cache").stdout.fnmatch_lines(["missed*2 agent: agent/prompt.md"])
    project.write("agent/new.py", "")
    (project.path / "agent/tools.py").unlink()
    project.run("--ctx-cache").stdout.fnmatch_lines(
        ["missed*2 agent: agent/new.py (new), agent/tools.py (gone)"]
    )


def test_edited_context_is_a_miss_that_names_the_layer(project: Project) -> None:
    """What the assembler puts in the context is in the key; a miss names the layer."""
    project.run("--ctx-cache")
    project.edit("rules.md", "- count all", "- count all but test orders")
    project.run("--ctx-cache").stdout.fnmatch_lines(
        ["answers*0 hit, 2 miss", "missed*2 context: Business Rules"]
    )
    project.edit("rules.md", "## Identity\nYou answer.\n\n", "")
    project.run("--ctx-cache").stdout.fnmatch_lines(["missed*2 context: Identity"])


def test_order_alone_is_named(project: Project) -> None:
    """Lines that merely changed places are said to be the same lines in another order."""
    project.edit("rules.md", "- count all\n", "- a\n- b\n")
    project.run("--ctx-cache")
    project.edit("rules.md", "- a\n- b\n", "- b\n- a\n")
    project.run("--ctx-cache").stdout.fnmatch_lines(
        ["missed*2 context: same lines, other order in Business Rules: sort it"]
    )


def test_edited_question_model_and_new_case(project: Project) -> None:
    """A changed question, another model and a new case are each named as such."""
    project.run("--ctx-cache")
    project.answer({"How many orders now?": {"rows": [[99]]}, "How many customers?": {"rows": [[12]]}})
    project.edit("golden.yaml", "How many orders?", "How many orders now?")
    project.run("--ctx-cache").stdout.fnmatch_lines(
        ["answers*1 hit, 1 miss*", "missed*1 question; context: Question"]
    )
    project.edit("pytest.ini", "stub-1", "stub-2")
    project.run("--ctx-cache").stdout.fnmatch_lines(["missed*2 model: stub-1 -> stub-2"])
    project.edit("golden.yaml", "id: orders", "id: orders_now")
    project.run("--ctx-cache").stdout.fnmatch_lines(["missed*1 new case"])


def test_refactored_assembler_hits(project: Project) -> None:
    """Another assembler that builds the same bytes costs nothing."""
    project.run("--ctx-cache")
    project.calls()
    project.edit(
        "conftest.py",
        'return (HERE / "rules.md").read_text(encoding="utf-8") + f"## Question\\n{question}\\n"',
        'rules = (HERE / "rules.md").read_text(encoding="utf-8")\n'
        '        return "".join([rules, "## Question", "\\n", question, "\\n"])',
    )
    project.run("--ctx-cache").stdout.fnmatch_lines(["answers*2 hit, 0 miss*"])
    assert project.calls() == []


INPUTS_CONFTEST = """
import pathlib
import pytest

HERE = pathlib.Path(__file__).parent

@pytest.fixture
def ctx_assembler():
    def assemble(question{assembler}):
        return f"## Question\\n{{question}}\\n"
    return assemble

@pytest.fixture
def ctx_agent():
    def ask(question{agent}):
        with open(HERE / "calls.txt", "a") as log:
            log.write(question + "\\n")
        return {{"rows": [[1]]}}
    return ask
"""


@pytest.mark.parametrize(("agent", "n_calls"), [(", inputs", 1), ("", 0), (", case", 1), (", **rest", 1)])
def test_inputs_are_in_the_key_where_the_agent_names_them(project: Project, agent: str, n_calls: int) -> None:
    """An edit of ``inputs`` is a miss if the agent names inputs or case (or takes anything), else a hit."""
    project.write("conftest.py", INPUTS_CONFTEST.format(assembler=", inputs", agent=agent))
    project.write(
        "golden.yaml",
        "cases:\n  - {id: a, question: q, match: scalar, expected: {rows: [[1]]}, inputs: {tenant: acme}}\n",
    )
    project.run("--ctx-cache").assert_outcomes(passed=1)
    project.run("--ctx-cache").assert_outcomes(passed=1)
    assert len(project.calls()) == 1
    project.edit("golden.yaml", "acme", "bolt")
    result = project.run("--ctx-cache")
    assert len(project.calls()) == n_calls
    if n_calls:
        result.stdout.fnmatch_lines(["missed*1 *inputs*" if "case" not in agent else "missed*1 case"])


@pytest.mark.parametrize("volatile", ["time.time_ns()", "uuid.uuid4()", "next(counter)", "random.random()"])
def test_clock_or_random_id_in_the_context_is_an_error_before_any_call(
    project: Project, volatile: str
) -> None:
    """An assembler that gives other bytes each time is an error that names the layer; nobody is asked."""
    project.edit(
        "conftest.py",
        'f"## Question\\n{question}\\n"',
        f'f"## Clock\\nnow {{{volatile}}}\\n## Question\\n{{question}}\\n"',
    )
    project.edit(
        "conftest.py",
        "import json\n",
        "import itertools, json, random, time, uuid\ncounter = itertools.count()\n",
    )
    result = project.run("--ctx-cache")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*another context for the same case each time, in layer 'Clock'*"])
    assert project.calls() == []


def test_slow_clock_is_an_error_before_the_second_call(project: Project) -> None:
    """A clock of whole seconds only differs after the first answer; no second one is paid for."""
    project.edit("conftest.py", "import json\n", "import json\nTICKS = []\n")
    project.edit("conftest.py", "        with open(", "        TICKS.append(1)\n        with open(")
    project.edit(
        "conftest.py",
        'f"## Question\\n{question}\\n"',
        'f"## Clock\\n{len(TICKS)}\\n## Question\\n{question}\\n"',
    )
    result = project.run("--ctx-cache")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*each time, in layer 'Clock'*"])
    assert project.calls() == ["How many orders?"]


def test_cache_without_identity_is_a_usage_error(project: Project) -> None:
    """``--ctx-cache`` without agent files stops before any call and shows the ini line to add."""
    project.edit("pytest.ini", "ctx_agent_paths = agent\n", "")
    result = project.run("--ctx-cache")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *ctx_agent_paths = agent/*"])
    project.edit("pytest.ini", "[pytest]\n", "[pytest]\nctx_agent_paths = nowhere\n")
    result = project.run("--ctx-cache")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *ctx_agent_paths*'nowhere'*"])
    assert project.calls() == []


def test_corrupt_traces_are_misses_and_are_replaced(project: Project) -> None:
    """Truncated JSON and a trace of another key are corrupt: asked again, counted, named, replaced."""
    project.run("--ctx-cache")
    first, second = project.traces()
    first.write_bytes(first.read_bytes()[:50])
    second.write_text(second.read_text().replace('"question": "', '"question": "x'))
    project.calls()
    result = project.run("--ctx-cache")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["answers*0 hit, 2 miss, 2 corrupt", "warning*corrupt*"])
    assert len(project.calls()) == 2
    project.run("--ctx-cache").stdout.fnmatch_lines(["answers*2 hit, 0 miss*"])


def test_trace_under_another_name_is_never_a_hit(project: Project) -> None:
    """A trace copied over another key's file is not taken for its answer."""
    project.run("--ctx-cache")
    first, second = project.traces()
    second.write_bytes(first.read_bytes())
    project.calls()
    project.run("--ctx-cache").stdout.fnmatch_lines(["answers*1 hit, 1 miss, 1 corrupt*"])
    assert len(project.calls()) == 1


def test_unparseable_answer_is_replayed_and_fails(project: Project) -> None:
    """Prose without a table fails, is stored, and is not rolled again: 0 calls the second time."""
    project.answer({"How many orders?": "I don't know, sorry.", "How many customers?": "about 12"})
    project.run("--ctx-cache").assert_outcomes(failed=2)
    project.calls()
    result = project.run("--ctx-cache")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["actual*I don't know, sorry."])
    assert project.calls() == []


def test_agent_error_is_never_stored_and_never_scored(project: Project) -> None:
    """An agent that raises is an ERROR with its text and traceback; nothing is stored, it is asked again."""
    project.answer({"How many customers?": {"rows": [[12]]}})
    result = project.run("--ctx-cache")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*the agent raised KeyError: 'How many orders?'",
            "*conftest.py*in ask",
            "cases*1 passed, 0 failed, 1 error",
        ]
    )
    result.stdout.fnmatch_lines(["accuracy*100% (1 of 1*1 without a verdict not counted"])
    assert len(project.traces()) == 1
    assert "How many orders?" in project.calls()
    project.run("--ctx-cache")
    assert project.calls() == ["How many orders?"]


def test_traces_are_readable_and_complete(project: Project) -> None:
    """A trace holds the key's parts, the answer, when and by whom it was recorded, its first verdict and the
    context's fingerprint.
    """
    project.run("--ctx-cache", "-k", "orders")
    [path] = project.traces()
    trace = json.loads(path.read_text(encoding="utf-8"))
    assert trace["case_id"] == "orders"
    assert trace["result"] == {"columns": ["n"], "rows": [[99]]}
    assert trace["passed_then"] is True
    assert trace["recorded_by"].startswith("pytest-ctxfp ")
    assert trace["context"]["order"] == ["Identity", "Business Rules", "Question"]
    assert trace["cost"] is None


def test_agent_is_not_built_on_a_hit(project: Project) -> None:
    """On a hit ``ctx_agent`` is not even instantiated: a fixture that raises proves it."""
    project.run("--ctx-cache")
    project.edit(
        "conftest.py", "def ctx_agent():\n", "def ctx_agent():\n    raise RuntimeError('credentials!')\n"
    )
    project.run("--ctx-cache").assert_outcomes(passed=2)


def test_cache_clear_leaves_traces(project: Project) -> None:
    """``--cache-clear`` is pytest's own: traces are paid for and stay."""
    project.edit("pytest.ini", "addopts = -p no:cacheprovider\n", "")
    project.run("--ctx-cache")
    project.run("--ctx-cache", "--cache-clear").stdout.fnmatch_lines(["answers*2 hit*"])


def test_unwritable_cache_keeps_verdicts(project: Project) -> None:
    """Where answers can't be stored the verdicts are right, and the summary counts what was not stored."""
    project.write(".ctxfp/traces/readme", "")
    project.write(
        "conftest.py",
        (project.path / "conftest.py").read_text()
        + "\nimport os\nreal = os.replace\ndef refuse(a, b):\n"
        + "    if '.ctxfp' in str(b):\n        raise PermissionError(13, 'Permission denied', str(b))\n"
        + "    return real(a, b)\nos.replace = refuse\n",
    )
    try:
        result = project.run("--ctx-cache")
    finally:
        import os

        if os.replace.__name__ == "refuse":
            os.replace = os.replace.__globals__["real"]
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["warning*2 answers could not be stored: *Permission denied*"])
    assert project.traces() == []


def test_cache_folder_that_is_a_file_is_a_usage_error(project: Project) -> None:
    """A file in the place of the cache folder stops the run before anything is paid for."""
    project.write(".ctxfp/traces", "not a folder")
    result = project.run("--ctx-cache")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *traces' is not a folder*--ctx-cache-dir*"])
    assert project.calls() == []


def test_costs_are_counted_once_and_absent_is_not_zero(project: Project) -> None:
    """The summary adds up what was spent and what hits saved, and says where a cost is unknown."""
    project.edit("conftest.py", "import pytest\n", "import pytest\nfrom pytest_ctxfp import AgentResult\n")
    project.edit(
        "conftest.py",
        "return answers[question]",
        "return AgentResult(answers[question], cost=0.25 if 'orders' in question else None)",
    )
    project.run("--ctx-cache").stdout.fnmatch_lines(
        ["cost*spent 0.2500 USD and an unknown amount for 1 in 2 calls, saved 0.0000 USD"]
    )
    project.run("--ctx-cache").stdout.fnmatch_lines(
        ["cost*spent 0.0000 USD in 0 calls, saved 0.2500 USD and an unknown amount for 1"]
    )


def test_warble_trace_is_a_hit(project: Project) -> None:
    """A trace file with only Warble's fields is replayed, whatever it lacks of ours."""
    project.run("--ctx-cache", "-k", "orders")
    [path] = project.traces()
    trace = json.loads(path.read_text())
    names = (
        "case_id agent_sha model context_version context_sha question sql_executed result cost latency_ms"
        " turns tool_calls backend"
    )
    path.write_text(json.dumps({name: trace[name] for name in names.split()}))
    project.calls()
    project.run("--ctx-cache", "-k", "orders").stdout.fnmatch_lines(["answers*1 hit, 0 miss"])
    assert project.calls() == []
