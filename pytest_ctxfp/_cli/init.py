"""``ctxfp init``: a suite that passes at once, in a folder where nothing is overwritten."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ctxfp._cli.cache import add_command
from pytest_ctxfp._cli.files import print_lines, show_name
from pytest_ctxfp._cli.modeline import point_yaml_to
from pytest_ctxfp._cli.project import find_project
from pytest_ctxfp._cli.starter import (
    CONFTEST,
    GOLDEN,
    IGNORED,
    MY_AGENT,
    MY_CONTEXT,
    WORKFLOW,
    WORKFLOW_PATH,
    ini_options,
)
from pytest_ctxfp._errors import CtxfpError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pytest_ctxfp._cli.project import Project
    from pytest_ctxfp._cli.starter import IniOption

_PYPROJECT = "pyproject.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class _StarterFile:
    """A file of the suite.

    Attributes:
        path: from the suite's folder.
        text: what is written where nothing has its name.
        remedy: what to do where something has, before the lines.
        lines: what to add then; those that stand in the file already need no adding.
    """

    path: Path
    text: str
    remedy: str
    lines: str = ""


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command of this module."""
    parser = add_command(
        subparsers,
        "init",
        "write a suite that passes at once: conftest, agent, assembler, golden cases, CI",
        "ctxfp init\n  ctxfp init evals\n\nno existing file is overwritten: what it lacks is printed",
    )
    parser.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help="default: the current one")
    parser.set_defaults(run=_init)


def _init(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.folder)
    if folder.exists() and not folder.is_dir():
        message = f"{show_name(arguments.folder)}: is no folder: name one, or one that isn't there yet"
        raise CtxfpError(message)
    project = find_project(folder)  # before anything is written: an ini file that can't be read is a fault
    for file in list(_starter_files(folder, project)):
        _put(folder, file)
    if not _takes_pytest_ini(project):
        print_lines(_ini_to_paste(project, _inside(folder, project.rootdir)))
    print_lines(["", f"now run: {_command(arguments.folder)}"])
    return 0


def _command(folder: str) -> str:
    import shlex

    return "pytest --ctx-cache" + ("" if folder == "." else f" {shlex.quote(show_name(folder))}")


def _starter_files(folder: Path, project: Project) -> Iterator[_StarterFile]:
    from pytest_ctxfp._cli.schemas import SCHEMA_FILE, schema_bytes

    # Where the ini file is or will be: what counts for the whole project lies there.
    home = Path() if _takes_pytest_ini(project) else Path(os.path.relpath(project.rootdir, folder))
    keep = "keep yours"
    schema = home / SCHEMA_FILE
    golden = point_yaml_to(GOLDEN, schema.as_posix())
    yield _StarterFile(path=Path("conftest.py"), text=CONFTEST, remedy="add to it", lines=CONFTEST)
    yield _StarterFile(path=Path("my_context.py"), text=MY_CONTEXT, remedy="conftest.py calls its build()")
    yield _StarterFile(path=Path("my_agent.py"), text=MY_AGENT, remedy="conftest.py calls its ask()")
    yield _StarterFile(path=Path("golden.yaml"), text=golden, remedy=keep)
    yield _StarterFile(
        path=schema, text=schema_bytes().decode("ascii"), remedy="`ctxfp schema --write FILE` renews it"
    )
    if _takes_pytest_ini(project):
        yield _StarterFile(path=Path("pytest.ini"), text=_pytest_ini(), remedy=keep)
    yield _StarterFile(path=home / ".gitignore", text=IGNORED, remedy="add to it", lines=IGNORED)
    yield _StarterFile(path=home / WORKFLOW_PATH, text=WORKFLOW, remedy=keep)


def _put(folder: Path, file: _StarterFile) -> None:
    path = folder / file.path
    shown = show_name(os.path.normpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8", newline="\n") as stream:  # whatever has the name stays
            stream.write(file.text)
    except FileExistsError:
        print_lines(_what_is_left(path, shown, file))
    else:
        print_lines([f"written   {shown}"])


def _what_is_left(path: Path, shown: str, file: _StarterFile) -> list[str]:
    if _holds(path, file.text):
        return [f"left      {shown}: it has what is needed"]
    added = [f"    {line}".rstrip() for line in file.lines.splitlines()]
    return [f"left      {shown}: it exists; {file.remedy}{':' if added else ''}", *added]


def _holds(path: Path, lines: str) -> bool:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    return set(lines.splitlines()) <= set(text.splitlines())


def _takes_pytest_ini(project: Project) -> bool:
    """Whether nothing configures pytest, and no ``pyproject.toml`` is there that would better."""
    return project.ini_path is None and not (project.rootdir / _PYPROJECT).is_file()


def _inside(folder: Path, rootdir: Path) -> str:
    return Path(os.path.relpath(folder, rootdir)).as_posix()


def _pytest_ini() -> str:
    return "".join(f"{line}\n" for line in ("[pytest]", *(one.as_ini() for one in ini_options("."))))


def _ini_to_paste(project: Project, folder: str) -> list[str]:
    """Return which lines the file that configures pytest lacks, in its own format."""
    path = project.ini_path or project.rootdir / _PYPROJECT
    lines = [
        option.as_toml() if path.suffix == ".toml" else option.as_ini()
        for option in ini_options(folder)
        if not _has(project, option)
    ]
    if not lines:
        return []
    shown = show_name(os.path.relpath(path))
    return ["", f"add to {shown}:", *(f"    {line}" for line in [_ini_header(path), *lines])]


def _has(project: Project, option: IniOption) -> bool:
    if option.is_list:
        return option.value in project.words(option.name)
    return option.name in project.values  # any model's label will do


def _ini_header(path: Path) -> str:
    """Return the section that configures pytest; ``[tool.pytest]`` where the file has that one."""
    if path.name == _PYPROJECT:
        native = "[tool.pytest]"
        return native if native in path.read_text(encoding="utf-8") else "[tool.pytest.ini_options]"
    return "[tool:pytest]" if path.name == "setup.cfg" else "[pytest]"
