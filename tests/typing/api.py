"""Uses of the public names that must type-check; nothing here is run."""

from __future__ import annotations

import pytest_ctxfp
from pytest_ctxfp import (
    AgentResult,
    CacheMode,
    CaseKey,
    ContextDiff,
    ContextFingerprint,
    GoldenSet,
    Trace,
    TraceStore,
    cached_call,
    cached_scorer,
    compare_tables,
    diff_fingerprints,
    extract_result,
    fingerprint_context,
    git_blob_sha,
    load_golden,
    markdown_layers,
    message_layers,
    rescore,
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
