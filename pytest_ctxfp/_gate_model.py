"""What the gate finds, as records: one a case, one a tag or layer, one for the whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Literal

from pytest_ctxfp._report import case_namer
from pytest_ctxfp._stats import mcnemar_exact

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ctxfp._gate_changes import Change, ChangeKind
    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._report import CaseReport

GateClass = Literal["same key", "new", "gone", "not run"]

NOT_HASHED = (
    "what the provider serves under the model's label",
    "sampling settings that are not in ctx_agent_key",
    "databases, services and files outside of ctx_data_paths and ctx_agent_paths",
    "packages outside of ctx_agent_packages, environment variables outside of ctx_agent_env",
    "the clock and the network",
)
"""What can change an answer or its verdict under the same key."""


class Verdict(str, Enum):
    """What became of a case between two runs."""

    PASSING = "passing"
    REGRESSION = "regression"
    DRIFT = "drift"
    NOISE = "noise"
    KNOWN_FAILING = "known failing"
    FIXED = "fixed"
    NEW_PASSING = "new"
    NEW_FAILING = "new, failing"
    UNKNOWN_FAILING = "failing, baseline unknown"
    ERROR = "error"
    NOT_RUN = "not run"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCase:
    """One case, model and variant in both runs.

    Attributes:
        before: its record in the baseline, or None for a new one.
        after: its record now, or None for one that is gone.
        changes: what differs, the weightiest first; nothing under the same key.
        verdict: what became of it.
        passed_before: the baseline's verdict under today's expectation; None without one, or unknown.
        passed_now: the verdict of this run, None without one.
        pair: both verdicts over the samples that both runs have, under today's expectation; flips are
            counted by it.
        rescored: ``passed_before`` is not the verdict that the baseline's report has.
        is_evidence: its answer is not the baseline's own: it says something about what changed.
        n_failed: failures among all samples of this run, confirming ones too.
        n_weighed: those samples.
    """

    before: CaseReport | None
    after: CaseReport | None
    changes: tuple[Change, ...]
    verdict: Verdict
    passed_before: bool | None = None
    passed_now: bool | None = None
    pair: tuple[bool, bool] | None = None
    rescored: bool = False
    is_evidence: bool = False
    n_failed: int = 0
    n_weighed: int = 0

    @property
    def kind(self) -> ChangeKind | GateClass:
        """The case's class: the weightiest of what differs."""
        if self.before is None:
            return "new"
        if self.after is None:
            return "gone" if self.verdict is Verdict.GONE else "not run"
        return self.changes[0].kind if self.changes else "same key"

    @property
    def same_key(self) -> bool:
        """Whether both answers are to the same key, so that a difference is no effect of a change."""
        return (
            self.before is not None
            and self.after is not None
            and not any(change.is_of_key for change in self.changes)
        )

    @property
    def case(self) -> CaseReport:
        """The record now, or the baseline's where there is none."""
        case = self.after or self.before
        assert case is not None
        return case

    @property
    def is_common(self) -> bool:
        """Whether both runs have a verdict on it, under whatever expectation."""
        return self.before is not None and self.before.fold.has_verdict and self.passed_now is not None

    @property
    def is_compared(self) -> bool:
        """Whether there are two verdicts under one expectation."""
        return self.pair is not None

    @property
    def flipped_to_fail(self) -> bool:
        """Passed in the baseline, failed now; a case that is expected to fail does not count."""
        return self.pair == (True, False) and not (self.after is not None and self.after.xfail)

    @property
    def flipped_to_pass(self) -> bool:
        """Failed in the baseline, passed now."""
        return self.pair == (False, True)

    @property
    def is_confirmed(self) -> bool:
        """Whether a regression rests on more than one answer."""
        return self.verdict is Verdict.REGRESSION and self.n_weighed > 1

    def to_dict(self) -> dict[str, JSONValue]:
        """Return the finding as JSON."""
        case = self.case
        return {
            "id": case.id,
            "file": case.file,
            "model": case.model,
            "variant": case.variant,
            "class": self.kind,
            "changes": [{"kind": change.kind, "details": list(change.details)} for change in self.changes],
            "verdict": self.verdict.value,
            "passed_before": self.passed_before,
            "passed_now": self.passed_now,
            "rescored": self.rescored,
            "evidence": self.is_evidence,
            "failed_samples": self.n_failed,
            "weighed_samples": self.n_weighed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """Flips among some cases.

    Attributes:
        n: cases with two verdicts that are evidence.
        to_fail: those that passed and fail now.
        to_pass: those that failed and pass now.
        regressions: those of ``to_fail`` that are regressions.
        p_adjusted: ``p`` by Holm's method, where several groups were tested.
    """

    n: int = 0
    to_fail: int = 0
    to_pass: int = 0
    regressions: int = 0
    p_adjusted: float | None = None

    @property
    def p(self) -> float:
        """Two-sided exact p of McNemar's test."""
        return mcnemar_exact(self.to_fail, self.to_pass)

    def to_dict(self) -> dict[str, JSONValue]:
        """Return the figures by name."""
        return {
            "n": self.n,
            "to_fail": self.to_fail,
            "to_pass": self.to_pass,
            "regressions": self.regressions,
            "p": self.p,
            "p_adjusted": self.p_adjusted,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """What two runs say about what changed between them.

    Attributes:
        cases: one finding a case, in the order of the current report, those that are gone at the end.
        reasons: why the gate is red, each fit for one line; empty if it is green.
        notes: what a reader must know to read the figures right.
        n_common: cases that have a verdict in both runs.
        n_evidence: those whose answer is not the baseline's own.
        n_asked: those that were asked in this run.
        flips: over the cases that are evidence.
        smallest_drop: the smallest drop, 0..1, that so many cases can show; infinity if none can.
        drift_p: chance of such one-sided flips under the same key if nothing changed; 1.0 without any.
        has_drift: ``drift_p`` is below 0.01.
        by_tag: flips by tag, with Holm's correction.
        by_layer: flips by layer of the context that changed.
    """

    cases: tuple[GateCase, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    n_common: int
    n_evidence: int
    n_asked: int
    flips: Flips
    smallest_drop: float
    drift_p: float
    has_drift: bool
    by_tag: dict[str, Flips] = field(default_factory=dict)
    by_layer: dict[str, Flips] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether the gate is green."""
        return not self.reasons

    @property
    def exit_code(self) -> int:
        """0 for green, 1 for red."""
        return 0 if self.passed else 1

    @property
    def regressions(self) -> tuple[GateCase, ...]:
        """The cases that got worse under a changed key."""
        return self.of(Verdict.REGRESSION)

    @property
    def regressed_tags(self) -> tuple[str, ...]:
        """The tags of those cases, sorted."""
        return tuple(sorted({tag for found in self.regressions for tag in found.case.tags}))

    @property
    def names(self) -> Callable[[CaseReport], str]:
        """What names a case: its label is told only where there are several."""
        return case_namer(found.case for found in self.cases if found.after is not None)

    def of(self, verdict: Verdict) -> tuple[GateCase, ...]:
        """Return the cases of which this became."""
        return tuple(found for found in self.cases if found.verdict is verdict)

    def lines(self) -> list[str]:
        """Return the result as lines for a terminal."""
        from pytest_ctxfp._gate_text import render_gate

        return render_gate(self)

    def to_dict(self) -> dict[str, JSONValue]:
        """Return the result as JSON; ``smallest_drop`` is null where no drop can be shown."""
        drop = self.smallest_drop
        return {
            "passed": self.passed,
            "reasons": list(self.reasons),
            "notes": list(self.notes),
            "common": self.n_common,
            "evidence": self.n_evidence,
            "asked": self.n_asked,
            "flips": self.flips.to_dict(),
            "smallest_drop": drop if drop <= 1 else None,
            "drift_p": self.drift_p,
            "drift": self.has_drift,
            "by_tag": {tag: flips.to_dict() for tag, flips in self.by_tag.items()},
            "by_layer": {layer: flips.to_dict() for layer, flips in self.by_layer.items()},
            "cases": [found.to_dict() for found in self.cases],
        }
