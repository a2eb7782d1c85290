"""Writing a file so that a reader, or a crash, never sees half of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old or the new one in full, and make its folder.

    Args:
        path: the file; a link in its place is replaced, not followed.
        data: its content.

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
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:
        return
