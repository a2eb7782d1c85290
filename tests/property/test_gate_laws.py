"""Laws of folding, selecting and gating that hold for whatever runs there are."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_ctxfp import RunReport, aggregate, fold_samples, gate_reports, select_cases
from pytest_ctxfp._gate_model import Verdict
from pytest_ctxfp._report import CaseReport, SampleReport
from pytest_ctxfp._stats import holm, mcnemar_exact, mcnemar_one_sided

STATES = st.sampled_from(["passed", "failed", "error", "skipped"])
TAGS = st.lists(st.sampled_from("xyz"), max_size=3).map(tuple)


@dataclass(frozen=True)
class Case:
    """What selection looks at."""

    tags: tuple[str, ...]


@st.composite
def samples(draw: st.DrawFn, number: int, *, agents: st.SearchStrategy[str]) -> SampleReport:
    """Draw an answer of any state and origin."""
    agent = draw(agents)
    return SampleReport(
        state=draw(STATES),
        reason=draw(st.sampled_from("ab")),
        sample=number,
        origin=draw(st.sampled_from(["hit", "miss", "refreshed", "uncached", None])),
        key=agent,
        key_parts={"agent_sha": agent},
        cost=draw(st.sampled_from([None, 0.1, 1e6])),
        latency_ms=draw(st.sampled_from([None, 1, 2])),
        answer=draw(st.sampled_from([None, "x"])),
    )


@st.composite
def reports(draw: st.DrawFn, *, agents: st.SearchStrategy[str]) -> RunReport:
    """Draw a run of a few cases."""
    ids = draw(st.lists(st.sampled_from("abcde"), unique=True, max_size=5))
    cases = tuple(
        CaseReport(
            id=name,
            position=position,
            model=draw(st.sampled_from("mn")),
            tags=draw(TAGS),
            xfail=draw(st.sampled_from([None, None, "todo"])),
            expectation_sha=draw(st.sampled_from(["1", "2"])),
            min_pass_rate=draw(st.sampled_from([None, 0.0, 0.5, 2 / 3, 1.0])),
            samples=tuple(draw(samples(n, agents=agents)) for n in range(draw(st.integers(1, 3)))),
            confirming=tuple(draw(samples(n, agents=agents)) for n in range(3, draw(st.integers(3, 5)))),
        )
        for position, name in enumerate(ids)
    )
    return RunReport(cases=cases, complete=draw(st.booleans()))


# Runs are large values: on a busy machine their making alone takes longer than the usual limits.
UNHURRIED = settings(suppress_health_check=[HealthCheck.too_slow])
ONE_AGENT = st.just("a" * 40)
ANY_AGENT = st.sampled_from(["a" * 40, "b" * 40, "-"])


@UNHURRIED
@given(reports(agents=ANY_AGENT), reports(agents=ANY_AGENT))
def test_every_case_is_judged_once_and_every_red_has_a_reason(before: RunReport, after: RunReport) -> None:
    """Whatever two runs are, each case has one finding, and the colour follows from the reasons."""
    result = gate_reports(before, after, allow_incomplete=True)
    judged = Counter(id(case) for found in result.cases for case in (found.before, found.after) if case)
    assert judged == Counter(id(case) for report in (before, after) for case in report.cases)
    assert [found.after for found in result.cases if found.after] == list(after.cases)
    red = (Verdict.REGRESSION, Verdict.ERROR, Verdict.NEW_FAILING, Verdict.UNKNOWN_FAILING, Verdict.GONE)
    is_red = any(map(result.of, red)) or result.has_drift or not result.n_common or not after.complete
    assert result.passed is not is_red
    assert len(result.lines()) >= 1
    json.dumps(result.to_dict(), allow_nan=False)


@UNHURRIED
@given(reports(agents=ONE_AGENT), reports(agents=ONE_AGENT))
def test_equal_keys_are_never_a_regression(before: RunReport, after: RunReport) -> None:
    """Under equal keys whatever flips is noise or drift."""
    result = gate_reports(before, after, allow_incomplete=True)
    assert all(found.kind == "model" for found in result.regressions)


@UNHURRIED
@given(reports(agents=ONE_AGENT))
def test_a_run_against_itself(report: RunReport) -> None:
    """A run held against itself has no flip, no regression and no drift."""
    result = gate_reports(report, report, allow_incomplete=True)
    assert (result.flips.to_fail, result.flips.to_pass) == (0, 0)
    assert not result.regressions
    assert not result.has_drift


@UNHURRIED
@given(reports(agents=ANY_AGENT))
def test_a_report_survives_its_file(report: RunReport) -> None:
    """Reading back what was written gives the same report."""
    assert RunReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report


@given(st.lists(samples(0, agents=ONE_AGENT), min_size=1, max_size=6), st.data())
def test_folding_is_free_of_order(answers: list[SampleReport], data: st.DataObject) -> None:
    """The order of the samples changes no verdict, share or mean."""
    folds = [
        fold_samples("a", order, min_pass_rate=0.5)
        for order in (answers, data.draw(st.permutations(answers)))
    ]
    facts = [(f.state, f.pass_rate, f.flaky, f.latency_ms, f.turns, f.cost is None) for f in folds]
    assert facts[0] == facts[1]


@given(st.lists(st.lists(STATES, min_size=1, max_size=4), max_size=8))
def test_accuracy_is_a_share(cases: list[list[str]]) -> None:
    """The accuracy lies within 0..1 and every case is counted exactly once."""
    folds = [fold_samples("a", [SampleReport(state=state) for state in states]) for states in cases]
    totals = aggregate(folds)
    assert 0 <= totals.accuracy <= 1
    assert totals.n + totals.errors + totals.skipped == len(cases)


@given(st.lists(TAGS.map(Case), min_size=1, max_size=40), st.integers(1, 60))
def test_a_count_is_kept_exactly(cases: list[Case], n: int) -> None:
    """A count keeps that many cases, in order and each once, the first one among them."""
    indices = select_cases(cases, sample=str(n)).indices
    assert len(indices) == min(n, len(cases))
    assert list(indices) == sorted(set(indices))
    assert indices[0] == 0


@given(st.lists(TAGS.map(Case), min_size=1, max_size=40), st.integers(1, 5))
def test_per_tag_covers_every_tag(cases: list[Case], limit: int) -> None:
    """Each tag keeps as many cases as it has, up to the limit, and so does the group without tags."""
    kept = [cases[index] for index in select_cases(cases, sample=f"per-tag:{limit}").indices]
    for group in {tag for case in cases for tag in case.tags or ("",)}:
        has = [case for case in cases if group in (case.tags or ("",))]
        assert sum(group in (case.tags or ("",)) for case in kept) >= min(limit, len(has))


@given(st.integers(0, 3_000), st.integers(0, 3_000))
def test_mcnemar_is_symmetric_and_a_probability(b: int, c: int) -> None:
    """Swapping the sides changes nothing, and the two one-sided tails overlap."""
    assert mcnemar_exact(b, c) == mcnemar_exact(c, b)
    assert 0 <= mcnemar_exact(b, c) <= 1
    assert mcnemar_one_sided(b, c) + mcnemar_one_sided(c, b) >= 1 - 1e-9


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_only_raises_and_keeps_the_order(p_values: list[float]) -> None:
    """No adjusted p is smaller than its own, and none overtakes a larger one."""
    adjusted = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    ranked = sorted(zip(p_values, adjusted, strict=True))
    assert [q for _, q in ranked] == sorted(adjusted)
