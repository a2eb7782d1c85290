"""The command ``ctxfp capture``: a confirmed answer becomes a golden case."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ctxfp import RunReport, load_golden
from pytest_ctxfp._cli import main
from pytest_ctxfp._cli.capture import Candidate, case_lines, check_candidate, make_candidate
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._match import score_answer
from pytest_ctxfp._model import ResultKind
from pytest_ctxfp._report import CaseReport, SampleReport
from pytest_ctxfp._report_json import report_to_json

if TYPE_CHECKING:
    from pytest_ctxfp._model import JSONValue

TABLE = {"columns": ["n"], "rows": [[99]]}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def sample(answer: JSONValue, number: int = 0, **fields: object) -> SampleReport:
    """Return a sample that gave an answer."""
    given = {"state": "passed", "key_parts": {"question": "How many?"}, **fields}
    return SampleReport(sample=number, answer=answer, **given)


def case(*samples: SampleReport, kind: str = "table", **fields: object) -> CaseReport:
    """Return a case of a report."""
    given = {"id": "orders", "file": "golden.yaml", "tags": ("easy",), **fields}
    return CaseReport(samples=samples, expectation={"result_kind": kind, "match": "scalar"}, **given)


def write(*cases: CaseReport) -> None:
    """Write the report of a run."""
    Path("run.json").write_text(report_to_json(RunReport(cases=cases)), encoding="utf-8")


def capture(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """Return what the command prints, which must be good."""
    assert main(["capture", "run.json", *(args or ("orders",))]) == 0
    return capsys.readouterr().out


def load(printed: str) -> object:
    """Return the only case of a golden file that the printed text was pasted into."""
    Path("pasted.yaml").write_text("cases:\n" + printed, encoding="utf-8")
    (found,) = load_golden("pasted.yaml").cases
    return found


def test_the_answer_is_printed_as_a_user_writes_it(capsys: pytest.CaptureFixture[str]) -> None:
    """A table of one cell is a scalar case, in the spelling of the docs."""
    write(case(sample(TABLE, key_parts={"question": "How many?", "params": {"inputs": {"tenant": "acme"}}})))
    printed = capture(capsys)
    assert [line for line in printed.splitlines() if not line.startswith("#")] == [
        "  - id: orders",
        '    question: "How many?"',
        "    inputs: {tenant: acme}",
        "    tags: [easy]",
        "    match: scalar",
        "    expected: {columns: [n], rows: [[99]]}",
    ]
    assert load(printed).question == "How many?"
    assert not Path("golden.yaml").exists()


@pytest.mark.parametrize(
    ("kind", "answer", "lines"),
    [
        ("text", "30 days\nno fee", ['result_kind: text', "match: exact", r'expected: "30 days\nno fee"']),
        ("text", "no", ["result_kind: text", "match: exact", 'expected: "no"']),
        ("json", {"a": None}, ["result_kind: json", "match: exact", "expected: {a: null}"]),
        ("verdict", {"verdict": {"fresh": False}}, ["result_kind: verdict", "expected: false"]),
        ("table", {"rows": [["x", 1.5], ["on", None]]},
         ["match: set", 'expected: {rows: [[x, 1.5], ["on", null]]}']),
    ],
)  # fmt: skip
def test_every_kind_of_answer_has_its_form(
    capsys: pytest.CaptureFixture[str], kind: str, answer: JSONValue, lines: list[str]
) -> None:
    """The case says its kind and the strictest match, and the answer passes it."""
    write(case(sample(answer), kind=kind))
    printed = capture(capsys)
    assert [line.strip() for line in printed.splitlines()][-len(lines) :] == lines
    assert score_answer(load(printed), answer).passed


def test_the_most_frequent_answer_is_taken_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Where samples differ, a comment says how many gave the answer and how many another."""
    other = {"columns": ["n"], "rows": [[7]]}
    write(case(sample(other), sample(TABLE, 1), sample(TABLE, 2), sample(None, 3, state="error")))
    printed = capture(capsys)
    assert "# from run.json: the answer of 2 of 4 samples (passed)\n" in printed
    assert "# the most frequent of 2 different answers; 1 sample gave another\n" in printed
    assert "# 1 sample without a usable answer left out\n" in printed
    assert "rows: [[99]]" in printed


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ((case(sample('{"rows": [[', answer_cut=True)),), "cut: see ctxfp cache show"),
        ((case(sample(None, state="error", reason="boom\x1b[2J")),),
         r"no answer (boom\x1b[2J): run it first"),
        ((case(sample(None, state="failed")),), "no answer of the case's kind"),
        ((case(sample(None, state="failed"), kind="json"),), "no answer of the case's kind"),
        ((case(sample(TABLE), id="x"),), "no case 'orders': it has 'x'"),
        ((case(sample(TABLE)), case(sample(TABLE), file="b.yaml")), "add --golden b.yaml"),
        ((case(sample(TABLE, key_parts=None)),), "add --golden FILE"),
        ((case(sample("\ud800"), kind="text"),), "lone surrogate"),
        ((case(sample({"x": 1}), kind="verdict"),), "has no fresh"),
        ((case(sample({"k" * 2000: 1}), kind="json"),), "no golden file could hold it"),
        ((case(sample(TABLE), kind="nonsense"),), "result_kind as 'nonsense'"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused(
    capsys: pytest.CaptureFixture[str], cases: tuple[CaseReport, ...], said: str
) -> None:
    """An answer that is cut, absent or can't be written down is exit 2 and one line that says why."""
    write(*cases)
    assert main(["capture", "run.json", "orders"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err


def test_the_golden_file_gives_what_the_report_has_not(capsys: pytest.CaptureFixture[str]) -> None:
    """With --golden the question comes from the file, and of two files with one id that one is meant."""
    write(case(sample(TABLE, key_parts=None)), case(sample(None, state="error"), file="b.yaml"))
    Path("golden.yaml").write_text("cases: [{id: orders, question: Of today?, expected: {rows: [[1]]}}]\n")
    assert '    question: "Of today?"\n' in capture(capsys, "orders", "--golden", "golden.yaml")
    Path("other.yaml").write_text("cases: [{id: x, question: q, expected: {rows: [[1]]}}]\n")
    assert main(["capture", "run.json", "orders", "--golden", "other.yaml"]) == 2
    assert "other.yaml: no case 'orders'" in capsys.readouterr().err


def test_bad_reports_are_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is missing or no report is named in one line."""
    Path("run.json").write_text("[]")
    for name in ("run.json", "gone.json"):
        assert main(["capture", name, "orders"]) == 2
        err = capsys.readouterr().err
        assert name in err
        assert err.count("\n") == 1


def test_the_command_prints_to_any_terminal() -> None:
    """On a terminal of ASCII the printed case is still the same case."""
    write(case(sample("größer 😀 \u202e\ufeff\x85"), kind="text"))
    code = "import sys; from pytest_ctxfp._cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", code, "capture", "run.json", "orders"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert load(done.stdout.decode("ascii")).expected == "größer 😀 \u202e\ufeff\x85"


TRICKY = st.sampled_from(
    ["", " ", "no", "Null", "~", "1e5", "0123", "1_000", "0x1F", ".inf", "2024-01-01", "1:30",
     "- a", "a: b", "a #b",
     "'", '"', "\\", "{", "[x]", "&a", "*a", "!!int 1", "%", "@", "`", "a\nb\n", "\r\n", "\t", "\0",
     "\x7f", "\x85",
     "\u2028", "\ufeff", "\ufffe", "\uffff", "\ue000", "😀", "e\u0301", "\u202ex", "---", "...",
     "? x", "<<", "=", "true"]
)  # fmt: skip
TEXTS = TRICKY | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.just(10**4000)
LEAVES = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)
ROWS = st.integers(0, 3).flatmap(
    lambda width: st.lists(st.lists(LEAVES, min_size=width, max_size=width), max_size=3)
)
TABLES = st.builds(lambda rows: {"rows": rows}, ROWS) | st.builds(
    lambda name, cell: {"columns": [name], "rows": [[cell]]}, TEXTS, VALUES
)
ANSWERS = (
    st.tuples(st.just("text"), TEXTS)
    | st.tuples(st.just("json"), VALUES)
    | st.tuples(st.just("table"), TABLES)
)


@given(answer=ANSWERS, name=TEXTS, question=TEXTS, tag=TEXTS, inputs=VALUES)
@example(answer=("json", -0.0), name="a", question="q", tag="t", inputs={"": [1e-320, 1e22]})
def test_any_answer_passes_its_own_case(
    answer: tuple[str, JSONValue], name: str, question: str, tag: str, inputs: JSONValue
) -> None:
    """Whatever the answer and its question hold, what is printed reads back as them and the answer passes."""
    kind, value = answer
    given_sample = sample(value, key_parts={"question": question, "params": {"inputs": {"x": inputs}}})
    candidate = make_candidate([case(given_sample, kind=kind, id=name, tags=(tag,))], None, given_sample)
    is_blank = any(not text or text.isspace() for text in (name, question, tag))
    if is_blank:
        with pytest.raises(CtxfpError, match="no golden file could hold it"):
            check_candidate(case_lines(candidate), candidate, value)
    else:
        check_candidate(case_lines(candidate), candidate, value)


def test_the_check_refuses_a_case_that_its_answer_fails() -> None:
    """A candidate that says something else than the answer is never printed."""
    wrong = Candidate(
        id="a", question="q", inputs={}, tags=(), kind=ResultKind.TEXT, match="exact",
        verdict_field="fresh", expected="x"
    )  # fmt: skip
    lines = ["  - id: a", "    question: q", "    result_kind: text", "    expected: x"]
    check_candidate(lines, wrong, "x")
    with pytest.raises(CtxfpError, match="would not pass its own case"):
        check_candidate(lines, wrong, json.dumps("y"))
