"""``--ctx-max-calls`` and ``--ctx-max-cost``: a run stops before the call that it may not make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project

N_CASES = 12


@pytest.fixture
def many(project: Project) -> Project:
    """The project with twelve cases whose answers cost 0.1 USD each."""
    cases = "".join(
        f"  - {{id: c{n:02}, question: 'q{n:02}', match: scalar, expected: {{rows: [[1]]}}}}\n"
        for n in range(N_CASES)
    )
    project.write("golden.yaml", f"cases:\n{cases}")
    project.answer({f"q{n:02}": {"rows": [[1]]} for n in range(N_CASES)})
    project.edit("conftest.py", "import pytest\n", "import pytest\nfrom pytest_ctxfp import AgentResult\n")
    project.edit("conftest.py", "return answers[question]", "return AgentResult(answers[question], cost=0.1)")
    return project


def log_builds(project: Project) -> None:
    """Let the project note each time its agent is built."""
    project.edit(
        "conftest.py",
        "def ctx_agent():\n",
        "def ctx_agent():\n    with open(HERE / 'built.txt', 'a') as log:\n        log.write('x')\n",
    )


@pytest.mark.parametrize("workers", [[], ["-n2"], ["-n4"], ["-p", "no:xdist"]], ids="".join)
def test_calls_are_exact(many: Project, workers: list[str]) -> None:
    """Exactly N calls are made, by all workers together; the others skip, their agent isn't built, nothing
    of them is stored, and the summary says which they are. The next run asks only those.
    """
    log_builds(many)
    result = many.run("--ctx-cache", "--ctx-max-calls=5", "-rs", *workers)
    result.assert_outcomes(passed=5, skipped=7)
    assert len(many.calls()) == 5
    assert len(many.traces()) == 5
    assert (many.path / "built.txt").read_text() == "xxxxx"
    result.stdout.fnmatch_lines(
        [
            "cases*12: 5 passed, 0 failed, 7 skipped",
            "not asked*7 --ctx-max-calls=5 is reached: c*",
            "cost*in 5 calls*",
            "SKIPPED*golden.yaml*not asked: --ctx-max-calls=5 is reached",
        ]
    )
    many.run("--ctx-cache", "--ctx-max-calls=7", *workers).assert_outcomes(passed=12)
    assert len(many.calls()) == 7


def test_no_call_at_all(many: Project) -> None:
    """``--ctx-max-calls=0`` asks nobody: hits pass, all else skips."""
    many.run("--ctx-cache", "--ctx-max-calls=1").assert_outcomes(passed=1, skipped=11)
    many.calls()
    many.run("--ctx-cache", "--ctx-max-calls=0").assert_outcomes(passed=1, skipped=11)
    assert many.calls() == []


def test_limit_holds_without_the_cache(many: Project, how: list[str]) -> None:
    """Calls are counted whether their answers are stored or not."""
    many.run("--ctx-max-calls=3", *how).assert_outcomes(passed=3, skipped=9)
    assert len(many.calls()) == 3


@pytest.mark.parametrize(("workers", "in_flight"), [([], 0), (["-n2"], 1), (["-n4"], 3)])
def test_cost_overshoots_by_the_calls_in_flight_at_most(
    many: Project, workers: list[str], in_flight: int
) -> None:
    """Once calls have cost the limit, none is begun: three of 0.1 USD make 0.3, not a little less."""
    result = many.run("--ctx-cache", "--ctx-max-cost=0.3", *workers)
    n_calls = len(many.calls())
    assert 3 <= n_calls <= 3 + in_flight
    result.assert_outcomes(passed=n_calls, skipped=N_CASES - n_calls)
    result.stdout.fnmatch_lines([f"not asked*{N_CASES - n_calls} --ctx-max-cost=0.3 is reached: *"])


def test_unknown_cost_stops_the_run(many: Project, how: list[str]) -> None:
    """A call of unknown cost is the last one under ``--ctx-max-cost``, but for those in flight."""
    many.edit("conftest.py", "AgentResult(answers[question], cost=0.1)", "answers[question]")
    result = many.run("--ctx-cache", "--ctx-max-cost=100", *how)
    assert 1 <= len(many.calls()) <= (2 if "-n2" in how else 1)
    result.stdout.fnmatch_lines(["not asked*--ctx-max-cost=100 can't be kept, since what an earlier call*"])


def test_failed_call_has_an_unknown_cost(many: Project) -> None:
    """An agent that raised may have cost anything."""
    many.edit(
        "conftest.py",
        "        return AgentResult",
        "        raise OSError('gone')\n        return AgentResult",
    )
    many.run("--ctx-cache", "--ctx-max-cost=100").assert_outcomes(errors=1, skipped=11)
    assert len(many.calls()) == 1
    many.run("--ctx-cache", "--ctx-max-calls=4").assert_outcomes(errors=4, skipped=8)


def test_agent_that_cant_be_built_is_no_call(many: Project) -> None:
    """A call that was never made takes nothing from what is left."""
    many.edit("conftest.py", "def ctx_agent():\n", "def ctx_agent():\n    raise OSError('no key')\n")
    many.run("--ctx-cache", "--ctx-max-calls=1").assert_outcomes(errors=12)


@pytest.mark.parametrize(
    "flag",
    [
        "--ctx-max-calls=-1",
        "--ctx-max-calls=1.5",
        "--ctx-max-calls=many",
        "--ctx-max-calls=",
        "--ctx-max-calls=²",
        "--ctx-max-calls=" + "9" * 5000,
        "--ctx-max-cost=-1",
        "--ctx-max-cost=nan",
        "--ctx-max-cost=1e999999",
        "--ctx-max-cost=free",
        "--ctx-max-cost=",
    ],
)
def test_bad_value_is_a_usage_error(many: Project, flag: str) -> None:
    """What is no number of calls, or no amount, ends the run with what to write instead."""
    result = many.run("--ctx-cache", flag)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{flag.partition('=')[0]}*write a*number*"])
    assert many.calls() == []


CONVERSATION = """
from pytest_ctxfp import AgentResult, cached_call
import pathlib


@cached_call(cost=0.1)
def ask(question):
    with open(pathlib.Path(__file__).parent / "calls.txt", "a") as log:
        log.write(question + "\\n")
    return question


def test_talk():
    for turn in ("one", "two", "three"):
        assert ask(turn) == turn
"""


def test_conversation_is_not_begun_where_its_calls_are_not_all_left(many: Project) -> None:
    """A miss that needs the turns before it made again counts them all before it makes the first."""
    many.write("golden.yaml", "cases: []\n")
    many.write("test_talk.py", CONVERSATION)
    many.run("--ctx-cache").assert_outcomes(passed=1)
    many.calls()
    many.edit("test_talk.py", '"three"', '"four"')
    before = {path.name: path.read_bytes() for path in many.traces()}
    result = many.run("--ctx-cache", "--ctx-max-calls=2", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*--ctx-max-calls=2 is reached, and this needs 3 calls"])
    assert many.calls() == []
    assert {path.name: path.read_bytes() for path in many.traces()} == before
    many.run("--ctx-cache", "--ctx-max-calls=3").assert_outcomes(passed=1)
    assert many.calls() == ["four", "one", "two"]
