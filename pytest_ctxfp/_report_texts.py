"""The texts of contexts in reports: layer by layer, each once, so that a page can show what changed."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from pytest_ctxfp._display import plural
from pytest_ctxfp._layers import encode_text
from pytest_ctxfp._split import iter_layers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_ctxfp._report import CaseReport, RunReport
    from pytest_ctxfp._split import Splitter

MAX_LAYER_BYTES = 64 * 1024
MAX_TOTAL_BYTES = 4 * 1024 * 1024


def read_layer_texts(context: object, split: Splitter | None) -> dict[str, str]:
    """Return the bodies of a context's layers by the hash that its fingerprint has of them.

    Layers above 64 kB are left out: cut, they would look changed where they are not.

    Raises:
        ValueError: a context of a type that has no layers.
    """
    bodies = (encode_text(layer.body) for layer in iter_layers(context, split)[1])
    return {
        sha256(body).hexdigest()[:16]: body.decode("utf-8", "backslashreplace")
        for body in bodies
        if len(body) <= MAX_LAYER_BYTES
    }


def keep_texts(report: RunReport, texts: Mapping[str, str]) -> RunReport:
    """Return a report with those texts that its cases' contexts hold, 4 MB of them at most.

    They are kept in the order of the cases, so that two runs with the same cases keep the same ones.
    """
    kept: dict[str, str] = {}
    n_bytes = n_left_out = 0
    for digest in dict.fromkeys(digest for case in report.cases for digest in _layer_hashes(case)):
        if digest not in texts:
            continue
        size = len(texts[digest].encode("utf-8", "surrogatepass"))
        if n_bytes + size > MAX_TOTAL_BYTES:
            n_left_out += 1
        else:
            n_bytes += size
            kept[digest] = texts[digest]
    if not n_left_out:
        return replace(report, texts=kept)
    note = f"the texts of {plural(n_left_out, 'layer')} are not in the report: 4 MB are full"
    return replace(report, texts=kept, notes=(*report.notes, note))


def _layer_hashes(case: CaseReport) -> Iterator[str]:
    layers = (case.context or {}).get("layers")
    for layer in layers.values() if isinstance(layers, dict) else ():
        digest = layer.get("hash") if isinstance(layer, dict) else None
        if isinstance(digest, str):
            yield digest
