"""``--ctx-refresh`` and ``--ctx-cache-dir``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from .conftest import Project


def test_refresh_asks_and_replaces(
    project: Project, how: list[str], table: Callable[[object], object]
) -> None:
    """``--ctx-refresh`` asks every case and stores the new answers, alone or with ``--ctx-cache``."""
    project.run("--ctx-cache", *how)
    project.answer({"How many orders?": table(98), "How many customers?": table(12)})
    project.calls()
    project.run("--ctx-refresh", *how).assert_outcomes(passed=1, failed=1)
    assert len(project.calls()) == 2
    project.run("--ctx-cache", *how).assert_outcomes(passed=1, failed=1)
    assert project.calls() == []


def test_failed_refresh_leaves_the_good_entry(project: Project) -> None:
    """Where the agent raises during a refresh, the stored answer stays."""
    project.run("--ctx-cache")
    before = [path.read_bytes() for path in project.traces()]
    project.answer({})
    project.run("--ctx-refresh").assert_outcomes(errors=2)
    assert [path.read_bytes() for path in project.traces()] == before
    project.run("--ctx-cache").assert_outcomes(passed=2)


def test_cache_dir(project: Project, how: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is the flag's, else the environment's, else the ini's; relative to the rootdir."""
    project.edit("pytest.ini", "[pytest]\n", "[pytest]\nctx_cache_dir = from-ini\n")
    project.run("--ctx-cache", *how)
    assert len(project.traces("from-ini")) == 2
    monkeypatch.setenv("CTXFP_CACHE_DIR", "from-env")
    project.run("--ctx-cache", *how)
    assert len(project.traces("from-env")) == 2
    result = project.run("--ctx-cache", "--ctx-cache-dir=from-flag", *how)
    assert len(project.traces("from-flag")) == 2
    result.stdout.fnmatch_lines(["cache*auto, from-flag"])


def test_cache_dir_alone_uses_no_cache(project: Project) -> None:
    """Naming a folder does not turn the cache on."""
    project.run("--ctx-cache-dir=answers").stdout.fnmatch_lines(["cache*off*"])
    assert not (project.path / "answers").exists()
