"""The gate, by the stories it has to tell right."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pytest_ctxfp import CtxfpError, RunReport, fingerprint_context, gate_reports, git_blob_sha
from pytest_ctxfp._gate_model import NOT_HASHED, Verdict
from pytest_ctxfp._report import CaseReport, SampleReport

OLD_AGENT, NEW_AGENT = "a" * 40, "b" * 40
MANIFESTS = {OLD_AGENT: {"agent.md": "1", "tools.py": "1"}, NEW_AGENT: {"agent.md": "2", "more.md": "1"}}
OLD_RULES = "## Identity\nshop\n## Business Rules\n- exclude returns\n"
NEW_RULES = "## Identity\nshop\n## Business Rules\n- count all\n## Glossary\n- n: number\n"


def make_sample(
    passed: bool | None, *, case: str, agent: str, context: str, model: str, **facts: object
) -> SampleReport:
    """Return an answer; one that was neither right nor wrong is an error."""
    parts = {
        "case_id": case,
        "question": f"{case}?",
        "agent_sha": agent,
        "model": model,
        "context_sha": git_blob_sha(context.encode()),
        "sample": facts.get("sample", 0),
    }
    defaults = {
        "state": {True: "passed", False: "failed", None: "error"}[passed],
        "reason": "match" if passed else "off by 1",
        "origin": "miss",
        "key": git_blob_sha(json.dumps(parts).encode()),
        "key_parts": parts,
        "answer": {"rows": [[1 if passed else 2]]},
    }
    return SampleReport(**{**defaults, **facts})


def make_case(
    name: str,
    *passed: bool | None,
    confirming: tuple[bool | None, ...] = (),
    expected: int = 1,
    agent: str = OLD_AGENT,
    context: str = OLD_RULES,
    model: str = "m",
    sample_facts: dict | None = None,
    **facts: object,
) -> CaseReport:
    """Return a case with a sample a verdict; the context, agent and expectation make its identity."""
    shared = {"case": name, "agent": agent, "context": context, "model": model, **(sample_facts or {})}
    n = len(passed)
    defaults = {
        "file": "golden.yaml",
        "tags": ("orders",),
        "expectation_sha": str(expected),
        "expectation": {"result_kind": "table", "match": "scalar", "expected": {"rows": [[expected]]}},
        "context": fingerprint_context(context).to_dict(),
        "samples": tuple(make_sample(ok, sample=i, **shared) for i, ok in enumerate(passed)),
        "confirming": tuple(make_sample(ok, sample=n + i, **shared) for i, ok in enumerate(confirming)),
    }
    return CaseReport(id=name, model=model, **{**defaults, **facts})


def run(*cases: CaseReport, **facts: object) -> RunReport:
    """Return a report whose cases are numbered as given."""
    numbered = tuple(replace(case, position=index) for index, case in enumerate(cases))
    return RunReport(cases=numbered, manifests=MANIFESTS, **facts)


def replayed(report: RunReport) -> RunReport:
    """Return the same answers, from the cache."""
    return replace(
        report,
        cases=tuple(
            replace(case, samples=tuple(replace(sample, origin="hit") for sample in case.samples))
            for case in report.cases
        ),
    )


def names(verdict: Verdict, result: object) -> list[str]:
    """Return the ids of the cases of which this became."""
    return [found.case.id for found in result.of(verdict)]


def sixty(n_failing: int, **facts: object) -> RunReport:
    """Return a run of sixty cases of which the last ones fail."""
    return run(*(make_case(f"c{i:02}", i < 60 - n_failing, **facts) for i in range(60)))


def test_a_flip_under_the_same_key_is_noise() -> None:
    """One answer that came out otherwise under the same key is listed as noise, and the gate is green."""
    result = gate_reports(sixty(0), sixty(1))
    assert result.passed
    assert result.exit_code == 0
    assert names(Verdict.NOISE, result) == ["c59"]
    assert {found.kind for found in result.cases} == {"same key"}
    assert (result.flips.to_fail, result.flips.to_pass, result.n_evidence) == (1, 0, 60)
    assert "c59: consistent with chance (on the same key)" in "\n".join(result.lines())


def test_many_flips_under_the_same_key_are_drift() -> None:
    """Twenty of sixty answers gone wrong under the same key are red, with what is not hashed."""
    result = gate_reports(sixty(0), sixty(20))
    assert result.has_drift
    assert result.drift_p == 2**-20
    assert not result.regressions
    assert any("drift" in reason for reason in result.reasons)
    assert all(cause in "\n".join(result.lines()) for cause in NOT_HASHED)
    assert len(names(Verdict.DRIFT, result)) == 20
    assert "consistent with chance" not in "\n".join(result.lines())


def test_drift_takes_no_flip_under_a_changed_key() -> None:
    """What chance explains stays noise beside a drift: a flip of a changed key that did not confirm."""
    changed = make_case("a", False, confirming=(True, True), agent=NEW_AGENT)
    before = run(*sixty(0).cases, make_case("a", True))
    result = gate_reports(before, run(*sixty(20).cases, changed))
    assert names(Verdict.NOISE, result) == ["a"]


def test_an_answer_that_got_better_on_the_same_key_may_be_noise() -> None:
    """A fix under the same key is not put down to a change."""
    assert "FIXED      c59: on the same key; may be noise" in gate_reports(sixty(1), sixty(0)).lines()


@pytest.mark.parametrize(("n_failing", "has_drift"), [(6, False), (7, True)])
def test_drift_begins_below_one_percent(n_failing: int, has_drift: bool) -> None:
    """Six flips, all one way, have p = 1/64 and are noise; seven have 1/128 and are drift."""
    assert gate_reports(sixty(0), sixty(n_failing)).has_drift is has_drift


def test_flips_both_ways_are_no_drift() -> None:
    """As many flips one way as the other say that answers vary, not that something changed."""
    before = run(*(make_case(f"c{i}", i % 2 == 0) for i in range(40)))
    after = run(*(make_case(f"c{i}", i % 2 == 1) for i in range(40)))
    assert gate_reports(before, after).passed


def test_answers_that_got_better_are_no_drift() -> None:
    """The test is one-sided: flips to pass never make the gate red."""
    assert gate_reports(sixty(20), sixty(0)).passed


def test_a_confirmed_regression_is_attributed_to_its_layer() -> None:
    """Where one rule was edited and most samples fail, the gate is red and names the layer."""
    before = run(make_case("a", True), make_case("b", True))
    after = run(
        make_case("a", False, context=NEW_RULES, confirming=(False, False, True, False)),
        make_case("b", True, context=NEW_RULES),
    )
    result = gate_reports(before, after)
    assert not result.passed
    assert [found.case.id for found in result.regressions] == ["a"]
    found = result.regressions[0]
    assert found.kind == "context"
    assert found.changes[0].details == ("Business Rules", "Glossary (added)")
    assert (found.n_failed, found.n_weighed, found.is_confirmed) == (4, 5, True)
    assert result.by_layer["Business Rules"].to_dict()["regressions"] == 1
    assert result.regressed_tags == ("orders",)
    text = "\n".join(result.lines())
    assert "consistent with context: Business Rules, Glossary (added) (4 of 5 samples failed)" in text
    assert "caused" not in text


def test_an_unlucky_sample_is_not_confirmed() -> None:
    """Where one rule was edited and the flip doesn't repeat, the gate is green and lists noise."""
    after = run(make_case("a", False, context=NEW_RULES, confirming=(True, False, True, True)))
    result = gate_reports(run(make_case("a", True)), after)
    assert result.passed
    assert names(Verdict.NOISE, result) == ["a"]
    assert "2 of 5 samples failed" in "\n".join(result.lines())


@pytest.mark.parametrize(
    ("confirming", "verdict"),
    [
        ((False, True, True), Verdict.NOISE),
        ((False, False, True), Verdict.REGRESSION),
        ((None, None, None), Verdict.REGRESSION),
        ((True,), Verdict.NOISE),
    ],
)
def test_most_means_more_than_half(confirming: tuple[bool | None, ...], verdict: Verdict) -> None:
    """Half of the samples is not most of them, and samples that ended in an error weigh nothing."""
    after = run(make_case("a", False, agent=NEW_AGENT, confirming=confirming))
    assert gate_reports(run(make_case("a", True)), after).cases[0].verdict is verdict


def test_a_flip_without_confirmation_is_red_and_says_so() -> None:
    """Where nothing was asked again the one answer decides, and the note says that it is only one."""
    result = gate_reports(run(make_case("a", True)), run(make_case("a", False, agent=NEW_AGENT)))
    assert not result.passed
    assert any("not confirmed" in note for note in result.notes)


def test_most_samples_of_a_repeated_case_decide() -> None:
    """A flaky case that mostly passes is no regression, even though it must pass always."""
    before = run(make_case("a", True, True, True))
    result = gate_reports(before, run(make_case("a", True, False, True, context=NEW_RULES)))
    assert result.passed
    assert names(Verdict.NOISE, result) == ["a"]


@pytest.mark.parametrize("passes_now", [True, False])
def test_a_recalibrated_golden_is_scored_on_both_sides(passes_now: bool) -> None:
    """The baseline's own answer is scored under the new expectation, so that the agent isn't blamed."""
    before = run(make_case("a", True, sample_facts={"answer": {"rows": [[1]]}}))
    after = run(make_case("a", passes_now, expected=5, sample_facts={"recorded_at": "later"}))
    result = gate_reports(before, after)
    assert result.passed
    assert result.cases[0].kind == "expectation"
    assert result.cases[0].same_key
    assert result.cases[0].rescored
    assert result.cases[0].verdict is (Verdict.FIXED if passes_now else Verdict.KNOWN_FAILING)
    assert any("re-scored" in note for note in result.notes)


def test_a_recalibrated_golden_that_the_baseline_meets_too() -> None:
    """A failed answer of the baseline that the new expectation accepts is no gain either."""
    before = run(make_case("a", False, sample_facts={"answer": {"rows": [[5]]}}))
    result = gate_reports(before, run(make_case("a", True, expected=5)))
    assert result.cases[0].verdict is Verdict.PASSING
    assert result.cases[0].rescored


@pytest.mark.parametrize(
    "gone",
    [{"answer": None}, {"answer": "cut", "answer_cut": True}],
    ids=["not kept", "cut"],
)
def test_a_recalibrated_golden_whose_old_answer_is_gone(gone: dict) -> None:
    """Where the baseline's answer is not at hand its verdict is said to be unknown, and passing is green."""
    before = run(make_case("a", True, sample_facts=gone))
    passing = gate_reports(before, run(make_case("a", True, expected=5)))
    assert passing.passed
    assert passing.cases[0].passed_before is None
    assert any("can't be re-scored" in note for note in passing.notes)
    failing = gate_reports(before, run(make_case("a", False, expected=5)))
    assert not failing.passed
    assert failing.cases[0].verdict is Verdict.UNKNOWN_FAILING


def test_a_replayed_answer_is_the_baselines_own() -> None:
    """An answer that was replayed and re-scored in this run tells the baseline's verdict by itself."""
    facts = {"key": "k", "key_parts": None}
    before = run(make_case("a", True, sample_facts={**facts, "answer": None}))
    after = run(make_case("a", False, expected=5, sample_facts={**facts, "origin": "hit"}))
    result = gate_reports(before, after)
    assert result.passed
    assert names(Verdict.KNOWN_FAILING, result) == ["a"]


def test_a_changed_pass_rate_is_an_expectation_too() -> None:
    """The baseline's samples are folded under today's min_pass_rate."""
    before = run(make_case("a", True, True, False, min_pass_rate=0.5))
    result = gate_reports(before, run(make_case("a", True, True, False, min_pass_rate=0.9)))
    assert result.passed
    assert result.cases[0].kind == "expectation"
    assert result.cases[0].verdict is Verdict.KNOWN_FAILING


def test_an_edited_agent_is_named_by_its_files() -> None:
    """A case under an edited agent is of class agent, with the files that changed, came and went."""
    result = gate_reports(run(make_case("a", False)), run(make_case("a", True, agent=NEW_AGENT)))
    assert result.cases[0].kind == "agent"
    assert result.cases[0].changes[0].details == ("agent.md", "more.md (new)", "tools.py (gone)")
    assert names(Verdict.FIXED, result) == ["a"]


def test_a_raised_scorer_is_no_regression_of_the_agent() -> None:
    """Where only the scorer's version rose, the same answer's new verdict is held against itself."""
    before = run(make_case("a", True, scorer="judge@1"))
    after = replayed(run(make_case("a", False, scorer="judge@2")))
    result = gate_reports(before, after)
    assert result.passed
    assert result.cases[0].kind == "scorer"
    assert result.cases[0].changes[0].details == ("judge@1 -> judge@2",)
    assert names(Verdict.KNOWN_FAILING, result) == ["a"]


def test_a_raised_scorer_and_a_new_answer_is_unknown() -> None:
    """What the new scorer would have said of the old answer can't be known from a report."""
    after = run(make_case("a", False, scorer="judge@2"))
    result = gate_reports(run(make_case("a", True, scorer="judge@1")), after)
    assert result.cases[0].verdict is Verdict.UNKNOWN_FAILING


def test_ten_known_failing_cases_are_green() -> None:
    """A suite at fifty of sixty is green as long as it is the same ten."""
    result = gate_reports(sixty(10), sixty(10, context=NEW_RULES))
    assert result.passed
    assert names(Verdict.KNOWN_FAILING, result) == [f"c{i}" for i in range(50, 60)]
    assert sum("KNOWN FAILING" in line for line in result.lines()) == 1


def test_a_case_gone_from_a_full_run_is_red() -> None:
    """A golden case that was removed or renamed is not lost silently."""
    result = gate_reports(run(make_case("a", True), make_case("b", True)), run(make_case("a", True)))
    assert not result.passed
    assert names(Verdict.GONE, result) == ["b"]
    assert result.cases[-1].kind == "gone"


def test_a_case_outside_of_a_subset_is_not_gone() -> None:
    """A subset run judges only what it ran, and says that it is a subset."""
    after = run(make_case("a", True), selected_cases=1, total_cases=2)
    result = gate_reports(run(make_case("a", True), make_case("b", True)), after)
    assert result.passed
    assert names(Verdict.NOT_RUN, result) == ["b"]
    assert any("1 of 2 cases" in note for note in result.notes)


def test_another_model_label_is_no_new_case() -> None:
    """The same cases under another model are compared, as of class model."""
    result = gate_reports(run(make_case("a", True)), run(make_case("a", True, model="n")))
    assert result.passed
    assert result.cases[0].kind == "model"
    assert result.cases[0].changes[0].details == ("m -> n",)


def test_one_of_two_models_that_was_not_run_is_not_gone() -> None:
    """A case that ran under one of the baseline's models is still there."""
    before = run(make_case("a", True), make_case("a", True, model="n"))
    result = gate_reports(before, run(make_case("a", True)))
    assert result.passed
    assert [found.verdict for found in result.cases] == [Verdict.PASSING, Verdict.NOT_RUN]


def test_a_renamed_golden_file_makes_nothing_new() -> None:
    """A case is found again in another file."""
    result = gate_reports(run(make_case("a", True)), run(make_case("a", True, file="other.yaml")))
    assert result.passed
    assert result.cases[0].kind == "same key"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (run(make_case("a", True)), run(make_case("b", True), selected_cases=1, total_cases=9)),
        (run(), run(make_case("b", True))),
        (run(make_case("a", True)), run(make_case("a", None))),
        (run(), run()),
    ],
    ids=["others", "empty baseline", "no verdict", "empty"],
)
def test_no_common_case_is_red(before: RunReport, after: RunReport) -> None:
    """Where nothing can be compared, nothing is certified."""
    result = gate_reports(before, after)
    assert not result.passed
    assert result.reasons[0].startswith("no common case")


def test_a_run_replayed_whole_is_no_evidence() -> None:
    """A run that only replays the baseline's answers says so, and its figures rest on nothing."""
    before = sixty(3)
    result = gate_reports(before, replayed(before))
    assert result.passed
    assert (result.n_common, result.n_evidence, result.n_asked) == (60, 0, 0)
    assert result.smallest_drop > 1
    assert any(note.startswith("0 cases are evidence") for note in result.notes)


def test_a_replayed_answer_recorded_since_is_evidence() -> None:
    """A stored answer that is not the baseline's own says something, though nobody was asked now."""
    before = run(make_case("a", True, sample_facts={"recorded_at": "2026-01-01T00:00:00Z"}))
    after = run(make_case("a", True, sample_facts={"recorded_at": "2026-01-02T00:00:00Z", "origin": "hit"}))
    result = gate_reports(before, after)
    assert (result.n_evidence, result.n_asked) == (1, 0)


def test_errors_are_red_and_no_verdict() -> None:
    """A case that ended with an error is neither a regression nor known failing."""
    before = run(make_case("a", True), make_case("b", False))
    result = gate_reports(before, run(make_case("a", None, agent=NEW_AGENT), make_case("b", None)))
    assert names(Verdict.ERROR, result) == ["a", "b"]
    assert any("error" in reason for reason in result.reasons)


def test_new_cases() -> None:
    """A new case that passes is green, one that fails is red unless it is expected to fail."""
    before = run(make_case("a", True))
    assert gate_reports(before, run(make_case("a", True), make_case("b", True))).passed
    failing = gate_reports(before, run(make_case("a", True), make_case("b", False)))
    assert names(Verdict.NEW_FAILING, failing) == ["b"]
    assert not failing.passed
    assert gate_reports(before, run(make_case("a", True), make_case("b", False, xfail="todo"))).passed


def test_an_expected_failure_is_no_regression() -> None:
    """A case marked xfail may fail under a changed key."""
    result = gate_reports(run(make_case("a", True)), run(make_case("a", False, agent=NEW_AGENT, xfail="x")))
    assert result.passed
    assert result.flips.to_fail == 0


def test_an_interrupted_baseline_is_refused() -> None:
    """An incomplete report is no baseline unless one asks for it; an incomplete run is never green."""
    before = run(make_case("a", True), complete=False)
    after = run(make_case("a", True))
    with pytest.raises(CtxfpError, match="interrupted"):
        gate_reports(before, after)
    assert gate_reports(before, after, allow_incomplete=True).passed
    assert not gate_reports(after, before).passed


def test_an_agent_that_nobody_hashed_has_no_same_key() -> None:
    """Where the agent's files are not known, a flip can't be called noise."""
    result = gate_reports(run(make_case("a", True, agent="-")), run(make_case("a", False, agent="-")))
    assert result.cases[0].kind == "agent"
    assert result.cases[0].verdict is Verdict.REGRESSION


def test_a_key_that_was_not_recorded_is_not_the_same() -> None:
    """Two answers without a key are compared as under a changed key: a regression is not called noise."""
    facts = {"key": None, "key_parts": None}
    before, after = (run(make_case("a", ok, sample_facts=facts)) for ok in (True, False))
    assert gate_reports(before, after).cases[0].verdict is Verdict.REGRESSION


def test_changed_questions_and_parameters_are_named() -> None:
    """Inputs are of class question/inputs, other parameters of class agent."""

    def case(passed: bool, params: dict) -> CaseReport:
        made = make_case("a", passed)
        sample = made.samples[0]
        return replace(made, samples=(replace(sample, key_parts={**sample.key_parts, "params": params}),))

    result = gate_reports(
        run(case(True, {"inputs": {"n": 1}, "env": "x"})), run(case(True, {"inputs": {"n": 2}, "env": "y"}))
    )
    assert [str(change) for change in result.cases[0].changes] == ["question/inputs: inputs", "agent: env"]


def test_several_tags_are_tested_together() -> None:
    """Each tag's p is adjusted for the number of tags."""
    before = run(*(make_case(f"c{i}", True, tags=("x" if i < 8 else "y",)) for i in range(16)))
    after = run(
        *(make_case(f"c{i}", i >= 7, tags=("x" if i < 8 else "y",), context=NEW_RULES) for i in range(16))
    )
    by_tag = gate_reports(before, after).by_tag
    assert by_tag["x"].p == 2 / 2**7
    assert by_tag["x"].p_adjusted == 4 / 2**7
    assert by_tag["y"].p_adjusted == 1.0


def test_tolerance() -> None:
    """Regressions on a share of the cases may be let through; drift and errors never are."""
    before = sixty(0)
    after = sixty(3, context=NEW_RULES)
    assert gate_reports(before, after, tolerance=0.05).passed
    assert not gate_reports(before, after, tolerance=0.049).passed
    assert not gate_reports(before, sixty(20), tolerance=1.0).passed
    with pytest.raises(ValueError, match="tolerance"):
        gate_reports(before, after, tolerance=float("nan"))


def test_more_samples_are_no_drift() -> None:
    """A suite that is repeated more often fails more cases; the samples that both runs have decide."""
    before = run(*(make_case(f"c{i}", True) for i in range(60)))
    after = run(*(make_case(f"c{i}", True, True, i % 2 == 0) for i in range(60)))
    result = gate_reports(before, after)
    assert result.passed
    assert result.flips.to_fail == 0
    assert len(names(Verdict.NOISE, result)) == 30


def test_a_key_that_differs_only_in_what_was_redacted_is_not_the_same() -> None:
    """Where the written parts are equal and the hashes are not, something changed that can't be named."""
    before, after = (run(make_case("a", ok, sample_facts={"key": str(ok)})) for ok in (True, False))
    assert gate_reports(before, after).cases[0].verdict is Verdict.REGRESSION


def test_skipped_cases_are_said() -> None:
    """A case that nobody was asked about is not judged, and the result says so."""
    before = run(make_case("a", True), make_case("b", True))
    skipped = make_case("b", True, sample_facts={"state": "skipped", "origin": None})
    result = gate_reports(before, run(make_case("a", True), skipped))
    assert result.passed
    assert "1 case skipped, not judged: b" in result.notes


def test_two_variants_are_two_cases() -> None:
    """Each variant is held against itself."""
    before = run(make_case("a", True, variant="x"), make_case("a", False, variant="y"))
    result = gate_reports(before, before)
    assert [found.verdict for found in result.cases] == [Verdict.PASSING, Verdict.KNOWN_FAILING]


def test_a_model_served_behind_the_same_label_is_said() -> None:
    """A provider's silent change of model is named, as it is not in the key."""
    before = run(make_case("a", True, sample_facts={"served_model": "m-1"}))
    after = run(make_case("a", True, sample_facts={"served_model": "m-2"}))
    assert "the provider serves another model: m-1 -> m-2" in gate_reports(before, after).notes


@pytest.mark.parametrize(
    ("before", "now", "is_said"),
    [
        ("2026-11-30T19:00:01+00:00", "2026-11-30T19:00:00+00:00", True),
        ("2026-11-30T19:00:00+00:00", "2026-11-30T19:00:00+00:00", False),
        ("2026-11-30T19:00:00+00:00", "2026-11-30T19:00:01+00:00", False),
        ("2026-11-30T19:00:01+00:00", None, False),
        ("someday", "2026-11-30T19:00:00+00:00", False),
    ],
)
def test_a_baseline_that_is_later_is_said(before: str, now: str | None, is_said: bool) -> None:
    """Two reports in the wrong order would call a regression fixed: a note asks for it."""
    cases = [make_case("a", True)]
    result = gate_reports(run(*cases, recorded_at=before), run(*cases, recorded_at=now))
    assert any("swapped" in note for note in result.notes) is is_said


def test_one_report_in_both_places_is_said() -> None:
    """A report held against itself shows nothing, and a note says so."""
    note = "both reports are the same: nothing was compared"
    report = run(make_case("a", True), recorded_at="2026-11-30T19:00:00+00:00")
    assert note in gate_reports(report, report).notes
    assert note not in gate_reports(report, replace(report, recorded_at="2026-11-30T19:00:01+00:00")).notes


def test_the_result_survives_report_files() -> None:
    """Reports that went through JSON give the same result, and the result itself is JSON."""
    before = sixty(2)
    after = sixty(9, context=NEW_RULES, confirming=(False,) * 4)
    direct = gate_reports(before, after)
    read = gate_reports(*(RunReport.from_dict(json.loads(json.dumps(r.to_dict()))) for r in (before, after)))
    assert read == direct
    assert json.loads(json.dumps(direct.to_dict(), allow_nan=False))["passed"] is False


def test_lines_are_lines() -> None:
    """Names from a report can't break the output, and long lists are cut."""
    evil = [make_case(f"a\n\x1b[31m\u202e{i}", True, tags=("t\ntag",)) for i in range(200)]
    worse = [make_case(case.id, False, tags=case.tags, agent=NEW_AGENT) for case in evil]
    lines = gate_reports(run(*evil), run(*worse)).lines()
    assert len(lines) < 60
    assert all(line.isprintable() for line in lines)


def test_tests_of_one_case_are_told_apart() -> None:
    """Two tests that run the same case are each weighed against their own answer, also if only one runs."""
    before = run(make_case("a", True, test="t.py::test_one"), make_case("a", False, test="t.py::test_two"))
    only_two = run(make_case("a", False, test="t.py::test_two", context="## Rules\nnew\n"))
    result = gate_reports(before, only_two)
    assert [found.verdict.value for found in result.cases if found.after] == ["known failing"]
    assert result.passed
