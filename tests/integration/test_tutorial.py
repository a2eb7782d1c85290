"""The tutorial, followed word for word: its commands run in order, its files are written, edits are made."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
STEP = re.compile(r"<!-- (run|show|write|edit)(?:: (\S+))? -->\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"), "TIME"),
    (re.compile(r"agent [0-9a-f]{12}"), "agent SHA"),
)
PYTEST = [
    *(sys.executable, "-m", "pytest", "-p", "no:asyncio", "-p", "no:anyio"),
    *("-p", "no:hypothesispytest", "-p", "no:rerunfailures"),
]
CTXFP = [sys.executable, "-c", "import sys; from pytest_ctxfp._cli import main; sys.exit(main())"]
RED = ("Frr", "F..", "E       ")
"""What stands in the output of a run that fails."""


@dataclass(frozen=True, slots=True)
class Step:
    """What the page has a reader do: run commands, look at a file, write one, or edit one."""

    kind: str
    name: str
    text: str


STEPS = [Step(*groups) for groups in STEP.findall(PAGE)]


class Reader:
    """Follows the page in a folder of its own."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self.place = programs / "place"
        self.environment = {
            **os.environ,
            # Byte code counts as current where an edit of the same second leaves the size as it was.
            "PYTHONDONTWRITEBYTECODE": "1",
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(programs),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_NAME": "A Reader" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "reader@example.org" for who in ("AUTHOR", "COMMITTER")},
        }
        for name, command in {"pytest": PYTEST, "ctxfp": CTXFP}.items():
            self._install(programs / name, f'exec {shlex.join(command)} "$@"')
        self._install(programs / "pip", 'test "$*" = "install pytest-ctxfp[xdist]" && echo installed')

    @staticmethod
    def _install(path: Path, command: str) -> None:
        path.write_text(f"#!/bin/sh\n{command}\n")
        path.chmod(0o755)

    def follow(self, step: Step) -> None:
        """Do what a step says, and check what it shows."""
        path = self.folder / step.name
        if step.kind == "run":
            self._run(step.text)
        elif step.kind == "show":
            assert path.read_text(encoding="utf-8") == step.text
        elif step.kind == "write":
            assert not path.exists()
            path.write_text(step.text, encoding="utf-8")
        else:
            path.write_text(patch(path.read_text(encoding="utf-8"), step.text), encoding="utf-8")

    def _run(self, text: str) -> None:
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            # The shell's folder is handed on, as it is between two commands of a person.
            script = f"{command}\nstatus=$?\npwd >{shlex.quote(str(self.place))}\nexit $status\n"
            done = subprocess.run(
                ["bash", "-c", script],
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                encoding="utf-8",
                check=False,
            )
            self.folder = Path(self.place.read_text().rstrip("\n"))
            is_red = any(mark in shown for mark in RED) or command == "ctxfp plan"
            assert done.returncode == is_red, done.stdout + done.stderr
            assert_shown(shown, done.stdout + done.stderr)


def patch(text: str, diff: str) -> str:
    """Return a text with the lines of a diff replaced, which must stand in it once."""
    lines = diff.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if not line.startswith("+"))
    new = "".join(line[1:] for line in lines if not line.startswith("-"))
    assert text.count(old) == 1, f"{old!r} doesn't stand in the file once"
    return text.replace(old, new)


def assert_shown(shown: str, output: str) -> None:
    """Check that the output is what is shown, line for line, where ``...`` stands for any lines."""
    wanted, given = ([_steady(line) for line in text.splitlines()] for text in (shown, output))
    pieces = [[]]
    for line in wanted:
        pieces = [*pieces, []] if line == "..." else [*pieces[:-1], [*pieces[-1], line]]
    position = 0
    for n, piece in enumerate(pieces):
        starts = [0] if n == 0 else range(position, len(given) - len(piece) + 1)
        found = next((start for start in starts if given[start : start + len(piece)] == piece), None)
        assert found is not None, "\n".join(["not shown:", *piece, "", "in:", *given])
        position = found + len(piece)
    assert not pieces[-1] or position == len(given), "\n".join(["more than is shown:", *given[position:]])


def _steady(line: str) -> str:
    for pattern, word in VARYING:
        line = pattern.sub(word, line)
    return line.rstrip()


def test_the_tutorial_works_as_it_stands(tmp_path: Path) -> None:
    """A reader who does what the page says, in order, sees what it shows, and ends with a commit."""
    programs, folder = tmp_path / "programs", tmp_path / "home"
    programs.mkdir()
    folder.mkdir()
    reader = Reader(folder, programs)
    for step in STEPS:
        reader.follow(step)
    assert reader.folder.name == "shop-evals"
    assert (reader.folder / ".git" / "refs" / "heads" / "main").exists()


def test_no_block_of_the_tutorial_is_left_out() -> None:
    """Every block that shows a command, a file or an edit is one that the test above follows."""
    blocks = re.findall(r"^```(\w+)$", PAGE, flags=re.MULTILINE)
    kinds = [step.kind for step in STEPS]
    assert len(STEPS) == len(blocks)
    assert {"run", "show", "write", "edit"} == set(kinds)


@pytest.mark.parametrize(
    ("shown", "output"),
    [
        ("a\nc\n", "a\nb\nc\n"),
        ("...\nb\n", "a\nb\nc\n"),
        ("b\n...\n", "a\nb\n"),
        ("...\nb\n...\na\n", "a\nb\n"),
    ],
    ids=["left-out", "more", "not-first", "order"],
)
def test_other_output_is_refused(shown: str, output: str) -> None:
    """Output that isn't what is shown fails: lines left out unsaid, or in another order."""
    with pytest.raises(AssertionError):
        assert_shown(shown, output)
