"""Why a case has no stored answer: what differs from the nearest trace of that case."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from pytest_ctxfp._errors import CacheMiss
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
    from collections.abc import Callable, Collection, Mapping

    from pytest_ctxfp._hashing import Manifest
    from pytest_ctxfp._key import CaseKey
    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._split import Splitter
    from pytest_ctxfp._store import TraceStore
    from pytest_ctxfp._suite import Identity
    from pytest_ctxfp._tokens import TokenCounter
    from pytest_ctxfp._trace import Trace

LINES_SHA = "lines_sha"
EARLIER_CALL = "an earlier call of the test"
_MAX_NAMES = 3
_OTHER_SHAPE = "the stored answer has another shape than the case asks for"
_REDACTED_PART = "a secret, which is left out of stored answers"


class Difference(NamedTuple):
    """One way in which a key differs from the nearest stored one of its case.

    Attributes:
        what: fit to be counted in a summary: ``context: Current Facts``.
        detail: the same, with figures: ``context: Current Facts (+12 bytes)``.
    """

    what: str
    detail: str


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
) -> tuple[Difference, ...]:
    """Name what differs between a key and the nearest stored trace of its case, of several the nearest.

    Args:
        key: what was looked up.
        store: its traces are scanned once, by the first miss.
        identity: the files of the agent and the context as they are now.
        context: the context as it is now, or None without one.
        split: returns the context's layers; None picks by type.

    Returns:
        Parts such as ``agent: src/agent.py``, ``context: Current Facts``, ``question``, ``inputs`` or
        ``new case``.
    """
    found = store.nearest(key)
    if found is None:
        return (_plain(store.outage or "new case"),)
    return _explain_nearest(found, key, store, identity, context=context, split=split)


def explain_call(key: CaseKey, store: TraceStore, *, identity: Identity) -> tuple[Difference, ...]:
    """Name what differs between a call's key and the most similar stored one of the same name.

    Returns:
        as ``explain_miss``.
    """
    found = store.nearest(key)
    if found is None:
        return (_plain(store.outage or "new call"),)
    of_calls: dict[str, Callable[[], str]] = {
        "after": lambda: EARLIER_CALL,
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
) -> tuple[Difference, ...]:
    nearest, differing = found
    explanations: dict[str, Callable[[], str]] = {
        "agent_sha": lambda: (
            f"agent: {_changed_files(store.read_manifest(nearest.agent_sha), identity.agent)}"
        ),
        "model": lambda: f"model: {nearest.model} -> {key.model}",
        "sample": lambda: "new sample",
        **of_calls,
        **explain_surroundings(nearest, key, store, identity),
    }
    if not differing and key.question != nearest.question:
        return (_plain(_REDACTED_PART),)
    by_suite = {*(key.params or ()), *(nearest.params or ())} - OWN_PARAMS
    return tuple(
        _explain_context(nearest, store, identity, context, split)
        if part == "context_sha"
        else _plain(_explain_part(part, explanations, by_suite=by_suite))
        for part in differing
    ) or (_plain(_OTHER_SHAPE),)


def _plain(text: str) -> Difference:
    return Difference(text, text)


def _explain_part(
    part: str, explanations: Mapping[str, Callable[[], str]], *, by_suite: Collection[str]
) -> str:
    """Say how a part differs; of one that a suite gives itself, where it gives it."""
    if part in explanations:
        return explanations[part]()
    return f"ctx_agent_key: {part}" if part in by_suite else part


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


def refuse_miss(
    key: CaseKey, store: TraceStore, *, why: tuple[Difference, ...], corrupt: str | None
) -> CacheMiss:
    """Return the error of a miss where nobody may be asked; it says why, and what a call would cost.

    The cost is the mean of the case's stored answers, else of all.
    """
    cost = store.mean_cost(key.case_id)
    amount = "an unknown amount" if cost is None else f"about {cost:.4f} USD"
    reason = corrupt or "; ".join(part.detail for part in why)
    message = f"no stored answer ({reason}); asking would cost {amount}"
    return CacheMiss(key, message, corrupt=corrupt, why=why, estimated_cost=cost)


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


def _explain_context(
    nearest: Trace, store: TraceStore, identity: Identity, context: object, split: Splitter | None
) -> Difference:
    if context is None and identity.context is not None:
        files = _changed_files(store.read_manifest(nearest.context_sha), identity.context)
        return _plain(f"context: {files}")
    if not nearest.context or context is None:
        return _plain("context: changed (no fingerprint was kept)")
    try:
        before = ContextFingerprint.from_dict(nearest.context)
        after = fingerprint_context(context, split=split)
        if store.redact is not None:
            after = ContextFingerprint.from_dict(redact_fingerprint(after.to_dict(), store.redact))
    except (KeyError, TypeError, ValueError):
        return _plain("context: changed (the stored fingerprint can't be read)")
    sizes = _changed_sizes(before, after)
    if nearest.context.get(LINES_SHA) == _sorted_lines_sha(context, split):
        where = f" in {_join_names(list(sizes))}" if sizes else ""
        return _plain(f"context: same lines, other order{where}: sort it")
    if not sizes:
        return _plain("context: layers in another order")
    detailed = [f"{name} ({size})" for name, size in sizes.items()]
    return Difference(f"context: {_join_names(list(sizes))}", f"context: {_join_names(detailed)}")


def _bytes(n: int, form: str = "d") -> str:
    return f"{n:{form}} byte{'s' * (abs(n) != 1)}"


def _changed_sizes(before: ContextFingerprint, after: ContextFingerprint) -> dict[str, str]:
    """Return by how much each layer that differs has grown: ``{"Current Facts": "+12 bytes"}``."""
    diff = diff_fingerprints(before, after)
    deltas = {delta.layer: _bytes(delta.after_bytes - delta.before_bytes, "+d") for delta in diff.changed}
    added = {layer: f"new, {_bytes(after.layers[layer].bytes)}" for layer in diff.added}
    removed = {layer: f"gone, {_bytes(before.layers[layer].bytes)}" for layer in diff.removed}
    return dict(sorted({**removed, **added, **deltas}.items()))


def _join_names(names: list[str] | tuple[str, ...]) -> str:
    shown = ", ".join(names[:_MAX_NAMES])
    return shown if len(names) <= _MAX_NAMES else f"{shown} and {len(names) - _MAX_NAMES} more"


def _sorted_lines_sha(context: object, split: Splitter | None) -> str:
    return git_blob_sha(b"\n".join(sorted(context_bytes(context, split=split).split(b"\n"))))
