"""What a run's reports said, test by test."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ctxfp._records import CaseRecord


class RunFacts:
    """The records of a run. Of a test that is run again the last attempt counts; what it spent is added up."""

    def __init__(self) -> None:
        self._records: dict[str, list[CaseRecord]] = {}
        self._earlier: list[CaseRecord] = []

    def add_report(self, nodeid: str, when: str, records: list[CaseRecord]) -> None:
        """Take in the records of one report of a test."""
        if when == "setup":
            self._earlier += self._records.pop(nodeid, [])
        if records:
            self._records.setdefault(nodeid, []).extend(records)

    def __bool__(self) -> bool:
        return bool(self._records)

    def cases(self) -> list[CaseRecord]:
        """Return the records of all cases, of their last attempts."""
        return [record for records in self._records.values() for record in records]

    def calls(self) -> Iterator[CaseRecord]:
        """Yield the record of every answer that was paid for, earlier attempts included."""
        for record in [*self._earlier, *self.cases()]:
            if record["state"] in {"miss", "refreshed", "uncached"}:
                yield record
