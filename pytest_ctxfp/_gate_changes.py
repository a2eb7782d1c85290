"""What differs between two reports of one case: the key's parts, and what the answer is judged by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_ctxfp._key import differing_parts
from pytest_ctxfp._suite import NO_IDENTITY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._report import CaseReport, RunReport, SampleReport

ChangeKind = Literal["question/inputs", "model", "agent", "context", "scorer", "expectation"]

CHANGE_KINDS: tuple[ChangeKind, ...] = (
    *("question/inputs", "model", "agent", "context"),
    *("scorer", "expectation"),
)
"""What can differ, the weightiest first: a case's class is the first of its changes."""
_JUDGING = ("scorer", "expectation")
_KIND_OF_PART: dict[str, ChangeKind] = {
    "case_id": "question/inputs",
    "question": "question/inputs",
    "inputs": "question/inputs",
    "case": "question/inputs",
    "parameters": "question/inputs",
    "model": "model",
    "context_sha": "context",
}
_UNNAMED = "unknown: no key parts were recorded"
_REDACTED = "unknown: the keys differ in what was redacted"
_NO_AGENT = "unknown: without ctx_agent_paths nobody knows whether the agent's files changed"


@dataclass(frozen=True, slots=True)
class Change:
    """One way in which two reports of a case differ.

    Attributes:
        kind: what changed.
        details: what of it: layers, files, names of parameters, labels.
    """

    kind: ChangeKind
    details: tuple[str, ...] = ()

    @property
    def is_of_key(self) -> bool:
        """Whether the answer itself may differ because of it, not only the verdict."""
        return self.kind not in _JUDGING

    def __str__(self) -> str:
        return f"{self.kind}: {', '.join(self.details)}" if self.details else self.kind


def find_changes(
    before: CaseReport, after: CaseReport, *, baseline: RunReport, current: RunReport
) -> tuple[Change, ...]:
    """Return what differs between two reports of a case, the weightiest first; nothing for the same key."""
    found: dict[ChangeKind, dict[str, None]] = {}
    for kind, detail in _each_change(before, after, baseline, current):
        found.setdefault(kind, {})[detail] = None
    return tuple(Change(kind, tuple(filter(None, found[kind]))) for kind in CHANGE_KINDS if kind in found)


def _each_change(
    before: CaseReport, after: CaseReport, baseline: RunReport, current: RunReport
) -> Iterator[tuple[ChangeKind, str]]:
    for part in _differing_parts(before, after):
        kind = _KIND_OF_PART.get(part, "agent")
        if part == "agent_sha":
            details = _changed_files(before, after, baseline, current, part=part)
        elif part == "context_sha":
            details = changed_layers(before, after) or _changed_files(
                before, after, baseline, current, part=part
            )
        elif part == "model":
            details = [f"{before.model} -> {after.model}"]
        else:
            details = [part]
        for detail in details or [""]:
            yield kind, detail
    if before.scorer != after.scorer:
        yield "scorer", f"{before.scorer or 'built-in'} -> {after.scorer or 'built-in'}"
    if before.expectation_sha != after.expectation_sha:
        yield "expectation", ""
    if before.min_pass_rate != after.min_pass_rate:
        yield "expectation", "min_pass_rate"


def _differing_parts(before: CaseReport, after: CaseReport) -> list[str]:
    theirs = {sample.sample: sample for sample in before.samples}
    pairs = [(theirs[sample.sample], sample) for sample in after.samples if sample.sample in theirs]
    names: dict[str, None] = {}
    for old, new in pairs or [(before.samples[0], after.samples[0])]:
        names.update(dict.fromkeys(_parts_of_pair(old, new)))
    if before.model != after.model:
        names["model"] = None
    names.pop("sample", None)
    return list(names)


def _parts_of_pair(old: SampleReport, new: SampleReport) -> tuple[str, ...]:
    if old.key_parts is None or new.key_parts is None:
        return () if old.key is not None and old.key == new.key else (_UNNAMED,)
    try:
        parts = differing_parts(old.key_parts, new.key_parts)
    except ValueError:  # params that are no JSON: nothing wrote them as a key
        return (_UNNAMED,)
    if not parts and old.key != new.key:
        return (_REDACTED,)
    if NO_IDENTITY in (old.key_parts.get("agent_sha"), new.key_parts.get("agent_sha")):
        return (*parts, _NO_AGENT)
    return parts


def changed_layers(before: CaseReport, after: CaseReport) -> list[str]:
    """Return the names of the layers that differ, as far as fingerprints were recorded.

    Examples: ``Business Rules``, ``Glossary (added)``, ``Examples (removed)``, ``(order)``.
    """
    if before.context is None or after.context is None:
        return []
    from pytest_ctxfp._fingerprint import ContextFingerprint, diff_fingerprints

    try:
        diff = diff_fingerprints(
            ContextFingerprint.from_dict(before.context), ContextFingerprint.from_dict(after.context)
        )
    except (KeyError, TypeError, ValueError):
        return []
    return [
        *(delta.layer for delta in diff.changed),
        *(f"{layer} (added)" for layer in diff.added),
        *(f"{layer} (removed)" for layer in diff.removed),
        *(["(order)"] if diff.reordered else []),
    ]


def _changed_files(
    before: CaseReport, after: CaseReport, baseline: RunReport, current: RunReport, *, part: str
) -> list[str]:
    old = _manifest(before, baseline, part)
    new = _manifest(after, current, part)
    if old is None or new is None:
        return []
    changed = [name for name in new if name in old and old[name] != new[name]]
    added = [f"{name} (new)" for name in new if name not in old]
    removed = [f"{name} (gone)" for name in old if name not in new]
    return [*changed, *added, *removed]


def _manifest(case: CaseReport, report: RunReport, part: str) -> Mapping[str, str] | None:
    parts: Mapping[str, JSONValue] = case.samples[0].key_parts or {}
    return report.manifests.get(str(parts.get(part)))
