"""What a run's reports said, test by test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ctxfp._records import CaseRecord, CollectionRecord, Record, SnapshotRecord, TestRecord


class RunFacts:
    """The records of a run; of a test that runs again the last attempt's, though all it spent counts."""

    def __init__(self) -> None:
        self._records: dict[str, list[Record]] = {}
        self._earlier: list[Record] = []
        self._collections: list[CollectionRecord] = []
        self._passed_phases: dict[str, int] = {}
        self.unused: dict[Path, list[str]] = {}

    def add_report(self, nodeid: str, when: str, *, passed: bool, records: list[Record]) -> None:
        """Take in the records of one report of a test."""
        if when == "setup":
            self._earlier += self._records.pop(nodeid, [])
            self._passed_phases[nodeid] = 0
        self._passed_phases[nodeid] = self._passed_phases.get(nodeid, 0) + passed
        for record in records:
            if record["kind"] == "collection":
                self.add_collection(cast("CollectionRecord", record))
            else:
                self._records.setdefault(nodeid, []).append(record)

    def add_collection(self, record: CollectionRecord) -> None:
        """Take in what a process collected completely."""
        self._collections.append(record)

    def cases(self) -> list[CaseRecord]:
        """Return the records of all cases, of their last attempts."""
        return _cases([record for records in self._records.values() for record in records])

    def helper_calls(self) -> list[CaseRecord]:
        """Return the records of all calls that tests made themselves, of their last attempts."""
        return _cases([record for records in self._records.values() for record in records], kind="call")

    def calls(self) -> list[CaseRecord]:
        """Return the record of every call that was made, whatever came of it, earlier attempts included."""
        earlier = [*_cases(self._earlier), *_cases(self._earlier, kind="call")]
        records = [*earlier, *self.cases(), *self.helper_calls()]
        return [record for record in records if record.get("calls")]

    def judged(self) -> list[CaseRecord]:
        """Return the records of all calls of cached scorers, earlier attempts included."""
        return [record for record in [*_cases(self._earlier), *self.cases()] if record.get("judge_calls")]

    def snapshots(self) -> list[SnapshotRecord]:
        """Return the records of all checks of contexts, of their tests' last attempts."""
        records = [record for records in self._records.values() for record in records]
        return [cast("SnapshotRecord", record) for record in records if record["kind"] == "snapshot"]

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


def _cases(records: list[Record], *, kind: str = "case") -> list[CaseRecord]:
    return [cast("CaseRecord", record) for record in records if record["kind"] == kind]
