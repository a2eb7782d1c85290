"""Reports without secrets: what is left out, and what must stay as it is."""

from __future__ import annotations

import pytest

from pytest_ctxfp._redaction import Redactor, compile_patterns, redact_fingerprint
from pytest_ctxfp._report import CaseReport, RunReport, SampleReport
from pytest_ctxfp._report_redaction import redact_case, redact_run, strip_case

HASH = "0123456789abcdef0123456789abcdef01234567"
redact = Redactor(compile_patterns(["hunter[0-9]", "[0-9a-f]{40}"]))

SAMPLE = SampleReport(
    state="failed",
    reason="got hunter2",
    key=HASH,
    key_parts={"agent_sha": HASH, "model": "m", "question": "hunter2?", "params": {"inputs": ["hunter2"]}},
    answer={"hunter2": ["hunter2", 1.5, None]},
    served_model="hunter2",
    why=("context: hunter2",),
)
CASE = CaseReport(
    id="a",
    file="golden.yaml",
    xfail="until hunter2",
    expectation_sha=HASH,
    expectation={"result_kind": "text", "match": "exact", "expected": "x", "tolerance": {"hunter2": 1}},
    context={
        "layers": {"hunter2": {"hash": HASH, "bytes": 1, "lines": 1, "header": "# hunter2\n"}},
        "order": ["hunter2"],
        "full_hash": HASH,
        "total_bytes": 1,
        "lines_sha": HASH,
    },
    metadata={"owner": "hunter2"},
    samples=(SAMPLE,),
    confirming=(SAMPLE,),
)


def test_texts_are_redacted_and_hashes_stay() -> None:
    """A pattern that fits hashes too changes none by which keys, files or layers are told apart."""
    case = redact_case(CASE, redact)
    sample = case.samples[0]
    assert "hunter2" not in repr(case)
    assert (sample.key, case.expectation_sha) == (HASH, HASH)
    assert sample.key_parts == {
        "agent_sha": HASH,
        "model": "m",
        "question": "[redacted]?",
        "params": {"inputs": ["[redacted]"]},
    }
    assert sample.answer == {"[redacted]": ["[redacted]", 1.5, None]}
    assert case.context == {
        "layers": {"[redacted]": {"hash": HASH, "bytes": 1, "lines": 1, "header": "# [redacted]\n"}},
        "order": ["[redacted]"],
        "full_hash": HASH,
        "total_bytes": 1,
        "lines_sha": HASH,
    }
    assert case.expectation == {"result_kind": "text", "match": "exact"}
    assert case.confirming == case.samples


def test_a_second_time_changes_nothing() -> None:
    """A baseline that was written without secrets is read as it is."""
    report = redact_run(RunReport(cases=(CASE,), notes=("hunter2",)), redact)
    assert report.notes == ("[redacted]",)
    assert redact_run(report, redact) == report


def test_a_report_without_secrets_stays() -> None:
    """What holds no secret comes back equal, the expectation whole."""
    report = RunReport(cases=(CASE,), notes=("hunter2",))
    assert redact_run(report, Redactor()) == report


def test_stripped_cases_keep_names_and_verdicts() -> None:
    """Without its texts a case is still told apart and counted."""
    case = strip_case(CASE)
    assert "hunter2" not in repr(case)
    assert (case.id, case.fold.state, case.samples[0].key) == ("a", "failed", HASH)
    assert case.xfail is not None


def test_values_nested_too_deep_are_refused() -> None:
    """An answer that can't be searched raises, it is not passed on."""
    answer: list[object] = []
    for _ in range(100_000):
        answer = [answer]
    case = CaseReport(id="a", samples=(SampleReport(state="passed", answer=answer),))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="nested too deep"):
        redact_case(case, redact)


def test_a_fingerprint_of_any_form_is_searched() -> None:
    """Layers and an order of other types than ours hide nothing."""
    data = {"layers": {"x": ["hunter2"]}, "order": "hunter2", "more": "hunter2"}
    assert "hunter2" not in repr(redact_fingerprint(data, redact))
    assert "hunter2" not in repr(redact_fingerprint({"layers": ["hunter2"], "order": [["hunter2"]]}, redact))
