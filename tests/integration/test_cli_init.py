"""``ctxfp init``: a suite that passes at once, and never at the cost of what was there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from pytest_ctxfp import golden_schema, load_golden
from pytest_ctxfp._cli.starter import CONFTEST, WORKFLOW_PATH

if TYPE_CHECKING:
    from pathlib import Path

STARTER = {
    "conftest.py",
    "my_context.py",
    "my_agent.py",
    "golden.yaml",
    "golden.schema.json",
    "pytest.ini",
    ".gitignore",
    WORKFLOW_PATH,
}


def run_pytest(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run pytest as a user would, in a process of its own."""
    blocked = ("cacheprovider", "asyncio", "anyio", "hypothesispytest", "rerunfailures")
    blocks = [flag for name in blocked for flag in ("-p", f"no:{name}")]
    command = [sys.executable, "-m", "pytest", *blocks, *args]
    return subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder and what they hold."""
    paths = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def as_printed(text: str) -> str:
    """Return what was printed to be added to a file, without its indent."""
    return "".join(f"{line[4:]}\n" for line in text.splitlines() if line.startswith("    "))


def test_the_suite_passes_at_once(ctxfp, tmp_path) -> None:
    """In an empty folder all is written, and pytest passes: asked on two workers, then replayed."""
    done = ctxfp("init")
    assert (done.returncode, done.stderr) == (0, "")
    assert set(files_of(tmp_path)) == STARTER
    assert done.stdout.endswith("now run: pytest --ctx-cache\n")
    first = run_pytest(tmp_path, "--ctx-cache", "-n2")
    assert first.returncode == 0, first.stdout
    assert "answers    0 hit, 3 miss" in first.stdout
    second = run_pytest(tmp_path, "--ctx-on-miss=fail")
    assert second.returncode == 0, second.stdout
    assert "answers    3 hit, 0 miss" in second.stdout
    assert "warning" not in first.stdout + first.stderr + second.stdout + second.stderr


def test_the_suite_passes_without_a_cache_and_under_strict_options(ctxfp, tmp_path) -> None:
    """Plain pytest passes too, with options and markers held strictly and another import mode."""
    ctxfp("init")
    done = run_pytest(tmp_path, "--strict-config", "--strict-markers", "--import-mode=importlib", "-Werror")
    assert done.returncode == 0, done.stdout


def test_the_golden_file_names_the_schema_beside_it(ctxfp, tmp_path) -> None:
    """The starter's golden file is right as it is for `ctxfp schema --write`."""
    ctxfp("init")
    assert len(load_golden(tmp_path / "golden.yaml").cases) == 3
    done = ctxfp("schema", "--write", "golden.yaml")
    assert done.stdout == "unchanged golden.schema.json\nunchanged golden.yaml\n"


def test_a_new_folder_is_made(ctxfp, tmp_path) -> None:
    """A folder that isn't there is made, also with blanks in its name, and the command to run names it."""
    done = ctxfp("init", "sub/my evals")
    assert done.returncode == 0
    assert set(files_of(tmp_path / "sub" / "my evals")) == STARTER
    assert "now run: pytest --ctx-cache 'sub/my evals'" in done.stdout
    assert run_pytest(tmp_path, "--ctx-cache", "sub/my evals").returncode == 0


def test_nothing_is_overwritten(ctxfp, tmp_path) -> None:
    """Each file that exists stays byte for byte, and what it needs is printed."""
    for name in STARTER - {"pytest.ini"}:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"mine\r\n")
    (tmp_path / "pytest.ini").write_bytes(b"[pytest]\nctx_agent_paths = mine.py\n")
    before = files_of(tmp_path)
    done = ctxfp("init")
    assert done.returncode == 0
    assert files_of(tmp_path) == before
    assert len(re.findall("^left ", done.stdout, flags=re.MULTILINE)) == len(STARTER) - 1
    printed = as_printed(done.stdout).splitlines()
    assert {".ctxfp/", "__pycache__/", *filter(None, CONFTEST.splitlines())} <= set(printed)
    assert (
        "add to pytest.ini:\n    [pytest]\n    pythonpath = .\n    ctx_agent_paths = my_agent.py\n"
        in done.stdout
    )


def test_a_second_time_changes_nothing_and_asks_for_nothing(ctxfp, tmp_path) -> None:
    """Where all is there already, there is nothing to add."""
    ctxfp("init")
    before = files_of(tmp_path)
    done = ctxfp("init")
    assert files_of(tmp_path) == before
    assert "add to" not in done.stdout
    assert done.stdout.count("it has what is needed") == len(STARTER) - 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '-q'\n"),
        ("pyproject.toml", "[tool.other]\n"),
        ("setup.cfg", "[tool:pytest]\n"),
        ("pytest.ini", ""),
    ],
    ids=["pyproject", "pyproject-of-others", "setup-cfg", "empty-pytest-ini"],
)
def test_printed_lines_are_all_that_an_existing_ini_file_needs(ctxfp, tmp_path, name, text) -> None:
    """Beside an ini file no other is written; with the printed lines pasted into it, the suite passes."""
    (tmp_path / name).write_text(text)
    done = ctxfp("init", "evals of mine")
    assert (tmp_path / name).read_text() == text
    assert not (tmp_path / "evals of mine" / "pytest.ini").exists()
    assert (tmp_path / WORKFLOW_PATH).exists()
    added = as_printed(done.stdout.partition(f"add to {name}:")[2])
    header = added.splitlines()[0]
    pasted = text.replace(f"{header}\n", added) if header in text else text + added
    (tmp_path / name).write_text(pasted)
    run = run_pytest(tmp_path, "--ctx-cache")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "3 passed" in run.stdout
    assert "add to" not in ctxfp("init", "evals of mine").stdout


def test_the_native_table_of_pyproject_is_named(ctxfp, tmp_path) -> None:
    """A project that configures pytest in [tool.pytest] is told to add to that table, not to another."""
    (tmp_path / "pyproject.toml").write_text("[tool.pytest]\nminversion = '9'\n")
    added = as_printed(ctxfp("init").stdout.partition("add to pyproject.toml:")[2])
    assert added.splitlines()[:2] == ["[tool.pytest]", 'pythonpath = ["."]']


def test_a_dangling_link_is_left(ctxfp, tmp_path) -> None:
    """A link that leads nowhere is something that exists: nothing is written through it."""
    (tmp_path / "conftest.py").symlink_to(tmp_path / "elsewhere.py")
    assert "left      conftest.py: it exists; add to it:" in ctxfp("init").stdout
    assert not (tmp_path / "elsewhere.py").exists()


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda folder: (folder / "evals").write_text("x"), "evals: is no folder"),
        (lambda folder: (folder / "pyproject.toml").write_text("[tool"), "pyproject.toml: can't be read"),
        (lambda folder: (folder / "evals" / "conftest.py").mkdir(parents=True), None),
    ],
    ids=["file", "broken-ini", "folder-in-a-files-place"],
)
def test_hindrances(ctxfp, tmp_path, make, fault) -> None:
    """What hinders is told on one line before anything is written; a folder in a file's place is left."""
    make(tmp_path)
    before = files_of(tmp_path)
    done = ctxfp("init", "evals")
    if fault is None:
        assert "conftest.py: it exists" in done.stdout
        return
    assert done.returncode == 2
    assert done.stderr.startswith("ctxfp: ")
    assert fault in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert files_of(tmp_path) == before


def test_the_workflow_is_one_and_runs_flags_that_exist(ctxfp, tmp_path) -> None:
    """The CI recipe parses, and pytest takes every flag in it."""
    ctxfp("init")
    workflow = yaml.safe_load((tmp_path / WORKFLOW_PATH).read_text(encoding="utf-8"))
    steps = workflow["jobs"]["golden"]["steps"]
    commands = [step["run"] for step in steps if "pytest --" in step.get("run", "")]
    assert len(commands) == 2
    record, hold = commands
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    (tmp_path / "pytest").write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest -p no:asyncio "$@"\n')
    (tmp_path / "pytest").chmod(0o755)
    for command, shown in ((hold, "3 passed"), (record, "3 passed"), (hold, "gate       GREEN")):
        run = ["bash", "-e", "-c", command]
        done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert shown.lower() in done.stdout.lower()


def test_the_schema_is_the_one_that_is_printed(ctxfp, tmp_path) -> None:
    """What init writes is what `ctxfp schema` prints."""
    ctxfp("init")
    written = (tmp_path / "golden.schema.json").read_text(encoding="ascii")
    assert written == ctxfp("schema").stdout
    assert golden_schema()["title"] in written
