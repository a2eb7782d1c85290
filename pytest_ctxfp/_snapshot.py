"""A context against its stored snapshot: matched, changed (where) or missing, and what to store.

Hashes decide. An ignored layer is left out of the digest, but its name and place are compared; a layer
that is ignored by a glob may come and go where such layers stood before.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from pytest_ctxfp._layers import encode_text, join_surrogates
from pytest_ctxfp._snapshot_compare import compare_rows, rows_to_store
from pytest_ctxfp._snapshot_model import SnapshotEntry, make_row
from pytest_ctxfp._snapshot_redact import redact_context
from pytest_ctxfp._snapshot_rules import layer_names
from pytest_ctxfp._snapshot_text import render_text, split_text
from pytest_ctxfp._split import split_context
from pytest_ctxfp._texts import unique_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ctxfp._redaction import Redactor
    from pytest_ctxfp._snapshot_compare import LayerChange
    from pytest_ctxfp._snapshot_model import LayerRow
    from pytest_ctxfp._snapshot_redact import Redactions
    from pytest_ctxfp._snapshot_rules import LayerNames
    from pytest_ctxfp._split import Splitter


class SnapshotState(str, Enum):
    """How a context stands to its stored snapshot."""

    MATCHED = "matched"
    CHANGED = "changed"
    MISSING = "missing"


class CurrentContext:
    """A context as it is now, redacted; what a matching check doesn't need is computed when asked.

    Args:
        context: text, bytes or a mapping; with `split`, whatever that takes.
        key: the snapshot's key.
        ignore: keys and globs of layers whose content isn't compared.
        redact: pairs of a pattern and its replacement.
        split: a function that returns the layers; None picks by the context's type.
        secrets: leaves secrets out of all texts that are written, and out of no hash.

    Raises:
        ValueError: a context or an argument of a wrong kind, a bad regular expression.
    """

    def __init__(
        self,
        context: object,
        *,
        key: str,
        ignore: object = (),
        redact: Redactions = (),
        split: Splitter | None = None,
        secrets: Redactor | None = None,
    ) -> None:
        if isinstance(context, (bytearray, memoryview)):
            context = bytes(context)
        redacted = redact_context(context, redact)
        self.key = join_surrogates(key)
        self.ignore = layer_names(ignore)
        self._secrets = secrets
        self.unmatched_redactions = redacted.unmatched
        context = redacted.context
        # The layers are split when they are asked for: a match by digest needs none.
        whole, self._unread_layers = split_context(context, split)
        self.is_text = isinstance(context, (str, bytes))
        self._whole = encode_text(context) if isinstance(context, (str, bytes)) else whole or b""

    @cached_property
    def _parts(self) -> tuple[tuple[str, bytes, bytes], ...]:
        """Key as it is written, header and body of all layers in order, ignored ones too."""
        layers = tuple(self._unread_layers)
        keys = [layer.key for layer in layers]
        if self._secrets is not None:
            keys = unique_names(map(self._secrets, keys))
        return tuple(
            (key, encode_text(layer.header), encode_text(layer.body))
            for key, layer in zip(keys, layers, strict=True)
        )

    @cached_property
    def rows(self) -> tuple[LayerRow, ...]:
        """The layers as they would be stored."""
        return tuple(
            _make_row(key, self._written(header), body, is_ignored=self.ignore.matches(key))
            for key, header, body in self._parts
        )

    @cached_property
    def contents(self) -> dict[str, tuple[bytes, bytes]]:
        """Header and body of every layer, by key, with the secrets that they hold."""
        return {row.key: part[1:] for row, part in zip(self.rows, self._parts, strict=True)}

    @cached_property
    def _digest(self) -> tuple[str, int]:
        """SHA-256 and bytes of the whole; where names are ignored, of header and body of all other layers."""
        whole = self._whole
        if self.ignore.patterns:
            parts = zip(self.rows, self._parts, strict=True)
            whole = b"".join(header + body for row, (_, header, body) in parts if not row.is_ignored)
        return sha256(whole).hexdigest(), len(whole)

    @property
    def sha256(self) -> str:
        """64 hex digits over all that isn't ignored."""
        return self._digest[0]

    @property
    def n_bytes(self) -> int:
        """Number of bytes that aren't ignored."""
        return self._digest[1]

    def is_stored_as(self, entry: SnapshotEntry) -> bool:
        """Whether a stored snapshot equals this one; the digest, which is quick, is compared first."""
        if entry.sha256 != self.sha256:
            return False
        if self.ignore.patterns:
            return entry.layers == self.rows
        return not any(row.is_ignored for row in entry.layers)

    def entry(self, stored: SnapshotEntry | None = None) -> SnapshotEntry:
        """Return what to store.

        Args:
            stored: what is stored now; its lines of ignored layers are kept as they are.
        """
        old_rows = None if stored is None else stored.layers
        rows = rows_to_store(old_rows, self.rows, self.ignore)
        return SnapshotEntry(key=self.key, sha256=self.sha256, bytes=self.n_bytes, layers=rows)

    def text(self, entry: SnapshotEntry) -> bytes:
        """Return the text file's content that belongs to what `entry` returned."""
        return self._written(self._rendered(entry))

    def written_contents(self, entry: SnapshotEntry) -> Mapping[str, tuple[bytes, bytes]] | None:
        """Return header and body of every layer by key, as they stand in the text file.

        None where they can't be told apart, since leaving secrets out changed the number of lines.
        """
        text = self._rendered(entry)
        written = self._written(text)
        if written == text:
            return self.contents
        layers = split_text(written, entry)
        if layers is None:
            return None
        ignored = {
            key: (self._written(header), self._written(body)) for key, (header, body) in self.contents.items()
        }
        return ignored | {key: (layer.header, layer.body) for key, layer in layers.items()}

    def _rendered(self, entry: SnapshotEntry) -> bytes:
        contents = {key: header + body for key, (header, body) in self.contents.items()}
        return render_text(entry, contents, is_text=self.is_text)

    def _written(self, data: bytes) -> bytes:
        return data if self._secrets is None else self._secrets.redact_bytes(data)


def _make_row(key: str, header: bytes, body: bytes, *, is_ignored: bool) -> LayerRow:
    # One text for the same bytes, whether the context came as text or as bytes.
    header_text = header.decode("utf-8", "surrogateescape")
    if is_ignored:
        return make_row(key, header_text, content=None)
    n_lines = body.count(b"\n") + (1 if body and not body.endswith(b"\n") else 0)
    return make_row(key, header_text, content=(sha256(body).hexdigest()[:16], len(body), n_lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotVerdict:
    """The outcome of one check.

    Args:
        state: matched, changed or missing.
        current: the context that was checked.
        stored: the snapshot it was checked against, None where it is missing.
        accepted: changes in layers that the user accepts.
        rejected: all other changes.
        n_unchanged: number of layers that are the same and not ignored.
        n_ignored: number of layers now that are ignored.
        is_inexplicable: the digest differs and no layer does: a text became a mapping with equal layers,
            or the stored entry was edited.
    """

    state: SnapshotState
    current: CurrentContext
    stored: SnapshotEntry | None = None
    accepted: tuple[LayerChange, ...] = ()
    rejected: tuple[LayerChange, ...] = ()
    n_unchanged: int = 0
    n_ignored: int = 0
    is_inexplicable: bool = False

    @property
    def is_accepted(self) -> bool:
        """Whether it changed in accepted layers only: it passes, and `entry` is to be written."""
        return self.state is SnapshotState.CHANGED and bool(self.accepted) and not self.rejected

    def entry(self) -> SnapshotEntry:
        """Return what records the context as it is now; equal to ``stored`` where nothing changed."""
        return self.current.entry(self.stored)


def check_snapshot(
    stored: SnapshotEntry | None, current: CurrentContext, *, accept: object = ()
) -> SnapshotVerdict:
    """Compare a context with its stored snapshot.

    Args:
        stored: the stored snapshot, None where there is none.
        current: the context now.
        accept: keys and globs of layers in which a change is accepted.

    Raises:
        ValueError: ``accept`` is no list of texts.
    """
    if stored is None:
        return SnapshotVerdict(state=SnapshotState.MISSING, current=current)
    if current.is_stored_as(stored):
        return SnapshotVerdict(state=SnapshotState.MATCHED, current=current, stored=stored)
    return _check_layers(stored, current, layer_names(accept))


def _check_layers(stored: SnapshotEntry, current: CurrentContext, accept: LayerNames) -> SnapshotVerdict:
    compared = compare_rows(stored.layers, current.rows, current.ignore)
    has_other_digest = stored.sha256 != current.sha256 and _is_digest_comparable(stored, current)
    is_inexplicable = has_other_digest and not compared.changes
    is_changed = bool(compared.changes) or is_inexplicable
    return SnapshotVerdict(
        state=SnapshotState.CHANGED if is_changed else SnapshotState.MATCHED,
        current=current,
        stored=stored,
        accepted=tuple(change for change in compared.changes if accept.matches(change.layer)),
        rejected=tuple(change for change in compared.changes if not accept.matches(change.layer)),
        n_unchanged=compared.n_unchanged,
        n_ignored=compared.n_ignored,
        is_inexplicable=is_inexplicable,
    )


def _is_digest_comparable(stored: SnapshotEntry, current: CurrentContext) -> bool:
    """Whether both digests are of the same parts of a context; else only the layers can tell."""
    if current.ignore.patterns and not current.is_text:
        return False
    return all(row.is_ignored == current.ignore.matches(row.key) for row in stored.layers)
