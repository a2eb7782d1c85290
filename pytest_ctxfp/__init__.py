"""Golden cases with a trace cache, and context fingerprints, for LLM context assemblers and agents."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "AgentError": "_errors",
    "AgentResult": "_model",
    "BudgetExceeded": "_errors",
    "CacheMiss": "_errors",
    "CacheMode": "_modes",
    "CaseKey": "_key",
    "CaseMismatch": "_errors",
    "Comparison": "_model",
    "ContextDiff": "_fingerprint",
    "ContextFingerprint": "_fingerprint",
    "CtxfpError": "_errors",
    "FactCluster": "_chunking",
    "GateResult": "_gate_model",
    "GoldenCase": "_model",
    "GoldenError": "_errors",
    "GoldenSet": "_model",
    "KnowledgeFact": "_facts",
    "Layer": "_layers",
    "LayerDelta": "_fingerprint",
    "LayerFingerprint": "_fingerprint",
    "PinStatus": "_pins",
    "RunReport": "_report",
    "ScorerError": "_errors",
    "Selection": "_select",
    "SnapshotMismatch": "_errors",
    "SnapshotMissing": "_errors",
    "Trace": "_trace",
    "TraceStore": "_store",
    "aggregate": "_fold",
    "cached_call": "_cached_call",
    "cached_scorer": "_scorers",
    "check_budget": "_tokens",
    "classify_pin": "_pins",
    "cluster_facts": "_chunking",
    "compare_tables": "_compare",
    "count_tokens": "_tokens",
    "diff_fingerprints": "_fingerprint",
    "extract_result": "_extract",
    "fingerprint_context": "_fingerprint",
    "fold_samples": "_fold",
    "gate_reports": "_gate",
    "git_blob_sha": "_hashing",
    "golden_schema": "_golden_schema",
    "load_facts": "_facts",
    "load_golden": "_golden",
    "markdown_layers": "_layers",
    "mcnemar_exact": "_stats",
    "message_layers": "_messages",
    "render_chunked": "_chunking",
    "render_flat": "_chunking",
    "render_wakeup": "_chunking",
    "rescore": "_match",
    "select_cases": "_select",
    "smallest_detectable_drop": "_stats",
    "tag_layers": "_tags",
    "tree_sha": "_hashing",
    "wilson_interval": "_stats",
}

if TYPE_CHECKING:
    from pytest_ctxfp._cached_call import cached_call
    from pytest_ctxfp._chunking import (
        FactCluster,
        cluster_facts,
        render_chunked,
        render_flat,
        render_wakeup,
    )
    from pytest_ctxfp._compare import compare_tables
    from pytest_ctxfp._errors import (
        AgentError,
        BudgetExceeded,
        CacheMiss,
        CaseMismatch,
        CtxfpError,
        GoldenError,
        ScorerError,
        SnapshotMismatch,
        SnapshotMissing,
    )
    from pytest_ctxfp._extract import extract_result
    from pytest_ctxfp._facts import KnowledgeFact, load_facts
    from pytest_ctxfp._fingerprint import (
        ContextDiff,
        ContextFingerprint,
        LayerDelta,
        LayerFingerprint,
        diff_fingerprints,
        fingerprint_context,
    )
    from pytest_ctxfp._fold import aggregate, fold_samples
    from pytest_ctxfp._gate import gate_reports
    from pytest_ctxfp._gate_model import GateResult
    from pytest_ctxfp._golden import load_golden
    from pytest_ctxfp._golden_schema import golden_schema
    from pytest_ctxfp._hashing import git_blob_sha, tree_sha
    from pytest_ctxfp._key import CaseKey
    from pytest_ctxfp._layers import Layer, markdown_layers
    from pytest_ctxfp._match import rescore
    from pytest_ctxfp._messages import message_layers
    from pytest_ctxfp._model import AgentResult, Comparison, GoldenCase, GoldenSet
    from pytest_ctxfp._modes import CacheMode
    from pytest_ctxfp._pins import PinStatus, classify_pin
    from pytest_ctxfp._report import RunReport
    from pytest_ctxfp._scorers import cached_scorer
    from pytest_ctxfp._select import Selection, select_cases
    from pytest_ctxfp._stats import mcnemar_exact, smallest_detectable_drop, wilson_interval
    from pytest_ctxfp._store import TraceStore
    from pytest_ctxfp._tags import tag_layers
    from pytest_ctxfp._tokens import check_budget, count_tokens
    from pytest_ctxfp._trace import Trace

    __version__: str

__all__ = [
    "AgentError",
    "AgentResult",
    "BudgetExceeded",
    "CacheMiss",
    "CacheMode",
    "CaseKey",
    "CaseMismatch",
    "Comparison",
    "ContextDiff",
    "ContextFingerprint",
    "CtxfpError",
    "FactCluster",
    "GateResult",
    "GoldenCase",
    "GoldenError",
    "GoldenSet",
    "KnowledgeFact",
    "Layer",
    "LayerDelta",
    "LayerFingerprint",
    "PinStatus",
    "RunReport",
    "ScorerError",
    "Selection",
    "SnapshotMismatch",
    "SnapshotMissing",
    "Trace",
    "TraceStore",
    "aggregate",
    "cached_call",
    "cached_scorer",
    "check_budget",
    "classify_pin",
    "cluster_facts",
    "compare_tables",
    "count_tokens",
    "diff_fingerprints",
    "extract_result",
    "fingerprint_context",
    "fold_samples",
    "gate_reports",
    "git_blob_sha",
    "golden_schema",
    "load_facts",
    "load_golden",
    "markdown_layers",
    "mcnemar_exact",
    "message_layers",
    "render_chunked",
    "render_flat",
    "render_wakeup",
    "rescore",
    "select_cases",
    "smallest_detectable_drop",
    "tag_layers",
    "tree_sha",
    "wilson_interval",
]


def __getattr__(name: str) -> object:
    """Load a public name when it is first asked for (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        return version("pytest-ctxfp")
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
