"""``ctxfp gate`` and ``ctxfp report``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp import RunReport, fingerprint_context, gate_reports
from pytest_ctxfp._cli import main
from pytest_ctxfp._report import CaseReport, SampleReport
from pytest_ctxfp._report_json import report_to_json
from pytest_ctxfp._report_markdown import report_to_markdown

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ESCAPE = "\x1b[31m"
GREEN, RED = "green.json", "red.json"


def make_case(name: str, *, passed: bool, rules: str) -> CaseReport:
    """Return a case that was asked under a context with these rules."""
    context = fingerprint_context(f"## Identity\nYou answer.\n## Rules\n{rules}\n").to_dict()
    parts = {"case_id": name, "question": "q", "agent_sha": "a", "model": "m", "context_sha": rules}
    sample = SampleReport(
        state="passed" if passed else "failed",
        reason="match" if passed else "expected 1, actual 2",
        origin="miss",
        key=rules,
        key_parts=parts,
        answer={"rows": [[1 if passed else 2]]},
    )
    return CaseReport(
        id=name, file="golden.yaml", model="m", tags=("orders",), context=context, samples=(sample,)
    )


def make_report(*passed: bool, rules: str = "a", complete: bool = True) -> RunReport:
    """Return a run of so many cases."""
    cases = tuple(make_case(f"case{i}", passed=one, rules=rules) for i, one in enumerate(passed))
    return RunReport(
        cases=cases, complete=complete, selected_cases=len(cases), total_cases=len(cases), dataset="shop"
    )


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str | bytes | RunReport], str]:
    """A function that writes a file to the current folder and returns its name."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, data: str | bytes | RunReport) -> str:
        text = report_to_json(data) if isinstance(data, RunReport) else data
        (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return name

    return write


@pytest.fixture
def reports(write: Callable[[str, str | bytes | RunReport], str]) -> None:
    """Two reports in the current folder, one good and one with a regression."""
    write(GREEN, make_report(True, True, True))
    write(RED, make_report(True, False, True, rules="b"))


def refusal(args: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line that a command refuses to work with."""
    assert main(args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ctxfp: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize(("name", "code"), [(GREEN, 0), (RED, 1)])
@pytest.mark.usefixtures("reports")
def test_gate_prints_what_the_library_says(capsys, name, code) -> None:
    """The lines are those of ``gate_reports``, and the exit status is green or red."""
    reports = {GREEN: make_report(True, True, True), RED: make_report(True, False, True, rules="b")}
    assert main(["gate", GREEN, name]) == code
    out = capsys.readouterr().out
    assert out.splitlines() == gate_reports(reports[GREEN], reports[name]).lines()
    assert ("GREEN" in out) == (code == 0)


@pytest.mark.usefixtures("reports")
def test_gate_as_json(capsys) -> None:
    """``--json`` prints the result for a program; the exit status stays."""
    assert main(["gate", "--json", GREEN, RED]) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["passed"]
    assert [case["id"] for case in found["cases"] if case["verdict"] == "regression"] == ["case1"]


@pytest.mark.usefixtures("reports")
def test_gate_as_markdown(capsys) -> None:
    """``--markdown`` prints the run's report with the gate in it, for a pull request."""
    assert main(["gate", "--markdown", GREEN, RED]) == 1
    baseline, current = make_report(True, True, True), make_report(True, False, True, rules="b")
    assert capsys.readouterr().out == report_to_markdown(current, gate_reports(baseline, current))


def test_gate_is_either_json_or_markdown(capsys) -> None:
    """Both forms at once are wrong usage."""
    with pytest.raises(SystemExit) as stop:
        main(["gate", "--json", "--markdown", "a", "b"])
    assert stop.value.code == 2
    assert "not allowed with" in capsys.readouterr().err


@pytest.mark.parametrize(("tolerance", "code"), [("0", 1), ("0.3", 1), ("0.34", 0), ("1", 0)])
@pytest.mark.usefixtures("reports")
def test_tolerance_is_a_share_of_the_cases(capsys, tolerance, code) -> None:
    """One regression of three cases is within a tolerance of 34%, and not within 30%."""
    assert main(["gate", GREEN, RED, "--tolerance", tolerance]) == code
    assert "REGRESSION" in capsys.readouterr().out


@pytest.mark.parametrize("tolerance", ["-0.1", "5", "nan", "inf"])
@pytest.mark.usefixtures("reports")
def test_tolerance_outside_of_its_range(capsys, tolerance) -> None:
    """A tolerance that is no share is wrong usage, with an example of one."""
    assert "share from 0 to 1" in refusal(["gate", GREEN, RED, f"--tolerance={tolerance}"], capsys)


@pytest.mark.parametrize("command", [["gate", "base.json", GREEN], ["report", GREEN, "--baseline=base.json"]])
@pytest.mark.usefixtures("reports")
def test_incomplete_baseline(write, capsys, command) -> None:
    """A baseline of an interrupted run is refused, with the option that takes it all the same."""
    write("base.json", make_report(True, complete=False))
    message = refusal(command, capsys)
    assert message.startswith("ctxfp: base.json: ")
    assert "--allow-incomplete" in message
    assert main([*command, "--allow-incomplete"]) == 0
    assert "interrupted" in capsys.readouterr().out


@pytest.mark.usefixtures("reports")
def test_incomplete_current_run_is_judged(write, capsys) -> None:
    """Only a baseline must be complete: of the run itself the gate says what it is."""
    write("half.json", make_report(True, complete=False))
    assert main(["gate", GREEN, "half.json"]) in {0, 1}
    assert "interrupted" in capsys.readouterr().out


@pytest.mark.usefixtures("reports")
def test_report_prints_markdown(capsys) -> None:
    """A report is printed as Markdown, with exit status 0 whatever is in it."""
    assert main(["report", RED]) == 0
    out = capsys.readouterr().out
    assert out == report_to_markdown(make_report(True, False, True, rules="b"))
    assert "`case1` | failed | `expected 1, actual 2`" in out


@pytest.mark.usefixtures("reports")
def test_report_with_a_baseline(capsys) -> None:
    """``--baseline`` adds the gate, which doesn't decide the exit status here."""
    assert main(["report", RED, "--baseline", GREEN]) == 0
    assert "- **`1 case worse under a changed key: case1`**" in capsys.readouterr().out
    assert main(["report", RED, "--baseline", GREEN, "--tolerance=0.5"]) == 0
    assert "### ctxfp: green" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["run.md", "new/folder/run.MD"])
@pytest.mark.usefixtures("reports")
def test_report_writes_a_file(capsys, tmp_path, name) -> None:
    """``-o`` writes what would be printed, in a new folder too, and nothing is printed."""
    assert main(["report", RED, "-o", name]) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / name).read_text("utf-8") == report_to_markdown(
        make_report(True, False, True, rules="b")
    )


@pytest.mark.usefixtures("reports")
def test_report_output_to_stdout(capsys) -> None:
    """``-o -`` is standard output."""
    assert main(["report", GREEN, "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("### ctxfp: 3 of 3 cases passed")


@pytest.mark.parametrize("name", ["run.htm", "run.json", "run", ".md", "run.md.txt", ""])
@pytest.mark.usefixtures("reports")
def test_report_suffix_must_be_known(capsys, tmp_path, name) -> None:
    """Another suffix is wrong usage that names the right one, and nothing is written."""
    before = sorted(tmp_path.iterdir())
    assert "*.md" in refusal(["report", RED, f"--output={name}"], capsys)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.usefixtures("reports")
def test_report_that_cannot_be_written(capsys, tmp_path) -> None:
    """A folder in the place of the output is named; no temporary file is, and none stays."""
    (tmp_path / "run.md").mkdir()
    assert refusal(["report", RED, "-o", "run.md"], capsys).startswith("ctxfp: run.md: can't be written")
    assert "can't be written" in refusal(["report", RED, "-o", f"{GREEN}/run.md"], capsys)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.usefixtures("reports")
def test_standard_input_is_a_report(ctxfp) -> None:
    """``-`` is standard input, for one of the reports."""
    current = report_to_json(make_report(True, False, True, rules="b"))
    done = ctxfp("gate", GREEN, "-", input=current)
    assert (done.returncode, done.stderr) == (1, "")
    assert "REGRESSION case1" in done.stdout
    done = ctxfp("report", "-", "--baseline", GREEN, input=current)
    assert (done.returncode, done.stdout[:14]) == (0, "### ctxfp: RED")


@pytest.mark.parametrize("args", [["gate", "-", "-"], ["report", "-", "--baseline=-"]])
def test_two_standard_inputs_are_refused(capsys, args) -> None:
    """Standard input can be read once: a second ``-`` is wrong usage."""
    assert "standard input" in refusal(args, capsys)


def sample(**fields: str) -> str:
    """Return the text of a report with one case, with the raw text of some of its fields."""
    report = {"format": '"ctxfp-report"', "version": "1", "selected_cases": "1", "total_cases": "1"}
    report["complete"] = "true"
    inner = ",".join(f'"{name}":{text}' for name, text in {"state": '"passed"', **fields}.items())
    report["cases"] = f'[{{"id":"a","samples_detail":[{inner.join("{}")},{inner.join("{}")}]}}]'
    return "{" + ",".join(f'"{name}":{text}' for name, text in report.items()) + "}"


BAD_REPORTS = [
    ("empty", b"", "no JSON"),
    ("text", b"# text", "no JSON"),
    ("latin", b'{"\xff": 1}', "not UTF-8 (byte 2)"),
    ("list", b"[]", "it must be a JSON object"),
    ("deep", b"[" * 200_000, "no JSON"),
    ("golden", b'{"cases": []}', "this is no report"),
    ("version", b'{"format": "ctxfp-report", "version": 2}', "of version 2"),
    ("long", b'{"format": "ctxfp-report", "version": "' + b"x\\n" * 100_000 + b'"}', "of version"),
    ("case", b'{"format": "ctxfp-report", "version": 1, "cases": [1]}', "cases[0] is 1"),
    ("digits", b'{"format": ' + b"9" * 5_000 + b"}", "no JSON"),
    ("infinity", sample(cost="1e999").encode(), "1e999 is no finite number"),
    ("state", sample(state='"\\ud800\\u001b[31m"').encode(), "must be one of passed, failed"),
]


@pytest.mark.parametrize(
    ("data", "reason"),
    [(data, reason) for _, data, reason in BAD_REPORTS],
    ids=[bad[0] for bad in BAD_REPORTS],
)
@pytest.mark.usefixtures("reports")
def test_bad_reports_are_refused(write, capsys, data, reason) -> None:
    """Whatever is no report is one line that names the file, wherever it stands among the arguments."""
    write("bad.json", data)
    for args in (["report", "bad.json"], ["report", GREEN, "--baseline=bad.json", "--allow-incomplete"]):
        message = refusal(args, capsys)
        assert message.startswith("ctxfp: bad.json: ")
        assert reason in message
        assert len(message) < 1_200


def test_figures_that_no_one_can_add_up(write, capsys) -> None:
    """Numbers that are too large to be shown are refused, not a traceback."""
    write("bad.json", sample(origin='"miss"', latency_ms="9" * 4_300))
    assert refusal(["report", "bad.json"], capsys).startswith("ctxfp: bad.json: ")
    assert refusal(["gate", "--markdown", "bad.json", "bad.json"], capsys).startswith("ctxfp: bad.json: ")


@pytest.mark.parametrize("name", [".", "missing.json", f"{GREEN}/x"])
@pytest.mark.usefixtures("reports")
def test_unreadable_files_are_refused(capsys, name) -> None:
    """A folder and a missing file are a line with that name, and exit status 2."""
    for args in (["gate", name, GREEN], ["gate", GREEN, name], ["report", name]):
        assert refusal(args, capsys).startswith(f"ctxfp: {name}: can't be read (")


def test_values_nested_as_deep_as_json_allows(write, capsys) -> None:
    """An answer that can just be read is judged or refused, and never a traceback."""
    for depth in (100, 900, 950, 990):
        answer = "[" * depth + "]" * depth
        write("deep.json", sample(answer=answer, state='"failed"'))
        assert main(["gate", "deep.json", "deep.json"]) in {0, 1, 2}
        assert main(["report", "deep.json", "--baseline=deep.json"]) in {0, 2}
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.usefixtures("reports")
def test_nothing_of_a_report_steers_the_terminal(write, ctxfp) -> None:
    """Names, reasons and lone surrogates of a report are escaped, in every form and any encoding."""
    data = json.loads(report_to_json(make_report(True, False, rules="b")))
    for case in data["cases"]:
        case["id"] += f"{ESCAPE}\ud800≤"
        case["samples_detail"][0]["reason"] = f"{ESCAPE}\u202e\ud800"
    write("bad.json", json.dumps(data))
    for args in (
        ["gate", GREEN, "bad.json"],
        ["gate", "--markdown", GREEN, "bad.json"],
        ["report", "bad.json"],
    ):
        for encoding in ("utf-8", "ascii"):
            done = ctxfp(*args, env={"PYTHONIOENCODING": encoding})
            assert done.stderr == ""
            assert "\\x1b[31m\\ud800" in done.stdout
            assert not {"\x1b", "\u202e"} & set(done.stdout)
    assert ctxfp("report", "bad.json", "-o", "bad.md").returncode == 0


@pytest.mark.parametrize("command", ["gate", "report"])
def test_help_has_an_example(capsys, command) -> None:
    """The help shows the command as one types it, and what its exit status means."""
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert f"\n  ctxfp {command} " in out
    assert "exit status: " in out


@pytest.mark.parametrize(
    ("command", "code"),
    [(["gate", GREEN, RED], 1), (["gate", "--json", GREEN, RED], 1), (["report", RED], 0)],
    ids=["gate", "gate --json", "report"],
)
@pytest.mark.usefixtures("reports")
def test_a_reader_that_stops_is_no_error(tmp_path, command, code) -> None:
    """``| head -1`` ends the command without a word, and a red gate stays red."""
    program = "import sys; from pytest_ctxfp._cli import main; sys.exit(main())"
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, *command],
            cwd=tmp_path,
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (code, b"")
