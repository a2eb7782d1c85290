"""``--ctx-tags``: only the cases with one of some tags, chosen before anything is asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project


@pytest.fixture
def tagged(project: Project) -> Project:
    """The project with five cases: two easy, two of orders, one of both, one without tags."""
    tags = {"c0": "[easy]", "c1": "[orders]", "c2": "[easy, orders]", "c3": "[]", "c4": "['a b']"}
    cases = "".join(
        f"  - {{id: {name}, question: q{name}, tags: {listed}, match: scalar, expected: {{rows: [[1]]}}}}\n"
        for name, listed in tags.items()
    )
    project.write("golden.yaml", f"cases:\n{cases}")
    project.answer({f"q{name}": {"rows": [[1]]} for name in tags})
    return project


PLAIN_TEST = "def test_plain(): pass\n"


@pytest.mark.parametrize(
    ("tags", "kept"),
    [
        ("easy", "c0 c2"),
        ("orders,easy", "c0 c1 c2"),
        (" orders , ", "c1 c2"),
        ("a b", "c4"),
        ("easy,none", "c0 c2"),
    ],
)
def test_cases_with_one_of_the_tags_run(tagged: Project, tags: str, kept: str) -> None:
    """A case runs if it has one of the tags exactly; nobody is asked about the others."""
    names = kept.split()
    tagged.run(f"--ctx-tags={tags}").assert_outcomes(passed=len(names), deselected=5 - len(names))
    assert tagged.calls() == [f"q{name}" for name in names]


def test_selection_is_said_everywhere(tagged: Project, how: list[str]) -> None:
    """Pytest counts what is deselected; the summary and all reports say how many of how many cases ran."""
    tagged.write("test_plain.py", PLAIN_TEST)
    result = tagged.run("--ctx-tags=easy", "--ctx-report=run.json", "--ctx-report=run.md", *how)
    result.assert_outcomes(passed=3, deselected=0 if "-n2" in how else 3)
    result.stdout.fnmatch_lines(["selected   2 of 5 cases (tags easy)", "cases*2: 2 passed*"])
    report = json.loads((tagged.path / "run.json").read_text(encoding="utf-8"))
    assert (report["selected_cases"], report["total_cases"]) == (2, 5)
    assert report["selection"] == "2 of 5 cases (tags easy)"
    assert report["complete"]
    assert report["covered"] == []
    assert "`2 of 5 cases (tags easy)`" in (tagged.path / "run.md").read_text(encoding="utf-8")
    assert tagged.calls() == ["qc0", "qc2"]


def test_full_run_says_nothing_of_a_selection(tagged: Project) -> None:
    """Without the flag there is no line on it, and a selection of all cases counts them."""
    result = tagged.run("--ctx-report=run.json")
    result.stdout.no_fnmatch_line("selected *")
    report = json.loads((tagged.path / "run.json").read_text(encoding="utf-8"))
    assert (report["selected_cases"], report["total_cases"], report["selection"]) == (5, 5, "")
    assert report["covered"] == ["./", "golden.yaml"]


def test_no_case_left(tagged: Project, how: list[str]) -> None:
    """Tags that no case has end the run with exit 5 and a line that says so, nobody asked."""
    result = tagged.run("--ctx-tags=none", *how)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["*no case is left*tags*"])
    assert tagged.calls() == []


def test_no_case_left_beside_other_tests(tagged: Project, how: list[str]) -> None:
    """Other tests run and pass; the run still ends with exit 5 and says why."""
    tagged.write("test_plain.py", PLAIN_TEST)
    result = tagged.run("--ctx-tags=none", *how)
    result.assert_outcomes(passed=1, deselected=0 if "-n2" in how else 5)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["no case is left of 5 by tags none: widen the selection"])


def test_no_case_left_beside_a_failing_test(tagged: Project) -> None:
    """A test that fails decides the exit status; the line is there all the same."""
    tagged.write("test_plain.py", "def test_plain(): assert False\n")
    result = tagged.run("--ctx-tags=none")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["no case is left of 5 by tags none: widen the selection"])


def test_tags_in_a_suite_without_cases(empty_project: Project) -> None:
    """Where there is no golden case at all, a selection leaves none, and says so."""
    empty_project.write("test_plain.py", PLAIN_TEST)
    result = empty_project.run("--ctx-tags=easy")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["no case is left of 0 by tags easy: *"])


def test_other_selections_work_on_what_is_left(tagged: Project) -> None:
    """``-k`` and ``--ctx-tags`` together run what both keep; the count says what runs."""
    result = tagged.run("--ctx-tags=easy", "-k", "c2")
    result.assert_outcomes(passed=1, deselected=4)
    assert tagged.calls() == ["qc2"]
    result.stdout.fnmatch_lines(["selected   1 of 5 cases*"])


def test_keyword_alone_is_a_selection_too(tagged: Project) -> None:
    """A report of a run under ``-k`` says that it is of some cases only."""
    result = tagged.run("-k", "c2", "--ctx-report=run.json")
    result.stdout.fnmatch_lines(["selected   1 of 5 cases"])
    report = json.loads((tagged.path / "run.json").read_text(encoding="utf-8"))
    assert (report["selected_cases"], report["total_cases"], report["covered"]) == (1, 5, [])


MARKED = """
import pytest

@pytest.mark.ctx_golden("golden.yaml")
def test_one(ctx_case, ctx_trace):
    ctx_trace(ctx_case).check()

@pytest.mark.ctx_golden("golden.yaml")
def test_two(ctx_case):
    pass

def test_plain():
    pass
"""


def test_marked_tests_are_selected_by_their_case(tagged: Project) -> None:
    """A case that several tests run is one case, and all of its tests go or stay."""
    tagged.write("test_marked.py", MARKED)
    result = tagged.run("--ctx-tags=easy")
    result.assert_outcomes(passed=5, deselected=11)
    result.stdout.fnmatch_lines(["selected   2 of 5 cases (tags easy)"])
    assert tagged.calls() == ["qc0", "qc2"]


def test_models_are_no_further_cases(tagged: Project) -> None:
    """Under several models a case is still one of five."""
    tagged.edit("conftest.py", "def ask(question, context):", "def ask(question, context, model):")
    result = tagged.run("--ctx-tags=easy", "--ctx-models=a,b")
    result.assert_outcomes(passed=4, deselected=6)
    result.stdout.fnmatch_lines(["selected   2 of 5 cases (tags easy)"])


def test_collect_only_lists_the_selection(tagged: Project) -> None:
    """``--co`` shows which cases would run."""
    result = tagged.run("--ctx-tags=easy", "--co", "-q")
    result.stdout.fnmatch_lines(
        ["golden.yaml::c0", "golden.yaml::c2", "*2/5 tests collected (3 deselected)*"]
    )
    result.stdout.no_fnmatch_line("golden.yaml::c1")


@pytest.mark.parametrize("tags", ["", ",", " , "])
def test_no_tag_is_a_usage_error(tagged: Project, tags: str) -> None:
    """Only separators, or nothing, name no tag: exit 4, and what to write."""
    tagged.write("test_plain.py", PLAIN_TEST)
    result = tagged.run(f"--ctx-tags={tags}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--ctx-tags*no tag: write them separated by commas*"])


def test_broken_file_is_no_matter_of_tags(tagged: Project) -> None:
    """Where no case can be read, the summary doesn't ask for a wider selection."""
    tagged.write("golden.yaml", "cases: [{id: 1}]\n")
    result = tagged.run("--ctx-tags=easy")
    result.assert_outcomes(errors=1)
    result.stdout.no_fnmatch_line("*no case is left*")


def test_dead_worker_is_no_matter_of_tags(tagged: Project) -> None:
    """Where the only worker dies at the first case, the summary doesn't say that none was selected."""
    tagged.edit("conftest.py", "return answers", "os._exit(3)\n        return answers")
    result = tagged.run("--ctx-tags=easy", "-n1", "--max-worker-restart=0")
    assert result.ret != pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.no_fnmatch_line("*no case is left*")
