"""Outcomes as a report and a run's records have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_ctxfp._display import escape_surrogates
from pytest_ctxfp._hashing import canonical_json
from pytest_ctxfp._match import has_own_scorer
from pytest_ctxfp._records import add_known, add_notes, add_why, case_facts
from pytest_ctxfp._report import CaseReport, SampleReport
from pytest_ctxfp._suite import expectation_dict, expectation_sha

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ctxfp._model import GoldenCase, JSONValue
    from pytest_ctxfp._records import CaseRecord
    from pytest_ctxfp._report import Origin
    from pytest_ctxfp._runner import Outcome

_MAX_EXPECTATION = 64 * 1024


def sample_report(outcome: Outcome) -> SampleReport:
    """Return one scored answer as a report has it."""
    trace, judgement = outcome.trace, outcome.judgement
    return SampleReport(
        state="passed" if outcome.comparison.passed else "failed",
        reason=outcome.comparison.reason,
        sample=outcome.key.sample,
        origin=origin_of(outcome),
        rescored=outcome.rescored,
        score=outcome.comparison.score,
        key=outcome.key.hash(),
        key_parts=outcome.key.parts(),
        answer=outcome.answer,
        cost=trace.cost,
        latency_ms=trace.latency_ms,
        turns=trace.turns,
        scorer_cost=None if judgement is None or judgement.hit else judgement.cost,
        recorded_at=trace.recorded_at,
        served_model=trace.served_model,
        why=tuple(part.what for part in outcome.why),
    )


def origin_of(outcome: Outcome) -> Origin:
    """Return where an answer came from."""
    if outcome.hit:
        return "hit"
    if outcome.refreshed:
        return "refreshed"
    return "miss" if outcome.is_cached else "uncached"


def outcome_record(outcome: Outcome) -> CaseRecord:
    """Return the facts of a scored answer."""
    trace = outcome.trace
    record: CaseRecord = {
        **case_facts(outcome.case),
        "state": origin_of(outcome),
        "passed": outcome.comparison.passed,
        "rescored": outcome.rescored,
        "reason": escape_surrogates(outcome.comparison.reason),
        "model": escape_surrogates(trace.model),
        "latency_ms": trace.latency_ms,
    }
    add_known(
        record,
        passed_then=trace.passed_then,
        served_model=trace.served_model,
        cost=trace.cost,
        turns=trace.turns,
        recorded_at=trace.recorded_at,
        key=outcome.key.hash() if outcome.is_cached else None,
        corrupt=outcome.corrupt,
        unstored=outcome.unstored,
        score=outcome.comparison.score,
        served_then=outcome.served_then,
    )
    add_why(record, outcome.why)
    add_notes(record, outcome.notes)
    if has_own_scorer(outcome.case):
        record["scorer"] = escape_surrogates(outcome.case.match)
    if outcome.judgement is not None:
        record["judge_hit"] = outcome.judgement.hit
        add_known(record, judge_cost=outcome.judgement.cost)
    return record


class CasePlace(NamedTuple):
    """Which case of which file ran under what: what tells the cases of a report apart.

    Attributes:
        file: the golden file, relative to the rootdir, with ``/``.
        position: 0-based place in that file.
        model: label of the model.
        variant: label of the assembler's variant, or None.
        test: the Python test that ran it, or None for a golden item.
    """

    file: str
    position: int
    model: str
    variant: str | None
    test: str | None


def case_report(
    case: GoldenCase,
    *,
    place: CasePlace,
    samples: Sequence[SampleReport],
    confirming: Sequence[SampleReport] = (),
    outcome: Outcome | None = None,
) -> CaseReport:
    """Return a case as a report has it.

    Args:
        case: the golden case.
        place: where it stands, and what it ran under.
        samples: the answers that make the verdict.
        confirming: answers that only weigh a flip.
        outcome: the first of the scored answers, if there is one: it knows the context and the scorer.
    """
    if outcome is not None:
        case = outcome.case  # what its SQL expects is known by now
    expectation: dict[str, JSONValue] = expectation_dict(case)
    return CaseReport(
        id=case.id,
        **place._asdict(),
        question=case.question,
        tags=case.tags,
        min_pass_rate=case.min_pass_rate,
        xfail=case.xfail,
        expectation_sha=expectation_sha(case),
        expectation=expectation if len(canonical_json(expectation)) <= _MAX_EXPECTATION else None,
        scorer=None if outcome is None else outcome.scorer,
        context=None if outcome is None else outcome.trace.context,
        metadata=case.metadata,
        samples=tuple(samples),
        confirming=tuple(confirming),
    )
