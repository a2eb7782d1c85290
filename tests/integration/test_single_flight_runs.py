"""One call per key, however many workers and processes ask for it at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Project

WITHOUT = [flag for name in ("anyio", "hypothesispytest", "rerunfailures") for flag in ("-p", f"no:{name}")]
CONFTEST = """
import asyncio
import os
import pathlib
import time

import pytest
from pytest_ctxfp import AgentResult, GoldenCase, cached_scorer

HERE = pathlib.Path(__file__).parent


def log(name):
    with open(HERE / "calls.txt", "a") as file:
        file.write(f"{name}\\n")


def wait_for_the_others():
    # Every worker waits here until all have come: they do ask at the same time.
    (HERE / "arrived").mkdir(exist_ok=True)
    (HERE / "arrived" / str(os.getpid())).touch()
    end = time.monotonic() + 20
    while len(list((HERE / "arrived").iterdir())) < N_PROCESSES and time.monotonic() < end:
        time.sleep(0.005)


@pytest.fixture
def same_case():
    wait_for_the_others()
    return GoldenCase.from_dict({
        "id": "orders", "question": "How many orders?", "match": "scalar",
        "expected": {"columns": ["n"], "rows": [[99]]}})


@pytest.fixture
def ctx_agent():
    async def ask(question):
        log(question)
        await asyncio.sleep(SECONDS)
        return {"rows": [[99]]}

    return ask
"""


def write_suite(project: Project, tests: str, *, n_processes: int = 2, seconds: float = 0.4) -> None:
    """Write a suite whose workers meet before they ask."""
    text = CONFTEST.replace("N_PROCESSES", str(n_processes)).replace("SECONDS", str(seconds))
    project.write("conftest.py", text)
    project.write("test_same.py", tests)
    (project.path / "golden.yaml").unlink()


GOLDEN_TESTS = """
import pytest

@pytest.mark.parametrize("n", range(2))
def test_same(n, same_case, ctx_trace):
    ctx_trace(same_case).check()
"""
GOLDEN = """cases:
  - {id: orders, question: How many orders?, match: scalar, expected: {columns: [n], rows: [[99]]}}
"""
ASSEMBLER = """

@pytest.fixture
def ctx_assembler():
    def assemble(question, variant):
        wait_for_the_others()
        return f"## Rules\\n{question}\\n"

    return assemble
"""
ONE_TEST = GOLDEN_TESTS.replace("range(2)", "range(1)")
CALL_TESTS = """
import time
import pytest
from conftest import log, wait_for_the_others

@pytest.mark.parametrize("n", range(2))
def test_same(n, ctx_trace):
    def ask():
        log("call")
        time.sleep(0.4)
        return 1

    wait_for_the_others()
    assert ctx_trace.call("sum", ask, question="1?") == 1
"""
HELPER_TESTS = """
import time
import pytest
from conftest import log, wait_for_the_others
from pytest_ctxfp import cached_call

@cached_call
def ask(question):
    log("helper")
    time.sleep(0.4)
    return 1

@pytest.mark.parametrize("n", range(2))
def test_same(n):
    wait_for_the_others()
    assert ask("1?") == 1
"""


@pytest.mark.parametrize("tests", [GOLDEN_TESTS, CALL_TESTS, HELPER_TESTS], ids=["case", "call", "helper"])
def test_workers_make_one_call(project: Project, tests: str) -> None:
    """Workers that want the same answer at once make one call; the others find its answer."""
    n = 4 if tests == GOLDEN_TESTS else 2
    write_suite(project, tests.replace("range(2)", f"range({n})"), n_processes=n)
    result = project.run("--ctx-cache", f"-n{n}")
    result.assert_outcomes(passed=n)
    result.stdout.fnmatch_lines([f"*{n - 1} hit, 1 miss*", "cost*in 1 call,*"])
    assert len(project.calls()) == 1
    assert len(project.traces()) == 1
    assert list((project.path / ".ctxfp/traces/.locks").iterdir()) == []


def test_a_waiting_worker_claims_no_call(project: Project) -> None:
    """With a limit of one call the workers that waited are not skipped: they needed none."""
    write_suite(project, GOLDEN_TESTS)
    result = project.run("--ctx-cache", "-n2", "--ctx-max-calls=1")
    result.assert_outcomes(passed=2)
    assert len(project.calls()) == 1


def test_variants_of_equal_contexts_make_one_call(project: Project) -> None:
    """Two workers that ask a case for two variants whose contexts are equal make one call."""
    write_suite(project, "")
    (project.path / "test_same.py").unlink()
    project.write("golden.yaml", GOLDEN)
    text = (project.path / "conftest.py").read_text()
    project.write("conftest.py", text + ASSEMBLER)
    result = project.run("--ctx-cache", "--ctx-variants=a,b", "-n2")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*1 hit, 1 miss*", "variants*same context in 1 case: one answer*"])
    assert project.calls() == ["How many orders?"]


def test_without_filelock_workers_ask_side_by_side(project: Project) -> None:
    """Where filelock is not installed every worker asks, and nothing else is different."""
    write_suite(project, GOLDEN_TESTS)
    text = (project.path / "conftest.py").read_text()
    project.write("conftest.py", f"import sys\n\nsys.modules['filelock'] = None\n{text}")
    result = project.run("--ctx-cache", "-n2")
    result.assert_outcomes(passed=2)
    assert len(project.calls()) == 2
    assert len(project.traces()) == 1
    assert not (project.path / ".ctxfp/traces/.locks").exists()


def test_a_refresh_asks_for_each(project: Project) -> None:
    """A refresh wants every answer anew, also where another worker asks the same: it takes no lock."""
    write_suite(project, GOLDEN_TESTS, seconds=0.05)
    project.run("--ctx-refresh", "-n2").assert_outcomes(passed=2)
    assert len(project.calls()) == 2
    assert not (project.path / ".ctxfp/traces/.locks").exists()


def test_an_audit_takes_no_lock(project: Project) -> None:
    """What is asked again to be compared waits for nobody who asks the same."""
    project.run("--ctx-cache").assert_outcomes(passed=2)
    (project.path / ".ctxfp/traces/.locks").rmdir()
    project.run("--ctx-cache", "--ctx-audit=2").assert_outcomes(passed=2)
    assert len(project.calls()) == 4
    assert not (project.path / ".ctxfp/traces/.locks").exists()


def test_a_call_that_fails_is_made_by_the_next(project: Project) -> None:
    """An agent's error is nobody else's answer: each worker asks in its turn."""
    write_suite(project, GOLDEN_TESTS, seconds=0.05)
    project.edit("conftest.py", 'return {"rows": [[99]]}', 'raise ValueError("busy")')
    project.run("--ctx-cache", "-n2").assert_outcomes(failed=2)
    assert len(project.calls()) == 2


def test_tasks_of_one_test_make_one_call(project: Project) -> None:
    """An async test that asks for the same case many times at once makes one call and doesn't hang."""
    tests = """
import asyncio
import pytest

@pytest.mark.asyncio
async def test_same(same_case, ctx_trace):
    async def resolve():
        return await ctx_trace(same_case)
    outcomes = await asyncio.wait_for(asyncio.gather(*(resolve() for _ in range(5))), 30)
    assert sorted(outcome.hit for outcome in outcomes) == [False, True, True, True, True]
"""
    write_suite(project, tests, n_processes=1)
    result = project.pytester.runpytest_subprocess("--ctx-cache", *WITHOUT)
    result.assert_outcomes(passed=1)
    assert len(project.calls()) == 1


def test_a_cached_scorer_is_called_once(project: Project) -> None:
    """A verdict that several workers want is paid for once."""
    project.write(
        "conftest.py",
        CONFTEST.replace("N_PROCESSES", "2").replace("SECONDS", "0")
        + """
@pytest.fixture
def ctx_scorers():
    @cached_scorer(version="1", model="judge")
    def polite(answer):
        log("judge")
        time.sleep(0.4)
        return True

    return {"polite": polite}


@pytest.fixture
def judged_case(same_case):
    return GoldenCase.from_dict({
        "id": "q", "question": "How?", "result_kind": "text", "match": "polite", "expected": "x"})
""",
    )
    project.edit("conftest.py", 'return {"rows": [[99]]}', 'return "please"')
    (project.path / "golden.yaml").unlink()
    project.write("test_same.py", GOLDEN_TESTS.replace("same_case", "judged_case"))
    result = project.run("--ctx-cache", "-n2")
    result.assert_outcomes(passed=2)
    assert project.calls() == ["How?", "judge"]


def test_two_runs_at_once_and_a_killed_holder(project: Project) -> None:
    """Of two plain runs the second waits for the first; when that is killed, it asks at once itself."""
    write_suite(project, ONE_TEST, n_processes=1, seconds=60)
    first = start(project.path)
    wait_for_calls(project.path, 1)
    text = (project.path / "conftest.py").read_text().replace("asyncio.sleep(60)", "asyncio.sleep(0)")
    (project.path / "conftest.py").write_text(text)
    second = start(project.path)
    time.sleep(1.5)
    assert second.poll() is None
    assert len((project.path / "calls.txt").read_text().splitlines()) == 1
    first.send_signal(signal.SIGKILL)
    first.communicate()
    output, _ = second.communicate(timeout=30)
    assert second.returncode == 0, output
    assert len(project.calls()) == 2


def test_a_hanging_holder_is_waited_for_as_long_as_the_case_may_take(project: Project) -> None:
    """A run waits for another no longer than the case's timeout, then asks itself and says so."""
    write_suite(project, ONE_TEST, n_processes=1, seconds=60)
    first = start(project.path)
    wait_for_calls(project.path, 1)
    project.edit("conftest.py", "asyncio.sleep(60)", "asyncio.sleep(0)")
    project.edit("conftest.py", '"match": "scalar",', '"match": "scalar", "timeout": 1,')
    try:
        result = project.run("--ctx-cache")
    finally:
        first.kill()
        first.communicate()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*another process has been asking the same for 1 s: it was not*"])


def start(folder: Path) -> subprocess.Popen[str]:
    """Start a plain run."""
    command = [sys.executable, "-m", "pytest", "--ctx-cache", "-q", *WITHOUT]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)


def wait_for_calls(folder: Path, n_calls: int) -> None:
    """Wait until so many calls were begun."""
    log, end = folder / "calls.txt", time.monotonic() + 30
    while not (log.exists() and len(log.read_text().splitlines()) >= n_calls):
        assert time.monotonic() < end
        time.sleep(0.01)
