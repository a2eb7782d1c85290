"""Which stored snapshots a run has proven to be unused: never by silence, only by evidence.

A snapshot is unused if its test ran and passed without asserting it; if its module was collected completely,
kept completely, and has no such test; or if its module's file is gone from a folder that was collected
without a filter. After a stop, and under ``--lf``, nothing is concluded from what is absent.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp._snapshot_model import SnapshotFileError
from pytest_ctxfp._snapshot_text import SNAPSHOT_FOLDER, module_candidates, snapshot_path
from pytest_ctxfp.plugin.case_runs import SELECTION, CaseSelection, run_of
from pytest_ctxfp.plugin.items import names_below_file, path_in_reports
from pytest_ctxfp.plugin.options import COLLECTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ctxfp._records import CasesRecord, CollectionRecord
    from pytest_ctxfp._snapshot_file import SnapshotReader
    from pytest_ctxfp.plugin.facts import RunFacts

_STOPPED = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)


def describe_collection(session: pytest.Session) -> CollectionRecord:
    """Return what this process has collected completely: the tests of whole modules, and whole folders."""
    reports = _reports_by_node(session.config)
    kept = set(session.items)
    whole = {}
    for nodeid, report in reports.items():
        node = report.result[0].parent
        if node is None or str(node.nodeid) != nodeid:
            continue  # the session's own report lists what the command line picked out of modules
        if isinstance(node, pytest.File) and snapshot_path(node.path).exists():
            items = _items_below(report, reports)
            if items is not None and kept.issuperset(items):
                whole[str(snapshot_path(node.path))] = [names_below_file(item) for item in items]
    is_cut, is_filtered = _is_cut_while_collecting(session.config), _is_filtered(session.config)
    return {
        "kind": "collection",
        "whole": json.dumps({} if is_cut else whole),
        "folders": json.dumps([] if is_filtered else list(_collected_folders(session.config))),
        "items": len({str(item.nodeid) for item in session.items}),
    }


def describe_cases(session: pytest.Session) -> CasesRecord:
    """Return which golden cases this process is to run, and of which files they are all."""
    config = session.config
    selection = config.stash.get(SELECTION, CaseSelection(0, 0))
    runs = [run for item in session.items if (run := run_of(item)) is not None]
    kept = {run.place for run in runs}
    covered: set[str] = set()
    if not (_is_cut_while_collecting(config) or selection.note):
        covered = {path_in_reports(file, config) for file in _whole_golden_files(config, kept)}
        if not _is_filtered(config):
            covered |= {f"{path_in_reports(path, config)}/" for path in _collected_folders(config)}
    return {
        "kind": "cases",
        "selected": len(kept),
        "total": selection.total,
        "note": selection.note,
        "fault": selection.fault,
        "covered": sorted(covered),
        "datasets": sorted({run.dataset for run in runs if run.dataset is not None}),
        "context_versions": sorted({run.context_version for run in runs if run.context_version is not None}),
    }


def _whole_golden_files(config: pytest.Config, kept: set[tuple[str, int, str]]) -> Iterator[str]:
    """Yield the golden files all of whose cases are kept, as items of their own or in Python tests."""
    reports = _reports_by_node(config)
    for nodeid, report in reports.items():
        node = report.result[0].parent
        if not isinstance(node, pytest.File) or str(node.nodeid) != nodeid:
            continue  # as above: a node id on the command line picks cases out of a file
        items = _items_below(report, reports) or []
        places = {run.place for item in items if (run := run_of(item)) is not None}
        for file in {place[0] for place in places}:
            if kept.issuperset(place for place in places if place[0] == file):
                yield file


def _collected_folders(config: pytest.Config) -> Iterator[str]:
    for nodeid, report in _reports_by_node(config).items():
        node = report.result[0].parent
        if isinstance(node, pytest.Directory) and str(node.nodeid) == nodeid:
            yield str(node.path)


def _reports_by_node(config: pytest.Config) -> dict[str, pytest.CollectReport]:
    return {str(report.nodeid): report for report in config.stash.get(COLLECTED, [])}


def _items_below(
    report: pytest.CollectReport, reports: dict[str, pytest.CollectReport]
) -> list[pytest.Item] | None:
    """Return all tests below a collector, or None where a part of it was not collected."""
    items: list[pytest.Item] = []
    for node in report.result:
        if isinstance(node, pytest.Item):
            items.append(node)
        elif str(node.nodeid) in reports:
            below = _items_below(reports[str(node.nodeid)], reports)
            if below is None:
                return None
            items += below
        else:
            return None
    return items


def _is_cut_while_collecting(config: pytest.Config) -> bool:
    """Whether a run drops tests while it collects, so that what looks whole is not."""
    return bool(config.getoption("lf", False))


def _is_filtered(config: pytest.Config) -> bool:
    """Whether a run was told to leave tests out."""
    return any(config.getoption(name, None) for name in _FILTERS)


_FILTERS = ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "stepwise", "collectonly")


def is_stopped(session: pytest.Session) -> bool:
    """Whether a run ended before its end."""
    return bool(session.shouldstop or session.shouldfail) or session.exitstatus in _STOPPED


def find_unused(facts: RunFacts, reader: SnapshotReader, *, stopped: bool) -> dict[Path, list[str]]:
    """Return the keys of unused snapshots by snapshot file, each list sorted.

    Args:
        facts: what the run's reports said.
        reader: gives what is stored.
        stopped: the run ended early: nothing is concluded from what is absent.
    """
    asserted = facts.asserted_keys()
    passed = facts.passed_tests()
    collections = [] if stopped else facts.collections()
    whole = {file: names for record in collections for file, names in json.loads(record["whole"]).items()}
    files = {*whole, *passed, *_files_of_gone_modules(collections)}
    unused: dict[Path, list[str]] = {}
    for file in sorted(files):
        keys = set(_stored_keys(Path(file), reader)) - asserted.get(file, set())
        gone = _is_module_gone(Path(file)) and bool(collections)
        found = [
            key for key in keys if gone or _is_proven_unused(key, passed.get(file, set()), whole.get(file))
        ]
        if found:
            unused[Path(file)] = sorted(found)
    return unused


def _is_proven_unused(key: str, passed: set[str], names: Iterable[str] | None) -> bool:
    owners = set(_possible_owners(key))
    if names is not None:
        owners_there = owners.intersection(names)
        return not owners_there or (len(owners_there) == 1 and owners_there <= passed)
    # A "#" may stand in a parameter or in a snapshot's name: then it is not certain whose this is.
    return len(owners) == 1 and owners <= passed


def _possible_owners(key: str) -> Iterator[str]:
    """Yield the tests that a key can belong to: ``test#0`` is of ``test``."""
    position = key.find("#")
    while position != -1:
        yield key[:position]
        position = key.find("#", position + 1)


def _files_of_gone_modules(collections: Iterable[CollectionRecord]) -> Iterator[str]:
    for folder in {folder for record in collections for folder in json.loads(record["folders"])}:
        for file in sorted((Path(folder) / SNAPSHOT_FOLDER).glob("*.ctxfp")):
            if _is_module_gone(file):
                yield str(file)


def _is_module_gone(file: Path) -> bool:
    return not any(module.exists() for module in module_candidates(file))


def _stored_keys(file: Path, reader: SnapshotReader) -> Iterable[str]:
    try:
        return reader.entries(file)
    except SnapshotFileError:
        # The tests that use it fail with what is wrong; nothing in it is called unused.
        return ()
