"""Line diffs of changed layers: readable, capped, and never quadratic in the size of a context."""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ctxfp._display import escape_line, escape_lines
from pytest_ctxfp._snapshot_compare import ChangeKind
from pytest_ctxfp._snapshot_text import split_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ctxfp._snapshot import SnapshotVerdict
    from pytest_ctxfp._snapshot_compare import LayerChange
    from pytest_ctxfp._snapshot_text import StoredLayer

N_CONTEXT_LINES = 3
MAX_LINES = 400
MAX_BYTES = 32_000
_MAX_LAYER_LINES = 120
_MAX_LINE_CHARACTERS = 400
_MAX_NAME = 100
# For all layers of a snapshot together; beyond these a plain listing has to do.
_MAX_DIFFED_LINES = 2_000
_MAX_EQUAL_PAIRS = 20_000
_N_LISTED_LINES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTexts:
    """Header and body of one layer then and now; None where it wasn't there.

    ``note`` says what an eye can't see in them, such as ``only line ends``.
    """

    layer: str
    before: bytes | None
    after: bytes | None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SideNames:
    """What a diff calls the two sides, and the side that lacks a layer."""

    before: str = "stored"
    not_before: str = "not stored"
    after: str = "now"
    not_after: str = "gone"


_SNAPSHOT_SIDES = SideNames()


def changed_texts(verdict: SnapshotVerdict, stored_text: bytes) -> list[LayerTexts]:
    """Return the texts, then and now, of the layers whose change isn't accepted, secrets left out.

    Args:
        verdict: of a context that changed.
        stored_text: the text file's bytes. Where it isn't the text of the stored snapshot, the whole texts
            are returned as one layer.
    """
    stored, current, entry = verdict.stored, verdict.current, verdict.entry()
    if stored is None:
        return []
    layers, written = split_text(stored_text, stored), current.written_contents(entry)
    if layers is None or written is None:
        return [LayerTexts(layer="(whole text)", before=stored_text, after=current.text(entry))]
    return [
        _texts_of(change, layers, current.contents, written)
        for change in verdict.rejected
        if change.kind is not ChangeKind.MOVED
    ]


def _texts_of(
    change: LayerChange,
    stored: Mapping[str, StoredLayer],
    current: Mapping[str, tuple[bytes, bytes]],
    written: Mapping[str, tuple[bytes, bytes]],
) -> LayerTexts:
    then = stored.get(change.before.key) if change.before is not None else None
    now = current[change.layer] if change.after is not None else None
    note = None
    if then is not None and now is not None and then.is_exact and then.body != now[1]:
        note = name_invisible_change(then.body, now[1])
    before = None if then is None else then.header + then.body
    after = None if now is None else b"".join(written[change.layer])
    return LayerTexts(layer=change.layer, before=before, after=after, note=note)


def name_invisible_change(before: bytes, after: bytes) -> str | None:
    """Return why two different bodies look alike, such as ``only line ends``; None if they don't."""
    then, now = _with_lf(_decode(before)), _with_lf(_decode(after))
    if then == now:
        return "only line ends"
    composed_then, composed_now = unicodedata.normalize("NFC", then), unicodedata.normalize("NFC", now)
    if composed_then == composed_now:
        return "only Unicode normalisation"
    if _squeezed(then) == _squeezed(now):
        return "only white space"
    if (composed_then, composed_now) == (then, now) or _squeezed(composed_then) != _squeezed(composed_now):
        return None
    return "only white space and Unicode normalisation"


def _with_lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def diff_layers(
    texts: Sequence[LayerTexts],
    *,
    max_lines: int = MAX_LINES,
    max_bytes: int = MAX_BYTES,
    sides: SideNames = _SNAPSHOT_SIDES,
) -> str:
    r"""Return the unified diffs of layers, one after the other, without a line feed at the end.

    Args:
        texts: the changed layers.
        max_lines: the diff is cut after so many lines.
        max_bytes: and after so many bytes in UTF-8.
        sides: what to call before and after.

    Example:
        >>> print(diff_layers([LayerTexts(layer="Facts", before=b"a\nb\n", after=b"a\nc\n")]))
        --- Facts (stored)
        +++ Facts (now)
        @@ -1,2 +1,2 @@
         a
        -b
        +c
    """
    shown: list[str] = []
    budget = _Budget(n_lines=_MAX_DIFFED_LINES, n_pairs=_MAX_EQUAL_PAIRS)
    for index, layer in enumerate(texts):
        for line in _capped(list(_diff_lines(layer, budget, sides))):
            shown.append(_shown_line(line))
            max_bytes -= len(shown[-1].encode("utf-8")) + 1
            if len(shown) > max_lines or max_bytes < 0:
                rest = f"the rest of {escape_line(layer.layer, limit=_MAX_NAME)!r}"
                shown[-1] = f"... cut: {rest}{_and_more(len(texts) - index - 1)}"
                return "\n".join(shown)
    return "\n".join(shown)


def _capped(lines: list[str]) -> list[str]:
    """Cut the diff of one layer, so that it doesn't hide all others."""
    n_more = len(lines) - _MAX_LAYER_LINES
    return lines if n_more <= 0 else [*lines[:_MAX_LAYER_LINES], f"... {n_more} more lines of this layer"]


def _and_more(n_layers: int) -> str:
    if not n_layers:
        return ""
    return f" and {n_layers} more {'layer' if n_layers == 1 else 'layers'}"


def _shown_line(line: str) -> str:
    n_more = len(line) - _MAX_LINE_CHARACTERS
    return escape_lines(line if n_more <= 0 else f"{line[:_MAX_LINE_CHARACTERS]}… ({n_more} more characters)")


def _diff_lines(layer: LayerTexts, budget: _Budget, sides: SideNames) -> Iterator[str]:
    before, after = _lines(layer.before), _lines(layer.after)
    name = escape_line(layer.layer, limit=_MAX_NAME)
    yield f"--- ({sides.not_before})" if layer.before is None else f"--- {name} ({sides.before})"
    yield f"+++ ({sides.not_after})" if layer.after is None else f"+++ {name} ({sides.after})"
    if before == after:
        yield "(the texts show no difference: line ends changed on disk, or what changed is redacted)"
    elif budget.can_pay(before, after):
        yield from _unified(before, after)
    else:
        yield from _listing(before, "-")
        yield from _listing(after, "+")


def _lines(data: bytes | None) -> list[str]:
    """Split at LF; what ends a line otherwise, or doesn't end, is said, since a hash sees it."""
    if not data:
        return []
    lines = _decode(data).split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += " (no line end)"
    return lines


class _Budget:
    """What may still be spent on diffs; difflib is quadratic, and worse where lines repeat."""

    def __init__(self, *, n_lines: int, n_pairs: int) -> None:
        self._n_lines = n_lines
        self._n_pairs = n_pairs

    def can_pay(self, before: Sequence[str], after: Sequence[str]) -> bool:
        """Whether a diff of these lines is within the budget, which it is then taken from."""
        start, end = _n_common(before, after)
        before, after = before[start : len(before) - end], after[start : len(after) - end]
        n_lines = len(before) + len(after)
        if n_lines > self._n_lines:
            return False
        counts = Counter(after)
        n_pairs = sum(counts[line] for line in before)
        if n_pairs > self._n_pairs:
            return False
        self._n_lines -= n_lines
        self._n_pairs -= n_pairs
        return True


def _n_common(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """Return the number of equal lines at the start and, of the rest, at the end."""
    shorter = min(len(before), len(after))
    start = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    rest = shorter - start
    end = next((i for i in range(rest) if before[-1 - i] != after[-1 - i]), rest)
    return start, end


def _unified(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield the hunks; difflib sees only what lies between the common start and end."""
    import difflib

    start, end = _n_common(before, after)
    start, end = max(0, start - N_CONTEXT_LINES), max(0, end - N_CONTEXT_LINES)
    matcher = difflib.SequenceMatcher(
        None, before[start : len(before) - end], after[start : len(after) - end], autojunk=False
    )
    for group in matcher.get_grouped_opcodes(N_CONTEXT_LINES):
        first, last = group[0], group[-1]
        then, now = _span(start + first[1], start + last[2]), _span(start + first[3], start + last[4])
        yield f"@@ -{then} +{now} @@"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[start + i1 : start + i2])
                continue
            yield from (f"-{line}" for line in before[start + i1 : start + i2])
            yield from (f"+{line}" for line in after[start + j1 : start + j2])


def _span(start: int, end: int) -> str:
    """Return a range as unified diffs have it: 1-based, a length of one left out, an empty one before."""
    n_lines = end - start
    if n_lines == 1:
        return str(start + 1)
    return f"{start + 1 if n_lines else start},{n_lines}"


def _listing(lines: Sequence[str], sign: str) -> Iterator[str]:
    """Yield the first and the last lines, where a diff would cost too much."""
    n_left_out = len(lines) - 2 * _N_LISTED_LINES
    if n_left_out <= 0:
        yield from (f"{sign}{line}" for line in lines)
        return
    yield from (f"{sign}{line}" for line in lines[:_N_LISTED_LINES])
    yield f"{sign}... {n_left_out} lines not shown: too many for a diff"
    yield from (f"{sign}{line}" for line in lines[-_N_LISTED_LINES:])
