"""The cases of a summary: what the samples of each come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ctxfp._fold import fold_samples

if TYPE_CHECKING:
    from pytest_ctxfp._fold import CaseFold, State
    from pytest_ctxfp._records import CaseRecord
    from pytest_ctxfp.plugin.facts import RunFacts


@dataclass(frozen=True, slots=True)
class SummedCase:
    """A case of the summary: what its samples come to, and the label of its model and variant."""

    fold: CaseFold
    label: str
    is_refused: bool
    is_xfailed: bool


def fold_cases(facts: RunFacts) -> list[SummedCase]:
    """Return each case with its samples folded."""
    groups = [[r for r in records if r["kind"] == "case"] for records in facts.by_case().values()]
    return [_fold_records(records) for records in groups if records]


def _fold_records(records: list[CaseRecord]) -> SummedCase:
    first = records[0]
    fold = fold_samples(
        first["id"],
        [_SampleFacts(record) for record in records],
        tags=first.get("tags", ()),
        min_pass_rate=first.get("min_pass_rate"),
    )
    return SummedCase(
        fold,
        "-".join(filter(None, (first.get("model"), first.get("variant")))),
        is_refused=any(record["state"] == "refused" for record in records),
        is_xfailed=any(record.get("xfailed") for record in records),
    )


class _SampleFacts:
    """A record as folding looks at it."""

    def __init__(self, record: CaseRecord) -> None:
        verdicts: dict[bool | None, State] = {True: "passed", False: "failed"}
        unscored: State = "error" if record["state"] == "error" else "skipped"
        self.state: State = verdicts.get(record.get("passed"), unscored)
        self.reason = record.get("reason", "")
        self.cost = record.get("cost")
        self.latency_ms = record.get("latency_ms")
        self.turns = record.get("turns")
