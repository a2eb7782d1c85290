"""Large golden files are read from their copy in pytest's cache, which nobody notices but by the clock."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from pytest_ctxfp._golden_copies import WORTH_A_COPY

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Project

COMMENT = f"# {'-' * WORTH_A_COPY}\n"


def make_large(project: Project) -> None:
    """Let the project's golden file be worth a copy, and pytest have its cache."""
    project.edit("pytest.ini", "addopts = -p no:cacheprovider\n", "")
    project.edit("golden.yaml", "cases:\n", f"{COMMENT}cases:\n")


def copies(project: Project) -> list[Path]:
    """Return the copies in pytest's cache."""
    return sorted(project.path.glob(".pytest_cache/d/ctxfp-golden/*"))


def test_copy_is_used_until_the_file_changes(project: Project, how: list[str]) -> None:
    """The second run collects from the copy and finds the same cases; an edit is seen by the next run."""
    make_large(project)
    project.run_apart(*how).assert_outcomes(passed=2)
    (copy,) = copies(project)
    text = copy.read_text()
    project.run_apart(*how).assert_outcomes(passed=2)
    assert copies(project) == [copy]
    assert copy.read_text() == text
    project.edit("golden.yaml", "[[99]]", "[[98]]")
    result = project.run_apart(*how)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["FAILED golden.yaml::orders*expected 98, actual 99*"])


def test_copy_is_what_a_run_reads(project: Project) -> None:
    """A case that only the copy has is run: the golden file itself was not parsed."""
    make_large(project)
    project.run()
    (copy,) = copies(project)
    copy.write_text(copy.read_text().replace('"customers"', '"clients"'))
    result = project.run("--co", "-q")
    result.stdout.fnmatch_lines(["golden.yaml::orders", "golden.yaml::clients"])


def test_clearing_the_cache_clears_copies(project: Project) -> None:
    """``--cache-clear`` lets the golden file itself be read."""
    make_large(project)
    project.run()
    (copy,) = copies(project)
    copy.write_text(copy.read_text().replace('"customers"', '"clients"'))
    result = project.run("--co", "-q", "--cache-clear")
    result.stdout.fnmatch_lines(["golden.yaml::orders", "golden.yaml::customers"])


def test_without_a_cache_files_are_read(project: Project) -> None:
    """With ``-p no:cacheprovider``, or where its folder can't be made, large files are read as ever."""
    make_large(project)
    project.run("-p", "no:cacheprovider").assert_outcomes(passed=2)
    assert copies(project) == []
    project.write("in-the-way", "")
    result = project.run_apart("-o", "cache_dir=in-the-way/cache", "-W", "ignore::pytest.PytestCacheWarning")
    result.assert_outcomes(passed=2)


def test_small_files_leave_no_cache(project: Project) -> None:
    """Listing small files makes no folder; one that copies are in is ignored by git."""
    project.edit("pytest.ini", "addopts = -p no:cacheprovider\n", "")
    project.run("--co", "-q")
    assert not (project.path / ".pytest_cache" / "d").exists()
    shutil.rmtree(project.path / ".pytest_cache", ignore_errors=True)  # pytest 8.0 makes one for each run
    project.edit("golden.yaml", "cases:\n", f"{COMMENT}cases:\n")
    project.run("--co", "-q")
    assert (project.path / ".pytest_cache" / ".gitignore").is_file()
