"""Why a gate is red, and what a reader must know to read its figures right: one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ctxfp._gate_model import NOT_HASHED, GateCase, GateResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ctxfp._report import RunReport

_RED_VERDICTS = (
    (Verdict.ERROR, "ended with an error"),
    (Verdict.NEW_FAILING, "new and failing"),
    (Verdict.UNKNOWN_FAILING, "failing, and whether the baseline's answer would too is unknown"),
    (Verdict.GONE, "gone from a full run"),
)
_MAX_NAMES = 5


def find_reasons(result: GateResult, current: RunReport, tolerance: float) -> Iterator[str]:
    """Yield why a gate is red; nothing where it is green."""
    if not result.n_common:
        yield "no common case: no case has a verdict in both runs, so nothing was compared"
    if not current.complete:
        yield "this run was interrupted: cases that did not run were not judged"
    n_regressions = len(result.regressions)
    if n_regressions > tolerance * result.n_common:
        yield _say(result, result.regressions, "worse under a changed key")
    if result.has_drift:
        drifted = [found for found in result.cases if found.same_key and found.flipped_to_fail]
        yield _say(result, drifted, f"flipped to fail under the same key: drift (p = {result.drift_p:.2g})")
    for verdict, what in _RED_VERDICTS:
        if result.of(verdict):
            yield _say(result, result.of(verdict), what)


def _say(result: GateResult, cases: Iterable[GateCase], what: str) -> str:
    """Return ``2 cases worse under a changed key: total_orders, refund_window``."""
    name_of = result.names
    names = [name_of(found.case) for found in cases]
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{len(names)} case{'s' * (len(names) != 1)} {what}: {', '.join(names[:_MAX_NAMES])}{more}"


def find_notes(result: GateResult, baseline: RunReport, current: RunReport) -> Iterator[str]:
    """Yield what the figures don't say by themselves."""
    if result.n_common and not result.n_evidence:
        yield "0 cases are evidence: every answer is the baseline's own, replayed"
    yield from _notes_on_runs(baseline, current)
    for cases, what in _noted_cases(result):
        if cases:
            yield _say(result, cases, what)
    if result.has_drift:
        yield "consistent with a change in what is not hashed:"
        yield from (f"  {what}" for what in NOT_HASHED)
    yield from _served_models(result)
    if any(found.same_key and found.flipped_to_fail and not found.is_evidence for found in result.cases):
        yield "the same answer got another verdict: the scoring changed (a database, a scorer's code)"


def _notes_on_runs(baseline: RunReport, current: RunReport) -> Iterator[str]:
    for name, report in (("this run", current), ("the baseline", baseline)):
        if report.selected_cases < report.total_cases:
            selected = f"{report.selected_cases} of {report.total_cases} cases"
            yield f"{name} is a subset, {selected}: what it lacks is not judged"
    if not baseline.complete:
        yield "the baseline is of an interrupted run"
    if baseline == current:
        yield "both reports are the same: nothing was compared"
    if _is_later(baseline.recorded_at, current.recorded_at):
        yield f"the baseline is of a later time than this run ({baseline.recorded_at}): are the two swapped?"


def _is_later(a: str | None, b: str | None) -> bool:
    """Whether one time is after another; unknown, or no UTC times as we write them, are not."""
    return a is not None and b is not None and a[-6:] == b[-6:] == "+00:00" and a > b


def _noted_cases(result: GateResult) -> Iterator[tuple[list[GateCase], str]]:
    cases = result.cases
    absent = [found for found in result.of(Verdict.NOT_RUN) if found.after is None]
    yield absent, "of the baseline not in this run, not judged"
    skipped = [found for found in result.of(Verdict.NOT_RUN) if found.after is not None]
    yield skipped, "skipped, not judged"
    unknown = [found for found in cases if found.is_common and found.passed_before is None]
    yield unknown, "judged otherwise now, and the baseline's answers can't be re-scored"
    rescored = [found for found in cases if found.rescored]
    yield rescored, "of the baseline re-scored under today's expectation, verdict changed"
    unconfirmed = [found for found in result.regressions if not found.is_confirmed]
    yield unconfirmed, "not confirmed, one answer each (--ctx-confirm=4 asks again)"


def _served_models(result: GateResult) -> Iterable[str]:
    changes = {
        (old.served_model, new.served_model)
        for found in result.cases
        if found.before is not None and found.after is not None
        for old, new in zip(found.before.samples, found.after.samples, strict=False)
        if old.served_model and new.served_model and old.served_model != new.served_model
    }
    return [f"the provider serves another model: {old} -> {new}" for old, new in sorted(changes)]
