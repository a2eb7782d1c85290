"""Secrets stay out of every file and every failure, and change no hash, no hit and no verdict."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Project

KEY = "sk-ant-api03-" + "Zq7LmW4xT9" * 3
TOKEN = "hunter2-4711"

CONFTEST = f"""
import os
import pathlib

import pytest
from pytest_ctxfp import AgentResult

HERE = pathlib.Path(__file__).parent
KEY = "{KEY}"


@pytest.fixture
def ctx_assembler():
    def assemble(question):
        return f"## Rules\\ncount all, {{KEY}}\\n## Token {{KEY}}\\nsecret\\n## Question\\n{{question}}\\n"

    return assemble


@pytest.fixture
def ctx_agent():
    def ask(question, context, inputs):
        print("calling with", KEY)
        with open(HERE / "calls.txt", "a", encoding="utf-8") as log:
            log.write("call\\n")
        if "raise" in question:
            raise ValueError(f"401 for key {{KEY}}")
        return AgentResult(
            f"the answer is {{KEY}}, hunter2-4711",
            sql=f"select '{{KEY}}'",
            tool_calls=[{{"name": "search", "arguments": {{KEY: [KEY]}}}}],
            served_model="stub",
        )

    return ask
"""

GOLDEN = f"""cases:
  - id: right
    question: "May I use {KEY}?"
    inputs: {{key: "{KEY}"}}
    result_kind: text
    match: contains
    expected: "the answer is [redacted]"
  - id: wrong
    question: "Is {KEY} fine?"
    result_kind: text
    match: exact
    expected: "not {KEY}"
"""

RAISING = f"""cases:
  - id: raising
    question: "Do raise {KEY}"
    result_kind: text
    match: exact
    expected: x
"""

INI = """[pytest]
ctx_agent_paths = agent
ctx_model = stub-1
addopts = -p no:cacheprovider
"""

SNAPSHOT = f"""
def test_context(ctx_snapshot):
    ctx_snapshot.check("## Rules\\nuse {KEY}\\n## Facts {KEY}\\nx\\n## Facts {KEY}\\ny\\n")
"""


@pytest.fixture
def leaky(empty_project: Project) -> Project:
    """A project whose question, context, answer, tool calls, SQL and errors hold a key."""
    empty_project.write("conftest.py", CONFTEST)
    empty_project.write("pytest.ini", INI)
    empty_project.write("golden.yaml", GOLDEN)
    empty_project.write("agent/prompt.md", "Answer.\n")
    return empty_project


def texts_written(project: Project, before: set[Path]) -> str:
    """Return all files that were not there before, with their names."""
    files = {path for path in project.path.rglob("*") if path.is_file()} - before
    files = {path for path in files if "__pycache__" not in path.parts}
    return "\n".join(f"{path}\n{path.read_bytes().decode()}" for path in files)


def files_of(project: Project) -> set[Path]:
    """Return the files that are there now."""
    return {path for path in project.path.rglob("*") if path.is_file()}


def test_a_key_is_in_no_file_and_no_failure_and_hits_still_happen(leaky: Project, how: list[str]) -> None:
    """What looks like a key is written and shown nowhere; the second run makes no call."""
    before = files_of(leaky)
    first = leaky.run("--ctx-cache", "--junitxml=junit.xml", "-rA", "-vv", *how)
    first.assert_outcomes(passed=1, failed=1)
    assert len(leaky.calls()) == 2
    written, shown = texts_written(leaky, before), str(first.stdout) + str(first.stderr)
    assert "Zq7LmW4xT9" not in written
    assert "Zq7LmW4xT9" not in shown
    assert "[redacted]" in shown
    trace = next(json.loads(path.read_text()) for path in leaky.traces() if "right" in path.read_text())
    assert trace["question"] == "May I use [redacted]?"
    assert trace["tool_calls"] == [{"name": "search", "arguments": {"[redacted]": ["[redacted]"]}}]
    assert trace["sql_executed"] == "select '[redacted]'"
    assert trace["params"] == {"inputs": {"key": "[redacted]"}}
    assert trace["context"]["order"] == ["Rules", "Token [redacted]", "Question"]
    assert trace["raw"] == "the answer is [redacted], hunter2-4711"

    second = leaky.run("--ctx-cache", "--junitxml=junit.xml", *how)
    second.assert_outcomes(passed=1, failed=1)
    assert leaky.calls() == []
    second.stdout.fnmatch_lines(["answers*2 hit*0 miss*"])
    assert "Zq7LmW4xT9" not in texts_written(leaky, before) + str(second.stdout)


def test_an_error_of_the_agent_shows_without_the_key(leaky: Project) -> None:
    """What the agent raised and printed is shown without the key, in the terminal and in junit's file."""
    leaky.write("golden.yaml", RAISING)
    before = files_of(leaky)
    result = leaky.run("--ctx-cache", "--junitxml=junit.xml", "-rA")
    result.assert_outcomes(errors=1)
    assert "Zq7LmW4xT9" not in str(result.stdout) + texts_written(leaky, before)
    result.stdout.fnmatch_lines(["*the agent raised ValueError: 401 for key [[]redacted]*"])
    result.stdout.fnmatch_lines(["calling with [[]redacted]"])


def test_patterns_and_hooks_redact_too(leaky: Project) -> None:
    """The ini file's patterns and every implementation of the hook are applied; hits happen under them."""
    leaky.write("pytest.ini", INI + "ctx_redact =\n    hunter2-\\d+\n    nothing{3}\n")
    leaky.write(
        "conftest.py",
        CONFTEST + "\ndef pytest_ctxfp_redact(text):\n    return text.replace('May I', 'Might I')\n",
    )
    leaky.write("sub/conftest.py", "def pytest_ctxfp_redact(text):\n    return text.replace('use', 'see')\n")
    leaky.write("sub/test_x.py", "def test_x(): pass\n")
    leaky.write("golden.yaml", GOLDEN.replace("is [redacted]", "is [redacted], [redacted]"))
    leaky.run("--ctx-cache").assert_outcomes(passed=2, failed=1)
    assert len(leaky.calls()) == 2
    texts = "".join(path.read_text() for path in leaky.traces())
    assert "hunter2" not in texts
    assert "Might I see [redacted]?" in texts
    leaky.run("--ctx-cache").assert_outcomes(passed=2, failed=1)
    assert leaky.calls() == []


def test_what_is_scored_is_the_redacted_answer_also_without_a_cache(leaky: Project) -> None:
    """A case that expects the key itself fails on a miss, on a hit and without a cache alike."""
    leaky.write("golden.yaml", GOLDEN.replace("is [redacted]", f"is {KEY}"))
    for flags in ((), ("--ctx-cache",), ("--ctx-cache",)):
        leaky.run(*flags).assert_outcomes(failed=2)


def test_key_shapes_can_be_kept(leaky: Project) -> None:
    """With ``ctx_redact_defaults = false`` only what the suite names is a secret."""
    leaky.write("pytest.ini", INI + "ctx_redact_defaults = false\nctx_redact = hunter2\n")
    leaky.run("--ctx-cache")
    texts = "".join(path.read_text() for path in leaky.traces())
    assert KEY in texts
    assert "hunter2" not in texts


@pytest.mark.parametrize("pattern", ["(", "*x", "(?P<a>x)(?P<a>y)", "x{1,99999999999999999999}"])
def test_a_bad_pattern_is_a_usage_error(leaky: Project, pattern: str) -> None:
    """What is no regular expression is named, before anything runs."""
    leaky.write("pytest.ini", INI + f"ctx_redact =\n    fine\n    {pattern}\n")
    result = leaky.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*ini option ctx_redact: {pattern!r} is no*".replace("[", "[[]")])


@pytest.mark.parametrize(
    ("body", "message"),
    [("return None", "returned NoneType: return the text"), ("raise ValueError(text)", "raised ValueError")],
)
def test_a_bad_hook_is_named_and_nothing_leaks(leaky: Project, body: str, message: str) -> None:
    """A hook that fails makes its cases errors that name it: no call is paid, nothing is written or shown."""
    leaky.write("conftest.py", CONFTEST + f"\ndef pytest_ctxfp_redact(text):\n    {body}\n")
    before = files_of(leaky)
    result = leaky.run("--ctx-cache", "--junitxml=junit.xml", "-rA")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines([f"*hook pytest_ctxfp_redact of *conftest.py {message}*"])
    assert "Zq7LmW4xT9" not in str(result.stdout) + texts_written(leaky, before)
    assert leaky.traces() == []


def test_snapshots_hide_secrets_and_hash_them(leaky: Project) -> None:
    """A layer's stored text is redacted, its hash is not; another key fails, an update mends it."""
    leaky.write("golden.yaml", "cases: []\n")
    leaky.write("test_context.py", SNAPSHOT)
    before = files_of(leaky)
    leaky.run("--ctx-snapshot-create").assert_outcomes(passed=1)
    leaky.run().assert_outcomes(passed=1)
    written = texts_written(leaky, before)
    assert "Zq7LmW4xT9" not in written
    assert '["Rules", ' in written
    assert '["Facts [redacted]#2", ' in written
    assert "use [redacted]\n" in written

    other = KEY.replace("Zq7", "Zq8")
    leaky.write("test_context.py", SNAPSHOT.replace(f"use {KEY}", f"use {other}"))
    failed = leaky.run("-rA")
    failed.assert_outcomes(failed=1)
    assert "LmW4xT9" not in str(failed.stdout)
    failed.stdout.fnmatch_lines(["*1 layer changed: Rules*", "*or what changed is redacted*"])

    leaky.write("test_context.py", SNAPSHOT.replace("use", "always use"))
    failed = leaky.run()
    failed.stdout.fnmatch_lines(["-use [[]redacted]", "+always use [[]redacted]"])
    leaky.run("--ctx-snapshot-update").assert_outcomes(passed=1)
    leaky.run().assert_outcomes(passed=1)
    assert "LmW4xT9" not in texts_written(leaky, before)


def test_calls_of_tests_are_redacted_alike_on_miss_and_hit(leaky: Project) -> None:
    """A helper's answer comes back without the key, from the call as from the store."""
    leaky.write("golden.yaml", "cases: []\n")
    leaky.write(
        "test_calls.py",
        f"""
def test_call(ctx_trace):
    answer = ctx_trace.call("ask", lambda: "{KEY}!", question="{KEY}?")
    assert answer == "[redacted]!"


def test_raising(ctx_trace):
    def fail():
        raise ValueError("bad {KEY}")

    ctx_trace.call("fail", fail)
""",
    )
    before = files_of(leaky)
    for _ in range(2):
        result = leaky.run("--ctx-cache", "--junitxml=junit.xml")
        result.assert_outcomes(passed=1, failed=1)
        assert "Zq7LmW4xT9" not in str(result.stdout) + texts_written(leaky, before)
    result.stdout.fnmatch_lines(["calls*1 hit*"])


REPORTED = f"""cases:
  - id: right
    question: "May I use {KEY}?"
    inputs: {{key: "{KEY}"}}
    metadata: {{owner: "{KEY}"}}
    result_kind: text
    match: contains
    expected: "the answer is [redacted]"
  - id: known
    question: "Is {KEY} fine?"
    xfail: "waits for {KEY}"
    result_kind: text
    match: exact
    expected: "not {KEY}"
  - id: raising
    question: "Do raise {KEY}"
    result_kind: text
    match: exact
    expected: x
"""
REPORTS = ("--ctx-report=run.json", "--ctx-report=run.md", "--junitxml=junit.xml", "-rA", "-vv")


def cases_of(project: Project, name: str) -> list[dict[str, Any]]:
    """Return the cases of a report."""
    cases: list[dict[str, Any]] = json.loads((project.path / name).read_text())["cases"]
    return cases


def test_reports_hold_no_key_and_a_baseline_compares(leaky: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """No report has the key; held against one, equal keys stay equal and a recalibrated case is re-scored."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(leaky.path / "summary.md"))
    leaky.write("pytest.ini", INI + "ctx_step_summary = true\n")
    leaky.write("golden.yaml", REPORTED)
    before = files_of(leaky)
    first = leaky.run("--ctx-cache", *REPORTS)
    first.assert_outcomes(passed=1, xfailed=1, errors=1)
    right, known, raising = cases_of(leaky, "run.json")
    assert right["metadata"] == {"owner": "[redacted]"}
    assert right["expectation"]["expected"] == "the answer is [redacted]"
    assert right["context"]["order"] == ["Rules", "Token [redacted]", "Question"]
    (sample,) = right["samples_detail"]
    assert sample["answer"] == "the answer is [redacted], hunter2-4711"
    assert sample["key_parts"]["question"] == "May I use [redacted]?"
    assert sample["key_parts"]["params"] == {"inputs": {"key": "[redacted]"}}
    assert f"{sample['key']}.json" in {path.name for path in leaky.traces()}
    assert known["xfail"] == "waits for [redacted]"
    assert (known["expectation"]["match"], "expected" in known["expectation"]) == ("exact", False)
    assert "401 for key [redacted]" in raising["samples_detail"][0]["reason"]

    leaky.calls()
    leaky.write("golden.yaml", REPORTED.replace("the answer is", "the answer was"))
    second = leaky.run("--ctx-cache", "--ctx-on-miss=skip", "--ctx-baseline=run.json", *REPORTS)
    assert leaky.calls() == []
    second.assert_outcomes(xfailed=2, skipped=1)
    second.stdout.fnmatch_lines(["answers*2 hit*", "gate*"])
    shown = str(first.stdout) + str(first.stderr) + str(second.stdout) + str(second.stderr)
    assert "Zq7LmW4xT9" not in shown + texts_written(leaky, before)
    assert "[redacted]" in (leaky.path / "run.md").read_text()
    assert "Zq7LmW4xT9" not in (leaky.path / "summary.md").read_text()
    assert cases_of(leaky, "run.json")[0]["samples_detail"][0]["key"] == sample["key"]


def test_a_flip_is_confirmed_and_audited_without_showing_the_key(leaky: Project) -> None:
    """Answers that confirm a flip or audit the store are as free of the key as the others."""
    leaky.write("golden.yaml", REPORTED)
    before = files_of(leaky)
    leaky.run("--ctx-cache", *REPORTS)
    leaky.write("agent/prompt.md", "Answer otherwise.\n")
    leaky.write("conftest.py", CONFTEST.replace("the answer is", "the reply is"))
    result = leaky.run(
        "--ctx-cache", "--ctx-baseline=run.json", "--ctx-report=new.json", "--ctx-confirm=2", "-rA"
    )
    audit = leaky.run("--ctx-cache", "--ctx-audit=2", "-rA")
    assert len(cases_of(leaky, "new.json")[0]["confirming"]) == 2
    result.stdout.fnmatch_lines(["gate*RED*"])
    audit.stdout.fnmatch_lines(["audit*"])
    assert "Zq7LmW4xT9" not in str(result.stdout) + str(audit.stdout) + texts_written(leaky, before)


def test_a_baseline_from_before_a_pattern_is_compared_as_redacted(leaky: Project) -> None:
    """What a report still shows of what is a secret by now is no difference, and is shown nowhere."""
    leaky.write("golden.yaml", REPORTED.replace("use", "use hunter2-4711 for"))
    leaky.run("--ctx-report=old.json")
    assert "hunter2" in (leaky.path / "old.json").read_text()
    leaky.write("pytest.ini", INI + "ctx_redact = hunter2-\\d+\n")
    result = leaky.run("--ctx-baseline=old.json", "--ctx-report=run.json", "--ctx-report=run.md", "-rA")
    result.stdout.fnmatch_lines(["gate*"])
    new = (leaky.path / "run.json").read_text() + (leaky.path / "run.md").read_text()
    assert "hunter2" not in new + str(result.stdout)
    assert "question/inputs" not in str(result.stdout)


def test_a_bad_hook_leaves_texts_out_of_reports(leaky: Project) -> None:
    """Where a hook fails, a report says which cases there are, and nothing that may hold a secret."""
    leaky.write("conftest.py", CONFTEST + "\ndef pytest_ctxfp_redact(text):\n    return None\n")
    leaky.write("golden.yaml", REPORTED)
    before = files_of(leaky)
    leaky.run(*REPORTS).assert_outcomes(errors=3)
    cases = [(case["id"], case["state"]) for case in cases_of(leaky, "run.json")]
    assert cases == [("right", "error"), ("known", "error"), ("raising", "error")]
    assert "Zq7LmW4xT9" not in texts_written(leaky, before)
