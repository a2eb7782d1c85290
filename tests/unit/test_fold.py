"""Samples folded into cases, cases into figures."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from pytest_ctxfp import aggregate, fold_samples
from pytest_ctxfp._report import SampleReport

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data/fold.jsonl").read_text(encoding="utf-8").splitlines()
]


def sample_of(outcome: dict) -> SampleReport:
    """Return the record of a vector's outcome."""
    return SampleReport(
        state="passed" if outcome["pass"] else "failed",
        reason=outcome["reason"],
        cost=outcome["cost"],
        latency_ms=outcome["latency_ms"],
        turns=outcome["turns"],
        origin="hit" if outcome["cache_hit"] else "miss",
        answer=outcome["answer"],
    )


def samples(states: str, **facts: object) -> list[SampleReport]:
    """Return samples by the first letters of their states."""
    names = {"p": "passed", "f": "failed", "e": "error", "s": "skipped"}
    return [SampleReport(state=names[char], reason=char, **facts) for char in states]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_vectors(vector: dict) -> None:
    """Every folded and aggregated figure is the original tool's, to the last bit."""
    folds = [
        fold_samples(case["id"], [sample_of(outcome) for outcome in case["outcomes"]], tags=case["tags"])
        for case in vector["input"]["cases"]
    ]
    expected = dict(vector["expected"])
    expected_cases = expected.pop("cases")
    assert [
        {key: fold.to_dict()[key] for key in case} for fold, case in zip(folds, expected_cases, strict=True)
    ] == (expected_cases)
    figures = aggregate(folds).to_dict()
    assert {key: figures[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("states", "min_pass_rate", "state"),
    [
        ("ppf", None, "failed"),
        ("ppf", 0.6667, "failed"),
        ("ppf", 0.6666666666666666, "passed"),
        ("ppf", 0.6666666666666667, "failed"),
        ("ppppf", 0.8, "passed"),
        ("pppf", 0.8, "failed"),
        ("f", 0.0, "passed"),
        ("p" * 7 + "f" * 3, 0.7, "passed"),
        ("p" * 6 + "f" * 3, 0.7, "failed"),
        ("ppe", 0.5, "error"),
        ("pps", 0.5, "skipped"),
        ("pse", 0.5, "error"),
    ],
)
def test_state(states: str, min_pass_rate: float | None, state: str) -> None:
    """The share is compared exactly with the decimal that was written; an error is never out-voted."""
    assert fold_samples("a", samples(states), min_pass_rate=min_pass_rate).state == state


def test_unknown_figures_stay_unknown() -> None:
    """One unknown cost, latency or number of turns makes the sum and the mean unknown, not smaller."""
    mixed = [*samples("p", cost=0.1, latency_ms=1, turns=1), *samples("p")]
    fold = fold_samples("a", mixed)
    assert (fold.cost, fold.latency_ms, fold.turns) == (None, None, None)
    totals = aggregate([fold, fold_samples("b", samples("p", cost=0.1, latency_ms=1, turns=1))])
    assert (totals.cost_total_usd, totals.latency_ms_avg, totals.turns_avg) == (None, None, None)


def test_errors_are_no_answers() -> None:
    """An error counts neither as right nor as wrong, in no share and no mean, and is counted apart."""
    folds = [fold_samples(name, samples(name), tags=["t", "t"]) for name in "pfes"]
    totals = aggregate(folds)
    assert (totals.n, totals.accuracy, totals.errors, totals.skipped) == (2, 0.5, 1, 1)
    assert totals.by_tag["t"].to_dict() == {"pass": 1, "n": 2, "pass_rate_sum": 1.0}


def test_nothing_to_fold() -> None:
    """A case without samples is a ValueError; a run without cases has an accuracy of 0."""
    with pytest.raises(ValueError, match="no sample"):
        fold_samples("a", [])
    assert aggregate([]).to_dict()["accuracy"] == 0.0


def test_order_of_samples_changes_no_verdict() -> None:
    """Verdict, share and flakiness don't hang on the order of the samples."""
    folds = {
        (fold.state, fold.pass_rate, fold.flaky)
        for order in itertools.permutations(samples("ppff"))
        for fold in [fold_samples("a", order, min_pass_rate=0.5)]
    }
    assert folds == {("passed", 0.5, True)}
