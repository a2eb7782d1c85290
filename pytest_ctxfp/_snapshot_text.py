"""The text of a snapshot, kept beside the hashes for reviews and diffs; it decides nothing.

A text context is written as it is, as redacted. Other contexts, and layers that end within a line, are
written with a line ``<!-- layer "KEY" -->`` before each layer. The body of an ignored layer is ``(ignored)``.
The stored lines of a snapshot say how many lines each layer has, so the text needs no marks to be read
back, and line ends that git changed do no harm.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_ctxfp._snapshot_model import LayerRow, SnapshotEntry

SNAPSHOT_FOLDER = "__ctxfp__"

_MARK = b"<!-- layer "
_IGNORED = b"(ignored)\n"
_UNREADABLE = re.compile(r"[^A-Za-z0-9_]+")
_MAX_READABLE = 80


@dataclass(frozen=True, slots=True)
class StoredLayer:
    """Header and body of a layer from a text file; ``is_exact`` if the body is what was hashed."""

    header: bytes
    body: bytes
    is_exact: bool


@lru_cache(maxsize=1024)
def snapshot_path(module: Path) -> Path:
    """Return the snapshot file of a test module: ``tests/__ctxfp__/test_a.ctxfp`` for ``tests/test_a.py``.

    A module that is no Python file keeps its suffix, so that ``a.py`` and ``a.yaml`` don't share a file.
    """
    return module.parent / SNAPSHOT_FOLDER / f"{_module_name(module)}.ctxfp"


def module_candidates(file: Path) -> tuple[Path, ...]:
    """Return the modules that a snapshot file can belong to, whether they exist or not."""
    name = file.name.removesuffix(".ctxfp")
    folder = file.parent.parent
    return (folder / f"{name}.py", folder / name)


def text_folder(module: Path) -> Path:
    """Return the folder of a test module's text files."""
    return module.parent / SNAPSHOT_FOLDER / _module_name(module)


def _module_name(module: Path) -> str:
    return module.stem if module.suffix == ".py" else module.name


def text_path(module_dir: Path, key: str) -> Path:
    """Return the text file of a snapshot, under a name that every file system keeps apart from others.

    Letters and digits of the key stay readable; 8 hex digits of its SHA-256 tell keys apart that differ
    only in case or in other characters.

    Args:
        module_dir: as `text_folder` gives it.
        key: the snapshot's key.

    Example:
        >>> text_path(Path("__ctxfp__/test_x"), "TestX::test_y[a b]#0").name
        'TestX-test_y-a-b-0-1f5d2f4c.md'
    """
    digest = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    readable = _UNREADABLE.sub("-", key).strip("-")[:_MAX_READABLE].strip("-")
    return module_dir / f"{readable or 'snapshot'}-{digest}.md"


def render_text(entry: SnapshotEntry, contents: Mapping[str, bytes], *, is_text: bool) -> bytes:
    """Return the content of the text file of a snapshot.

    Args:
        entry: the snapshot; its ignored layers are written as a note, so that they don't churn.
        contents: header and body of every other layer, by key.
        is_text: whether the context is one text, which its layers partition.
    """
    parts = [_ignored_part(row) if row.is_ignored else contents[row.key] for row in entry.layers]
    if is_text and all(part.endswith(b"\n") for part in parts[:-1]):
        return b"".join(parts)
    return b"".join(_mark(row.key) + _finished(part) for row, part in zip(entry.layers, parts, strict=True))


def _ignored_part(row: LayerRow) -> bytes:
    header = row.header_text.encode("utf-8", "surrogatepass")
    return _finished(header) + _IGNORED


def _mark(key: str) -> bytes:
    # A comment of HTML ends at the first "-->" and may hold no "--".
    return _MARK + json.dumps(key).replace("--", "-\\u002d").encode("ascii") + b" -->\n"


def _finished(part: bytes) -> bytes:
    return part if not part or part.endswith(b"\n") else part + b"\n"


def split_text(data: bytes, entry: SnapshotEntry) -> dict[str, StoredLayer] | None:
    """Cut a text file into the layers that its snapshot had; ignored ones are left out.

    Args:
        data: the text file's bytes, perhaps with line ends that git changed.
        entry: the snapshot as it was when the text was written.

    Returns:
        The layers by key, or None where the text has another number of lines, so isn't that snapshot's.
    """
    lines = _lines_of(data)
    n_mark_lines = 1 if data.startswith(_MARK) else 0
    sizes = [_n_lines(row, n_mark_lines) for row in entry.layers]
    if sum(map(sum, sizes)) != len(lines):
        return None
    layers: dict[str, StoredLayer] = {}
    start = 0
    for row, (n_header, n_body) in zip(entry.layers, sizes, strict=True):
        header = b"".join(lines[start + n_mark_lines : start + n_header])
        body = b"".join(lines[start + n_header : start + n_header + n_body])
        start += n_header + n_body
        if not row.is_ignored:
            layers[row.key] = _stored_layer(header, body, row)
    return layers


def _n_lines(row: LayerRow, n_mark_lines: int) -> tuple[int, int]:
    header = row.header_text
    n_header = header.count("\n") + (1 if header and not header.endswith("\n") else 0)
    return n_mark_lines + n_header, 1 if row.lines is None else row.lines


def _lines_of(data: bytes) -> list[bytes]:
    """Split at LF alone, keeping the ends: `bytes.splitlines` would split at a lone CR too."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _stored_layer(header: bytes, body: bytes, row: LayerRow) -> StoredLayer:
    known_header = row.header_text.encode("utf-8", "surrogatepass")
    if header.replace(b"\r\n", b"\n") == _finished(known_header).replace(b"\r\n", b"\n"):
        header = known_header
    for candidate in _line_end_variants(body):
        if sha256(candidate).hexdigest()[:16] == row.hash:
            return StoredLayer(header, candidate, is_exact=True)
    return StoredLayer(header, body, is_exact=False)


def _line_end_variants(body: bytes) -> Iterator[bytes]:
    """Yield what the body may have been before git converted it, or before its last line was finished."""
    with_lf = body.replace(b"\r\n", b"\n")
    for variant in (body, with_lf, with_lf.replace(b"\n", b"\r\n")):
        yield variant
        yield variant.removesuffix(b"\n")
