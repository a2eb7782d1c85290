"""Texts of a layer side by side, then and now; each pair is shown once for all cases that have it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_ctxfp._display import escape_lines
from pytest_ctxfp._html.texts import show_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Side = Literal["same", "changed", "gap"]

MAX_DIFFS = 300
MAX_ROWS = 400
_CONTEXT = 3
_MAX_LINE = 500
_MAX_LINES = 2_000  # beyond these, or so many equal pairs, lines are not aligned: that would be quadratic
_MAX_EQUAL_PAIRS = 20_000
_MAX_LINKED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One side of a row.

    Attributes:
        number: 1-based.
        before: the part that the other side has too, before the difference.
        changed: what differs.
        after: the part that the other side has too, after the difference.
    """

    number: int
    before: str
    changed: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRow:
    """A row of a diff: the same line on both sides, a changed one, or ``n_hidden`` unchanged ones."""

    kind: Side
    left: Line | None = None
    right: Line | None = None
    n_hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """The change of one layer.

    Attributes:
        number: names the diff's place in the page.
        layer: name of the layer.
        rows: side by side.
        note: what is left out, or what an eye can't see.
        cases: numbers and names of cases that have this change.
        n_more_cases: how many more have it.
    """

    number: int
    layer: str
    rows: tuple[DiffRow, ...]
    note: str
    cases: tuple[tuple[int, str], ...]
    n_more_cases: int


class DiffBook:
    """Collects the changes of all cases, each once.

    Args:
        before: texts of layers by hash, as the baseline has them.
        after: as this run has them.
    """

    def __init__(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        self._before = before
        self._after = after
        self._numbers: dict[tuple[str, str | None, str | None], int] = {}
        self._cases: dict[int, list[tuple[int, str]]] = {}

    def find(self, layer: str, before: str | None, after: str | None, *, case: tuple[int, str]) -> int | None:
        """Return the number of a change's diff, or None where there is none to show.

        Args:
            layer: key of the layer.
            before: hash of the layer in the baseline, None where it was added.
            after: hash of the layer in this run, None where it was removed.
            case: number and name of the case that has it.
        """
        if self._text(before, 0) is None or self._text(after, 1) is None:
            return None
        change = (layer, before, after)
        if change not in self._numbers:
            if len(self._numbers) >= MAX_DIFFS:
                return None
            self._numbers[change] = len(self._numbers) + 1
        number = self._numbers[change]
        self._cases.setdefault(number, []).append(case)
        return number

    def why_not(self, before: str | None, after: str | None) -> str:
        """Return why there is no diff to show of a change."""
        if self._text(before, 0) is None or self._text(after, 1) is None:
            return "its texts are not kept in both reports"
        return f"this page has {MAX_DIFFS} diffs already"

    def all(self) -> Iterator[Diff]:
        """Yield the diffs, in the order of their numbers."""
        for (layer, before, after), number in self._numbers.items():
            rows, note = diff_texts(self._text(before, 0) or "", self._text(after, 1) or "")
            cases = self._cases[number]
            yield Diff(
                number=number,
                layer=show_name(layer),
                rows=rows,
                note=note,
                cases=tuple(cases[:_MAX_LINKED]),
                n_more_cases=max(0, len(cases) - _MAX_LINKED),
            )

    def _text(self, digest: str | None, side: int) -> str | None:
        if digest is None:
            return ""
        # A text is its hash's text, whichever report has it.
        first, second = (self._before, self._after) if side == 0 else (self._after, self._before)
        return first.get(digest, second.get(digest))


def diff_texts(before: str, after: str) -> tuple[tuple[DiffRow, ...], str]:
    """Return two texts side by side, and what a reader must know of that."""
    if before == after:
        return (), "the texts differ only in what was redacted, or in their header"
    old, new = before.split("\n"), after.split("\n")
    rows = list(_fold_rows(list(_align(old, new))))
    if len(rows) <= MAX_ROWS:
        return tuple(rows), _name_invisible(before, after)
    return tuple(rows[:MAX_ROWS]), f"{MAX_ROWS} of {len(rows):,} rows shown; the JSON reports have both texts"


def _name_invisible(before: str, after: str) -> str:
    if before.replace("\r\n", "\n") == after.replace("\r\n", "\n"):
        return "only line ends differ"
    return "only white space differs" if "".join(before.split()) == "".join(after.split()) else ""


def _align(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffRow]:
    head = _n_common(old, new)
    tail = _n_common(old[head:][::-1], new[head:][::-1])
    old_end, new_end = len(old) - tail, len(new) - tail
    for index in range(head):
        yield _same(old, index, index)
    for tag, i1, i2, j1, j2 in _opcodes(old[head:old_end], new[head:new_end]):
        if tag == "equal":
            for offset in range(i2 - i1):
                yield _same(old, head + i1 + offset, head + j1 + offset)
        else:
            yield from _replaced(old, new, range(head + i1, head + i2), range(head + j1, head + j2))
    for offset in range(tail):
        yield _same(old, old_end + offset, new_end + offset)


def _n_common(old: Sequence[str], new: Sequence[str]) -> int:
    n = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        n += 1
    return n


def _opcodes(old: Sequence[str], new: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    counts = Counter(new)
    n_equal_pairs = sum(counts[line] for line in old)
    if max(len(old), len(new)) > _MAX_LINES or n_equal_pairs > _MAX_EQUAL_PAIRS:
        return [("replace", 0, len(old), 0, len(new))]
    from difflib import SequenceMatcher

    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def _same(old: Sequence[str], index: int, other: int) -> DiffRow:
    text = _show(old[index])
    return DiffRow(
        kind="same", left=Line(number=index + 1, before=text), right=Line(number=other + 1, before=text)
    )


def _replaced(old: Sequence[str], new: Sequence[str], gone: range, come: range) -> Iterator[DiffRow]:
    for offset in range(max(len(gone), len(come))):
        left = gone[offset] if offset < len(gone) else None
        right = come[offset] if offset < len(come) else None
        if left is not None and right is not None:
            yield _changed(left, right, old[left], new[right])
        elif left is not None:
            yield DiffRow(kind="changed", left=Line(number=left + 1, before=_show(old[left])))
        elif right is not None:
            yield DiffRow(kind="changed", right=Line(number=right + 1, before=_show(new[right])))


def _changed(left: int, right: int, old: str, new: str) -> DiffRow:
    """Mark the words that lie between what both lines begin and end with."""
    head = _n_common(old, new)
    while head and old[head - 1].isalnum():
        head -= 1
    tail = _n_common(old[head:][::-1], new[head:][::-1])
    while tail and old[len(old) - tail].isalnum():
        tail -= 1
    return DiffRow(kind="changed", left=_mark(left, old, head, tail), right=_mark(right, new, head, tail))


def _mark(index: int, text: str, head: int, tail: int) -> Line:
    end = len(text) - tail
    return Line(
        number=index + 1, before=_show(text[:head]), changed=_show(text[head:end]), after=_show(text[end:])
    )


def _show(line: str) -> str:
    if len(line) <= _MAX_LINE:
        return escape_lines(line)
    return f"{escape_lines(line[:_MAX_LINE])}… ({len(line) - _MAX_LINE:,} more characters)"


def _fold_rows(rows: list[DiffRow]) -> Iterator[DiffRow]:
    """Yield the rows near a change, and how many lie between."""
    near: set[int] = set()
    for index, row in enumerate(rows):
        if row.kind == "changed":
            near.update(range(index - _CONTEXT, index + _CONTEXT + 1))
    n_hidden = 0
    for index, row in enumerate(rows):
        if index in near:
            if n_hidden:
                yield DiffRow(kind="gap", n_hidden=n_hidden)
            n_hidden = 0
            yield row
        else:
            n_hidden += 1
    if n_hidden:
        yield DiffRow(kind="gap", n_hidden=n_hidden)
