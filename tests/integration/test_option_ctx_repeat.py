"""``--ctx-repeat``: several answers to a case, each stored for itself, weighed by ``min_pass_rate``."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .conftest import Project

ORDERS, CUSTOMERS = "How many orders?", "How many customers?"


class Repeated:
    """A project whose agent has an answer to each sample of each question."""

    def __init__(self, project: Project) -> None:
        self.project = project
        project.edit("conftest.py", "def ask(question, context):", "def ask(question, context, sample):")
        project.edit("conftest.py", 'log.write(question + "\\n")', 'log.write(f"{question} {sample}\\n")')
        project.edit("conftest.py", "return answers[question]", "return answers[question][sample]")

    def answer(self, orders: Sequence[object], customers: Sequence[object] = (12,) * 5) -> None:
        """Let the agent give these numbers, sample by sample."""
        answers = {ORDERS: orders, CUSTOMERS: customers}
        tables = {
            question: [{"columns": ["n"], "rows": [[value]]} for value in values]
            for question, values in answers.items()
        }
        self.project.answer(tables)


@pytest.fixture
def repeated(project: Project) -> Repeated:
    """A project whose agent answers each of five samples rightly."""
    found = Repeated(project)
    found.answer([99] * 5)
    return found


def only_orders(project: Project, min_pass_rate: object = None) -> None:
    """Leave one case, with a ``min_pass_rate`` or without."""
    golden = (project.path / "golden.yaml").read_text(encoding="utf-8").partition("  - id: customers")[0]
    rate = "" if min_pass_rate is None else f"    min_pass_rate: {min_pass_rate}\n"
    project.write("golden.yaml", golden + rate)


def test_each_sample_is_one_call_and_then_none(repeated: Repeated, how: list[str]) -> None:
    """N samples are N calls cold and none warm; raising N asks for the new ones only, lowering for none."""
    project = repeated.project
    project.run("--ctx-cache", "--ctx-repeat=3", *how).assert_outcomes(passed=2)
    assert project.calls() == [f"{question} {n}" for question in (CUSTOMERS, ORDERS) for n in range(3)]
    assert len(project.traces()) == 6
    result = project.run("--ctx-cache", "--ctx-repeat=3", *how)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["cases*2: 2 passed, 0 failed", "answers*6 hit, 0 miss*"])
    assert project.calls() == []
    result = project.run("--ctx-cache", "--ctx-repeat=5", *how)
    assert project.calls() == [f"{question} {n}" for question in (CUSTOMERS, ORDERS) for n in (3, 4)]
    result.stdout.fnmatch_lines(["answers*6 hit, 4 miss*", "missed*4 new samples"])
    project.run("--ctx-cache", *how).assert_outcomes(passed=2)
    assert project.calls() == []


def test_one_sample_is_the_first_of_several(repeated: Repeated) -> None:
    """A run without the flag stores what a later run with it takes as sample 0."""
    repeated.project.run("--ctx-cache")
    repeated.project.calls()
    repeated.project.run("--ctx-cache", "--ctx-repeat=2")
    assert repeated.project.calls() == [f"{CUSTOMERS} 1", f"{ORDERS} 1"]


@pytest.mark.parametrize(
    ("rate", "passes"), [(None, False), (0.6, True), (0.6666, True), (0.6667, False), (1, False), (0.0, True)]
)
def test_min_pass_rate_decides(repeated: Repeated, rate: object, passes: bool) -> None:
    """Two of three meet 0.6 and not 0.6667; all must pass where nothing is said."""
    only_orders(repeated.project, rate)
    repeated.answer([98, 99, 99])
    result = repeated.project.run("--ctx-repeat=3")
    result.assert_outcomes(passed=int(passes), failed=int(not passes))
    result.stdout.fnmatch_lines(["flaky*orders: 2 of 3 passed", "accuracy*66.7% (0.6667 of 1;*"])


def test_flaky_case_is_listed(repeated: Repeated) -> None:
    """A case whose samples disagree is called flaky in the summary and in both reports."""
    repeated.answer([99, 98, 99], [11, 11, 11])
    reports = ["--ctx-report=run.json", "--ctx-report=run.md"]
    result = repeated.project.run("--ctx-repeat=3", *reports)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["cases*2: 0 passed, 2 failed", "flaky*orders: 2 of 3 passed"])
    result.stdout.no_fnmatch_line("*customers: 0 of 3 passed*")
    report = json.loads((repeated.project.path / "run.json").read_text(encoding="utf-8"))
    assert [case["flaky"] for case in report["cases"]] == [True, False]
    assert [case["passes"] for case in report["cases"]] == [2, 0]
    assert [sample["sample"] for sample in report["cases"][0]["samples_detail"]] == [0, 1, 2]
    assert [sample["pass"] for sample in report["cases"][0]["samples_detail"]] == [True, False, True]
    markdown = (repeated.project.path / "run.md").read_text(encoding="utf-8")
    assert "`orders` | failed (2 of 3)" in markdown
    assert "1 flaky" in markdown


def test_skipped_case_adds_no_label(repeated: Repeated) -> None:
    """A flaky case is listed by its id alone where there is one model, though another case is skipped."""
    repeated.project.edit("golden.yaml", "  - id: customers\n", "  - id: customers\n    skip: not today\n")
    repeated.answer([99, 98])
    result = repeated.project.run("--ctx-repeat=2")
    result.stdout.fnmatch_lines(["flaky      orders: 1 of 2 passed"])


def test_failure_says_how_many_samples_failed(repeated: Repeated) -> None:
    """The failure shows the first sample that failed, though the first passed, and says how many did."""
    only_orders(repeated.project, 0.8)
    repeated.answer([99, 97, 96])
    repeated.project.run("--ctx-cache", "--ctx-repeat=3")
    result = repeated.project.run("--ctx-cache", "--ctx-repeat=3", "-rf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "row 1, column 'n': expected 99, actual 97*",
            "actual     n",
            "           97",
            "samples    2 of 3 failed (min_pass_rate 0.8); this is sample 1 of 0 to 2",
            "answer     stored, recorded *",
            "ask again  pytest golden.yaml::orders --ctx-refresh --ctx-repeat=3",
            "FAILED golden.yaml::orders - row 1, column 'n': expected 99, actual 97*",
        ]
    )


def test_single_sample_says_nothing_of_samples(project: Project, table: Callable[[object], object]) -> None:
    """Without repeats a failure reads as it always did."""
    project.answer({ORDERS: table(98), CUSTOMERS: table(12)})
    project.run().stdout.no_fnmatch_line("samples *")


def test_the_command_that_asks_again_asks_all_samples(repeated: Repeated) -> None:
    """Run as it stands, the command under a failure asks for each sample that was scored."""
    only_orders(repeated.project)
    repeated.answer([99, 97])
    repeated.project.run("--ctx-cache", "--ctx-repeat=2")
    repeated.project.calls()
    repeated.project.run("golden.yaml::orders", "--ctx-refresh", "--ctx-repeat=2")
    assert repeated.project.calls() == [f"{ORDERS} 0", f"{ORDERS} 1"]


def test_errored_sample_makes_an_error_and_the_others_are_stored(repeated: Repeated) -> None:
    """A sample whose call fails makes the case an ERROR; the next run asks for that sample alone."""
    project = repeated.project
    repeated.answer([99, 99, 99])
    project.edit("conftest.py", "return answers", "assert sample != 1, 'down'\n        return answers")
    result = project.run("--ctx-cache", "--ctx-repeat=3", "-rE")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["cases*2: 0 passed, 0 failed, 2 errors", "ERROR golden.yaml::orders*down*"])
    assert len(project.calls()) == 6
    assert len(project.traces()) == 4
    project.edit("conftest.py", "assert sample != 1, 'down'", "pass")
    project.run("--ctx-cache", "--ctx-repeat=3").assert_outcomes(passed=2)
    assert project.calls() == [f"{CUSTOMERS} 1", f"{ORDERS} 1"]


@pytest.mark.parametrize(
    ("end", "outcome", "state"),
    [("skip", "skipped", "skipped"), ("xfail", "xfailed", "skipped"), ("fail", "errors", "error")],
)
def test_sample_that_ends_the_test(repeated: Repeated, end: str, outcome: str, state: str) -> None:
    """Where an agent ends its test in pytest's own way, the samples before that make no verdict, and its
    call is counted.
    """
    only_orders(repeated.project)
    repeated.project.edit(
        "conftest.py",
        "return answers",
        f"if sample == 1:\n            pytest.{end}('enough')\n        return answers",
    )
    result = repeated.project.run("--ctx-cache", "--ctx-repeat=3", "--ctx-report=run.json")
    result.assert_outcomes(**{outcome: 1})
    result.stdout.fnmatch_lines(["cases*1: 0 passed, 0 failed, 1 *", "cost*in 2 calls*"])
    report = json.loads((repeated.project.path / "run.json").read_text(encoding="utf-8"))
    assert [case["state"] for case in report["cases"]] == [state]
    assert [s["state"] for s in report["cases"][0]["samples_detail"]] == ["passed", state]
    assert report["n"] == 0


def test_errored_sample_in_reports(repeated: Repeated) -> None:
    """A report has the answers of an errored case, its state, and no accuracy made of it."""
    only_orders(repeated.project)
    repeated.project.edit(
        "conftest.py", "return answers", "assert sample != 1, 'down'\n        return answers"
    )
    repeated.project.run("--ctx-cache", "--ctx-repeat=3", "--ctx-report=run.json").assert_outcomes(errors=1)
    report = json.loads((repeated.project.path / "run.json").read_text(encoding="utf-8"))
    (case,) = report["cases"]
    assert (case["state"], case["pass"], case["flaky"]) == ("error", False, False)
    assert [sample["state"] for sample in case["samples_detail"]] == ["passed", "error", "passed"]
    assert (report["n"], report["errors"], report["accuracy"]) == (0, 1, 0.0)
    assert case["context"]["order"] == ["Identity", "Business Rules", "Question"]


@pytest.mark.parametrize(("policy", "outcome"), [("fail", "errors"), ("skip", "skipped")])
def test_on_miss_with_some_samples_stored(repeated: Repeated, policy: str, outcome: str) -> None:
    """Where not all samples are stored and nobody may be asked, the case has no verdict and says why."""
    repeated.project.run("--ctx-cache", "--ctx-repeat=2")
    repeated.project.calls()
    flags = ["--ctx-cache", "--ctx-repeat=3", f"--ctx-on-miss={policy}", "-rsE"]
    result = repeated.project.run(*flags, "--ctx-report=run.json")
    result.assert_outcomes(**{outcome: 2})
    result.stdout.fnmatch_lines(["answers*4 hit, 2 miss*", "missed*2 new samples"])
    assert repeated.project.calls() == []
    assert len(repeated.project.traces()) == 4
    report = json.loads((repeated.project.path / "run.json").read_text(encoding="utf-8"))
    states = [sample["state"] for sample in report["cases"][0]["samples_detail"]]
    assert states == ["passed", "passed", "error" if policy == "fail" else "skipped"]


def test_refused_sample_shows_the_command_that_asks(repeated: Repeated) -> None:
    """The remedy under a refused miss asks for as many samples as the run wanted."""
    repeated.project.run("--ctx-cache")
    result = repeated.project.run("--ctx-on-miss=fail", "--ctx-repeat=2")
    command = "pytest golden.yaml::orders --ctx-cache --ctx-on-miss=call --ctx-repeat=2"
    result.stdout.fnmatch_lines([f"ask and store it: {command}"])


def test_max_calls_in_the_middle_of_samples(repeated: Repeated) -> None:
    """A limit that is reached between two samples skips the case; what was paid for is kept."""
    only_orders(repeated.project)
    flags = ["--ctx-cache", "--ctx-repeat=3"]
    result = repeated.project.run(*flags, "--ctx-max-calls=2", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(
        ["cases*1: 0 passed, 0 failed, 1 skipped", "not asked*1 --ctx-max-calls=2 is reached: orders"]
    )
    assert repeated.project.calls() == [f"{ORDERS} 0", f"{ORDERS} 1"]
    repeated.project.run(*flags, "--ctx-max-calls=1").assert_outcomes(passed=1)
    assert repeated.project.calls() == [f"{ORDERS} 2"]


def test_junit_properties_are_of_the_case(repeated: Repeated) -> None:
    """Junit's properties don't call a case passed because its last sample did."""
    only_orders(repeated.project)
    repeated.answer([97, 99])
    repeated.project.run("--ctx-cache", "--ctx-repeat=2", "--junit-xml=junit.xml").assert_outcomes(failed=1)
    case = ET.parse(repeated.project.path / "junit.xml").getroot().find(".//testcase")
    assert case is not None
    pairs = [(p.get("name"), p.get("value")) for p in case.findall("properties/property")]
    assert len(dict(pairs)) == len(pairs)
    assert dict(pairs)["ctxfp_passed"] == "False"
    assert dict(pairs)["ctxfp_1_passed"] == "True"
    assert dict(pairs)["ctxfp_key"] != dict(pairs)["ctxfp_1_key"]


def test_replayed_case_is_marked_only_if_all_its_samples_are(repeated: Repeated) -> None:
    """The letter ``r`` stands for a case all of whose samples were stored."""
    repeated.project.run("--ctx-cache", "--ctx-repeat=2")
    repeated.project.run("--ctx-cache", "--ctx-repeat=3", "-v").stdout.fnmatch_lines(
        ["*::orders PASSED *[[]*"]
    )
    repeated.project.run("--ctx-cache", "--ctx-repeat=3", "-v").stdout.fnmatch_lines(
        ["*::orders PASSED (replayed) *"]
    )


def test_assembler_may_take_the_sample(repeated: Repeated) -> None:
    """``sample`` is handed to an assembler that names it, 0-based."""
    only_orders(repeated.project)
    repeated.project.edit("conftest.py", "def assemble(question):", "def assemble(question, sample):")
    repeated.project.edit(
        "conftest.py", 'return (HERE / "rules.md")', 'return f"## N\\n{sample}\\n" + (HERE / "rules.md")'
    )
    repeated.project.edit(
        "conftest.py",
        "        answers = json",
        "        assert f'## N\\n{sample}\\n' in context\n        answers = json",
    )
    repeated.project.run("--ctx-cache", "--ctx-repeat=3").assert_outcomes(passed=1)
    assert len(repeated.project.calls()) == 3


PYTHON_TEST = """
import pytest

@pytest.mark.ctx_golden("golden.yaml")
def test_answer(ctx_case, ctx_trace):
    outcome = ctx_trace(ctx_case)
    assert [sample.key.sample for sample in outcome.samples] == [0, 1, 2]
    assert [sample.answer["rows"][0][0] for sample in outcome.samples][:1] == [outcome.answer["rows"][0][0]]
    assert not outcome.passed if ctx_case.id == "orders" else outcome.passed
    outcome.check()
"""

ASYNC_TEST = PYTHON_TEST.replace("def test", "@pytest.mark.asyncio\nasync def test").replace(
    "= ctx_trace(", "= await ctx_trace("
)


def test_python_test_sees_all_samples(repeated: Repeated) -> None:
    """``ctx_trace`` resolves all samples; ``check()`` weighs them together."""
    repeated.project.write("test_answers.py", PYTHON_TEST)
    repeated.answer([99, 97, 99])
    for n_calls in (6, 0):
        result = repeated.project.run("--ctx-cache", "--ctx-repeat=3")
        result.assert_outcomes(passed=1, failed=1, deselected=2)
        result.stdout.fnmatch_lines(
            ["*samples    1 of 3 failed; this is sample 1 of 0 to 2", "cases*2: 1 passed, 1 failed"]
        )
        assert len(repeated.project.calls()) == n_calls


def test_async_test_sees_all_samples(repeated: Repeated) -> None:
    """``await ctx_trace(case)`` gives the same in an async test, with an async agent."""
    repeated.project.write("test_answers.py", ASYNC_TEST)
    repeated.project.edit("conftest.py", "    def ask(", "    async def ask(")
    repeated.answer([99, 97, 99])
    for n_calls in (6, 0):
        result = repeated.project.pytester.runpytest_inprocess(
            "--import-mode=importlib",
            "-p",
            "no:hypothesispytest",
            "--ctx-cache",
            "--ctx-repeat=3",
            "-W",
            "ignore",
        )
        result.assert_outcomes(passed=1, failed=1, deselected=2)
        assert len(repeated.project.calls()) == n_calls


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many", "", "1001", "²"])
def test_bad_number_is_a_usage_error(project: Project, value: str) -> None:
    """What is no number of samples ends the run with what to write instead."""
    result = project.run(f"--ctx-repeat={value}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--ctx-repeat*write a*number*"])
    assert project.calls() == []
