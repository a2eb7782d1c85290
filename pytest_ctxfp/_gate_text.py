"""The gate's result as lines for a terminal; nothing here prints."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_ctxfp._display import escape_line, plural
from pytest_ctxfp._gate_model import Verdict
from pytest_ctxfp._stats import format_interval, format_percent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ctxfp._gate_model import Flips, GateCase, GateResult

_LABEL_WIDTH = 11
_MAX_ROWS = 20
_MAX_LINE = 300
LISTED = {
    Verdict.REGRESSION: "REGRESSION",
    Verdict.DRIFT: "DRIFT",
    Verdict.ERROR: "ERROR",
    Verdict.NEW_FAILING: "NEW FAILING",
    Verdict.UNKNOWN_FAILING: "FAILING, BASELINE UNKNOWN",
    Verdict.GONE: "GONE",
    Verdict.NOISE: "NOISE",
    Verdict.KNOWN_FAILING: "KNOWN FAILING",
    Verdict.FIXED: "FIXED",
}
"""The verdicts whose cases are listed, what is to be looked at first."""


def render_gate(result: GateResult) -> list[str]:
    """Return the lines of a gate's result.

    Example::

        gate       RED: 2 cases worse under a changed key: total_orders, refunds
        evidence   58 of 60 common cases (58 asked in this run); the smallest drop they can show is 13.3%
        flips      6 pass -> fail, 1 fail -> pass; McNemar exact p = 0.12
        accuracy   93.3% -> 85% (56 -> 51 of 60; 95% intervals 84.1% to 97.4%, 73.9% to 91.9%)
        classes    55 context, 5 same key
        layers     Business Rules   55 cases: 6 pass -> fail (2 regressions), 1 fail -> pass
        tags       orders   15 cases: 4 pass -> fail (2 regressions), 0 fail -> pass; p = 0.12 (Holm 0.5)
        REGRESSION total_orders: consistent with context: Business Rules (5 of 5 samples failed)
        NOISE      top_customer: consistent with chance (1 of 5 samples failed; context: Business Rules)
        note       this run is a subset, 60 of 80 cases: what it lacks is not judged
    """
    verdict = "GREEN" if result.passed else "RED: "
    lines = [*_block("gate", [verdict + (result.reasons[0] if result.reasons else ""), *result.reasons[1:]])]
    lines += _block("evidence", [describe_evidence(result)])
    lines += _block("flips", [describe_flips(result.flips)])
    lines += _block("accuracy", describe_accuracy(result))
    kinds = Counter(found.kind for found in result.cases)
    lines += _block("classes", [", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))])
    lines += _block("layers", _rows(result.by_layer))
    lines += _block("tags", _rows(result.by_tag))
    name_of = result.names
    for kind, label in LISTED.items():
        texts = [describe_case(found, name_of(found.case)) for found in result.of(kind)]
        lines += _block(label, _capped(texts))
    return [*lines, *_block("note", result.notes)]


def describe_evidence(result: GateResult) -> str:
    """Return what the figures rest on."""
    text = f"{result.n_evidence} of {result.n_common} common cases ({result.n_asked} asked in this run)"
    if result.smallest_drop > 1:
        return f"{text}; so few can show no drop at all"
    return f"{text}; the smallest drop they can show is {format_percent(result.smallest_drop)}"


def describe_flips(flips: Flips) -> str:
    """Return flips both ways and the exact p."""
    return (
        f"{flips.to_fail} pass -> fail, {flips.to_pass} fail -> pass; McNemar exact p = {format_p(flips.p)}"
    )


def describe_case(found: GateCase, name: str) -> str:
    """Return a case and what its verdict is consistent with; never what caused it."""
    changed = "; ".join(map(str, found.changes))
    samples = f"{found.n_failed} of {found.n_weighed} samples failed"
    noise = f"consistent with chance ({'on the same key' if found.same_key else f'{samples}; {changed}'})"
    drift = "flipped on the same key"
    if found.same_key and not found.is_evidence:
        noise = drift = "the same answer, judged otherwise: consistent with a change in the scoring"
    text = {
        Verdict.REGRESSION: f"consistent with {changed} ({samples})",
        Verdict.NOISE: noise,
        Verdict.DRIFT: drift,
        Verdict.FIXED: _describe_fix(found, changed),
        Verdict.GONE: "in the baseline, not in this run",
    }.get(found.verdict)
    if text is None:
        rescored = " (the baseline's answer fails too, re-scored)" if found.rescored else ""
        text = f"{found.case.fold.reason}{rescored}"
    return f"{name}: {text}"


def _describe_fix(found: GateCase, changed: str) -> str:
    if not changed:
        return "on the same key; may be noise"
    return f"consistent with {changed}" + ("; may be noise" if found.same_key else "")


def format_p(p: float) -> str:
    """Return a p value with two digits: ``0.12``, ``1``, ``9.5e-07``."""
    return f"{p:.2g}"


def describe_accuracy(result: GateResult) -> list[str]:
    """Return the accuracy before and now, over the cases with two verdicts; nothing without any."""
    pairs = [found.pair for found in result.cases if found.pair is not None]
    if not pairs:
        return []
    n = len(pairs)
    before, now = (sum(pair[side] for pair in pairs) for side in (0, 1))
    intervals = ", ".join(format_interval(k, n) for k in (before, now))
    shares = f"{format_percent(before / n)} -> {format_percent(now / n)}"
    return [f"{shares} ({before} -> {now} of {n}; 95% intervals {intervals})"]


def _rows(groups: dict[str, Flips]) -> list[str]:
    width = min(40, max(map(len, groups), default=0))
    return _capped([f"{name:<{width}}  {_describe_group(flips)}" for name, flips in groups.items()])


def _describe_group(flips: Flips) -> str:
    regressions = f" ({plural(flips.regressions, 'regression')})" if flips.regressions else ""
    text = (
        f"{plural(flips.n, 'case')}: {flips.to_fail} pass -> fail{regressions}, {flips.to_pass} fail -> pass"
    )
    if flips.p_adjusted is None:
        return text
    return f"{text}; p = {format_p(flips.p)} (Holm {format_p(flips.p_adjusted)})"


def _block(label: str, lines: Iterable[str]) -> list[str]:
    found = [escape_line(line, limit=_MAX_LINE) for line in lines]
    labels = [label, *[""] * len(found)]
    return [f"{name:<{_LABEL_WIDTH - 1}} {line}" for name, line in zip(labels, found, strict=False)]


def _capped(lines: list[str]) -> list[str]:
    if len(lines) <= _MAX_ROWS:
        return lines
    return [*lines[:_MAX_ROWS], f"... and {len(lines) - _MAX_ROWS} more"]
