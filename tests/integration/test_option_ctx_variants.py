"""``--ctx-variants``: each case once for each variant of the assembler."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project

VARIANTS = "--ctx-variants=a,b"


@pytest.fixture
def varied(project: Project) -> Project:
    """The project with an assembler whose variant b has other rules for orders."""
    project.edit(
        "conftest.py",
        '    def assemble(question):\n        return (HERE / "rules.md").read_text(encoding="utf-8") + ',
        "    def assemble(question, variant='none'):\n"
        "        rules = (HERE / 'rules.md').read_text(encoding='utf-8')\n"
        "        if variant == 'b' and 'orders' in question:\n"
        "            rules = rules.replace('count all', 'count some')\n"
        "        return rules + ",
    )
    return project


def test_items_are_named_by_variant_and_model(varied: Project) -> None:
    """An item a variant, ``id[model-variant]`` with several of both, plain with one of each."""
    varied.run("--co", "-q", VARIANTS).stdout.fnmatch_lines(["*::orders[[]a]", "*::orders[[]b]"])
    both = varied.run("--co", "-q", VARIANTS, "--ctx-models=m,n").stdout
    both.fnmatch_lines(["*::orders[[]m-a]", "*::orders[[]m-b]", "*::orders[[]n-a]", "*::orders[[]n-b]"])
    varied.run("--co", "-q", "--ctx-variants=a").stdout.fnmatch_lines(["*::orders", "*::customers"])
    only_variants = varied.run("--co", "-q", VARIANTS, "--ctx-models=m").stdout
    only_variants.fnmatch_lines(["*::orders[[]a]", "*::orders[[]b]"])


def test_equal_contexts_share_an_answer(varied: Project, how: list[str]) -> None:
    """Two variants with the same context are asked once; summary and report say so."""
    result = varied.run("--ctx-cache", VARIANTS, "--ctx-report=run.json", "--ctx-report=run.md", *how)
    result.assert_outcomes(passed=4)
    assert varied.calls() == ["How many customers?", "How many orders?", "How many orders?"]
    assert len(varied.traces()) == 3
    note = "variants a and b have the same context in 1 case: one answer stands for all"
    result.stdout.fnmatch_lines([f"variants   {note.removeprefix('variants ')}"])
    report = json.loads((varied.path / "run.json").read_text(encoding="utf-8"))
    assert note in report["notes"]
    assert note in (varied.path / "run.md").read_text(encoding="utf-8")
    assert [(case["id"], case["variant"]) for case in report["cases"]] == [
        ("orders", "a"),
        ("orders", "b"),
        ("customers", "a"),
        ("customers", "b"),
    ]
    keys = [case["samples_detail"][0]["key"] for case in report["cases"]]
    assert keys[0] != keys[1]
    assert keys[2] == keys[3]
    varied.run("--ctx-cache", VARIANTS, *how).assert_outcomes(passed=4)
    varied.run("--ctx-cache", *how).assert_outcomes(passed=2)
    assert varied.calls() == []


def test_shared_answers_are_counted_by_case(varied: Project) -> None:
    """Several samples of one case are one case, and the same id in another file is another."""
    varied.write("golden_b.yaml", (varied.path / "golden.yaml").read_text(encoding="utf-8"))
    result = varied.run("--ctx-cache", VARIANTS, "--ctx-repeat=3")
    note = "variants a and b have the same context in 2 cases: one answer stands for all"
    result.stdout.fnmatch_lines([f"variants   {note.removeprefix('variants ')}"])


def test_without_a_cache_nothing_is_shared(varied: Project) -> None:
    """Where each answer is asked for, no line claims that one stands for several."""
    result = varied.run(VARIANTS, "--ctx-report=run.json")
    assert len(varied.calls()) == 4
    result.stdout.no_fnmatch_line("*one answer stands for all*")
    assert "one answer stands" not in (varied.path / "run.json").read_text(encoding="utf-8")


def test_refresh_asks_for_each_variant(varied: Project) -> None:
    """``--ctx-refresh`` asks for each of two equal contexts: then one answer doesn't stand for all."""
    varied.run("--ctx-cache", VARIANTS)
    varied.calls()
    result = varied.run("--ctx-refresh", VARIANTS)
    assert len(varied.calls()) == 4
    result.stdout.no_fnmatch_line("*one answer stands for all*")
    result.stdout.fnmatch_lines(["variants*same context in 1 case: what their answers differ in is noise"])


def test_agent_that_names_the_variant_has_it_in_its_key(varied: Project) -> None:
    """What the agent is told decides its answer: nothing is shared then."""
    varied.edit("conftest.py", "def ask(question, context):", "def ask(question, context, variant):")
    varied.edit("conftest.py", 'log.write(question + "\\n")', 'log.write(f"{variant}: {question}\\n")')
    result = varied.run("--ctx-cache", VARIANTS)
    result.assert_outcomes(passed=4)
    assert varied.calls() == [f"{v}: How many {what}?" for v in "ab" for what in ("customers", "orders")]
    result.stdout.no_fnmatch_line("*one answer stands for all*")
    varied.run("--ctx-cache", VARIANTS).assert_outcomes(passed=4)
    varied.run("--ctx-cache", "--ctx-variants=b").assert_outcomes(passed=2)
    assert varied.calls() == []


def test_agent_that_starts_to_name_the_variant_is_asked_anew(varied: Project) -> None:
    """Answers of an agent that wasn't told are not taken for one that reads the variant."""
    varied.run("--ctx-cache", VARIANTS)
    varied.calls()
    varied.edit("conftest.py", "def ask(question, context):", "def ask(question, context, variant):")
    varied.write("agent/prompt.md", "Mind the variant.\n")
    varied.run("--ctx-cache", VARIANTS).assert_outcomes(passed=4)
    assert len(varied.calls()) == 4


def test_nobody_told_is_an_error(project: Project) -> None:
    """A variant that neither assembler nor agent is told of is an error with the way out."""
    result = project.run("--ctx-cache", VARIANTS)
    result.assert_outcomes(errors=4)
    result.stdout.fnmatch_lines(
        ["*--ctx-variants names the variant 'a'*ctx_assembler, or the agent, have an argument 'variant'*"]
    )
    assert project.calls() == []
    assert project.traces() == []


def test_nobody_told_is_an_error_on_a_hit_too(project: Project) -> None:
    """Answers stored without variants are not shown as those of a variant that nothing is told of."""
    project.run("--ctx-cache").assert_outcomes(passed=2)
    project.calls()
    result = project.run("--ctx-cache", VARIANTS)
    assert project.calls() == []
    result.assert_outcomes(errors=4)


def test_marker_tests_run_once_a_variant(varied: Project) -> None:
    """A test with the marker has parameters ``id-variant``."""
    varied.write(
        "test_marked.py",
        "import pytest\n\n@pytest.mark.ctx_golden('golden.yaml')\n"
        "def test_answer(ctx_case, ctx_trace):\n    ctx_trace(ctx_case).check()\n",
    )
    result = varied.run("--ctx-cache", VARIANTS, "test_marked.py", "-v")
    result.assert_outcomes(passed=4)
    for name in ("orders-a", "orders-b", "customers-a", "customers-b"):
        result.stdout.fnmatch_lines([f"*test_answer[[]{name}]*"])


def test_test_with_a_case_of_its_own(varied: Project) -> None:
    """With several variants, a test that traces once is told of the marker; one variant is handed on."""
    varied.write(
        "test_own.py",
        "from pathlib import Path\nfrom pytest_ctxfp import load_golden\n\n"
        "def test_own(ctx_trace):\n"
        "    case = load_golden(Path(__file__).with_name('golden.yaml')).cases[0]\n"
        "    outcome = ctx_trace(case)\n"
        "    assert outcome.trace.context['order']\n",
    )
    varied.run("test_own.py", "--ctx-variants=b").assert_outcomes(passed=1)
    result = varied.run("test_own.py", VARIANTS)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*--ctx-variants names several*ctx_golden*"])


def test_variants_differ_in_accuracy(varied: Project) -> None:
    """Summary and report have the accuracy of each variant, for an A/B in one run."""
    varied.edit(
        "conftest.py",
        "return answers",
        "if 'count some' in context:\n            return {'rows': [[0]]}\n        return answers",
    )
    result = varied.run(VARIANTS, "--ctx-report=run.json", "--ctx-report=run.md")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*stub-1-a * 100% (2 of 2*", "*stub-1-b * 50% (1 of 2*"])
    report = json.loads((varied.path / "run.json").read_text(encoding="utf-8"))
    assert [(config["variant"], config["accuracy"]) for config in report["configs"]] == [("a", 1), ("b", 0.5)]
    assert "`orders[stub-1-b]`" in (varied.path / "run.md").read_text(encoding="utf-8")


def test_labels_of_any_form(varied: Project) -> None:
    """Names with braces and percent signs stand in the summary as they are."""
    result = varied.run("--ctx-cache", "--ctx-variants={0},100%")
    result.stdout.fnmatch_lines(["variants   100% and {0} have the same context in 2 cases: one answer*"])


def test_names_that_are_alike_together(varied: Project) -> None:
    """Labels whose combinations can't be told apart end the run before two tests share a name."""
    result = varied.run("--ctx-models=m,m-a", "--ctx-variants=a,a-a")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*together name two tests alike: *'m-a-a', 'm-a-a'*rename one"])
