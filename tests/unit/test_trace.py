from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from pytest_ctxfp._key import CaseKey
from pytest_ctxfp._trace import Trace

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "trace_file.jsonl").read_text("utf-8").split("\n")
    if line
]
REQUIRED = {
    "case_id": "q1",
    "agent_sha": "A",
    "model": "opus",
    "context_sha": "C",
    "question": "how many?",
    "result": {"columns": ["n"], "rows": [[42]]},
    "latency_ms": 20,
}
KEY = CaseKey("q1", "how many?", "A", "opus", "C")


def make_trace(**parts) -> Trace:
    """Return a trace with some fields of one's own."""
    return Trace(**{**REQUIRED, **parts})


def make_text(**parts) -> str:
    """Return the text of a file with the required fields and some of one's own."""
    return json.dumps({**REQUIRED, **parts})


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vectors(vector):
    """A file loads, with its result and question untouched, or is a ValueError."""
    text = vector["input"]["file_text"]
    if not vector["expected"]["loads"]:
        with pytest.raises(ValueError, match=r"."):
            Trace.from_json(text)
        return
    trace = Trace.from_json(text)
    assert json.dumps(trace.result) == json.dumps(json.loads(text)["result"])
    assert trace.question == json.loads(text)["question"]


FULL = {
    "context_version": "shop@1",
    "sql_executed": "select 1",
    "cost": 0.5,
    "turns": 3,
    "tool_calls": [{"name": "x"}],
    "backend": "vercel",
    "sample": 2,
    "max_turns": 8,
    "tier_binding": "a=b",
    "params": {"inputs": {"b": 1, "a": 2}},
    "raw": "```json\n{}\n```",
    "status": "unparseable",
    "recorded_at": "2026-01-02T03:04:05Z",
    "recorded_by": "pytest-ctxfp 0.1.0",
    "served_model": "opus-1",
    "expectation_sha": "E",
    "passed_then": False,
    "context": {"layers": {}},
    "tokens": {"input": 5},
}


def test_file_text():
    """The file is JSON, a field a line, Warble's fields first, a line feed at the end."""
    assert make_trace(result={"é": ["\u2028", 1.0]}, raw="a\nb").to_json() == (
        "{\n"
        '  "case_id": "q1",\n'
        '  "agent_sha": "A",\n'
        '  "model": "opus",\n'
        '  "context_version": null,\n'
        '  "context_sha": "C",\n'
        '  "question": "how many?",\n'
        '  "sql_executed": null,\n'
        '  "result": {"é": ["\u2028", 1.0]},\n'
        '  "cost": null,\n'
        '  "latency_ms": 20,\n'
        '  "turns": null,\n'
        '  "tool_calls": null,\n'
        '  "backend": "claude-code-cli",\n'
        '  "format": 1,\n'
        '  "sample": 0,\n'
        '  "max_turns": null,\n'
        '  "tier_binding": null,\n'
        '  "params": null,\n'
        '  "raw": "a\\nb",\n'
        '  "status": "ok",\n'
        '  "recorded_at": null,\n'
        '  "recorded_by": null,\n'
        '  "served_model": null,\n'
        '  "expectation_sha": null,\n'
        '  "passed_then": null,\n'
        '  "sql_gave_answer": null,\n'
        '  "context": null,\n'
        '  "tokens": null\n'
        "}\n"
    )


def test_round_trip_of_every_field():
    """What is written is read back, and written again to the same text."""
    trace = make_trace(**FULL)
    again = Trace.from_json(trace.to_json())
    assert again == trace
    assert again.to_json() == trace.to_json()
    assert pickle.loads(pickle.dumps(trace)) == trace


def test_defaults_of_absent_fields():
    """Absent is not zero: cost and turns are None."""
    trace = Trace.from_json(make_text())
    assert (trace.cost, trace.turns, trace.backend, trace.status) == (None, None, "claude-code-cli", "ok")
    assert trace.absent_parts == {"sample", "backend", "max_turns", "tier_binding", "params"}
    assert trace == make_trace()


def test_absent_parts_stay_absent():
    """A file written again doesn't state parts that the original did not."""
    text = Trace.from_json(make_text(max_turns=None)).to_json()
    assert "max_turns" in json.loads(text)
    assert not {"sample", "backend", "tier_binding", "params"} & json.loads(text).keys()


@pytest.mark.parametrize("name", sorted(REQUIRED))
def test_required_fields(name):
    """A missing required field is an error that names it."""
    data = {key: value for key, value in REQUIRED.items() if key != name}
    with pytest.raises(ValueError, match=f"has no '{name}'"):
        Trace.from_json(json.dumps(data))


def test_null_result_loads():
    """A result may be anything, null too; it may not be missing."""
    assert Trace.from_json(make_text(result=None)).result is None


WRONG = [
    *[(name, value) for name in ("case_id", "question", "backend") for value in (None, 1, [], {}, True)],
    *[(name, value) for name in ("sql_executed", "raw", "recorded_at", "tier_binding") for value in (1, [])],
    *[("cost", value) for value in (-0.01, "1", True, [])],
    *[(name, value) for name in ("latency_ms", "sample") for value in (None, -1, 1.0, "1", True)],
    *[(name, value) for name in ("turns", "max_turns") for value in (-1, 1.0, "1", False)],
    *[("format", value) for value in (None, 0, 2, "1", True)],
    *[("status", value) for value in (None, "", "OK", "error", 1)],
    *[("passed_then", value) for value in (0, 1, "true")],
    *[(name, value) for name in ("params", "context", "tokens") for value in ([], "x", 1, True)],
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_wrong_types(name, value):
    """A field of a wrong type makes the file unloadable, with the field named."""
    with pytest.raises(ValueError, match=f"'{name}' is "):
        Trace.from_json(make_text(**{name: value}))


def test_newer_format_says_what_to_do():
    """A file of a later version tells to update."""
    with pytest.raises(ValueError, match="'format' is 2, and this version reads 1: update pytest-ctxfp"):
        Trace.from_json(make_text(format=2))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "null",
        "[]",
        '"x"',
        make_text() + "x",
        make_text() + make_text(),
        make_text()[:-1],
        "\ufeff" + make_text(),
        make_text(cost=float("nan")),
        make_text(result=float("inf")),
        make_text(result=0.5).replace("0.5", "1e999999"),
        make_text(result=0.5).replace("0.5", "-1e400"),
        make_text(cost=0.5).replace("0.5", "1e999"),
        make_text(result=5).replace("5", "9" * 5000),
        make_text(result=5).replace("5", "[" * 200_000),
        make_text(result=5).replace("5", "[" * 200_000 + "]" * 200_000),
        "'" + make_text() + "'",
        "\0",
    ],
    ids=lambda text: text[:10],
)
def test_texts_that_are_no_trace(text):
    """Anything else is a ValueError with a short reason, never another exception."""
    with pytest.raises(ValueError, match=r"not JSON|not an object") as raised:
        Trace.from_json(text)
    assert len(str(raised.value)) < 200


def test_reasons_stay_short():
    """A reason shows no megabytes."""
    with pytest.raises(ValueError, match="'model' is") as raised:
        Trace.from_json(make_text(model=["x" * 10_000_000]))
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    "text", ["\ud800", "a\udfffb", "\udc00\ud800", "é\ud83d é", "\ud83d \ude00"], ids=ascii
)
def test_lone_surrogates_round_trip(text):
    """They are escaped, so the file is UTF-8, and come back."""
    trace = make_trace(question=text, result={text: [text]}, raw=text)
    stored = trace.to_json().encode("utf-8")
    assert Trace.from_json(stored.decode("utf-8")) == trace


def test_two_surrogates_are_read_as_their_character():
    """JSON can't tell them apart, and verification knows."""
    trace = Trace.from_json(make_trace(question="\ud83d\ude00").to_json())
    assert trace.question == "\U0001f600"
    assert trace.mismatch(replace(KEY, question="\ud83d\ude00")) is None
    assert trace.mismatch(replace(KEY, question="\U0001f600")) is None
    assert trace.mismatch(replace(KEY, question="\ud83d")) == "question"


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("-inf"), {1, 2}, b"x", object(), 10**5000],
    ids=lambda value: type(value).__name__,
)
def test_values_that_json_cannot_hold(value):
    """Writing them is a ValueError that names the field."""
    with pytest.raises(ValueError, match="'result' of a trace is no JSON value"):
        make_trace(result=[value]).to_json()


def test_any_mapping_is_written_as_an_object():
    """A read-only mapping, as annotated, can be written."""
    trace = make_trace(tokens=MappingProxyType({"input": 1}))
    assert Trace.from_json(trace.to_json()).tokens == {"input": 1}


def test_key_parts_are_the_keys():
    """A trace for a key states exactly the key's parts."""
    key = replace(KEY, sample=3, backend="vercel", max_turns=2, tier_binding="a=b", params={"inputs": [1]})
    assert make_trace().for_key(key).key_parts() == key.parts()
    assert make_trace().for_key(KEY).key_parts() == KEY.parts()
    assert make_trace().for_key(key).mismatch(key) is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"case_id": "x"}, "case_id"),
        ({"question": "x", "model": "y"}, "question"),
        ({"agent_sha": "x"}, "agent_sha"),
        ({"model": "x"}, "model"),
        ({"context_sha": "x"}, "context_sha"),
        ({"sample": 1}, "sample"),
        ({"backend": "vercel"}, "backend"),
        ({"max_turns": 0}, "max_turns"),
        ({"tier_binding": "a=b"}, "tier_binding"),
        ({"params": {"inputs": 1}}, "inputs"),
    ],
)
def test_mismatch(changes, expected):
    """The first stated part that differs is named, whichever side has it."""
    key = replace(KEY, **changes)
    assert make_trace().mismatch(KEY) is None
    assert make_trace().mismatch(key) == expected
    assert replace(make_trace(), **changes).mismatch(KEY) == expected


def test_parts_that_a_file_lacks_are_not_compared():
    """Warble's files have no sample, turns, tiers or params."""
    key = replace(KEY, sample=1, backend="vercel", max_turns=2, tier_binding="a=b", params={"x": 1})
    assert Trace.from_json(make_text()).mismatch(key) is None
    assert Trace.from_json(make_text(max_turns=None)).mismatch(key) == "max_turns"
    assert Trace.from_json(make_text(backend="claude-code-cli")).mismatch(key) == "backend"
    assert Trace.from_json(make_text(params={})).mismatch(KEY) is None


def test_params_differ_as_json_values():
    """1, 1.0 and true are three values."""
    trace = make_trace(params={"x": 1})
    assert trace.mismatch(replace(KEY, params={"x": True})) == "x"
    assert trace.differences(replace(KEY, params={"x": 1.0, "y": 2}, model="m")) == ("model", "x", "y")


def mask(text: str) -> str:
    """Take a known secret out of a text."""
    return text.replace("hunter2", "[redacted]")


def test_redaction():
    """Every text that may hold a secret is passed through, keys and nested values too."""
    secret = {"hunter2": ["a hunter2", {"b": "hunter2"}, 5, None]}
    trace = make_trace(
        question="hunter2", result=secret, raw="hunter2", sql_executed="hunter2", tool_calls=secret,
        params=secret, context=secret,
    ).redacted(mask)  # fmt: skip
    assert "hunter2" not in trace.to_json()
    assert trace.result == {"[redacted]": ["a [redacted]", {"b": "[redacted]"}, 5, None]}


def test_redacted_traces_verify():
    """A trace is compared with the key's parts as they would be written."""
    key = replace(KEY, question="is it hunter2?", params={"inputs": {"password": "hunter2"}})
    trace = make_trace(question=key.question).for_key(key).redacted(mask)
    assert trace.mismatch(key, redact=mask) is None
    assert trace.mismatch(key) == "question"
    assert trace.mismatch(replace(key, question="is it?"), redact=mask) == "question"


def test_redaction_of_deep_values():
    """A value nested deeper than the stack is a ValueError."""
    value = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ValueError, match="nested too deep"):
        make_trace(result=value).redacted(mask)
