"""The summary of a run as lines of text; nothing here prints."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ctxfp._backend import mask_url
from pytest_ctxfp._display import escape_line, shorten_time
from pytest_ctxfp._stats import format_percent, wilson_interval
from pytest_ctxfp._store import CacheMode
from pytest_ctxfp.plugin.options import DEFAULT_MODEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ctxfp._records import CaseRecord, SnapshotRecord
    from pytest_ctxfp._suite import Identity
    from pytest_ctxfp.plugin.facts import RunFacts
    from pytest_ctxfp.plugin.options import Settings

SNAPSHOT_STATES = ("matched", "changed", "missing", "written", "not written")
_LABEL_WIDTH = 11
_SHORT_SHA = 12
_MAX_ROWS = 20
_MAX_NAME = 60


def render_summary(facts: RunFacts, settings: Settings, identity: Identity) -> list[str]:
    """Return the lines of the summary.

    Example::

        cache      auto, .ctxfp/traces
        identity   agent 3f9c1a2b4d5e (4 files), model offline-1, env API_BASE, packages openai 1.2
        cases      25: 24 passed, 1 failed
        answers    23 hit (1 re-scored), 2 miss; oldest hit 2026-11-29 18:22:04 UTC
        missed     1 context: Business Rules
                   1 new case
        re-scored  total_orders: passed -> failed
        cost       spent 0.0200 USD in 2 calls, saved 0.4400 USD
        scorers    spent 0.0010 USD in 1 call, saved 0.0110 USD
        accuracy   96% (24 of 25; 95% interval 80.5% to 99.3%)
          orders   90% (9 of 10; 95% interval 59.6% to 98.2%)
    """
    cases, calls = facts.cases(), facts.helper_calls()
    both = [*cases, *calls]
    blocks = [
        ("cache", _describe_cache(settings)),
        ("identity", [_describe_identity(both, identity, settings)]),
        ("cases", [_count_cases(cases)] if cases else []),
        ("answers", [_count_answers(cases)] if cases else []),
        ("calls", [f"{len(calls)}: {_count_answers(calls)}"] if calls else []),
        ("missed", _count_reasons(both)),
        ("not asked", _list_unasked(both)),
        ("re-scored", _list_rescored(cases)),
        ("served", _list_served(both)),
        ("cost", [_sum_costs(facts.calls(), both)]),
        ("scorers", _sum_judge_costs(facts.judged(), cases)),
        ("accuracy", _measure_accuracy(cases) if cases else []),
        ("warning", _list_problems(both)),
    ]
    return [line for label, lines in blocks for line in _block(label, lines)]


def render_snapshots(facts: RunFacts, settings: Settings) -> list[str]:
    """Return the lines on snapshots, none where no context was checked and none is unused.

    Example::

        snapshots  12 matched, 1 changed, 2 written, 1 unused
          changed  tests/__ctxfp__/test_support.ctxfp: test_context#0
          written  tests/__ctxfp__/test_support.ctxfp: test_greeting#0 (accepted: Identity)
                   tests/__ctxfp__/test_support.ctxfp: test_refund#0
          unused   tests/__ctxfp__/test_old.ctxfp: test_gone#0
                   delete them with the same command and --ctx-snapshot-prune
    """
    snapshots = facts.snapshots()
    counts = Counter(record["state"] for record in snapshots)
    fate = "pruned" if settings.snapshot_prune else "unused"
    counts[fate] = sum(map(len, facts.unused.values()))
    parts = [f"{counts[state]} {state}" for state in (*SNAPSHOT_STATES, fate) if counts[state]]
    lines = list(_block("snapshots", [", ".join(parts)] if parts else []))
    for state in SNAPSHOT_STATES[1:]:
        named = [_name_snapshot(record, settings) for record in snapshots if record["state"] == state]
        lines += _block(f"  {state}", _capped(named))
    lines += _block(f"  {fate}", _list_unused(facts, settings))
    return [*lines, *_block("warning", _list_idle_names(snapshots, settings))]


def _name_snapshot(record: SnapshotRecord, settings: Settings) -> str:
    name = _place_snapshot(Path(record["file"]), json.loads(record["key"]), settings)
    accepted = record.get("accepted")
    return f"{name} (accepted: {', '.join(accepted)})" if accepted else name


def _place_snapshot(file: Path, key: str, settings: Settings) -> str:
    shown = file.relative_to(settings.rootdir) if file.is_relative_to(settings.rootdir) else file
    return escape_line(f"{shown}: {key}")


def _list_unused(facts: RunFacts, settings: Settings) -> list[str]:
    names = [_place_snapshot(file, key, settings) for file, keys in facts.unused.items() for key in keys]
    if not names or settings.snapshot_prune:
        return _capped(names)
    return [*_capped(names), "delete them with the same command and --ctx-snapshot-prune"]


def _list_idle_names(snapshots: list[SnapshotRecord], settings: Settings) -> list[str]:
    """Name accepted layers that no context has, and redactions that found nothing in any context."""
    fitting = {name for record in snapshots for name in record.get("matched_names", [])}
    idle = [name for name in dict.fromkeys(settings.snapshot_update_layers) if name not in fitting]
    lines = [
        f"--ctx-snapshot-update-layer={escape_line(name)}: no layer of this run has that name"
        for name in idle
    ]
    lines += dict.fromkeys(escape_line(note) for record in snapshots for note in record.get("notes", []))
    redacted = _never_found(record.get("redacted", {}) for record in snapshots)
    ignored = _never_found(record.get("ignored", {}) for record in snapshots)
    lines += [f"redact {pattern}: found in no context" for pattern in redacted]
    return lines + [f"ignore {name}: no context has such a layer" for name in ignored]


def _never_found(records: Iterable[dict[str, bool]]) -> list[str]:
    found: dict[str, bool] = {}
    for record in records:
        for name, matched in record.items():
            found[name] = found.get(name, False) or matched
    return [name for name, matched in found.items() if not matched]


def _block(label: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"{label:<{_LABEL_WIDTH}}{line}"
        label = ""


def _describe_cache(settings: Settings) -> list[str]:
    if settings.mode is CacheMode.OFF:
        return ["off: every answer was asked for and none was stored (--ctx-cache uses the cache)"]
    return [escape_line(f"{settings.mode.value}, {_name_place(settings)}")]


def _name_place(settings: Settings) -> str:
    place = settings.cache_dir
    if isinstance(place, str):
        return mask_url(place)
    return str(place.relative_to(settings.rootdir) if place.is_relative_to(settings.rootdir) else place)


def _describe_identity(cases: list[CaseRecord], identity: Identity, settings: Settings) -> str:
    parts = []
    if identity.agent is not None:
        parts.append(
            f"agent {identity.agent_sha[:_SHORT_SHA]} ({_plural(len(identity.agent.entries), 'file')})"
        )
    if identity.context is not None:
        files = _plural(len(identity.context.entries), "file")
        parts.append(f"context {identity.context_sha[:_SHORT_SHA]} ({files})")
    models = sorted({record["model"] for record in cases if "model" in record}) or [settings.model]
    unset = " (ini ctx_model names it)" if models == [DEFAULT_MODEL] else ""
    parts.append(f"model {', '.join(models)}{unset}")
    if identity.env:
        parts.append(f"env {', '.join(identity.env)}")
    if identity.packages:
        parts.append("packages " + ", ".join(f"{name} {v}" for name, v in identity.packages.items()))
    if identity.data is not None:
        parts.append(f"data {identity.data.sha[:_SHORT_SHA]} ({_plural(len(identity.data.entries), 'file')})")
    served = sorted({record["served_model"] for record in cases if "served_model" in record})
    if served:
        parts.append(f"served by {', '.join(served)}")
    return escape_line(", ".join(parts))


def _count_cases(cases: list[CaseRecord]) -> str:
    counts = Counter(map(_fate, cases))
    order = ("passed", "failed", "failed as expected", "error", "skipped", "refused")
    parts = [f"{counts[fate]} {fate}" for fate in order if counts[fate] or fate in {"passed", "failed"}]
    return f"{len(cases)}: {', '.join(parts)}"


def _fate(record: CaseRecord) -> str:
    if "passed" not in record:
        return record["state"]
    if record["passed"]:
        return "passed"
    return "failed as expected" if record.get("xfailed") else "failed"


def _count_answers(cases: list[CaseRecord]) -> str:
    counts = Counter(record["state"] for record in cases)
    n_rescored = sum(record.get("rescored", False) for record in cases)
    n_corrupt = sum("corrupt" in record for record in cases)
    parts = [f"{counts['hit']} hit" + (f" ({n_rescored} re-scored)" if n_rescored else "")]
    parts.append(f"{counts['miss'] + counts['refused']} miss")
    parts += [f"{counts[state]} {state}" for state in ("refreshed", "uncached") if counts[state]]
    if counts["rerun"]:
        parts.append(f"{counts['rerun']} asked again before a miss")
    if n_corrupt:
        parts.append(f"{n_corrupt} corrupt")
    if counts["error"]:
        parts.append(_plural(counts["error"], "error"))
    dates = [
        record["recorded_at"] for record in cases if record["state"] == "hit" and "recorded_at" in record
    ]
    return ", ".join(parts) + (f"; oldest hit {shorten_time(min(dates))}" if dates else "")


def _count_reasons(cases: list[CaseRecord]) -> list[str]:
    reasons = Counter("; ".join(record["why"]) for record in cases if record.get("why"))
    refused = Counter(record["reason"] for record in cases if record["state"] == "refused")
    return _capped([f"{n} {escape_line(reason)}" for reason, n in (reasons + refused).most_common()])


def _list_unasked(records: list[CaseRecord]) -> list[str]:
    """Say what a limit kept from being asked: ``2 --ctx-max-calls=1 is reached: orders, customers``."""
    by_limit: dict[str, list[str]] = {}
    for record in records:
        if "limit" in record:
            by_limit.setdefault(record["limit"].removeprefix("not asked: "), []).append(_name(record))
    return [
        f"{len(names)} {escape_line(limit)}: {', '.join(_capped(sorted(names)))}"
        for limit, names in by_limit.items()
    ]


def _list_served(records: list[CaseRecord]) -> list[str]:
    """Say where the provider ran another model than when an answer was recorded, under the same label.

    Example::

        2 answers now by stub-b, recorded by stub-a
        5 hits recorded by stub-a, though stub-1 is served by stub-b now
    """
    changed = Counter(
        (record["served_model"], record["served_then"])
        for record in records
        if record["state"] != "hit"
        and record.get("served_model", record.get("served_then")) != record.get("served_then")
        and "served_then" in record
    )
    now: dict[str, set[str]] = {}
    for record in records:
        if record["state"] != "hit" and "served_model" in record:
            now.setdefault(record["model"], set()).add(record["served_model"])
    stale = Counter(
        (record["model"], record["served_model"])
        for record in records
        if record["state"] == "hit" and "served_model" in record
        if record["served_model"] not in now.get(record["model"], {record["served_model"]})
    )
    lines = [f"{_plural(n, 'answer')} now by {new}, recorded by {old}" for (new, old), n in changed.items()]
    for (model, old), n in stale.items():
        served = ", ".join(sorted(now[model]))
        lines.append(f"{_plural(n, 'hit')} recorded by {old}, though {model} is now served by {served}")
    return _capped([escape_line(line) for line in lines])


def _list_rescored(cases: list[CaseRecord]) -> list[str]:
    """List hits whose verdict is another than when the answer was recorded; count those that kept theirs."""
    hits = [record for record in cases if record["state"] == "hit"]
    changed = [record for record in hits if record.get("passed_then") not in {None, record["passed"]}]
    rescored = [record for record in hits if record["rescored"]]
    lines = [
        f"{_name(record)}: {_verdict(record['passed_then'])} -> {_verdict(record['passed'])}"
        for record in changed
    ]
    n_kept = sum(record not in changed for record in rescored)
    return [*_capped(lines), *([f"{n_kept} with the verdict they had"] if n_kept else [])]


def _sum_costs(calls: list[CaseRecord], cases: list[CaseRecord]) -> str:
    hits = [record for record in cases if record["state"] == "hit"]
    return f"spent {_total(calls)} in {_plural(len(calls), 'call')}, saved {_total(hits)}"


def _sum_judge_costs(judged: list[CaseRecord], cases: list[CaseRecord]) -> list[str]:
    """Return what cached scorers cost; nothing where none was needed."""
    hits = [record for record in cases if record.get("judge_hit")]
    if not judged and not hits:
        return []
    n_calls = _plural(sum(record["judge_calls"] for record in judged), "call")
    spent, saved = _total(judged, "judge_cost"), _total(hits, "judge_cost")
    return [f"spent {spent} in {n_calls}, saved {saved}"]


def _total(records: list[CaseRecord], name: str = "cost") -> str:
    costs: list[float] = [record[name] for record in records if name in record]  # type: ignore[literal-required]
    n_unknown = len(records) - len(costs)
    if records and not costs:
        return "an unknown amount"
    unknown = f" and an unknown amount for {n_unknown}" if n_unknown else ""
    return f"{sum(costs):.4f} USD{unknown}"


def _measure_accuracy(cases: list[CaseRecord]) -> list[str]:
    scored = [record for record in cases if "passed" in record]
    if not scored:
        return ["none: no answer was scored"]
    by_tag: dict[str, list[CaseRecord]] = {}
    for record in scored:
        for tag in dict.fromkeys(record["tags"]):
            by_tag.setdefault(tag, []).append(record)
    width = max((len(_shorten(tag)) for tag in by_tag), default=0)
    rows = [f"  {_shorten(tag):<{width}}  {_share(records)}" for tag, records in sorted(by_tag.items())]
    n_unscored = len(cases) - len(scored)
    unscored = f"; {n_unscored} without a verdict not counted" if n_unscored else ""
    return [_share(scored) + unscored, *_capped(rows)]


def _share(records: list[CaseRecord]) -> str:
    n, n_passed = len(records), sum(record["passed"] for record in records)
    low, high = wilson_interval(n_passed, n)
    interval = f"95% interval {format_percent(low)} to {format_percent(high)}"
    return f"{format_percent(n_passed / n)} ({n_passed} of {n}; {interval})"


def _list_problems(cases: list[CaseRecord]) -> list[str]:
    corrupt = [
        f"{_name(record)}: corrupt, {escape_line(record['corrupt'])}"
        for record in cases
        if "corrupt" in record
    ]
    unstored = [record for record in cases if "unstored" in record]
    lines = _capped(corrupt)
    if unstored:
        reason = escape_line(unstored[0]["unstored"])
        lines.append(f"{_plural(len(unstored), 'answer')} could not be stored: {reason}")
    notes = dict.fromkeys(note for record in cases for note in record.get("notes", []))
    return [*lines, *map(escape_line, notes)]


def _capped(lines: list[str]) -> list[str]:
    return (
        lines if len(lines) <= _MAX_ROWS else [*lines[:_MAX_ROWS], f"... and {len(lines) - _MAX_ROWS} more"]
    )


def _name(record: CaseRecord) -> str:
    return _shorten(record["id"])


def _shorten(text: str) -> str:
    return escape_line(text, limit=_MAX_NAME)


def _verdict(passed: bool) -> str:
    return "passed" if passed else "failed"


def _plural(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
