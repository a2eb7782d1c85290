"""Facts of an outcome as plain JSON, the only form in which they leave the item they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from pytest_ctxfp._display import escape_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ctxfp._misses import Difference
    from pytest_ctxfp._model import GoldenCase, JSONValue


class CaseRecord(TypedDict, total=False):
    """What became of one case.

    ``score`` is 0..1 where a scorer gave one; ``judge_*`` are of cached scorers, whose cost stands apart.
    ``state`` is ``hit``, ``miss``, ``refreshed``, ``uncached``, ``refused`` (no stored answer and no call
    allowed), ``error`` or ``skipped``; ``limit`` says which limit of the run was in the way. ``passed`` is
    absent where there is no verdict; cost is in USD and absent where unknown.

    ``resolution`` counts a test's cases: its samples share a number. An answer that was asked for only to
    confirm a flip has the kind ``confirming``, one that was asked again to audit the cache ``audit``.
    ``report`` is the case as a report has it, with this one sample; ``texts`` are layers of its context that
    this process has not sent before, by hash.

    A call of a test's own has the kind ``call`` and no verdict; its state may also be ``rerun``: a hit that
    was asked again so that a conversation could go on.
    """

    kind: str
    id: str
    tags: list[str]
    state: str
    passed: bool
    passed_then: bool
    rescored: bool
    reason: str
    model: str
    served_model: str
    cost: float
    turns: int
    latency_ms: int
    recorded_at: str
    key: str
    why: list[str]
    why_detail: list[str]
    estimated_cost: float
    corrupt: str
    unstored: str
    xfailed: bool
    notes: list[str]
    calls: int
    score: float
    scorer: str
    judge_hit: bool
    judge_cost: float
    judge_calls: int
    served_then: str
    limit: str
    resolution: int
    sample: int
    variant: str
    min_pass_rate: float
    report: dict[str, JSONValue]
    texts: dict[str, str]


class SnapshotRecord(TypedDict, total=False):
    """What became of one check of a context.

    ``state`` is ``matched``, ``changed``, ``missing`` or ``written``; the last has the ``entry`` to store, as
    JSON, and the ``text`` to keep, in base64. ``key`` is JSON too: it may hold what UTF-8 can't.
    ``accepted`` names the layers that were accepted by name, ``matched_names`` those patterns of accepted
    layers that fit a layer of this context, ``redacted`` and ``ignored`` say of each pattern and name whether
    the context has it.
    """

    kind: str
    key: str
    file: str
    state: str
    entry: str
    text_file: str
    text: str
    accepted: list[str]
    matched_names: list[str]
    redacted: dict[str, bool]
    ignored: dict[str, bool]
    notes: list[str]


class TestRecord(TypedDict):
    """That a test of a module with snapshots ran; what it asserted stands in records of its own."""

    kind: str
    file: str
    names: str


class CollectionRecord(TypedDict):
    """What a process collected completely, as JSON: the names of all tests by snapshot file, and folders."""

    kind: str
    whole: str
    folders: str
    items: int


class CasesRecord(TypedDict):
    """Which golden cases a process is to run: ``selected`` of ``total``, and why; ``fault`` if none is left.

    ``covered`` names the golden files, and the folders (ending in ``/``), of which it runs all.
    """

    kind: str
    selected: int
    total: int
    note: str
    fault: str
    covered: list[str]
    datasets: list[str]
    context_versions: list[str]


Record = CaseRecord | SnapshotRecord | TestRecord | CollectionRecord | CasesRecord


def unscored_record(case: GoldenCase, state: str, reason: str) -> CaseRecord:
    """Return the facts of a case without a verdict: ``refused``, ``error`` or ``skipped``."""
    return {**case_facts(case), "state": state, "reason": escape_surrogates(reason)}


def call_record(call_id: str) -> CaseRecord:
    """Return the beginning of the facts of a call that a test makes itself."""
    return {"kind": "call", "id": escape_surrogates(call_id), "state": "miss"}


def case_facts(case: GoldenCase) -> CaseRecord:
    """Return what names a case in its records."""
    record: CaseRecord = {"kind": "case", "id": escape_surrogates(case.id)}
    add_known(record, tags=[escape_surrogates(tag) for tag in case.tags] or None)
    return record


def add_why(record: CaseRecord, why: tuple[Difference, ...]) -> None:
    """Add why an answer was missing, to be counted and in detail."""
    if why:
        record["why"] = [escape_surrogates(part.what) for part in why]
        record["why_detail"] = [escape_surrogates(part.detail) for part in why]


def add_notes(record: CaseRecord | SnapshotRecord, notes: Iterable[str]) -> None:
    """Add to what a user should know, texts fit to be sent."""
    added = [escape_surrogates(note) for note in notes]
    if added:
        record["notes"] = [*record.get("notes", ()), *added]


def add_known(record: CaseRecord, **facts: str | float | bool | list[str] | None) -> None:
    """Add those facts that are known, texts fit to be sent."""
    for name, value in facts.items():
        if value is not None:
            record[name] = escape_surrogates(value) if isinstance(value, str) else value  # type: ignore[literal-required]
