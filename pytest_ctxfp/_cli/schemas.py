"""``ctxfp schema``: JSON schemas of the files that people and programs write."""

from __future__ import annotations

import argparse

from pytest_ctxfp._cli.files import print_json

_EPILOG = """\
example:
  ctxfp schema > golden.schema.json

Then editors complete and check golden files that begin with
  # yaml-language-server: $schema=golden.schema.json
or, in JSON, have the key "$schema"."""


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command of this module."""
    parser = subparsers.add_parser(
        "schema",
        help="print the JSON schema of golden files or of reports",
        description="Print the JSON schema (draft 2020-12) of golden files, or of the reports of runs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "kind",
        nargs="?",
        choices=("golden", "report"),
        default="golden",
        help="golden, the default, or report",
    )
    parser.set_defaults(run=_schema)


def _schema(arguments: argparse.Namespace) -> int:
    from pytest_ctxfp._golden_schema import golden_schema
    from pytest_ctxfp._report_json import report_schema

    print_json(golden_schema() if arguments.kind == "golden" else report_schema())
    return 0
