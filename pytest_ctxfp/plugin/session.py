"""A process's runner, its items' records, and the report hooks that carry records to the summary."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp._display import escape_line, escape_lines, escape_surrogates
from pytest_ctxfp._errors import CtxfpError, first_line
from pytest_ctxfp._hashing import hash_paths
from pytest_ctxfp._records import unscored_record
from pytest_ctxfp._runner import Runner
from pytest_ctxfp._snapshot_text import snapshot_path
from pytest_ctxfp._store import CacheMode, TraceStore
from pytest_ctxfp._suite import Identity
from pytest_ctxfp.plugin.collect import GoldenItem, add_tag_keywords, drop_claimed
from pytest_ctxfp.plugin.counting import exact_counter
from pytest_ctxfp.plugin.evidence import describe_collection, find_unused, is_stopped
from pytest_ctxfp.plugin.facts import RunFacts
from pytest_ctxfp.plugin.items import names_below_file
from pytest_ctxfp.plugin.options import get_settings
from pytest_ctxfp.plugin.reports import escape_serialized, place_skip, show_own_text
from pytest_ctxfp.plugin.snapshot_writes import prune, write_accepted
from pytest_ctxfp.plugin.summary import render_snapshots, render_summary

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from pytest_ctxfp._records import CaseRecord, Record
    from pytest_ctxfp.plugin.options import Settings

RUNNER = pytest.StashKey[Runner]()
RECORDS = pytest.StashKey["list[Record]"]()
SECTIONS = pytest.StashKey["list[tuple[str, str]]"]()
PLUGIN_NAME = "ctxfp-session"

_OK = ("passed", ".", "PASSED")


def get_runner(config: pytest.Config) -> Runner:
    """Return the runner of this process, made when the first case is resolved."""
    if RUNNER not in config.stash:
        settings = get_settings(config)
        config.stash[RUNNER] = Runner(
            TraceStore(settings.cache_dir, settings.mode),
            lambda: load_identity(settings),
            recorded_by=f"pytest-ctxfp {_version()}",
            counter=lambda: exact_counter(config),
        )
    return config.stash[RUNNER]


def load_identity(settings: Settings) -> Identity:
    """Hash the files that the ini file says make the agent, and those that stand for its context.

    Raises:
        CtxfpError: the cache is on and no agent file is named or found.
    """
    if settings.mode is CacheMode.OFF:
        return Identity()
    if not settings.agent_paths:
        message = (
            "the trace cache needs to know which files make the agent what it is, or a changed agent would"
            " get old answers: add a line such as 'ctx_agent_paths = agent/' to the ini file"
        )
        raise CtxfpError(message)
    try:
        agent = hash_paths(settings.agent_paths, rootdir=settings.rootdir)
    except CtxfpError as error:
        message = f"ini option ctx_agent_paths: {error}"
        raise CtxfpError(message) from None
    if not settings.context_paths:
        return Identity(agent=agent, rootdir=settings.rootdir)
    try:
        context = hash_paths(settings.context_paths, rootdir=settings.rootdir)
        return Identity(agent=agent, context=context, rootdir=settings.rootdir)
    except CtxfpError as error:
        message = f"ini option ctx_context_paths: {error}"
        raise CtxfpError(message) from None


def check_usage(config: pytest.Config) -> None:
    """Refuse a run whose cache can't work, before anything is collected or paid for.

    Raises:
        pytest.UsageError: with the ini line or the setting that mends it.
    """
    settings = get_settings(config)
    if settings.mode is CacheMode.OFF:
        return
    if not _can_be_folder(settings.cache_dir):
        message = (
            f"the trace cache {str(settings.cache_dir)!r} is not a folder: name one with --ctx-cache-dir"
        )
        raise pytest.UsageError(message)
    try:
        get_runner(config).identity  # noqa: B018 - hashed here, used by every key
    except CtxfpError as error:
        raise pytest.UsageError(str(error)) from None


def _can_be_folder(path: Path) -> bool:
    """Whether a path is a folder or could be made one: what exists of it is a folder."""
    try:
        return next(part for part in (path, *path.parents) if part.exists()).is_dir()
    except OSError:  # a name that is too long, a folder that can't be entered
        return False


def add_record(item: pytest.Item, record: Record) -> None:
    """Note a fact of an item; it leaves with one of the item's reports."""
    item.stash.setdefault(RECORDS, []).append(record)
    if record["kind"] == "case":
        flat = {f"ctxfp_{name}": fact for name, fact in record.items() if isinstance(fact, (str, int, float))}
        del flat["ctxfp_kind"]
        item.user_properties = [pair for pair in item.user_properties if pair[0] not in flat]
        item.user_properties.extend(flat.items())


def add_section(item: pytest.Item, title: str, content: str) -> None:
    """Note a text to be shown below an item's failure."""
    item.stash.setdefault(SECTIONS, []).append((escape_line(title), escape_surrogates(content)))


def ensure_session(config: pytest.Config) -> None:
    """Register the report hooks, once, when the first golden file or fixture of ours is used."""
    if not config.pluginmanager.has_plugin(PLUGIN_NAME):
        config.pluginmanager.register(ReportHooks(config), PLUGIN_NAME)


class ReportHooks:
    """Carries records from items to reports, and from reports to the summary."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._is_worker = hasattr(config, "workerinput")
        self._facts = RunFacts()
        self._faults: list[str] = []
        self._snapshot_files: dict[Path, str | None] = {}
        self._collection_sent = False

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Let a case's tags select the Python test that runs it."""
        add_tag_keywords(item)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave to Python tests the golden files that they name."""
        drop_claimed(config, items)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the item's records, and let our own failures speak for themselves."""
        report = yield
        if call.excinfo is not None and report.failed:
            show_own_text(report, call.excinfo, item)
        place_skip(report, item)
        sections: list[tuple[str, str]] = item.stash.get(SECTIONS, [])
        report.sections.extend(sections)
        item.stash[SECTIONS] = []
        records = [*_records_to_send(item, report), *self._evidence_to_send(item, report)]
        if records:
            report.ctxfp = records  # type: ignore[attr-defined]
        return report

    def _evidence_to_send(self, item: pytest.Item, report: pytest.TestReport) -> Iterator[Record]:
        """Yield that a test of a module with snapshots ran and, once, what this process collected."""
        if report.when != "call":
            return
        if item.path not in self._snapshot_files:
            file = snapshot_path(item.path)
            self._snapshot_files[item.path] = str(file) if file.exists() else None
        known = self._snapshot_files[item.path]
        if known is not None:
            yield {"kind": "test", "file": known, "names": json.dumps(names_below_file(item))}
        if self._is_worker and not self._collection_sent:
            self._collection_sent = True
            yield describe_collection(item.session)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> Generator[None, object, object]:
        """Mark hits: ``r`` and ``PASSED (replayed)`` or ``PASSED (re-scored)``; nothing else is touched."""
        status = yield
        records = _cases(report)
        if status == _OK and records and all(record["state"] == "hit" for record in records):
            word = "re-scored" if any(record["rescored"] for record in records) else "replayed"
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

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write accepted snapshots and prune unused ones; what can't be written fails the run."""
        if self._is_worker:
            return
        if not self._config.pluginmanager.has_plugin("dsession"):
            self._facts.add_collection(describe_collection(session))
        self._facts.unused = find_unused(self._facts, stopped=is_stopped(session))
        self._faults = write_accepted(self._facts.snapshots())
        if get_settings(self._config).snapshot_prune:
            self._faults += prune(self._facts.unused, get_settings(self._config))
        if self._faults and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the summary where a golden case ran or a context was checked."""
        settings = get_settings(self._config)
        lines = render_snapshots(self._facts, settings)
        if self._facts.cases():
            lines = [*render_summary(self._facts, settings, _known_identity(self._config)), *lines]
        if not lines and not self._faults:
            return
        terminalreporter.section("ctxfp")
        for line in lines:
            terminalreporter.line(line)
        for fault in self._faults:
            terminalreporter.line(f"snapshots not written: {escape_line(fault)}", red=True)


def _known_identity(config: pytest.Config) -> Identity:
    """Return the identity for the summary; where it can't be computed every case has said why."""
    try:
        return get_runner(config).identity
    except CtxfpError:
        return Identity()


def _records_to_send(item: pytest.Item, report: pytest.TestReport) -> list[Record]:
    """Take the records that leave with this report: a passed setup's wait for the verdict."""
    records = item.stash.setdefault(RECORDS, [])
    if isinstance(item, GoldenItem) and not records and report.when == "setup" and not report.passed:
        state = "skipped" if report.skipped else "error"
        records.append(unscored_record(item.case, state, _reason_of(report)))
    if report.when == "setup" and report.passed:
        return []
    del item.stash[RECORDS]
    if hasattr(report, "wasxfail"):
        for record in records:
            if record["kind"] == "case":
                record["xfailed"] = True  # type: ignore[typeddict-unknown-key]
    return records


def _reason_of(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return escape_lines(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    return first_line(CtxfpError(crash.message if crash else str(report.longrepr)))


def _cases(report: pytest.CollectReport | pytest.TestReport) -> list[CaseRecord]:
    return [record for record in getattr(report, "ctxfp", []) if record["kind"] == "case"]


def _version() -> str:
    from pytest_ctxfp import __version__

    return __version__
