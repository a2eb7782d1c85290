"""ContextFingerprint <-> JSON object, also as car-memgine 0.48 writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_ctxfp._fingerprint import ContextFingerprint, LayerFingerprint
from pytest_ctxfp._layers import PREAMBLE_KEY

if TYPE_CHECKING:
    from pytest_ctxfp._model import JSONValue

_NUMBERED_KEY = re.compile(r"(.*)#(?:[2-9]|[1-9][0-9]+)", re.DOTALL)


def fingerprint_to_dict(fingerprint: ContextFingerprint) -> dict[str, JSONValue]:
    """Write a fingerprint as `ContextFingerprint.to_dict` describes it."""
    layers = fingerprint.layers
    data: dict[str, JSONValue] = {
        "layers": {key: _layer_to_dict(key, layers[key]) for key in sorted(layers)},
        "order": list(fingerprint.order),
        "full_hash": fingerprint.full_hash,
        "total_bytes": fingerprint.total_bytes,
    }
    return data if fingerprint.sha256 is None else {**data, "sha256": fingerprint.sha256}


def fingerprint_from_dict(data: Mapping[str, object]) -> ContextFingerprint:
    """Read a fingerprint back; unknown fields are ignored.

    Raises:
        ValueError: a field that is missing or of a wrong kind, or an order that is not that of the layers.
    """
    layers_data, order = _mapping_of(data, "layers"), _order_of(data)
    sha256 = None if data.get("sha256") is None else _text_of(data, "sha256")
    names = _foreign_names(order) if sha256 is None else {}
    layers = {key: _layer_from_dict(key, layers_data, names.get(key, key)) for key in order}
    if len(layers) != len(order) or len(layers) != len(layers_data):
        message = "order must name each of the layers once"
        raise ValueError(message)
    return ContextFingerprint(
        layers=layers,
        order=order,
        full_hash=_text_of(data, "full_hash"),
        total_bytes=_count_of(data, "total_bytes"),
        sha256=sha256,
    )


def _default_header(name: str | None) -> str:
    return "" if name is None else f"## {name}\n"


def _layer_to_dict(key: str, layer: LayerFingerprint) -> dict[str, JSONValue]:
    data: dict[str, JSONValue] = {"hash": layer.hash, "bytes": layer.bytes, "lines": layer.lines}
    if key not in {PREAMBLE_KEY, layer.name}:
        data["name"] = layer.name
    if layer.header != _default_header(layer.name):
        data["header"] = layer.header
    if layer.tokens is not None:
        data["tokens"] = layer.tokens
    return data


def _layer_from_dict(key: str, layers: Mapping[str, object], default_name: str) -> LayerFingerprint:
    data = _mapping_of(layers, key)
    name = None if key == PREAMBLE_KEY else default_name
    if key != PREAMBLE_KEY and "name" in data:
        name = None if data["name"] is None else _text_of(data, "name")
    return LayerFingerprint(
        hash=_text_of(data, "hash"),
        bytes=_count_of(data, "bytes"),
        lines=_count_of(data, "lines"),
        tokens=None if data.get("tokens") is None else _count_of(data, "tokens"),
        name=name,
        header=_text_of(data, "header") if "header" in data else _default_header(name),
    )


def _foreign_names(order: tuple[str, ...]) -> dict[str, str]:
    """Return the names behind keys such as ``Document#2``, for data that has only the keys."""
    names: dict[str, str] = {}
    for key in order:
        match = _NUMBERED_KEY.fullmatch(key)
        is_repeated = match is not None and (match[1] in names or match[1] == PREAMBLE_KEY)
        names[key] = match[1] if match is not None and is_repeated else key
    return names


def _order_of(data: Mapping[str, object]) -> tuple[str, ...]:
    order = _value_of(data, "order")
    if isinstance(order, (list, tuple)) and all(isinstance(key, str) for key in order):
        return tuple(order)
    raise _wrong_kind("order", order, "a list of texts")


def _mapping_of(data: Mapping[str, object], field: str) -> Mapping[str, object]:
    value = _value_of(data, field)
    if isinstance(value, Mapping):
        return value
    raise _wrong_kind(field, value, "an object")


def _text_of(data: Mapping[str, object], field: str) -> str:
    value = _value_of(data, field)
    if isinstance(value, str):
        return value
    raise _wrong_kind(field, value, "a text")


def _count_of(data: Mapping[str, object], field: str) -> int:
    value = _value_of(data, field)
    if type(value) is int and value >= 0:
        return value
    raise _wrong_kind(field, value, "a whole number >= 0")


def _value_of(data: Mapping[str, object], field: str) -> object:
    if not isinstance(data, Mapping) or field not in data:
        message = f"a fingerprint must have {field[:80]!r}: it is not what to_dict() wrote"
        raise ValueError(message)
    return data[field]


def _wrong_kind(field: str, value: object, wanted: str) -> ValueError:
    return ValueError(f"{field[:80]!r} in a fingerprint must be {wanted}, got {type(value).__name__!r}")
