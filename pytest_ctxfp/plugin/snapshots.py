"""The fixture ``ctx_snapshot``: a context against the fingerprint stored beside the test module."""

from __future__ import annotations

import base64
import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ctxfp._display import escape_line
from pytest_ctxfp._errors import CtxfpError, SnapshotMismatch, SnapshotMissing
from pytest_ctxfp._records import add_notes
from pytest_ctxfp._snapshot import CurrentContext, SnapshotState, check_snapshot
from pytest_ctxfp._snapshot_rules import layer_names
from pytest_ctxfp._snapshot_text import snapshot_path
from pytest_ctxfp._tokens import check_budget
from pytest_ctxfp.plugin.counting import get_counter, take_notes
from pytest_ctxfp.plugin.item_records import add_record, add_section
from pytest_ctxfp.plugin.items import command_for, names_below_file, shown_path
from pytest_ctxfp.plugin.redacting import get_redactor
from pytest_ctxfp.plugin.settings import get_settings
from pytest_ctxfp.plugin.snapshot_reads import get_snapshot_reader
from pytest_ctxfp.plugin.snapshot_writes import text_file_of
from pytest_ctxfp.plugin.splitting import splitter_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import FrameType

    import pytest

    from pytest_ctxfp._records import SnapshotRecord
    from pytest_ctxfp._snapshot import SnapshotVerdict
    from pytest_ctxfp._snapshot_redact import Redactions
    from pytest_ctxfp._snapshot_rules import LayerNames
    from pytest_ctxfp._split import Splitter

    _Place = tuple[str, int] | None


class ContextSnapshot:
    """Checks contexts of one test against their stored fingerprints.

    Args:
        item: the test; snapshots are stored beside its module, under its name.
    """

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._settings = get_settings(item.config)
        self._names = names_below_file(item)
        self._asserted_at: dict[str, _Place] = {}
        self._n_unnamed = 0

    def check(
        self,
        context: object,
        name: str | None = None,
        *,
        ignore: Iterable[str] = (),
        redact: Redactions = (),
        split: Splitter | None = None,
        budget: Mapping[str, int] | None = None,
    ) -> None:
        """Assert that a context is what its snapshot says, layer by layer.

        Args:
            context: text, bytes, a chat request, a list of messages or a mapping of names to texts; with
                ``split``, whatever that takes.
            name: tells several snapshots of a test apart; without one they are counted from 0.
            ignore: keys and globs of layers (``Document*``) whose content isn't compared. Name and place
                are; layers under a glob may also come and go.
            redact: pairs of a regular expression and its replacement, applied before anything is hashed.
            split: a function that returns the layers; None asks the hook ``pytest_ctxfp_split_layers``, then
                picks by the context's type.
            budget: the most tokens by key of a layer, ``*`` for the whole; checked before anything else,
                so that a context that is too large is never stored.

        Raises:
            BudgetExceeded: a layer, or the whole, has more tokens than it may.
            SnapshotMismatch: a layer changed; the text names it and the command that accepts it.
            SnapshotMissing: nothing is stored yet.
            CtxfpError: a name used twice, arguments of a wrong kind, a snapshot file that can't be read.
        """
        __tracebackhide__ = True
        key = self._claim_key(name, inspect.currentframe())
        if budget is not None:
            self._check_budget(context, budget, split or splitter_of(self._item))
        self._check(key, context, ignore=ignore, redact=redact, split=split)

    def _check_budget(self, context: object, budget: Mapping[str, int], split: Splitter | None) -> None:
        __tracebackhide__ = True
        try:
            check_budget(context, budget, counter=get_counter(self._item.config), split=split)
        except (TypeError, ValueError, AttributeError) as error:
            message = f"ctx_snapshot.check: budget: {error}"
            raise CtxfpError(message) from None

    def __eq__(self, context: object) -> bool:
        """Check a context written as ``assert context == ctx_snapshot``; raises as `check` does."""
        __tracebackhide__ = True
        key = self._claim_key(None, inspect.currentframe())
        self._check(key, context)
        return True

    def __ne__(self, context: object) -> bool:
        """Refuse ``!=``: no test needs a context to be anything but its snapshot."""
        message = "a context is checked by 'assert context == ctx_snapshot'; with != nothing is checked"
        raise CtxfpError(message)

    __hash__ = None  # type: ignore[assignment] # equal to contexts, which have other hashes

    def _claim_key(self, name: str | None, checking: FrameType | None) -> str:
        label = name
        if name is None:
            label = str(self._n_unnamed)
            self._n_unnamed += 1
        if not isinstance(label, str) or not label:
            message = f"ctx_snapshot.check takes a name of at least one character, got {name!r}"
            raise CtxfpError(message)
        here = _calling_place(checking)
        if label in self._asserted_at:
            message = (
                f"snapshot {label!r} is asserted twice in one test, at"
                f" {self._describe(self._asserted_at[label])} and at {self._describe(here)}: give each check"
                " a name of its own"
            )
            raise CtxfpError(message)
        self._asserted_at[label] = here
        return f"{self._names}#{label}"

    def _describe(self, place: _Place) -> str:
        if place is None:
            return "an unknown line"
        return f"{shown_path(Path(place[0]), self._item.config)}:{place[1]}"

    def _check(
        self,
        key: str,
        context: object,
        *,
        ignore: Iterable[str] = (),
        redact: Redactions = (),
        split: Splitter | None = None,
    ) -> None:
        __tracebackhide__ = True
        path = snapshot_path(self._item.path)
        stored = get_snapshot_reader(self._item.config).find(path, key)
        try:
            split = splitter_of(self._item) if split is None else split
            secrets = get_redactor(self._item.config)
            current = CurrentContext(
                context, key=key, ignore=ignore, redact=redact, split=split, secrets=secrets
            )
            verdict = check_snapshot(stored, current, accept=self._settings.snapshot_update_layers)
        except (TypeError, ValueError) as error:
            message = f"ctx_snapshot.check: {error}"
            raise CtxfpError(message) from None
        record = self._record(verdict, path, redact)
        add_record(self._item, record)
        if record["state"] == "missing":
            self._fail_missing(verdict, path)
        if record["state"] == "changed":
            try:
                self._fail_changed(verdict, path)
            finally:
                add_notes(record, take_notes(self._item.config))

    def _record(self, verdict: SnapshotVerdict, path: Path, redact: Redactions) -> SnapshotRecord:
        record: SnapshotRecord = {
            "kind": "snapshot",
            "key": json.dumps(verdict.current.key),
            "file": str(path),
            "state": verdict.state.value,
        }
        if redact:
            record["redacted"] = _found_redactions(redact, verdict.current.unmatched_redactions)
        if self._settings.snapshot_update_layers:
            record["matched_names"] = _names_that_fit(
                layer_names(self._settings.snapshot_update_layers), verdict
            )
        if verdict.current.ignore.patterns:
            fitting = _names_that_fit(verdict.current.ignore, verdict)
            record["ignored"] = {
                escape_line(name): name in fitting for name in verdict.current.ignore.patterns
            }
        if self._is_to_write(verdict):
            self._add_write(record, verdict)
        return record

    def _is_to_write(self, verdict: SnapshotVerdict) -> bool:
        if verdict.state is SnapshotState.MISSING:
            return self._settings.snapshot_create
        return self._settings.snapshot_update or verdict.is_accepted

    def _add_write(self, record: SnapshotRecord, verdict: SnapshotVerdict) -> None:
        """Add what to store, unless it is stored already."""
        entry = verdict.entry()
        text_file = self._text_file(verdict.current.key)
        if entry == verdict.stored and (text_file is None or text_file.exists()):
            return
        record["state"] = "written"
        record["accepted"] = sorted({escape_line(change.layer) for change in verdict.accepted})
        record["entry"] = json.dumps([entry.key, entry.sha256, entry.bytes, entry.layers])
        if text_file is not None:
            record["text_file"] = str(text_file)
            record["text"] = base64.b64encode(verdict.current.text(entry)).decode("ascii")

    def _text_file(self, key: str) -> Path | None:
        return text_file_of(self._item.path, key, self._settings)

    def _fail_missing(self, verdict: SnapshotVerdict, path: Path) -> None:
        __tracebackhide__ = True
        from pytest_ctxfp._snapshot_failure import describe_missing

        command = command_for(self._item, "--ctx-snapshot-create")
        raise SnapshotMissing(
            describe_missing(verdict, path=shown_path(path, self._item.config), command=command)
        )

    def _fail_changed(self, verdict: SnapshotVerdict, path: Path) -> None:
        __tracebackhide__ = True
        from pytest_ctxfp._snapshot_failure import describe_diffs, describe_mismatch

        text_file = self._text_file(verdict.current.key)
        texts = None if text_file is None else _stored_texts(verdict, text_file)
        shown = "(ini ctx_snapshot_text = none)"
        if text_file is not None:
            shown = shown_path(text_file, self._item.config)
        add_section(
            self._item, f"context diff: {verdict.current.key}", describe_diffs(texts, text_file=shown)
        )
        text = describe_mismatch(
            verdict,
            path=shown_path(path, self._item.config),
            command=command_for(self._item, "--ctx-snapshot-update"),
            texts=texts or (),
            counter=get_counter(self._item.config),
        )
        raise SnapshotMismatch(text)


def _calling_place(checking: FrameType | None) -> _Place:
    caller = checking.f_back if checking else None
    return None if caller is None else (caller.f_code.co_filename, caller.f_lineno)


def _names_that_fit(names: LayerNames, verdict: SnapshotVerdict) -> list[str]:
    """Return which names and globs fit a layer, stored or present."""
    stored = verdict.stored.layers if verdict.stored else ()
    return sorted(names.matching(row.key for row in (*stored, *verdict.current.rows)))


def _found_redactions(redact: Redactions, unmatched: tuple[str, ...]) -> dict[str, bool]:
    texts = [pattern if isinstance(pattern, str) else pattern.pattern for pattern, _ in redact]
    return {escape_line(text): text not in unmatched for text in texts}


def _stored_texts(verdict: SnapshotVerdict, text_file: Path):  # type: ignore[no-untyped-def]
    from pytest_ctxfp._snapshot_diff import changed_texts

    try:
        return changed_texts(verdict, text_file.read_bytes())
    except OSError:
        return None
