"""The command ``ctxfp``: what a run left behind, looked at and judged from a shell."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from pytest_ctxfp._cli import cache, capture, contexts, init, pins, plan, rescoring, runs, schemas
from pytest_ctxfp._display import escape_lines
from pytest_ctxfp._errors import CtxfpError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMMAND_GROUPS = (init, contexts, runs, plan, rescoring, capture, cache, pins, schemas)
"""Modules of commands, each with ``add_commands(subparsers)``, in the order of the help text."""

EXIT_USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 for yes (identical, green, valid), 1 for no, 2 where the question could not be answered: wrong
        usage, a file that is missing or can't be read.
    """
    arguments = make_parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        return run(arguments)
    except CtxfpError as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{error.filename or '(no file)'}: {error.strerror or error}")


def _refuse(message: str) -> int:
    sys.stderr.write(f"ctxfp: {escape_lines(message)}\n")
    return EXIT_USAGE


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; each leaves the function to call in ``run``."""
    parser = argparse.ArgumentParser(
        prog="ctxfp",
        description="Contexts, traces and reports of pytest-ctxfp, from a shell.",
        epilog="exit status: 0 yes (identical, green, valid), 1 no, 2 wrong usage or a file no one can read",
    )
    parser.add_argument("--version", action="version", version=f"ctxfp {_version()}")
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for group in COMMAND_GROUPS:
        group.add_commands(subparsers)
    return parser


def _version() -> str:
    from pytest_ctxfp import __version__

    return __version__
