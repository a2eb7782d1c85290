"""Locks by name in a folder: between processes where ``filelock`` is installed, else within one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

_UNLOCKABLE = (NotImplementedError, UserWarning)
"""How versions of filelock say that a file system knows no locks; the latter where warnings are errors."""

_HOLDERS: dict[str, ProcessLock] = {}


class Lock(Protocol):
    """What one holder has at a time."""

    def try_acquire(self) -> bool:
        """Take the lock if nobody has it, without waiting.

        Raises:
            OSError: it can't be taken here at all.
        """

    def release(self) -> None:
        """Let go of the lock, if it is held."""


class LockFile:
    """A lock between processes, which one loses with its life; its file is gone when it is released.

    It also keeps apart two locks of the same file in one process.

    Args:
        path: the file; its folder must exist.

    Raises:
        ImportError: filelock is not installed.
    """

    def __init__(self, path: Path) -> None:
        from filelock import FileLock, Timeout

        self._path = path
        # What is acquired in one thread may be released in another.
        self._lock = FileLock(path, thread_local=False)
        self._refusal = Timeout

    def try_acquire(self) -> bool:
        """Take the lock if nobody has it, without waiting.

        Raises:
            OSError: the file can't be made, or its file system knows no locks.
        """
        try:
            self._lock.acquire(blocking=False)
        except self._refusal:
            return False
        except _UNLOCKABLE as error:
            raise OSError(str(error)) from error
        return True

    def release(self) -> None:
        """Remove the file as long as nobody else can have its lock, and let go of it."""
        if self._lock.is_locked:
            _remove(self._path)  # Windows removes no open file: there filelock does it
            self._lock.release()


class ProcessLock:
    """A lock that keeps apart the threads and tasks of one process.

    Args:
        path: what is locked; nothing needs to be there.
    """

    def __init__(self, path: Path) -> None:
        self._name = str(path)

    def try_acquire(self) -> bool:
        """Take the lock if nobody has it, without waiting."""
        return _HOLDERS.setdefault(self._name, self) is self

    def release(self) -> None:
        """Let go of the lock, if it is held."""
        if _HOLDERS.get(self._name) is self:
            del _HOLDERS[self._name]


def make_lock(folder: Path, name: str) -> Lock:
    """Return a lock that nobody need have yet; only one between processes makes the folder.

    Raises:
        OSError: the folder can't be made.
    """
    path = folder / f"{name}.lock"
    try:
        lock = LockFile(path)
    except ImportError:
        return ProcessLock(path)
    folder.mkdir(parents=True, exist_ok=True)
    return lock


def remove_stale_locks(folder: Path) -> None:
    """Remove the files of locks whose holders were killed.

    A file is removed by whoever holds its lock, so none is taken from a process that is at work.
    """
    try:
        for name in os.listdir(folder):
            if name.endswith(".lock"):
                lock = LockFile(folder / name)
                if lock.try_acquire():
                    lock.release()
    except (ImportError, OSError):
        return


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:
        return
