"""``ctxfp verify-context`` and ``ctxfp stamp``: what golden files were written for, against what is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ctxfp._cli.cache import add_command, count
from pytest_ctxfp._cli.files import print_json, print_lines, replace_bytes
from pytest_ctxfp._cli.project import find_project
from pytest_ctxfp._display import escape_line
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._pins import classify_pin

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pytest_ctxfp._cli.project import Project
    from pytest_ctxfp._hashing import Manifest
    from pytest_ctxfp._model import GoldenSet, JSONValue

_OPTION = "ctx_context_paths"
_BOM = "\ufeff"


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the commands of this module."""
    verify = add_command(
        subparsers,
        "verify-context",
        "tell which golden files were written for another state of the context sources",
        "ctxfp verify-context\n  ctxfp verify-context golden.yaml --paths context/ --paths rules.md",
    )
    verify.add_argument(
        "golden", nargs="*", metavar="GOLDEN", help="golden files (default: those that pytest would collect)"
    )
    _add_paths_option(verify)
    verify.add_argument("--json", action="store_true", help="print JSON")
    verify.set_defaults(run=_verify)
    stamp = add_command(
        subparsers,
        "stamp",
        "write the state of the context sources into golden files, as their context_version",
        "ctxfp stamp golden.yaml",
    )
    stamp.add_argument("golden", nargs="+", metavar="GOLDEN", help="golden files, YAML or JSON")
    _add_paths_option(stamp)
    stamp.set_defaults(run=_stamp)


def _add_paths_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--paths",
        action="append",
        default=[],
        metavar="P",
        help="a file, folder or glob of context sources, relative to the current folder; !P excludes"
        f" (repeatable; default: {_OPTION} of pytest's ini file)",
    )


def hash_sources(project: Project, paths: Sequence[str]) -> Manifest:
    """Return the files that stand for the context, as a run hashes them: named from the rootdir.

    Args:
        project: gives ``ctx_context_paths``.
        paths: patterns in its place, relative to the current folder.

    Raises:
        CtxfpError: neither, or nothing that they match.
    """
    from pytest_ctxfp._hashing import hash_paths

    if paths:
        return hash_paths(map(_make_absolute, paths), rootdir=project.rootdir)
    patterns = project.words(_OPTION)
    if not patterns:
        place = project.ini_path or project.rootdir / "pytest.ini"
        message = f"{place}: nothing says what a pin is of: add {_OPTION} = ... there, or give --paths"
        raise CtxfpError(message)
    try:
        return hash_paths(patterns, rootdir=project.rootdir)
    except CtxfpError as error:
        message = f"ini option {_OPTION}: {error}"
        raise CtxfpError(message) from None


def _make_absolute(pattern: str) -> str:
    mark = "!" if pattern.startswith("!") else ""
    path = pattern[len(mark) :]
    return mark + os.path.join(os.getcwd(), path) if path else pattern


def _verify(arguments: argparse.Namespace) -> int:
    from pytest_ctxfp._golden import load_golden

    project = find_project()
    sources = hash_sources(project, arguments.paths)
    golden = [load_golden(name) for name in arguments.golden] or _find_golden(project)
    if not golden:
        message = f"no golden file below {project.rootdir}: name some"
        raise CtxfpError(message)
    states = [_state(one, sources.sha) for one in golden]
    is_fresh = all(state["freshness"] == "fresh" for state in states)
    if arguments.json:
        files: list[JSONValue] = [dict(state) for state in states]
        print_json({"sha": sources.sha, "fresh": is_fresh, "files": files})
        return 0 if is_fresh else 1
    print_lines(map(_state_line, states))
    n = len(sources.entries)
    print_lines([f"the context sources ({count(n, 'file')}) are at {sources.sha[:12]}"])
    if not is_fresh:
        print_lines(["check what they expect against the sources, then: ctxfp stamp FILE"])
    return 0 if is_fresh else 1


def _find_golden(project: Project) -> list[GoldenSet]:
    from pytest_ctxfp._golden import load_if_golden

    paths = sorted(os.path.relpath(path) for path in project.golden_candidates())
    return [golden for path in paths if (golden := load_if_golden(path)) is not None]


def _state(golden: GoldenSet, sha: str) -> dict[str, str | None]:
    status = classify_pin(golden.context_version, sha)
    return {
        "path": golden.path,
        "freshness": status.freshness,
        "context_version": golden.context_version,
        "dataset": status.dataset,
        "pin": status.pin,
    }


def _state_line(state: dict[str, str | None]) -> str:
    """Return a line a file: ``stale     golden.yaml  shop@3f9c1a2``."""
    version = state["context_version"]
    shown = "" if version is None else "  " + escape_line(version, limit=80)
    return f"{state['freshness']:<10}{escape_line(state['path'] or '')}{shown}"


def _stamp(arguments: argparse.Namespace) -> int:
    project = find_project()
    sources = hash_sources(project, arguments.paths)
    _refuse_circles(arguments.golden, sources, project)
    sha = sources.sha
    # All are edited in memory before the first is written: a bad one leaves all as they are.
    edits = [_edit(name, sha) for name in arguments.golden]
    for path, data, line in edits:
        if data is not None:
            replace_bytes(path, data)
        print_lines([line])
    return 0


def _refuse_circles(names: Sequence[str], sources: Manifest, project: Project) -> None:
    """Refuse to pin a file to a state that the pin itself would change."""
    pinned = dict(sources.entries)
    for name in names:
        inside = project.name_of(os.path.realpath(name))
        if inside in pinned:
            message = f"{name}: is itself one of the context sources: leave it out of them with '!{inside}'"
            raise CtxfpError(message)


def _edit(name: str, sha: str) -> tuple[str, bytes | None, str]:
    """Return a golden file, its new content or None where its pin is right already, and a line on it."""
    from pytest_ctxfp._cli.stamping import stamp_text
    from pytest_ctxfp._golden import load_golden

    golden = load_golden(name)
    shown = escape_line(name)
    if classify_pin(golden.context_version, sha).freshness == "fresh":
        return name, None, f"unchanged {shown}  {escape_line(golden.context_version or '', limit=80)}"
    text = Path(name).read_bytes().decode("utf-8")
    mark = _BOM if text.startswith(_BOM) else ""
    edited, version = stamp_text(golden, text.removeprefix(_BOM), sha=sha)
    return name, (mark + edited).encode(), f"stamped   {shown}  {escape_line(version, limit=80)}"
