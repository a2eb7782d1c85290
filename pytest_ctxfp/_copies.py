"""Copies on this machine of what a shared store gave, and answers that it could not take yet."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from pytest_ctxfp._atomic import remove_stale_temporaries, write_atomically

if TYPE_CHECKING:
    from pathlib import Path

REMOTE_COPIES = ".ctxfp/remote-cache"
"""Where a project keeps them, relative to its rootdir."""

MAX_FILES = 10_000
MAX_BYTES = 512 << 20
_KEPT_SHARE = 0.9
_WRITES_BETWEEN_CHECKS = 256


class Copies:
    """A folder of copies, each of one version of a file, the oldest deleted where there are too many.

    A copy is a courtesy: what can't be read or written is passed over in silence. Pending answers are kept
    until they are uploaded, whatever the bounds.

    Args:
        folder: made by the first copy, with a ``.gitignore`` in its parent.
        max_files: how many copies there may be.
        max_bytes: how large they may be together.
    """

    def __init__(self, folder: Path, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._pending = folder / "pending"
        self._max_files = max_files
        self._max_bytes = max_bytes
        self._n_writes = 0
        self._latest: dict[str, str] | None = None

    @property
    def pending_folder(self) -> Path:
        """Where answers wait that could not be uploaded."""
        return self._pending

    def read(self, name: str, version: str) -> bytes | None:
        """Return the copy of one version of a file, or None."""
        return _read(self._folder / _copy_name(name, version))

    def read_latest(self, name: str) -> bytes | None:
        """Return the newest copy of a file, of whatever version, or None."""
        if self._latest is None:
            self._latest = {path.name.rpartition(".")[0]: path.name for path, _ in self._oldest_first()}
        copy = self._latest.get(name)
        return None if copy is None else _read(self._folder / copy)

    def write(self, name: str, version: str, data: bytes) -> None:
        """Keep a copy."""
        try:
            if self._n_writes == 0:
                self._ignore_in_git()
                remove_stale_temporaries(self._folder)
            write_atomically(self._folder / _copy_name(name, version), data, sync=False)
            self._n_writes += 1
            if self._n_writes % _WRITES_BETWEEN_CHECKS == 1:
                self._delete_oldest()
        except OSError:
            return

    def read_pending(self, name: str) -> bytes | None:
        """Return an answer that waits to be uploaded, or None."""
        return _read(self._pending / name)

    def keep_pending(self, name: str, data: bytes) -> bool:
        """Keep an answer until it can be uploaded; return whether that worked."""
        try:
            self._ignore_in_git()
            write_atomically(self._pending / name, data)
        except OSError:
            return False
        return True

    def pending(self) -> list[tuple[str, float]]:
        """Return the names of the answers that wait, and since when, in seconds since 1970."""
        try:
            with os.scandir(self._pending) as entries:
                return [
                    (entry.name, entry.stat().st_mtime) for entry in entries if not entry.name.startswith(".")
                ]
        except OSError:
            return []

    def drop_pending(self, name: str) -> None:
        """Forget an answer that was uploaded."""
        (self._pending / name).unlink(missing_ok=True)

    def _ignore_in_git(self) -> None:
        rules = self._folder.parent / ".gitignore"
        if not rules.exists():
            write_atomically(rules, b"*\n")

    def _oldest_first(self) -> list[tuple[Path, int]]:
        """Return copies and their sizes in bytes."""
        try:
            with os.scandir(self._folder) as entries:
                found = [(entry.stat(), entry) for entry in entries if entry.is_file()]
        except OSError:
            return []
        found.sort(key=lambda item: (item[0].st_mtime_ns, item[1].name))
        return [(self._folder / entry.name, status.st_size) for status, entry in found]

    def _delete_oldest(self) -> None:
        copies = self._oldest_first()
        n_files, n_bytes = len(copies), sum(size for _, size in copies)
        if n_files <= self._max_files and n_bytes <= self._max_bytes:
            return
        for path, size in copies:
            if n_files <= self._max_files * _KEPT_SHARE and n_bytes <= self._max_bytes * _KEPT_SHARE:
                return
            path.unlink(missing_ok=True)
            n_files, n_bytes = n_files - 1, n_bytes - size


def _copy_name(name: str, version: str) -> str:
    return f"{name}.{hashlib.sha256(version.encode()).hexdigest()[:16]}"


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
