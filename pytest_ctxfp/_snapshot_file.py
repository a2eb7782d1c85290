r"""Snapshot files ``__ctxfp__/<module>.ctxfp``: JSON Lines to entries and back.

The first line is ``{"ctxfp": 1}``. A snapshot is a line
``{"key": "test_a#0", "sha256": "...", "bytes": 412, "layers": 2}`` and then one line a layer:

- ``["System", "3f9c1a2b4d5e6f70", 412, 9]``: key, hash of the body, bytes and lines of the body;
- ``["System", "3f9c1a2b4d5e6f70", 412, 9, "##  System\n"]``: the header text, where it isn't ``## KEY\n``;
- ``["Recent Context", null]``: an ignored layer, which keeps its place and name and stores no content;
- ``["Recent Context", null, null, null, "##  Recent Context\n"]``: the same with its header text.

Ignored layers count in ``layers`` and are left out of ``sha256`` and ``bytes``.
"""

from __future__ import annotations

import json
import re
import reprlib
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_ctxfp._layers import join_surrogates
from pytest_ctxfp._snapshot_model import LayerRow, SnapshotEntry, SnapshotFile, SnapshotFileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

FORMAT_VERSION = 1

_CONFLICT = re.compile(rb"^(?:<{7}|={7}|>{7}|\|{7})(?:[ \r]|$)", re.MULTILINE)
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_LAYER_HASH = re.compile(r"[0-9a-f]{16}\Z")
_ENTRY_FIELDS = frozenset({"key", "sha256", "bytes", "layers"})
# Lone surrogates have no UTF-8 form; the others would reorder or break lines in a review.
_ESCAPED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


class SnapshotReader:
    """Finds stored snapshots, reading each file once, when it is first asked for."""

    def __init__(self) -> None:
        self._files: dict[Path, SnapshotFile] = {}

    def find(self, path: Path, key: str) -> SnapshotEntry | None:
        """Return a snapshot, or None where the file or the file's entry doesn't exist.

        Raises:
            SnapshotFileError: as `read_snapshots`, each time.
        """
        return self.entries(path).get(join_surrogates(key))

    def entries(self, path: Path) -> Mapping[str, SnapshotEntry]:
        """Return all snapshots of a file by key.

        Raises:
            SnapshotFileError: as `read_snapshots`, each time.
        """
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = read_snapshots(path)
        return file.entries


def read_snapshots(path: Path) -> SnapshotFile:
    """Read a snapshot file; one that doesn't exist has no entries.

    CRLF line ends and a missing final newline, as git and editors make them, are accepted.

    Raises:
        SnapshotFileError: conflict markers, a merge that glued two sides, another format version, a
            truncated or otherwise broken file. Such a file must not be rewritten.
    """
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return SnapshotFile(path, MappingProxyType({}))
    except OSError as error:
        reason = f"can't be read: {error.strerror or error}: make it a readable file"
        raise SnapshotFileError(str(path), None, reason) from error
    return SnapshotFile(path, parse_snapshots(data, path=str(path)))


def parse_snapshots(data: bytes, *, path: str) -> Mapping[str, SnapshotEntry]:
    """Return the entries of a snapshot file's content by key, in the order of the file.

    Args:
        data: the file's bytes.
        path: the file's name, for messages.

    Raises:
        SnapshotFileError: as `read_snapshots`.
    """
    values = _parse_lines(_split_lines(data, path), path)
    _check_version(values[0], path)
    entries: dict[str, SnapshotEntry] = {}
    lines: dict[str, int] = {}
    start = 1
    while start < len(values):
        entry, end = _parse_entry(values, start, path)
        if entry.key in entries:
            raise SnapshotFileError(path, start + 1, _twice(entry.key, lines[entry.key], path))
        entries[entry.key] = entry
        lines[entry.key] = start + 1
        start = end
    return MappingProxyType(entries)


def _split_lines(data: bytes, path: str) -> list[str]:
    conflict = _CONFLICT.search(data)
    if conflict is not None:
        line = data.count(b"\n", 0, conflict.start()) + 1
        reason = f"git conflict marker {conflict.group().decode().strip()!r}: {_take_one_side(path)}"
        raise SnapshotFileError(path, line, reason)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"not UTF-8 at byte {error.start}: {_restore(path)}"
        raise SnapshotFileError(path, line, reason) from error
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise SnapshotFileError(path, None, f"empty, so it was cut off: {_restore(path)}")
    return lines


def _parse_lines(lines: list[str], path: str) -> list[object]:
    """Parse all lines in one go, which is several times faster; line by line only to find a fault."""
    try:
        values: object = json.loads(f"[{','.join(lines)}]")
    except (ValueError, RecursionError):
        values = None
    if isinstance(values, list) and len(values) == len(lines):
        return values
    return [_parse_line(line, number, n_lines=len(lines), path=path) for number, line in enumerate(lines, 1)]


def _parse_line(line: str, number: int, *, n_lines: int, path: str) -> object:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        what = "cut off in the middle of a line" if number == n_lines else "not a line of JSON"
        raise SnapshotFileError(path, number, f"{what}: {_restore(path)}") from error
    return value


def _check_version(value: object, path: str) -> None:
    version = value.get("ctxfp") if isinstance(value, dict) else None
    if type(version) is not int:
        reason = f'the first line is not {{"ctxfp": {FORMAT_VERSION}}}: {_restore(path)}'
        raise SnapshotFileError(path, 1, reason)
    if version != FORMAT_VERSION or value != {"ctxfp": FORMAT_VERSION}:
        reason = (
            f"format {reprlib.repr(value)} is unknown to this version, which reads and writes format "
            f"{FORMAT_VERSION}, and is left alone: upgrade with pip install -U pytest-ctxfp"
        )
        raise SnapshotFileError(path, 1, reason)


def _parse_entry(values: list[object], start: int, path: str) -> tuple[SnapshotEntry, int]:
    """Read the snapshot whose header stands at index `start`; return it and the index after it."""
    head = values[start]
    if isinstance(head, list):
        reason = f"more layer lines than announced, so a merge glued two sides: {_take_one_side(path)}"
        raise SnapshotFileError(path, start + 1, reason)
    key, sha256, n_bytes, n_layers = _entry_fields(head, start + 1, path)
    end = start + 1 + n_layers
    rows = values[start + 1 : end]
    n_found = next((i for i, row in enumerate(rows) if not isinstance(row, list)), len(rows))
    if n_found != n_layers:
        reason = (
            f"snapshot {_cut(repr(key))} has {n_found} of {n_layers} layer lines, so the file was cut off or "
            f"a merge dropped some: {_restore(path)}"
        )
        raise SnapshotFileError(path, start + 1, reason)
    layers = tuple(_parse_row(row, number, path) for number, row in enumerate(rows, start + 2))
    return SnapshotEntry(key=key, sha256=sha256, bytes=n_bytes, layers=layers), end


def _entry_fields(head: object, line: int, path: str) -> tuple[str, str, int, int]:
    if isinstance(head, dict) and head.keys() == _ENTRY_FIELDS:
        key, sha256, n_bytes, n_layers = head["key"], head["sha256"], head["bytes"], head["layers"]
        if isinstance(key, str) and _is_hash(sha256, _SHA256) and _is_count(n_bytes) and _is_count(n_layers):
            return key, sha256, n_bytes, n_layers
    reason = f"{reprlib.repr(head)} is not the first line of a snapshot: {_restore(path)}"
    raise SnapshotFileError(path, line, reason)


def _parse_row(value: object, line: int, path: str) -> LayerRow:
    if isinstance(value, list) and len(value) in {2, 4, 5}:
        row = LayerRow(value[0], value[1], *(value[2:] or (None, None)))
        if _is_row(row, n_fields=len(value)):
            return row
    raise SnapshotFileError(path, line, f"{reprlib.repr(value)} is not a layer: {_restore(path)}")


def _is_row(row: LayerRow, *, n_fields: int) -> bool:
    if not isinstance(row.key, str) or isinstance(row.header, str) != (n_fields == 5):
        return False
    if row.hash is None:
        return row.bytes is None and row.lines is None and n_fields != 4
    return _is_hash(row.hash, _LAYER_HASH) and _is_count(row.bytes) and _is_count(row.lines)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 62


def _is_hash(value: object, form: re.Pattern[str]) -> bool:
    return type(value) is str and form.match(value) is not None


def _twice(key: str, first_line: int, path: str) -> str:
    what = f"snapshot {_cut(repr(key))} is in line {first_line} too, so a merge glued two sides"
    return f"{what}: {_take_one_side(path)}"


def _restore(path: str) -> str:
    return (
        f"restore it with 'git checkout -- {path}', or delete it and run pytest --ctx-snapshot-create, "
        "then review the change"
    )


def _take_one_side(path: str) -> str:
    return (
        f"keep the lines of one side whole (during a merge: git checkout --ours -- {path}), run "
        "pytest --ctx-snapshot-update, then review the change"
    )


def _cut(text: str, width: int = 100) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def render_snapshots(entries: Iterable[SnapshotEntry]) -> str:
    """Return the text of a snapshot file: sorted by key, LF line ends, the same text for the same entries.

    Example:
        >>> row = LayerRow("System", "3f9c1a2b4d5e6f70", 412, 9)
        >>> entry = SnapshotEntry(key="test_a#0", sha256="0" * 64, bytes=422, layers=(row,))
        >>> print(render_snapshots([entry]))
        {"ctxfp": 1}
        {"key": "test_a#0", "sha256": "000...", "bytes": 422, "layers": 1}
        ["System", "3f9c1a2b4d5e6f70", 412, 9]
    """
    lines = [_to_json({"ctxfp": FORMAT_VERSION})]
    for entry in sorted(entries, key=_entry_key):
        lines.extend(_render_entry(entry))
    return "\n".join([*lines, ""])


def _entry_key(entry: SnapshotEntry) -> str:
    return entry.key


def _render_entry(entry: SnapshotEntry) -> Iterator[str]:
    yield _to_json(
        {"key": entry.key, "sha256": entry.sha256, "bytes": entry.bytes, "layers": len(entry.layers)}
    )
    for row in entry.layers:
        if row.header is not None:
            yield _to_json(list(row))
        else:
            yield _to_json([row.key, None] if row.is_ignored else list(row[:4]))


def _to_json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _ESCAPED.sub(_escape_match, text)


def _escape_match(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


def write_snapshots(path: Path, entries: Iterable[SnapshotEntry]) -> bool:
    """Write a snapshot file as a whole; return whether its bytes changed.

    A file that already holds these bytes isn't touched.

    Raises:
        SnapshotFileError: the file can't be written (read-only folder, full disk); the old one is whole.
    """
    return write_file(path, render_snapshots(entries).encode("utf-8"))


def update_snapshots(path: Path, changed: Iterable[SnapshotEntry], *, removed: Iterable[str] = ()) -> bool:
    """Read a snapshot file, replace or add entries, drop the removed keys and write it.

    A file without any entry left is deleted. Only one process may do this to a file at a time.

    Returns:
        Whether the file changed.

    Raises:
        SnapshotFileError: the file there can't be read, so it isn't rewritten; or it can't be written.
    """
    entries = dict(read_snapshots(path).entries)
    entries.update((entry.key, entry) for entry in changed)
    for key in removed:
        entries.pop(key, None)
    return write_snapshots(path, entries.values()) if entries else delete_file(path)


def write_file(path: Path, data: bytes, *, sync: bool = True) -> bool:
    """Write a snapshot or text file atomically, unless it holds these bytes; return whether it was written.

    Args:
        path: the file.
        data: its content.
        sync: wait until it is on the disk; for thousands of texts, which decide nothing, that takes seconds.

    Raises:
        SnapshotFileError: any OSError; the old file is whole.
    """
    from pytest_ctxfp._atomic import write_atomically

    try:
        if _holds(path, data):
            return False
        write_atomically(path, data, sync=sync)
    except OSError as error:
        raise _unchanged(path, error, "written") from error
    return True


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except (FileNotFoundError, NotADirectoryError):
        return False


def delete_file(path: Path) -> bool:
    """Delete a snapshot or text file; return whether it was there.

    Raises:
        SnapshotFileError: any other OSError.
    """
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _unchanged(path, error, "deleted") from error
    return True


def _unchanged(path: Path, error: OSError, verb: str) -> SnapshotFileError:
    reason = (
        f"can't be {verb}: {error.strerror or error}; what was there is unchanged: make room or set its "
        "permissions, then run the same command again"
    )
    return SnapshotFileError(str(path), None, reason)
