"""Layers -> ContextFingerprint; two of them -> ContextDiff, which names the layers that differ."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pytest_ctxfp._layers import PREAMBLE_KEY, encode_text
from pytest_ctxfp._pairing import moved_items, pair_contents
from pytest_ctxfp._split import iter_layers, split_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_ctxfp._layers import Layer
    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._split import Splitter
    from pytest_ctxfp._tokens import AnyCounter

ContextT = TypeVar("ContextT")

_N_HASH_DIGITS = 16
_PLAIN_NAME = re.compile(r"[^\s,;'\"](?:[^,;]*[^\s,;])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFingerprint:
    """What is kept of a layer.

    Args:
        hash: first 16 hex digits of SHA-256 over the exact body bytes.
        bytes: length of the body.
        lines: number of LF in the body, plus one for an unfinished last line.
        tokens: size of the body in tokens, or None where they were not counted.
        name: what the header says, None for text without a header.
        header: the exact header text; bytes of it that are no UTF-8 stand as lone surrogates.
    """

    hash: str
    bytes: int
    lines: int
    tokens: int | None = None
    name: str | None = None
    header: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFingerprint:
    """What is kept of a context: enough to say later which layer of it differs.

    Args:
        layers: by key, in the order of the context.
        order: the keys in the order of the context.
        full_hash: first 16 hex digits of SHA-256 over the whole.
        total_bytes: length of the whole.
        sha256: 64 hex digits over the whole; None in data from car-memgine, which keeps ``full_hash`` only.
    """

    layers: dict[str, LayerFingerprint]
    order: tuple[str, ...]
    full_hash: str
    total_bytes: int
    sha256: str | None = None

    def to_dict(self) -> dict[str, JSONValue]:
        r"""Return the fingerprint as JSON, layers sorted by key.

        A layer has ``header`` only where the header line is not ``## NAME\n``, ``name`` only where it is
        not its key, ``tokens`` only if they were counted.

        Example::

            {"layers": {"Facts": {"hash": "4355a46b19d348dc", "bytes": 2, "lines": 1}}, "order": ["Facts"],
             "full_hash": "8a1f...", "total_bytes": 11, "sha256": "8a1f..."}
        """
        from pytest_ctxfp._fingerprint_dict import fingerprint_to_dict

        return fingerprint_to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> ContextFingerprint:
        """Read what `to_dict` or car-memgine 0.48 wrote; unknown fields are ignored.

        Raises:
            ValueError: a field that is missing or of a wrong kind.
        """
        from pytest_ctxfp._fingerprint_dict import fingerprint_from_dict

        return fingerprint_from_dict(data)


def fingerprint_context(
    context: ContextT,
    *,
    split: Callable[[ContextT], Iterable[Layer] | None] | None = None,
    counter: AnyCounter | None = None,
) -> ContextFingerprint:
    r"""Hash a context, whole and layer by layer.

    Args:
        context: text or bytes, split at their ``## `` headings; a chat request or a list of messages (see
            `message_layers`), whose whole is its canonical JSON; or a mapping ``{name: text}``, whose whole
            is the canonical JSON of its ``[name, text]`` pairs in order. Text is encoded as UTF-8, lone
            surrogates included.
        split: a function that takes the context and returns its layers, for example
            ``functools.partial(markdown_layers, level=1)``. Of text and bytes, header and body of all
            layers must be the context; of anything else, the layers stand for the whole.
        counter: counts the tokens of every layer's body, as in `count_tokens`; None for no counts.

    Raises:
        ValueError: a context of another type, or layers that are not those of the context.

    Example:
        >>> fingerprint_context("## Facts\n- a\n").order
        ('Facts',)
    """
    whole, layers = iter_layers(context, split)
    # Encoding text layer by layer takes half the time of encoding it whole: the memory is warm.
    digest, total_bytes = hashlib.sha256(whole or b""), len(whole or b"")
    fingerprints = {}
    for layer in layers:
        header, body = encode_text(layer.header), encode_text(layer.body)
        if whole is None:
            digest.update(header)
            digest.update(body)
            total_bytes += len(header) + len(body)
        tokens = None if counter is None else _count_tokens(layer.body, counter)
        fingerprints[layer.key] = _fingerprint_layer(layer.name, header=header, body=body, tokens=tokens)
    sha256 = digest.hexdigest()
    return ContextFingerprint(
        layers=fingerprints,
        order=tuple(fingerprints),
        full_hash=sha256[:_N_HASH_DIGITS],
        total_bytes=total_bytes,
        sha256=sha256,
    )


def _count_tokens(text: str | bytes, counter: AnyCounter) -> int:
    from pytest_ctxfp._tokens import count_tokens

    return count_tokens(text, counter)


def _fingerprint_layer(
    name: str | None, *, header: bytes, body: bytes, tokens: int | None
) -> LayerFingerprint:
    is_unfinished = bool(body) and not body.endswith(b"\n")
    return LayerFingerprint(
        hash=hashlib.sha256(body).hexdigest()[:_N_HASH_DIGITS],
        bytes=len(body),
        lines=body.count(b"\n") + is_unfinished,
        tokens=tokens,
        name=name,
        # One text for the same bytes, whether the context came as text or as bytes.
        header=header.decode("utf-8", "surrogateescape"),
    )


def context_bytes(context: object, *, split: Splitter | None = None) -> bytes:
    """Return the bytes that stand for a whole context: of one that has a type of ours, what the type gives.

    Layers stand only for other objects: those of a request might leave out a part of it.

    Args:
        context: text, bytes, a request, a mapping of names to texts; with ``split``, whatever that takes.
        split: returns the layers of a context.

    Raises:
        ValueError: a context of another type that ``split`` gives no layers of either.
    """
    try:
        return split_context(context)[0]
    except ValueError:
        if split is None:
            raise
        return split_context(context, split)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerDelta:
    """A layer that both contexts have, with another body or another header line.

    Args:
        layer: its key in the later context.
        before_bytes: length of the body before.
        after_bytes: length of the body after.
        before_lines: lines of the body before.
        after_lines: lines of the body after.
        header_changed: whether the header lines differ.
    """

    layer: str
    before_bytes: int
    after_bytes: int
    before_lines: int
    after_lines: int
    header_changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextDiff:
    """What differs between two contexts; if they are not identical, at least one part says where.

    Args:
        identical: whether the model sees the same bytes.
        changed: layers of both with other content, sorted by key.
        added: keys of layers only in the later context, sorted.
        removed: keys of layers only in the earlier context, sorted; the later one may use such a key again.
        reordered: whether the layers of both stand in another relative order.
        byte_delta: bytes of the later context minus bytes of the earlier one.
        moved: the fewest layers that explain ``reordered``: keys of the later context, in its order.
        pairs: key in the earlier context -> key in the later one, for all layers of both, in earlier order.
    """

    identical: bool
    changed: tuple[LayerDelta, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    reordered: bool
    byte_delta: int
    moved: tuple[str, ...] = ()
    pairs: Mapping[str, str]

    def summary(self) -> str:
        """Return the difference in one line.

        Names that could be misread (with ``,``, ``;``, quotes, line ends, invisible or no characters)
        are quoted.

        Example::

            context differs: changed: Facts, 'Rules; old'; removed: Document#2; reordered: Tools (+12 bytes)
            context identical: a difference in a metric is noise
        """
        if self.identical:
            return "context identical: a difference in a metric is noise"
        named = {
            "changed": [delta.layer for delta in self.changed],
            "added": self.added,
            "removed": self.removed,
            "reordered": self.moved,
        }
        parts = [f"{what}: {', '.join(map(_quote_name, names))}" for what, names in named.items() if names]
        return f"context differs: {'; '.join(parts)} ({self.byte_delta:+d} bytes)"


def _quote_name(name: str) -> str:
    return name if name.isprintable() and _PLAIN_NAME.fullmatch(name) else repr(name)


def diff_fingerprints(before: ContextFingerprint, after: ContextFingerprint) -> ContextDiff:
    """Say what differs between two contexts, layer by layer.

    Layers are paired by name; those of one name by content first and then in order (see
    `pytest_ctxfp._pairing.pair_contents`), so removing the first of five documents is one removal.
    """
    pairs = _pair_layers(before, after)
    byte_delta = after.total_bytes - before.total_bytes
    if _is_identical(before, after):
        return ContextDiff(
            identical=True,
            changed=(),
            added=(),
            removed=(),
            reordered=False,
            byte_delta=byte_delta,
            pairs=pairs,
        )
    changed = [
        _delta(after_key, before.layers[before_key], after.layers[after_key])
        for before_key, after_key in pairs.items()
        if _is_changed(before.layers[before_key], after.layers[after_key])
    ]
    added = sorted(after.layers.keys() - pairs.values())
    removed = sorted(before.layers.keys() - pairs.keys())
    moved = _moved_keys(pairs, after.order)
    if not (changed or added or removed or moved):
        changed = [_delta_outside_of_layers(before, after)]
    return ContextDiff(
        identical=False,
        changed=tuple(sorted(changed, key=_layer_of)),
        added=tuple(added),
        removed=tuple(removed),
        reordered=bool(moved),
        byte_delta=byte_delta,
        moved=moved,
        pairs=pairs,
    )


def _is_identical(before: ContextFingerprint, after: ContextFingerprint) -> bool:
    if before.sha256 is not None and after.sha256 is not None:
        return before.sha256 == after.sha256
    return (before.full_hash, before.total_bytes) == (after.full_hash, after.total_bytes)


def _pair_layers(before: ContextFingerprint, after: ContextFingerprint) -> dict[str, str]:
    later_keys = _keys_by_name(after)
    paired: dict[str, str] = {}
    for name, keys in _keys_by_name(before).items():
        others = later_keys.get(name, [])
        hashes = [before.layers[key].hash for key in keys], [after.layers[key].hash for key in others]
        paired.update((keys[i], others[j]) for i, j in pair_contents(*hashes))
    return {key: paired[key] for key in before.order if key in paired}


def _keys_by_name(fingerprint: ContextFingerprint) -> dict[str | None, list[str]]:
    keys: dict[str | None, list[str]] = {}
    for key in fingerprint.order:
        keys.setdefault(fingerprint.layers[key].name, []).append(key)
    return keys


def _is_changed(before: LayerFingerprint, after: LayerFingerprint) -> bool:
    return (before.hash, before.bytes, before.header) != (after.hash, after.bytes, after.header)


def _delta(key: str, before: LayerFingerprint, after: LayerFingerprint) -> LayerDelta:
    return LayerDelta(
        layer=key,
        before_bytes=before.bytes,
        after_bytes=after.bytes,
        before_lines=before.lines,
        after_lines=after.lines,
        header_changed=before.header != after.header,
    )


def _layer_of(delta: LayerDelta) -> str:
    return delta.layer


def _moved_keys(pairs: Mapping[str, str], order: tuple[str, ...]) -> tuple[str, ...]:
    place = {key: i for i, key in enumerate(order)}
    places = [place[key] for key in pairs.values()]
    return tuple(order[i] for i in sorted(places[item] for item in moved_items(places)))


def _delta_outside_of_layers(before: ContextFingerprint, after: ContextFingerprint) -> LayerDelta:
    """Name the preamble where all layers are equal and the wholes are not.

    Data from car-memgine leaves blank text before the first header out of the layers, and a mapping has
    another whole than a text with the same layers.
    """
    return LayerDelta(
        layer=PREAMBLE_KEY,
        before_bytes=_n_bytes_outside(before),
        after_bytes=_n_bytes_outside(after),
        before_lines=0,
        after_lines=0,
        header_changed=False,
    )


def _n_bytes_outside(fingerprint: ContextFingerprint) -> int:
    return max(0, fingerprint.total_bytes - sum(layer.bytes for layer in fingerprint.layers.values()))
