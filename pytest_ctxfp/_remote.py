"""A store beyond one machine: any address that ``fsspec`` knows, S3 and its like above all."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from pytest_ctxfp._backend import StoreUnreachable, mask_url
from pytest_ctxfp._copies import Copies
from pytest_ctxfp._errors import CtxfpError, first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

T = TypeVar("T")
N_RECENT = 1_000
"""How many of the newest answers are fetched to explain why one is missing."""

PAUSES = (0.2, 0.8, 2.0)
"""Seconds before an access is tried again."""

OUTAGE_SECONDS = 60.0
"""How long a place that didn't answer is left alone: cases must not wait for it one by one."""

_PATIENCE_SECONDS = 5.0  # s3fs tries again itself, for as long
_HOPELESS = (
    FileNotFoundError,
    PermissionError,
    NotADirectoryError,
    IsADirectoryError,
    ImportError,
    TypeError,
    ValueError,
)
# Here a file appears whole, with its last byte; anywhere else it gets its name when it is complete.
_WHOLE_WRITES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "hf", "memory"}
_UNKNOWN = ("", 0.0)
_TIMES = ("LastModified", "last_modified", "mtime", "updated", "created")


class _FileSystem(Protocol):
    """What is used of fsspec's ``AbstractFileSystem``."""

    protocol: str | tuple[str, ...]

    def cat_file(self, path: str) -> bytes: ...
    def cat(self, path: list[str], *, on_error: str) -> Mapping[str, bytes]: ...
    def pipe_file(self, path: str, value: bytes) -> None: ...
    def ls(self, path: str, *, detail: bool) -> list[dict[str, object]]: ...
    def makedirs(self, path: str, *, exist_ok: bool) -> None: ...
    def mv(self, path1: str, path2: str) -> None: ...


def open_remote(url: str, *, copies: Path | None, writes: bool) -> tuple[FsspecBackend, FsspecBackend]:
    """Return where a URL's answers are and where its manifests are; nothing is asked over the network yet.

    Args:
        url: of the answers. Manifests are beside ``traces``, else inside.
        copies: a folder for copies, or None.
        writes: whether answers that could not be uploaded by an earlier run are to be uploaded now.

    Raises:
        CtxfpError: a URL that fsspec, or what is installed, doesn't know.
    """
    connection = Connection(url)
    root = connection.root
    parent, _, last = root.rpartition("/")
    manifests = f"{parent}/manifests" if last == "traces" else f"{root}/manifests"
    # By a hash that no secret is in: who changes a password keeps the copies.
    folder = None if copies is None else copies / hashlib.sha256(mask_url(url).encode()).hexdigest()[:16]
    return (
        FsspecBackend(connection, root, copies=None if folder is None else Copies(folder), writes=writes),
        FsspecBackend(connection, manifests, copies=None, writes=writes),
    )


@dataclass(slots=True)
class Circuit:
    """Whether a kind of access works, and until when it is not tried."""

    outage: str | None = None
    retry_at: float = 0.0

    def check(self) -> None:
        """Raise StoreUnreachable as long as the access is not to be tried."""
        if self.outage is not None and time.monotonic() < self.retry_at:
            raise StoreUnreachable(self.outage)

    def open(self, outage: str) -> StoreUnreachable:
        """Stop accesses for a while, and return the error that says why."""
        self.outage, self.retry_at = outage, time.monotonic() + OUTAGE_SECONDS
        return StoreUnreachable(outage)


class Connection:
    """Access to a place, tried again where that may help, and left alone for a while where it doesn't.

    Args:
        url: credentials in it are never shown.

    Attributes:
        reading: whether the place answers at all.
        writing: whether it takes what is written; who may only read goes on reading.
    """

    def __init__(self, url: str) -> None:
        self.place = mask_url(url)
        self.reading = Circuit()
        self.writing = Circuit()
        self._file_system, root = _open(url)
        self.root = root.rstrip("/")

    @property
    def writes_whole(self) -> bool:
        """Whether nobody ever sees half a file."""
        protocol = self._file_system.protocol
        return not _WHOLE_WRITES.isdisjoint((protocol,) if isinstance(protocol, str) else protocol)

    def read_one(self, use: Callable[[_FileSystem], T]) -> T:
        """Return what reading one file gives; that it is refused says nothing of the others.

        Raises:
            StoreUnreachable: the place doesn't answer.
            OSError: the file is not there, or is refused.
        """
        try:
            return self._access(use, self.reading)
        except (StoreUnreachable, FileNotFoundError):
            raise
        except _HOPELESS as error:
            raise OSError(_describe(error)) from error

    def read_many(self, use: Callable[[_FileSystem], T]) -> T:
        """Return what reading many files, or their names, gives.

        Raises:
            FileNotFoundError: there is none.
            StoreUnreachable: the place doesn't answer, or lets nobody in.
        """
        try:
            return self._access(use, self.reading)
        except _HOPELESS as error:
            if isinstance(error, FileNotFoundError) and not _is_bucket_missing(error):
                raise
            outage = f"the store {self.place} can't be reached: {_describe(error)}"
            raise self.reading.open(outage) from error

    def write(self, use: Callable[[_FileSystem], object]) -> None:
        """Write something.

        Raises:
            StoreUnreachable: the place doesn't answer, or doesn't take it.
        """
        self.reading.check()
        try:
            self._access(use, self.writing)
        except _HOPELESS as error:
            outage = f"the store {self.place} can't be written: {_describe(error)}"
            raise self.writing.open(outage) from error

    def _access(self, use: Callable[[_FileSystem], T], circuit: Circuit) -> T:
        circuit.check()
        # After an outage one attempt is enough: whoever comes next doesn't wait for another.
        pauses = iter(PAUSES if circuit.outage is None else ())
        started = time.monotonic()
        while True:
            try:
                result = use(self._file_system)
            except _HOPELESS:
                raise
            except Exception as error:  # each file system raises what its own library does
                pause = next(pauses, None)
                if pause is None or time.monotonic() - started > _PATIENCE_SECONDS:
                    outage = f"the store {self.place} can't be reached: {_describe(error)}"
                    raise circuit.open(outage) from error
                time.sleep(pause)
            else:
                circuit.outage = None
                return result


class FsspecBackend:
    """Files below an address; read through copies on this machine, if there is a folder for them.

    The names are listed once, with what tells versions of a file apart, so that a copy is used only for the
    version that is stored, and a run of replayed cases costs one request in a thousand.

    Args:
        connection: to the place.
        root: path of the folder there.
        copies: on this machine, or None.
        writes: whether pending answers are to be uploaded.
    """

    def __init__(self, connection: Connection, root: str, *, copies: Copies | None, writes: bool) -> None:
        self._connection = connection
        self._root = root
        self._copies = copies
        self._writes = writes
        self._listed: dict[str, tuple[str, float]] | None = None
        self._fetched: dict[str, bytes] = {}
        self._is_made = connection.writes_whole
        self._has_pending = False

    @property
    def outage(self) -> str | None:
        """Why the place can't be reached, as far as the last access knows."""
        return self._connection.reading.outage

    def place_of(self, name: str) -> str:
        """Return a file's address, without credentials."""
        return f"{self._connection.place.rstrip('/')}/{name}"

    def read(self, name: str) -> bytes | None:
        """Return a file's content; while the place is out of reach, the last copy of it."""
        try:
            data = self._read_through(name)
        except StoreUnreachable:
            data = None
            if self._copies is not None:
                data = self._copies.read_pending(name) or self._copies.read_latest(name)
            if data is None:
                raise
        return data

    def _read_through(self, name: str) -> bytes | None:
        version = self._versions().get(name, _UNKNOWN)[0]
        copy = self._copies.read(name, version) if self._copies is not None and version else None
        if copy is not None:
            return copy
        try:
            data = self._fetched.pop(name, None)
            if data is None:
                data = self._connection.read_one(lambda files: files.cat_file(self._path(name)))
        except FileNotFoundError:
            return None if self._copies is None else self._copies.read_pending(name)
        if self._copies is not None and version:
            self._copies.write(name, version, data)
        return data

    def write(self, name: str, data: bytes) -> None:
        """Write a file; what the place doesn't take waits on this machine for a run that reaches it."""
        try:
            self._upload(name, data)
        except OSError as error:
            if self._copies is None or not self._copies.keep_pending(name, data):
                raise
            self._has_pending = True
            message = f"{error}; kept in {self._copies.pending_folder} for a run that reaches it"
            raise StoreUnreachable(message) from error
        if self._copies is not None:
            self._copies.drop_pending(name)
        if self._has_pending:
            self._has_pending = False
            self._upload_pending()

    def names(self) -> list[str]:
        """Return the names of all files."""
        return list(self._versions())

    def recent(self) -> list[str]:
        """Return the names of the newest files, fetched together where there is no copy of them."""
        dated = sorted(((when, name) for name, (_, when) in self._versions().items()), reverse=True)
        names = [name for _, name in dated[:N_RECENT]]
        self.prefetch(names)
        return names

    def prefetch(self, names: Sequence[str]) -> None:
        """Fetch those files together of which there is no copy."""
        missing = [name for name in names if not self._is_copied(name)]
        if missing:
            paths = [self._path(name) for name in missing]
            found = self._connection.read_many(lambda files: files.cat(paths, on_error="omit"))
            by_name = {path.rpartition("/")[2]: data for path, data in found.items()}
            self._fetched.update(by_name)

    def modified(self, name: str) -> float:
        """Return when a file was written, in seconds since 1970; 0 where the place doesn't say."""
        return self._versions().get(name, _UNKNOWN)[1]

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _is_copied(self, name: str) -> bool:
        version = self._versions().get(name, _UNKNOWN)[0]
        return bool(version) and self._copies is not None and self._copies.read(name, version) is not None

    def _versions(self) -> dict[str, tuple[str, float]]:
        """Return each file's version, and its time in seconds since 1970, listed once."""
        if self._listed is None:
            try:
                entries = self._connection.read_many(lambda files: files.ls(self._root, detail=True))
            except FileNotFoundError:
                entries = []
            self._listed = {
                str(entry["name"]).rpartition("/")[2]: _version_of(entry)
                for entry in entries
                if entry.get("type") == "file"
            }
            if self._writes:
                self._upload_pending()
        return self._listed

    def _upload_pending(self) -> None:
        """Upload what earlier runs could not, unless a newer answer came from elsewhere since."""
        if self._copies is None:
            return
        listed = self._listed or {}
        for name, when in self._copies.pending():
            data = self._copies.read_pending(name)
            if data is not None and when >= listed.get(name, _UNKNOWN)[1]:
                try:
                    self._upload(name, data)
                except StoreUnreachable:
                    return
            self._copies.drop_pending(name)

    def _upload(self, name: str, data: bytes) -> None:
        def make_folder(files: _FileSystem) -> None:
            files.makedirs(self._root, exist_ok=True)

        if not self._is_made:
            self._connection.write(make_folder)
            self._is_made = True
        if self._connection.writes_whole:
            self._connection.write(lambda files: files.pipe_file(self._path(name), data))
        else:
            temporary = self._path(f".{name}.{time.time_ns():x}.tmp")
            self._connection.write(lambda files: files.pipe_file(temporary, data))
            self._connection.write(lambda files: files.mv(temporary, self._path(name)))
        self._fetched.pop(name, None)
        if self._listed is not None:
            self._listed[name] = ("", time.time())


def _open(url: str) -> tuple[_FileSystem, str]:
    """Return fsspec's file system for a URL, and the path there.

    Raises:
        CtxfpError: fsspec, or what it needs for this URL, is not installed or knows no such URL.
    """
    try:
        import fsspec
    except ImportError:
        message = (
            f"the store {mask_url(url)} needs fsspec, and s3fs where it is on S3:"
            " pip install 'pytest-ctxfp[remote]' s3fs"
        )
        raise CtxfpError(message) from None
    try:
        # fsspec would keep its own listings, which go stale while other machines write.
        file_system, root = fsspec.core.url_to_fs(url, use_listings_cache=False, skip_instance_cache=True)
    except (ImportError, ValueError, TypeError, OSError) as error:
        message = f"the store {mask_url(url)} can't be used: {mask_url(first_line(error))}"
        raise CtxfpError(message) from None
    return cast("_FileSystem", file_system), cast("str", root)


def _version_of(entry: Mapping[str, object]) -> tuple[str, float]:
    """Return what tells the versions of a file apart, empty where nothing does, and when it was written."""
    when = next((entry[name] for name in _TIMES if entry.get(name)), "")
    version = str(entry.get("ETag") or entry.get("etag") or when)
    return (f"{version} {entry.get('size')}" if version else "", _read_time(when))


def _read_time(when: object) -> float:
    """Return seconds since 1970 of a time as one of the file systems gives it, 0 where it can't be read."""
    from datetime import datetime

    if isinstance(when, (int, float)):
        return float(when)
    try:
        # Python 3.10 doesn't read the Z.
        moment = (
            when if isinstance(when, datetime) else datetime.fromisoformat(str(when).replace("Z", "+00:00"))
        )
        return moment.timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {mask_url(first_line(error))}"


def _is_bucket_missing(error: FileNotFoundError) -> bool:
    """Whether a whole bucket is missing, by what its provider says; a file that is missing is a miss."""
    cause: BaseException | None = error
    while cause is not None:
        if "NoSuchBucket" in str(cause) or "bucket does not exist" in str(cause):
            return True
        cause = cause.__cause__
    return False
