"""Fingerprints and what differs between two, as lines for a terminal; nothing here prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ctxfp._display import escape_line, plural
from pytest_ctxfp._snapshot_compare import ChangeKind, LayerChange
from pytest_ctxfp._snapshot_diff import LayerTexts, SideNames, diff_layers, name_invisible_change
from pytest_ctxfp._snapshot_failure import describe_changes
from pytest_ctxfp._snapshot_model import make_row
from pytest_ctxfp._tokens import ESTIMATE, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ctxfp._cli.reading import FileContext
    from pytest_ctxfp._fingerprint import ContextDiff, ContextFingerprint
    from pytest_ctxfp._snapshot_model import LayerRow

_NAME_WIDTH = 60


def describe_fingerprint(fingerprint: ContextFingerprint) -> list[str]:
    """Return a fingerprint as a table, and a line for the whole.

    Example::

        layer           hash              bytes  lines  tokens
        Identity        6f1f1fbe1c80aeb5     48      2     ~12
        Business Rules  4355a46b19d348dc    412      9    ~103

        whole: 8a1f0c3b5d7e9f12, 497 bytes, ~125 tokens, 2 layers
    """
    rows = [("layer", "hash", "bytes", "lines", "tokens")]
    for key in fingerprint.order:
        layer = fingerprint.layers[key]
        sizes = str(layer.bytes), str(layer.lines), _show_tokens(layer.bytes)
        rows.append((_show_key(key), layer.hash, *sizes))
    n_bytes, n_layers = fingerprint.total_bytes, len(fingerprint.order)
    size = f"{plural(n_bytes, 'byte')}, {_show_tokens(n_bytes)} tokens, {plural(n_layers, 'layer')}"
    return [*_align(rows), "", f"whole: {fingerprint.full_hash}, {size}"]


def _show_key(key: str) -> str:
    name = escape_line(key, limit=_NAME_WIDTH)
    return name if name.strip() else f'"{name}"'


def _show_tokens(n_bytes: int) -> str:
    return ESTIMATE.show(estimate_tokens(n_bytes))


def _align(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows in columns: names and hashes to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if index < 2 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells)


def describe_diff(before: FileContext, after: FileContext, diff: ContextDiff) -> list[str]:
    """Return what differs: the summary, a row a layer, and the changed lines.

    Example::

        context differs: changed: Business Rules (+12 bytes)

          ~ Business Rules  412 -> 424 bytes (+12), 9 -> 10 lines (+1), ~+3 tokens
          4 layers unchanged

        --- Business Rules (old.md)
        +++ Business Rules (new.md)
        @@ -9 +9,2 @@
         - exclude returns
        +- count all
    """
    if diff.identical:
        return [diff.summary()]
    changes = _list_changes(before.fingerprint, after.fingerprint, diff)
    texts = [] if _lacking_texts(before, after) else _list_texts(before, after, changes)
    rows = describe_changes(changes, texts, counter=ESTIMATE)
    if not rows:
        rows = ["  no layer differs, but the whole does: text outside of all layers, or another --split"]
    n_unchanged = len(diff.pairs) - len({change.layer for change in changes} & set(diff.pairs.values()))
    rows.append(f"  {plural(n_unchanged, 'layer')} unchanged")
    return [diff.summary(), "", *rows, *_describe_texts(before, after, texts)]


def _describe_texts(before: FileContext, after: FileContext, texts: list[LayerTexts]) -> list[str]:
    lacking = _lacking_texts(before, after)
    if lacking:
        holds = "hold fingerprints" if len(lacking) > 1 else "holds a fingerprint"
        return ["", f"no line diffs: {' and '.join(lacking)} {holds}, not the text"]
    sides = SideNames(
        before=before.name,
        not_before=f"not in {before.name}",
        after=after.name,
        not_after=f"not in {after.name}",
    )
    return ["", diff_layers(texts, sides=sides)] if texts else []


def _lacking_texts(*sides: FileContext) -> list[str]:
    return [side.name for side in sides if side.texts is None]


def _list_changes(
    before: ContextFingerprint, after: ContextFingerprint, diff: ContextDiff
) -> list[LayerChange]:
    """Return the changes as those of a snapshot; none where nothing but the whole differs."""
    earlier = {key: old_key for old_key, key in diff.pairs.items()}
    changed = [delta.layer for delta in diff.changed if _differs(before, after, earlier, delta.layer)]
    follows = dict(zip(after.order[1:], after.order, strict=False))
    return [
        *(_change(ChangeKind.CHANGED, _row(before, earlier[key]), _row(after, key)) for key in changed),
        *(_change(ChangeKind.ADDED, None, _row(after, key)) for key in diff.added),
        *(_change(ChangeKind.REMOVED, _row(before, key), None) for key in diff.removed),
        *(
            LayerChange(
                kind=ChangeKind.MOVED,
                layer=key,
                before=_row(before, earlier[key]),
                after=_row(after, key),
                follows=follows.get(key),
            )
            for key in diff.moved
        ),
    ]


def _differs(
    before: ContextFingerprint, after: ContextFingerprint, earlier: dict[str, str], key: str
) -> bool:
    return key in earlier and _row(before, earlier[key])[1:] != _row(after, key)[1:]


def _change(kind: ChangeKind, before: LayerRow | None, after: LayerRow | None) -> LayerChange:
    row = after or before
    assert row is not None
    return LayerChange(kind=kind, layer=row.key, before=before, after=after)


def _row(fingerprint: ContextFingerprint, key: str) -> LayerRow:
    layer = fingerprint.layers[key]
    return make_row(key, layer.header, content=(layer.hash, layer.bytes, layer.lines))


def _list_texts(before: FileContext, after: FileContext, changes: list[LayerChange]) -> list[LayerTexts]:
    return [_texts_of(before, after, change) for change in changes if change.kind is not ChangeKind.MOVED]


def _texts_of(before: FileContext, after: FileContext, change: LayerChange) -> LayerTexts:
    then, now = _text_of(before, change.before), _text_of(after, change.after)
    note = None
    if then is not None and now is not None and then[1] != now[1]:
        note = name_invisible_change(then[1], now[1])
    return LayerTexts(
        layer=change.layer,
        before=None if then is None else b"".join(then),
        after=None if now is None else b"".join(now),
        note=note,
    )


def _text_of(side: FileContext, row: LayerRow | None) -> tuple[bytes, bytes] | None:
    return None if row is None or side.texts is None else side.texts[row.key]
