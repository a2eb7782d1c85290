"""Why a case has no stored answer: what differs from the nearest trace of that case."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_ctxfp._fingerprint import (
    ContextFingerprint,
    context_bytes,
    diff_fingerprints,
    fingerprint_context,
)
from pytest_ctxfp._hashing import git_blob_sha
from pytest_ctxfp._redaction import redact_fingerprint
from pytest_ctxfp._suite import OWN_PARAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_ctxfp._hashing import Manifest
    from pytest_ctxfp._key import CaseKey
    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._split import Splitter
    from pytest_ctxfp._store import TraceStore
    from pytest_ctxfp._suite import Identity
    from pytest_ctxfp._tokens import TokenCounter
    from pytest_ctxfp._trace import Trace

LINES_SHA = "lines_sha"
_MAX_NAMES = 3
_OTHER_SHAPE = "the stored answer has another shape than the case asks for"
_REDACTED_PART = "a secret, which is left out of stored answers"


def record_context(
    context: object, *, split: Splitter | None = None, counter: TokenCounter | None = None
) -> dict[str, JSONValue]:
    """Return the fingerprint as a trace keeps it, with a hash of the context's lines in sorted order.

    That hash tells a context whose lines merely changed places from one that says something else.
    """
    return {
        **fingerprint_context(context, split=split, counter=counter).to_dict(),
        LINES_SHA: _sorted_lines_sha(context, split),
    }


def explain_miss(
    key: CaseKey,
    store: TraceStore,
    *,
    identity: Identity,
    context: object,
    split: Splitter | None = None,
) -> tuple[str, ...]:
    """Name what differs between a key and the nearest stored trace of its case, of several the nearest.

    Args:
        key: what was looked up.
        store: its traces are scanned once, by the first miss.
        identity: the files of the agent and the context as they are now.
        context: the context as it is now, or None without one.
        split: returns the context's layers; None picks by type.

    Returns:
        Parts such as ``agent: src/agent.py``, ``context: Current Facts``, ``question``, ``inputs`` or
        ``new case``, each fit to be counted in a summary.
    """
    found = store.nearest(key)
    if found is None:
        return ("new case",)
    return _explain_nearest(found, key, store, identity, context=context, split=split)


def explain_call(key: CaseKey, store: TraceStore, *, identity: Identity) -> tuple[str, ...]:
    """Name what differs between a call's key and the most similar stored one of the same name.

    Returns:
        as ``explain_miss``.
    """
    found = store.nearest(key)
    if found is None:
        return ("new call",)
    of_calls: dict[str, Callable[[], str]] = {
        "after": lambda: "an earlier call of the test",
        "helper": lambda: "the helper's own code",
    }
    return _explain_nearest(found, key, store, identity, context=None, split=None, of_calls=of_calls)


def _explain_nearest(
    found: tuple[Trace, tuple[str, ...]],
    key: CaseKey,
    store: TraceStore,
    identity: Identity,
    *,
    context: object,
    split: Splitter | None,
    of_calls: Mapping[str, Callable[[], str]] = MappingProxyType({}),
) -> tuple[str, ...]:
    nearest, differing = found
    explanations: dict[str, Callable[[], str]] = {
        "agent_sha": lambda: (
            f"agent: {_changed_files(store.read_manifest(nearest.agent_sha), identity.agent)}"
        ),
        "context_sha": lambda: f"context: {_changed_context(nearest, store, identity, context, split)}",
        "model": lambda: f"model: {nearest.model} -> {key.model}",
        **of_calls,
        **explain_surroundings(nearest, key, store, identity),
    }
    if not differing and key.question != nearest.question:
        return (_REDACTED_PART,)
    return _explain_parts(differing, explanations, given={*(key.params or ()), *(nearest.params or ())})


def _explain_parts(
    differing: tuple[str, ...], explanations: Mapping[str, Callable[[], str]], *, given: set[str]
) -> tuple[str, ...]:
    """Say of each part how it differs; of those that a suite gives itself, where it gives them."""
    by_suite = given - OWN_PARAMS
    return tuple(
        explanations[part]()
        if part in explanations
        else f"ctx_agent_key: {part}"
        if part in by_suite
        else part
        for part in differing
    ) or (_OTHER_SHAPE,)


def explain_surroundings(
    stored: Trace, key: CaseKey, store: TraceStore, identity: Identity
) -> dict[str, Callable[[], str]]:
    """Return, by param, what says how it differs: ``packages: anthropic 1.0 -> 1.1``, ``env: API_BASE``."""
    before, after = stored.params or {}, key.params or {}
    return {
        "env": lambda: f"env: {_join_names(_differing_names(before.get('env'), after.get('env')))}",
        "packages": lambda: f"packages: {_changed_versions(before.get('packages'), after.get('packages'))}",
        "data": lambda: f"data: {_changed_data(before.get('data'), store, identity)}",
    }


def _differing_names(before: JSONValue, after: JSONValue) -> list[str]:
    old, new = (value if isinstance(value, dict) else {} for value in (before, after))
    missing = object()
    return [name for name in sorted({*old, *new}) if old.get(name, missing) != new.get(name, missing)]


def _changed_versions(before: JSONValue, after: JSONValue) -> str:
    old, new = (value if isinstance(value, dict) else {} for value in (before, after))
    return _join_names(
        [
            f"{name} {old.get(name, '(not named)')} -> {new.get(name, '(not named)')}"
            for name in _differing_names(before, after)
        ]
    )


def _changed_data(before: JSONValue, store: TraceStore, identity: Identity) -> str:
    if not isinstance(before, str):
        return "was not in the key"
    if identity.data is None:
        return "is no longer in the key"
    return _changed_files(store.read_manifest(before), identity.data)


def estimate_cost(case_id: str, store: TraceStore) -> str:
    """Return what a call would cost, as text: the mean of the case's stored answers, else of all.

    Example::

        about 0.0200 USD
    """
    cost = store.mean_cost(case_id)
    return "an unknown amount" if cost is None else f"about {cost:.4f} USD"


def _changed_files(before: Manifest | None, after: Manifest | None) -> str:
    if before is None or after is None:
        return "files changed (the list of the old ones was not kept)"
    changes = before.changes(after)
    return _join_names(
        [
            *changes.changed,
            *(f"{name} (new)" for name in changes.added),
            *(f"{name} (gone)" for name in changes.removed),
        ]
    )


def _changed_context(
    nearest: Trace, store: TraceStore, identity: Identity, context: object, split: Splitter | None
) -> str:
    if context is None and identity.context is not None:
        return _changed_files(store.read_manifest(nearest.context_sha), identity.context)
    return _changed_layers(nearest.context, context, split, redact=store.redact)


def _changed_layers(
    stored: Mapping[str, JSONValue] | None,
    context: object,
    split: Splitter | None,
    *,
    redact: Callable[[str], str] | None,
) -> str:
    if not stored or context is None:
        return "changed (no fingerprint was kept)"
    try:
        current = fingerprint_context(context, split=split)
        if redact is not None:
            current = ContextFingerprint.from_dict(redact_fingerprint(current.to_dict(), redact))
        diff = diff_fingerprints(ContextFingerprint.from_dict(stored), current)
    except (KeyError, TypeError, ValueError):
        return "changed (the stored fingerprint can't be read)"
    names = sorted({delta.layer for delta in diff.changed} | {*diff.added} | {*diff.removed})
    if stored.get(LINES_SHA) == _sorted_lines_sha(context, split):
        where = f" in {_join_names(names)}" if names else ""
        return f"same lines, other order{where}: sort it"
    return _join_names(names) if names else "layers in another order"


def _join_names(names: list[str] | tuple[str, ...]) -> str:
    shown = ", ".join(names[:_MAX_NAMES])
    return shown if len(names) <= _MAX_NAMES else f"{shown} and {len(names) - _MAX_NAMES} more"


def _sorted_lines_sha(context: object, split: Splitter | None) -> str:
    return git_blob_sha(b"\n".join(sorted(context_bytes(context, split=split).split(b"\n"))))
