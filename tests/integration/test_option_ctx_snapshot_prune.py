"""Unused snapshots: found by evidence, never by silence; ``--ctx-snapshot-prune`` deletes just these."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .conftest import Project

MODULE_A = """
import pytest

@pytest.mark.slow
def test_one(ctx_snapshot):
    ctx_snapshot.check("one")

@pytest.mark.parametrize("p", ["x", "y"])
def test_two(p, ctx_snapshot):
    ctx_snapshot.check(p)

class TestThree:
    def test_three(self, ctx_snapshot):
        ctx_snapshot.check("three", name="first")
        ctx_snapshot.check("four", name="second")
"""
MODULE_B = """
def test_b(ctx_snapshot):
    ctx_snapshot.check("b")
"""


@pytest.fixture
def suite(empty_project: Project) -> Project:
    """Two modules in a folder with six stored snapshots."""
    empty_project.write("pytest.ini", "[pytest]\nmarkers = slow: takes long\n")
    empty_project.write("tests/test_a.py", MODULE_A)
    empty_project.write("tests/test_b.py", MODULE_B)
    empty_project.run("--ctx-snapshot-create").stdout.fnmatch_lines(["snapshots*6 written"])
    return empty_project


def snapshots(project: Project) -> dict[str, bytes]:
    """Return every file of the snapshots."""
    folder: Path = project.path / "tests"
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("__ctxfp__/**/*")) if path.is_file()}


INTERRUPT = "def test_stop():\n    raise KeyboardInterrupt\n"
EXIT = "import pytest\ndef test_stop():\n    pytest.exit('enough')\n"
CRASH = "import os\ndef test_crash():\n    os._exit(3)\n"
BROKEN_IMPORT = "import nowhere_to_be_found\n"
FAILS_FIRST = MODULE_A.replace('    ctx_snapshot.check("one")', '    assert 0\n    ctx_snapshot.check("one")')
SKIPS = MODULE_A.replace(
    '    ctx_snapshot.check("one")', '    pytest.skip("no")\n    ctx_snapshot.check("one")'
)
XFAILS = MODULE_A.replace("@pytest.mark.slow", "@pytest.mark.xfail(strict=False)").replace(
    '    ctx_snapshot.check("one")', "    pass"
)
BAD_FIXTURE = MODULE_A.replace("def test_one(", "@pytest.fixture\ndef bad(): assert 0\n\ndef test_one(bad, ")


def in_ways(what: Iterable[str], *, some: Iterable[str]) -> list[tuple[str, str]]:
    """Return everything plainly, and some of it on two workers and with xdist absent."""
    return [
        *((name, "plain") for name in what),
        *((name, way) for name in some for way in ("xdist", "without-xdist")),
    ]


RUNS: dict[str, tuple[list[str], dict[str, str]]] = {
    "-k": (["-k", "test_one"], {}),
    "-m": (["-m", "slow"], {}),
    "node id": (["tests/test_a.py::test_one"], {}),
    "class id": (["tests/test_a.py::TestThree"], {}),
    "parameter id": (["tests/test_a.py::test_two[x]", "tests/test_b.py"], {}),
    "--deselect": (["--deselect=tests/test_a.py::test_two"], {}),
    "--ignore": (["--ignore=tests/test_a.py"], {}),
    "--ignore-glob": (["--ignore-glob=*_b.py"], {}),
    "one file": (["tests/test_b.py"], {}),
    "--nf": (["--nf"], {}),
    "-x": (["-x"], {"tests/test_0.py": "def test_fails(): assert 0\n"}),
    "--maxfail": (["--maxfail=1"], {"tests/test_0.py": "def test_fails(): assert 0\n"}),
    "Ctrl-C": ([], {"tests/test_0.py": INTERRUPT}),
    "pytest.exit": ([], {"tests/test_0.py": EXIT}),
    "--co": (["--co"], {}),
    "--setup-only": (["--setup-only"], {}),
    "--setup-plan": (["--setup-plan"], {}),
    "import error": ([], {"tests/test_0.py": BROKEN_IMPORT}),
    "import error, continued": (
        ["--continue-on-collection-errors"],
        {"tests/test_b.py": BROKEN_IMPORT + MODULE_B},
    ),
    "failing fixture": ([], {"tests/test_a.py": BAD_FIXTURE}),
    "assertion before": ([], {"tests/test_a.py": FAILS_FIRST}),
    "skip": ([], {"tests/test_a.py": SKIPS}),
    "xfail that passes": ([], {"tests/test_a.py": XFAILS}),
    "nothing changed": ([], {}),
}


@pytest.mark.parametrize(
    ("run", "how"), in_ways(RUNS, some=["-k", "one file", "--setup-plan"]), indirect=["how"]
)
def test_live_snapshots_are_left_alone(suite: Project, run: str, how: list[str]) -> None:
    """No partial, stopped or failing run calls a live snapshot unused, and prune deletes none."""
    arguments, files = RUNS[run]
    for name, text in files.items():
        suite.write(name, text)
    before = snapshots(suite)
    start = suite.run_apart if run == "Ctrl-C" else suite.run
    result = start("--ctx-snapshot-prune", *arguments, *how)
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    assert "unused" not in result.stdout.str()
    assert "pruned" not in result.stdout.str()
    assert snapshots(suite) == before


@pytest.mark.parametrize("flags", [["--lf"], ["--sw"], ["--ff"], ["--lf", "-n2"]], ids=" ".join)
def test_runs_after_a_failure(suite: Project, flags: list[str]) -> None:
    """``--lf``, ``--sw`` and ``--ff`` after a failure leave tests out, and conclude nothing from that."""
    suite.write("tests/test_0.py", "def test_fails(): assert 0\n")
    suite.write("tests/test_a.py", FAILS_FIRST)
    suite.run_apart()
    before = snapshots(suite)
    result = suite.run_apart("--ctx-snapshot-prune", *flags)
    assert "pruned" not in result.stdout.str()
    assert snapshots(suite) == before


@pytest.mark.parametrize(
    "arguments", [["-n2"], ["-n2", "-x"], ["-n2", "--max-worker-restart=0"]], ids=" ".join
)
def test_crash_of_a_worker(suite: Project, arguments: list[str]) -> None:
    """A worker that dies takes no snapshot with it."""
    suite.write("tests/test_0.py", CRASH)
    before = snapshots(suite)
    result = suite.run_apart("--ctx-snapshot-prune", *arguments)
    assert "pruned" not in result.stdout.str()
    assert snapshots(suite) == before


INTERRUPTED_TEST = """
import os
import signal

def test_stop():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
    os.kill(os.getpid(), signal.SIGINT)
"""


def test_a_real_ctrl_c(suite: Project) -> None:
    """SIGINT in the middle of a run deletes nothing and still prints the summary of what ran."""
    suite.write("tests/test_0.py", INTERRUPTED_TEST)
    before = snapshots(suite)
    result = suite.run_apart("--ctx-snapshot-prune")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert snapshots(suite) == before


FOUND: dict[str, tuple[dict[str, tuple[str, str] | None], list[str]]] = {
    "test removed": ({"tests/test_b.py": (MODULE_B, "def test_other(): pass\n")}, ["test_b#0"]),
    "parameter removed": ({"tests/test_a.py": ('["x", "y"]', '["x"]')}, ["test_two[y]#0"]),
    "name changed": (
        {"tests/test_a.py": ('name="second"', 'name="zweite"')},
        ["TestThree::test_three#second"],
    ),
    "check removed": ({"tests/test_a.py": ('    ctx_snapshot.check("one")', "    pass")}, ["test_one#0"]),
    "class renamed": (
        {"tests/test_a.py": ("class TestThree", "class TestDrei")},
        ["TestThree::test_three#first", "TestThree::test_three#second"],
    ),
    "module deleted": ({"tests/test_b.py": None}, ["test_b#0"]),
}


@pytest.mark.parametrize(("what", "how"), in_ways(FOUND, some=["class renamed"]), indirect=["how"])
def test_what_is_gone_is_found_and_pruned(suite: Project, what: str, how: list[str]) -> None:
    """A removed test, parameter, name, check or module is said, kept, and deleted by prune with its text."""
    edits, unused = FOUND[what]
    for name, edit in edits.items():
        if edit is None:
            (suite.path / name).unlink()
        else:
            suite.edit(name, *edit)
    before = snapshots(suite)
    suite.run("--ctx-snapshot-create", *how)
    assert snapshots(suite).items() >= {k: v for k, v in before.items() if k.endswith(".md")}.items()
    result = suite.run(*how)
    result.stdout.fnmatch_lines([f"snapshots*{len(unused)} unused"])
    result.stdout.fnmatch_lines([f"*: {key.replace('[', '[[]')}" for key in unused])
    result.stdout.fnmatch_lines(["*--ctx-snapshot-prune"])
    result = suite.run("--ctx-snapshot-prune", *how)
    result.stdout.fnmatch_lines([f"snapshots*{len(unused)} pruned"])
    left = snapshots(suite)
    assert len([name for name in before if name.endswith(".md")]) - len(unused) <= len(
        [name for name in left if name.endswith(".md")]
    )
    assert not any(f'"{key}"'.encode() in data for key in unused for data in left.values())
    assert "unused" not in suite.run(*how).stdout.str()


def test_moved_test_moves_its_file(suite: Project) -> None:
    """A renamed test, created and pruned in one run, has its text under the new name alone."""
    suite.edit("tests/test_b.py", "def test_b(", "def test_renamed(")
    suite.run("--ctx-snapshot-create", "--ctx-snapshot-prune")
    names = sorted(path.name for path in (suite.path / "tests/__ctxfp__/test_b").iterdir())
    assert len(names) == 1
    assert names[0].startswith("test_renamed-0-")


def test_prune_leaves_nothing_behind(suite: Project) -> None:
    """With the last snapshot of a folder its files and empty folders go too."""
    suite.write("tests/test_a.py", "def test_plain(): pass\n")
    suite.write("tests/test_b.py", "def test_plain(): pass\n")
    suite.run("--ctx-snapshot-prune").stdout.fnmatch_lines(["snapshots*6 pruned"])
    assert not (suite.path / "tests/__ctxfp__").exists()


def test_broken_file_is_never_pruned(suite: Project) -> None:
    """A snapshot file with conflict markers is left as it is, whatever the run proves."""
    file = suite.path / "tests/__ctxfp__/test_b.ctxfp"
    file.write_text("<<<<<<< ours\n" + file.read_text())
    text = file.read_text()
    suite.write("tests/test_b.py", "def test_plain(): pass\n")
    suite.run("--ctx-snapshot-prune")
    assert file.read_text() == text


def test_doctest_globs_do_not_collect_the_texts(suite: Project) -> None:
    """Texts of snapshots are not collected as doctests."""
    suite.write("tests/test_b.py", MODULE_B.replace('"b"', '">>> 1\\n2\\n"'))
    suite.run("--ctx-snapshot-update")
    suite.run("--doctest-glob=*.md").assert_outcomes(passed=5)


def test_snapshots_of_unrelated_folders_are_not_looked_at(suite: Project) -> None:
    """A run of one folder says nothing of another's snapshots, even if their module is gone."""
    suite.write("other/test_c.py", MODULE_B.replace("test_b", "test_c"))
    suite.run("--ctx-snapshot-create", "other")
    os.remove(suite.path / "tests/test_b.py")
    assert "unused" not in suite.run("other").stdout.str()
    suite.run().stdout.fnmatch_lines(["snapshots*1 unused"])
