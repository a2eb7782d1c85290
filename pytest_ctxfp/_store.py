"""The folder of stored answers: one file a key, written whole or not at all, verified when read."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ctxfp._atomic import write_atomically
from pytest_ctxfp._hashing import Manifest, is_sha
from pytest_ctxfp._trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_ctxfp._key import CaseKey

JUDGE_SHA = "scorer"
"""Stands in place of the agent's SHA in verdicts of cached scorers, which are no answers of agents."""

_FILE_NAME = re.compile(r"[0-9a-f]{40}\.json")
_MAX_BYTES = 1 << 28
# Without waiting: a pipe in the place of a file must not hang the run. Binary: no line end is changed.
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class CacheMode(str, Enum):
    """Whether stored answers are used and new ones kept."""

    AUTO = "auto"
    REFRESH = "refresh"
    REPLAY = "replay"
    OFF = "off"

    @property
    def reads(self) -> bool:
        """Whether a stored answer is used in place of a call."""
        return self in (CacheMode.AUTO, CacheMode.REPLAY)

    @property
    def writes(self) -> bool:
        """Whether a new answer is stored."""
        return self in (CacheMode.AUTO, CacheMode.REFRESH)


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a file gave: a trace (a hit), a problem (corrupt) or neither (a miss)."""

    trace: Trace | None = None
    problem: str | None = None


class TraceStore:
    """Stored answers in a folder, as ``<40 hex digits of the key>.json``.

    No file is ever deleted, and the folder is made at the first write. Nothing that a file says is used as
    a path.

    Args:
        dir: the folder; it need not exist.
        mode: what ``load`` and ``store`` do; listing works in every mode.
        redact: applied to every text that is written; hashes are those of the unchanged texts.
    """

    def __init__(
        self,
        dir: str | os.PathLike[str],  # noqa: A002 - the published name
        mode: CacheMode | str = CacheMode.AUTO,
        *,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self.dir = Path(os.path.abspath(dir))
        self.mode = CacheMode(mode)
        self._redact = redact
        self._names_by_case: dict[str, tuple[str, ...]] | None = None
        self._costs_by_case: dict[str, list[float]] = {}

    @property
    def redact(self) -> Callable[[str], str] | None:
        """What is applied to every text that is written."""
        return self._redact

    def load(self, key: CaseKey) -> Trace | None:
        """Return the stored answer to a key, or None where there is none that can be trusted."""
        return self.lookup(key).trace

    def lookup(self, key: CaseKey) -> Lookup:
        """Return the stored answer to a key, or what is wrong with its file."""
        if not self.mode.reads:
            return Lookup()
        return self._read(self._file_name(key), key=key)

    def by_hash(self, sha: str) -> Lookup:
        """Return the stored answer to a key of which only the hash is known; the mode is not asked.

        Args:
            sha: 40 hex digits; anything else finds nothing.
        """
        return self._read(f"{sha}.json") if is_sha(sha) else Lookup()

    def prepare(self, key: CaseKey, trace: Trace) -> Trace:
        """Return a trace as a later load would give it: under the key, redacted, through JSON.

        What is scored on a miss is this, so that a hit is scored alike.

        Raises:
            ValueError: a trace that JSON can't hold.
        """
        complete = trace.for_key(key)
        if self._redact is not None:
            complete = complete.redacted(self._redact)
        return replace(Trace.from_json(complete.to_json()), is_redacted=complete.is_redacted)

    def store(self, key: CaseKey, trace: Trace) -> Trace:
        """Store an answer, in modes that write, in place of an older one to the same key.

        Args:
            key: what the answer answers. Its optional parts replace the trace's.
            trace: the answer.

        Returns:
            the trace as ``prepare`` gives it.

        Raises:
            ValueError: a trace that JSON can't hold; nothing is written.
            OSError: the file can't be written; an older one stays as it is.
        """
        prepared = self.prepare(key, trace)
        if self.mode.writes:
            write_atomically(self.dir / self._file_name(key), prepared.to_json().encode())
        return prepared

    def entries(self) -> Iterator[tuple[Path, Lookup]]:
        """Yield every file that is named like a stored answer, sorted by name, and what it gave.

        Raises:
            OSError: the folder exists and can't be listed.
        """
        try:
            names = sorted(os.listdir(self.dir))
        except FileNotFoundError:
            return
        for name in names:
            if _FILE_NAME.fullmatch(name):
                yield self.dir / name, self._read(name)

    def traces(self) -> Iterator[Trace]:
        """Yield every stored answer that can be loaded, sorted by file name.

        Raises:
            OSError: the folder exists and can't be listed.
        """
        return (found.trace for _, found in self.entries() if found.trace is not None)

    def of_case(self, case_id: str) -> Iterator[Trace]:
        """Yield the stored answers to a case, the newest first.

        The folder is scanned once, when first asked; answers stored later are not among them.
        """
        if self._names_by_case is None:
            self._names_by_case = self._scan()
        for name in self._names_by_case.get(case_id, ()):
            trace = self._read(name).trace
            if trace is not None and trace.case_id == case_id:
                yield trace

    def newest(self, case_id: str) -> Trace | None:
        """Return the newest stored answer to a case, under whatever key."""
        return next(self.of_case(case_id), None)

    def nearest(self, key: CaseKey) -> tuple[Trace, tuple[str, ...]] | None:
        """Return the stored answer to the key's case that differs in the fewest parts, and those parts.

        Of several the newest. It explains a miss where models, samples or variants share a case.

        Raises:
            ValueError: params nested too deep.
        """
        found = [(trace, trace.differences(key, redact=self._redact)) for trace in self.of_case(key.case_id)]
        return min(found, key=lambda item: len(item[1]), default=None)

    def mean_cost(self, case_id: str) -> float | None:
        """Return what an answer to a case cost on average, in USD; where the case has none, any answer."""
        if self._names_by_case is None:
            self._names_by_case = self._scan()
        costs = self._costs_by_case.get(case_id) or [
            cost for costs in self._costs_by_case.values() for cost in costs
        ]
        return sum(costs) / len(costs) if costs else None

    @property
    def manifests_dir(self) -> Path:
        """The folder of manifests: beside ``traces``, else inside of the store's folder."""
        parent = self.dir.parent if self.dir.name == "traces" else self.dir
        return parent / "manifests"

    def write_manifest(self, manifest: Manifest) -> None:
        """Keep the list of files behind a SHA, in modes that write, once per SHA.

        Raises:
            OSError: the file can't be written.
        """
        if self.mode.writes and self.read_manifest(manifest.sha) is None:
            write_atomically(self.manifests_dir / manifest.sha, manifest.to_bytes())

    def read_manifest(self, sha: str) -> Manifest | None:
        """Return the list of files behind a SHA, or None where none is kept that has this SHA."""
        if not is_sha(sha):
            return None
        try:
            manifest = Manifest.from_bytes(_read_file(self.manifests_dir / sha))
        except (OSError, ValueError):
            return None
        return manifest if manifest.sha == sha else None

    def _file_name(self, key: CaseKey) -> str:
        return f"{key.hash()}.json"

    def _read(self, name: str, *, key: CaseKey | None = None) -> Lookup:
        path = os.path.join(self.dir, name)
        try:
            trace = Trace.from_json(_read_file(path).decode())
            part = None if key is None else trace.mismatch(key, redact=self._redact)
        except FileNotFoundError:
            return Lookup()
        except OSError as error:
            return Lookup(problem=f"{path}: can't be read: {error.strerror or error}")
        except ValueError as error:
            return Lookup(problem=f"{path}: {error}")
        if part is not None:
            return Lookup(problem=f"{path}: holds the answer to another key: {part} differs")
        return Lookup(trace)

    def _scan(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[tuple[float, str]]] = {}
        try:
            for path, entry in self.entries():
                if entry.trace is not None and entry.trace.agent_sha != JUDGE_SHA:
                    dated = (recorded_time(entry.trace, path), path.name)
                    found.setdefault(entry.trace.case_id, []).append(dated)
                    if entry.trace.cost is not None:
                        self._costs_by_case.setdefault(entry.trace.case_id, []).append(entry.trace.cost)
        except OSError:
            # Explaining a miss is a courtesy: the write that follows reports the folder.
            return {}
        return {case_id: tuple(name for _, name in sorted(dated)[::-1]) for case_id, dated in found.items()}


def _read_file(path: str | os.PathLike[str]) -> bytes:
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


def recorded_time(trace: Trace, path: Path) -> float:
    """Return seconds since 1970, from what the trace says or else from its file."""
    from datetime import datetime, timezone

    try:
        # Python 3.10 doesn't read the Z.
        recorded = datetime.fromisoformat((trace.recorded_at or "").replace("Z", "+00:00"))
        if recorded.tzinfo is None:
            recorded = recorded.replace(tzinfo=timezone.utc)
        return recorded.timestamp()
    except (ValueError, OverflowError):
        return os.stat(path).st_mtime
