"""What a run's reports said, test by test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ctxfp._records import (
        CaseRecord,
        CasesRecord,
        CollectionRecord,
        Record,
        SnapshotRecord,
        TestRecord,
    )


class RunFacts:
    """The records of a run; of a test that runs again the last attempt's, though all it spent counts."""

    def __init__(self) -> None:
        self._records: dict[str, list[Record]] = {}
        self._earlier: list[Record] = []
        self._collections: list[CollectionRecord] = []
        self._selections: list[CasesRecord] = []
        self._finished: set[str] = set()
        self._uncollected = 0
        self._passed_phases: dict[str, int] = {}
        self.unused: dict[Path, list[str]] = {}

    def add_report(self, nodeid: str, when: str, *, passed: bool, records: list[Record]) -> None:
        """Take in the records of one report of a test."""
        if when == "setup":
            self._earlier += self._records.pop(nodeid, [])
            self._passed_phases[nodeid] = 0
        self._passed_phases[nodeid] = self._passed_phases.get(nodeid, 0) + passed
        if when == "teardown":
            self._finished.add(nodeid)
        for record in records:
            if record["kind"] == "collection":
                self.add_collection(cast("CollectionRecord", record))
            elif record["kind"] == "cases":
                self.add_selection(cast("CasesRecord", record))
            else:
                self._records.setdefault(nodeid, []).append(record)

    def add_collection(self, record: CollectionRecord) -> None:
        """Take in what a process collected completely."""
        self._collections.append(record)

    def add_selection(self, record: CasesRecord) -> None:
        """Take in which golden cases a process is to run."""
        self._selections.append(record)

    def add_collect_fault(self) -> None:
        """Take in that something could not be collected."""
        self._uncollected += 1

    @property
    def has_collect_fault(self) -> bool:
        """Whether something could not be collected."""
        return self._uncollected > 0

    @property
    def selection(self) -> CasesRecord | None:
        """Which golden cases the run selects, as far as any of its processes has said so."""
        return self._selections[0] if self._selections else None

    def is_complete(self, n_collected: int) -> bool:
        """Whether everything was collected, and every test that was to run has run to its end.

        Args:
            n_collected: pytest's own count of tests, which holds where no worker lived to tell.
        """
        n_items = max((record["items"] for record in self._collections), default=n_collected)
        return not self._uncollected and len(self._finished) >= n_items

    def cases(self) -> list[CaseRecord]:
        """Return the records of the samples of all cases, of their last attempts."""
        return _of_kind(self._last(), "case")

    def confirming(self) -> list[CaseRecord]:
        """Return the records of the answers that were asked for to confirm a flip."""
        return _of_kind(self._last(), "confirming")

    def audits(self) -> list[CaseRecord]:
        """Return the records of the stored answers that were asked for again."""
        return _of_kind(self._last(), "audit")

    def layer_texts(self) -> dict[str, str]:
        """Return the layers of contexts that any attempt has sent, by hash."""
        records = _of_kind([*self._earlier, *self._last()], "case", "confirming")
        return {digest: text for record in records for digest, text in record.get("texts", {}).items()}

    def helper_calls(self) -> list[CaseRecord]:
        """Return the records of all calls that tests made themselves, of their last attempts."""
        return _of_kind(self._last(), "call")

    def by_case(self) -> dict[tuple[str, int], list[CaseRecord]]:
        """Return the records of cases by test and by which of the test's cases it is, confirming ones too."""
        groups: dict[tuple[str, int], list[CaseRecord]] = {}
        for nodeid in sorted(self._records):
            for record in _of_kind(self._records[nodeid], "case", "confirming"):
                groups.setdefault((nodeid, record.get("resolution", 0)), []).append(record)
        return groups

    def calls(self) -> list[CaseRecord]:
        """Return the record of every call that was made, whatever came of it, earlier attempts included."""
        records = _of_kind([*self._earlier, *self._last()], "case", "call", "confirming", "audit")
        return [record for record in records if record.get("calls")]

    def judged(self) -> list[CaseRecord]:
        """Return the records of all calls of cached scorers, earlier attempts included."""
        records = _of_kind([*self._earlier, *self._last()], "case", "confirming", "audit")
        return [record for record in records if record.get("judge_calls")]

    def snapshots(self) -> list[SnapshotRecord]:
        """Return the records of all checks of contexts, of their tests' last attempts."""
        return [cast("SnapshotRecord", record) for record in self._last() if record["kind"] == "snapshot"]

    def _last(self) -> list[Record]:
        return [record for records in self._records.values() for record in records]

    def collections(self) -> list[CollectionRecord]:
        """Return what the processes of the run collected completely."""
        return self._collections

    def asserted_keys(self) -> dict[str, set[str]]:
        """Return the keys of all snapshots that were checked, by snapshot file."""
        keys: dict[str, set[str]] = {}
        for record in self.snapshots():
            keys.setdefault(record["file"], set()).add(json.loads(record["key"]))
        return keys

    def passed_tests(self) -> dict[str, set[str]]:
        """Return the names of the tests that passed in every phase, by snapshot file."""
        names: dict[str, set[str]] = {}
        for nodeid, records in self._records.items():
            for record in records:
                if record["kind"] == "test" and self._passed_phases[nodeid] == _N_PHASES:
                    test = cast("TestRecord", record)
                    names.setdefault(test["file"], set()).add(json.loads(test["names"]))
        return names


_N_PHASES = 3


def _of_kind(records: list[Record], *kinds: str) -> list[CaseRecord]:
    return [cast("CaseRecord", record) for record in records if record["kind"] in kinds]
