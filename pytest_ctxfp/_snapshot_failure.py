"""What a person reads when a context isn't what its snapshot says."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from pytest_ctxfp._display import escape_line, plural
from pytest_ctxfp._snapshot_compare import ChangeKind
from pytest_ctxfp._snapshot_diff import diff_layers
from pytest_ctxfp._tokens import count_tokens, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ctxfp._snapshot import SnapshotVerdict
    from pytest_ctxfp._snapshot_compare import LayerChange
    from pytest_ctxfp._snapshot_diff import LayerTexts
    from pytest_ctxfp._snapshot_model import LayerRow
    from pytest_ctxfp._tokens import TokenCounter

MAX_ROWS = 20
_MAX_NAMES = 4
_NAME_WIDTH = 40
_VERBS = {
    ChangeKind.CHANGED: "changed",
    ChangeKind.ADDED: "added",
    ChangeKind.REMOVED: "removed",
    ChangeKind.MOVED: "moved",
}


def describe_mismatch(
    verdict: SnapshotVerdict,
    *,
    path: str,
    command: str,
    texts: Sequence[LayerTexts] = (),
    counter: TokenCounter | None = None,
) -> str:
    """Return the text of a failed check; its first line is the reason and stands alone.

    Args:
        verdict: of a context that changed, with at least one change that isn't accepted.
        path: the snapshot file, as the user would type it.
        command: accepts the change.
        texts: what `changed_texts` returned, for what the hashes don't say.
        counter: counts tokens; an exact one only layers whose text is stored. None for no counts.

    Example::

        2 layers changed: Business Rules, Current Facts; 1 moved: Identity (+12 bytes)

        snapshot test_x[a]#0 in tests/__ctxfp__/test_x.ctxfp
          ~ Business Rules  412 -> 424 bytes (+12), 9 -> 10 lines (+1), ~+3 tokens
          ~ Current Facts   48 bytes, 3 lines: only white space
          > Identity        now after Business Rules
          5 layers unchanged, 1 ignored
        accept with: pytest 'tests/test_x.py::test_x[a]' --ctx-snapshot-update
    """
    lines = [
        describe_reason(verdict),
        "",
        f"snapshot {escape_line(verdict.current.key)} in {escape_line(path)}",
        *describe_changes(verdict.rejected, texts, counter=counter),
        f"  {_count_of_others(verdict)}",
    ]
    if verdict.accepted:
        names = ", ".join(
            dict.fromkeys(_quoted_name(change.layer) for change in verdict.accepted[:_MAX_NAMES])
        )
        lines.append(f"  nothing of this snapshot was written, not even what is accepted: {names}")
    return "\n".join([*lines, f"accept with: {command}"])


def describe_changes(
    changes: Sequence[LayerChange], texts: Sequence[LayerTexts] = (), *, counter: TokenCounter | None = None
) -> list[str]:
    """Return a row a change, 20 at most, as in `describe_mismatch`.

    Args:
        changes: what happened to the layers.
        texts: of changed layers, for what the hashes don't say.
        counter: as in `describe_mismatch`.
    """
    return list(_rows(changes, _notes_by_layer(changes, texts, counter)))


def describe_missing(verdict: SnapshotVerdict, *, path: str, command: str) -> str:
    """Return the text of a check without a stored snapshot.

    Example::

        no snapshot is stored for test_x[a]#0 (8 layers, 8192 bytes)

        it belongs in tests/__ctxfp__/test_x.ctxfp
        store it with: pytest 'tests/test_x.py::test_x[a]' --ctx-snapshot-create
    """
    current = verdict.current
    size = f"{plural(len(current.rows), 'layer')}, {plural(current.n_bytes, 'byte')}"
    return (
        f"no snapshot is stored for {escape_line(current.key, limit=100)} ({size})\n\n"
        f"it belongs in {escape_line(path)}\nstore it with: {command}"
    )


def describe_diffs(texts: Sequence[LayerTexts] | None, *, text_file: str) -> str:
    """Return the line diffs of the changed layers, capped.

    Args:
        texts: what `changed_texts` returned, or None where no text is stored.
        text_file: where the text is stored, or would be.
    """
    if texts is None:
        return (
            f"no diff: no text of this snapshot is stored at {escape_line(text_file)}. The hashes alone "
            "decide; the next --ctx-snapshot-update stores the text unless ctx_snapshot_text = none"
        )
    return diff_layers(texts) or "no diff: layers moved, and no layer's text changed"


def describe_reason(verdict: SnapshotVerdict) -> str:
    """Return one line that begins with the layers: terminals and CI cut it at 80 columns.

    Example: ``2 layers changed: Business Rules, Current Facts; 1 moved: Identity (+12 bytes)``
    """
    if not verdict.rejected:
        return (
            "the whole changed and no layer did: a text became a mapping, what is redacted of a header"
            " changed, or the snapshot file was edited"
        )
    parts = [_summarise(kind, list(group)) for kind, group in groupby(verdict.rejected, key=_kind_of)]
    noun = "layer" if parts[0].startswith("1 ") else "layers"
    count, rest = parts[0].split(" ", 1)
    n_bytes = sum(_n_bytes(change.after) - _n_bytes(change.before) for change in verdict.rejected)
    return f"{'; '.join([f'{count} {noun} {rest}', *parts[1:]])} ({_signed(n_bytes, 'byte')})"


def _notes_by_layer(
    changes: Sequence[LayerChange], texts: Sequence[LayerTexts], counter: TokenCounter | None
) -> dict[str, str]:
    """Return what is said of a changed layer besides its sizes: the change of its tokens, and its nature."""
    by_layer = {text.layer: text for text in texts}
    notes = {}
    for change in changes:
        text = by_layer.get(change.layer)
        delta = _token_delta(change, text, counter)
        parts = [*([f", {delta}"] if delta else []), *([f": {text.note}"] if text and text.note else [])]
        notes[change.layer] = "".join(parts)
    return notes


def _token_delta(change: LayerChange, text: LayerTexts | None, counter: TokenCounter | None) -> str:
    """Return ``~+3 tokens``, or nothing where both are as large or can't be counted."""
    if counter is None or change.before is None or change.after is None:
        return ""
    if counter.is_estimate:
        before, after = (estimate_tokens(row.bytes or 0) for row in (change.before, change.after))
    elif text is not None and text.before is not None and text.after is not None:
        before, after = (count_tokens(part, counter) for part in (text.before, text.after))
    else:
        return ""
    mark = "~" if counter.is_estimate else ""
    return f"{mark}{after - before:+} tokens" if after != before else ""


def _kind_of(change: LayerChange) -> ChangeKind:
    return change.kind


def _summarise(kind: ChangeKind, changes: Sequence[LayerChange]) -> str:
    names = [_quoted_name(change.layer) for change in changes[:_MAX_NAMES]]
    if len(changes) > _MAX_NAMES:
        names.append(f"{len(changes) - _MAX_NAMES} more")
    return f"{len(changes)} {_VERBS[kind]}: {', '.join(names)}"


def _quoted_name(layer: str) -> str:
    name = escape_line(layer, limit=_NAME_WIDTH)
    return f'"{name}"' if not name.strip() or "," in name or ";" in name else name


def _rows(changes: Sequence[LayerChange], notes: Mapping[str, str]) -> Iterator[str]:
    shown = changes[:MAX_ROWS]
    names = [_quoted_name(change.layer) for change in shown]
    width = max(map(len, names), default=0)
    for change, name in zip(shown, names, strict=True):
        yield f"  {change.kind.value} {name:<{width}}  {_describe(change, notes.get(change.layer, ''))}"
    if len(changes) > MAX_ROWS:
        yield f"  ... {plural(len(changes) - MAX_ROWS, 'more change')}"


def _describe(change: LayerChange, note: str) -> str:
    before, after = change.before, change.after
    if change.kind is ChangeKind.MOVED:
        return "now first" if change.follows is None else f"now after {_quoted_name(change.follows)}"
    if before is None or after is None:
        row = after or before
        return "" if row is None else _describe_size(row)
    if before.is_ignored:
        return f"{_describe_size(after)}: was ignored until now, so there is nothing to compare it with"
    if before.hash == after.hash:
        then, now = _header_line(before), _header_line(after)
        return f"{_describe_size(after)}: only its header line, {then!r} -> {now!r}"
    sizes = f"{_delta(before.bytes, after.bytes, 'byte')}, {_delta(before.lines, after.lines, 'line')}"
    header = "" if before.header_text == after.header_text else ", its header line too"
    return f"{sizes}{header}{note}"


def _header_line(row: LayerRow) -> str:
    return row.header_text.removesuffix("\n")[:_NAME_WIDTH]


def _describe_size(row: LayerRow) -> str:
    if row.bytes is None or row.lines is None:
        return "ignored"
    return f"{plural(row.bytes, 'byte')}, {plural(row.lines, 'line')}"


def _delta(before: int | None, after: int | None, noun: str) -> str:
    """Return ``412 -> 424 bytes (+12)``, or ``9 lines`` where the number is the same."""
    before, after = before or 0, after or 0
    if before == after:
        return plural(after, noun)
    return f"{before} -> {plural(after, noun)} ({after - before:+})"


def _n_bytes(row: LayerRow | None) -> int:
    """Return the bytes of a layer with its header; none for an ignored one."""
    if row is None or row.bytes is None:
        return 0
    # A byte that is no UTF-8 stands as a lone surrogate, which is replaced by one byte.
    return row.bytes + len(row.header_text.encode("utf-8", "replace"))


def _count_of_others(verdict: SnapshotVerdict) -> str:
    ignored = f", {verdict.n_ignored} ignored" if verdict.n_ignored else ""
    return f"{plural(verdict.n_unchanged, 'layer')} unchanged{ignored}"


def _signed(number: int, noun: str) -> str:
    return f"{number:+} {noun}{'' if abs(number) == 1 else 's'}" if number else f"same number of {noun}s"
