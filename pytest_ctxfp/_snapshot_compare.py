"""Stored layer rows against current ones: what changed, came, went and moved."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from pytest_ctxfp._fingerprint import ContextFingerprint, LayerFingerprint, diff_fingerprints
from pytest_ctxfp._layers import PREAMBLE_KEY, heading_name
from pytest_ctxfp._snapshot_model import LayerRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pytest_ctxfp._snapshot_rules import LayerNames

_NUMBERED_KEY = re.compile(r"(.*)#[0-9]+", re.DOTALL)


class ChangeKind(str, Enum):
    """What happened to a layer; the value is its mark in a failure."""

    CHANGED = "~"
    ADDED = "+"
    REMOVED = "-"
    MOVED = ">"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerChange:
    """One change of one layer; a layer that changed and moved has two.

    Args:
        kind: what happened.
        layer: its key now, or its old key where it is gone.
        before: its stored line, None where it was added.
        after: its line now, None where it was removed.
        follows: of a moved layer, the key of the layer before it now; None where it is the first.
    """

    kind: ChangeKind
    layer: str
    before: LayerRow | None
    after: LayerRow | None
    follows: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """All changes, sorted by kind and layer, and the numbers of layers without any."""

    changes: tuple[LayerChange, ...]
    n_unchanged: int
    n_ignored: int


def compare_rows(stored: Sequence[LayerRow], current: Sequence[LayerRow], ignore: LayerNames) -> Compared:
    """Return how the current layers differ from the stored ones.

    Layers are paired and moves found as in `diff_fingerprints`. Layers under a glob are left out of that:
    of them only the place is compared.
    """
    before, after = _comparable(stored, ignore, "stored"), _comparable(current, ignore, "current")
    diff = diff_fingerprints(before, after)
    old, new = {row.key: row for row in stored}, {row.key: row for row in current}
    place = {row.key: index for index, row in enumerate(current)}
    moved = set(diff.moved)
    in_place = {old_key: key for old_key, key in diff.pairs.items() if key not in moved}
    changed = {
        old_key: key for old_key, key in diff.pairs.items() if before.layers[old_key] != after.layers[key]
    }
    changes = [
        *(_change(ChangeKind.CHANGED, old[old_key], new[key]) for old_key, key in changed.items()),
        *(_change(ChangeKind.ADDED, None, new[key]) for key in diff.added),
        *(_change(ChangeKind.REMOVED, old[key], None) for key in diff.removed),
        *(_moved(old[old_key], place[key], current) for old_key, key in diff.pairs.items() if key in moved),
        *_misplaced(stored, current, ignore, in_place),
    ]
    unchanged = [key for old_key, key in in_place.items() if old_key not in changed]
    return Compared(
        changes=tuple(sorted(changes, key=_kind_and_layer)),
        n_unchanged=sum(1 for key in unchanged if not ignore.is_named(key)),
        n_ignored=sum(1 for row in current if ignore.matches(row.key)),
    )


def _comparable(rows: Sequence[LayerRow], ignore: LayerNames, side: str) -> ContextFingerprint:
    """Return a fingerprint of what is compared: no layers under a glob, ignored ones all alike.

    Its digest is the side's name: never equal, so that the layers are compared, and they alone.
    """
    layers = {row.key: _layer_of(row, ignore) for row in rows if ignore.glob_of(row.key) is None}
    return ContextFingerprint(layers=layers, order=tuple(layers), full_hash=side, total_bytes=0)


def _layer_of(row: LayerRow, ignore: LayerNames) -> LayerFingerprint:
    name = _name_of(row)
    if ignore.is_named(row.key):
        return LayerFingerprint(hash="", bytes=0, lines=0, name=name)
    digest = row.hash or "(was ignored)"
    return LayerFingerprint(
        hash=digest, bytes=row.bytes or 0, lines=row.lines or 0, name=name, header=row.header_text
    )


def _change(kind: ChangeKind, before: LayerRow | None, after: LayerRow | None) -> LayerChange:
    row = after or before
    assert row is not None
    return LayerChange(kind=kind, layer=row.key, before=before, after=after)


def _moved(before: LayerRow | None, index: int, current: Sequence[LayerRow]) -> LayerChange:
    after = current[index]
    follows = current[index - 1].key if index else None
    return LayerChange(kind=ChangeKind.MOVED, layer=after.key, before=before, after=after, follows=follows)


_KINDS = tuple(ChangeKind)


def _kind_and_layer(change: LayerChange) -> tuple[int, str]:
    return _KINDS.index(change.kind), change.layer


def _misplaced(
    stored: Sequence[LayerRow],
    current: Sequence[LayerRow],
    ignore: LayerNames,
    in_place: Mapping[str, str],
) -> Iterator[LayerChange]:
    """Yield the layers under a glob that stand where none of that glob is stored, one for each place.

    A place is told by the number of layers before it that didn't move: these are the same on both sides.
    """
    if not ignore.patterns:
        return
    known = _glob_places(stored, ignore, in_place.keys())
    known_globs = {glob for _, glob in known}
    by_key = {row.key: row for row in stored}
    for place, index in _glob_places(current, ignore, set(in_place.values())).items():
        if place not in known and place[1] in known_globs:
            yield _moved(by_key.get(current[index].key), index, current)


def _glob_places(
    rows: Sequence[LayerRow], ignore: LayerNames, anchors: Collection[str]
) -> dict[tuple[int, str], int]:
    """Return where layers under a glob stand: number of anchors before, glob -> index of the first row."""
    places: dict[tuple[int, str], int] = {}
    n_before = 0
    for index, row in enumerate(rows):
        n_before += row.key in anchors
        glob = ignore.glob_of(row.key)
        if glob is not None:
            places.setdefault((n_before, glob), index)
    return places


def _name_of(row: LayerRow) -> str | None:
    """Return the name behind a key such as ``Document#2``, which isn't stored."""
    if row.key == PREAMBLE_KEY:
        return None
    numbered = _NUMBERED_KEY.fullmatch(row.key)
    if numbered is None or row.header is None or heading_name(row.header) == row.key:
        return row.key
    return numbered[1]


def rows_to_store(
    stored: Sequence[LayerRow] | None, current: Sequence[LayerRow], ignore: LayerNames
) -> tuple[LayerRow, ...]:
    """Return the lines to store for a context: lines of ignored layers stay as they are stored.

    Where nothing but layers under a glob came or went, their stored lines stay too.
    """
    if stored is None or not ignore.patterns:
        return tuple(current)
    kept = {row.key: row for row in stored if row.is_ignored}
    rows = [kept.get(row.key, row) if row.is_ignored else row for row in current]
    fixed, old_fixed = _fixed_rows(rows, ignore), _fixed_rows(stored, ignore)
    keys = [row.key for row in fixed]
    has_same_keys = keys == [row.key for row in old_fixed]
    if has_same_keys and _glob_places(rows, ignore, keys).keys() <= _glob_places(stored, ignore, keys).keys():
        new_row = iter(fixed)
        return tuple(next(new_row) if ignore.glob_of(row.key) is None else _emptied(row) for row in stored)
    return tuple(rows)


def _fixed_rows(rows: Sequence[LayerRow], ignore: LayerNames) -> list[LayerRow]:
    """Return the rows that are under no glob."""
    return [row for row in rows if ignore.glob_of(row.key) is None]


def _emptied(row: LayerRow) -> LayerRow:
    return row if row.is_ignored else LayerRow(row.key, None, None, None, row.header)
