"""``ctxfp gate`` and ``ctxfp report``: run reports in files, judged and shown."""

from __future__ import annotations

import argparse
from pathlib import PurePath
from typing import TYPE_CHECKING

from pytest_ctxfp._cli.files import (
    STDIN,
    naming,
    print_json,
    print_lines,
    refuse_second_stdin,
    show_name,
    write_text,
)
from pytest_ctxfp._cli.reports import read_report
from pytest_ctxfp._errors import CtxfpError

if TYPE_CHECKING:
    from pytest_ctxfp._gate_model import GateResult
    from pytest_ctxfp._report import RunReport

_GATE_EPILOG = """\
examples:
  ctxfp gate main.json run.json
  ctxfp gate main.json run.json --tolerance 0.02 --markdown > comment.md

Both are reports as 'pytest --ctx-report=run.json' writes them.
exit status: 0 green, 1 red, 2 a report that can't be read or, as a baseline, is incomplete"""

_REPORT_EPILOG = """\
examples:
  ctxfp report run.json
  ctxfp report run.json --baseline main.json -o run.md
  ctxfp report run.json --baseline main.json -o run.html

exit status: 0 shown, whatever the verdicts ('ctxfp gate' judges), 2 a report that can't be read"""

_SUFFIXES = (".md", ".html")


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the commands of this module."""
    parser = subparsers.add_parser(
        "gate",
        help="judge a run against a baseline",
        description="Say what got worse between two runs because of what changed, and what is only noise.",
        epilog=_GATE_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("baseline", metavar="BASE", help="report of the run to compare with; '-' is stdin")
    parser.add_argument("current", metavar="CURRENT", help="report of the run to judge; '-' is stdin")
    _add_gate_options(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the result as JSON")
    form.add_argument("--markdown", action="store_true", help="print the run's report with the result in it")
    parser.set_defaults(run=_gate)
    parser = subparsers.add_parser(
        "report",
        help="show the report of a run",
        description="Show a JSON report as Markdown, which reads well in a terminal too, or as HTML.",
        epilog=_REPORT_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="a report in JSON; '-' is standard input")
    parser.add_argument(
        "-o", "--output", metavar="OUT", help=f"write this file, {' or '.join(_SUFFIXES)}; '-' is stdout"
    )
    parser.add_argument("--baseline", metavar="BASE", help="add what the gate says against this report")
    _add_gate_options(parser)
    parser.set_defaults(run=_report)


def _add_gate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tolerance",
        type=float,
        default=0.0,
        metavar="X",
        help="share of the common cases, 0 to 1, that may regress and leave the gate green; default 0",
    )
    parser.add_argument(
        "--allow-incomplete", action="store_true", help="take a baseline whose run was interrupted"
    )


def _gate(arguments: argparse.Namespace) -> int:
    from pytest_ctxfp._report_markdown import report_to_markdown

    names = arguments.baseline, arguments.current
    refuse_second_stdin(names)
    baseline, current = map(read_report, names)
    gate = _compare(baseline, current, arguments)
    if arguments.json:
        print_json(gate.to_dict())
    elif arguments.markdown:
        with naming(arguments.current):
            markdown = report_to_markdown(current, gate)
        write_text(STDIN, markdown)
    else:
        print_lines(gate.lines())
    return gate.exit_code


def _report(arguments: argparse.Namespace) -> int:
    from pytest_ctxfp._report_forms import render_report

    suffix = _check_output(arguments.output)
    names = [arguments.file] if arguments.baseline is None else [arguments.baseline, arguments.file]
    refuse_second_stdin(names)
    *baselines, report = map(read_report, names)
    gate = _compare(baselines[0], report, arguments) if baselines else None
    with naming(arguments.file):
        text = render_report(suffix, report, gate, baselines[0] if baselines else None)
    _write(arguments.output, text)
    return 0


def _compare(baseline: RunReport, current: RunReport, arguments: argparse.Namespace) -> GateResult:
    from pytest_ctxfp._gate import gate_reports

    name, tolerance = arguments.baseline, arguments.tolerance
    if not 0 <= tolerance <= 1:
        message = f"--tolerance is a share from 0 to 1, not {tolerance!r}: 0.05 lets 5% of the cases regress"
        raise CtxfpError(message)
    if not (baseline.complete or arguments.allow_incomplete):
        message = (
            f"{show_name(name)}: the baseline is of an interrupted run:"
            " record it again, or add --allow-incomplete"
        )
        raise CtxfpError(message)
    with naming(name):
        return gate_reports(baseline, current, tolerance=tolerance, allow_incomplete=True)


def _check_output(name: str | None) -> str:
    """Return the suffix of a file's name; standard output is Markdown."""
    if name is None or name == STDIN:
        return _SUFFIXES[0]
    suffix = PurePath(name).suffix.lower()
    if suffix not in _SUFFIXES:
        message = f"{show_name(name)}: a report is written as Markdown or HTML: name the file *.md or *.html"
        raise CtxfpError(message)
    if suffix == ".html":
        from pytest_ctxfp._html import check_renderer

        check_renderer()
    return suffix


def _write(name: str | None, text: str) -> None:
    try:
        write_text(name or STDIN, text)
    except OSError as error:  # it names a temporary file, which says nothing to anybody
        message = f"{show_name(name or STDIN)}: can't be written: {error.strerror or error}"
        raise CtxfpError(message) from None
