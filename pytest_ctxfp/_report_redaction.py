"""Reports without secrets. Hashes and what names a case stay, so that cases and keys are found again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ctxfp._redaction import REDACTED, redact_fingerprint
from pytest_ctxfp._texts import map_texts
from pytest_ctxfp._trace import OPEN_PARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._report import CaseReport, RunReport, SampleReport

    Redact = Callable[[str], str]


def redact_run(report: RunReport, redact: Redact) -> RunReport:
    """Return a report without secrets; one without any comes back equal.

    Raises:
        ValueError: a value nested too deep.
    """
    return replace(
        report,
        cases=tuple(redact_case(case, redact) for case in report.cases),
        texts={digest: redact(text) for digest, text in report.texts.items()},
        notes=tuple(map(redact, report.notes)),
    )


def redact_case(case: CaseReport, redact: Redact) -> CaseReport:
    """Return a case without secrets.

    Of an expectation that holds one, what is expected is left out too: no older answer can be scored by it.

    Raises:
        ValueError: a value nested too deep.
    """
    return replace(
        case,
        question=None if case.question is None else redact(case.question),
        xfail=None if case.xfail is None else redact(case.xfail),
        expectation=_redact_expectation(case.expectation, redact),
        context=None if case.context is None else redact_fingerprint(case.context, redact),
        metadata=_redact_mapping(case.metadata, redact),
        samples=tuple(_redact_sample(sample, redact) for sample in case.samples),
        confirming=tuple(_redact_sample(sample, redact) for sample in case.confirming),
    )


def _redact_sample(sample: SampleReport, redact: Redact) -> SampleReport:
    return replace(
        sample,
        reason=redact(sample.reason),
        key_parts=None if sample.key_parts is None else _redact_parts(sample.key_parts, redact),
        answer=map_texts(sample.answer, redact),
        served_model=None if sample.served_model is None else redact(sample.served_model),
        why=tuple(map(redact, sample.why)),
    )


def _redact_parts(parts: Mapping[str, JSONValue], redact: Redact) -> dict[str, JSONValue]:
    return {name: map_texts(part, redact) if name in OPEN_PARTS else part for name, part in parts.items()}


def _redact_mapping(mapping: Mapping[str, JSONValue], redact: Redact) -> dict[str, JSONValue]:
    redacted = map_texts(dict(mapping), redact)
    assert isinstance(redacted, dict)
    return redacted


def _redact_expectation(
    expectation: Mapping[str, JSONValue] | None, redact: Redact
) -> Mapping[str, JSONValue] | None:
    if expectation is None:
        return None
    kept = {name: part for name, part in expectation.items() if map_texts(part, redact) == part}
    if len(kept) < len(expectation):
        kept.pop("expected", None)
    return kept


def strip_case(case: CaseReport) -> CaseReport:
    """Return what a report says of a case where its texts can't be searched: names, verdicts and figures."""
    return replace(
        case,
        question=None,
        xfail=None if case.xfail is None else REDACTED,
        expectation=None,
        context=None,
        metadata={},
        samples=tuple(map(_strip_sample, case.samples)),
        confirming=tuple(map(_strip_sample, case.confirming)),
    )


def _strip_sample(sample: SampleReport) -> SampleReport:
    return replace(sample, reason="", key_parts=None, answer=None, served_model=None, why=())
