"""Any context -> the bytes that stand for it and its layers: the type picks the splitter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pytest_ctxfp._hashing import canonical_json
from pytest_ctxfp._layers import (
    PREAMBLE_KEY,
    Layer,
    LayerKeys,
    encode_text,
    iter_headed_layers,
    join_surrogates,
)
from pytest_ctxfp._messages import is_request, split_request

if TYPE_CHECKING:
    from collections.abc import Callable

    Splitter = Callable[..., "Iterable[Layer] | None"]


def split_context(context: object, split: Splitter | None = None) -> tuple[bytes, Iterable[Layer]]:
    """Return the bytes that stand for a whole context, and its layers in order.

    Layers of text and bytes are cut as they are asked for: the whole alone costs next to nothing.

    Args:
        context: text, bytes or a mapping ``{name: text}``; with ``split``, whatever that takes.
        split: called with the context, returns its layers; None, here or from it, picks by type.

    Raises:
        ValueError: a context of another type, or layers that don't make up the context.
    """
    whole, layers = iter_layers(context, split)
    if whole is None:
        assert isinstance(context, (str, bytes, bytearray, memoryview))
        whole = encode_text(context) if isinstance(context, str) else bytes(context)
    return whole, layers


def iter_layers(context: object, split: Splitter | None) -> tuple[bytes | None, Iterable[Layer]]:
    """Return what `split_context` does, but None for a whole that header and body of all layers make up.

    This is the one place where the type of a context picks the splitter.
    """
    if split is not None:
        return _split_by_callable(context, split)
    if isinstance(context, str):
        # A plain text, whatever a subclass makes of slices and names.
        return None, iter_headed_layers(str.__str__(context))
    if isinstance(context, (bytes, bytearray, memoryview)):
        return None, iter_headed_layers(bytes(context))
    if is_request(context):
        return split_request(context)
    if isinstance(context, Mapping):
        return _split_entries(context)
    message = (
        f"a context is text, bytes, a chat request, a list of messages or a mapping of names to texts, got"
        f" {type(context).__name__!r}: "
        "convert it, or pass split=, a function that returns its layers"
    )
    raise ValueError(message)


def _split_entries(entries: Mapping[object, object]) -> tuple[bytes, list[Layer]]:
    keys = LayerKeys()
    layers = []
    pairs = list(entries.items())
    for name, text in pairs:
        if not isinstance(name, str) or not isinstance(text, str):
            kinds = f"{type(name).__name__!r} to {type(text).__name__!r}"
            message = f"a mapping as context must map names to texts, got {kinds} at {_cut(repr(name))}"
            raise ValueError(message)
        name_as_read_back = join_surrogates(str.__str__(name))
        key = keys.claim(name_as_read_back)
        layers.append(Layer(key=key, name=name_as_read_back, header="", body=text))
    return _whole_of_pairs(pairs), layers


def _whole_of_pairs(pairs: list[tuple[object, object]]) -> bytes:
    return encode_text(canonical_json(pairs))


def _split_by_callable(context: object, split: Splitter) -> tuple[bytes | None, Iterable[Layer]]:
    if not callable(split):
        message = (
            f"split must be a function that takes the context and returns its layers, got {_cut(repr(split))}"
        )
        raise ValueError(message)
    if isinstance(context, (bytearray, memoryview)):
        context = bytes(context)
    result: object = split(context)
    if result is None:
        return iter_layers(context, None)
    if not isinstance(result, Iterable):
        message = f"split must return layers, got {type(result).__name__!r}: return a list of Layer"
        raise ValueError(message)
    layers = tuple(_check_layer(layer) for layer in result)
    _refuse_equal_keys(layers)
    if isinstance(context, (str, bytes)):
        _check_partition(encode_text(context), layers)
        return None, layers
    return _whole_of_pairs([(layer.name, _full_text(layer)) for layer in layers]), layers


def _check_layer(layer: object) -> Layer:
    if not isinstance(layer, Layer):
        message = f"split must return layers, got {type(layer).__name__!r} among them: make it a Layer"
        raise ValueError(message)
    is_text = isinstance(layer.header, (str, bytes)) and isinstance(layer.body, (str, bytes))
    if not is_text or not isinstance(layer.key, str) or not isinstance(layer.name, (str, type(None))):
        message = f"key, name, header and body of a layer must be texts, got {_cut(repr(layer))}"
        raise ValueError(message)
    if layer.key == PREAMBLE_KEY and (layer.name is not None or layer.header):
        message = f"the key {PREAMBLE_KEY!r} is kept for text without name and header: choose another key"
        raise ValueError(message)
    return layer


def _refuse_equal_keys(layers: tuple[Layer, ...]) -> None:
    taken = set()
    for layer in layers:
        if layer.key in taken:
            message = (
                f"two layers have the key {_cut(repr(layer.key))}: number them, as {layer.key[:80] + '#2'!r}"
            )
            raise ValueError(message)
        taken.add(layer.key)


def _check_partition(whole: bytes, layers: tuple[Layer, ...]) -> None:
    offset = 0
    for layer in layers:
        text = encode_text(layer.header) + encode_text(layer.body)
        if not whole.startswith(text, offset):
            message = (
                f"layer {_cut(repr(layer.key))} is not what the context holds from byte {offset} on: "
                "header and body of all layers, in order, must be the context"
            )
            raise ValueError(message)
        offset += len(text)
    if offset != len(whole):
        message = (
            f"the layers leave out the last {len(whole) - offset} bytes of the context: "
            "header and body of all layers, in order, must be the context"
        )
        raise ValueError(message)


def _full_text(layer: Layer) -> str:
    if isinstance(layer.header, str) and isinstance(layer.body, str):
        return layer.header + layer.body
    message = (
        f"layer {_cut(repr(layer.key))} holds bytes, but its context is neither text nor bytes: decode them"
    )
    raise ValueError(message)


def _cut(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:99]}…"
