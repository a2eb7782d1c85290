"""The folder of stored answers: one file a key, written whole or not at all, verified when read."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ctxfp._backend import Backend, LocalBackend, StoreUnreachable, local_folder, mask_url
from pytest_ctxfp._hashing import Manifest, is_sha
from pytest_ctxfp._modes import CacheMode
from pytest_ctxfp._trace import Trace

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from pytest_ctxfp._key import CaseKey

JUDGE_SHA = "scorer"
"""Stands in place of the agent's SHA in verdicts of cached scorers, which are no answers of agents."""

_FILE_NAME = re.compile(r"[0-9a-f]{40}\.json")
_N_TOGETHER = 1_000


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a file gave: a trace (a hit), a problem (corrupt) or neither (a miss).

    ``notes`` say what a user should know of where it is from.
    """

    trace: Trace | None = None
    problem: str | None = None
    notes: tuple[str, ...] = ()


class TraceStore:
    """Stored answers in a folder, as ``<40 hex digits of the key>.json``.

    No answer is ever deleted, and the folder is made at the first write. Nothing that a file says is used as
    a path.

    Args:
        dir: the folder, which need not exist, or a URL that fsspec knows (extra ``remote``).
        mode: what ``load`` and ``store`` do; listing works in every mode.
        redact: applied to every text that is written; hashes are those of the unchanged texts.
        copies: a folder for copies of what a URL gave, which any other process may use; None for none.

    Attributes:
        dir: the folder; of a URL only its name.
        place: the folder or the URL, fit to be shown.

    Raises:
        CtxfpError: a URL that can't be used, and what to install or to write.
    """

    def __init__(
        self,
        dir: str | os.PathLike[str],  # noqa: A002 - the published name
        mode: CacheMode | str = CacheMode.AUTO,
        *,
        redact: Callable[[str], str] | None = None,
        copies: Path | None = None,
    ) -> None:
        self.mode = CacheMode(mode)
        self.folder = local_folder(dir)
        self.dir = self.folder or Path(mask_url(str(dir)))
        self.place = mask_url(str(dir)) if self.folder is None else str(self.folder)
        self._backend, self._manifests = self._open(dir, copies)
        self._redact = redact
        self._names_by_case: dict[str, tuple[str, ...]] | None = None
        self._costs_by_case: dict[str, list[float]] = {}

    def _open(self, place: str | os.PathLike[str], copies: Path | None) -> tuple[Backend, Backend]:
        """Return where answers are and where manifests are."""
        if self.folder is not None or self.mode is CacheMode.OFF:  # which asks nothing of any place
            return LocalBackend(self.dir), LocalBackend(self.manifests_dir)
        from pytest_ctxfp._remote import open_remote

        return open_remote(str(place), copies=copies, writes=self.mode.writes)

    @property
    def outage(self) -> str | None:
        """Why the store can't be reached, as far as its last access knows."""
        return self._backend.outage

    def describe_failure(self, error: OSError) -> str:
        """Return where and why an answer could not be stored, in one line."""
        if isinstance(error, StoreUnreachable):
            return str(error)
        return f"{error.filename or self.place}: {error.strerror or error}"

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
            self._backend.write(self._file_name(key), prepared.to_json().encode())
        return prepared

    def hashes(self) -> list[str]:
        """Return the hashes of the keys that have a file, sorted; whether it can be loaded is another matter.

        Raises:
            OSError: the place exists and can't be listed.
        """
        return sorted(
            name.removesuffix(".json") for name in self._backend.names() if _FILE_NAME.fullmatch(name)
        )

    def place_of(self, name: str) -> str:
        """Return where a file is, fit to be shown."""
        return self._backend.place_of(name)

    def entries(self) -> Iterator[tuple[Path, Lookup]]:
        """Yield every file that is named like a stored answer, sorted by name, and what it gave.

        Raises:
            OSError: the folder exists and can't be listed.
        """
        return ((self.dir / name, found) for name, found in self.lookups())

    def lookups(self) -> Iterator[tuple[str, Lookup]]:
        """Yield the names of the files of `entries`, and what each gave.

        Raises:
            OSError: the folder exists and can't be listed.
        """
        names = [f"{sha}.json" for sha in self.hashes()]
        for start in range(0, len(names), _N_TOGETHER):
            some = names[start : start + _N_TOGETHER]
            self._backend.prefetch(some)
            for name in some:
                yield name, self._read(name)

    def traces(self) -> Iterator[Trace]:
        """Yield every stored answer that can be loaded, sorted by file name.

        Raises:
            OSError: the folder exists and can't be listed.
        """
        return (found.trace for _, found in self.lookups() if found.trace is not None)

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
            self._manifests.write(manifest.sha, manifest.to_bytes())

    def read_manifest(self, sha: str) -> Manifest | None:
        """Return the list of files behind a SHA, or None where none is kept that has this SHA."""
        if not is_sha(sha):
            return None
        try:
            data = self._manifests.read(sha)
            manifest = None if data is None else Manifest.from_bytes(data)
        except (OSError, ValueError):
            return None
        return manifest if manifest is not None and manifest.sha == sha else None

    def _file_name(self, key: CaseKey) -> str:
        return f"{key.hash()}.json"

    def _read(self, name: str, *, key: CaseKey | None = None) -> Lookup:
        try:
            data = self._backend.read(name)
            if data is None:
                return Lookup()
            trace = Trace.from_json(data.decode())
            part = None if key is None else trace.mismatch(key, redact=self._redact)
        except StoreUnreachable:
            return Lookup()
        except OSError as error:
            return self._problem(name, f"can't be read: {error.strerror or error}")
        except ValueError as error:
            return self._problem(name, str(error))
        if part is not None:
            return self._problem(name, f"holds the answer to another key: {part} differs")
        return Lookup(trace) if self.outage is None else Lookup(trace, notes=(self.outage,))

    def _problem(self, name: str, what: str) -> Lookup:
        return Lookup(problem=f"{self._backend.place_of(name)}: {what}")

    def _scan(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[tuple[float, str]]] = {}
        try:
            for name in filter(_FILE_NAME.fullmatch, self._backend.recent()):
                trace = self._read(name).trace
                if trace is not None and trace.agent_sha != JUDGE_SHA:
                    found.setdefault(trace.case_id, []).append((self.recorded_time(trace, name), name))
                    if trace.cost is not None:
                        self._costs_by_case.setdefault(trace.case_id, []).append(trace.cost)
        except OSError:
            # Explaining a miss is a courtesy: the write that follows reports the folder.
            return {}
        return {case_id: tuple(name for _, name in sorted(dated)[::-1]) for case_id, dated in found.items()}

    def recorded_time(self, trace: Trace, name: str) -> float:
        """Return seconds since 1970, from what the trace says or else from its file, whose name is given."""
        from datetime import datetime, timezone

        try:
            # Python 3.10 doesn't read the Z.
            recorded = datetime.fromisoformat((trace.recorded_at or "").replace("Z", "+00:00"))
            if recorded.tzinfo is None:
                recorded = recorded.replace(tzinfo=timezone.utc)
            return recorded.timestamp()
        except (ValueError, OverflowError):
            return self._backend.modified(name)
