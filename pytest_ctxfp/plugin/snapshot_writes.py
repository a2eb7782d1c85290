"""Writing accepted snapshots, once, by the one process that hears of all tests."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ctxfp._snapshot_file import update_snapshots, write_file
from pytest_ctxfp._snapshot_model import LayerRow, SnapshotEntry, SnapshotFileError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ctxfp._records import SnapshotRecord


def write_accepted(records: Iterable[SnapshotRecord]) -> list[str]:
    """Write what the records of a run say is to be stored; return what went wrong, a line a file.

    Text files come first: a snapshot whose text could not be written stays unaccepted as a whole.
    """
    by_file: dict[Path, list[SnapshotRecord]] = {}
    for record in records:
        if "entry" in record:
            by_file.setdefault(Path(record["file"]), []).append(record)
    faults = []
    for path, accepted in by_file.items():
        try:
            for record in accepted:
                if "text_file" in record:
                    write_file(Path(record["text_file"]), base64.b64decode(record["text"]))
            update_snapshots(path, [_read_entry(record["entry"]) for record in accepted])
        except SnapshotFileError as error:
            faults.append(str(error))
    return faults


def _read_entry(text: str) -> SnapshotEntry:
    key, sha256, n_bytes, rows = json.loads(text)
    return SnapshotEntry(key=key, sha256=sha256, bytes=n_bytes, layers=tuple(LayerRow(*row) for row in rows))
