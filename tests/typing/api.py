"""Uses of the public names that must type-check; nothing here is run."""

from __future__ import annotations

import pytest_ctxfp
from pytest_ctxfp import (
    AgentResult,
    CacheMode,
    CaseKey,
    ContextDiff,
    ContextFingerprint,
    GateResult,
    GoldenSet,
    PinStatus,
    RunReport,
    Selection,
    Trace,
    TraceStore,
    aggregate,
    cached_call,
    cached_scorer,
    classify_pin,
    compare_tables,
    diff_fingerprints,
    extract_result,
    fingerprint_context,
    fold_samples,
    gate_reports,
    git_blob_sha,
    golden_schema,
    load_golden,
    markdown_layers,
    mcnemar_exact,
    message_layers,
    rescore,
    select_cases,
    smallest_detectable_drop,
    tag_layers,
    tree_sha,
    wilson_interval,
)

before: ContextFingerprint = fingerprint_context("## A\nx\n")
after: ContextFingerprint = fingerprint_context({"A": "y"}, split=None)
diff: ContextDiff = diff_fingerprints(before, after)
summary: str = diff.summary()
names: list[str] = [layer.key for layer in markdown_layers("## A\nx\n")]

golden: GoldenSet = load_golden("golden.yaml")
key = CaseKey(
    case_id="a", question="q", agent_sha="-", model="m", context_sha=git_blob_sha(b"x"), params={"a": [1]}
)
store = TraceStore(".ctxfp/traces", CacheMode.REPLAY)
trace: Trace | None = store.load(key)
if trace is not None:
    comparison = rescore(trace, golden.cases[0])
    reason: str = "" if comparison is None else comparison.reason

value = extract_result('{"rows": [[1]]}', kind="table")
verdict: bool = compare_tables(
    {"columns": ["n"], "rows": [[1]]}, {"rows": [[1]]}, match="scalar", tolerance={"numeric": 0.01}
).passed
low, high = wilson_interval(9, 10)
share: float = high - low
sha: str = tree_sha(".", suffixes=(".md",))
result = AgentResult({"rows": [[1]]}, cost=0.1)


@cached_scorer(version="1", model="judge")
def is_kind(answer: str) -> AgentResult:
    """A judge."""
    return AgentResult(len(answer) > 0, cost=0.1)


messages: list[str] = [layer.key for layer in message_layers([{"role": "user", "content": "Hi"}])]
tagged: ContextFingerprint = fingerprint_context("<a>\n</a>\n", split=tag_layers)
version: str = pytest_ctxfp.__version__


@cached_call
def ask(question: str) -> str:
    """A helper of a suite."""
    return question


@cached_call(ignore=["client"], key={"v": 1}, agent=False, chain=False, cost=0.1, name="ask")
async def ask_later(client: object, question: str) -> str:
    """An async one."""
    return f"{client}{question}"


asked: str = ask("q")
selection: Selection = select_cases(golden.cases, "orders,easy", "per-tag:2")
kept: list[str] = [golden.cases[index].id for index in selection.indices]
report: RunReport = RunReport.from_dict({"format": "ctxfp-report", "version": 1, "cases": []})
gate: GateResult = gate_reports(report, RunReport.from_dict(report.to_dict()), tolerance=0.05)
code: int = gate.exit_code
p: float = mcnemar_exact(6, 1) + smallest_detectable_drop(60)
accuracy: float = aggregate(
    fold_samples(case.id, case.samples, tags=case.tags) for case in report.cases
).accuracy
pin: PinStatus = classify_pin("shop@3f9c1a2", sha)
title: object = golden_schema()["title"]
