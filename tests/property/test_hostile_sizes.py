"""Large files and answers of the worst forms: read or refused in linear time and bounded memory."""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp import CtxfpError, Trace
from pytest_ctxfp._answer import take_answer
from pytest_ctxfp._golden import load_golden
from pytest_ctxfp._redaction import Redactor
from pytest_ctxfp._report_json import report_from_json
from pytest_ctxfp._report_markdown import report_to_markdown
from pytest_ctxfp._snapshot_file import parse_snapshots

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ONE_MB = 1_000_000
MAX_RATIO = 20
PER_VALUE = 450  # bytes: a value of two characters is an object of Python's or two, a tag has its tallies
SMALL_SHARE = ONE_MB  # what caches and a parser's tables may take, whatever is read

CASE = "- {id: a%d, question: q, result_kind: text, match: exact, expected: x}\n"
JSON_CASE = '{"id": "a%d", "question": "q", "result_kind": "text", "match": "exact", "expected": "x"}'
TRACE = (
    '{"case_id": "a", "agent_sha": "s", "model": "m", "context_sha": "c", "question": "q",'
    ' "latency_ms": 1, "result": %s}'
)
SAMPLE = '{"state": "failed", "reason": "r"}'
REPORT = '{"format": "ctxfp-report", "version": 1, "selected_cases": 1, "total_cases": 1, "cases": [%s]}'
REPORTED = '{"id": "a%d", "samples_detail": [' + SAMPLE + "]}"
SHA = "0" * 64


def repeat(unit: str, size: int) -> str:
    """Return a text of about this many characters."""
    return unit * (size // max(len(unit), 1) or 1)


def numbered(form: str, size: int) -> list[str]:
    """Return as many of a numbered form as make up a size."""
    return [form % number for number in range(size // (len(form) + 4) or 1)]


def snapshot_of_rows(row: str, size: int) -> str:
    """Return a snapshot file of one snapshot with many layers."""
    rows = numbered(row, size)
    head = json.dumps({"key": "k", "sha256": SHA, "bytes": 1, "layers": len(rows)})
    return "\n".join(['{"ctxfp": 1}', head, *rows, ""])


def snapshot_of_entries(size: int) -> str:
    """Return a snapshot file of many snapshots."""
    form = '{"key": "k%d", "sha256": "' + SHA + '", "bytes": 1, "layers": 0}'
    return "\n".join(['{"ctxfp": 1}', *numbered(form, size), ""])


YAML: dict[str, Callable[[int], str]] = {
    "cases": lambda size: "cases:\n" + "".join(numbered(CASE, size)),
    "the same id": lambda size: "cases:\n" + repeat(CASE % 1, size),
    "unknown keys": lambda size: "cases:\n- {" + ", ".join(numbered("k%d: 1", size)) + "}\n",
    "one unknown key": lambda size: "cases:\n" + repeat("- {ix: 1}\n", size),
    "no cases": lambda size: "cases:\n" + repeat("- 1\n", size),
    "wide rows": lambda size: (
        f"cases:\n- {{id: a, question: q, expected: {{rows: [{repeat('[1],', size)}]}}}}"
    ),
    "unlike rows": lambda size: (
        "cases:\n- {id: a, question: q, expected: {columns: [a], rows: [" + repeat("[1,2],", size) + "]}}"
    ),
    "deep lists": lambda size: repeat("[", size),
    "deep mappings": lambda size: repeat("{a: ", size),
    "deep blocks": lambda size: "".join(" " * depth + "a:\n" for depth in range(int((2 * size) ** 0.5))),
    "anchors": lambda size: "cases:\n" + "".join(numbered("- &a%d x\n", size)),
    "bomb": lambda size: (
        "a: &a0 [x,x]\n"
        + "".join(f"b{n}: &a{n} [*a{n - 1},*a{n - 1}]\n" for n in range(1, size // 30))
        + "cases: []\n"
    ),
    "aliases": lambda size: "cases: &c\n" + repeat("- *d\n", size),
    "aliases of one scalar": lambda size: "a: &a x\ncases:\n" + repeat("- *a\n", size),
    "a long scalar": lambda size: "cases: " + repeat("x", size),
    "a long number": lambda size: f"cases:\n- {{id: a, question: q, timeout: {repeat('9', size)}}}",
    "a long hex number": lambda size: (
        f"cases:\n- {{id: a, question: q, inputs: {{a: 0x{repeat('f', size)}}}}}"
    ),
    "a huge exponent": lambda size: f"cases:\n- {{id: a, question: q, min_score: 1e{repeat('9', size)}}}",
    "huge numbers": lambda size: (
        f"cases:\n- {{id: a, question: q, inputs: {{a: [{repeat('1e999,', size)}]}}}}"
    ),
    "a huge tolerance": lambda size: (
        f"cases:\n- {{id: a, question: q, tolerance: {{numeric: {repeat('9', size)}}}, expected: x}}"
    ),
    "quotes": lambda size: "cases: " + repeat("'", size),
    "escapes": lambda size: f'cases: "{repeat(chr(92) + "u0041", size)}"',
    "spaces": lambda size: "cases:" + repeat(" ", size),
    "line ends": lambda size: repeat("\n", size),
    "carriage returns": lambda size: "cases:\r" + repeat("\r", size),
    "comments": lambda size: repeat("#\n", size),
    "documents": lambda size: repeat("---\ncases: []\n", size),
    "tags": lambda size: "cases:\n" + repeat("- !x y\n", size),
    "tag directives": lambda size: "".join(numbered("%%TAG !a%d! b\n", size)) + "---\ncases: []\n",
    "old line breaks": lambda size: "cases: [" + repeat("\x85\u2028,", size) + "]",
    "colons": lambda size: repeat(": ", size),
    "questions": lambda size: repeat("? ", size),
    "dashes": lambda size: repeat("- ", size),
    "regex": lambda size: (
        f"cases:\n- {{id: a, question: q, result_kind: text, match: regex, expected: {repeat('(a', size)!r}}}"
    ),
    "a wide regex": lambda size: (
        f"cases:\n- {{id: a, question: q, result_kind: text, match: regex, expected: {repeat('a|', size)!r}}}"
    ),
    "tags of a case": lambda size: (
        f"cases:\n- {{id: a, question: q, tags: [{repeat('t,', size)}], expected: {{rows: [[1]]}}}}"
    ),
    "tolerated columns": lambda size: (
        "cases:\n- {id: a, question: q, expected: {rows: [[1]], columns: ["
        + ",".join(numbered("c%d", size // 2))
        + "]}, tolerance: {columns: {"
        + ",".join(numbered("d%d: 1", size // 2))
        + "}}}\n"
    ),
    "faults of a long id": lambda size: (
        f"cases:\n- {{id: {repeat('x', size // 2)}, question: q, tags: [{repeat('[],', size // 2)}]}}\n"
    ),
    "repeated keys": lambda size: "cases:\n- {" + repeat("a: 1, ", size) + "}",
    "refused keys": lambda size: "cases:\n- {" + repeat("[]: 1, ", size) + "}",
    "marks of a case": lambda size: f"cases:\n- {{id: a, question: q, marks: [{repeat('t ,', size)}]}}",
}

JSON: dict[str, Callable[[int], str]] = {
    "cases": lambda size: f'{{"cases": [{",".join(numbered(JSON_CASE, size))}]}}',
    "repeated keys": lambda size: '{"cases": [{' + repeat('"a": 1, ', size) + '"a": 1}]}',
    "unknown keys": lambda size: '{"cases": [{' + ", ".join(numbered('"k%d": 1', size)) + "}]}",
    "deep lists": lambda size: '{"cases": ' + repeat("[", size),
    "deep closed lists": lambda size: '{"cases": ' + repeat("[", size // 2) + repeat("]", size // 2) + "}",
    "deep objects": lambda size: '{"cases": ' + repeat('{"a":', size),
    "numbers": lambda size: '{"cases": [' + repeat("1,", size) + "1]}",
    "a long number": lambda size: '{"cases": ' + repeat("9", size) + "}",
    "a huge exponent": lambda size: '{"cases": [{"id": "a", "min_score": 1e' + repeat("9", size) + "}]}",
    "objects": lambda size: '{"cases": [' + repeat("{},", size) + "{}]}",
    "lists": lambda size: '{"cases": [[' + repeat("[],", size) + "[]]]}",
    "spaces": lambda size: repeat(" ", size),
    "quotes": lambda size: '{"cases": "' + repeat('\\"', size),
    "surrogates": lambda size: '{"cases": [{"id": "' + repeat("\\ud800", size) + '", "question": "q"}]}',
    "objects with a key": lambda size: '{"cases": [[' + repeat('{"a":1},', size) + "{}]]}",
    "truths": lambda size: '{"cases": [[' + repeat("true,", size) + "true]]}",
    "top entries": lambda size: "{" + ",\n".join(numbered('"k%d": 1', size)) + "}",
}

JSONL: dict[str, Callable[[int], str]] = {
    "cases": lambda size: "\n".join(numbered(JSON_CASE, size)),
    "bad lines": lambda size: repeat("{\n", size),
    "blank lines": lambda size: repeat(" \n", size),
    "numbers": lambda size: repeat("1\n", size),
    "one line": lambda size: repeat("[", size),
    "repeated keys": lambda size: repeat('{"a":1,"a":1}\n', size),
}

VALUES: dict[str, Callable[[int], str]] = {
    "deep lists": lambda size: repeat("[", size),
    "deep closed lists": lambda size: repeat("[", size // 2) + repeat("]", size // 2),
    "deep objects": lambda size: repeat('{"a":', size),
    "a long number": lambda size: repeat("9", size),
    "numbers": lambda size: "[" + repeat("1,", size) + "1]",
    "floats": lambda size: "[" + repeat("1.5,", size) + "1]",
    "huge numbers": lambda size: "[" + repeat("1e999,", size) + "1]",
    "empty objects": lambda size: "[" + repeat("{},", size) + "{}]",
    "empty lists": lambda size: "[" + repeat("[],", size) + "[]]",
    "small objects": lambda size: "[" + repeat('{"a":1},', size) + "{}]",
    "repeated keys": lambda size: "{" + repeat('"a": 1, ', size) + '"a": 1}',
    "keys": lambda size: "{" + ", ".join(numbered('"k%d": 1', size)) + "}",
    "a text": lambda size: json.dumps(repeat("x", size)),
    "escapes": lambda size: '"' + repeat("\\u0001", size) + '"',
    "surrogates": lambda size: '"' + repeat("\\ud800", size) + '"',
    "spaces": lambda size: repeat(" ", size),
    "nothing": lambda size: repeat("", size),
}

SNAPSHOT: dict[str, Callable[[int], str]] = {
    "layers": lambda size: snapshot_of_rows('["a%d", "0123456789abcdef", 1, 1]', size),
    "ignored layers": lambda size: snapshot_of_rows('["a%d", null]', size),
    "bad layers": lambda size: snapshot_of_rows('["a%d", 1]', size),
    "headers": lambda size: snapshot_of_rows('["a%d", null, null, null, "## x\\n"]', size),
    "snapshots": snapshot_of_entries,
    "the same snapshot": lambda size: (
        '{"ctxfp": 1}\n' + repeat('{"key": "k", "sha256": "' + SHA + '", "bytes": 1, "layers": 0}\n', size)
    ),
    "line ends": lambda size: '{"ctxfp": 1}\n' + repeat("\n", size),
    "numbers": lambda size: '{"ctxfp": 1}\n' + repeat("1\n", size),
    "empty lists": lambda size: '{"ctxfp": 1}\n' + repeat("[]\n", size),
    "commas": lambda size: '{"ctxfp": 1}\n' + repeat("1,1\n", size),
    "deep lists": lambda size: '{"ctxfp": 1}\n' + repeat("[", size),
    "a long number": lambda size: '{"ctxfp": ' + repeat("9", size) + "}",
    "carriage returns": lambda size: repeat("\r\n", size),
    "equals signs": lambda size: repeat("=", size),
    "too many layers": lambda size: (
        f'{{"ctxfp": 1}}\n{{"key": "k", "sha256": "{SHA}", "bytes": 1, "layers": {10**17}}}'
        + repeat("\n[1]", size)
    ),
    "not UTF-8": lambda size: repeat("\udcff", size),
}

REPORTS: dict[str, Callable[[int], str]] = {
    **VALUES,
    "cases": lambda size: REPORT % ",".join(numbered(REPORTED, size)),
    "samples": lambda size: (
        REPORT % ('{"id": "a", "samples_detail": [' + repeat(SAMPLE + ",", size) + SAMPLE + "]}")
    ),
    "tags": lambda size: (
        REPORT
        % (
            '{"id": "a", "tags": ["t", '
            + ", ".join(numbered('"t%d"', size))
            + '], "samples_detail": ['
            + SAMPLE
            + "]}"
        )
    ),
    "a long reason": lambda size: (
        REPORT
        % ('{"id": "a", "samples_detail": [{"state": "failed", "reason": "' + repeat("`|x", size) + '"}]}')
    ),
    "no cases": lambda size: REPORT % (repeat("1,", size) + "1"),
    "a deep answer": lambda size: (
        REPORT % ('{"id": "a", "samples_detail": [{"state": "failed", "answer": ' + repeat("[", size))
    ),
    "ids": lambda size: (
        REPORT % repeat('{"id": "a", "samples_detail": [{"state": "passed"}]},', size).rstrip(",")
    ),
    "a huge cost": lambda size: (
        REPORT
        % (
            '{"id": "a", "samples_detail": [{"state": "failed", "cost": '
            + repeat("9", min(size, 4000))
            + "}]}"
        )
    ),
}

ANSWERS: dict[str, Callable[[int], str]] = {
    **VALUES,
    "braces": lambda size: repeat("{ ", size),
    "braces with quotes": lambda size: repeat('{"', size),
    "braces with keys": lambda size: repeat('{"a":', size),
    "braces with long keys": lambda size: repeat('{"' + "a" * 1000, size),
    "objects cut off": lambda size: repeat('{"a":[1,{"b":"', size),
    "backslashes": lambda size: '{"a":"' + repeat("\\", size),
    "quotes": lambda size: '{"a":"' + repeat('\\"', size),
    "fences": lambda size: repeat("```\n", size),
    "fences of growing length": lambda size: "".join("`" * n + "\n" for n in range(int((2 * size) ** 0.5))),
    "fenced tables": lambda size: repeat('```json\n{"rows":[[1]]}\n```\n', size),
    "tables": lambda size: repeat('{"rows":[[1]]} ', size),
    "a table of cells": lambda size: '{"rows":[' + repeat("[1],", size) + "[1]]}",
    "long fence": lambda size: repeat("`", size),
    "unclosed fences": lambda size: repeat("~~~ x\n", size),
    "tabs": lambda size: repeat("\t\n", size),
    "carriage returns": lambda size: repeat("\r", size),
}

SECRETS: dict[str, Callable[[int], str]] = {
    "words": lambda size: repeat("select count(*) from orders where sha = '3f9c1a2b4d5e6f70';\n", size),
    "short keys": lambda size: repeat("sk-ant-", size),
    "keys": lambda size: repeat("sk-ant-api03-" + "x" * 20 + " ", size),
    "a long key": lambda size: "sk-" + repeat("a", size),
    "dashed starts": lambda size: repeat("-sk-", size),
    "slack": lambda size: repeat("xoxb-", size),
    "token starts": lambda size: repeat("eyJaaaaaaaa-", size),
    "token halves": lambda size: repeat("eyJaaaaaaaa.", size),
    "token parts": lambda size: repeat("eyJaaaaaaaa.eyJaaaaaaaa ", size),
    "bearers": lambda size: repeat("Bearer ", size),
    "a long bearer": lambda size: "Bearer " + repeat("a", size),
    "bearer spaces": lambda size: "Bearer" + repeat(" ", size),
    "key begins": lambda size: repeat("-----BEGIN PRIVATE KEY-----", size),
    "key begins apart": lambda size: repeat("-----BEGIN PRIVATE KEY-----" + "x " * 190, size),
    "key begins with a body": lambda size: repeat("-----BEGIN PRIVATE KEY-----" + "x" * 24 + " ", size),
    "a long private key": lambda size: "-----BEGIN PRIVATE KEY-----\n" + repeat("x" * 64 + "\n", size),
    "a private key of dashes": lambda size: "-----BEGIN PRIVATE KEY-----" + "x" * 24 + repeat("-x", size),
    "labels": lambda size: "PRIVATE KEY" + repeat("-----BEGIN A A A ", size),
    "dashes": lambda size: "PRIVATE KEY" + repeat("-", size),
}


def read_golden(data: bytes, folder: Path, suffix: str) -> None:
    """Read a golden file; a fault is one of ours, and its text is never many times the file."""
    path = folder / f"golden{suffix}"
    path.write_bytes(data)
    with contextlib.suppress(CtxfpError):
        load_golden(path)


def read_trace(text: str) -> None:
    """Read a trace whose result is this."""
    with contextlib.suppress(ValueError):
        Trace.from_json(TRACE % text).to_json()


def read_report(text: str) -> None:
    """Read a report and write it as Markdown."""
    with contextlib.suppress(CtxfpError):
        assert len(report_to_markdown(report_from_json(text))) <= 60_000


def take(text: str, kind: str) -> None:
    """Look for an answer in a text."""
    take_answer(text, kind)


def parse_snapshot(text: str) -> None:
    """Read a snapshot file."""
    with contextlib.suppress(CtxfpError):
        parse_snapshots(encoded(text), path="x.ctxfp")


def redact(text: str) -> None:
    """Leave secrets out of a text."""
    Redactor()(text)


def encoded(text: str) -> bytes:
    """Return a text's bytes; lone surrogates stand for bytes that are no UTF-8."""
    return text.encode("utf-8", "surrogateescape")


KINDS: dict[str, tuple[dict[str, Callable[[int], str]], Callable[[str, Path], None]]] = {
    "golden YAML": (YAML, lambda text, folder: read_golden(encoded(text), folder, ".yaml")),
    "golden JSON": (JSON, lambda text, folder: read_golden(encoded(text), folder, ".json")),
    "golden JSONL": (JSONL, lambda text, folder: read_golden(encoded(text), folder, ".jsonl")),
    "trace": (VALUES, lambda text, _: read_trace(text)),
    "snapshot": (SNAPSHOT, lambda text, _: parse_snapshot(text)),
    "report": (REPORTS, lambda text, _: read_report(text)),
    "answer, a table": (ANSWERS, lambda text, _: take(text, "table")),
    "answer, JSON": (ANSWERS, lambda text, _: take(text, "json")),
    "secrets": (SECRETS, lambda text, _: redact(text)),
}


HUNGRIEST = {
    "golden YAML": "one unknown key",
    "golden JSON": "objects with a key",
    "golden JSONL": "numbers",
    "trace": "small objects",
    "snapshot": "too many layers",
    "report": "tags",
    "answer, a table": "small objects",
    "secrets": "keys",
}


@pytest.mark.parametrize(
    ("kind", "form", "size"),
    [
        *((kind, form, ONE_MB // 10) for kind, (forms, _) in KINDS.items() for form in forms),
        *((kind, form, ONE_MB // 4) for kind, form in HUNGRIEST.items()),
    ],
)
def test_a_large_input_is_read_or_refused_within_memory(
    kind: str, form: str, size: int, tmp_path: Path
) -> None:
    """Much of any form ends, raises only ours, and takes 20 times its size or 450 bytes a value."""
    forms, read = KINDS[kind]
    text = forms[form](size)
    read(forms[form](100), tmp_path)  # what is loaded once is not what is measured
    tracemalloc.start()
    try:
        read(text, tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    n_values = sum(map(text.count, ",:[{\n"))
    assert peak <= max(MAX_RATIO * len(text), PER_VALUE * n_values) + SMALL_SHARE


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".yaml", "cases:\n" + "- 1\n" * 2_000),
        (".yaml", "cases:\n" + "- !x y\n" * 2_000),
        (".json", '{"cases": [' + "1," * 2_000 + "1]}"),
        (".jsonl", JSON_CASE % 1 + "\n" + "{\n" * 2_000),
        (".yaml", "cases:\n- {id: a, question: q, tags: [" + "[]," * 2_000 + "], expected: {rows: [[1]]}}\n"),
    ],
)
def test_of_many_faults_the_first_are_told(suffix: str, text: str, tmp_path: Path) -> None:
    """A file with a fault in each line tells a thousand of them, and that there may be more."""
    path = tmp_path / f"golden{suffix}"
    path.write_text(text)
    with pytest.raises(CtxfpError) as caught:
        load_golden(path)
    told = str(caught.value).splitlines()
    assert len(told) == 1_001
    assert told[-1].endswith("1,000 faults are listed, and the rest was not checked: mend these first")


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".yaml", "cases:\n" + "- 1\n" * 500_000),
        (".json", '{"cases": [' + "1," * 500_000 + "1]}"),
        (".json", '{"cases": [[' + "[]," * 500_000 + "1]]}"),
        (".jsonl", "1\n" * 500_001),
    ],
)
def test_a_file_of_too_many_values_is_refused(suffix: str, text: str, tmp_path: Path) -> None:
    """More than 500,000 values are refused in one line that says so."""
    path = tmp_path / f"golden{suffix}"
    path.write_text(text)
    with pytest.raises(CtxfpError, match="more than 500,000 values") as caught:
        load_golden(path)
    assert len(str(caught.value).splitlines()) == 1
