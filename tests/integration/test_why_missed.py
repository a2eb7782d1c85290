"""Why an answer was missing: grouped in the summary, per case with figures under ``-v``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Project

CONTEXT = "## Identity\nYou answer.\n\n## Business Rules\n- count all\n\n"


def missed(result: pytest.RunResult) -> list[str]:
    """Return the lines of the summary behind ``missed``."""
    lines = result.stdout.lines
    start = next((i for i, line in enumerate(lines) if line.startswith("missed")), None)
    if start is None:
        return []
    found = [lines[start][11:]]
    for line in lines[start + 1 :]:
        if not line.startswith(" " * 11):
            break
        found.append(line[11:])
    return found


@pytest.fixture
def warm(project: Project) -> Project:
    """The project with both answers stored."""
    project.run("--ctx-cache").assert_outcomes(passed=2)
    project.calls()
    return project


def test_changed_layer_is_grouped_and_detailed(warm: Project, how: list[str]) -> None:
    """The summary counts the cases by layer; ``-v`` adds each case with the layer's growth in bytes."""
    warm.edit("rules.md", "count all", "count all orders")
    result = warm.run("--ctx-on-miss=skip", *how)
    assert missed(result) == ["2 context: Business Rules", "asking would cost an unknown amount"]
    result = warm.run("--ctx-cache", "-v", *how)
    first, *others = missed(result)
    assert first == "2 context: Business Rules"
    assert sorted(others) == [
        "  customers: context: Business Rules (+7 bytes)",
        "  orders: context: Business Rules (+7 bytes)",
    ]
    assert missed(warm.run("--ctx-cache", "-v", *how)) == []


def change_rules(text: str) -> Callable[[Project], object]:
    """Return what replaces the assembled rules."""
    return lambda project: project.write("rules.md", text)


def change_ini(old: str, new: str) -> Callable[[Project], object]:
    """Return what edits the ini file."""
    return lambda project: project.edit("pytest.ini", old, new)


CHANGES = {
    "layer grown": (
        change_rules(CONTEXT.replace("all", "all of it")),
        "context: Business Rules",
        "context: Business Rules (+6 bytes)",
    ),
    "layer shrunk": (
        change_rules(CONTEXT.replace("count all", "count")),
        "context: Business Rules",
        "context: Business Rules (-4 bytes)",
    ),
    "same size": (
        change_rules(CONTEXT.replace("all", "ALL")),
        "context: Business Rules",
        "context: Business Rules (+0 bytes)",
    ),
    "layer new": (
        change_rules(CONTEXT + "## Facts\nnone\n"),
        "context: Facts",
        "context: Facts (new, 5 bytes)",
    ),
    "layer gone": (
        change_rules("## Business Rules\n- count all\n\n"),
        "context: Identity",
        "context: Identity (gone, 13 bytes)",
    ),
    "layers moved": (
        change_rules("## Business Rules\n- count all\n\n## Identity\nYou answer.\n\n"),
        "context: same lines, other order: sort it",
        "context: same lines, other order: sort it",
    ),
    "agent file": (
        lambda project: project.write("agent/prompt.md", "Answer well.\n"),
        "agent: agent/prompt.md",
        "agent: agent/prompt.md",
    ),
    "agent file new": (
        lambda project: project.write("agent/tools.md", "none\n"),
        "agent: agent/tools.md (new)",
        "agent: agent/tools.md (new)",
    ),
    "model": (change_ini("stub-1", "stub-2"), "model: stub-1 -> stub-2", "model: stub-1 -> stub-2"),
    "environment": (
        change_ini("[pytest]\n", "[pytest]\nctx_agent_env = CTX_TEST_BASE\n"),
        "env: CTX_TEST_BASE",
        "env: CTX_TEST_BASE",
    ),
    "packages": (
        change_ini("[pytest]\n", "[pytest]\nctx_agent_packages = pluggy\n"),
        "packages: pluggy (not named) -> *",
        "packages: pluggy (not named) -> *",
    ),
    "data": (
        change_ini("[pytest]\n", "[pytest]\nctx_data_paths = rules.md\n"),
        "data: was not in the key",
        "data: was not in the key",
    ),
    "agent key": (
        lambda project: project.edit(
            "conftest.py",
            "@pytest.fixture\ndef ctx_agent():",
            "@pytest.fixture\ndef ctx_agent_key():\n    return {'max_turns': 3, 'params': {'heat': 1}}\n\n\n"
            "@pytest.fixture\ndef ctx_agent():",
        ),
        "max_turns; ctx_agent_key: heat",
        "max_turns; ctx_agent_key: heat",
    ),
    "two at once": (
        lambda project: (
            project.write("agent/prompt.md", "Answer well.\n"),
            project.write("rules.md", CONTEXT.replace("all", "ALL")),
        ),
        "agent: agent/prompt.md; context: Business Rules",
        "agent: agent/prompt.md; context: Business Rules (+0 bytes)",
    ),
}


@pytest.mark.parametrize(("change", "group", "detail"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("flag", ["--ctx-cache", "--ctx-on-miss=fail"])
def test_what_differs_is_named(
    warm: Project, change: Callable[[Project], object], group: str, detail: str, flag: str
) -> None:
    """Whatever changed is named for both cases, whether they are asked or refused."""
    change(warm)
    result = warm.run(flag, "-v")
    result.stdout.fnmatch_lines(
        [f"missed     2 {group}", f"*  orders: {detail}", f"*  customers: {detail}"],
        consecutive=flag == "--ctx-cache",
    )


def test_question_and_new_cases(warm: Project) -> None:
    """A changed question is one, a case that was never asked another; each is counted."""
    warm.edit("golden.yaml", "How many orders?", "How many orders today?")
    warm.edit("golden.yaml", "id: customers", "id: clients")
    result = warm.run("--ctx-on-miss=skip")
    assert sorted(missed(result)[:2]) == ["1 new case", "1 question; context: Question"]


def test_inputs(project: Project) -> None:
    """The inputs of an agent that reads them are named."""
    project.edit("conftest.py", "def ask(question, context):", "def ask(question, context, inputs):")
    project.edit("golden.yaml", "    tags: [easy]\n", "    tags: [easy]\n    inputs: {tenant: acme}\n")
    project.run("--ctx-cache")
    project.edit("golden.yaml", "acme", "initech")
    assert missed(project.run("--ctx-cache")) == ["1 inputs"]


def test_nearest_trace_explains(warm: Project) -> None:
    """Of several stored answers the nearest one explains, not the newest."""
    warm.edit("pytest.ini", "stub-1", "stub-2")
    warm.write("agent/prompt.md", "Answer well.\n")
    warm.run("--ctx-cache")
    warm.edit("pytest.ini", "stub-2", "stub-1")
    warm.write("agent/prompt.md", "Answer with a table.\n")
    warm.edit("rules.md", "count all", "count some")
    assert missed(warm.run("--ctx-cache")) == ["2 context: Business Rules"]


def test_variants_explain_themselves(project: Project) -> None:
    """Under variants a miss of one is held against the nearest stored context."""
    project.edit("conftest.py", "def assemble(question):", "def assemble(question, variant='a'):")
    project.edit(
        "conftest.py",
        'return (HERE / "rules.md")',
        'return f"## Style\\n{variant * 5}\\n" + (HERE / "rules.md")',
    )
    project.run("--ctx-cache", "--ctx-variants=a")
    result = project.run("--ctx-cache", "--ctx-variants=a,b", "-v")
    assert missed(result) == [
        "2 context: Style",
        "  orders: context: Style (+0 bytes)",
        "  customers: context: Style (+0 bytes)",
    ]


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that were listed in this process."""
    found: list[str] = []
    listdir = os.listdir

    def counting(path: str | os.PathLike[str] | int = ".") -> list[str]:
        found.append(str(path))
        return listdir(path)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "listdir", counting)
    return found


@pytest.mark.parametrize("flags", [[], ["--ctx-report=run.json"], ["--ctx-repeat=3"]], ids=str)
def test_store_is_listed_only_if_something_missed(
    project: Project, listings: list[str], flags: list[str]
) -> None:
    """A replayed run never lists the folder of traces; one with misses lists it once, however many."""
    folder = str(project.path / ".ctxfp/traces")
    project.run("--ctx-cache", *flags)
    assert listings.count(folder) <= 1
    listings.clear()
    project.run("--ctx-cache", *flags).assert_outcomes(passed=2)
    assert folder not in listings
    project.edit("rules.md", "count all", "count some")
    for asked in (["--ctx-on-miss=fail"], ["--ctx-on-miss=skip"], ["--ctx-cache"]):
        listings.clear()
        project.run(*asked, *flags)
        assert listings.count(folder) == 1, asked


def test_many_reasons_are_capped(project: Project) -> None:
    """Thirty different reasons are twenty lines and a count; ``-v`` has all cases."""
    cases = "".join(
        f"  - {{id: c{n:02}, question: q, inputs: {{n: {n}}}, match: scalar, expected: {{rows: [[1]]}}}}\n"
        for n in range(30)
    )
    project.write("golden.yaml", f"cases:\n{cases}")
    project.answer({"q": {"rows": [[1]]}})
    project.edit("conftest.py", "def assemble(question):", "def assemble(question, inputs):")
    project.edit(
        "conftest.py",
        'return (HERE / "rules.md")',
        'return f\'## L{inputs["n"]}\\n{(HERE / "extra").read_text()}\\n\' + (HERE / "rules.md")',
    )
    project.write("extra", "a")
    project.run("--ctx-cache").assert_outcomes(passed=30)
    project.write("extra", "abc")
    lines = missed(project.run("--ctx-on-miss=skip"))
    assert len(lines) == 22
    assert lines[20] == "... and 10 more"
    lines = missed(project.run("--ctx-on-miss=skip", "-v"))
    assert "  c29: context: L29 (+2 bytes)" in lines


def test_refusal_says_why_with_figures(warm: Project) -> None:
    """The error of a refused miss names the layer with its growth, and the mean cost of its answers."""
    warm.edit("conftest.py", "import pytest\n", "import pytest\nfrom pytest_ctxfp import AgentResult\n")
    warm.edit("conftest.py", "return answers[question]", "return AgentResult(answers[question], cost=0.5)")
    warm.run("--ctx-refresh")
    warm.edit("rules.md", "count all", "count some")
    result = warm.run("--ctx-on-miss=fail", "-rE")
    reason = "no stored answer (context: Business Rules (+1 byte)); asking would cost about 0.5000 USD"
    result.stdout.fnmatch_lines([reason, f"ERROR golden.yaml::orders - {reason[:20]}*"])
    assert missed(result) == ["2 context: Business Rules", "asking would cost about 1.0000 USD"]


def test_layer_names_are_escaped(warm: Project) -> None:
    """A layer's name can't write to the terminal or forge a line."""
    warm.write("rules.md", CONTEXT + "## Evil \x1b[31m\u202e\nx\n")
    assert missed(warm.run("--ctx-cache")) == ["2 context: Evil \\x1b[31m\\u202e"]


def test_report_says_why(warm: Project) -> None:
    """The JSON report says of each miss what differs, fit to be counted."""
    warm.edit("rules.md", "count all", "count some")
    warm.run("--ctx-cache", "--ctx-report=run.json")
    text = (warm.path / "run.json").read_text(encoding="utf-8")
    assert text.count('"context: Business Rules"') == 2


def test_uncached_run_explains_nothing(warm: Project) -> None:
    """Without the cache nothing missed, so nothing is explained."""
    warm.edit("rules.md", "count all", "count some")
    assert missed(warm.run("-v")) == []
