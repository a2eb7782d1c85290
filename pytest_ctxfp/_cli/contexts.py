"""``ctxfp fingerprint`` and ``ctxfp diff``: contexts in files, by their layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ctxfp._cli.files import print_json, read_bytes
from pytest_ctxfp._fingerprint import fingerprint_context

if TYPE_CHECKING:
    import argparse


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the commands of this module."""
    parser = subparsers.add_parser("fingerprint", help="print the layers of contexts in files")
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.set_defaults(run=_fingerprint)


def _fingerprint(arguments: argparse.Namespace) -> int:
    for name in arguments.files:
        print_json(fingerprint_context(read_bytes(name)).to_dict())
    return 0
