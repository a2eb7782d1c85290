"""Golden cases as pytest items: selecting, listing, reporting."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Project


def test_cases_are_collected_by_id(project: Project) -> None:
    """``--co`` lists every case of a golden file by its id, and asks nobody."""
    result = project.run("--co", "-q")
    result.stdout.fnmatch_lines(["golden.yaml::orders", "golden.yaml::customers"])
    assert project.calls() == []


def test_selecting_by_keyword_tag_and_node_id(project: Project) -> None:
    """``-k`` takes ids and tags, and ``file::id`` runs that case alone."""
    for arguments, asked in [
        (["-k", "customers"], ["How many customers?"]),
        (["-k", "people"], ["How many customers?"]),
        (["golden.yaml::orders"], ["How many orders?"]),
    ]:
        result = project.run(*arguments)
        result.assert_outcomes(passed=1, deselected=1 if "-k" in arguments else 0)
        assert project.calls() == asked


def test_marker_selects_golden_cases(project: Project) -> None:
    """Every golden item carries the marker ``ctx_golden``, so ``-m`` can tell them from other tests."""
    project.write("test_other.py", "def test_other(): pass\n")
    project.run("-m", "ctx_golden").assert_outcomes(passed=2, deselected=1)
    project.run("-m", "not ctx_golden").assert_outcomes(passed=1, deselected=2)


def test_exit_first_stops_paying(project: Project, table: Callable[[object], object]) -> None:
    """``-x`` stops at the first failure, so the next case is not asked."""
    project.answer({"How many orders?": table(98), "How many customers?": table(12)})
    project.run("-x").assert_outcomes(failed=1)
    assert project.calls() == ["How many orders?"]


def test_last_failed_runs_the_failed_case_again(project: Project, table: Callable[[object], object]) -> None:
    """``--lf`` runs just the case that failed, by its item."""
    project.edit("pytest.ini", "addopts = -p no:cacheprovider\n", "")
    project.answer({"How many orders?": table(98), "How many customers?": table(12)})
    project.run().assert_outcomes(failed=1, passed=1)
    project.calls()
    project.run("--lf").assert_outcomes(failed=1)
    assert project.calls() == ["How many orders?"]


def test_junit_xml_names_cases_and_carries_their_facts(project: Project) -> None:
    """``--junit-xml`` holds a testcase a case with its facts as properties."""
    project.run("--ctx-cache", "--junit-xml=junit.xml").assert_outcomes(passed=2)
    cases = ET.parse(project.path / "junit.xml").getroot().findall(".//testcase")
    assert [case.get("name") for case in cases] == ["orders", "customers"]
    facts = {p.get("name"): p.get("value") for p in cases[0].findall("properties/property")}
    assert facts["ctxfp_state"] == "miss"
    assert facts["ctxfp_model"] == "stub-1"
    assert facts["ctxfp_passed"] == "True"


def test_junit_xml_tells_errors_from_failures(project: Project, table: Callable[[object], object]) -> None:
    """A wrong answer is junit's failure; an agent that raises is junit's error."""
    project.answer({"How many customers?": table(13)})
    project.run("--junit-xml=junit.xml").assert_outcomes(failed=1, errors=1)
    cases = ET.parse(project.path / "junit.xml").getroot().findall(".//testcase")
    assert [[child.tag for child in case if child.tag != "properties"] for case in cases] == [
        ["error"],
        ["failure"],
    ]


def test_counts_are_the_same_on_two_workers(project: Project) -> None:
    """Under ``-n 2`` the summary counts what a plain run counts."""
    result = project.run("--ctx-cache", "-n2")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["cases*2: 2 passed, 0 failed", "answers*0 hit, 2 miss"])
    result = project.run("--ctx-cache", "-n2", "-v")
    result.stdout.fnmatch_lines(["*PASSED (replayed)*orders*", "answers*2 hit, 0 miss;*"])
    assert len(project.calls()) == 2


def test_file_given_explicitly_is_collected_whatever_its_name(project: Project) -> None:
    """A file named on the command line is a golden file though its name matches no pattern."""
    (project.path / "golden.yaml").rename(project.path / "questions.yml")
    project.run().assert_outcomes()
    project.run("questions.yml").assert_outcomes(passed=2)
    project.run("questions.yml::orders").assert_outcomes(passed=1)
    project.run("-n2", "questions.yml::orders").assert_outcomes(passed=1)


def test_ini_names_other_golden_files(project: Project) -> None:
    """``ctx_golden_files`` replaces the default file name patterns."""
    (project.path / "golden.yaml").rename(project.path / "track-1.yaml")
    project.edit("pytest.ini", "[pytest]\n", "[pytest]\nctx_golden_files = track-*.yaml\n")
    project.run().assert_outcomes(passed=2)


def test_other_peoples_files_are_left_alone(project: Project) -> None:
    """A file whose name matches but that has no top-level ``cases`` is someone else's; given explicitly it
    is an error.
    """
    project.write("golden.yaml", "records:\n  - 1\n")
    project.run("--co").assert_outcomes()
    result = project.run("golden.yaml")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*golden.yaml*cases*"])


def test_json_golden_files(project: Project) -> None:
    """A golden file may be JSON."""
    (project.path / "golden.yaml").unlink()
    project.write(
        "golden.json",
        '{"cases": [{"id": "orders", "question": "How many orders?", "match": "scalar",'
        ' "expected": {"columns": ["n"], "rows": [[99]]}}]}',
    )
    project.run().assert_outcomes(passed=1)


def test_failure_says_all_there_is_to_know(project: Project, table: Callable[[object], object]) -> None:
    """A failed case shows reason, question, match mode, tolerance, both tables and, on a hit, when and under
    which model the answer was recorded and the command that asks again; no traceback.
    """
    project.edit(
        "golden.yaml",
        "rows: [[99]]}",
        "rows: [[99]]}\n    tolerance: {numeric: 0.5}",
    )
    project.answer({"How many orders?": table(98), "How many customers?": table(12)})
    result = project.run("--ctx-cache")
    assert "Traceback" not in result.stdout.str()
    result.stdout.fnmatch_lines(
        [
            "*expected 99, actual 98*",
            "question * How many orders?",
            "match * scalar, tolerance numeric 0.5",
            "expected * n",
            "* 99",
            "actual * n",
            "* 98",
            "answer * asked in this run under model stub-1",
            "FAILED golden.yaml::orders - *expected 99*",
        ]
    )
    result = project.run("--ctx-cache")
    result.stdout.fnmatch_lines(
        [
            "answer * stored, recorded 20??-??-?? ??:??:?? UTC under model stub-1; no call was made",
            "ask again * pytest golden.yaml::orders --ctx-refresh",
        ]
    )


def test_skip_xfail_marks(project: Project, table: Callable[[object], object]) -> None:
    """``skip``, ``xfail`` and ``marks`` of a case are pytest's own; a skipped case is not asked, and an
    agent's error is no expected failure.
    """
    project.write(
        "golden.yaml",
        """cases:
  - {id: a, question: a, expected: {rows: [[1]]}, match: scalar, skip: not yet}
  - {id: b, question: b, expected: {rows: [[1]]}, match: scalar, xfail: known}
  - {id: c, question: c, expected: {rows: [[1]]}, match: scalar, xfail: known}
  - {id: d, question: d, expected: {rows: [[1]]}, match: scalar, marks: [slow]}
""",
    )
    project.edit("pytest.ini", "[pytest]\n", "[pytest]\nmarkers = slow: takes long\n")
    project.answer({"b": table(2), "d": table(1)})
    result = project.run("-rs")
    result.assert_outcomes(passed=1, skipped=1, xfailed=1, errors=1)
    result.stdout.fnmatch_lines(["*4: 1 passed, 0 failed, 1 failed as expected, 1 error, 1 skipped"])
    assert project.calls() == ["b", "c", "d"]
    project.run("-m", "slow").assert_outcomes(passed=1, deselected=3)


def test_plugin_can_be_disabled_where_nothing_of_it_is_used(empty_project: Project) -> None:
    """A suite that uses nothing of the plugin runs with ``-p no:ctxfp``, and prints nothing of it without."""
    empty_project.write("test_plain.py", "def test_plain(): pass\n")
    empty_project.run("-p", "no:ctxfp").assert_outcomes(passed=1)
    result = empty_project.run()
    result.assert_outcomes(passed=1)
    assert "golden cases" not in result.stdout.str()
    assert not (empty_project.path / ".ctxfp").exists()


def test_setup_only_asks_nobody(project: Project) -> None:
    """``--setup-only`` and ``--setup-plan`` pay for nothing."""
    for flag in ("--setup-only", "--setup-plan"):
        project.run(flag)
        assert project.calls() == []


def test_fixtures_of_every_scope_work(project: Project) -> None:
    """Golden items take autouse fixtures of every scope, and ``ctx_agent`` may use any fixture."""
    project.write(
        "conftest.py",
        """
import pytest

@pytest.fixture(autouse=True, scope="session")
def s(): yield

@pytest.fixture(autouse=True, scope="module")
def m(request):
    assert request.module.__file__.endswith("golden.yaml")
    yield

@pytest.fixture(autouse=True)
def f(request, tmp_path):
    assert request.function is not None
    yield

@pytest.fixture
def client(tmp_path, monkeypatch, s): return 99

@pytest.fixture
def ctx_agent(client):
    return lambda question: {"rows": [[client]]}
""",
    )
    project.run("-k", "orders").assert_outcomes(passed=1, deselected=1)


def test_agent_that_reads_the_case_has_it_in_the_key(project: Project) -> None:
    """Where the fixtures behind ``ctx_agent`` reach ``ctx_case``, an edit of what they can read is a miss."""
    project.write(
        "conftest.py",
        """
import pytest

@pytest.fixture
def tenant(ctx_case): return ctx_case.inputs["tenant"]

@pytest.fixture
def ctx_agent(tenant):
    return lambda question: {"rows": [[tenant]]}
""",
    )
    case = "  - {id: a, question: q, match: scalar, expected: {rows: [[acme]]}, inputs: {tenant: acme}}\n"
    project.write("golden.yaml", f"cases:\n{case}")
    project.run("--ctx-cache").assert_outcomes(passed=1)
    project.run("--ctx-cache").stdout.fnmatch_lines(["answers*1 hit, 0 miss*"])
    project.edit("golden.yaml", "tenant: acme", "tenant: bolt")
    result = project.run("--ctx-cache")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["answers*0 hit, 1 miss*", "missed*1 case"])


def test_case_fixture_shows_nothing_of_the_expectation(project: Project) -> None:
    """In a golden item ``ctx_case`` is what an agent may see: no expectation, no tags."""
    project.write(
        "conftest.py",
        """
import pytest

@pytest.fixture
def ctx_agent(ctx_case):
    assert not {"expected", "match", "tolerance", "tags", "min_score"} & set(dir(ctx_case))
    return lambda question, case: {"rows": [[99]]}
""",
    )
    project.run("-k", "orders").assert_outcomes(passed=1, deselected=1)


@pytest.mark.parametrize("flag", ["--tb=short", "--tb=line", "--tb=native", "--tb=no", "--full-trace"])
def test_traceback_styles(project: Project, table: Callable[[object], object], flag: str) -> None:
    """Every traceback style shows a failed case's reason in the short summary."""
    project.answer({"How many orders?": table(98), "How many customers?": table(12)})
    result = project.run(flag, "-rf")
    result.stdout.fnmatch_lines(["FAILED golden.yaml::orders - *expected 99, actual 98*"])
