"""``--ctx-baseline``: a run held against an earlier one; noise is no news, and a real regression is."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from .conftest import CaseSuite

OK, RED, USAGE = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.USAGE_ERROR
GREEN_LINE, RED_LINE = "gate*GREEN", "gate*RED: *"


def test_one_flip_under_the_same_key_is_noise(suite: CaseSuite) -> None:
    """A case that is asked again under its key and fails once is noise: listed, and green."""
    suite.make(6)
    suite.record().assert_outcomes(passed=6)
    suite.flip([2])
    result = suite.hold("--no-cache", "-rx")
    result.assert_outcomes(passed=5, xfailed=1)
    assert result.ret == OK
    assert len(suite.calls()) == 6
    result.stdout.fnmatch_lines(
        [
            "XFAIL*golden.yaml::c02*NOISE: it passed in the baseline, under the same key",
        ]
    )
    result.stdout.fnmatch_lines(
        [
            GREEN_LINE,
            "evidence*6 of 6 common cases (6 asked in this run)*",
            "flips*1 pass -> fail, 0 fail -> pass*",
            "classes*6 same key",
            "NOISE*c02: consistent with chance (on the same key)",
        ]
    )


def test_many_flips_under_the_same_key_are_drift(suite: CaseSuite) -> None:
    """20 of 60 flips under the same keys are drift: red, with the list of what is not hashed."""
    suite.make(60)
    suite.record().assert_outcomes(passed=60)
    suite.flip(range(20))
    result = suite.hold("--no-cache")
    result.assert_outcomes(passed=40, xfailed=20)
    assert result.ret == RED
    result.stdout.fnmatch_lines(
        [
            "gate*RED: 20 cases flipped to fail under the same key: drift (p = 9.5e-07)*",
            "DRIFT *c00: flipped on the same key",
            "note*consistent with a change in what is not hashed:",
            "*what the provider serves*",
            "*sampling settings*",
            "*databases*",
            "*environment variables outside of ctx_agent_env",
            "*the clock and the network",
        ]
    )


def test_worse_rule_is_a_regression(suite: CaseSuite, how: list[str]) -> None:
    """A rule that makes cases worse is asked about four times more, for flips only: red, with its layer."""
    suite.make(8, wrong=[7])
    suite.record(*how).assert_outcomes(passed=7, failed=1)
    suite.edit_rule()
    suite.flip([1, 3])
    result = suite.hold(*how)
    result.assert_outcomes(passed=5, failed=2, xfailed=1)
    assert result.ret == RED
    assert len(suite.calls()) == 8 + 2 * 4
    result.stdout.fnmatch_lines(
        [
            "gate*RED: 2 cases worse under a changed key: c01, c03",
            "evidence*8 of 8 common cases*",
            "classes*8 context",
            "layers*Business Rules*8 cases: 2 pass -> fail (2 regressions), 0 fail -> pass",
            "*odd*4 cases: 2 pass -> fail (2 regressions)*Holm*",
            "REGRESSION c01: consistent with context: Business Rules (5 of 5 samples failed)",
            "*c03: consistent with context: Business Rules (5 of 5 samples failed)",
            "KNOWN FAILING c07: *",
        ]
    )


def test_one_unlucky_sample_is_noise(suite: CaseSuite) -> None:
    """A flip under a changed key that further answers don't confirm is noise: green, and not a failure."""
    suite.make(6)
    suite.record().assert_outcomes(passed=6)
    suite.edit_rule()
    suite.flip([1], 0, 1, 1, 0, 1)
    result = suite.hold("-rx")
    result.assert_outcomes(passed=5, xfailed=1)
    assert result.ret == OK
    assert len(suite.calls()) == 6 + 4
    result.stdout.fnmatch_lines(["XFAIL*c01*NOISE: 2 of 5 samples failed, it passed in the baseline"])
    result.stdout.fnmatch_lines(
        [GREEN_LINE, "NOISE*c01: consistent with chance (2 of 5 samples failed; context: Business Rules)"]
    )


def recalibrate(suite: CaseSuite, number: int, expected: object) -> None:
    """Let a case expect something else."""
    tag = "odd" if number % 2 else "even"
    start = f"id: c{number:02}, question: c{number:02}, tags: [{tag}], match: scalar, expected: "
    suite.edit("golden.yaml", f"{start}{{rows: [[1]]}}", f"{start}{{rows: [[{expected}]]}}")


@pytest.mark.parametrize("has_traces", [True, False], ids=["traces", "no-traces"])
def test_recalibrated_golden_is_no_regression(suite: CaseSuite, has_traces: bool) -> None:
    """A case whose expectation changed is judged by what the baseline's own answer is worth today, whether
    its trace is stored or only the report has it: failing then as now, it is known to fail.
    """
    suite.make(4, wrong=[3])
    suite.record().assert_outcomes(passed=3, failed=1)
    recalibrate(suite, 1, 5)
    recalibrate(suite, 3, 0)
    if not has_traces:
        shutil.rmtree(suite.path / ".ctxfp")
    result = suite.hold()
    result.assert_outcomes(passed=3, xfailed=1)
    assert result.ret == OK
    assert len(suite.calls()) == (0 if has_traces else 4)
    result.stdout.fnmatch_lines(
        [
            GREEN_LINE,
            "flips*0 pass -> fail, 0 fail -> pass*",
            "classes*2 expectation, 2 same key",
            "KNOWN FAILING c01: * (the baseline's answer fails too, re-scored)",
            "*2 cases of the baseline re-scored under today's expectation, verdict changed: c01, c03",
        ]
    )


def test_recalibrated_golden_over_a_changed_context(suite: CaseSuite) -> None:
    """Both changed: the baseline's answer is re-scored, and a flip since then counts."""
    suite.make(4, wrong=[3])
    suite.record()
    recalibrate(suite, 3, 0)
    suite.edit_rule()
    suite.flip([3], 7)
    result = suite.hold()
    result.assert_outcomes(passed=3, failed=1)
    assert result.ret == RED
    result.stdout.fnmatch_lines(
        ["gate*RED: 1 case worse under a changed key: c03", "REGRESSION c03:*Business Rules; expectation*"]
    )


@pytest.mark.parametrize(("contains", "ret"), [("end", OK), ("other", RED)])
def test_answer_that_was_cut_is_unknown(suite: CaseSuite, contains: str, ret: int) -> None:
    """An answer beyond 64 kB is not in the report: without its trace nobody knows what it is worth today; a
    case that fails then is red, one that passes is noted.
    """
    suite.make(2)
    golden = "cases:\n  - {id: c00, question: c00, result_kind: text, match: contains, expected: start}\n"
    suite.write("golden.yaml", golden)
    suite.give({"c00": ["start" + "x" * 70_000 + "end"]})
    suite.record().assert_outcomes(passed=1)
    suite.write("golden.yaml", golden.replace("start}", f"{contains}}}"))
    shutil.rmtree(suite.path / ".ctxfp")
    result = suite.hold()
    assert result.ret == ret
    result.stdout.fnmatch_lines(
        [
            GREEN_LINE if ret == OK else "gate*RED: *c00",
            "*1 case judged otherwise now, and the baseline's answers can't be re-scored: c00",
        ]
    )


def test_answer_that_was_cut_is_known_by_its_trace(suite: CaseSuite) -> None:
    """The same with the trace at hand: the stored answer is scored anew, and stands for both runs."""
    suite.make(1)
    golden = "cases:\n  - {id: c00, question: c00, result_kind: text, match: contains, expected: start}\n"
    suite.write("golden.yaml", golden)
    suite.give({"c00": ["start" + "x" * 70_000 + "end"]})
    suite.record().assert_outcomes(passed=1)
    suite.write("golden.yaml", golden.replace("start}", "other}"))
    result = suite.hold()
    result.assert_outcomes(xfailed=1)
    assert result.ret == OK
    result.stdout.fnmatch_lines([GREEN_LINE, "KNOWN FAILING c00: *re-scored)"])


def test_edited_agent_is_named(suite: CaseSuite) -> None:
    """An edited file of the agent is the class ``agent``, and named."""
    suite.make(3)
    suite.record()
    suite.edit("agent/bot.py", "import json\n", "import json  # parses\n")
    suite.write("agent/prompt.md", "Be brief.")
    suite.flip([0])
    result = suite.hold()
    result.assert_outcomes(passed=2, failed=1)
    assert result.ret == RED
    result.stdout.fnmatch_lines(
        ["classes*3 agent", "REGRESSION c00:*agent: agent/bot.py, agent/prompt.md (new) (5 of 5*"]
    )


SCORER = """

@pytest.fixture
def ctx_scorers():
    from pytest_ctxfp import cached_scorer

    @cached_scorer(version="1")
    def near(answer, expected):
        return answer["rows"][0][0] >= 1

    return {"near": near}
"""


def test_raised_scorer_is_named(suite: CaseSuite) -> None:
    """A scorer's new version judges the stored answer: its class is ``scorer``, and what it says stands for
    both runs.
    """
    suite.make(3)
    suite.edit("conftest.py", "HERE =", SCORER.lstrip("\n") + "\n\nHERE =")
    golden = (suite.path / "golden.yaml").read_text(encoding="utf-8")
    suite.write("golden.yaml", golden.replace("match: scalar", "match: near, result_kind: json"))
    suite.record().assert_outcomes(passed=3)
    suite.edit("conftest.py", 'version="1"', 'version="2"')
    suite.edit("conftest.py", ">= 1", ">= 2")
    result = suite.hold()
    assert suite.calls() == []
    result.assert_outcomes(xfailed=3)
    assert result.ret == OK
    result.stdout.fnmatch_lines(["classes*3 scorer", "KNOWN FAILING c00: *"])


def test_edited_scorer_is_not_called_chance(suite: CaseSuite) -> None:
    """A stored answer that a scorer's edited code judges otherwise is no chance: the scoring changed."""
    suite.make(8)
    scorer = SCORER.replace('    @cached_scorer(version="1")\n', "")
    suite.edit("conftest.py", "HERE =", scorer.lstrip("\n") + "\n\nHERE =")
    golden = (suite.path / "golden.yaml").read_text(encoding="utf-8")
    suite.write("golden.yaml", golden.replace("match: scalar", "match: near, result_kind: json"))
    suite.record().assert_outcomes(passed=8)
    suite.edit("conftest.py", ">= 1", ">= 2")
    result = suite.hold("-k", "c00")
    assert suite.calls() == []
    assert result.ret == OK
    result.stdout.fnmatch_lines(
        [
            "NOISE*c00: the same answer, judged otherwise: consistent with a change in the scoring",
            "*the same answer got another verdict: the scoring changed (a database, a scorer's code)",
        ]
    )
    result = suite.hold()
    assert result.ret == RED
    result.stdout.fnmatch_lines(["gate*RED: 8 cases flipped to fail under the same key: drift*"])


def test_known_failing_cases_are_green(suite: CaseSuite) -> None:
    """Ten cases that fail in both runs are listed and leave the run green; one that passes now is fixed."""
    suite.make(14, wrong=range(10))
    assert suite.record().ret == RED
    result = suite.hold("-rx")
    result.assert_outcomes(passed=4, xfailed=10)
    assert result.ret == OK
    result.stdout.fnmatch_lines(["XFAIL*golden.yaml::c00*KNOWN FAILING in the baseline"])
    result.stdout.fnmatch_lines([GREEN_LINE, "KNOWN FAILING c00: *"])
    suite.edit_rule()
    suite.flip([4], 1)
    suite.calls()
    result = suite.hold()
    result.assert_outcomes(passed=5, xfailed=9)
    assert result.ret == OK
    assert len(suite.calls()) == 14
    result.stdout.fnmatch_lines([GREEN_LINE, "FIXED*c04: consistent with context: Business Rules"])


def drop_case(suite: CaseSuite, number: int) -> None:
    """Take a case out of the golden file."""
    lines = (suite.path / "golden.yaml").read_text(encoding="utf-8").splitlines(keepends=True)
    suite.write("golden.yaml", "".join(line for line in lines if f"id: c{number:02}," not in line))


@pytest.mark.parametrize("paths", [[], ["golden.yaml"], ["."]], ids=["no-path", "file", "folder"])
def test_case_gone_is_red(suite: CaseSuite, paths: list[str]) -> None:
    """A case that a full run lacks is gone: red, though every test passes."""
    suite.make(3)
    suite.record()
    drop_case(suite, 1)
    result = suite.hold(*paths)
    result.assert_outcomes(passed=2)
    assert result.ret == RED
    result.stdout.fnmatch_lines(
        ["gate*RED: 1 case gone from a full run: c01", "GONE*c01: in the baseline, not in this run"]
    )


@pytest.mark.parametrize("folder", ["", "sub/"], ids=["root", "subfolder"])
def test_golden_file_gone_is_red(suite: CaseSuite, folder: str) -> None:
    """A golden file that is deleted, or whose folder is, takes its cases with it: red."""
    suite.make(2)
    suite.write(
        f"{folder}golden_more.yaml",
        "cases:\n  - {id: m, question: m, match: scalar, expected: {rows: [[1]]}}\n",
    )
    suite.give({"m": [1]})
    suite.record().assert_outcomes(passed=3)
    (suite.path / f"{folder}golden_more.yaml").unlink()
    if folder:
        (suite.path / folder).rmdir()
    result = suite.hold()
    result.assert_outcomes(passed=2)
    assert result.ret == RED
    result.stdout.fnmatch_lines(["gate*RED: 1 case gone from a full run: m"])


def test_all_golden_files_gone_is_red(suite: CaseSuite) -> None:
    """Where no case is left at all, other tests that pass don't make the run green."""
    suite.make(2)
    suite.record()
    (suite.path / "golden.yaml").unlink()
    suite.write("test_other.py", "def test_other(): pass\n")
    result = suite.hold()
    result.assert_outcomes(passed=1)
    assert result.ret == RED
    result.stdout.fnmatch_lines([RED_LINE])


@pytest.mark.parametrize(
    ("arguments", "n_run"),
    [
        (["--ctx-tags=odd"], 3),
        (["--ctx-subset=2"], 2),
        (["-k", "c01 or c02"], 2),
        (["golden.yaml::c01"], 1),
        (["golden_more.yaml"], 1),
        (["--deselect=golden.yaml::c05"], 6),
        (["--ignore=golden_more.yaml"], 6),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, list) else "",
)
@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["plain", "xdist"])
def test_subset_is_not_judged_by_what_it_lacks(
    suite: CaseSuite, workers: list[str], arguments: list[str], n_run: int
) -> None:
    """A run of some cases is green whatever it lacks, and says that it judged only those."""
    suite.make(6)
    suite.write(
        "golden_more.yaml", "cases:\n  - {id: m, question: m, match: scalar, expected: {rows: [[1]]}}\n"
    )
    suite.give({"m": [1]})
    suite.record().assert_outcomes(passed=7)
    result = suite.hold(*arguments, *workers)
    assert result.parseoutcomes()["passed"] == n_run
    assert result.ret == OK
    result.stdout.fnmatch_lines([GREEN_LINE, "*case* of the baseline not in this run, not judged: *"])
    result.stdout.no_fnmatch_line("GONE*")


def test_another_model_label(suite: CaseSuite) -> None:
    """A changed ``ctx_model`` makes no new cases: their class is ``model``."""
    suite.make(3)
    suite.record()
    suite.edit("pytest.ini", "stub-1", "stub-2")
    suite.flip([2])
    result = suite.hold()
    result.assert_outcomes(passed=2, failed=1)
    assert result.ret == RED
    result.stdout.fnmatch_lines(["classes*3 model", "REGRESSION c02:*model: stub-1 -> stub-2 (5 of 5*"])


def test_no_common_case_is_red(suite: CaseSuite) -> None:
    """Nothing was compared: that is not green."""
    suite.make(2)
    suite.record()
    suite.write("golden.yaml", "cases:\n  - {id: m, question: m, match: scalar, expected: {rows: [[1]]}}\n")
    suite.give({"m": [1]})
    result = suite.hold("-k", "m")
    result.assert_outcomes(passed=1)
    assert result.ret == RED
    result.stdout.fnmatch_lines(["gate*RED: no common case*"])


def test_replayed_run_is_no_evidence(suite: CaseSuite) -> None:
    """Where every answer is the baseline's own, the gate is green and says that it rests on nothing."""
    suite.make(3)
    suite.record()
    result = suite.hold()
    result.assert_outcomes(passed=3)
    assert result.ret == OK
    assert suite.calls() == []
    result.stdout.fnmatch_lines(
        [
            GREEN_LINE,
            "evidence*0 of 3 common cases (0 asked in this run); so few can show no drop at all",
            "note*0 cases are evidence: every answer is the baseline's own, replayed",
        ]
    )


@pytest.mark.parametrize(("answer", "ret"), [(1, OK), (0, RED)], ids=["passing", "failing"])
def test_new_case(suite: CaseSuite, answer: int, ret: int) -> None:
    """A new case must pass: it is asked once, and not confirmed."""
    suite.make(2)
    suite.record()
    suite.make(3, wrong=[] if answer else [2])
    result = suite.hold()
    result.assert_outcomes(passed=2 + answer, failed=1 - answer)
    assert result.ret == ret
    assert suite.calls() == ["c02#0"]
    result.stdout.fnmatch_lines([GREEN_LINE if ret == OK else "gate*RED: 1 case new and failing: c02"])


def test_error_is_red(suite: CaseSuite) -> None:
    """An agent that raises is an error, and red, whatever the case was in the baseline."""
    suite.make(3, wrong=[1])
    suite.record()
    suite.edit_rule()
    suite.flip([1], None)
    result = suite.hold()
    result.assert_outcomes(passed=2, errors=1)
    assert result.ret == RED
    result.stdout.fnmatch_lines(["gate*RED: 1 case ended with an error: c01", "ERROR *c01: *"])


def test_case_that_is_expected_to_fail(suite: CaseSuite) -> None:
    """A case with ``xfail`` in its golden file is never a regression."""
    suite.make(2)
    suite.record().assert_outcomes(passed=2)
    suite.edit_rule()
    suite.flip([1])
    suite.edit("golden.yaml", "id: c01,", "id: c01, xfail: 'a known gap',")
    result = suite.hold("-rx")
    result.assert_outcomes(passed=1, xfailed=1)
    assert result.ret == OK
    assert suite.calls() == ["c00#0", "c01#0"]
    result.stdout.fnmatch_lines([GREEN_LINE, "KNOWN FAILING c01: *"])
    result.stdout.fnmatch_lines(["XFAIL*c01*a known gap"])


def cut_short(suite: CaseSuite) -> None:
    """Let the baseline be of a run that was interrupted."""
    suite.flip([0])
    assert suite.record("-x", "--no-cache").ret == RED
    suite.flip([0], 1)


def test_interrupted_baseline_is_refused(suite: CaseSuite) -> None:
    """A baseline that was interrupted is a usage error before anything is asked, unless it is asked for."""
    suite.make(3)
    cut_short(suite)
    suite.edit_rule()
    result = suite.hold()
    assert result.ret == USAGE
    assert suite.calls() == []
    result.stderr.fnmatch_lines(["ERROR: --ctx-baseline=base.json*interrupted*--ctx-allow-incomplete"])
    result = suite.hold("--ctx-allow-incomplete")
    result.assert_outcomes(passed=3)
    assert result.ret == OK
    result.stdout.fnmatch_lines([GREEN_LINE, "FIXED*c00*", "note*the baseline is of an interrupted run"])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file*--ctx-report=base.json"),
        ("", "no JSON"),
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", ""),
        ('{"tests": [], "summary": {}}', ""),
        ('{"format": "ctxfp-report", "version": 99, "cases": []}', "99"),
        ('{"format": "ctxfp-report", "version": 1, "cases": [7]}', ""),
        ("{\xff", "no JSON"),
    ],
)
def test_what_is_no_report_is_refused(suite: CaseSuite, content: str | None, reason: str) -> None:
    """A baseline that is missing, no JSON, or of another program is a usage error before any call."""
    suite.make(2)
    if content is not None:
        suite.write("base.json", content)
    result = suite.hold()
    assert result.ret == USAGE
    assert suite.calls() == []
    result.stderr.fnmatch_lines([f"ERROR: --ctx-baseline=base.json: *{reason}*"])


@pytest.mark.parametrize("name", ["", "folder.json", "\x00.json", "x" * 300 + ".json", "latin1.json"])
def test_what_cant_be_read_is_refused(suite: CaseSuite, name: str) -> None:
    """A folder, an impossible name and a file that is not UTF-8 are usage errors too."""
    suite.make(2)
    (suite.path / "folder.json").mkdir()
    (suite.path / "latin1.json").write_bytes(b'{"a": "\xff"}')
    result = suite.run(f"--ctx-baseline={name}")
    assert result.ret == USAGE
    assert suite.calls() == []
    result.stderr.fnmatch_lines(["ERROR: --ctx-baseline=*"])


def test_interrupted_run_is_red(suite: CaseSuite) -> None:
    """A run that ``-x`` ends is red, and what it did not reach is not judged."""
    suite.make(4)
    suite.record()
    suite.edit_rule()
    suite.flip([0])
    result = suite.hold("-x")
    assert result.ret in (RED, pytest.ExitCode.INTERRUPTED)
    result.stdout.fnmatch_lines(["*this run was interrupted: cases that did not run were not judged*"])
    result.stdout.no_fnmatch_line("GONE*")


MARKED = """
import pytest

@pytest.mark.ctx_golden("golden.yaml")
def test_case(ctx_case, ctx_trace):
    ctx_trace(ctx_case).check()
"""

MARKED_ASYNC = """
import pytest

@pytest.mark.anyio
@pytest.mark.ctx_golden("golden.yaml")
async def test_case(ctx_case, ctx_trace, anyio_backend):
    (await ctx_trace(ctx_case)).check()

@pytest.fixture
def anyio_backend():
    return "asyncio"
"""

ANYIO = ("-p", "anyio")


@pytest.mark.parametrize("module", [MARKED, MARKED_ASYNC], ids=["sync", "async"])
def test_python_tests(suite: CaseSuite, module: str) -> None:
    """Cases that Python tests run are confirmed, excused and judged as golden items are."""
    suite.make(5, wrong=[0])
    suite.write("test_marked.py", module)
    suite.record(*ANYIO).assert_outcomes(passed=4, failed=1, deselected=5)
    suite.edit_rule()
    suite.flip([1])
    suite.flip([2], 0, 1, 1, 1, 1)
    result = suite.hold("-rxf", *ANYIO)
    result.assert_outcomes(passed=2, failed=1, xfailed=2, deselected=5)
    assert result.ret == RED
    assert len(suite.calls()) == 5 + 2 * 4
    result.stdout.fnmatch_lines(
        ["gate*RED: 1 case worse*c01", "REGRESSION c01:*", "NOISE*c02*", "KNOWN FAILING c00*"]
    )
    drop_case(suite, 4)
    result = suite.hold(*ANYIO)
    assert result.ret == RED
    result.stdout.fnmatch_lines(["*1 case gone from a full run: c04"])


def test_further_test_of_a_case_makes_nothing_new(suite: CaseSuite) -> None:
    """A second test that runs the same golden file is held against the same baseline."""
    suite.make(4, wrong=[0])
    suite.write("test_marked.py", MARKED)
    suite.record()
    suite.write("test_more.py", MARKED)
    result = suite.hold()
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["xfailed"]) == (6, 2)
    assert result.ret == OK
    result.stdout.fnmatch_lines([GREEN_LINE, "classes*8 same key", "KNOWN FAILING c00*"])


def test_several_models(suite: CaseSuite) -> None:
    """With several models each case is judged for each model, and named with it."""
    suite.make(3)
    suite.edit("agent/bot.py", "context, sample", "context, sample, model")
    suite.edit("agent/bot.py", "[question]", '[question + ("b" if model == "b" else "")]')
    suite.give({f"c{i:02}b": [1] for i in range(3)})
    models = "--ctx-models=a,b"
    suite.record(models).assert_outcomes(passed=6)
    suite.edit_rule()
    suite.give({"c01b": [0]})
    result = suite.hold(models)
    result.assert_outcomes(passed=5, failed=1)
    assert result.ret == RED
    assert len(suite.calls()) == 6 + 4
    result.stdout.fnmatch_lines(["gate*RED: 1 case worse*: c01*b*", "classes*6 context", "REGRESSION c01*b*"])
    result = suite.hold("--ctx-models=a")
    result.assert_outcomes(passed=3)
    assert result.ret == OK
    result.stdout.fnmatch_lines([GREEN_LINE, "*3 cases of the baseline not in this run, not judged*"])


def test_baseline_and_report_may_be_the_same_file(suite: CaseSuite) -> None:
    """The baseline is read before the report takes its place."""
    suite.make(3)
    suite.record()
    suite.edit_rule()
    suite.flip([0])
    result = suite.hold("--ctx-report=base.json")
    assert result.ret == RED
    result.stdout.fnmatch_lines(["REGRESSION c00*"])
    result = suite.hold("--ctx-report=base.json")
    assert result.ret == OK
    result.stdout.fnmatch_lines([GREEN_LINE, "KNOWN FAILING c00*"])


def gate_lines(text: str) -> list[str]:
    """Return what a gate printed, out of what a run or the command printed."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("gate "))
    rest = lines[start:]
    end = next((i for i, line in enumerate(rest) if line.startswith("====")), len(rest))
    return [line.rstrip() for line in rest[:end] if line.strip()]


@pytest.mark.parametrize("change", ["regression", "noise", "recalibrated", "gone", "new", "drift", "error"])
def test_command_gives_the_same_verdict(
    suite: CaseSuite, ctxfp: Callable[..., subprocess.CompletedProcess[str]], change: str
) -> None:
    """``ctxfp gate base.json current.json`` prints what the run printed, with the same verdict."""
    suite.make(12, wrong=[9])
    suite.record()
    arguments = []
    if change in ("regression", "noise", "error"):
        suite.edit_rule()
        suite.flip([1], *{"regression": (0,), "noise": (0, 1, 1, 1), "error": (None,)}[change])
    elif change == "recalibrated":
        recalibrate(suite, 1, 5)
    elif change == "gone":
        drop_case(suite, 3)
    elif change == "new":
        suite.make(13, wrong=[9, 12])
    else:
        suite.flip(range(8))
        arguments = ["--no-cache"]
    result = suite.hold("--ctx-report=current.json", *arguments)
    printed = gate_lines(result.stdout.str())
    done = ctxfp("gate", str(suite.path / "base.json"), str(suite.path / "current.json"))
    assert done.returncode == result.ret == (OK if change in ("noise", "recalibrated") else RED)
    assert gate_lines(done.stdout) == printed


def test_other_tests_keep_their_failures(suite: CaseSuite) -> None:
    """A green gate lowers no exit status: another test that fails still fails the run."""
    suite.make(2, wrong=[0])
    suite.write("test_other.py", "def test_other(): assert 0\n")
    suite.record()
    result = suite.hold()
    result.assert_outcomes(passed=1, xfailed=1, failed=1)
    assert result.ret == RED
    result.stdout.fnmatch_lines([GREEN_LINE])


@pytest.mark.parametrize(
    ("module", "arguments", "status"),
    [
        ("def test_stop():\n    raise KeyboardInterrupt\n", [], pytest.ExitCode.INTERRUPTED),
        ("import pytest\ndef test_exit():\n    pytest.exit('now', returncode=7)\n", [], 7),
        ("nonsense(\n", [], pytest.ExitCode.INTERRUPTED),
        ("", ["--nonsense"], USAGE),
        ("", ["nowhere.yaml"], USAGE),
    ],
    ids=["ctrl-c", "exit", "collection", "flag", "path"],
)
def test_other_exit_statuses_stay(suite: CaseSuite, module: str, arguments: list[str], status: int) -> None:
    """A red gate does not hide how pytest itself ended."""
    suite.make(2)
    suite.record()
    suite.flip([0])
    suite.edit_rule()
    suite.write("test_a.py", module)
    # As a process of its own: pytester lets no Ctrl-C end a run in this one.
    result = suite.run_apart("--ctx-cache", "--ctx-baseline=base.json", *arguments)
    assert result.ret == status


def test_nothing_selected_stays_5(suite: CaseSuite) -> None:
    """Where no test is left pytest's own status stays."""
    suite.make(2)
    suite.record()
    assert suite.hold("-k", "nonsense").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_runxfail_lets_all_failures_fail(suite: CaseSuite) -> None:
    """``--runxfail`` is pytest's own word for: excuse nothing."""
    suite.make(2, wrong=[0])
    suite.record()
    result = suite.hold("--runxfail")
    result.assert_outcomes(passed=1, failed=1)
    assert result.ret == RED
    result.stdout.fnmatch_lines([GREEN_LINE, "KNOWN FAILING c00*"])


def test_baseline_works_without_the_cache(suite: CaseSuite) -> None:
    """A baseline recorded without the cache is good too: answers carry the key they would have."""
    suite.make(4)
    suite.run("--ctx-report=base.json").assert_outcomes(passed=4)
    suite.calls()
    suite.edit_rule()
    suite.flip([1])
    result = suite.run("--ctx-baseline=base.json")
    result.assert_outcomes(passed=3, failed=1)
    assert result.ret == RED
    assert len(suite.calls()) == 4 + 4
    result.stdout.fnmatch_lines(["classes*4 context", "REGRESSION c01: *Business Rules (5 of 5*"])


def test_baseline_is_found_from_where_pytest_started(suite: CaseSuite) -> None:
    """A relative path is one of the folder that pytest was started in, on workers too."""
    suite.make(2, wrong=[0])
    suite.record()
    (suite.path / "sub").mkdir()
    os.chdir(suite.path / "sub")
    result = suite.run("--ctx-cache", "--ctx-baseline=../base.json", "..")
    result.assert_outcomes(passed=1, xfailed=1)
    assert result.ret == OK
    result.stdout.fnmatch_lines([GREEN_LINE])


def test_reruns_count_once(suite: CaseSuite) -> None:
    """A case that pytest-rerunfailures runs again is judged by its last attempt, which asks nobody anew."""
    suite.make(3)
    suite.record()
    suite.edit_rule()
    suite.flip([1])
    result = suite.hold("--reruns=2", "--ctx-report=current.json")
    assert result.ret == RED
    assert len(suite.calls()) == 3 + 4
    result.stdout.fnmatch_lines(["REGRESSION c01: *(5 of 5 samples failed)"])
    cases = json.loads((suite.path / "current.json").read_text(encoding="utf-8"))["cases"]
    assert [(case["id"], case["samples"], len(case["confirming"])) for case in cases] == [
        ("c00", 1, 0),
        ("c01", 1, 4),
        ("c02", 1, 0),
    ]


def test_strict_xfails_stay_green(suite: CaseSuite) -> None:
    """``xfail_strict`` is about marks that people wrote: a case that is fixed is not red for it."""
    suite.edit("pytest.ini", "addopts", "xfail_strict = true\naddopts")
    suite.make(3, wrong=[0, 1])
    suite.record()
    suite.edit_rule()
    suite.flip([0], 1)
    result = suite.hold()
    result.assert_outcomes(passed=2, xfailed=1)
    assert result.ret == OK


def test_run_without_cases_has_no_gate(suite: CaseSuite) -> None:
    """``--collect-only`` judges nothing, and changes no status."""
    suite.make(2)
    suite.record()
    result = suite.hold("--collect-only")
    assert result.ret == OK
    result.stdout.no_fnmatch_line("gate *")
