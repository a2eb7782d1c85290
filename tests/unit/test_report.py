"""Reports: order, figures, JSON and its schema, Markdown."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import jsonschema
import pytest

from pytest_ctxfp import CtxfpError, RunReport, fingerprint_context, gate_reports
from pytest_ctxfp._report import MAX_ANSWER_BYTES, CaseReport, SampleReport, Usage, fit_answer
from pytest_ctxfp._report_json import report_from_json, report_schema, report_to_json
from pytest_ctxfp._report_markdown import MAX_CHARACTERS, report_to_markdown


def make_sample(**facts: object) -> SampleReport:
    """Return an answer with every field set."""
    defaults = {
        "state": "passed",
        "reason": "match",
        "origin": "miss",
        "key": "a" * 40,
        "key_parts": {"case_id": "a", "agent_sha": "b" * 40, "params": {"inputs": [1, None]}},
        "answer": {"columns": ["n"], "rows": [[99, "x", None, 1.5, True]]},
        "cost": 0.25,
        "latency_ms": 1_500,
        "turns": 3,
        "recorded_at": "2026-11-30T18:22:04+00:00",
        "served_model": "opus-1",
        "score": 0.5,
        "scorer_cost": 0.01,
        "rescored": True,
    }
    return SampleReport(**{**defaults, **facts})


def make_case(name: str = "a", **facts: object) -> CaseReport:
    """Return a case with every field set."""
    defaults = {
        "file": "golden.yaml",
        "model": "opus",
        "variant": "b",
        "tags": ("x", "y"),
        "min_pass_rate": 0.5,
        "xfail": "todo",
        "expectation_sha": "c" * 40,
        "expectation": {"match": "scalar", "expected": {"rows": [[99]]}},
        "scorer": "judge@2",
        "context": fingerprint_context("## A\nx\n").to_dict(),
        "metadata": {"owner": "data"},
        "samples": (make_sample(),),
        "confirming": (make_sample(sample=1, origin="refreshed"),),
    }
    return CaseReport(id=name, **{**defaults, **facts})


def full_report() -> RunReport:
    """Return a report with every field set and every state of an answer in it."""
    states = ("passed", "failed", "error", "skipped")
    cases = [
        make_case(state, position=index, samples=(make_sample(state=state, reason=state),))
        for index, state in enumerate(states)
    ]
    bare = CaseReport(id="bare", samples=(SampleReport(state="passed", origin="hit"),))
    return RunReport(
        cases=(*cases, bare),
        complete=False,
        selected_cases=5,
        total_cases=53,
        selection="5 of 53 cases (tags x)",
        dataset="shop",
        context_version="shop@3f9c1a2",
        recorded_at="2026-11-30T18:22:04+00:00",
        recorded_by="pytest-ctxfp 0.1.0",
        manifests={"b" * 40: {"agent.md": "d" * 40}},
        mode="auto",
        texts={"e" * 16: "- a fact\n"},
        notes=("a note",),
    )


def test_json_round_trip() -> None:
    """What a report says survives its file, and writing it again gives the same bytes."""
    report = full_report()
    text = report_to_json(report)
    assert report_from_json(text) == report
    assert report_to_json(report_from_json(text)) == text
    assert RunReport.from_dict(report.to_dict()) == report


@pytest.mark.parametrize("report", [full_report(), RunReport(cases=())], ids=["full", "empty"])
def test_json_fits_its_schema(report: RunReport) -> None:
    """Every report is valid by the schema in the package, which itself is a schema."""
    schema = report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(report_to_json(report)), schema, cls=jsonschema.Draft202012Validator)


def test_schema_knows_every_field() -> None:
    """The schema requires all fields that are written, and refuses others and wrong types."""
    data = full_report().to_dict()
    validator = jsonschema.Draft202012Validator(report_schema())
    for place in (data, data["cases"][0], data["cases"][0]["samples_detail"][0], data["configs"][0]):
        for name in list(place):
            value = place.pop(name)
            assert not validator.is_valid(data), name
            place[name] = value
        place["unknown"] = 1
        assert not validator.is_valid(data)
        del place["unknown"]
    assert validator.is_valid(data)


def test_order_of_cases_and_samples() -> None:
    """Whatever order records arrive in, a report has them by file, position, model, variant and sample."""
    samples = tuple(make_sample(sample=number) for number in range(3))
    cases = [
        make_case(
            f"{file}{position}{model}{variant}", file=file, position=position, model=model, variant=variant
        )
        for file, position, model, variant in itertools.product("ab", (2, 10), "mn", (None, "v"))
    ]
    cases[0] = replace(cases[0], samples=samples)
    shuffled = [replace(cases[0], samples=samples[::-1]), *cases[:0:-1]]
    assert RunReport(cases=tuple(shuffled)) == RunReport(cases=tuple(cases))
    assert [case.id for case in RunReport(cases=tuple(shuffled)).cases] == [case.id for case in cases]
    assert report_to_json(RunReport(cases=tuple(shuffled))) == report_to_json(RunReport(cases=tuple(cases)))


def test_spent_and_replayed_are_apart() -> None:
    """What a replayed answer once took is not spent, and an unknown cost is counted, not taken for 0."""
    samples = (
        make_sample(origin="hit", cost=0.5),
        make_sample(sample=1, origin="miss", cost=0.25),
        make_sample(sample=2, origin="uncached", cost=None, latency_ms=None, turns=None),
        make_sample(sample=3, origin=None, state="error"),
    )
    report = RunReport(cases=(make_case(samples=samples, confirming=(make_sample(sample=4, cost=1.0),)),))
    assert report.replayed == Usage(answers=1, cost=0.5, unknown_costs=0, latency_ms=1_500, turns=3)
    assert report.spent == Usage(answers=3, cost=1.25, unknown_costs=1, latency_ms=3_000, turns=6)
    case = report.to_dict()["cases"][0]
    assert (case["cache_hits"], case["cache_misses"]) == (1, 3)
    assert case["spent"]["cost"] == 1.25


def test_confirming_answers_change_no_figure() -> None:
    """Answers that were asked for to weigh a flip are no samples of the case."""
    case = make_case(confirming=(make_sample(state="failed", sample=1),))
    assert case.fold.state == "passed"
    assert RunReport(cases=(case,)).totals.accuracy == 1.0


def test_figures_by_model_and_variant() -> None:
    """Each model and variant has figures of its own."""
    failed = make_case(model="n", samples=(make_sample(state="failed"),))
    configs = RunReport(cases=(make_case(), failed)).to_dict()["configs"]
    assert [(config["model"], config["accuracy"]) for config in configs] == [("n", 0.0), ("opus", 1.0)]


@pytest.mark.parametrize(
    "value",
    [
        "x" * MAX_ANSWER_BYTES,
        {"rows": [["ä€😀" * 30_000]]},
        ['"\\' * 40_000],
        "\ud800" * 30_000,
        "\0" * 20_000,
    ],
)
def test_long_answers_are_cut(value: object) -> None:
    """An answer beyond 64 kB is cut to a text that fits, and marked, since it can't be scored again."""
    answer, n_bytes = fit_answer(value)
    assert n_bytes == len(
        json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    )
    assert isinstance(answer, str)
    assert len(json.dumps(answer, ensure_ascii=False).encode("utf-8", "surrogatepass")) <= MAX_ANSWER_BYTES
    read = report_from_json(
        report_to_json(RunReport(cases=(make_case(samples=(make_sample(answer=value),)),)))
    )
    assert read.cases[0].samples[0].answer_cut
    assert read.cases[0].samples[0].answer_bytes == n_bytes
    assert report_from_json(report_to_json(read)) == read


def test_answers_of_exactly_the_limit_stay() -> None:
    """64 kB of JSON are kept whole."""
    value = "x" * (MAX_ANSWER_BYTES - 2)
    assert fit_answer(value) == (value, None)


def test_lone_surrogates_reach_the_file() -> None:
    """Text that UTF-8 can't hold is escaped in the file and comes back."""
    report = RunReport(cases=(make_case("\ud800", samples=(make_sample(answer="\udfff"),)),))
    text = report_to_json(report)
    assert report_from_json(text.encode("utf-8").decode("utf-8")) == report


def test_figures_are_computed_not_taken_over() -> None:
    """An edited figure in a report's file changes nothing: samples decide."""
    data = full_report().to_dict()
    data["accuracy"] = 1.0
    data["cases"][1]["pass"] = True
    assert RunReport.from_dict(data) == full_report()


def test_fields_of_a_later_program_are_left_out() -> None:
    """A field that this version doesn't know is no error."""
    data = full_report().to_dict()
    data["later"] = data["cases"][0]["later"] = 1
    assert RunReport.from_dict(data) == full_report()


@pytest.mark.parametrize("version", [0, 2, "1", None, True])
def test_other_versions_are_refused(version: object) -> None:
    """A report of another version is refused with the remedy, not half read."""
    with pytest.raises(CtxfpError, match="write it again"):
        RunReport.from_dict({**full_report().to_dict(), "version": version})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("cases",), {}),
        (("cases", 0), 7),
        (("cases", 0, "id"), None),
        (("cases", 0, "position"), -1),
        (("cases", 0, "position"), True),
        (("cases", 0, "tags"), [1]),
        (("cases", 0, "min_pass_rate"), math.nan),
        (("cases", 0, "min_pass_rate"), 1.5),
        (("cases", 0, "samples_detail"), []),
        (("cases", 0, "samples_detail", 0, "state"), "fine"),
        (("cases", 0, "samples_detail", 0, "state"), {}),
        (("cases", 0, "samples_detail", 0, "origin"), "cache"),
        (("cases", 0, "samples_detail", 0, "cost"), -0.1),
        (("cases", 0, "samples_detail", 0, "cost"), 10**400),
        (("cases", 0, "samples_detail", 0, "latency_ms"), 1.5),
        (("cases", 0, "samples_detail", 0, "key_parts"), []),
        (("cases", 0, "context"), "x"),
        (("manifests",), {"a": {"b": 1}}),
        (("manifests",), {"a": 1}),
        (("complete",), "yes"),
        (("selected_cases",), None),
        (("format",), "other"),
        (("format",), None),
    ],
)
def test_damaged_reports_are_refused(path: tuple[str | int, ...], value: object) -> None:
    """A field of a wrong type is an error that says where it is."""
    data = full_report().to_dict()
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(CtxfpError, match="report"):
        RunReport.from_dict(data)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "nul", '{"format":', "[" * 200_000, "1" * 5_000, "\ud800", "NaN", "1e999"]
)
def test_other_files_are_refused(text: str) -> None:
    """What is no report is an error of ours, whatever it is."""
    with pytest.raises(CtxfpError, match="report"):
        report_from_json(text)


def test_subset_and_interruption() -> None:
    """A report is full only if all collected cases were to run and the run was not interrupted."""
    report = RunReport(cases=(make_case(), make_case(model="n")))
    assert (report.selected_cases, report.total_cases, report.is_full) == (1, 1, True)
    assert not replace(report, total_cases=2).is_full
    assert not replace(report, complete=False).is_full


def test_markdown_says_what_a_reviewer_needs() -> None:
    """The verdicts, the accuracy with its interval, the subset, the spent and the replayed cost are there."""
    text = report_to_markdown(full_report())
    for part in (
        "### ctxfp: 2 of 4 cases passed",
        "`5 of 53 cases (tags x)`.",
        "interrupted",
        "95% interval",
        "1 error, 1 skipped",
        "| `failed[opus-b]` | failed | `failed` |",
        "| asked in this run | 8 | 2.0000 USD |",
        "| replayed | 1 | 0.0000 USD (unknown for 1) |",
        "`a note`",
    ):
        assert part in text


def test_markdown_of_a_subset_without_a_note() -> None:
    """A subset is said to be one whoever left cases out."""
    text = report_to_markdown(RunReport(cases=(make_case(),), selected_cases=1, total_cases=53))
    assert "1 of 53 cases were selected." in text


def test_markdown_with_a_gate() -> None:
    """The gate's verdict is in the headline and its findings follow."""
    before = RunReport(cases=(make_case(xfail=None, min_pass_rate=None, scorer=None),))
    parts = {**make_sample().key_parts, "agent_sha": "e" * 40}
    worse = replace(before.cases[0], samples=(make_sample(state="failed", key_parts=parts),), confirming=())
    after = RunReport(cases=(worse,))
    text = report_to_markdown(after, gate_reports(before, after))
    assert "### ctxfp: RED, 0 of 1 cases passed" in text
    assert "- regression: `a: consistent with agent (1 of 1 samples failed)`" in text
    assert "McNemar" in text


def test_markdown_always_fits() -> None:
    """However many cases fail and however long their texts, the limit holds and what is cut is said."""
    long = "x" * 5_000 + "😀`|\n" * 1_000
    cases = tuple(
        make_case(
            f"{index}{long}",
            position=index,
            tags=(f"t{index}{long}",),
            samples=(make_sample(state="failed", reason=long),),
        )
        for index in range(2_000)
    )
    report = RunReport(cases=cases, notes=(long,) * 100)
    for text in (report_to_markdown(report), report_to_markdown(report, gate_reports(report, report))):
        assert len(text) <= MAX_CHARACTERS
        assert "did not fit" in text


@pytest.mark.parametrize(
    "evil",
    [
        "`<img src=x onerror=1>`",
        "a|b|c",
        "\\|",
        "@everyone",
        "line\n### heading",
        "</details>",
        "\ud800\x1b[0m",
    ],
)
def test_markdown_is_not_forged(evil: str) -> None:
    """No text of a case leaves its code span, its cell or its line."""
    case = make_case(evil, model=evil, tags=(evil,), samples=(make_sample(state="failed", reason=evil),))
    report = RunReport(cases=(case, make_case()), notes=(evil,))
    plain = RunReport(
        cases=(
            make_case("q", model="q", tags=("q",), samples=(make_sample(state="failed", reason="q"),)),
            make_case(),
        ),
        notes=("q",),
    )
    forged, expected = (report_to_markdown(r, gate_reports(r, r)) for r in (report, plain))
    forged.encode("utf-8")
    assert forged.count("\n") == expected.count("\n")
    for mark in "`|":
        assert forged.count(mark) == expected.count(mark)
