"""Writing accepted snapshots, once, by the one process that hears of all tests."""

from __future__ import annotations

import base64
import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ctxfp._snapshot_file import delete_file, update_snapshots, write_file
from pytest_ctxfp._snapshot_model import LayerRow, SnapshotEntry, SnapshotFileError
from pytest_ctxfp._snapshot_text import module_candidates, text_folder, text_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_ctxfp._records import SnapshotRecord
    from pytest_ctxfp.plugin.settings import Settings


def write_accepted(records: Iterable[SnapshotRecord]) -> list[str]:
    """Write what the records of a run say is to be stored; return what went wrong, a line each.

    A snapshot whose text can't be written is not written either; the others of its file are.
    """
    by_file: dict[Path, list[SnapshotRecord]] = {}
    for record in records:
        if "entry" in record:
            by_file.setdefault(Path(record["file"]), []).append(record)
    faults: list[str] = []
    for path, accepted in by_file.items():
        with_text = [record for record in accepted if _is_text_written(record, faults)]
        try:
            update_snapshots(path, [_read_entry(record["entry"]) for record in with_text])
        except SnapshotFileError as error:
            faults.append(str(error))
            _mark_unwritten(with_text)
    return faults


def _is_text_written(record: SnapshotRecord, faults: list[str]) -> bool:
    if "text_file" not in record:
        return True
    try:
        write_file(Path(record["text_file"]), base64.b64decode(record["text"]), sync=False)
    except SnapshotFileError as error:
        faults.append(str(error))
        _mark_unwritten([record])
        return False
    return True


def _mark_unwritten(records: Iterable[SnapshotRecord]) -> None:
    for record in records:
        record["state"] = "not written"


def prune(unused: Mapping[Path, Sequence[str]], settings: Settings) -> list[str]:
    """Delete unused snapshots and their texts; return what went wrong, a line a file."""
    faults = []
    for file, keys in unused.items():
        try:
            update_snapshots(file, [], removed=keys)
            for text_file in (path for key in keys for path in _text_files(file, key, settings)):
                delete_file(text_file)
                _remove_if_empty(text_file.parent)
            _remove_if_empty(file.parent)
        except SnapshotFileError as error:
            faults.append(str(error))
    return faults


def _text_files(file: Path, key: str, settings: Settings) -> Iterator[Path]:
    """Yield where the text of a snapshot may lie, whatever module its file belongs to."""
    for module in module_candidates(file):
        text_file = text_file_of(module, key, settings)
        if text_file is not None:
            yield text_file


def text_file_of(module: Path, key: str, settings: Settings) -> Path | None:
    """Return where the text of a snapshot is kept, or None where none is."""
    if settings.snapshot_text == "none":
        return None
    if settings.snapshot_text == "commit":
        return text_path(text_folder(module), key)
    below = module.relative_to(settings.rootdir) if module.is_relative_to(settings.rootdir) else module.name
    return text_path(settings.rootdir / ".ctxfp" / "layers" / below, key)


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # it isn't empty, or isn't there
        folder.rmdir()


def _read_entry(text: str) -> SnapshotEntry:
    key, sha256, n_bytes, rows = json.loads(text)
    return SnapshotEntry(key=key, sha256=sha256, bytes=n_bytes, layers=tuple(LayerRow(*row) for row in rows))
