"""What a run did to snapshots, as lines of text; nothing here prints."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ctxfp._display import escape_line
from pytest_ctxfp.plugin.summary_lines import block, capped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ctxfp._records import SnapshotRecord
    from pytest_ctxfp.plugin.facts import RunFacts
    from pytest_ctxfp.plugin.settings import Settings

SNAPSHOT_STATES = ("matched", "changed", "missing", "written", "not written")


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
    lines = list(block("snapshots", [", ".join(parts)] if parts else []))
    for state in SNAPSHOT_STATES[1:]:
        named = sorted(_name_snapshot(record, settings) for record in snapshots if record["state"] == state)
        lines += block(f"  {state}", capped(named))
    lines += block(f"  {fate}", _list_unused(facts, settings))
    return [*lines, *block("warning", _list_idle_names(snapshots, settings))]


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
        return capped(names)
    return [*capped(names), "delete them with the same command and --ctx-snapshot-prune"]


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
