"""``--ctx-report``: what a run came to, for programs and for people, whatever became of the run."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import jsonschema
import pytest

from pytest_ctxfp import RunReport
from pytest_ctxfp._report_json import report_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Project

REPORTS = ["--ctx-report=run.json", "--ctx-report=run.md"]

GOLDEN = """dataset: shop
context_version: shop@3f9c1a2
cases:
  - {id: passes, question: passes, tags: [a, a], match: scalar, expected: {rows: [[1]]}, metadata: {a: b}}
  - {id: fails, question: fails, tags: [hard], match: scalar, expected: {rows: [[2]]}}
  - {id: skipped, question: skipped, match: scalar, expected: {rows: [[1]]}, skip: not today}
  - {id: expected, question: expected, match: scalar, expected: {rows: [[2]]}, xfail: known}
  - {id: broken, question: broken, match: scalar, expected: {rows: [[1]]}}
"""


@pytest.fixture
def mixed(project: Project) -> Project:
    """The project with cases that pass, fail, skip, fail as expected and end with an error."""
    project.write("golden.yaml", GOLDEN)
    project.edit("conftest.py", "import pytest\n", "import pytest\nfrom pytest_ctxfp import AgentResult\n")
    project.edit(
        "conftest.py", "return answers[question]", "return AgentResult(answers[question], cost=0.25, turns=3)"
    )
    names = ("passes", "fails", "skipped", "expected")
    project.answer({name: {"columns": ["n"], "rows": [[1]]} for name in names})
    return project


MIXED_OUTCOMES = {"passed": 1, "failed": 1, "skipped": 1, "xfailed": 1, "errors": 1}


def read_report(project: Project, name: str = "run.json") -> dict:  # type: ignore[type-arg]
    """Return a report, after the checks that hold for all: the schema, and reading it back."""
    data = json.loads((project.path / name).read_text(encoding="utf-8"))
    jsonschema.validate(data, report_schema())
    again = RunReport.from_dict(data)
    assert again.to_dict() == data
    assert RunReport.from_dict(again.to_dict()) == again
    return data


def neutral(text: str) -> str:
    """Return a report's text without times."""
    text = re.sub(r'"recorded_at": "[^"]*"', '"recorded_at": "-"', text)
    text = re.sub(r'"latency_ms(_avg)?": [0-9]+', '"latency": 0', text)
    return re.sub(r"[0-9.]+ s \|", "- s |", text)


def test_several_reports_at_once(mixed: Project) -> None:
    """The flag is repeatable, relative to where pytest started, and makes folders."""
    result = mixed.run(*REPORTS, "--ctx-report=out/deep/again.JSON")
    result.assert_outcomes(**MIXED_OUTCOMES)
    read_report(mixed)
    again = (mixed.path / "out/deep/again.JSON").read_bytes()
    assert again == (mixed.path / "run.json").read_bytes()
    markdown = (mixed.path / "run.md").read_text(encoding="utf-8")
    assert markdown.startswith("### ctxfp: 1 of 4 cases passed\n")


def test_json_has_each_case_with_what_became_of_it(mixed: Project) -> None:
    """Cases stand in the file's order, those without an answer too, with states that say what happened."""
    mixed.run("--ctx-cache", *REPORTS)
    report = read_report(mixed)
    assert [case["id"] for case in report["cases"]] == ["passes", "fails", "skipped", "expected", "broken"]
    assert [case["position"] for case in report["cases"]] == [0, 1, 2, 3, 4]
    assert [case["state"] for case in report["cases"]] == ["passed", "failed", "skipped", "failed", "error"]
    assert [case["xfail"] for case in report["cases"]] == [None, None, None, "known", None]
    assert [case["reason"] for case in report["cases"]][2] == "Skipped: not today"
    assert "KeyError" in report["cases"][4]["reason"]
    assert (report["n"], report["passed"], report["errors"], report["skipped"]) == (3, 1, 1, 1)
    assert (report["dataset"], report["context_version"]) == ("shop", "shop@3f9c1a2")
    assert report["complete"]
    assert {case["file"] for case in report["cases"]} == {"golden.yaml"}


def test_json_has_the_evidence_of_an_answer(mixed: Project) -> None:
    """Key and parts, fingerprint, expectation, extracted value, hit or miss, cost, latency and turns."""
    mixed.run("--ctx-cache", *REPORTS)
    case = read_report(mixed)["cases"][0]
    (sample,) = case["samples_detail"]
    assert (mixed.path / f".ctxfp/traces/{sample['key']}.json").exists()
    assert sample["key_parts"]["question"] == "passes"
    assert sample["key_parts"]["model"] == "stub-1"
    assert case["context"]["order"] == ["Identity", "Business Rules", "Question"]
    assert len(case["expectation_sha"]) == 40
    assert (
        case["expectation"]["expected"] == {"columns": [], "rows": [[1]]} or case["expectation"]["expected"]
    )
    assert sample["answer"] == {"columns": ["n"], "rows": [[1]]}
    assert (sample["origin"], sample["why"]) == ("miss", ["new case"])
    assert (sample["cost"], sample["turns"]) == (0.25, 3)
    assert case["spent"]["cost"] == 0.25
    assert case["replayed"]["answers"] == 0
    assert case["tags"] == ["a", "a"]
    assert case["metadata"] == {"a": "b"}


def test_replayed_costs_stand_apart(mixed: Project) -> None:
    """A run that is replayed has spent nothing, and says what its answers took when they were given."""
    mixed.run("--ctx-cache", "-k", "not broken")
    mixed.run("--ctx-cache", "-k", "not broken", *REPORTS)
    report = read_report(mixed)
    assert report["spent"] == {"answers": 0, "cost": 0, "unknown_costs": 0, "latency_ms": 0, "turns": 0}
    assert (report["replayed"]["answers"], report["replayed"]["cost"]) == (3, 0.75)
    assert [case["cache_hits"] for case in report["cases"]] == [1, 1, 0, 1]
    assert "| replayed | 3 | 0.7500 USD |" in (mixed.path / "run.md").read_text(encoding="utf-8")


def test_cache_off(mixed: Project) -> None:
    """Without a cache a report has keys all the same, and calls no answer a miss or a hit."""
    mixed.run(*REPORTS)
    report = read_report(mixed)
    (sample,) = report["cases"][0]["samples_detail"]
    assert sample["origin"] == "uncached"
    assert sample["why"] == []
    mixed.run("--ctx-cache", "--ctx-report=cached.json")
    cached = read_report(mixed, "cached.json")
    assert sample["key"] == cached["cases"][0]["samples_detail"][0]["key"]
    assert report["manifests"] == cached["manifests"]
    assert not any("stored" in note or "old answers" in note for note in report["notes"])
    assert any("is not in the keys of the report" in note for note in report["notes"])


def test_cache_off_without_agent_paths(mixed: Project) -> None:
    """A suite that names no agent files can write reports."""
    mixed.edit("pytest.ini", "ctx_agent_paths = agent\n", "")
    result = mixed.run(*REPORTS)
    result.assert_outcomes(**MIXED_OUTCOMES)
    assert read_report(mixed)["manifests"] == {}


def test_workers_write_the_same_file(mixed: Project) -> None:
    """Plain, with workers, per file, and in reversed order: the same reports but for times."""
    mixed.write("golden_b.yaml", GOLDEN.replace("{id: ", "{id: b_"))
    mixed.write("test_marked.py", MARKED)
    mixed.edit("conftest.py", "    return ask\n", f"    return ask\n{REVERSE}")
    texts = []
    ways = (
        [],
        ["-n2"],
        ["-n2", "--dist=loadfile"],
        ["-n2", "--dist=loadgroup"],
        ["--reverse"],
        ["-n1", "--reverse"],
    )
    for way in ways:
        mixed.run("--ctx-repeat=2", *REPORTS, *way)
        names = ("run.json", "run.md")
        texts.append([neutral((mixed.path / name).read_text(encoding="utf-8")) for name in names])
    read_report(mixed)
    for text in texts[1:]:
        assert text == texts[0]


REVERSE = """

def pytest_addoption(parser):
    parser.addoption("--reverse", action="store_true")


def pytest_collection_modifyitems(config, items):
    if config.getoption("reverse"):
        items.reverse()
"""

MARKED = """
import pytest

@pytest.mark.ctx_golden("golden_b.yaml")
def test_one(ctx_case, ctx_trace):
    ctx_trace(ctx_case)

@pytest.mark.ctx_golden("golden_b.yaml")
def test_two(ctx_case, ctx_trace):
    ctx_trace(ctx_case)
    ctx_trace(ctx_case)

def test_plain():
    pass
"""


def test_workers_write_the_same_file_of_hits(mixed: Project) -> None:
    """A replayed run's report is the same with workers, notes and all."""
    mixed.run("--ctx-cache", "-k", "not broken")
    texts = []
    for way in ([], ["-n2"]):
        mixed.run("--ctx-cache", "-k", "not broken", *REPORTS, *way)
        texts.append(neutral((mixed.path / "run.json").read_text(encoding="utf-8")))
    assert texts[0] == texts[1]


def test_same_file_named_twice(mixed: Project) -> None:
    """A golden file that is named twice is in the report once, also with ``--keep-duplicates``."""
    for flags in ([], ["--keep-duplicates"]):
        mixed.run("golden.yaml", "golden.yaml", *flags, *REPORTS)
        report = read_report(mixed)
        assert [case["id"] for case in report["cases"]] == [
            "passes",
            "fails",
            "skipped",
            "expected",
            "broken",
        ]
        assert report["complete"]


def test_python_tests_are_in_it(mixed: Project) -> None:
    """Cases of Python tests are in the report under their golden file, unresolved ones too."""
    mixed.write(
        "test_marked.py",
        MARKED.partition('@pytest.mark.ctx_golden("golden_b.yaml")\ndef test_two')[0].replace("_b", ""),
    )
    mixed.run("test_marked.py", "--ctx-cache", *REPORTS)
    report = read_report(mixed)
    assert [case["state"] for case in report["cases"]] == ["passed", "failed", "skipped", "failed", "error"]
    assert {case["file"] for case in report["cases"]} == {"golden.yaml"}
    assert report["complete"]


OWN_CASES = """
from pathlib import Path
from pytest_ctxfp import GoldenCase

def test_own(ctx_trace):
    for name in ("passes", "fails"):
        case = {"id": name, "question": name, "match": "scalar", "expected": {"rows": [[1]]}}
        ctx_trace(GoldenCase.from_dict(case)).check()
"""


def test_cases_of_a_tests_own_are_in_it(mixed: Project) -> None:
    """Cases that a test makes itself stand under the test's file."""
    mixed.write("test_own.py", OWN_CASES)
    mixed.run("test_own.py", "--ctx-cache", *REPORTS).assert_outcomes(passed=1)
    report = read_report(mixed)
    assert [(case["file"], case["id"]) for case in report["cases"]] == [
        ("test_own.py", "passes"),
        ("test_own.py", "fails"),
    ]


def test_large_answer_is_cut(mixed: Project) -> None:
    """An answer above 64 kB of JSON stands cut in the report, and says so; others are whole."""
    rows = [["x" * 1000]] * 100
    mixed.answer({"passes": {"columns": ["n"], "rows": [[1]]}, "fails": {"columns": ["n"], "rows": rows}})
    mixed.run("-k", "passes or fails", *REPORTS)
    passes, fails = (case["samples_detail"][0] for case in read_report(mixed)["cases"])
    assert not passes["answer_cut"]
    assert fails["answer_cut"]
    assert isinstance(fails["answer"], str)
    assert len(json.dumps(fails["answer"])) <= 64 * 1024


def test_surrogates_and_markup(mixed: Project) -> None:
    """Whatever an agent says, the report is UTF-8 and its Markdown can't be forged."""
    nasty = "\ud800 | <img src=x> `code` @team\n# Head \x1b[31m"
    mixed.answer(
        {"passes": {"columns": ["n"], "rows": [[1]]}, "fails": {"columns": ["n"], "rows": [[nasty]]}}
    )
    mixed.run("-k", "passes or fails", *REPORTS)
    read_report(mixed)
    markdown = (mixed.path / "run.md").read_text(encoding="utf-8")
    assert "\n# Head" not in markdown
    assert "\x1b" not in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("| `fails`")]
    assert [line.count("|") for line in rows] == [4]


def test_markdown_of_many_failures(project: Project) -> None:
    """A pull request's comment may have 65,536 characters: 60,000 are never exceeded."""
    cases = "".join(
        f"  - {{id: 'case {n} {'ü' * 40}', question: q, match: scalar, expected: {{rows: [[1]]}}}}\n"
        for n in range(400)
    )
    project.write("golden.yaml", f"cases:\n{cases}")
    project.answer({"q": {"rows": [["`|" * 300]]}})
    result = project.run(*REPORTS, "--tb=no", "-q")
    result.assert_outcomes(failed=400)
    markdown = (project.path / "run.md").read_text(encoding="utf-8")
    assert 50_000 < len(markdown) <= 60_000
    assert "more lines did not fit: see the JSON report" in markdown
    assert len(read_report(project)["cases"]) == 400


def test_step_summary(mixed: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the ini option, Markdown is appended to the file of GITHUB_STEP_SUMMARY, without a flag."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(mixed.path / "step.md"))
    mixed.run()
    assert not (mixed.path / "step.md").exists()
    mixed.edit("pytest.ini", "[pytest]\n", "[pytest]\nctx_step_summary = true\n")
    mixed.write("step.md", "before\n")
    mixed.run()
    mixed.run()
    text = (mixed.path / "step.md").read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.count("### ctxfp: 1 of 4 cases passed") == 2
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    mixed.run().assert_outcomes(**MIXED_OUTCOMES)


def test_step_summary_that_cant_be_written(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step summary that can't be written is a red line and exit 1."""
    project.edit("pytest.ini", "[pytest]\n", "[pytest]\nctx_step_summary = true\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "agent"))
    result = project.run()
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["report not written: *agent: *"])


@pytest.mark.parametrize("path", ["agent/prompt.md/run.json", "folder.json"])
def test_path_that_cant_be_written(project: Project, path: str) -> None:
    """A report that can't be written is a line that says why, and exit 1; the others are written."""
    project.write("folder.json/file", "")
    result = project.run(f"--ctx-report={path}", "--ctx-report=run.md")
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"report not written: *{path}: *"])
    assert (project.path / "run.md").exists()


@pytest.mark.parametrize("path", ["run.txt", "run", "", "run.json.gz", "json"])
def test_other_suffix_is_a_usage_error(project: Project, path: str) -> None:
    """A suffix that no report has ends the run before anything is asked."""
    result = project.run(f"--ctx-report={path}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--ctx-report*write a path that ends in .json, .md or .html*"])
    assert project.calls() == []


def test_no_case_in_the_run(project: Project) -> None:
    """A run without any golden case writes an empty report."""
    project.write("test_plain.py", "def test_plain(): pass\n")
    project.run("test_plain.py", *REPORTS).assert_outcomes(passed=1)
    report = read_report(project)
    assert (report["cases"], report["complete"], report["total_cases"]) == ([], True, 0)


def test_collect_only_writes_nothing(project: Project) -> None:
    """``--co`` is no run: no report, not even an empty one over the last."""
    project.run("--co", *REPORTS)
    assert not (project.path / "run.json").exists()


@pytest.mark.parametrize("flag", ["-x", "--maxfail=1"])
def test_stopped_run(mixed: Project, flag: str) -> None:
    """A run that stops at a failure has summary and report of what ran, marked incomplete."""
    mixed.edit(
        "golden.yaml",
        "{id: passes,",
        "{id: early, question: fails, match: scalar, expected: {rows: [[3]]}}\n  - {id: passes,",
    )
    result = mixed.run(flag, *REPORTS)
    result.stdout.fnmatch_lines(["incomplete the run was interrupted*", "cases*failed*"])
    report = read_report(mixed)
    assert not report["complete"]
    assert "early" in [case["id"] for case in report["cases"]]
    assert "**This run was interrupted.**" in (mixed.path / "run.md").read_text(encoding="utf-8")


def test_stop_at_the_last_test(project: Project, table: Callable[[object], object]) -> None:
    """A failure under ``-x`` marks the run incomplete even where nothing was left to run."""
    project.answer({"How many orders?": table(99), "How many customers?": table(13)})
    project.run("-x", *REPORTS).assert_outcomes(passed=1, failed=1)
    assert not read_report(project)["complete"]


def test_keyboard_interrupt(mixed: Project) -> None:
    """Ctrl-C within an agent: summary and report of what ran, marked incomplete, and pytest's exit 2."""
    mixed.edit(
        "conftest.py",
        "return Agent",
        "if question == 'expected':\n            raise KeyboardInterrupt\n        return Agent",
    )
    result = mixed.run_apart("--ctx-cache", *REPORTS)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["cases*3: 1 passed, 1 failed, 1 skipped"])
    report = read_report(mixed)
    assert not report["complete"]
    assert [case["id"] for case in report["cases"]] == ["passes", "fails", "skipped"]
    assert report["total_cases"] == 5


def test_exit_by_an_agent(mixed: Project) -> None:
    """``pytest.exit`` in an agent ends the run; the report says that it is incomplete."""
    mixed.edit(
        "conftest.py",
        "return Agent",
        "if question == 'expected':\n            pytest.exit('enough')\n        return Agent",
    )
    mixed.run(*REPORTS)
    assert not read_report(mixed)["complete"]


def test_crash_of_a_worker(mixed: Project) -> None:
    """A worker that dies takes its test with it: the report has the others and is incomplete."""
    mixed.edit(
        "conftest.py",
        "return Agent",
        "if question == 'expected':\n            os._exit(3)\n        return Agent",
    )
    result = mixed.run("-n2", *REPORTS)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["cases*4: 1 passed, 1 failed, 1 error, 1 skipped"])
    report = read_report(mixed)
    assert not report["complete"]
    assert [case["id"] for case in report["cases"]] == ["passes", "fails", "skipped", "broken"]


def test_crash_of_the_only_worker(mixed: Project) -> None:
    """Where no worker may be replaced, the run ends early and says that it is incomplete."""
    mixed.edit(
        "conftest.py",
        "return Agent",
        "if question == 'passes':\n            os._exit(3)\n        return Agent",
    )
    mixed.run("-n1", "--max-worker-restart=0", *REPORTS)
    assert not read_report(mixed)["complete"]


def test_collection_error(mixed: Project) -> None:
    """A golden file that can't be read makes the report of the others incomplete."""
    mixed.write("golden_bad.yaml", "cases: [{id: 1}]\n")
    result = mixed.run("--continue-on-collection-errors", *REPORTS)
    result.assert_outcomes(**{**MIXED_OUTCOMES, "errors": 2})
    report = read_report(mixed)
    assert not report["complete"]
    assert len(report["cases"]) == 5


@pytest.mark.parametrize("workers", [[], ["-p", "no:xdist"]], ids=["plain", "without-xdist"])
def test_run_that_a_collection_error_stops(mixed: Project, workers: list[str]) -> None:
    """Without that flag nothing runs (but under xdist): the report is empty and incomplete."""
    mixed.write("golden_bad.yaml", "cases: [{id: 1}]\n")
    result = mixed.run(*REPORTS, *workers)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    report = read_report(mixed)
    assert (report["complete"], report["cases"]) == (False, [])
    assert mixed.calls() == []


SKIPPED_MODULE = """
import pytest

pytest.skip("not here", allow_module_level=True)
"""


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["-n2"],
        ["--reruns=1"],
        ["--reruns=1", "-n2"],
        ["--ctx-tags=a,hard"],
        ["-k", "not broken"],
        ["-k", "not broken", "-n2"],
        ["-m", "ctx_golden"],
        ["--deselect=golden.yaml::fails"],
        ["--maxfail=10"],
        ["--maxfail=10", "-n2"],
        ["golden.yaml"],
    ],
    ids=" ".join,
)
def test_normal_run_is_complete(mixed: Project, flags: list[str]) -> None:
    """Failures, reruns, skips and deselected tests don't make a run an interrupted one."""
    mixed.write("test_skipped.py", SKIPPED_MODULE)
    mixed.write("test_plain.py", "import pytest\n\n@pytest.mark.skip\ndef test_plain(): pass\n")
    mixed.run(*flags, *REPORTS)
    report = read_report(mixed)
    assert report["complete"]
    assert "interrupted" not in (mixed.path / "run.md").read_text(encoding="utf-8")


def test_rerun_counts_once(project: Project) -> None:
    """A test that runs again is in the report as its last attempt was."""
    project.edit(
        "conftest.py",
        "return answers",
        "if (HERE / 'calls.txt').read_text().count(question) < 2:\n            return {'rows': [[0]]}\n"
        "        return answers",
    )
    project.run("--reruns=1", *REPORTS)
    report = read_report(project)
    assert [(case["pass"], case["samples"]) for case in report["cases"]] == [(True, 1)] * 2
    assert report["complete"]


def test_model_of_a_suites_own_fixture(mixed: Project) -> None:
    """Cases that were skipped before the fixture ``ctx_model`` was asked stand under its model too."""
    mixed.edit(
        "conftest.py",
        "@pytest.fixture\ndef ctx_agent",
        "@pytest.fixture(scope='session')\ndef ctx_model():\n    return 'mine'\n\n\n"
        "@pytest.fixture\ndef ctx_agent",
    )
    mixed.run(*REPORTS).assert_outcomes(**MIXED_OUTCOMES)
    report = read_report(mixed)
    assert [case["model"] for case in report["cases"]] == ["mine"] * 5
    assert [config["model"] for config in report["configs"]] == ["mine"]


def test_case_that_a_test_never_traces(mixed: Project) -> None:
    """A marked test that passes without tracing its case leaves no entry that would look like a verdict."""
    mixed.write(
        "test_marked.py",
        "import pytest\n\n@pytest.mark.ctx_golden('golden.yaml')\n"
        "def test_lazy(ctx_case, ctx_trace):\n    assert ctx_case.id\n",
    )
    mixed.run("test_marked.py", "-k", "passes or fails", *REPORTS).assert_outcomes(passed=2, deselected=3)
    assert read_report(mixed)["cases"] == []


def test_setup_error_of_a_golden_item(mixed: Project) -> None:
    """A fixture that fails before the case is resolved makes it an error in the report too."""
    mixed.edit(
        "conftest.py",
        "@pytest.fixture\ndef ctx_agent",
        "@pytest.fixture(autouse=True)\ndef down():\n    raise OSError('no network')\n\n\n"
        "@pytest.fixture\ndef ctx_agent",
    )
    mixed.run(*REPORTS).assert_outcomes(errors=4, skipped=1)
    report = read_report(mixed)
    assert [case["state"] for case in report["cases"]] == ["error", "error", "skipped", "error", "error"]
    assert "no network" in report["cases"][0]["reason"]


def test_calls_that_stand_in_no_case_are_told(mixed: Project) -> None:
    """What failed calls, earlier attempts and a test's own calls cost is not passed over."""
    mixed.write(
        "test_own.py",
        "from pytest_ctxfp import AgentResult\n\n"
        "def test_own(ctx_trace):\n    ctx_trace.call('own', lambda: AgentResult('x', cost=0.5))\n",
    )
    mixed.run("--ctx-cache", "--reruns=1", "-k", "own or passes or broken or fails", *REPORTS)
    report = read_report(mixed)
    # Asked twice: the case that fails is stored at first, the one that is broken never answers.
    (note,) = [note for note in report["notes"] if "in no case" in note]
    assert note.startswith("4 calls stand in no case (failed, repeated, an audit's or a test's own): spent ")
    assert note.endswith(" USD and an unknown amount for 2")
    assert report["spent"]["answers"] == 1


def test_without_the_flag_nothing_is_written(mixed: Project) -> None:
    """A run that asks for no report leaves no file and says nothing of reports."""
    before = sorted(path.name for path in mixed.path.iterdir())
    result = mixed.run()
    after = sorted(
        path.name for path in mixed.path.iterdir() if path.name not in ("calls.txt", "__pycache__")
    )
    assert after == [name for name in before if name != "__pycache__"]
    result.stdout.no_fnmatch_line("*report*")
    for label in ("selected", "flaky", "variants", "confirming", "audit"):
        result.stdout.no_fnmatch_line(f"{label} *")
