"""``ctxfp plan``: what a run would ask the agent, why, and what that would cost."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pytest_ctxfp._cli.cache import count
from pytest_ctxfp._cli.files import print_json, print_lines
from pytest_ctxfp._cli.reports import read_report
from pytest_ctxfp._display import escape_line, escape_lines, name_reason
from pytest_ctxfp._errors import CtxfpError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ctxfp._model import JSONValue
    from pytest_ctxfp._report import CaseReport, RunReport, SampleReport

_FLAGS = ("--ctx-cache", "--ctx-on-miss=skip", "-q", "-p", "no:cacheprovider")
_DONE = (0, 1)
"""Exit statuses of a pytest that ran its tests, whatever came of them."""
_MAX_REASON = 300


@dataclass(frozen=True, slots=True)
class Miss:
    """An answer that would be asked for."""

    case: CaseReport
    sample: SampleReport


@dataclass(frozen=True, slots=True)
class Group:
    """Answers that would be asked for for the same reason."""

    why: str
    misses: tuple[Miss, ...]

    @property
    def known_costs(self) -> list[float]:
        """Estimates in USD, of the answers that have one."""
        costs = (miss.sample.estimated_cost for miss in self.misses)
        return [cost for cost in costs if cost is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run would do.

    Attributes:
        groups: answers that would be asked for, the most frequent reason first.
        n_cached: answers that the cache has.
        errors: samples without a verdict, whose answers may have to be asked for too.
        n_skipped: samples that are skipped for another reason.
        is_complete: the run was not cut short.
    """

    groups: tuple[Group, ...]
    n_cached: int
    errors: tuple[Miss, ...]
    n_skipped: int
    is_complete: bool

    @property
    def whole(self) -> Group:
        """All answers that would be asked for."""
        return Group("", tuple(miss for group in self.groups for miss in group.misses))


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the commands of this module."""
    parser = subparsers.add_parser(
        "plan",
        help="tell what a run would ask the agent, why, and the estimated cost",
        usage="ctxfp plan [-h] [--json] [PYTEST ARGS...]",
        description="Tell what a run would ask the agent, why, and the estimated cost.\n\n"
        "pytest runs with these arguments and --ctx-cache --ctx-on-miss=skip: only fixtures can assemble a\n"
        "context. No agent is built or asked; tests of other kinds run as they always do.",
        epilog="exit status: 0 nothing would be asked, 1 something would, 2 pytest could not run\n\n"
        "example:\n  ctxfp plan tests/golden -k refund",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        # No argument begins with NUL: all that follows `plan` is pytest's, also what looks like an option.
        prefix_chars="\0",
        add_help=False,
    )
    parser.add_argument(
        "pytest_args", nargs=argparse.REMAINDER, metavar="ARGS", help="any arguments of pytest"
    )
    parser.set_defaults(run=partial(_plan, parser))


def _plan(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    args = list(arguments.pytest_args)
    if args and args[0] in ("-h", "--help"):
        print_lines([parser.format_help().rstrip()])
        return 0
    is_json = bool(args) and args[0] == "--json"
    args = args[is_json:]
    report = run_pytest(args[1:] if args[:1] == ["--"] else args)
    plan = make_plan(report)
    if is_json:
        print_json(plan_to_json(plan))
    else:
        print_lines(plan_lines(plan))
    return 1 if plan.groups else 0


def run_pytest(args: Sequence[str]) -> RunReport:
    """Run pytest without asking anybody, and return its report.

    Raises:
        CtxfpError: it could not run, or ran no test; the message holds what it printed.
    """
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="ctxfp-") as folder:
        path = os.path.join(folder, "run.json")
        command = [sys.executable, "-m", "pytest", *_FLAGS, f"--ctx-report={path}", *args]
        done = subprocess.run(  # noqa: S603 - the user's own arguments, and no shell
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        if done.returncode not in _DONE or not os.path.exists(path):
            said = (done.stdout + done.stderr).decode("utf-8", "backslashreplace").strip()
            why = "wrote no report" if done.returncode in _DONE else f"ended with status {done.returncode}"
            message = f"plan: pytest {why}{_HINTS.get(done.returncode, '')}\n{escape_lines(said)}"
            raise CtxfpError(message)
        return read_report(path)


_HINTS = {
    2: " (interrupted, or a file can't be collected)",
    3: " (an internal error)",
    4: " (wrong usage)",
    5: " (no tests ran)",
}


def make_plan(report: RunReport) -> Plan:
    """Return what the report of a run that asked nobody says about one that asks."""
    misses: dict[str, list[Miss]] = {}
    errors = []
    n_cached = n_skipped = 0
    for case in report.cases:
        for sample in case.all_samples:
            if sample.state == "skipped" and sample.why:
                misses.setdefault("; ".join(sample.why), []).append(Miss(case, sample))
            elif sample.state == "error":
                errors.append(Miss(case, sample))
            elif sample.state == "skipped":
                n_skipped += 1
            else:
                n_cached += 1
    groups = [Group(why, tuple(found)) for why, found in misses.items()]
    return Plan(
        groups=tuple(sorted(groups, key=lambda group: (-len(group.misses), group.why))),
        n_cached=n_cached,
        errors=tuple(errors),
        n_skipped=n_skipped,
        is_complete=report.complete,
    )


def plan_lines(plan: Plan) -> list[str]:
    """Return the plan.

    Example::

        would ask 3 times: about 0.0600 USD, 1 of unknown cost
          2  context: Business Rules: about 0.0600 USD
          1  new case: unknown cost
        answered from the cache: 24
    """
    whole = plan.whole
    n = len(whole.misses)
    lines = [f"would ask {count(n, 'time')}: {_cost(whole)}" if n else "would ask nothing"]
    lines += [
        f"  {len(group.misses)}  {escape_line(name_reason(group.why, len(group.misses)))}: {_cost(group)}"
        for group in plan.groups
    ]
    lines.append(f"answered from the cache: {plan.n_cached}")
    if plan.errors:
        lines.append(f"errors: {len(plan.errors)}, which may ask too once they are mended")
        lines += [
            f"  {escape_line(f'{miss.case.id}: {miss.sample.reason}', limit=_MAX_REASON)}"
            for miss in plan.errors
        ]
    if plan.n_skipped:
        lines.append(f"skipped for other reasons: {plan.n_skipped}")
    if not plan.is_complete:
        lines.append("the run was cut short: there may be more")
    return lines


def _cost(group: Group) -> str:
    known = group.known_costs
    n_unknown = len(group.misses) - len(known)
    if not known:
        return "unknown cost"
    return f"about {sum(known):.4f} USD" + (f", {n_unknown} of unknown cost" if n_unknown else "")


def plan_to_json(plan: Plan) -> dict[str, JSONValue]:
    """Return the plan for a program; a cost is null where none is known."""
    return {
        **_group_to_json(plan.whole),
        "groups": [{"why": group.why, **_group_to_json(group)} for group in plan.groups],
        "cached": plan.n_cached,
        "errors": [{"case": miss.case.id, "reason": miss.sample.reason} for miss in plan.errors],
        "skipped": plan.n_skipped,
        "complete": plan.is_complete,
    }


def _group_to_json(group: Group) -> dict[str, JSONValue]:
    known = group.known_costs
    return {
        "asks": len(group.misses),
        "estimated_cost": sum(known) if known else None,
        "unknown_costs": len(group.misses) - len(known),
        "cases": list(dict.fromkeys(miss.case.id for miss in group.misses)),
    }
