"""Facts of an item: noted while it runs, they leave with its reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from pytest_ctxfp._display import escape_line, escape_lines, escape_surrogates
from pytest_ctxfp._errors import CtxfpError, first_line
from pytest_ctxfp._records import add_known, unscored_record
from pytest_ctxfp.plugin.case_runs import run_of
from pytest_ctxfp.plugin.collect import GoldenItem
from pytest_ctxfp.plugin.redacting import redact_record
from pytest_ctxfp.plugin.settings import get_settings

if TYPE_CHECKING:
    from pytest_ctxfp._records import CaseRecord, Record

RECORDS = pytest.StashKey["list[Record]"]()
SECTIONS = pytest.StashKey["list[tuple[str, str]]"]()
IS_OURS = pytest.StashKey[bool]()


def add_record(item: pytest.Item, record: Record) -> None:
    """Note a fact of an item, without secrets; it leaves with one of the item's reports."""
    item.stash[IS_OURS] = True
    if record["kind"] != "call":  # the facts of a call are added to until they leave
        redact_record(record, item.config)
    item.stash.setdefault(RECORDS, []).append(record)
    if record["kind"] == "case":
        flat = _flat_facts(cast("CaseRecord", record))
        item.user_properties = [pair for pair in item.user_properties if pair[0] not in flat]
        item.user_properties.extend(flat.items())


def _flat_facts(record: CaseRecord) -> dict[str, object]:
    """Return the facts for junit; those of a further sample have its number: ``ctxfp_1_passed``."""
    sample = record.get("sample", 0)
    prefix = f"ctxfp_{sample}_" if sample else "ctxfp_"
    return {
        f"{prefix}{name}": escape_line(fact) if isinstance(fact, str) else fact
        for name, fact in record.items()
        if name != "kind" and isinstance(fact, (str, int, float))
    }


def is_ours(item: pytest.Item) -> bool:
    """Whether an item runs a golden case or has used a fixture of ours: its secrets are ours to hide."""
    return IS_OURS in item.stash or run_of(item) is not None


def add_section(item: pytest.Item, title: str, content: str) -> None:
    """Note a text to be shown below an item's failure."""
    item.stash.setdefault(SECTIONS, []).append((escape_line(title), escape_surrogates(content)))


def take_sections(item: pytest.Item) -> list[tuple[str, str]]:
    """Return the texts that are shown below an item's failure, once."""
    sections = item.stash.get(SECTIONS, None)
    if sections is None:
        return []
    del item.stash[SECTIONS]
    return sections


def take_records(item: pytest.Item, report: pytest.TestReport) -> list[Record]:
    """Take the records that leave with this report: a passed setup's wait for the verdict."""
    records = item.stash.get(RECORDS, [])
    if not report.passed and _lacks_record(item, report, records):
        records.append(_record_without_outcome(item, report))
    if not records or (report.when == "setup" and report.passed):
        return []
    if RECORDS in item.stash:
        del item.stash[RECORDS]
    for record in records:
        if record["kind"] == "call":
            redact_record(record, item.config)
    if hasattr(report, "wasxfail"):
        for record in records:
            if record["kind"] == "case":
                record["xfailed"] = True  # type: ignore[typeddict-unknown-key]
    return records


def _lacks_record(item: pytest.Item, report: pytest.TestReport, records: list[Record]) -> bool:
    """Whether an item that traces a case ended before it did, or while it did."""
    if run_of(item) is None or hasattr(report, "wasxfail") or report.when == "teardown":
        return False
    if isinstance(item, GoldenItem):
        return report.when == "setup" and not any(_is_without_verdict(record) for record in records)
    traces_case = "ctx_trace" in getattr(item, "fixturenames", ())
    return traces_case and not any(record["kind"] == "case" for record in records)


def _is_without_verdict(record: Record) -> bool:
    return record["kind"] == "case" and "passed" not in record


def _record_without_outcome(item: pytest.Item, report: pytest.TestReport) -> CaseRecord:
    run = run_of(item)
    assert run is not None
    record = unscored_record(run.case, "skipped" if report.skipped else "error", _reason_of(report))
    add_known(record, variant=run.variant)
    redact_record(record, item.config)
    settings = get_settings(item.config)
    if settings.wants_report:
        from pytest_ctxfp._report import SampleReport
        from pytest_ctxfp.plugin.case_entries import describe_case

        sample = SampleReport(state="skipped" if report.skipped else "error", reason=record.get("reason", ""))
        record["report"] = describe_case(run, item, sample, model=run.model or settings.model)
    return record


def _reason_of(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return escape_lines(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    return first_line(CtxfpError(crash.message if crash else str(report.longrepr)))
