"""A process's runner, its items' records, and the report hooks that carry records to the summary."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp._display import escape_line
from pytest_ctxfp._snapshot_text import snapshot_path
from pytest_ctxfp.plugin.case_runs import apply_selection, choose_audited
from pytest_ctxfp.plugin.collect import add_tag_keywords, drop_claimed
from pytest_ctxfp.plugin.evidence import describe_cases, describe_collection, find_unused, is_stopped
from pytest_ctxfp.plugin.facts import RunFacts
from pytest_ctxfp.plugin.fixture_values import FIXTURE_VALUES, FixtureValues
from pytest_ctxfp.plugin.item_records import is_ours, take_records, take_sections
from pytest_ctxfp.plugin.items import names_below_file
from pytest_ctxfp.plugin.redacting import redact_report
from pytest_ctxfp.plugin.reports import escape_serialized, place_skip, show_own_text
from pytest_ctxfp.plugin.settings import get_settings
from pytest_ctxfp.plugin.snapshot_reads import get_snapshot_reader
from pytest_ctxfp.plugin.snapshot_summary import render_snapshots
from pytest_ctxfp.plugin.snapshot_writes import prune, write_accepted

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from pytest_ctxfp._records import CaseRecord, Record
    from pytest_ctxfp.plugin.run_report import RunVerdict

PLUGIN_NAME = "ctxfp-session"

_OK = ("passed", ".", "PASSED")


def ensure_session(config: pytest.Config) -> None:
    """Register the report hooks, once, when the first golden file or fixture of ours is used."""
    if not config.pluginmanager.has_plugin(PLUGIN_NAME):
        config.pluginmanager.register(ReportHooks(config), PLUGIN_NAME)
        config.stash[FIXTURE_VALUES] = FixtureValues()
        config.pluginmanager.register(config.stash[FIXTURE_VALUES], f"{PLUGIN_NAME}-fixtures")
        _show_live(config)


def _show_live(config: pytest.Config) -> None:
    """Tell what answers take while they are asked for, where somebody may look at a terminal."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(config, "workerinput") or reporter is None or not reporter.isatty:
        return
    from pytest_ctxfp.plugin.live import LiveOutput

    config.pluginmanager.register(LiveOutput(config, reporter), f"{PLUGIN_NAME}-live")


class ReportHooks:
    """Carries records from items to reports, and from reports to the summary."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        self._is_complete = True
        self._is_verbose = config.getoption("verbose", 0) > 0  # absent with -p no:terminal
        self._facts = RunFacts()
        self._faults: list[str] = []
        self._verdict: RunVerdict | None = None
        self._snapshot_files: dict[Path, str | None] = {}
        self._collection_sent = False
        self._n_collected = 0

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Let a case's tags select the Python test that runs it."""
        add_tag_keywords(item)

    @pytest.hookimpl(tryfirst=True, specname="pytest_collection_modifyitems")
    def pytest_select_cases(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Select among all cases that were collected, whatever else leaves some out."""
        apply_selection(config, items)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave to Python tests the golden files that they name, and choose of the rest what is audited."""
        drop_claimed(config, items)
        choose_audited(config, items)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the item's records, and let our own failures speak for themselves."""
        report = yield
        if call.excinfo is not None and report.failed:
            show_own_text(report, call.excinfo, item)
        place_skip(report, item)
        report.sections.extend(take_sections(item))
        if _shows_text(report) and is_ours(item):
            redact_report(report, item.config)
        records = [*take_records(item, report), *self._evidence_to_send(item, report)]
        if records:
            report.ctxfp = records  # type: ignore[attr-defined]
        return report

    def _evidence_to_send(self, item: pytest.Item, report: pytest.TestReport) -> Iterator[Record]:
        """Yield, once, what this process collected, and that a test of a module with snapshots ran."""
        if self._is_worker and not self._collection_sent:
            self._collection_sent = True
            yield describe_collection(item.session)
            yield describe_cases(item.session)
        if report.when != "call":
            return
        if item.path not in self._snapshot_files:
            file = snapshot_path(item.path)
            self._snapshot_files[item.path] = str(file) if file.exists() else None
        known = self._snapshot_files[item.path]
        if known is not None:
            yield {"kind": "test", "file": known, "names": json.dumps(names_below_file(item))}

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> Generator[None, object, object]:
        """Mark hits: ``r`` and ``PASSED (replayed)`` or ``PASSED (re-scored)``; nothing else is touched."""
        status = yield
        records = _answers(report)
        if status == _OK and records and all(record["state"] == "hit" for record in records):
            word = "re-scored" if any(record.get("rescored") for record in records) else "replayed"
            return ("passed", "r", f"PASSED ({word})")
        return status

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Generator[None, object, object]:
        """Let every text of a report be one that a worker can send: one that can't ends the whole run."""
        return escape_serialized((yield))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in what the report carries; a test that runs again replaces its earlier attempt."""
        self._facts.add_report(
            str(report.nodeid),
            report.when or "",
            passed=report.passed and not hasattr(report, "wasxfail"),
            records=getattr(report, "ctxfp", []),
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected: a report of the run must not look complete."""
        if report.failed:
            self._facts.add_collect_fault()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write snapshots and reports, prune, and judge the run as a whole: its status is only raised."""
        if self._is_worker or _ran_nothing(self._config):
            return
        if not self._config.pluginmanager.has_plugin("dsession"):
            self._facts.add_collection(describe_collection(session))
            self._facts.add_selection(describe_cases(session))
        self._n_collected = session.testscollected
        stopped = is_stopped(session)
        self._facts.unused = find_unused(self._facts, get_snapshot_reader(self._config), stopped=stopped)
        self._faults = [
            f"snapshots not written: {escape_line(fault)}"
            for fault in (*write_accepted(self._facts.snapshots()), *self._prune())
        ]
        self._is_complete = self._facts.is_complete(self._n_collected) and not stopped
        if get_settings(self._config).wants_report:
            from pytest_ctxfp.plugin.run_report import conclude

            self._verdict = conclude(self._facts, self._config, complete=self._is_complete)
        self._raise_status(session)

    def _prune(self) -> list[str]:
        settings = get_settings(self._config)
        return prune(self._facts.unused, settings) if settings.snapshot_prune else []

    def _raise_status(self, session: pytest.Session) -> None:
        if session.exitstatus == pytest.ExitCode.OK and self._why_none_selected() is not None:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
        is_red = bool(self._faults) or (self._verdict is not None and not self._verdict.passed)
        if session.exitstatus == pytest.ExitCode.OK and is_red:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _why_none_selected(self) -> str | None:
        """Return why ``--ctx-tags`` and ``--ctx-subset`` left no case, if so."""
        settings, selection = get_settings(self._config), self._facts.selection
        if not (settings.tags or settings.subset) or self._is_other_fault():
            return None
        if selection is None:  # a worker that runs nothing has nothing to tell
            return "no case is left by --ctx-tags and --ctx-subset"
        return selection["fault"] or None

    def _is_other_fault(self) -> bool:
        """Whether it is not for the selection that no case ran: files are broken, or every worker died."""
        selection = self._facts.selection
        if selection is None:
            return self._facts.has_collect_fault or self._n_collected > 0
        return self._facts.has_collect_fault and not selection["total"]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the summary where a golden case ran or a context was checked."""
        if _ran_nothing(self._config):
            return
        settings = get_settings(self._config)
        lines = render_snapshots(self._facts, settings)
        if self._facts.cases() or self._facts.helper_calls():
            from pytest_ctxfp.plugin.runner import known_identity
            from pytest_ctxfp.plugin.summary import render_summary

            identity = known_identity(self._config)
            summary = render_summary(
                self._facts, settings, identity, verbose=self._is_verbose, complete=self._is_complete
            )
            lines = [*summary, *lines]
        verdict = self._verdict
        gate = [] if verdict is None or verdict.gate is None else verdict.gate.lines()
        faults = [*self._faults, *([] if verdict is None else verdict.faults)]
        none_selected = self._why_none_selected()
        if none_selected is not None:
            faults.append(escape_line(none_selected))
        if not (lines or faults or gate):
            return
        terminalreporter.section("ctxfp")
        for line in lines:
            terminalreporter.line(line)
        for line in gate:
            terminalreporter.line(line, red=line.startswith("gate") and "RED" in line)
        for fault in faults:
            terminalreporter.line(fault, red=True)


def _shows_text(report: pytest.TestReport) -> bool:
    return not report.passed or bool(report.sections) or hasattr(report, "wasxfail")


def _ran_nothing(config: pytest.Config) -> bool:
    """Whether a run was only to show what it would run."""
    return any(config.getoption(name, False) for name in ("collectonly", "setuponly"))


def _answers(report: pytest.CollectReport | pytest.TestReport) -> list[CaseRecord]:
    return [record for record in getattr(report, "ctxfp", []) if record["kind"] in {"case", "call"}]
