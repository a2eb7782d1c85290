"""How often the gate is red without a reason, and how often it finds a reason: simulated pairs of runs.

A suite of 60 cases in four tags of 15. Every answer passes with the same probability, in the baseline and
now; a case that flips to fail under a changed key is asked four more times, as ``--ctx-confirm`` does. Each
row is so many pairs of runs through ``gate_reports`` itself. Beside it stand the gate that one would write
first (red if any case flipped to fail), and McNemar's test with Holm over the four tags alone, which finds a
drop of 50 points in one tag of 15 in fewer than half of the pairs.

    python benchmarks/bench_gate.py [number of pairs]

Example output:
    2000 pairs a row                           red  regression       drift    that tag    any flip  Holm's tag
    no change, all keys changed, 0.80        81.8%       81.8%        0.0%       35.4%      100.0%        0.1%
    no change, all keys changed, 0.85        57.0%       57.0%        0.0%       19.5%      100.0%        0.0%
    no change, all keys changed, 0.90        24.9%       24.9%        0.0%        6.8%       99.7%        0.0%
    no change, all keys changed, 0.95         4.2%        4.2%        0.0%        1.3%       95.5%        0.0%
    no change, all keys equal, 0.80           0.4%        0.0%        0.4%        0.0%      100.0%        0.0%
    no change, all keys equal, 0.85           0.3%        0.0%        0.3%        0.0%      100.0%        0.0%
    no change, all keys equal, 0.90           0.3%        0.0%        0.3%        0.0%       99.5%        0.0%
    no change, all keys equal, 0.95           0.1%        0.0%        0.1%        0.0%       94.9%        0.0%
    one tag drops by 50 points, 0.80        100.0%      100.0%        0.0%      100.0%      100.0%       42.9%
    one tag drops by 50 points, 0.90        100.0%      100.0%        0.0%      100.0%      100.0%       44.1%
    one tag drops by 50 points, 0.95        100.0%      100.0%        0.0%      100.0%      100.0%       48.3%
    all within their limits
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass

from pytest_ctxfp import RunReport, gate_reports
from pytest_ctxfp._report import CaseReport, SampleReport

N_PAIRS = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
TAGS = ("orders", "customers", "refunds", "dates")
N_PER_TAG = 15
N_CONFIRM = 4
DROP = 0.5
DROPPED_TAG = TAGS[0]
SEED = 20_260_101


@dataclass(frozen=True)
class Scenario:
    """What is simulated: pass rate, whether keys change, and whether one tag really gets worse."""

    name: str
    pass_rate: float
    keys_change: bool
    drops: bool = False

    def rate_now(self, tag: str) -> float:
        """Return the pass rate of a tag's cases in the current run."""
        return self.pass_rate - DROP if self.drops and tag == DROPPED_TAG else self.pass_rate


@dataclass
class Tally:
    """How many pairs came out how."""

    red: int = 0
    regression: int = 0
    drift: int = 0
    right_tag: int = 0
    naive_red: int = 0
    holm_tag: int = 0


SAME_KEY = {"agent_sha": "a" * 40, "context_sha": "b" * 40}
OTHER_KEY = {"agent_sha": "a" * 40, "context_sha": "c" * 40}


def make_case(index: int, passed: bool, *, confirming: tuple[bool, ...], other_key: bool) -> CaseReport:
    """Return one case of a run."""

    def sample(number: int, is_pass: bool) -> SampleReport:
        return SampleReport(
            state="passed" if is_pass else "failed",
            sample=number,
            origin="miss",
            key_parts=OTHER_KEY if other_key else SAME_KEY,
        )

    return CaseReport(
        id=f"c{index:02}",
        position=index,
        tags=(TAGS[index // N_PER_TAG],),
        samples=(sample(0, passed),),
        confirming=tuple(sample(number, is_pass) for number, is_pass in enumerate(confirming, start=1)),
    )


def simulate_pair(scenario: Scenario, dice: random.Random) -> tuple[RunReport, RunReport]:
    """Return a baseline and a run, with confirming answers where a case flipped under a changed key."""
    before, after = [], []
    for index in range(len(TAGS) * N_PER_TAG):
        rate_now = scenario.rate_now(TAGS[index // N_PER_TAG])
        passed_then, passes_now = dice.random() < scenario.pass_rate, dice.random() < rate_now
        is_flip = passed_then and not passes_now and scenario.keys_change
        confirming = tuple(dice.random() < rate_now for _ in range(N_CONFIRM)) if is_flip else ()
        before.append(make_case(index, passed_then, confirming=(), other_key=False))
        after.append(make_case(index, passes_now, confirming=confirming, other_key=scenario.keys_change))
    return RunReport(cases=tuple(before)), RunReport(cases=tuple(after))


def run_scenario(scenario: Scenario) -> Tally:
    """Put so many pairs through the gate."""
    dice = random.Random(SEED)
    tally = Tally()
    for _ in range(N_PAIRS):
        result = gate_reports(*simulate_pair(scenario, dice))
        tally.red += not result.passed
        tally.regression += bool(result.regressions)
        tally.drift += result.has_drift
        tally.right_tag += not result.passed and DROPPED_TAG in result.regressed_tags
        tally.naive_red += result.flips.to_fail > 0
        holm = result.by_tag[DROPPED_TAG]
        tally.holm_tag += (holm.p_adjusted or 0.0) < 0.05 and holm.to_fail > holm.to_pass
    return tally


SCENARIOS = (
    *(Scenario(f"no change, all keys changed, {rate:.2f}", rate, True) for rate in (0.8, 0.85, 0.9, 0.95)),
    *(Scenario(f"no change, all keys equal, {rate:.2f}", rate, False) for rate in (0.8, 0.85, 0.9, 0.95)),
    *(
        Scenario(f"one tag drops by 50 points, {rate:.2f}", rate, True, drops=True)
        for rate in (0.8, 0.9, 0.95)
    ),
)
LIMITS = {
    "no change, all keys changed, 0.90": ("red", "at most", 0.30),
    "no change, all keys changed, 0.95": ("red", "at most", 0.05),
    **{
        f"no change, all keys equal, {rate}": ("drift", "at most", 0.01)
        for rate in ("0.80", "0.85", "0.90", "0.95")
    },
    **{
        f"one tag drops by 50 points, {rate}": ("right_tag", "at least", 0.80)
        for rate in ("0.80", "0.90", "0.95")
    },
}


def main() -> int:
    """Print the table; 1 where a share is beyond its limit."""
    failed = []
    columns = ("red", "regression", "drift", "right_tag", "naive_red", "holm_tag")
    titles = ("red", "regression", "drift", "that tag", "any flip", "Holm's tag")
    print(f"{N_PAIRS} pairs a row".ljust(34) + "".join(f"{title:>12}" for title in titles))
    for scenario in SCENARIOS:
        tally = run_scenario(scenario)
        shares = {name: getattr(tally, name) / N_PAIRS for name in columns}
        print(f"{scenario.name:<34}" + "".join(f"{shares[name]:>12.1%}" for name in columns))
        column, side, limit = LIMITS.get(scenario.name, ("red", "at most", 1.0))
        if (shares[column] > limit) if side == "at most" else (shares[column] < limit):
            failed.append(f"{scenario.name}: {column} is {shares[column]:.1%}, {side} {limit:.0%} is wanted")
        if not scenario.keys_change and tally.regression:
            failed.append(f"{scenario.name}: a regression under equal keys")
    print("\n".join(failed) or "all within their limits")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
