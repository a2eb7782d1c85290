"""Where a store keeps its files: a folder of this machine, or an address that ``fsspec`` knows."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_ctxfp._atomic import remove_stale_temporaries, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+::)*[A-Za-z][A-Za-z0-9+.-]+://")
_LOCAL_URL = re.compile(r"(file|local)://", re.IGNORECASE)
_DRIVE = re.compile(r"/[A-Za-z]:")
_SECRETS = re.compile(r"(?<=://)\S*@")
_QUERY = re.compile(r"(?<=[?&])([^=&\s]+)=[^&\s\"']*")
_MAX_BYTES = 1 << 28
# Without waiting: a pipe in the place of a file must not hang the run. Binary: no line end is changed.
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class StoreUnreachable(OSError):
    """A place that doesn't answer, so that nobody knows what is stored there."""


class Backend(Protocol):
    """Files by name, each whole or not there at all."""

    @property
    def outage(self) -> str | None:
        """Why the place can't be reached, as far as the last access knows."""

    def place_of(self, name: str) -> str:
        """Return where a file is, fit to be shown."""

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None where there is no such file.

        Raises:
            StoreUnreachable: the place doesn't answer.
            OSError: the file can't be read.
            ValueError: it is no file, or too large.
        """

    def write(self, name: str, data: bytes) -> None:
        """Write a file in place of an older one; a reader sees the one or the other.

        Raises:
            OSError: nothing was written.
        """

    def names(self) -> Iterable[str]:
        """Return the names of all files.

        Raises:
            OSError: they can't be listed.
        """

    def recent(self) -> Iterable[str]:
        """Return the names of the files that are worth reading to explain why one is missing.

        Raises:
            OSError: they can't be listed.
        """

    def prefetch(self, names: Sequence[str]) -> None:
        """Fetch files that will be read next, where that takes fewer requests than one each.

        Raises:
            OSError: they can't be fetched.
        """

    def modified(self, name: str) -> float:
        """Return when a file was written, in seconds since 1970, as far as that is known.

        Raises:
            OSError: the file can't be asked.
        """


class LocalBackend:
    """Files in a folder, which is made by the first write.

    Args:
        folder: an absolute path.
    """

    outage: str | None = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._root = str(folder)
        self._is_swept = False

    def place_of(self, name: str) -> str:
        """Return a file's path."""
        return os.path.join(self._root, name)

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None where there is no such file."""
        try:
            return _read_file(os.path.join(self._root, name))
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Write a file, and first of all delete what killed processes left behind in the folder."""
        if not self._is_swept:
            self._is_swept = True
            remove_stale_temporaries(self.folder)
        write_atomically(self.folder / name, data)

    def names(self) -> Iterable[str]:
        """Return the names of all that is in the folder."""
        try:
            return os.listdir(self._root)
        except FileNotFoundError:
            return ()

    recent = names

    def prefetch(self, names: Sequence[str]) -> None:
        """Do nothing: a file is read fast enough."""

    def modified(self, name: str) -> float:
        """Return when a file was written, in seconds since 1970."""
        return os.stat(os.path.join(self._root, name)).st_mtime


def is_url(place: str | os.PathLike[str]) -> bool:
    """Whether a place is named by a URL; a path that begins with a drive is not."""
    return isinstance(place, str) and _URL.match(place) is not None


def local_folder(place: str | os.PathLike[str]) -> Path | None:
    """Return the absolute folder that a path or a ``file://`` URL names, None for any other URL.

    A local folder is better served without fsspec, which would write files bit by bit.
    """
    if not is_url(place):
        return Path(os.path.abspath(place))
    text = str(place)
    scheme = _LOCAL_URL.match(text)
    if scheme is None:
        return None
    path = text[scheme.end() :]
    return Path(os.path.abspath(path[1:] if os.name == "nt" and _DRIVE.match(path) else path))


def mask_url(text: str) -> str:
    """Return a text without what stands before the ``@`` of a URL, and without its query's values.

    Example::

        s3://***@bucket/traces?token=***
    """
    return _QUERY.sub(r"\1=***", _SECRETS.sub("***@", text))


def _read_file(path: str) -> bytes:
    """Read a regular file by plain system calls: a run of replayed cases does little else."""
    descriptor = os.open(path, _READ_FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            message = "not a regular file"
            raise ValueError(message)
        if status.st_size > _MAX_BYTES:
            message = f"larger than {_MAX_BYTES} bytes"
            raise ValueError(message)
        parts = []
        while part := os.read(descriptor, status.st_size + 1):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)
