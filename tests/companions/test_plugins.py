"""Plugins that run tests again, end them, or keep snapshots of their own: what differs, and what doesn't."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project, Run

PLAIN_AND_XDIST = pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])


@PLAIN_AND_XDIST
def test_reruns_ask_once(project: Project, plain: tuple[Run, Run], workers: tuple[str, ...]) -> None:
    """A failed case that runs again finds the answer of its first attempt: no further call, counted once."""
    cold, warm = project.run_twice("--reruns=1", *workers, plugins=["rerunfailures", "xdist"])
    for run, once in zip((cold, warm), plain, strict=True):
        assert run.outcomes == {
            test: ["rerun", *found] if found == ["failed"] else found for test, found in once.outcomes.items()
        }, run.output
        assert (run.status, run.calls, run.snapshots) == (once.status, once.calls, once.snapshots)
        assert run.line("cases") == once.line("cases")
        assert run.line("snapshots") == once.line("snapshots")
        assert run.line("calls") == once.line("calls")
    assert cold.line("answers") == "2 hit, 5 miss"  # the last attempts of the two that failed
    assert cold.line("cost").startswith("spent an unknown amount in 8 calls")
    assert warm.report == plain[1].report


FAILING_FIRST = """cases:
  - {id: a, question: "refunds?", match: scalar, expected: {rows: [[3]]}}
  - {id: b, question: "b", match: scalar, expected: {rows: [[1]]}}
  - {id: c, question: "c", match: scalar, expected: {rows: [[1]]}}
"""


@PLAIN_AND_XDIST
def test_maxfail_stops_and_what_ran_is_kept(project: Project, workers: tuple[str, ...]) -> None:
    """A stopped run counts the cases that ran, keeps their answers, and its report says it isn't complete."""
    project.write({"suite/golden.yaml": FAILING_FIRST + "".join(_more_cases(20))})
    flags = ("suite/golden.yaml", "--maxfail=1", *workers)
    cold, warm = project.run_twice(*flags, plugins=["xdist"])
    assert cold.status == warm.status == (2 if workers else 1), cold.output
    assert len(cold.calls) < 23
    assert len(cold.calls) >= 1
    assert cold.line("cases").startswith(f"{len(cold.outcomes)}: ")
    assert isinstance(cold.report, dict)
    assert cold.report["complete"] is False
    full = project.run("suite/golden.yaml", "--ctx-cache")
    assert len(cold.calls) + len(warm.calls) + len(full.calls) == 23


def _more_cases(n: int) -> list[str]:
    return [f"  - {{id: d{i}, question: d{i}, match: scalar, expected: {{rows: [[1]]}}}}\n" for i in range(n)]


DYING = """
import os


def test_dies():
    os._exit(3)
"""


def test_worker_that_dies(project: Project, plain: tuple[Run, Run]) -> None:
    """A worker that dies costs its own test; other tests, answers and snapshots are those of a plain run."""
    project.write({"suite/test_dying.py": DYING})
    cold, warm = project.run_twice("-n2", plugins=["xdist"])
    for run, once in zip((cold, warm), plain, strict=True):
        assert run.outcomes == {**once.outcomes, "test_dying.py::test_dies": ["failed"]}, run.output
        assert (run.status, run.calls) == (1, once.calls)
        assert run.snapshots == once.snapshots
        for label in ("cases", "answers", "calls", "snapshots"):
            assert run.line(label) == once.line(label), run.output
    assert isinstance(cold.report, dict)
    assert isinstance(plain[0].report, dict)
    assert cold.report["cases"] == plain[0].report["cases"]


SLOW_AGENT = """
import pytest


@pytest.fixture
def ctx_agent():
    import time

    def ask(question):
        if question == "slow":
            time.sleep(30)
        return {"rows": [[1]]}

    return ask
"""

SLOW_GOLDEN = """cases:
  - {id: slow, question: "slow", timeout: 0.5, match: scalar, expected: {rows: [[1]]}}
  - {id: fast, question: "fast", timeout: 5, match: scalar, expected: {rows: [[1]]}}
"""


@PLAIN_AND_XDIST
def test_timeout_of_a_case_is_an_error(project: Project, workers: tuple[str, ...]) -> None:
    """With pytest-timeout a case's ``timeout`` ends a sync agent: an error, no wrong answer, not stored."""
    project.write({"suite/conftest.py": SLOW_AGENT, "suite/golden.yaml": SLOW_GOLDEN})
    run = project.run("suite/golden.yaml", *workers, "--ctx-cache", plugins=["timeout", "xdist"])
    assert run.outcomes == {"golden.yaml::fast": ["passed"], "golden.yaml::slow": ["error"]}, run.output
    assert run.line("cases") == "2: 1 passed, 0 failed, 1 error"
    assert "imeout" in run.output
    assert len(list((project.path / ".ctxfp/traces").glob("*.json"))) == 1


@PLAIN_AND_XDIST
def test_repeat_renames_tests(project: Project, plain: tuple[Run, Run], workers: tuple[str, ...]) -> None:
    """``--count=2`` runs Python tests twice under new names: one call for both where they run in turn, a
    snapshot for each name; golden items run once.
    """
    cold, warm = project.run_twice("--count=2", *workers, plugins=["repeat", "xdist"])
    golden = {test: found for test, found in plain[0].outcomes.items() if test.startswith("golden.yaml")}
    for run in (cold, warm):
        assert {k: v for k, v in run.outcomes.items() if k.startswith("golden.yaml")} == golden, run.output
        assert run.outcomes["test_traced.py::test_call[1-2]"] == ["passed"]
        assert run.outcomes["test_traced.py::test_call[2-2]"] == ["passed"]
        assert len(run.outcomes) == 6 + 2 * 7
    assert (cold.line("snapshots"), warm.line("snapshots")) == ("10 written", "10 matched")
    assert set(cold.calls) == set(plain[0].calls)
    assert warm.calls == []
    if not workers:
        assert cold.calls == plain[0].calls
    once = project.run("--ctx-cache", "--deselect=suite/test_contexts.py", *workers, plugins=["xdist"])
    assert once.calls == []


ASYNC_AGENT = """
import pytest


@pytest.fixture
def ctx_agent(ask_bot):
    async def ask(question):
        import asyncio

        await asyncio.sleep(0)
        return ask_bot(question)

    return ask
"""

ASYNC_TESTS = """
import pytest


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.asyncio
@pytest.mark.ctx_golden("golden_marked.yaml")
async def test_asyncio(ctx_case, ctx_trace):
    outcome = await ctx_trace(ctx_case)
    assert outcome.comparison.passed is (ctx_case.id == "stock")


@pytest.mark.anyio
@pytest.mark.ctx_golden("golden_marked.yaml")
async def test_anyio(ctx_case, ctx_trace, ctx_snapshot, ctx_assembler):
    outcome = await ctx_trace(ctx_case)
    assert outcome.comparison.passed is (ctx_case.id == "stock")
    ctx_snapshot.check(ctx_assembler("async"))


@pytest.mark.asyncio
async def test_call(ctx_trace, ask_bot):
    assert (await ctx_trace.call("hello", lambda: ask_bot("hello")))["rows"] == [[1]]
"""
LOOP_SCOPE = ("-o", "asyncio_default_fixture_loop_scope=function")


@pytest.mark.parametrize(("mode", "workers"), [("strict", ()), ("auto", ("-n2",))], ids=["strict", "auto"])
def test_asyncio_and_anyio_together(project: Project, workers: tuple[str, ...], mode: str) -> None:
    """An async agent answers golden items and async tests of both plugins, and then nobody is asked."""
    project.write({"suite/conftest.py": ASYNC_AGENT, "suite/test_traced.py": ASYNC_TESTS})
    flags = (*LOOP_SCOPE, f"--asyncio-mode={mode}", *workers)
    cold, warm = project.run_twice(*flags, plugins=["asyncio", "anyio", "xdist"])
    assert cold.outcomes == warm.outcomes, cold.output
    assert [test for test, found in cold.outcomes.items() if found == ["failed"]] == ["golden.yaml::refunds"]
    assert {found for (found,) in cold.outcomes.values()} == {"failed", "passed", "skipped", "xfailed"}
    assert set(cold.calls) >= {"stock?", "returns?", "hello", "orders?"}
    assert warm.calls == []
    assert (cold.line("snapshots"), warm.line("snapshots")) == ("7 written", "7 matched")


OTHER_SNAPSHOTS = """
from inline_snapshot import snapshot as inline


def test_ours(ctx_snapshot, ctx_assembler):
    ctx_snapshot.check(ctx_assembler("ours"))


def test_syrupy(snapshot, ctx_assembler):
    assert ctx_assembler("theirs") == snapshot


def test_inline(ctx_assembler):
    assert ctx_assembler("x").count("all") == inline()


def test_all(ctx_snapshot, snapshot, ctx_assembler):
    assert ctx_assembler("both") == ctx_snapshot
    assert ctx_assembler("both") == snapshot
    assert "b" == inline("b")
"""
OURS = {"suite/__ctxfp__/test_others.ctxfp"}
FLAGS = ("--ctx-snapshot-update", "--snapshot-update", "--inline-snapshot=create,fix")


@pytest.fixture
def others(project: Project) -> Project:
    """The project with tests that keep three kinds of snapshots."""
    return project.write({"suite/test_others.py": OTHER_SNAPSHOTS})


def _files_of(project: Project) -> dict[str, bytes]:
    """Return the files of all snapshots, also of the other plugins, without our texts."""
    found = [*project.path.rglob("*.ambr"), *project.path.rglob("test_*.py"), *project.path.rglob("*.ctxfp")]
    files = [path for path in found if path.is_file()]
    return {path.relative_to(project.path).as_posix(): path.read_bytes() for path in files}


def _changed(project: Project, *args: str) -> tuple[Run, set[str]]:
    """Return a run of the tests with snapshots, and the files that it changed."""
    before = _files_of(project)
    run = project.run("suite/test_others.py", *args, plugins=["syrupy", "inline_snapshot"])
    after = _files_of(project)
    return run, {name for name in {*before, *after} if before.get(name) != after.get(name)}


def _failed(run: Run) -> list[str]:
    return [test.partition("::")[2] for test, found in run.outcomes.items() if {"failed", "error"} & {*found}]


def test_flags_of_three_kinds_of_snapshots_write_their_own_files(others: Project) -> None:
    """Each plugin's flag stores its own and touches no other's files; what isn't stored stays red."""
    run, changed = _changed(others)
    assert (run.status, changed) == (1, set()), run.output
    assert {"test_ours", "test_syrupy", "test_all"} <= {*_failed(run)}

    run, changed = _changed(others, "--ctx-snapshot-create")
    assert (run.status, changed, run.line("snapshots")) == (1, OURS, "2 written"), run.output
    assert "test_ours" not in _failed(run)

    run, changed = _changed(others, "--snapshot-update")
    assert changed == {"suite/__snapshots__/test_others.ambr"}, run.output

    run, changed = _changed(others, "--inline-snapshot=create")
    assert changed == {"suite/test_others.py"}, run.output

    run, changed = _changed(others)
    assert (run.status, changed, run.line("snapshots")) == (0, set(), "2 matched"), run.output


def test_update_of_one_kind_of_snapshots_leaves_the_others_red(others: Project) -> None:
    """After a change of the context, each flag mends its own plugin's snapshots alone; all three mend all."""
    _changed(others, *FLAGS)
    run, changed = _changed(others)
    assert (run.status, changed) == (0, set()), run.output
    conftest = (others.path / "conftest.py").read_text(encoding="utf-8")
    others.write({"conftest.py": conftest.replace("- count all", "- count all of all")})
    run, changed = _changed(others)
    assert (run.status, changed, _failed(run)) == (
        1,
        set(),
        ["test_all", "test_inline", "test_ours", "test_syrupy"],
    ), run.output
    for flag, theirs in zip(FLAGS, (OURS, {"suite/__snapshots__/test_others.ambr"}), strict=False):
        run, changed = _changed(others, flag)
        assert changed == theirs, run.output
        assert run.status == 1
    run, changed = _changed(others, *FLAGS)
    assert "suite/test_others.py" in changed
    run, changed = _changed(others)
    assert (run.status, changed) == (0, set()), run.output


def test_coverage_sees_agent_and_tests(project: Project) -> None:
    """pytest-cov measures what golden items and tests run, with and without workers."""
    for workers in ((), ("-n2",)):
        flags = ("--ctx-refresh", "--cov=agent", "--cov-report=term", *workers)
        run = project.run(*flags, plugins=["pytest_cov", "xdist"])
        (line,) = [line for line in run.output.splitlines() if line.startswith("agent/bot.py")]
        assert line.split()[-1] == "100%", run.output
