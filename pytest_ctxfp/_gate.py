"""Two runs held against each other: what got worse because of what changed, and what is only noise."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._fold import fold_samples
from pytest_ctxfp._gate_changes import find_changes
from pytest_ctxfp._gate_findings import find_notes, find_reasons
from pytest_ctxfp._gate_model import Flips, GateCase, GateResult, Verdict
from pytest_ctxfp._gate_pairs import pair_cases
from pytest_ctxfp._rescoring import is_same_answer, judge_as_today
from pytest_ctxfp._stats import holm, mcnemar_one_sided, smallest_detectable_drop

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_ctxfp._fold import CaseFold
    from pytest_ctxfp._report import CaseReport, RunReport, SampleReport

__all__ = ["GateResult", "gate_reports"]

DRIFT_LEVEL = 0.01


def gate_reports(
    baseline: RunReport, current: RunReport, *, tolerance: float = 0.0, allow_incomplete: bool = False
) -> GateResult:
    """Hold a run against a baseline.

    A case that passed and fails now is a regression only if its key changed and most of all its samples,
    confirming ones too, fail. Under the same key single flips are noise; together they are drift where a
    one-sided exact test gives p < 0.01.

    Args:
        baseline: the run to compare with.
        current: the run to judge.
        tolerance: share of the common cases, 0..1, that may be regressions and leave the gate green.
        allow_incomplete: take a baseline that was interrupted.

    Raises:
        CtxfpError: the baseline was interrupted.
        ValueError: a tolerance outside of 0..1.
    """
    if not 0 <= tolerance <= 1:
        message = f"tolerance must be a share from 0 to 1, not {tolerance!r}"
        raise ValueError(message)
    if not baseline.complete and not allow_incomplete:
        message = "the baseline is of an interrupted run: record it again, or say that it may be incomplete"
        raise CtxfpError(message)
    pairs = pair_cases(baseline.cases, current.cases)
    still_there = {(case.file, case.id) for case in current.cases}
    cases = tuple(
        _judge_pair(before, after, baseline=baseline, current=current)
        if after is not None
        else _judge_absent(before, still_there, current)
        for before, after in pairs
    )
    return _sum_up(cases, baseline, current, tolerance)


def judge_case(after: CaseReport, baseline: RunReport, current: RunReport) -> GateCase:
    """Hold one case of a run against a baseline, before the run has ended.

    Args:
        after: the case.
        baseline: the run to compare with.
        current: gives the manifests of this run; its cases don't count.
    """
    rivals = tuple(case for case in baseline.cases if case.id == after.id)
    before = next(before for before, case in pair_cases(rivals, (after,)) if case is after)
    return _judge_pair(before, after, baseline=baseline, current=current)


def _judge_absent(
    before: CaseReport | None, still_there: set[tuple[str, str]], current: RunReport
) -> GateCase:
    assert before is not None
    is_gone = (before.file, before.id) not in still_there and current.lacks(before)
    return GateCase(
        before=before, after=None, changes=(), verdict=Verdict.GONE if is_gone else Verdict.NOT_RUN
    )


def _judge_pair(
    before: CaseReport | None, after: CaseReport, *, baseline: RunReport, current: RunReport
) -> GateCase:
    changes = () if before is None else find_changes(before, after, baseline=baseline, current=current)
    judged = None if before is None else judge_as_today(before, after)
    then = None if judged is None else _fold_as(after, judged).passed
    weighed = [sample.state for sample in after.all_samples if sample.state in ("passed", "failed")]
    found = GateCase(
        before=before,
        after=after,
        changes=changes,
        verdict=Verdict.PASSING,
        passed_before=then,
        passed_now=after.fold.passed if after.fold.has_verdict else None,
        pair=_pair_verdicts(judged or (), after),
        rescored=before is not None and then is not None and then != before.fold.passed,
        is_evidence=before is not None and _is_evidence(before, after),
        n_failed=weighed.count("failed"),
        n_weighed=len(weighed),
    )
    return replace(found, verdict=_verdict(found, after))


def _pair_verdicts(judged: Sequence[SampleReport], after: CaseReport) -> tuple[bool, bool] | None:
    """Return both verdicts over the samples that both runs have.

    A case must pass every time, so more samples alone make more cases fail: that is no flip.
    """
    numbers = {sample.sample for sample in judged} & {sample.sample for sample in after.samples}
    if not numbers or not after.fold.has_verdict:
        return None
    then = _fold_as(after, [sample for sample in judged if sample.sample in numbers])
    now = _fold_as(after, [sample for sample in after.samples if sample.sample in numbers])
    return then.passed, now.passed


def _fold_as(case: CaseReport, samples: Sequence[SampleReport]) -> CaseFold:
    return fold_samples(case.id, samples, min_pass_rate=case.min_pass_rate)


def _is_evidence(before: CaseReport, after: CaseReport) -> bool:
    theirs = {sample.sample: sample for sample in before.samples}
    return any(
        sample.sample not in theirs or not is_same_answer(theirs[sample.sample], sample)
        for sample in after.samples
    )


def _verdict(found: GateCase, after: CaseReport) -> Verdict:
    if found.passed_now is None:
        has_error = any(sample.state == "error" for sample in after.samples)
        return Verdict.ERROR if has_error else Verdict.NOT_RUN
    if found.passed_now:
        return _verdict_on_pass(found)
    return Verdict.KNOWN_FAILING if after.xfail else _verdict_on_fail(found)


def _verdict_on_fail(found: GateCase) -> Verdict:
    if found.passed_before is None:
        return Verdict.NEW_FAILING if found.before is None else Verdict.UNKNOWN_FAILING
    if not found.passed_before:
        return Verdict.KNOWN_FAILING
    is_noise = found.same_key or 2 * found.n_failed <= found.n_weighed
    return Verdict.NOISE if is_noise else Verdict.REGRESSION


def _verdict_on_pass(found: GateCase) -> Verdict:
    if found.before is None:
        return Verdict.NEW_PASSING
    return Verdict.FIXED if found.passed_before is False else Verdict.PASSING


def _sum_up(
    cases: tuple[GateCase, ...], baseline: RunReport, current: RunReport, tolerance: float
) -> GateResult:
    common = [found for found in cases if found.is_common]
    evidence = [found for found in common if found.is_evidence and found.is_compared]
    drift_p = _drift_p(common)
    has_drift = drift_p < DRIFT_LEVEL
    result = GateResult(
        cases=tuple(map(_as_drift, cases)) if has_drift else cases,
        reasons=(),
        notes=(),
        n_common=len(common),
        n_evidence=len(evidence),
        n_asked=sum(_was_asked(found) for found in common),
        flips=_count_flips(evidence),
        smallest_drop=smallest_detectable_drop(len(evidence)),
        drift_p=drift_p,
        has_drift=has_drift,
        by_tag=_adjusted(_group_flips((tag, found) for found in evidence for tag in set(found.case.tags))),
        by_layer=_group_flips((layer, found) for found in evidence for layer in _layers_of(found)),
    )
    return replace(
        result,
        reasons=tuple(find_reasons(result, current, tolerance)),
        notes=tuple(find_notes(result, baseline, current)),
    )


def _was_asked(found: GateCase) -> bool:
    return found.after is not None and any(sample.was_asked for sample in found.after.samples)


def _as_drift(found: GateCase) -> GateCase:
    """Call a flip no noise any more where chance does not make so many."""
    is_part = found.verdict is Verdict.NOISE and found.same_key and found.flipped_to_fail
    return replace(found, verdict=Verdict.DRIFT) if is_part else found


def _drift_p(common: Iterable[GateCase]) -> float:
    """Test the flips under the same key as a group: cases that did not flip say nothing in this test."""
    flips = _count_flips([found for found in common if found.same_key])
    return mcnemar_one_sided(flips.to_fail, flips.to_pass) if flips.to_fail else 1.0


def _count_flips(cases: Iterable[GateCase]) -> Flips:
    cases = list(cases)
    return Flips(
        n=len(cases),
        to_fail=sum(found.flipped_to_fail for found in cases),
        to_pass=sum(found.flipped_to_pass for found in cases),
        regressions=sum(found.verdict is Verdict.REGRESSION for found in cases),
    )


def _group_flips(members: Iterable[tuple[str, GateCase]]) -> dict[str, Flips]:
    groups: dict[str, list[GateCase]] = {}
    for name, found in members:
        groups.setdefault(name, []).append(found)
    return {name: _count_flips(groups[name]) for name in sorted(groups)}


def _adjusted(groups: dict[str, Flips]) -> dict[str, Flips]:
    p_values = holm([flips.p for flips in groups.values()])
    return {
        name: replace(flips, p_adjusted=p) for (name, flips), p in zip(groups.items(), p_values, strict=True)
    }


def _layers_of(found: GateCase) -> tuple[str, ...]:
    return tuple(layer for change in found.changes if change.kind == "context" for layer in change.details)
