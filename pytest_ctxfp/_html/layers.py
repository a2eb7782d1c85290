"""A case's context as the page shows it: a bar of its layers, and what changed since the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ctxfp._fingerprint import ContextFingerprint, diff_fingerprints
from pytest_ctxfp._html.texts import show_name
from pytest_ctxfp._stats import format_percent
from pytest_ctxfp._tokens import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ctxfp._fingerprint import ContextDiff, LayerFingerprint
    from pytest_ctxfp._html.diffs import DiffBook
    from pytest_ctxfp._model import JSONValue

N_COLOURS = 8
MAX_LAYERS = 40
BAR_WIDTH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of the bar, in units of which it has 1,000."""

    x: str
    width: str
    colour: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerChange:
    """What became of a layer since the baseline.

    Attributes:
        what: for people.
        is_same: nothing did.
        diff: number of the diff that shows it.
        note: why there is no diff.
    """

    what: str
    is_same: bool = False
    diff: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerLine:
    """One layer.

    Attributes:
        name: its key.
        colour: number of its colour, one for a name in all cases; None for a layer that is gone.
        tokens: its size, with ``~`` for an estimate.
        share: of the context's tokens.
        n_bytes: its size.
        change: what became of it since the baseline; None without one.
    """

    name: str
    colour: int | None
    tokens: str
    share: str
    n_bytes: str
    change: LayerChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownContext:
    """A context.

    Attributes:
        n_tokens: all its layers' tokens.
        tokens: the same, with ``~`` for an estimate.
        segments: the bar.
        lines: its layers in order, and then those that are gone.
        summary: what changed since the baseline; empty without one.
        note: what is left out.
    """

    n_tokens: int
    tokens: str
    segments: tuple[Segment, ...]
    lines: tuple[LayerLine, ...]
    summary: str = ""
    note: str = ""


class LayerPalette:
    """Gives layers of one name one colour, in the order in which names come up."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def colour_of(self, name: str) -> int:
        """Return the number of a layer's colour."""
        return self._numbers.setdefault(name, len(self._numbers)) % N_COLOURS


def read_fingerprint(context: Mapping[str, JSONValue] | None) -> ContextFingerprint | None:
    """Return the fingerprint in a report, or None where there is none that can be read."""
    if context is None:
        return None
    try:
        return ContextFingerprint.from_dict(context)
    except (KeyError, TypeError, ValueError):
        return None


def show_context(
    now: ContextFingerprint,
    then: ContextFingerprint | None,
    *,
    palette: LayerPalette,
    book: DiffBook,
    case: tuple[int, str],
) -> ShownContext:
    """Return a context, layer by layer.

    Args:
        now: of this run.
        then: of the baseline, if it has the case and its context.
        palette: gives layers their colours.
        book: collects the diffs.
        case: number and name of the case.
    """
    sizes = {key: _tokens_of(layer) for key, layer in now.layers.items()}
    total = sum(sizes.values())
    is_estimate = any(layer.tokens is None for layer in now.layers.values())
    changes = _Changes(now, then, book, case) if then is not None else None
    lines = [
        LayerLine(
            name=show_name(key),
            colour=palette.colour_of(layer.name or key),
            tokens=_show_tokens(sizes[key], is_estimate=layer.tokens is None),
            share=format_percent(sizes[key] / total) if total else "-",
            n_bytes=f"{layer.bytes:,}",
            change=None if changes is None else changes.describe(key),
        )
        for key, layer in list(now.layers.items())[:MAX_LAYERS]
    ]
    gone = () if changes is None else changes.describe_gone()
    n_more = max(0, len(now.layers) - MAX_LAYERS)
    return ShownContext(
        n_tokens=total,
        tokens=_show_tokens(total, is_estimate=is_estimate),
        segments=_segments(now, sizes, total, palette),
        lines=(*lines, *gone),
        summary="" if changes is None else changes.summary,
        note=f"{MAX_LAYERS} of {len(now.layers):,} layers listed; the JSON report has all" if n_more else "",
    )


def _tokens_of(layer: LayerFingerprint) -> int:
    return estimate_tokens(layer.bytes) if layer.tokens is None else layer.tokens


def _show_tokens(n_tokens: int, *, is_estimate: bool) -> str:
    return f"{'~' if is_estimate else ''}{n_tokens:,}"


def _segments(
    now: ContextFingerprint, sizes: Mapping[str, int], total: int, palette: LayerPalette
) -> tuple[Segment, ...]:
    if not total:
        return ()
    segments = []
    start = 0
    for key, layer in list(now.layers.items())[:MAX_LAYERS]:
        size = sizes[key]
        if size:
            segments.append(
                Segment(
                    x=_place(start, total),
                    width=_place(size, total),
                    colour=palette.colour_of(layer.name or key),
                )
            )
        start += size
    return tuple(segments)


def _place(part: int, total: int) -> str:
    return f"{part / total * BAR_WIDTH:.1f}".removesuffix(".0")


class _Changes:
    """What differs between the contexts of one case in two runs."""

    def __init__(
        self, now: ContextFingerprint, then: ContextFingerprint, book: DiffBook, case: tuple[int, str]
    ) -> None:
        self._now = now
        self._then = then
        self._book = book
        self._case = case
        self._diff: ContextDiff = diff_fingerprints(then, now)
        self._old_keys = {new: old for old, new in self._diff.pairs.items()}

    @property
    def summary(self) -> str:
        """Whether the model sees the same bytes."""
        if self._diff.identical:
            return "the same context as in the baseline"
        return f"{self._diff.byte_delta:+,} bytes since the baseline"

    def describe(self, key: str) -> LayerChange:
        """Return what became of a layer of this run."""
        layer = self._now.layers[key]
        old_key = self._old_keys.get(key)
        if old_key is None:
            return self._with_diff("added", key, None, layer.hash)
        old = self._then.layers[old_key]
        moved = ", moved" if key in self._diff.moved else ""
        if old.hash != layer.hash:
            change = f"changed, {layer.bytes - old.bytes:+,} bytes{moved}"
            return self._with_diff(change, key, old.hash, layer.hash)
        if old.header != layer.header:
            return LayerChange(what=f"header changed{moved}")
        return LayerChange(what=moved.removeprefix(", ") or "same", is_same=not moved)

    def describe_gone(self) -> tuple[LayerLine, ...]:
        """Return the layers that only the baseline has."""
        return tuple(
            LayerLine(
                name=show_name(key),
                colour=None,
                tokens="-",
                share="-",
                n_bytes=f"{self._then.layers[key].bytes:,}",
                change=self._with_diff("removed", key, self._then.layers[key].hash, None),
            )
            for key in self._diff.removed[:MAX_LAYERS]
        )

    def _with_diff(self, what: str, key: str, before: str | None, after: str | None) -> LayerChange:
        number = self._book.find(key, before, after, case=self._case)
        note = "" if number is not None else self._book.why_not(before, after)
        return LayerChange(what=what, diff=number, note=note)
