"""A run's report as the data of a page: all that the template has to do is lay it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ctxfp._display import escape_line, plural, shorten_time
from pytest_ctxfp._html.cases import CaseDesk, show_case
from pytest_ctxfp._html.diffs import MAX_DIFFS, DiffBook
from pytest_ctxfp._html.gate import show_gate
from pytest_ctxfp._html.layers import LayerPalette
from pytest_ctxfp._html.texts import show_name, show_seconds, show_usage
from pytest_ctxfp._report import case_namer
from pytest_ctxfp._stats import format_interval, format_percent, wilson_interval
from pytest_ctxfp._suite import NO_IDENTITY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ctxfp._fold import Totals
    from pytest_ctxfp._gate_model import GateResult
    from pytest_ctxfp._html.cases import CaseRow
    from pytest_ctxfp._html.diffs import Diff
    from pytest_ctxfp._html.gate import ShownGate
    from pytest_ctxfp._report import RunReport, Usage

MAX_TAGS = 200
_MAX_NOTE = 1_000
_MODES = {
    "auto": "stored answers replayed, the agent asked where there is none",
    "refresh": "the agent asked for every case, answers stored",
    "replay": "stored answers only, nobody asked",
    "off": "no stored answers",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of the run, and what it rests on."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyRow:
    """The accuracy of some cases, in words and as places on a scale from 0 to 100; None without a verdict."""

    name: str
    n: str
    accuracy: str
    interval: str
    share: str | None
    low: str
    high: str
    width: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the table can be filtered by; a list of one or none is no choice."""

    states: tuple[str, ...]
    tags: tuple[str, ...]
    origins: tuple[str, ...]
    kinds: tuple[str, ...]
    verdicts: tuple[str, ...]
    labels: tuple[str, ...]
    has_flaky: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """All that the page shows."""

    title: str
    headline: str
    tone: str
    complete: bool
    figures: tuple[Figure, ...]
    facts: tuple[tuple[str, str], ...]
    tags: tuple[AccuracyRow, ...]
    more_tags: str
    configs: tuple[AccuracyRow, ...]
    gate: ShownGate | None
    cases: tuple[CaseRow, ...]
    diffs: tuple[Diff, ...]
    diffs_note: str
    notes: tuple[str, ...]
    choices: Choices


def build_page(report: RunReport, gate: GateResult | None = None, baseline: RunReport | None = None) -> Page:
    """Return what the page of a run shows.

    Args:
        report: the run.
        gate: what it came to against a baseline, if it was compared with one.
        baseline: that baseline, for the texts of its layers.
    """
    book = DiffBook({} if baseline is None else baseline.texts, report.texts)
    desk = CaseDesk(name_of=case_namer(report.cases), palette=LayerPalette(), book=book)
    found = {} if gate is None else {id(one.after): one for one in gate.cases if one.after is not None}
    numbers = {id(case): number for number, case in enumerate(report.cases, start=1)}
    cases = tuple(show_case(numbers[id(case)], case, found.get(id(case)), desk) for case in report.cases)
    totals = report.totals
    diffs = tuple(book.all())
    return Page(
        title=_title(report),
        headline=_headline(totals),
        tone=_tone(report, totals, gate),
        complete=report.complete,
        figures=tuple(_figures(report, totals)),
        facts=tuple(_facts(report, cases)),
        tags=tuple(
            _accuracy_row(tag, found_tag.pass_rate_sum, found_tag.n)
            for tag, found_tag in list(totals.by_tag.items())[:MAX_TAGS]
        ),
        more_tags=_describe_more_tags(totals),
        configs=tuple(_config_rows(report)),
        gate=None if gate is None else show_gate(gate, numbers),
        cases=cases,
        diffs=diffs,
        diffs_note=f"The first {MAX_DIFFS} changes are shown." if len(diffs) >= MAX_DIFFS else "",
        notes=tuple(escape_line(note, limit=_MAX_NOTE) for note in report.notes),
        choices=_choices(cases),
    )


def _title(report: RunReport) -> str:
    return f"ctxfp: {show_name(report.dataset)}" if report.dataset else "ctxfp: run report"


def _headline(totals: Totals) -> str:
    return f"{totals.n_passed:,} of {plural(totals.n + totals.errors, 'case')} passed"


def _tone(report: RunReport, totals: Totals, gate: GateResult | None) -> str:
    """Return how the run went, as the gate says it where there is one."""
    if gate is not None:
        return "good" if gate.passed else "bad"
    if not report.complete or not totals.n:
        return "unclear"
    return "good" if totals.n_passed == totals.n and not totals.errors else "bad"


def _figures(report: RunReport, totals: Totals) -> Iterator[Figure]:
    if totals.n:
        yield Figure(
            label="accuracy",
            value=format_percent(min(totals.accuracy, 1.0)),
            note=f"95% interval {format_interval(min(totals.accuracy, 1.0) * totals.n, totals.n)}",
        )
    else:
        yield Figure(label="accuracy", value="none", note="no case has a verdict")
    failed = totals.n - totals.n_passed
    rest = [f"{failed:,} failed", plural(totals.errors, "error"), f"{totals.skipped:,} skipped"]
    flaky = [f"{totals.flaky_cases:,} flaky"] if totals.flaky_cases else []
    yield Figure(
        label="cases",
        value=f"{totals.n + totals.errors + totals.skipped:,}",
        note=", ".join([f"{totals.n_passed:,} passed", *rest, *flaky]),
    )
    samples = [sample for case in report.cases for sample in case.all_samples]
    n_rescored = sum(sample.rescored for sample in samples)
    yield Figure(
        label="stored answers",
        value=f"{sum(sample.hit for sample in samples):,} hit",
        note=f"{sum(sample.was_asked for sample in samples):,} asked, {n_rescored:,} re-scored",
    )
    spent, saved = report.spent, report.replayed
    yield Figure(label="spent", value=show_usage(spent), note=_describe_usage(spent, "asked for"))
    yield Figure(label="saved", value=show_usage(saved), note=_describe_usage(saved, "replayed"))


def _describe_usage(usage: Usage, what: str) -> str:
    """Return what a sum is of: ``15 answers asked for, 75.1 s; the cost of 3 is not known``."""
    text = f"{plural(usage.answers, 'answer')} {what}"
    if usage.latency_ms:
        text += f", {show_seconds(usage.latency_ms)}"
    return f"{text}; the cost of {usage.unknown_costs:,} is not known" if usage.unknown_costs else text


def _facts(report: RunReport, cases: tuple[CaseRow, ...]) -> Iterator[tuple[str, str]]:
    if report.mode is not None:
        mode = show_name(report.mode)
        yield "mode", f"{mode}: {_MODES[report.mode]}" if report.mode in _MODES else mode
    else:
        yield "mode", "unknown: the report does not say"
    yield (
        "agent",
        _describe_files(report, "agent_sha") or "unknown: no files make its identity (ctx_agent_paths)",
    )
    models = dict.fromkeys(case.model for case in report.cases if case.model)
    yield "model", show_name(", ".join(models)) or "none named"
    yield "context", _describe_contexts(report, cases)
    if report.dataset:
        yield "dataset", show_name(report.dataset)
    yield "cases", show_name(report.selection) or _describe_selection(report)
    yield "recorded", shorten_time(report.recorded_at) if report.recorded_at else "unknown"
    yield "by", show_name(report.recorded_by or "unknown")


def _describe_selection(report: RunReport) -> str:
    if report.selected_cases < report.total_cases:
        return f"{report.selected_cases:,} of {report.total_cases:,} selected"
    return f"all {report.total_cases:,}"


def _describe_files(report: RunReport, part: str) -> str:
    """Return the SHAs of a part of the keys, and of how many files: ``7b45843629d5 (3 files)``."""
    parts = [
        (sample.key_parts or {}).get(part, NO_IDENTITY) for case in report.cases for sample in case.samples
    ]
    shas = dict.fromkeys(sha for sha in parts if isinstance(sha, str))
    shas.pop(NO_IDENTITY, None)
    described = []
    for sha in list(shas)[:3]:
        files = report.manifests.get(sha)
        described.append(show_name(sha[:12]) + (f" ({plural(len(files), 'file')})" if files else ""))
    more = f" and {len(shas) - 3:,} more" if len(shas) > 3 else ""
    return ", ".join(described) + more


def _describe_contexts(report: RunReport, cases: tuple[CaseRow, ...]) -> str:
    contexts = [case.context for case in cases if case.context is not None]
    pin = f", pinned as {show_name(report.context_version)}" if report.context_version else ""
    if not contexts:
        files = "" if any(case.context for case in report.cases) else _describe_files(report, "context_sha")
        return f"{files or 'none recorded'}{pin}"
    sizes = [context.n_tokens for context in contexts]
    tilde = "~" if any(context.tokens.startswith("~") for context in contexts) else ""
    mean = f"{tilde}{round(sum(sizes) / len(sizes)):,} tokens on average"
    hashes = [case.context.get("full_hash") for case in report.cases if case.context is not None]
    n_different = len({digest for digest in hashes if isinstance(digest, str)})
    return f"{n_different:,} different, {mean}{pin}"


def _accuracy_row(name: str, passes: float, n: int) -> AccuracyRow:
    if not n:
        return AccuracyRow(
            name=show_name(name),
            n="0",
            accuracy="no verdict",
            interval="",
            share=None,
            low="",
            high="",
            width="",
        )
    passes = min(passes, float(n))
    low, high = wilson_interval(passes, n)
    return AccuracyRow(
        name=show_name(name),
        n=f"{n:,}",
        accuracy=format_percent(passes / n),
        interval=format_interval(passes, n),
        share=f"{passes / n * 100:.2f}",
        low=f"{low * 100:.2f}",
        high=f"{high * 100:.2f}",
        width=f"{(high - low) * 100:.2f}",
    )


def _config_rows(report: RunReport) -> Iterator[AccuracyRow]:
    if len(report.configs) < 2:
        return
    for (model, variant), totals in report.configs.items():
        name = f"{model}, {variant}" if variant else model
        yield _accuracy_row(name or "(no model)", totals.accuracy * totals.n, totals.n)


def _describe_more_tags(totals: Totals) -> str:
    if len(totals.by_tag) <= MAX_TAGS:
        return ""
    return f"{MAX_TAGS} of {len(totals.by_tag):,} tags shown; the JSON report has all"


def _choices(cases: tuple[CaseRow, ...]) -> Choices:
    return Choices(
        states=_several(case.state for case in cases),
        tags=tuple(sorted({tag for case in cases for tag in case.tags})),
        origins=_several(origin for case in cases for origin in case.origins),
        kinds=_several(case.kind for case in cases if case.kind),
        verdicts=_several(case.verdict for case in cases if case.verdict),
        labels=_several(case.label for case in cases),
        has_flaky=any(case.flaky for case in cases),
    )


def _several(values: Iterator[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))
