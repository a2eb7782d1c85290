"""Files and answers that nobody meant: whatever stands in them, nothing but our own errors comes out."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ctxfp import CaseKey, CtxfpError, Trace, TraceStore, rescore
from pytest_ctxfp._answer import take_answer
from pytest_ctxfp._display import item_name
from pytest_ctxfp._fold import aggregate
from pytest_ctxfp._gate import gate_reports
from pytest_ctxfp._golden import golden_set, load_golden, load_if_golden
from pytest_ctxfp._redaction import Redactor, compile_patterns
from pytest_ctxfp._report_json import report_from_dict, report_from_json, report_to_json
from pytest_ctxfp._report_markdown import report_to_markdown
from pytest_ctxfp._snapshot_file import parse_snapshots, render_snapshots
from pytest_ctxfp._tree_file import SUFFIXES

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

# Numbers, texts and names that break parsers, terminals and file systems.
NASTY_NUMBERS = [
    "1e999999",
    "-1e999999",
    "1e-999999",
    "9" * 5000,
    "-0",
    "0x" + "f" * 4000,
    "1e5",
    ".inf",
    ".nan",
]
NASTY_TEXTS = [
    "",
    " ",
    "\x00",
    "\x1b[2J",
    "\x1b]8;;http://x\x07",
    "\x9b31m",
    "\u202e",
    "\ud800",
    "\udc00",
    "\ufeff",
    "../../x",
    "CON",
    "a" * 300,
    "a/b",
    "~",
    "null",
    "NaN",
    "::",
    "\u2028",
    "\r",
    "\\",
    '"',
    "`|<script>",
    "a\nb",
]
FIELDS = [
    "id",
    "question",
    "tags",
    "match",
    "tolerance",
    "expected",
    "expected_sql",
    "extra_columns",
    "result_kind",
    "verdict_field",
    "ignore_case",
    "inputs",
    "metadata",
    "min_pass_rate",
    "min_score",
    "skip",
    "xfail",
    "marks",
    "timeout",
    "columns",
    "rows",
    "any",
    "numeric",
    "relative",
    "cases",
    "dataset",
    "context_version",
    "<<",
]
WORDS = [
    "set",
    "scalar",
    "ordered",
    "exact",
    "contains",
    "regex",
    "number",
    "subset",
    "text",
    "json",
    "verdict",
]

nasty = st.sampled_from(NASTY_TEXTS) | st.sampled_from(WORDS) | st.text(max_size=8)
keys = st.sampled_from(FIELDS) | nasty
leaves: SearchStrategy[object] = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.sampled_from([10**400, -(10**4000), 0, 1])
    | st.floats()
    | nasty
)
values: SearchStrategy[object] = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
cases = st.fixed_dictionaries(
    {"id": nasty, "question": nasty, "expected": values},
    optional={name: values for name in FIELDS if name not in {"id", "question", "expected"}},
)
yaml_pieces = st.lists(
    st.sampled_from(
        [
            *(f"{name}: " for name in FIELDS),
            *WORDS,
            *NASTY_TEXTS,
            *NASTY_NUMBERS,
            "\n",
            "\n  ",
            "\n- ",
            "- ",
            "{",
            "}",
            "[",
            "]",
            ",",
            ": ",
            "&a ",
            "*a",
            "!!int ",
            "!x ",
            "'",
            "|\n",
            ">-\n",
            "#",
            "---\n",
            "...\n",
            "%TAG ! a\n",
            "? ",
            '"\\ud800"',
            "cases:\n- id: a\n  question: q\n  expected: {rows: [[1]]}\n",
        ]
    ),
    max_size=25,
).map("".join)


def as_json(value: object) -> str:
    """Return JSON as Python writes it, with NaN, and lone surrogates escaped."""
    return json.dumps(value)


def load(data: bytes, suffix: str) -> None:
    """Read a golden file in both ways; an error names the file and can be shown."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"golden{suffix}")
        path.write_bytes(data)
        for read in (load_golden, load_if_golden):
            try:
                golden = read(path)
            except CtxfpError as error:
                golden, told = None, str(error)
            else:
                told = str(path)
            assert told.startswith(str(path))
            names = [item_name(case.id) for case in golden.cases] if golden else []
            assert not unprintable("".join(names))
            assert len(set(names)) == len(names)


@given(text=yaml_pieces | st.text(max_size=60))
@example(text="cases: " + "[" * 5000)
@example(text="cases:\n- {id: a, question: q, min_score: 1e999999, expected: {rows: [[1]]}}\n")
@example(text='cases:\n- {id: "\\ud800", question: q, expected: {rows: [[1]]}}\n')
@example(text="cases:\n- id: ../../x\n  question: CON\n  expected: {rows: [[.inf]]}\n")
@example(text="a: &a [*a]\n")
@example(text="cases:\n- {id: \x00}\n")
@example(
    text="cases:\n- {id: a, question: q, expected: x, result_kind: text, match: regex, min_score: .nan}\n"
)
@example(text="%YAML 9999999999999999999999.1\n---\ncases: []\n")
@example(text='cases: "\\UFFFFFFFF"\n')
def test_any_yaml_is_read_or_refused(text: str) -> None:
    """Whatever stands in a YAML file, it is read or refused by an error that names the file."""
    load(text.encode("utf-8", "surrogatepass"), ".yaml")


@given(data=st.lists(cases, max_size=3) | values)
@example(data=[{"id": "a", "question": "q", "expected": {"rows": [[10**400]]}}])
@example(data=[{"id": "a", "question": "q", "expected": {"rows": [[1]]}, "tolerance": {"numeric": 1e308}}])
@example(data=[{"id": "a", "question": "q", "result_kind": "text", "match": "regex", "expected": "(" * 5000}])
@example(
    data=[{"id": "a", "question": "q", "result_kind": "text", "match": "regex", "expected": "a{4294967296}"}]
)
@example(
    data=[{"id": "a", "question": "q", "result_kind": "text", "match": "number", "expected": "1e999999"}]
)
def test_any_json_is_read_or_refused(data: object) -> None:
    """Whatever JSON holds, it is read or refused, as a file, as lines and from a hook."""
    with contextlib.suppress(ValueError):  # Python itself refuses to write integers beyond 4,300 digits
        load(as_json({"cases": data}).encode(), ".json")
        load("\n".join(map(as_json, data if isinstance(data, list) else [data])).encode(), ".jsonl")
    with contextlib.suppress(CtxfpError):
        golden_set("hook", data if isinstance(data, list) else [data])  # type: ignore[list-item]


@given(data=st.binary(max_size=60), suffix=st.sampled_from(SUFFIXES))
@example(data=b"\xef\xbb\xbf\xef\xbb\xbf", suffix=".yaml")
@example(data=b"\xff\xfe", suffix=".json")
def test_any_bytes_are_read_or_refused(data: bytes, suffix: str) -> None:
    """Whatever bytes a golden file holds, they are read or refused."""
    load(data, suffix)


known = {
    "cost": st.none() | st.sampled_from([0, 0.5, 10**400]),
    "turns": st.integers(0, 9),
    "tool_calls": values,
    "backend": nasty,
    "format": st.just(1),
    "sample": st.integers(0, 3),
    "max_turns": st.integers(0, 3),
    "tier_binding": nasty,
    "params": st.dictionaries(keys, values, max_size=2),
    "raw": nasty,
    "served_model": nasty,
    "status": st.sampled_from(["ok", "unparseable"]),
    "recorded_at": nasty,
    "passed_then": st.booleans(),
    "context": st.dictionaries(keys, values, max_size=2),
    "tokens": st.dictionaries(keys, values, max_size=2),
}
traces = st.fixed_dictionaries(
    {
        "case_id": st.just("a") | nasty,
        "question": st.just("q") | nasty,
        "agent_sha": st.just("s"),
        "model": st.just("m"),
    }
    | {"context_sha": st.just("c"), "result": values, "latency_ms": st.integers(0, 10**9)},
    optional=known,
) | st.fixed_dictionaries(
    {"case_id": nasty, "question": nasty, "latency_ms": values}, optional=dict.fromkeys(known, values)
)
PLAIN = {
    "case_id": "a",
    "agent_sha": "s",
    "model": "m",
    "context_sha": "c",
    "question": "q",
    "result": 1,
    "latency_ms": 1,
}
CASES = [
    {"id": "a", "question": "q", "expected": {"columns": ["n"], "rows": [[1]]}},
    {"id": "a", "question": "q", "result_kind": "text", "match": "number", "expected": 3},
    {"id": "a", "question": "q", "result_kind": "json", "match": "subset", "expected": {"a": [1]}},
    {"id": "a", "question": "q", "result_kind": "verdict", "expected": True},
]


@given(data=traces | values)
@example(data={**PLAIN, "cost": 10**400})
@example(data={**PLAIN, "cost": 1e308, "latency_ms": 10**400})
@example(data={**PLAIN, "result": 10**4000})
@example(data={**PLAIN, "case_id": "another"})
@example(data={**PLAIN, "recorded_at": "9999-12-31T23:59:59+23:59", "model": "other"})
def test_any_trace_is_read_or_refused(data: object) -> None:
    """Whatever stands in the file of a key, it is a hit, or corrupt and named; nothing else is raised."""
    key = CaseKey("a", "q", "s", "m", "c")
    with tempfile.TemporaryDirectory() as folder:
        store = TraceStore(folder, redact=Redactor(compile_patterns(["x+"])))
        with contextlib.suppress(ValueError):
            Path(folder, f"{key.hash()}.json").write_text(as_json(data))
            found = store.lookup(key)
            assert found.trace is None or found.problem is None
            for trace in store.traces():
                assert Trace.from_json(trace.to_json()) == trace
                for case in CASES:
                    rescore(trace, golden_set("x", [case]).cases[0])  # type: ignore[list-item]
            store.nearest(key)
            store.newest("a")
            store.mean_cost("a")


texts = nasty | st.none()
amounts = st.none() | st.sampled_from([0, 1, 10**400, 1e308, 5e-324, 0.5]) | st.integers(0, 10**20)
counts = st.none() | st.integers(0, 10**20) | st.just(10**400)
shares = st.none() | st.floats(0, 1)
fields = {
    "reason": nasty,
    "sample": st.integers(0, 3),
    "origin": st.sampled_from([None, "hit", "miss"]),
    "score": shares,
    "key": texts,
    "key_parts": st.none() | st.dictionaries(keys, values, max_size=2),
    "answer": values,
    "cost": amounts,
    "latency_ms": counts,
    "turns": counts,
    "scorer_cost": amounts,
    "recorded_at": texts,
    "served_model": texts,
    "why": st.lists(nasty, max_size=2),
    "estimated_cost": amounts,
    "rescored": st.booleans(),
}
samples = st.fixed_dictionaries(
    {"state": st.sampled_from(["passed", "failed", "error", "skipped"])}, optional=fields
) | st.fixed_dictionaries({"state": nasty}, optional=dict.fromkeys(fields, values))
reported = {
    "tags": st.lists(nasty, max_size=2),
    "context": st.none() | st.dictionaries(keys, values, max_size=2),
    "expectation": st.none() | st.dictionaries(keys, values, max_size=2),
    "model": nasty,
    "variant": texts,
    "min_pass_rate": shares,
    "position": st.integers(0, 9),
    "file": nasty,
    "scorer": texts,
    "xfail": texts,
}
reports = st.fixed_dictionaries(
    {
        "format": st.just("ctxfp-report"),
        "version": st.just(1),
        "selected_cases": st.integers(0, 9),
        "total_cases": st.integers(0, 9),
        "cases": st.lists(
            st.fixed_dictionaries(
                {"id": nasty, "samples_detail": st.lists(samples, min_size=1, max_size=3)}, optional=reported
            ),
            max_size=3,
        ),
    },
    optional={
        "notes": st.lists(nasty, max_size=2),
        "manifests": st.dictionaries(nasty, st.dictionaries(nasty, nasty, max_size=2), max_size=2) | values,
        "selection": nasty,
        "complete": st.booleans(),
    },
)


def costing(cost: object) -> dict[str, object]:
    """Return a report of twenty answers of a cost and a latency."""
    sample = {
        "state": "passed",
        "origin": "hit",
        "cost": cost,
        "latency_ms": cost,
        "scorer_cost": cost,
        "answer": cost,
    }
    head = {"format": "ctxfp-report", "version": 1, "selected_cases": 1, "total_cases": 1}
    return {**head, "cases": [{"id": "a", "samples_detail": [sample] * 20}]}


@given(data=reports | values)
@example(data=costing(10**308))
@example(data={**costing(None), "notes": [], "manifests": {"a": {"b": float("inf")}}})
@example(data=costing(10**400))
@example(data=costing(1e308))
@example(data={"format": 10**4000, "version": 10**4000})
def test_any_report_is_read_or_refused(data: object) -> None:
    """Whatever a report holds, it is refused by ours, or read, written, gated and shown fit to print."""
    with contextlib.suppress(CtxfpError):
        report = report_from_dict(data)
        text = report_to_json(report)
        assert report_from_json(text) == report
        for shown in (report_to_markdown(report), report_to_markdown(report, gate_reports(report, report))):
            assert shown.replace("\n", "").isprintable() or not unprintable(shown)
            assert "<script" not in shown.replace("`'¦<script>`", "")
        aggregate(case.fold for case in report.cases)


@given(text=st.text(max_size=60))
@example(text="[" * 100_000)
@example(text="9" * 5000)
@example(text='{"format": 1e999999}')
@example(text='{"format": NaN}')
def test_any_text_is_no_report(text: str) -> None:
    """A text that is no report is refused by ours."""
    with pytest.raises(CtxfpError):
        report_from_json(text)


def unprintable(text: str) -> set[str]:
    """Return the characters of a text that would steer a terminal or reorder a line."""
    return {
        char
        for char in text
        if (char != "\n" and (ord(char) < 32 or 0x7F <= ord(char) <= 0x9F or char in "\u061c\u200e\u200f"))
        or "\u202a" <= char <= "\u202e"
        or "\u2066" <= char <= "\u2069"
        or "\ud800" <= char <= "\udfff"
    }


lines = st.sampled_from(
    [
        '{"ctxfp": 1}',
        '{"ctxfp": 2}',
        '{"ctxfp": true}',
        '["a", null]',
        '["a", "0123456789abcdef", 1, 1]',
        "[]",
        '["a", "0123456789abcdef", 1, 1, "## b\\n"]',
        "[1]",
        "{}",
        "",
        "<<<<<<< ours",
        "=======",
        "1,1",
        '"',
        "null",
        '{"key": "k", "sha256": "' + "0" * 64 + '", "bytes": 1, "layers": 1}',
        '["\\ud800", null]',
        "1e999999",
        '{"key": "../../x", "sha256": "' + "0" * 64 + '", "bytes": 1, "layers": 0}',
        "9" * 5000,
        "[" * 3000,
        '{"key": "k", "sha256": "' + "0" * 64 + '", "bytes": 1, "layers": 4611686018427387903}',
        '{"key": "k", "sha256": "' + "0" * 64 + '", "bytes": 1, "layers": ' + "9" * 4000 + "}",
    ]
) | st.text(max_size=20)


@given(parts=st.lists(lines, max_size=8), end=st.sampled_from(["\n", "\r\n", ""]))
@example(parts=['{"ctxfp": 1}', "9" * 5000], end="\n")
def test_any_snapshot_file_is_read_or_refused(parts: list[str], end: str) -> None:
    """Whatever a snapshot file holds, it is refused by ours, or what is read is written back the same."""
    data = end.join(parts).encode("utf-8", "surrogatepass")
    with contextlib.suppress(CtxfpError):
        entries = parse_snapshots(data, path="x.ctxfp")
        assert parse_snapshots(render_snapshots(entries.values()).encode(), path="x.ctxfp") == entries


def is_short(value: object) -> bool:
    """Tell whether Python writes a value as JSON: it refuses integers beyond 4,300 digits."""
    try:
        return bool(as_json(value))
    except ValueError:
        return False


class Evil:
    """An object that raises at whatever it is asked."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)

    def __iter__(self) -> object:
        raise KeyError("\x1b[2J")

    def __str__(self) -> str:
        raise RuntimeError("\ud800")

    __repr__ = __str__


answers: SearchStrategy[object] = (
    values
    | st.binary(max_size=20)
    | st.sampled_from(
        [Evil(), Evil, [Evil()], {"a": Evil()}, {1: 2}, (), {"rows": [[Evil()]]}, object, range(3)]
    )
    | st.builds(lambda value: "```json\n" + as_json(value) + "\n```", values.filter(is_short))
)


@given(returned=answers, kind=st.sampled_from(["table", "verdict", "text", "json"]))
@example(returned=10**5000, kind="json")
@example(returned="9" * 5000, kind="json")
@example(returned='{"rows": [[' + "9" * 5000 + "]]}", kind="table")
@example(returned='{"rows": [["\\ud800"]]}', kind="table")
@example(returned=float("nan"), kind="json")
def test_any_answer_is_taken_or_refused(returned: object, kind: str) -> None:
    """Whatever an agent returns, it is an answer that JSON holds, or ours."""
    with contextlib.suppress(CtxfpError):
        answer = take_answer(returned, kind)
        assert json.loads(json.dumps(answer.value, allow_nan=False)) == answer.value


@given(text=st.text(max_size=60) | nasty, patterns=st.lists(nasty, max_size=2))
@example(text="sk-ant-" + "a" * 20 + "\ud800", patterns=["(?i)A+"])
@example(text="a\nb", patterns=["(?s).*"])
def test_any_text_is_redacted_or_the_pattern_refused(text: str, patterns: list[str]) -> None:
    """Whatever the text and the patterns, line feeds stay, and a bad pattern is a ValueError."""
    with contextlib.suppress(ValueError):
        redacted = Redactor(compile_patterns(patterns))(text)
        assert redacted.count("\n") == text.count("\n")
