"""A lock between processes: a file that the operating system lets one of them have."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class FileLock:
    """A lock that a process loses with its life, and that leaves no file behind when it is released.

    It also keeps apart two locks of the same file in one process.

    Args:
        path: the file; its folder must exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def try_acquire(self) -> bool:
        """Take the lock if nobody has it, without waiting.

        Raises:
            OSError: the file can't be made, or its file system knows no locks.
        """
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                if not _try_lock(descriptor):
                    os.close(descriptor)
                    return False
                is_current = _is_file_of(descriptor, self._path)
            except BaseException:
                os.close(descriptor)
                raise
            if is_current:
                self._descriptor = descriptor
                return True
            # Its holder has removed it in between: others will lock the next file of this name.
            os.close(descriptor)

    def release(self) -> None:
        """Let go of the lock and remove its file."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        if sys.platform == "win32":  # an open file can't be removed there, nor one that the next has opened
            os.close(descriptor)
            _remove(self._path)
        else:
            _remove(self._path)
            os.close(descriptor)


def remove_stale_locks(folder: Path) -> None:
    """Remove the files of locks whose holders were killed.

    A file is removed by whoever holds its lock, so none is taken from a process that is at work.
    """
    try:
        for name in os.listdir(folder):
            lock = FileLock(folder / name)
            if name.endswith(".lock") and lock.try_acquire():
                lock.release()
    except OSError:
        return


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # the latter is how Windows says it
        return False
    return True


def _is_file_of(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:
        return
