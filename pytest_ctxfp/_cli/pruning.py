"""``ctxfp cache prune``: the one command that deletes stored answers, and only when told twice."""

from __future__ import annotations

import argparse
import os
import re
import stat
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ctxfp._cli.cache import (
    Corrupt,
    Stored,
    add_command,
    add_dir_option,
    count,
    known_cost,
    open_store,
    read_store,
    sum_costs,
    table_lines,
    to_json,
)
from pytest_ctxfp._cli.files import print_json, print_lines
from pytest_ctxfp._cli.reports import read_report
from pytest_ctxfp._display import escape_line
from pytest_ctxfp._errors import CtxfpError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._report import RunReport

_DAY = 86_400
_SECONDS = {"h": 3_600, "d": _DAY, "w": 7 * _DAY}
_AGE = re.compile("([0-9]{1,6})([hdw])")
_LEFTOVER = re.compile(r"\.[0-9a-f]{40}\.json\.[0-9a-f]{16}\.tmp")
_OF_HELPERS = frozenset({"arguments", "helper"})
"""What only the keys of `cached_call` hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """What would go.

    Attributes:
        stored: stored answers that every given selector takes.
        corrupt: corrupt files, where they are wanted.
        leftovers: what writers that were killed left behind.
        n_kept: stored answers that no report can prove to be unused: verdicts of scorers, and calls.
    """

    stored: Sequence[Stored] = ()
    corrupt: Sequence[Corrupt] = ()
    leftovers: Sequence[Path] = ()
    n_kept: int = 0

    @property
    def paths(self) -> list[Path]:
        """The files that would be deleted."""
        return [
            *(item.path for item in self.stored),
            *(item.path for item in self.corrupt),
            *self.leftovers,
        ]


def add_prune(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = add_command(
        commands,
        "prune",
        "list the stored answers that are old or unused, and delete them with --yes",
        "ctxfp cache prune --older-than 30d\n  ctxfp cache prune --unused-by run.json nightly.json --yes",
    )
    parser.add_argument(
        "--older-than",
        metavar="AGE",
        type=read_age,
        help="recorded longer ago than this: 12h, 30d, 2w",
    )
    parser.add_argument(
        "--unused-by",
        nargs="+",
        action="extend",
        metavar="REPORT",
        help="in none of these reports (of --ctx-report=run.json); both selectors: only what both take",
    )
    parser.add_argument("--corrupt", action="store_true", help="also the files that can't be loaded")
    add_dir_option(parser)
    parser.add_argument("--yes", action="store_true", help="delete what is listed")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_prune)


def read_age(text: str) -> int:
    """Return an age in seconds.

    Raises:
        argparse.ArgumentTypeError: it is no number of hours, days or weeks.
    """
    match = _AGE.fullmatch(text)
    if match is None:
        message = f"{text!r} is no age: write hours, days or weeks as 12h, 30d or 2w"
        raise argparse.ArgumentTypeError(message)
    return int(match[1]) * _SECONDS[match[2]]


def _prune(arguments: argparse.Namespace) -> int:
    if arguments.older_than is None and not arguments.unused_by and not arguments.corrupt:
        message = "cache prune: nothing says what may go: add --older-than 30d, --unused-by run.json or both"
        raise CtxfpError(message)
    reports = {name: read_report(name) for name in arguments.unused_by or ()}
    store = open_store(arguments.dir)
    stored, corrupt = read_store(store)
    now = time.time()
    selectors = list(_make_selectors(arguments.older_than, list(reports.values()), now))
    unprovable = [item for item in stored if reports and is_in_no_report(item)]
    pruning = Pruning(
        stored=[item for item in stored if selectors and all(takes(item) for takes in selectors)],
        corrupt=[item for item in corrupt if arguments.corrupt and _is_file(item.path)],
        leftovers=list(find_leftovers(store.dir, now)),
        n_kept=len(unprovable),
    )
    lines = [*note_lines(reports), *listing_lines(pruning)]
    if arguments.yes:
        for path in pruning.paths:
            path.unlink(missing_ok=True)
    if arguments.json:
        print_json(_to_json(pruning, is_deleted=arguments.yes))
        return 0
    print_lines(lines)
    if pruning.paths:
        print_lines(["deleted" if arguments.yes else "nothing was deleted: add --yes to delete them"])
    return 0


def _make_selectors(
    older_than: int | None, reports: Sequence[RunReport], now: float
) -> Iterator[Callable[[Stored], bool]]:
    if older_than is not None:
        yield lambda item: item.time < now - older_than
    if reports:
        used = {sample.key for report in reports for case in report.cases for sample in case.all_samples} - {
            None
        }
        yield lambda item: item.key not in used and not is_in_no_report(item)


def is_in_no_report(item: Stored) -> bool:
    """Whether no report would list the answer, used or not: a scorer's verdict, or a call of a test.

    Answers to cases are recorded with their expectation; those of other programs have no ``recorded_by``.
    """
    trace = item.trace
    is_of_no_case = trace.recorded_by is not None and trace.expectation_sha is None
    return item.is_verdict or is_of_no_case or not _OF_HELPERS.isdisjoint(trace.params or ())


def find_leftovers(folder: Path, now: float) -> Iterator[Path]:
    """Yield what writers that were killed left in a folder more than a day ago, by name.

    Raises:
        OSError: the folder can't be listed.
    """
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    for name in names:
        path = folder / name
        if _LEFTOVER.fullmatch(name) and _is_file(path) and os.lstat(path).st_mtime < now - _DAY:
            yield path


def _is_file(path: Path) -> bool:
    """Whether this is a file that can be deleted: a folder, or what has gone by now, can't."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def note_lines(reports: dict[str, RunReport]) -> list[str]:
    """Return what makes a report a weak proof: what did not run has no key in it."""
    lines = []
    for name, report in reports.items():
        if not report.is_full:
            ran = f"{report.selected_cases} of {count(report.total_cases, 'case')}"
            lines.append(
                f"note: {escape_line(name)} is of a part of the suite ({ran}"
                f"{'' if report.complete else ', interrupted'}): the rest counts as unused"
            )
        unkeyed = sum(sample.key is None for case in report.cases for sample in case.all_samples)
        if unkeyed:
            lines.append(
                f"note: {escape_line(name)} has {count(unkeyed, 'sample')} without a key (errors, or a run"
                " without the cache): their answers count as unused"
            )
    return lines


def listing_lines(pruning: Pruning) -> list[str]:
    """Return what would go, and what it took to get it."""
    lines = []
    if pruning.stored:
        lines += table_lines(pruning.stored)
    lines += [f"corrupt: {escape_line(item.problem)}" for item in pruning.corrupt]
    lines += [f"leftover of a killed run: {escape_line(str(path))}" for path in pruning.leftovers]
    lines.append(_sum_up(pruning))
    if pruning.n_kept:
        lines.append(
            f"{count(pruning.n_kept, 'answer')} to calls and judges left alone: reports list cases only, so"
            " nothing shows which of them are unused"
        )
    return lines


def _sum_up(pruning: Pruning) -> str:
    n = len(pruning.stored)
    parts = [f"{count(n, 'stored answer')}, which cost {sum_costs(pruning.stored)}"] if n else []
    if pruning.corrupt:
        parts.append(count(len(pruning.corrupt), "corrupt file"))
    if pruning.leftovers:
        parts.append(count(len(pruning.leftovers), "leftover"))
    return "selected: " + ("; ".join(parts) or "nothing")


def _to_json(pruning: Pruning, *, is_deleted: bool) -> dict[str, JSONValue]:
    costs = [known_cost(item.trace) for item in pruning.stored]
    stored: list[JSONValue] = [to_json(item) for item in pruning.stored]
    corrupt: list[JSONValue] = [str(item.path) for item in pruning.corrupt]
    leftovers: list[JSONValue] = [str(path) for path in pruning.leftovers]
    return {
        "deleted": is_deleted,
        "traces": stored,
        "cost": sum(cost for cost in costs if cost is not None),
        "unknown_costs": costs.count(None),
        "corrupt": corrupt,
        "leftovers": leftovers,
        "kept": pruning.n_kept,
    }
