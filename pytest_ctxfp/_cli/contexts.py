"""``ctxfp fingerprint`` and ``ctxfp diff``: contexts in files, by their layers."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from pytest_ctxfp._cli.files import print_json, print_lines, refuse_second_stdin
from pytest_ctxfp._cli.layer_text import describe_diff, describe_fingerprint
from pytest_ctxfp._cli.reading import (
    SPLIT_HELP,
    add_split_options,
    check_split_options,
    read_context,
    read_side,
)
from pytest_ctxfp._fingerprint import diff_fingerprints

if TYPE_CHECKING:
    from pytest_ctxfp._fingerprint import ContextDiff
    from pytest_ctxfp._model import JSONValue

_FINGERPRINT_EPILOG = """\
examples:
  ctxfp fingerprint context.md
  ctxfp fingerprint --split=messages request.json
  build-context | ctxfp fingerprint --json - > context.json

--json prints one object for one file, and a list of {"file": ..., ...} for several."""

_DIFF_EPILOG = """\
examples:
  ctxfp diff before.md after.md
  build-context | ctxfp diff fingerprint.json -

exit status: 0 identical, 1 different, 2 a file that can't be read"""


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the commands of this module."""
    parser = subparsers.add_parser(
        "fingerprint",
        help="print the layers of contexts in files",
        description=f"Print hash and size of each layer of a context.\n\n{SPLIT_HELP}",
        epilog=_FINGERPRINT_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a context; '-' is standard input")
    parser.add_argument("--json", action="store_true", help="print JSON, which 'ctxfp diff' reads")
    add_split_options(parser)
    parser.set_defaults(run=_fingerprint)
    parser = subparsers.add_parser(
        "diff",
        help="say which layers differ between two contexts",
        description="Say which layers differ between two contexts, and show the lines.\n\n"
        f"{SPLIT_HELP}\n"
        "Either side may be a fingerprint instead, as 'ctxfp fingerprint --json' prints it.",
        epilog=_DIFF_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("before", metavar="A", help="a context or a fingerprint; '-' is standard input")
    parser.add_argument("after", metavar="B", help="the same, later")
    parser.add_argument("--json", action="store_true", help="print JSON, without the texts")
    add_split_options(parser)
    parser.set_defaults(run=_diff)


def _fingerprint(arguments: argparse.Namespace) -> int:
    check_split_options(arguments)
    refuse_second_stdin(arguments.files)
    contexts = [read_context(name, arguments) for name in arguments.files]
    fingerprints = [context.fingerprint.to_dict() for context in contexts]
    if arguments.json and len(fingerprints) == 1:
        print_json(fingerprints[0])
    elif arguments.json:
        names = arguments.files
        print_json([{"file": name, **data} for name, data in zip(names, fingerprints, strict=True)])
    else:
        for index, context in enumerate(contexts):
            title = [f"{context.name}:"] if len(contexts) > 1 else []
            print_lines([*([""] if index else []), *title, *describe_fingerprint(context.fingerprint)])
    return 0


def _diff(arguments: argparse.Namespace) -> int:
    check_split_options(arguments)
    names = arguments.before, arguments.after
    refuse_second_stdin(names)
    before, after = (read_side(name, arguments) for name in names)
    diff = diff_fingerprints(before.fingerprint, after.fingerprint)
    if arguments.json:
        print_json(_diff_to_dict(diff))
    else:
        print_lines(describe_diff(before, after, diff))
    return 0 if diff.identical else 1


def _diff_to_dict(diff: ContextDiff) -> JSONValue:
    return {
        "identical": diff.identical,
        "changed": [asdict(delta) for delta in diff.changed],
        "added": list(diff.added),
        "removed": list(diff.removed),
        "reordered": diff.reordered,
        "moved": list(diff.moved),
        "byte_delta": diff.byte_delta,
        "summary": diff.summary(),
    }
