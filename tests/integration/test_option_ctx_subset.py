"""``--ctx-subset``: some of the cases, the same ones every time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project

TAGS = ("easy", "orders", "dates")


@pytest.fixture
def many(project: Project) -> Project:
    """The project with twelve cases in two files; tags go round in threes."""
    for file in ("a", "b"):
        cases = "".join(
            f"  - {{id: {file}{n}, question: q{file}{n}, tags: [{TAGS[n % 3]}], match: scalar,"
            " expected: {rows: [[1]]}}\n"
            for n in range(6)
        )
        project.write(f"golden_{file}.yaml", f"cases:\n{cases}")
    (project.path / "golden.yaml").unlink()
    project.answer({f"q{file}{n}": {"rows": [[1]]} for file in "ab" for n in range(6)})
    return project


@pytest.mark.parametrize(
    ("subset", "kept"),
    [
        ("3", "a0 a4 b2"),
        ("25%", "a0 a4 b2"),
        ("0.25", "a0 a4 b2"),
        ("1", "a0"),
        ("0.0001", "a0"),
        ("per-tag", "a0 a1 a2"),
        ("per-tag:3", "a0 a1 a2 a3 a4 a5 b0 b1 b2"),
        (" 2 ", "a0 b0"),
    ],
)
def test_kept_cases(many: Project, subset: str, kept: str) -> None:
    """A count, a share and so many per tag keep the cases that the rule says, spread over all files."""
    names = kept.split()
    result = many.run(f"--ctx-subset={subset}")
    result.assert_outcomes(passed=len(names), deselected=12 - len(names))
    result.stdout.fnmatch_lines([f"selected   {len(names)} of 12 cases (subset {subset})"])
    assert many.calls() == [f"q{name}" for name in names]


@pytest.mark.parametrize("subset", ["12", "100", "100%", "per-tag:9", "9" * 5000])
def test_subset_of_all(many: Project, subset: str) -> None:
    """A subset that is the whole keeps all cases."""
    many.run(f"--ctx-subset={subset}").assert_outcomes(passed=12)


def test_tags_come_first(many: Project) -> None:
    """With both flags the subset is one of the cases with the tags; the note names both."""
    result = many.run("--ctx-tags=orders", "--ctx-subset=2", "--ctx-report=run.json")
    assert many.calls() == ["qa1", "qb1"]
    note = "2 of 12 cases (tags orders; subset 2)"
    result.stdout.fnmatch_lines([f"selected   {note}"])
    assert json.loads((many.path / "run.json").read_text(encoding="utf-8"))["selection"] == note


REVERSE = """

def pytest_collection_modifyitems(items):
    items.reverse()
"""

REVERSE_FIRST = REVERSE.replace("def pytest", "@pytest.hookimpl(tryfirst=True)\ndef pytest")


@pytest.mark.parametrize("hook", [REVERSE, REVERSE_FIRST], ids=["last", "first"])
def test_order_of_items_does_not_matter(many: Project, hook: str) -> None:
    """Whatever order a plugin gives the items, the same cases are chosen."""
    many.edit("conftest.py", "    return ask\n", f"    return ask\n{hook}")
    many.run("--ctx-subset=3").assert_outcomes(passed=3, deselected=9)
    assert many.calls() == ["qa0", "qa4", "qb2"]


def test_order_on_the_command_line_does_not_matter(many: Project) -> None:
    """Files named in another order make the same choice."""
    many.run("--ctx-subset=3", "golden_b.yaml", "golden_a.yaml").assert_outcomes(passed=3, deselected=9)
    assert many.calls() == ["qa0", "qa4", "qb2"]


def test_keyword_picks_from_the_same_choice(many: Project) -> None:
    """``-k`` leaves out more; it doesn't move the choice to other cases."""
    many.run("--ctx-subset=3", "-k", "a0 or a1 or a4")
    assert many.calls() == ["qa0", "qa4"]


def test_last_failed_picks_from_the_same_choice(many: Project) -> None:
    """``--lf`` runs the failed case of the subset again, not another one."""
    many.edit("pytest.ini", "addopts = -p no:cacheprovider\n", "")
    many.edit(
        "conftest.py",
        "return answers",
        "if question == 'qa4':\n            return {'rows': [[2]]}\n        return answers",
    )
    many.run("--ctx-subset=3").assert_outcomes(passed=2, failed=1, deselected=9)
    many.calls()
    result = many.run("--ctx-subset=3", "--lf")
    assert many.calls() == ["qa4"]
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_failed_first_keeps_the_choice(many: Project) -> None:
    """``--ff`` changes the order only."""
    many.edit("pytest.ini", "addopts = -p no:cacheprovider\n", "")
    many.edit(
        "conftest.py",
        "return answers",
        "if question == 'qb2':\n            return {'rows': [[2]]}\n        return answers",
    )
    for _ in range(2):
        many.run("--ctx-subset=3", "--ff").assert_outcomes(passed=2, failed=1, deselected=9)
        assert many.calls() == ["qa0", "qa4", "qb2"]


def test_subset_of_a_single_file(many: Project) -> None:
    """The subset is of the cases that were collected: of one file where one is named."""
    result = many.run("--ctx-subset=2", "golden_b.yaml")
    assert many.calls() == ["qb0", "qb3"]
    result.stdout.fnmatch_lines(["selected   2 of 6 cases (subset 2)"])


def test_untagged_cases_are_a_group(many: Project) -> None:
    """``per-tag:1`` keeps one case without tags."""
    text = (many.path / "golden_b.yaml").read_text(encoding="utf-8")
    many.write("golden_b.yaml", text.replace("tags: [easy], ", ""))
    many.run("--ctx-subset=per-tag:1").assert_outcomes(passed=4, deselected=8)
    assert many.calls() == ["qa0", "qa1", "qa2", "qb0"]


def test_python_tests_without_cases_run(many: Project, how: list[str]) -> None:
    """Tests that run no golden case are none of a subset's business."""
    many.write(
        "test_plain.py", "import pytest\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_plain(n): pass\n"
    )
    many.run("--ctx-subset=1", *how).assert_outcomes(passed=3, deselected=0 if "-n2" in how else 11)


def test_collect_only_shows_the_choice(many: Project) -> None:
    """``--co`` lists the cases of the subset and asks nobody."""
    result = many.run("--ctx-subset=2", "--co", "-q")
    result.stdout.fnmatch_lines(
        ["golden_a.yaml::a0", "golden_b.yaml::b0", "*2/12 tests collected (10 deselected)*"]
    )
    assert many.calls() == []


def test_deselected_items_reach_other_plugins(many: Project) -> None:
    """What is left out goes through pytest's own hook, as every plugin that counts it expects."""
    many.edit(
        "conftest.py",
        "    return ask\n",
        "    return ask\n\n\ndef pytest_deselected(items):\n"
        "    (HERE / 'dropped.txt').write_text(' '.join(item.name for item in items))\n",
    )
    many.run("--ctx-subset=11")
    assert (many.path / "dropped.txt").read_text(encoding="utf-8") == "b5"


@pytest.mark.parametrize(
    "subset",
    [
        "",
        "0",
        "-1",
        "0%",
        "101%",
        "1.5",
        "0.0",
        "per-tag:0",
        "per-tag:",
        "per-tag:-1",
        "half",
        "1e999999",
        "nan",
    ],
)
def test_bad_form_is_a_usage_error(many: Project, subset: str) -> None:
    """What is no subset ends the run with exit 4 and the forms there are."""
    result = many.run(f"--ctx-subset={subset}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--ctx-subset*write a count (20), a share (0.2 or 20%), per-tag or per-tag:K*"]
    )
    assert many.calls() == []


def test_bad_form_under_xdist(many: Project) -> None:
    """A bad subset is the same usage error with workers and without xdist."""
    assert many.run("--ctx-subset=half").ret == pytest.ExitCode.USAGE_ERROR
