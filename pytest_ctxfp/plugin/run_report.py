"""The report of a run: made of its items' records, held against the baseline, and written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from fractions import Fraction
from typing import TYPE_CHECKING

from pytest_ctxfp._atomic import write_atomically
from pytest_ctxfp._display import escape_line
from pytest_ctxfp._gate import gate_reports
from pytest_ctxfp._report import RunReport
from pytest_ctxfp._report_forms import render_report
from pytest_ctxfp._report_json import case_from_dict
from pytest_ctxfp._report_markdown import report_to_markdown
from pytest_ctxfp._report_texts import keep_texts
from pytest_ctxfp._stats import format_percent
from pytest_ctxfp.plugin.baseline import get_baseline, manifests_of
from pytest_ctxfp.plugin.runner import known_identity, program_name
from pytest_ctxfp.plugin.settings import get_settings
from pytest_ctxfp.plugin.summary import describe_audit, describe_other_calls, describe_shared_contexts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from pytest_ctxfp._fold import CaseFold
    from pytest_ctxfp._gate_model import GateResult
    from pytest_ctxfp._records import CaseRecord
    from pytest_ctxfp._report import CaseReport
    from pytest_ctxfp.plugin.facts import RunFacts

_MAX_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVerdict:
    """What a run as a whole came to, where a flag asks for that.

    Attributes:
        gate: the comparison with the baseline, if there is one.
        shortfalls: what falls short of ``--ctx-min-accuracy``, a line each.
        unwritten: reports that could not be written, and why.
    """

    gate: GateResult | None = None
    shortfalls: list[str] = field(default_factory=list)
    unwritten: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether nothing here fails the run."""
        return not self.faults and (self.gate is None or self.gate.passed)

    @property
    def faults(self) -> list[str]:
        """What fails the run besides the gate, a line each."""
        return [*self.shortfalls, *self.unwritten]


def conclude(facts: RunFacts, config: pytest.Config, *, complete: bool) -> RunVerdict:
    """Write the reports that are asked for, and judge the run as a whole.

    Args:
        facts: what the run's reports said.
        config: pytest's.
        complete: the run was not interrupted.
    """
    settings = get_settings(config)
    if not settings.wants_report:
        return RunVerdict()
    report = _build_report(facts, config, complete=complete)
    baseline = get_baseline(config)
    gate = None
    if baseline is not None:
        gate = gate_reports(baseline, report, allow_incomplete=settings.allow_incomplete)
    return RunVerdict(
        gate=gate,
        shortfalls=list(_find_shortfalls(report, settings.min_accuracy)),
        unwritten=list(_write_reports(report, gate, config)),
    )


def _build_report(facts: RunFacts, config: pytest.Config, *, complete: bool) -> RunReport:
    cases = list(filter(None, map(_join_samples, facts.by_case().values())))
    if not get_settings(config).models:
        cases = _label_unresolved(cases)
    report = RunReport(
        cases=tuple(cases),
        complete=complete,
        recorded_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        recorded_by=program_name(),
        manifests=manifests_of(known_identity(config)),
        covered=(),
        mode=get_settings(config).mode.value,
        notes=tuple(_find_notes(facts)),
    )
    report = keep_texts(report, facts.layer_texts())
    selection = facts.selection
    if selection is None:
        return report
    return replace(
        report,
        selected_cases=selection["selected"],
        total_cases=max(selection["total"], selection["selected"]),
        selection=selection["note"],
        covered=tuple(selection["covered"]),
        dataset=", ".join(selection["datasets"]) or None,
        context_version=", ".join(selection["context_versions"]) or None,
    )


def _join_samples(records: list[CaseRecord]) -> CaseReport | None:
    """Return a case with all its samples, of which each record has one."""
    entries = [(record["kind"], case_from_dict(record["report"])) for record in records if "report" in record]
    samples = [case for kind, case in entries if kind == "case"]
    if not samples:
        return None
    scored = [case for case in samples if case.samples[0].origin is not None]
    return replace(
        (scored or samples)[0],
        samples=tuple(case.samples[0] for case in samples),
        confirming=tuple(case.samples[0] for kind, case in entries if kind == "confirming"),
    )


def _label_unresolved(cases: list[CaseReport]) -> list[CaseReport]:
    """Give cases that ended before the suite's ``ctx_model`` was asked the model of all the others."""
    models = {case.model for case in cases if any(sample.key for sample in case.samples)}
    if len(models) != 1:
        return cases
    (model,) = models
    return [
        case if any(sample.key for sample in case.samples) else replace(case, model=model) for case in cases
    ]


def _find_notes(facts: RunFacts) -> Iterator[str]:
    yield from describe_shared_contexts(facts)
    yield from describe_audit(facts.audits())
    yield from describe_other_calls(facts)
    yield from sorted({note for record in facts.cases() for note in record.get("notes", ())})


def _find_shortfalls(
    report: RunReport, min_accuracy: tuple[tuple[str | None, Fraction], ...]
) -> Iterator[str]:
    """Yield what falls short of the least accuracy, over all cases or those with a tag."""
    folds = [case.fold for case in report.cases if case.fold.has_verdict]
    for tag, least in min_accuracy:
        counted = folds if tag is None else [fold for fold in folds if tag in fold.tags]
        what = "accuracy" if tag is None else f"accuracy of {tag}"
        if not counted:
            yield f"{what}: no case has a verdict, {format_percent(float(least))} are asked for"
        elif _accuracy(counted) < least:
            reached, wanted = _tell_apart(_accuracy(counted), least)
            yield f"{what} {reached} of {len(counted)} cases is below {wanted}"


def _accuracy(folds: list[CaseFold]) -> Fraction:
    return sum((Fraction(fold.passes, fold.samples) for fold in folds), Fraction(0)) / len(folds)


def _tell_apart(*shares: Fraction) -> list[str]:
    """Return different shares as percentages that differ too: 2/3 is not shown as 66.7% beside 0.667."""
    texts = [format_percent(float(share)) for share in shares]
    for n_digits in range(2, _MAX_DIGITS):
        if len(set(texts)) == len(texts):
            break
        texts = [f"{float(share * 100):.{n_digits}f}%" for share in shares]
    return texts


def _write_reports(report: RunReport, gate: GateResult | None, config: pytest.Config) -> Iterator[str]:
    """Write each report, and yield what could not be written."""
    settings = get_settings(config)
    for path in settings.reports:
        text = render_report(path.suffix, report, gate, get_baseline(config))
        try:
            write_atomically(path, text.encode("utf-8"))
        except OSError as error:
            yield _describe_unwritten(path, error)
    if settings.step_summary is not None:
        try:
            with settings.step_summary.open("a", encoding="utf-8") as file:
                file.write(report_to_markdown(report, gate))
        except OSError as error:
            yield _describe_unwritten(settings.step_summary, error)


def _describe_unwritten(path: Path, error: OSError) -> str:
    return escape_line(f"report not written: {path}: {error.strerror or error}")
