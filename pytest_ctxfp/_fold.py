"""Samples folded into a case, cases into the figures of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_ctxfp._model import JSONValue

State = Literal["passed", "failed", "error", "skipped"]
"""A verdict, or why there is none: nobody could answer, or nobody was asked."""


class Sampled(Protocol):
    """What folding looks at in one answer to a case."""

    @property
    def state(self) -> State:
        """The verdict, or why there is none."""

    @property
    def reason(self) -> str:
        """The verdict's reason."""

    @property
    def cost(self) -> float | None:
        """USD, or None where unknown."""

    @property
    def latency_ms(self) -> int | None:
        """Milliseconds, or None where unknown."""

    @property
    def turns(self) -> int | None:
        """Model turns, or None where unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFold:
    """What the samples of a case come to.

    Attributes:
        id: the case's id.
        tags: the case's tags, each once.
        samples: number of samples.
        passes: number of those that passed.
        pass_rate: passes / samples, 0..1.
        state: ``error`` if a sample had one, else ``skipped`` if one was, else the verdict.
        flaky: some samples passed and some failed.
        reason: the most frequent one among the failures (the first seen on a tie), else the first sample's.
        cost: USD over all samples, or None if any is unknown.
        latency_ms: mean over the samples, rounded down, or None if any is unknown.
        turns: as ``latency_ms``.
    """

    id: str
    tags: tuple[str, ...]
    samples: int
    passes: int
    pass_rate: float
    state: State
    flaky: bool
    reason: str
    cost: float | None
    latency_ms: int | None
    turns: int | None

    @property
    def passed(self) -> bool:
        """Whether the case as a whole passed; an error is no pass."""
        return self.state == "passed"

    @property
    def has_verdict(self) -> bool:
        """Whether the case was scored."""
        return self.state in ("passed", "failed")

    def to_dict(self) -> dict[str, JSONValue]:
        """Return the figures by the names that Warble's reports use, and ``state``."""
        return {
            "id": self.id,
            "tags": list(self.tags),
            "state": self.state,
            "samples": self.samples,
            "passes": self.passes,
            "pass_rate": self.pass_rate,
            "pass": self.passed,
            "flaky": self.flaky,
            "reason": self.reason,
            "cost": self.cost,
            "latency_ms": self.latency_ms,
            "turns": self.turns,
        }


@dataclass(frozen=True, slots=True)
class TagTotals:
    """A tag's scored cases: how many passed, how many there are, and the sum of their pass rates."""

    passed: int = 0
    n: int = 0
    pass_rate_sum: float = 0.0

    def to_dict(self) -> dict[str, JSONValue]:
        """Return ``{"pass": 1, "n": 2, "pass_rate_sum": 1.5}``."""
        return {"pass": self.passed, "n": self.n, "pass_rate_sum": self.pass_rate_sum}


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The figures of a run, or of a part of it.

    All but the two counts at the end are over the cases with a verdict: an error is neither right nor wrong.

    Attributes:
        n: cases with a verdict.
        n_passed: those that passed as a whole.
        accuracy: mean pass rate, 0..1; 0.0 without cases.
        cost_total_usd: USD of all their answers, or None if any is unknown.
        latency_ms_avg: mean of the cases' means, rounded down, or None if any is unknown.
        turns_avg: as ``latency_ms_avg``.
        flaky_cases: cases whose samples disagree.
        by_tag: the same shares by tag, sorted by name.
        errors: cases without a verdict because of an error.
        skipped: cases that were not asked.
    """

    n: int
    n_passed: int
    accuracy: float
    cost_total_usd: float | None
    latency_ms_avg: int | None
    turns_avg: int | None
    flaky_cases: int
    by_tag: dict[str, TagTotals] = field(default_factory=dict)
    errors: int = 0
    skipped: int = 0

    def to_dict(self) -> dict[str, JSONValue]:
        """Return the figures by the names that Warble's reports use, and ours."""
        return {
            "n": self.n,
            "passed": self.n_passed,
            "accuracy": self.accuracy,
            "cost_total_usd": self.cost_total_usd,
            "latency_ms_avg": self.latency_ms_avg,
            "turns_avg": self.turns_avg,
            "flaky_cases": self.flaky_cases,
            "errors": self.errors,
            "skipped": self.skipped,
            "by_tag": {tag: totals.to_dict() for tag, totals in self.by_tag.items()},
        }


def fold_samples(
    case_id: str,
    samples: Sequence[Sampled],
    *,
    tags: Iterable[str] = (),
    min_pass_rate: float | None = None,
) -> CaseFold:
    """Fold the answers to one case.

    Args:
        case_id: the case's id.
        samples: the answers, in order; at least one.
        tags: the case's tags; one listed twice counts once.
        min_pass_rate: share of samples, 0..1, that must pass; all must where it is None.

    Raises:
        ValueError: no sample.
    """
    if not samples:
        message = f"case {case_id!r} has no sample: nothing to fold"
        raise ValueError(message)
    n, passes = len(samples), sum(sample.state == "passed" for sample in samples)
    state = _fold_state(samples, passes, min_pass_rate)
    return CaseFold(
        id=case_id,
        tags=tuple(dict.fromkeys(tags)),
        samples=n,
        passes=passes,
        pass_rate=passes / n,
        state=state,
        flaky=state in ("passed", "failed") and 0 < passes < n,
        reason=_modal_reason(samples),
        cost=sum_known([sample.cost for sample in samples]),
        latency_ms=_floor_mean([sample.latency_ms for sample in samples]),
        turns=_floor_mean([sample.turns for sample in samples]),
    )


def aggregate(folds: Iterable[CaseFold]) -> Totals:
    """Return the figures over cases, in their order."""
    folds = list(folds)
    scored = [fold for fold in folds if fold.has_verdict]
    rates = sum_known([fold.pass_rate for fold in scored])
    return Totals(
        n=len(scored),
        n_passed=sum(fold.passed for fold in scored),
        accuracy=rates / len(scored) if scored and rates is not None else 0.0,
        cost_total_usd=sum_known([fold.cost for fold in scored]),
        latency_ms_avg=_floor_mean([fold.latency_ms for fold in scored]),
        turns_avg=_floor_mean([fold.turns for fold in scored]),
        flaky_cases=sum(fold.flaky for fold in scored),
        by_tag=_sum_by_tag(scored),
        errors=sum(fold.state == "error" for fold in folds),
        skipped=sum(fold.state == "skipped" for fold in folds),
    )


def _sum_by_tag(folds: Iterable[CaseFold]) -> dict[str, TagTotals]:
    sums: dict[str, tuple[int, int, float]] = {}
    for fold in folds:
        for tag in fold.tags:
            passed, n, rates = sums.get(tag, (0, 0, 0.0))
            sums[tag] = (passed + fold.passed, n + 1, rates + fold.pass_rate)
    return {tag: TagTotals(*sums[tag]) for tag in sorted(sums)}


def sum_known(values: Iterable[float | None]) -> float | None:
    """Add up from left to right, or return None if any is unknown.

    Not with ``sum``: since Python 3.12 it compensates rounding, and two versions would write two reports.
    """
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _fold_state(samples: Sequence[Sampled], passes: int, min_pass_rate: float | None) -> State:
    states = {sample.state for sample in samples}
    if "error" in states:
        return "error"
    if "skipped" in states:
        return "skipped"
    return "passed" if meets_pass_rate(passes, len(samples), min_pass_rate) else "failed"


def meets_pass_rate(passes: int, samples: int, min_pass_rate: float | None) -> bool:
    """Whether so many passes suffice; all samples must pass where there is no ``min_pass_rate``."""
    if min_pass_rate is None:
        return passes == samples
    # As the decimal that was written: 4 of 5 meet 0.8, whose double is a little more.
    return Fraction(passes, samples) >= Fraction(repr(min_pass_rate))


def _modal_reason(samples: Sequence[Sampled]) -> str:
    if len(samples) == 1:
        return samples[0].reason
    for state in ("error", "failed", "skipped"):
        reasons = [sample.reason for sample in samples if sample.state == state]
        if reasons:
            return Counter(reasons).most_common(1)[0][0]  # the first of equals: counters keep their order
    return samples[0].reason


def _floor_mean(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) // len(known) if known and len(known) == len(values) else None
