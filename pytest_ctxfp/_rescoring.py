"""An answer of an older report, scored by what is expected today; the agent is not asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._model import GoldenCase, ResultKind, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._report import CaseReport, SampleReport


def is_same_answer(old: SampleReport, new: SampleReport) -> bool:
    """Whether the newer sample is the older one's answer, replayed."""
    if not new.hit or old.key != new.key:
        return False
    return None in (old.recorded_at, new.recorded_at) or old.recorded_at == new.recorded_at


def judge_as_today(before: CaseReport, after: CaseReport) -> tuple[SampleReport, ...] | None:
    """Return the older samples with their verdicts under today's expectation and scorer.

    Returns:
        None where the baseline has no verdict, or where that can't be known: an answer that was cut or not
        kept, a scorer that would have to be asked.
    """
    if not before.fold.has_verdict:
        return None
    judged = [_judge_as_today(sample, before, after) for sample in before.samples]
    known = tuple(sample for sample in judged if sample is not None)
    return known if len(known) == len(judged) else None


def _judge_as_today(sample: SampleReport, before: CaseReport, after: CaseReport) -> SampleReport | None:
    if before.expectation_sha == after.expectation_sha and before.scorer == after.scorer:
        return sample
    for new in after.samples:
        if new.sample == sample.sample and new.state in ("passed", "failed") and is_same_answer(sample, new):
            return new
    return _score_again(sample, before, after)


def _score_again(sample: SampleReport, before: CaseReport, after: CaseReport) -> SampleReport | None:
    if sample.answer_cut or sample.answer is None or before.scorer or after.scorer:
        return None
    if _result_kind(before) != _result_kind(after) or after.expectation is None:
        return None
    from dataclasses import replace

    from pytest_ctxfp._match import score_answer

    try:
        comparison = score_answer(_case_of(after.id, after.expectation), sample.answer)
    except (CtxfpError, ValueError, TypeError, KeyError, RecursionError):
        # It was scored when its report was written; what can't be scored from the file alone is unknown.
        return None
    return replace(sample, state="passed" if comparison.passed else "failed", reason=comparison.reason)


def _result_kind(case: CaseReport) -> JSONValue:
    return (case.expectation or {}).get("result_kind")


def _case_of(case_id: str, expectation: Mapping[str, JSONValue]) -> GoldenCase:
    """Return a case that expects this; it has no question, and needs none to be scored."""
    expected = expectation["expected"]
    kind = ResultKind(str(expectation["result_kind"]))
    tolerance = expectation.get("tolerance")
    min_score = expectation.get("min_score")
    return GoldenCase(
        id=case_id,
        question="",
        result_kind=kind,
        match=str(expectation["match"]),
        expected=_table_of(expected) if kind in (ResultKind.TABLE, ResultKind.VERDICT) else expected,
        tolerance=tolerance if isinstance(tolerance, dict) else {},
        extra_columns=expectation.get("extra_columns") is True,
        verdict_field=str(expectation.get("verdict_field", "fresh")),
        ignore_case=expectation.get("ignore_case") is True,
        min_score=min_score if isinstance(min_score, (int, float)) else None,
    )


def _table_of(value: JSONValue) -> Table:
    table = value if isinstance(value, dict) else {}
    columns, rows = table.get("columns", []), table.get("rows")
    if not isinstance(rows, list) or not isinstance(columns, list):
        message = "not a table"
        raise TypeError(message)
    return Table(
        tuple(map(str, columns)) if "columns" in table else None,
        tuple(tuple(row) if isinstance(row, list) else _refuse_row() for row in rows),
    )


def _refuse_row() -> NoReturn:
    message = "not a row"
    raise TypeError(message)
