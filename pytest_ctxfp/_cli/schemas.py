"""``ctxfp schema``: JSON schemas of the files that people and programs write."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ctxfp._cli.files import naming, print_json, print_lines, read_bytes, replace_bytes, show_name
from pytest_ctxfp._errors import CtxfpError

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA_FILE = "golden.schema.json"

_BOM = "\ufeff"
_EPILOG = """\
examples:
  ctxfp schema > golden.schema.json
  ctxfp schema --write golden.yaml tests/golden_sql.yaml

--write puts the line
  # yaml-language-server: $schema=golden.schema.json
at the head of golden files in YAML, the key "$schema" into those in JSON, and the schema itself into
golden.schema.json beside pytest's ini file. Editors then complete, explain and check the keys, offline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    """A file as it is to be: ``data`` is None where it is so already."""

    name: str
    data: bytes | None


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command of this module."""
    parser = subparsers.add_parser(
        "schema",
        help="print the JSON schema of golden files or of reports, or let editors know it",
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
    parser.add_argument(
        "--write",
        nargs="+",
        metavar="FILE",
        help="name the schema at the head of these golden files, and write it where they look for it",
    )
    parser.set_defaults(run=_schema)


def _schema(arguments: argparse.Namespace) -> int:
    from pytest_ctxfp._golden_schema import golden_schema
    from pytest_ctxfp._report_json import report_schema

    if arguments.write is None:
        print_json(golden_schema() if arguments.kind == "golden" else report_schema())
        return 0
    if arguments.kind != "golden":
        message = "--write is for golden files: leave 'report' out, or leave --write out to print its schema"
        raise CtxfpError(message)
    write_references(arguments.write)
    return 0


def schema_bytes() -> bytes:
    """Return the content of the schema's file, as ``ctxfp schema`` prints it."""
    from pytest_ctxfp._golden_schema import golden_schema

    return (json.dumps(golden_schema(), indent=2, allow_nan=False) + "\n").encode("ascii")


def write_references(names: Sequence[str]) -> None:
    """Let golden files name the schema in their project's folder, and write it there.

    Raises:
        CtxfpError: a file that can't be read, is none of YAML or JSON, or a schema's place that is taken.
        OSError: a file can't be written.
    """
    # All are edited in memory before the first is written: a bad one leaves all as they are.
    edits = [_refer(name) for name in names]
    for place in dict.fromkeys(map(_place_of_schema, names)):
        _write_schema(place)
    for edit in edits:
        if edit.data is not None:
            replace_bytes(edit.name, edit.data)
        print_lines([f"{'unchanged' if edit.data is None else 'written':<10}{show_name(edit.name)}"])


def _place_of_schema(name: str) -> Path:
    from pytest_ctxfp._cli.project import find_project

    return find_project(os.path.dirname(os.path.abspath(name))).rootdir / SCHEMA_FILE


def _refer(name: str) -> _Edit:
    place = _place_of_schema(name)
    folder = os.path.dirname(os.path.abspath(name))
    # The rootdir is above the file: the path has no blank, which would end it for an editor.
    reference = Path(os.path.relpath(place, folder)).as_posix()
    data = read_bytes(name)
    with naming(name):
        edited = _point_to(name, data.decode("utf-8"), reference).encode("utf-8")
    return _Edit(name=name, data=None if edited == data else edited)


def _point_to(name: str, text: str, reference: str) -> str:
    from pytest_ctxfp._cli.modeline import point_json_to, point_yaml_to

    mark = _BOM if text.startswith(_BOM) else ""
    body = text.removeprefix(_BOM)
    suffix = os.path.splitext(name)[1].lower()
    if suffix in (".yaml", ".yml"):
        return mark + point_yaml_to(body, reference)
    if suffix == ".json":
        from pytest_ctxfp._golden import load_golden

        load_golden(name)  # an object with cases: there is a place for the key
        return mark + point_json_to(body, reference)
    message = "only YAML and JSON have a place to name a schema: keep the cases as .yaml or .json"
    raise CtxfpError(message)


def _write_schema(place: Path) -> None:
    """Write the schema, unless its file is so already.

    Raises:
        CtxfpError: something else has its name.
    """
    from pytest_ctxfp._atomic import write_atomically

    shown = show_name(os.path.relpath(place))
    data = schema_bytes()
    if place.exists():
        old = read_bytes(str(place))
        if not _is_golden_schema(old):
            message = f"{shown}: is no schema of golden files: move it, its name is needed for the schema"
            raise CtxfpError(message)
        if old == data:
            print_lines([f"unchanged {shown}"])
            return
        replace_bytes(str(place), data)
    else:
        write_atomically(place, data)
    print_lines([f"written   {shown}"])


def _is_golden_schema(data: bytes) -> bool:
    from pytest_ctxfp._golden_schema import golden_schema

    try:
        schema = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(schema, dict) and schema.get("title") == golden_schema()["title"]
