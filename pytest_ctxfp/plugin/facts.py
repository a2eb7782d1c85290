"""What a run's reports said, test by test."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ctxfp._records import CaseRecord, Record, SnapshotRecord


class RunFacts:
    """The records of a run; of a test that runs again the last attempt's, though all it spent counts."""

    def __init__(self) -> None:
        self._records: dict[str, list[Record]] = {}
        self._earlier: list[Record] = []

    def add_report(self, nodeid: str, when: str, records: list[Record]) -> None:
        """Take in the records of one report of a test."""
        if when == "setup":
            self._earlier += self._records.pop(nodeid, [])
        if records:
            self._records.setdefault(nodeid, []).extend(records)

    def __bool__(self) -> bool:
        return bool(self._records)

    def cases(self) -> list[CaseRecord]:
        """Return the records of all cases, of their last attempts."""
        return _cases([record for records in self._records.values() for record in records])

    def calls(self) -> Iterator[CaseRecord]:
        """Yield the record of every answer that was paid for, earlier attempts included."""
        for record in [*_cases(self._earlier), *self.cases()]:
            if record["state"] in {"miss", "refreshed", "uncached"}:
                yield record

    def snapshots(self) -> list[SnapshotRecord]:
        """Return the records of all checks of contexts, of their tests' last attempts."""
        records = [record for records in self._records.values() for record in records]
        return [cast("SnapshotRecord", record) for record in records if record["kind"] == "snapshot"]


def _cases(records: list[Record]) -> list[CaseRecord]:
    return [cast("CaseRecord", record) for record in records if record["kind"] == "case"]
