"""A run's report as Markdown for a pull request: what must be read first comes first, and it always fits."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from pytest_ctxfp._display import escape_line
from pytest_ctxfp._gate_text import describe_case, describe_evidence, describe_flips, format_p
from pytest_ctxfp._report import case_namer
from pytest_ctxfp._stats import format_interval, format_percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ctxfp._fold import Totals
    from pytest_ctxfp._gate_model import Flips, GateResult
    from pytest_ctxfp._report import CaseReport, RunReport, Usage

MAX_CHARACTERS = 60_000
"""GitHub refuses a comment of more than 65,536."""

_MAX_NAME = 80
_MAX_REASON = 300
_CUT = "\n_{n} more lines did not fit: see the JSON report._\n"
_RESERVE = 100
_MAX_ROWS = 3_000  # of one table: what is beyond can't fit, is counted, and isn't rendered


def report_to_markdown(report: RunReport, gate: GateResult | None = None) -> str:
    """Return a run's report as Markdown, of 60,000 characters at most.

    Names and reasons stand in code spans: nothing of a case can forge markup, a mention or a link.

    Example::

        ### ctxfp: 23 of 25 cases passed

        `25 of 53 cases (tags orders)`. **92%** accuracy (95% interval 75% to 97.8%), 1 flaky, 0 errors,
        0 skipped.

        | case | verdict | why |
        | --- | --- | --- |
        | `total_orders` | failed | `row 1, column n: expected 99, actual 98` |

    Args:
        report: the run.
        gate: what it came to against a baseline, if it was compared with one.
    """
    return _fit([line for block in _blocks(report, gate) for line in (*block, "")])


def _blocks(report: RunReport, gate: GateResult | None) -> Iterator[list[str]]:
    totals = report.totals
    yield [f"### ctxfp: {_headline(totals, gate)}"]
    yield [_summary(report, totals)]
    if gate is not None:
        yield _gate_block(gate)
        yield _table("layer", gate.by_layer)
    failing = [case for case in report.cases if not case.fold.passed]
    flaky = [case for case in report.cases if case.fold.flaky and case.fold.passed]
    yield _verdict_table("Without a pass", failing, report)
    yield _verdict_table("Flaky", flaky, report)
    if len({(case.model, case.variant) for case in report.cases}) > 1:
        yield _config_table(report)
    yield _tag_table(totals)
    yield _usage_table(report)
    if report.notes:
        yield [f"- {_code(note)}" for note in report.notes]


def _headline(totals: Totals, gate: GateResult | None) -> str:
    n = totals.n + totals.errors
    counts = f"{totals.n_passed} of {n} cases passed"
    return counts if gate is None else f"{'green' if gate.passed else 'RED'}, {counts}"


def _summary(report: RunReport, totals: Totals) -> str:
    parts = [] if report.complete else ["**This run was interrupted.**"]
    if report.selection:
        parts.append(f"{_code(report.selection)}.")
    elif report.selected_cases < report.total_cases:
        parts.append(f"{report.selected_cases} of {report.total_cases} cases were selected.")
    if totals.n:
        parts.append(f"**{format_percent(totals.accuracy)}** accuracy ({_interval(totals)}),")
    errors = f"{totals.errors} error{'s' * (totals.errors != 1)}"
    parts.append(f"{totals.flaky_cases} flaky, {errors}, {totals.skipped} skipped.")
    return " ".join(parts)


def _interval(totals: Totals) -> str:
    return f"95% interval {format_interval(min(totals.accuracy, 1.0) * totals.n, totals.n)}"


def _gate_block(gate: GateResult) -> list[str]:
    lines = [f"- **{_code(reason)}**" for reason in gate.reasons]
    lines += [f"- evidence: {describe_evidence(gate)}", f"- flips: {describe_flips(gate.flips)}"]
    lines += [f"- {_code(note)}" for note in gate.notes]
    name_of = gate.names
    listed = [
        (found.verdict.value, describe_case(found, name_of(found.case)))
        for found in gate.cases
        if found.verdict.value not in ("passing", "new", "not run")
    ]
    return [*lines, *[f"- {verdict}: {_code(text)}" for verdict, text in listed]]


def _table(label: str, groups: dict[str, Flips]) -> list[str]:
    if not groups:
        return []
    rows = [
        f"| {_code(name, _MAX_NAME)} | {flips.n} | {flips.to_fail} | {flips.to_pass} | {flips.regressions}"
        f" | {format_p(flips.p)} |"
        for name, flips in groups.items()
    ]
    return [
        f"| {label} | cases | pass → fail | fail → pass | regressions | p |",
        "| --- | --: | --: | --: | --: | --: |",
        *rows,
    ]


def _verdict_table(title: str, cases: list[CaseReport], report: RunReport) -> list[str]:
    if not cases:
        return []
    rows = []
    name_of = case_namer(report.cases)
    for case in cases[:_MAX_ROWS]:
        fold = case.fold
        share = f" ({fold.passes} of {fold.samples})" if fold.samples > 1 else ""
        name, reason = _code(name_of(case), _MAX_NAME), _code(fold.reason, _MAX_REASON)
        rows.append(f"| {name} | {fold.state}{share} | {reason} |")
    rows += ["|"] * (len(cases) - len(rows))
    return [f"**{title}: {len(cases)}**", "", "| case | verdict | why |", "| --- | --- | --- |", *rows]


def _config_table(report: RunReport) -> list[str]:
    rows = [
        f"| {_code(model, _MAX_NAME)} | {_code(variant or '-', _MAX_NAME)} | {_share(totals)} |"
        f" {totals.errors} |"
        for (model, variant), totals in report.configs.items()
    ]
    return ["| model | variant | accuracy | errors |", "| --- | --- | --- | --: |", *rows]


def _share(totals: Totals) -> str:
    if not totals.n:
        return "no verdict"
    return f"{format_percent(totals.accuracy)} of {totals.n} ({_interval(totals)})"


def _tag_table(totals: Totals) -> list[str]:
    if not totals.by_tag:
        return []
    rows = [
        f"| {_code(tag, _MAX_NAME)} | {format_percent(min(found.pass_rate_sum / found.n, 1.0))} | {found.n} |"
        for tag, found in islice(totals.by_tag.items(), _MAX_ROWS)
    ]
    rows += ["|"] * (len(totals.by_tag) - len(rows))
    summary = "<details><summary>Accuracy by tag</summary>"
    return [summary, "", "| tag | accuracy | cases |", "| --- | --: | --: |", *rows, "", "</details>"]


def _usage_table(report: RunReport) -> list[str]:
    return [
        "| answers | | cost | latency | turns |",
        "| --- | --: | --: | --: | --: |",
        _usage_row("asked in this run", report.spent),
        _usage_row("replayed", report.replayed),
    ]


def _usage_row(label: str, usage: Usage) -> str:
    unknown = f" (unknown for {usage.unknown_costs})" if usage.unknown_costs else ""
    seconds = usage.latency_ms / 1000
    return f"| {label} | {usage.answers} | {usage.cost:.4f} USD{unknown} | {seconds:.1f} s | {usage.turns} |"


def _code(text: str, limit: int = 1_000) -> str:
    """Return a text in a code span that nothing in it can end, and no cell of a table either."""
    shown = escape_line(text, limit=limit).replace("`", "'").replace("|", "¦").strip()
    return f"`{shown}`" if shown else "-"


def _fit(lines: Iterable[str]) -> str:
    lines = list(lines)
    room = MAX_CHARACTERS - _RESERVE
    kept: list[str] = []
    for index, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            is_open = sum("<details>" in text for text in kept) > sum("</details>" in text for text in kept)
            closing = "\n</details>\n" if is_open else ""
            return "\n".join(kept) + closing + _CUT.format(n=len(lines) - index)
        kept.append(line)
    return _drop_blank_runs(kept)


def _drop_blank_runs(lines: list[str]) -> str:
    kept = [line for index, line in enumerate(lines) if line or (index and lines[index - 1])]
    return "\n".join(kept).rstrip("\n") + "\n"
