"""Writing a file so that a reader, or a crash, never sees half of it."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp", re.DOTALL)
_STALE_SECONDS = 3600.0


def write_atomically(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Write a file so that a reader sees the old or the new one in full, and make its folder.

    Args:
        path: the file; a link in its place is replaced, not followed.
        data: its content.
        sync: wait until it is on the disk, as what can't be had again should.

    Raises:
        OSError: nothing was written, and an older file is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not tempfile: its files are private to the user, and a cache is shared.
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    try:
        with open(temporary, "xb") as handle:
            handle.write(data)
            handle.flush()
            if sync:
                os.fsync(handle.fileno())
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise


def remove_stale_temporaries(folder: Path) -> None:
    """Delete what killed processes left half written in a folder, an hour after they did.

    No process takes an hour to write a file, so none that still runs loses one. What can't be listed or
    deleted stays: it is in nobody's way.
    """
    stale = time.time() - _STALE_SECONDS
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if _TEMPORARY.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime < stale:
                    os.unlink(entry.path)
    except OSError:
        return


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:
        return
