"""The command ``ctxfp rescore``: stored answers under today's golden files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp import CaseKey, RunReport, Trace, TraceStore
from pytest_ctxfp._cli import main
from pytest_ctxfp._report import CaseReport, SampleReport
from pytest_ctxfp._report_json import report_to_json

if TYPE_CHECKING:
    from pytest_ctxfp._model import JSONValue

GOLDEN = """cases:
  - id: orders
    question: How many orders?
    expected: {rows: [[99]]}
  - id: shoes
    question: How long?
    result_kind: text
    match: contains
    expected: 30 days
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CTXFP_CACHE_DIR", raising=False)
    Path("golden.yaml").write_text(GOLDEN)


def store(
    case_id: str, question: str, result: JSONValue, *, model: str = "m", sample: int = 0, **fields: object
) -> CaseKey:
    """Store an answer and return its key."""
    params = fields.pop("params", None)
    key = CaseKey(case_id, question, "a" * 40, model, "-", sample=sample, params=params)
    trace = Trace(
        case_id=case_id, model=model, context_sha="-", question=question, result=result, latency_ms=5,
        **{"agent_sha": "a" * 40, "passed_then": True, "recorded_at": "2026-01-01T00:00:00Z", **fields},
    )  # fmt: skip
    TraceStore(".ctxfp/traces").store(key, trace)
    return key


def store_all() -> list[CaseKey]:
    """Store a right answer to both cases."""
    return [
        store("orders", "How many orders?", {"rows": [[99]]}),
        store("shoes", "How long?", "You have 30 days."),
    ]


def report_of(*keys: CaseKey, file: str = "golden.yaml") -> None:
    """Write the report of a run with these answers."""
    by_case: dict[tuple[str, str], list[CaseKey]] = {}
    for key in keys:
        by_case.setdefault((key.case_id, key.model), []).append(key)
    cases = tuple(
        CaseReport(
            id=case_id,
            file=file,
            model=model,
            samples=tuple(
                SampleReport(state="passed", sample=key.sample, key=key.hash(), key_parts=key.parts())
                for key in group
            ),
        )
        for (case_id, model), group in by_case.items()
    )
    Path("run.json").write_text(report_to_json(RunReport(cases=cases)))


def rescore(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, dict[str, JSONValue]]:
    """Return the exit status and what is printed as JSON."""
    code = main(["rescore", "golden.yaml", *args, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_all_that_pass_is_exit_0(capsys: pytest.CaptureFixture[str]) -> None:
    """Right answers are counted, with the accuracy and its interval, from a report and without one."""
    report_of(*store_all())
    assert main(["rescore", "golden.yaml", "--report", "run.json"]) == 0
    assert capsys.readouterr().out == (
        "scored 2 cases (the answers of run.json): 2 passed, 0 failed\n"
        "accuracy 100% (95% interval 34.2% to 100%)\n"
        "changed since they were recorded: 0\n"
    )
    assert main(["rescore", "golden.yaml"]) == 0
    assert "(the newest stored answer of each case): 2 passed" in capsys.readouterr().out


def test_an_expectation_that_was_edited_changes_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    """An answer that passed and fails today is named with both verdicts and the reason, and is exit 1."""
    report_of(*store_all())
    Path("golden.yaml").write_text(GOLDEN.replace("99", "98"))
    code, said = rescore(capsys, "--report", "run.json")
    assert (code, said["n"], said["passed"]) == (1, 2, 1)
    (change,) = said["changed"]
    assert (change["case"], change["passed_then"], change["passed"]) == ("orders", True, False)
    assert main(["rescore", "golden.yaml"]) == 1
    out = capsys.readouterr().out
    assert "  orders: passed -> failed: " in out
    assert "failed: 1\n  orders: " in out


def test_an_expected_failure_is_not_red(capsys: pytest.CaptureFixture[str]) -> None:
    """A case with `xfail` that fails is counted as failed and leaves the exit status alone."""
    store_all()
    Path("golden.yaml").write_text(GOLDEN.replace("[[99]]}", "[[98]]}\n    xfail: known"))
    code, said = rescore(capsys)
    assert (code, said["n"] - said["passed"], said["failed"]) == (0, 1, [])


def test_what_needs_pytest_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Cases of a scorer or of SQL, and answers of another shape, are never silently left out."""
    store_all()
    store("sql", "q", {"rows": [[1]]})
    store("judged", "q", "x")
    store("shape", "q", {"rows": [[1]]})
    more = """  - {id: sql, question: q, expected_sql: select 1}
  - {id: judged, question: q, result_kind: text, match: helpful, expected: x}
  - {id: shape, question: q, result_kind: verdict, expected: true}
  - {id: off, question: q, skip: too slow, expected: {rows: [[1]]}}
"""
    Path("golden.yaml").write_text(GOLDEN + more)
    code, said = rescore(capsys)
    assert (code, said["n"]) == (0, 2)
    assert {item["case"]: item["why"] for item in said["not_scored"]} == {
        "sql": "needs pytest: expected_sql",
        "judged": "needs pytest: scorer helpful",
        "shape": "needs pytest: the stored answer holds no verdict",
        "off": "skipped: too slow",
    }
    assert main(["rescore", "golden.yaml"]) == 0
    assert "not scored: 4\n" in capsys.readouterr().out


@pytest.mark.parametrize("args", [(), ("--report", "run.json")])
def test_an_answer_to_another_question_is_none(
    capsys: pytest.CaptureFixture[str], args: tuple[str, ...]
) -> None:
    """Where the question or the inputs were edited, the stored answer is none to today's case."""
    store_all()
    keys = [
        store("orders", "How many orders?", {"rows": [[99]]}, params={"inputs": {"year": 1}}),
        store("shoes", "How long?", "30 days", params={"case": {"id": "shoes", "question": "other"}}),
    ]
    report_of(*keys)
    text = GOLDEN.replace("How long?", "How very long?").replace("99]]}", "99]]}\n    inputs: {year: true}")
    Path("golden.yaml").write_text(text)
    code, said = rescore(capsys, *args)
    if args:
        assert (code, said["n"]) == (2, 0)
        assert {item["why"] for item in said["without_trace"]} == {
            "its question, or its inputs, have changed"
        }
    else:
        assert (code, said["n"]) == (0, 1)  # the one without inputs in its key doesn't hang on them
        assert said["without_trace"] == [{"case": "shoes", "why": "no stored answer to its question"}]


def test_samples_and_models_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """A report's samples make up one case a model; the newest answer alone is scored without a report."""
    keys = [
        store("orders", "How many orders?", {"rows": [[99]]}),
        store("orders", "How many orders?", {"rows": [[1]]}, sample=1, passed_then=False),
        store("orders", "How many orders?", {"rows": [[2]]}, model="b", recorded_at="2026-02-01T00:00:00Z"),
    ]
    report_of(*keys)
    code, said = rescore(capsys, "--report", "run.json")
    assert (code, said["n"], said["accuracy"], said["flaky_cases"]) == (1, 2, 0.25, 1)
    assert [item["case"] for item in said["changed"]] == ["orders[b]"]
    code, said = rescore(capsys)
    assert (code, said["n"], said["accuracy"]) == (1, 1, 0.0)


def test_answers_that_are_gone_corrupt_or_another_keys_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Each sample without a usable file is listed with what is wrong."""
    orders, shoes = store_all()
    third = store("third", "q", "x", agent_sha="b" * 40)
    report_of(orders, shoes, third)
    folder = Path(".ctxfp/traces")
    (folder / f"{orders.hash()}.json").write_text("{")
    (folder / f"{shoes.hash()}.json").unlink()
    Path("golden.yaml").write_text(GOLDEN + "  - {id: third, question: q, result_kind: text, expected: x}\n")
    code, said = rescore(capsys, "--report", "run.json")
    why = {item["case"]: item["why"] for item in said["without_trace"]}
    assert code == 2
    assert "not JSON" in why["orders"]
    assert why["shoes"] == f"no stored answer {shoes.hash()[:12]}"
    assert "another key" in why["third"]


def test_keys_in_reports_are_never_paths(capsys: pytest.CaptureFixture[str]) -> None:
    """A key that is no hash opens no file."""
    key = store("orders", "How many orders?", {"rows": [[99]]})
    Path(f".ctxfp/traces/{key.hash()}.json").rename("x.json")
    sample = SampleReport(state="passed", key="../../x")
    case = CaseReport(id="orders", file="golden.yaml", samples=(sample,))
    Path("run.json").write_text(report_to_json(RunReport(cases=(case,))))
    code, said = rescore(capsys, "--report", "run.json")
    assert (code, said["n"]) == (2, 0)


def test_of_two_files_with_one_id_each_gets_its_own_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """The report says which file a case is of."""
    first = store("orders", "How many orders?", {"rows": [[99]]})
    second = store("orders", "How many orders?", {"rows": [[7]]}, params={"x": 1})
    cases = tuple(
        CaseReport(id="orders", file=file, samples=(SampleReport(state="passed", key=key.hash()),))
        for file, key in (("golden.yaml", first), ("other.yaml", second))
    )
    Path("run.json").write_text(report_to_json(RunReport(cases=cases)))
    Path("other.yaml").write_text(
        "cases: [{id: orders, question: How many orders?, expected: {rows: [[7]]}}]"
    )
    assert main(["rescore", "golden.yaml", "other.yaml", "--report", "run.json"]) == 0
    assert "2 passed, 0 failed" in capsys.readouterr().out


def test_bad_input_is_exit_2_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A golden file, report or folder that can't be read is named, without a traceback."""
    Path("bad.yaml").write_text("cases: 5\n")
    for args in (
        ["bad.yaml"],
        ["gone.yaml"],
        ["golden.yaml", "--report", "gone.json"],
        ["golden.yaml", "--dir", "x"],
    ):
        assert main(["rescore", *args]) == 2
        err = capsys.readouterr().err
        assert args[-1] in err
        assert err.count("\n") == 1


def test_texts_of_answers_are_escaped() -> None:
    """What an agent said can't act on the terminal; the exit status is the process's."""
    store("shoes", "How long?", "\x1b[2J never \u202e")
    code = "import sys; from pytest_ctxfp._cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "rescore", "golden.yaml"], capture_output=True, check=False
    )
    assert done.returncode == 1
    assert b"\x1b" not in done.stdout
    assert b"without a stored answer: 1\n  orders: no stored answer to its question\n" in done.stdout
