"""``--no-cache`` and ``--no-ctx-cache``: ask, and store where a cache is configured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Project

FLAGS = pytest.mark.parametrize("flag", ["--no-cache", "--no-ctx-cache"])


@FLAGS
def test_fresh_answer_is_shown_and_stored(
    project: Project, how: list[str], flag: str, table: Callable[[object], object]
) -> None:
    """With ``--ctx-cache`` in addopts: A is stored; with ``--no-cache`` B is asked for, shown and stored; a
    plain run replays B.
    """
    project.edit("pytest.ini", "addopts = ", "addopts = --ctx-cache ")
    project.run(*how).assert_outcomes(passed=2)
    project.answer({"How many orders?": table(98), "How many customers?": table(12)})
    project.calls()
    result = project.run(flag, *how)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["cache*refresh, .ctxfp/traces", "answers*0 hit, 0 miss, 2 refreshed"])
    assert len(project.calls()) == 2
    result = project.run(*how)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["answers*2 hit, 0 miss*"])
    assert project.calls() == []


@FLAGS
def test_nothing_is_written_where_no_cache_is_configured(project: Project, flag: str) -> None:
    """Without a cache by flag, ini or folder, ``--no-cache`` asks and writes nothing."""
    result = project.run(flag)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["cache*off*", "answers*2 uncached"])
    assert not (project.path / ".ctxfp").exists()


@pytest.mark.parametrize("place", ["flag", "environment", "ini"])
def test_a_configured_folder_is_written(
    project: Project, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A cache folder set by flag, environment or ini is reason enough to store what ``--no-cache`` asked."""
    arguments = ["--no-cache"]
    if place == "flag":
        arguments.append("--ctx-cache-dir=answers")
    elif place == "environment":
        monkeypatch.setenv("CTXFP_CACHE_DIR", "answers")
    else:
        project.edit("pytest.ini", "[pytest]\n", "[pytest]\nctx_cache_dir = answers\n")
    project.run(*arguments).assert_outcomes(passed=2)
    assert len(project.traces("answers")) == 2


OWN_OPTION = """
def pytest_addoption(parser):
    parser.addoption("--no-cache", action="store_true", dest="own", help="mine")

import pytest

@pytest.fixture(autouse=True)
def shown(request):
    print("own:", request.config.getoption("own"))
"""


def test_a_conftest_keeps_its_own_option(project: Project) -> None:
    """Where a conftest defines ``--no-cache`` for itself, it means what it means there: the cache is used."""
    project.write("conftest.py", OWN_OPTION + (project.path / "conftest.py").read_text())
    project.run("--ctx-cache").assert_outcomes(passed=2)
    result = project.run("--ctx-cache", "--no-cache")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["answers*2 hit, 0 miss*"])


def test_a_conftest_in_a_subfolder_keeps_its_own_option(project: Project) -> None:
    """The same for a conftest of the folder that is given on the command line."""
    project.write("sub/conftest.py", OWN_OPTION)
    project.write("sub/test_sub.py", "def test_sub(request): assert request.config.getoption('own')\n")
    project.run("--no-cache", "sub").assert_outcomes(passed=1)


def test_a_conftest_that_comes_late_does_no_harm(project: Project) -> None:
    """A conftest of a subfolder that pytest loads while collecting can't define options; ours stays."""
    project.write("sub/conftest.py", OWN_OPTION.replace("request.config.getoption('own')", "1"))
    project.write("sub/test_sub.py", "def test_sub(): pass\n")
    project.edit("pytest.ini", "addopts = ", "addopts = --ctx-cache ")
    result = project.run("--no-cache", "golden.yaml")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["cache*refresh*"])


def test_option_in_addopts(project: Project) -> None:
    """``--no-cache`` works from addopts too."""
    project.edit("pytest.ini", "addopts = ", "addopts = --ctx-cache --no-cache ")
    project.run().stdout.fnmatch_lines(["cache*refresh*"])


def test_help_tells_of_it(project: Project) -> None:
    """``--help`` names ``--no-ctx-cache`` and says when ``--no-cache`` is the same."""
    project.run("--help").stdout.fnmatch_lines(["*--no-ctx-cache*", "*--no-cache*"])
