"""The gate's result as the page shows it, in the words of the terminal and of Markdown."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ctxfp._display import escape_line, plural
from pytest_ctxfp._gate_text import (
    LISTED,
    describe_accuracy,
    describe_case,
    describe_evidence,
    describe_flips,
    format_p,
)
from pytest_ctxfp._html.texts import show_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_ctxfp._gate_model import Flips, GateResult

MAX_ROWS = 200
_MAX_LINE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipLine:
    """Flips among the cases of one layer or tag."""

    name: str
    n: str
    to_fail: str
    to_pass: str
    regressions: str
    p: str
    p_adjusted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A case that the gate lists; ``number`` is its place in the page, None for one that is gone."""

    number: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownGate:
    """What the gate says.

    Attributes:
        passed: green.
        reasons: why it is red.
        facts: label and text, as the terminal has them.
        classes: class and number of its cases.
        layers: flips by layer that changed.
        tags: flips by tag, of those that have any.
        findings: verdict and its cases, what is to be looked at first.
        notes: what a reader must know.
        more: what is left out, by what it is left out of.
    """

    passed: bool
    reasons: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    classes: tuple[tuple[str, str], ...]
    layers: tuple[FlipLine, ...]
    tags: tuple[FlipLine, ...]
    findings: tuple[tuple[str, tuple[Finding, ...], str], ...]
    notes: tuple[str, ...]
    more: tuple[str, ...]


def show_gate(gate: GateResult, numbers: Mapping[int, int]) -> ShownGate:
    """Return the gate's result.

    Args:
        gate: what two runs say.
        numbers: place in the page by ``id()`` of a case's record.
    """
    kinds = Counter(found.kind for found in gate.cases)
    flipped = {tag: flips for tag, flips in gate.by_tag.items() if flips.to_fail or flips.to_pass}
    accuracy = [("accuracy", text) for text in describe_accuracy(gate)]
    return ShownGate(
        passed=gate.passed,
        reasons=tuple(map(_line, gate.reasons)),
        facts=(
            ("evidence", describe_evidence(gate)),
            ("flips", describe_flips(gate.flips)),
            *accuracy,
        ),
        classes=tuple((kind, f"{n:,}") for kind, n in sorted(kinds.items())),
        layers=_flip_lines(gate.by_layer),
        tags=_flip_lines(flipped),
        findings=_findings(gate, numbers),
        notes=tuple(map(_line, gate.notes)),
        more=tuple(_describe_rest(gate, n_flipped=len(flipped))),
    )


def _describe_rest(gate: GateResult, *, n_flipped: int) -> Iterator[str]:
    for what, n in (("layers that changed", len(gate.by_layer)), ("tags with flips", n_flipped)):
        if n > MAX_ROWS:
            yield f"{MAX_ROWS} of {n:,} {what} shown; 'ctxfp gate --json' has all"
    n_calm = len(gate.by_tag) - n_flipped
    if n_calm:
        yield f"{plural(n_calm, 'tag')} without a flip"


def _line(text: str) -> str:
    return escape_line(text, limit=_MAX_LINE)


def _flip_lines(groups: Mapping[str, Flips]) -> tuple[FlipLine, ...]:
    return tuple(
        FlipLine(
            name=show_name(name),
            n=f"{flips.n:,}",
            to_fail=f"{flips.to_fail:,}",
            to_pass=f"{flips.to_pass:,}",
            regressions=f"{flips.regressions:,}",
            p=format_p(flips.p),
            p_adjusted="" if flips.p_adjusted is None else format_p(flips.p_adjusted),
        )
        for name, flips in list(groups.items())[:MAX_ROWS]
    )


def _findings(
    gate: GateResult, numbers: Mapping[int, int]
) -> tuple[tuple[str, tuple[Finding, ...], str], ...]:
    name_of = gate.names
    listed = []
    for verdict, label in LISTED.items():
        found = gate.of(verdict)
        if found:
            lines = tuple(
                Finding(number=numbers.get(id(one.after)), text=_line(describe_case(one, name_of(one.case))))
                for one in found[:MAX_ROWS]
            )
            rest = len(found) - len(lines)
            more = f"and {rest:,} more, which the table of cases has" if rest else ""
            listed.append((label.lower(), lines, more))
    return tuple(listed)
