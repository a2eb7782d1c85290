"""A process's runner, its items' records, and the report hooks that carry records to the summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from pytest_ctxfp._display import escape_line, escape_lines, escape_surrogates
from pytest_ctxfp._environment import hash_variables, read_versions
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
from pytest_ctxfp.plugin.redacting import get_redactor, redact_record, redact_report
from pytest_ctxfp.plugin.reports import escape_serialized, place_skip, show_own_text
from pytest_ctxfp.plugin.snapshot_writes import prune, write_accepted
from pytest_ctxfp.plugin.summary import render_snapshots, render_summary

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import TypeGuard

    from pytest_ctxfp._hashing import Manifest
    from pytest_ctxfp._limits import CallLedger
    from pytest_ctxfp._records import CaseRecord, Record
    from pytest_ctxfp.plugin.options import Settings

T = TypeVar("T")
RUNNER = pytest.StashKey[Runner]()
RECORDS = pytest.StashKey["list[Record]"]()
IS_OURS = pytest.StashKey[bool]()
SECTIONS = pytest.StashKey["list[tuple[str, str]]"]()
LEDGER_PATH = pytest.StashKey[Path]()
LEDGER_INPUT = "ctxfp_ledger"
PLUGIN_NAME = "ctxfp-session"

_OK = ("passed", ".", "PASSED")


def get_runner(config: pytest.Config) -> Runner:
    """Return the runner of this process, made when the first case is resolved."""
    if RUNNER not in config.stash:
        settings = get_settings(config)
        config.stash[RUNNER] = Runner(
            TraceStore(settings.cache_dir, settings.mode, redact=get_redactor(config)),
            lambda: load_identity(settings),
            recorded_by=f"pytest-ctxfp {_version()}",
            counter=lambda: exact_counter(config),
            ledger=get_ledger(config),
        )
    return config.stash[RUNNER]


def get_ledger(config: pytest.Config) -> CallLedger | None:
    """Return the count of calls that all processes of the run share, or None where nothing is limited."""
    limits = get_settings(config).limits
    if limits is None:
        return None
    from pytest_ctxfp._limits import CallLedger

    return CallLedger(get_ledger_path(config), limits)


def get_ledger_path(config: pytest.Config) -> Path:
    """Return the file of the count: a worker is told by the controller, which removes it in the end."""
    if hasattr(config, "workerinput"):
        return Path(config.workerinput[LEDGER_INPUT])
    if LEDGER_PATH not in config.stash:
        import shutil
        import tempfile

        folder = tempfile.mkdtemp(prefix="ctxfp-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        config.stash[LEDGER_PATH] = Path(folder, "calls")
    return config.stash[LEDGER_PATH]


def load_identity(settings: Settings) -> Identity:
    """Read what the ini file says makes the agent: its files, its context's, its data, variables, packages.

    Raises:
        CtxfpError: the cache is on and no agent file is named, or something named isn't there.
    """
    if settings.mode is CacheMode.OFF:
        return Identity()
    if not settings.agent_paths:
        message = (
            "the trace cache needs to know which files make the agent what it is, or a changed agent would"
            " get old answers: add a line such as 'ctx_agent_paths = agent/' to the ini file"
        )
        raise CtxfpError(message)
    return Identity(
        agent=_hash_files("ctx_agent_paths", settings.agent_paths, settings.rootdir),
        context=_hash_files("ctx_context_paths", settings.context_paths, settings.rootdir),
        data=_hash_files("ctx_data_paths", settings.data_paths, settings.rootdir),
        rootdir=settings.rootdir,
        env=_checked_option("ctx_agent_env", lambda: tuple(hash_variables(settings.agent_env))),
        packages=_checked_option("ctx_agent_packages", lambda: read_versions(settings.agent_packages)),
    )


def _hash_files(option: str, patterns: tuple[str, ...], rootdir: Path) -> Manifest | None:
    if not patterns:
        return None
    return _checked_option(option, lambda: hash_paths(patterns, rootdir=rootdir))


def _checked_option(option: str, read: Callable[[], T]) -> T:
    """Return what an ini option gives; an error names the option."""
    try:
        return read()
    except CtxfpError as error:
        message = f"ini option {option}: {error}"
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
    """Note a fact of an item, without secrets; it leaves with one of the item's reports."""
    item.stash[IS_OURS] = True
    if record["kind"] != "call":  # the facts of a call are added to until they leave
        redact_record(record, item.config)
    item.stash.setdefault(RECORDS, []).append(record)
    if record["kind"] == "case":
        flat = {f"ctxfp_{name}": _flat(fact) for name, fact in record.items() if _is_flat(fact)}
        del flat["ctxfp_kind"]
        item.user_properties = [pair for pair in item.user_properties if pair[0] not in flat]
        item.user_properties.extend(flat.items())


def _is_flat(fact: object) -> TypeGuard[str | float]:
    return isinstance(fact, (str, int, float))


def _flat(fact: str | float) -> str | float:
    return escape_line(fact) if isinstance(fact, str) else fact


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
        if isinstance(item, GoldenItem) or IS_OURS in item.stash:
            redact_report(report, item.config)
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
        if self._facts.cases() or self._facts.helper_calls():
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
    for record in records:
        if record["kind"] == "call":
            redact_record(record, item.config)
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


def _answers(report: pytest.CollectReport | pytest.TestReport) -> list[CaseRecord]:
    return [record for record in getattr(report, "ctxfp", []) if record["kind"] in {"case", "call"}]


def _version() -> str:
    from pytest_ctxfp import __version__

    return __version__
