"""Plugins and options that change how tests are run, and nothing of what a run says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project, Run

XDIST = ("xdist",)
RANDOMLY = ("randomly",)

SAME: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "xdist": (XDIST, ("-n4",)),
    "xdist-loadfile": (XDIST, ("-n2", "--dist=loadfile")),
    "xdist-loadgroup": (XDIST, ("-n2", "--dist=loadgroup")),
    "xdist-worksteal": (XDIST, ("-n2", "--dist=worksteal")),
    "randomly-1": (RANDOMLY, ("--randomly-seed=1",)),
    "randomly-2": (RANDOMLY, ("--randomly-seed=2",)),
    "randomly-xdist": ((*RANDOMLY, *XDIST), ("--randomly-seed=3", "-n2")),
    "timeout": (("timeout",), ("--timeout=60",)),
    "asyncio-anyio": (("asyncio", "anyio"), ("-o", "asyncio_default_fixture_loop_scope=function")),
    "asyncio-auto": (("asyncio",), ("--asyncio-mode=auto",)),
    "cov": (("pytest_cov",), ("--cov=agent", "--cov=suite", "--cov-report=")),
    "cov-xdist": (("pytest_cov", "xdist"), ("--cov=agent", "--cov=suite", "--cov-report=", "-n2")),
    "syrupy-inline-snapshot": (("syrupy", "inline_snapshot"), ()),
    "no-cacheprovider": ((), ("-p", "no:cacheprovider")),
    "import-mode-importlib": ((), ("--import-mode=importlib",)),
    "import-mode-prepend": ((), ("--import-mode=prepend",)),
    "import-mode-append": ((), ("--import-mode=append",)),
    "idle": (("xdist", "rerunfailures", "repeat", "timeout", "pytest_cov"), ()),
    "output": ((), ("-q", "--tb=short", "-ra", "--color=no", "--basetemp=tmp", "--durations=3")),
    "strict": ((), ("--strict-markers", "--strict-config", "-W", "error", "--assert=plain", "--maxfail=3")),
    "doctest-glob": ((), ("--doctest-glob=*.md",)),
}


def test_plain_run_is_what_it_should_be(plain: tuple[Run, Run]) -> None:
    """The run that all others are held against has each outcome, asks each question once, and then nobody."""
    cold, warm = plain
    assert cold.status == warm.status == 1
    questions = ["customers?", "größe?", "hello", "orders?", "refunds?", "returns?", "returns?", "stock?"]
    assert (cold.calls, warm.calls) == (sorted(questions), [])
    assert cold.outcomes == warm.outcomes
    assert sorted(outcome for (outcome,) in cold.outcomes.values()) == [
        *["failed"] * 2,
        *["passed"] * 9,
        "skipped",
        "xfailed",
    ]
    assert cold.line("cases") == "8: 4 passed, 2 failed, 1 failed as expected, 1 skipped"
    assert (cold.line("answers"), warm.line("answers")) == ("0 hit, 7 miss", "7 hit, 0 miss")
    assert (cold.line("snapshots"), warm.line("snapshots")) == ("5 written", "5 matched")
    assert cold.snapshots == warm.snapshots
    assert len(cold.snapshots) == 6
    assert isinstance(cold.report, dict)
    assert len(cold.report["cases"]) == 8


@pytest.mark.parametrize("name", SAME)
def test_run_beside_others_is_the_plain_run(project: Project, plain: tuple[Run, Run], name: str) -> None:
    """Status, outcomes, summary, report, snapshots and calls are those of a plain run, cold and warm."""
    plugins, args = SAME[name]
    cold, warm = project.run_twice(*args, plugins=plugins)
    assert cold.observed() == plain[0].observed(), cold.output
    assert warm.observed() == plain[1].observed(), warm.output


def test_all_that_is_installed_at_once(project: Project, plain: tuple[Run, Run]) -> None:
    """With every plugin of this environment loaded, on two workers, a run is the plain run."""
    flags = ("-n2", "--reruns=0", "--timeout=60", "--cov=agent", "--cov-report=")
    cold, warm = project.run_twice(*flags, autoload=True)
    assert cold.observed() == plain[0].observed(), cold.output
    assert warm.observed() == plain[1].observed(), warm.output
