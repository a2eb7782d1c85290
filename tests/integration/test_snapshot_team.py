"""Snapshots of a team: many at once, repeated runs, files that git or a disk got at, readable messages."""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project

MANY = """
import pytest

@pytest.mark.parametrize("n", range(400))
def test_many(n, ctx_snapshot):
    ctx_snapshot.check(f"## A\\n{n}VERSION\\n")
"""
ONE = """
def test_one(ctx_snapshot):
    ctx_snapshot.check("## A\\none\\n## B\\ntwo\\n")
"""


def stored_file(project: Project, name: str = "test_one") -> str:
    """Return the text of a snapshot file."""
    return (project.path / f"__ctxfp__/{name}.ctxfp").read_text()


def test_updates_from_two_workers_are_all_kept(empty_project: Project) -> None:
    """400 created and then 400 changed snapshots of one module, from two workers: every one is stored."""
    empty_project.write("test_many.py", MANY.replace("VERSION", ""))
    empty_project.run("-n2", "--ctx-snapshot-create").assert_outcomes(passed=400)
    assert stored_file(empty_project, "test_many").count('"key"') == 400
    empty_project.write("test_many.py", MANY.replace("VERSION", "!"))
    empty_project.run("-n2", "--ctx-snapshot-update").assert_outcomes(passed=400)
    result = empty_project.run()
    result.assert_outcomes(passed=400)
    result.stdout.fnmatch_lines(["snapshots*400 matched"])
    assert len(list((empty_project.path / "__ctxfp__/test_many").iterdir())) == 400


@pytest.mark.parametrize("how", [[], ["-n2"]], ids=["plain", "xdist"])
def test_of_reruns_the_last_attempt_wins(empty_project: Project, how: list[str]) -> None:
    """A test that is run again counts once, with what its last attempt saw."""
    empty_project.write(
        "test_again.py",
        "import pathlib\n"
        "def test_again(ctx_snapshot):\n"
        "    log = pathlib.Path(__file__).with_name('attempts')\n"
        "    n = len(log.read_text()) if log.exists() else 0\n"
        "    log.write_text('x' * (n + 1))\n"
        "    ctx_snapshot.check(f'## A\\nattempt {n}\\n')\n"
        "    assert n >= 2\n",
    )
    result = empty_project.run("--reruns=3", "--ctx-snapshot-update", *how)
    result.stdout.fnmatch_lines(["snapshots*1 written"])
    [text] = (empty_project.path / "__ctxfp__/test_again").iterdir()
    assert text.read_text() == "## A\nattempt 2\n"


def test_modules_of_the_same_name(empty_project: Project) -> None:
    """Two modules of one name in two folders keep their snapshots apart."""
    for folder in ("a", "b"):
        empty_project.write(f"{folder}/test_one.py", ONE.replace("one\\n", f"{folder}\\n"))
    empty_project.run("--ctx-snapshot-create").assert_outcomes(passed=2)
    empty_project.run().assert_outcomes(passed=2)
    for folder in ("a", "b"):
        [text] = (empty_project.path / folder / "__ctxfp__/test_one").iterdir()
        assert text.read_text() == f"## A\n{folder}\n## B\ntwo\n"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: "<<<<<<< ours\n" + text + "=======\n>>>>>>> theirs\n", "*conflict*"),
        (lambda text: text + text.split("\n", 1)[1], "*test_one.ctxfp:5:*glued two sides*"),
        (lambda text: text.replace('{"ctxfp": 1}', '{"ctxfp": 99}'), "*test_one.ctxfp:1:*99*"),
        (lambda text: text[: len(text) // 2], "*test_one.ctxfp:*"),
        (lambda _: "", "*test_one.ctxfp*"),
        (lambda text: text.replace('"B", "', '"B", "zz'), "*test_one.ctxfp:4:*"),
    ],
    ids=["conflict", "glued", "version", "truncated", "empty", "edited"],
)
def test_broken_files_fail_and_are_never_rewritten(empty_project: Project, damage: object, says: str) -> None:
    """A snapshot file that can't be read fails its tests with file, line and remedy; no flag rewrites it."""
    empty_project.write("test_one.py", ONE)
    empty_project.run("--ctx-snapshot-create")
    broken = damage(stored_file(empty_project))  # type: ignore[operator]
    empty_project.write("__ctxfp__/test_one.ctxfp", broken)
    for flag in ("--ctx-snapshot-update", "--ctx-snapshot-create", "--ctx-snapshot-prune"):
        result = empty_project.run(flag)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines([f"E{says}"])
        assert stored_file(empty_project) == broken


def test_line_ends_and_a_missing_newline_do_no_harm(empty_project: Project) -> None:
    """CRLF by git and a missing final newline are read as they were meant, and not rewritten for that."""
    empty_project.write("test_one.py", ONE)
    empty_project.run("--ctx-snapshot-create")
    file = empty_project.path / "__ctxfp__/test_one.ctxfp"
    text = stored_file(empty_project)
    for variant in (text.replace("\n", "\r\n"), text.rstrip("\n")):
        file.write_bytes(variant.encode())
        empty_project.run().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("call", "code"),
    [("fsync", errno.ENOSPC), ("replace", errno.EROFS), ("replace", errno.EACCES)],
)
def test_a_disk_that_refuses_fails_the_run_and_leaves_the_old_file(
    empty_project: Project, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    """A full disk or read-only folder while writing: exit 1, a line naming the file, the old one whole."""
    empty_project.write("test_one.py", ONE)
    empty_project.run("--ctx-snapshot-create")
    before = stored_file(empty_project)
    empty_project.write("test_one.py", ONE.replace("two", "three"))

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        result = empty_project.run("--ctx-snapshot-update")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["snapshots*1 not written", f"snapshots not written: *{os.strerror(code)}*"])
    assert stored_file(empty_project) == before
    folder = empty_project.path / "__ctxfp__"
    assert [p.name for p in folder.rglob("*") if p.suffix not in {".ctxfp", ".md", ""}] == []


def test_ids_that_a_file_system_confuses_get_files_of_their_own(empty_project: Project) -> None:
    """Ids that differ only in case, or in characters that file names can't hold, have a text file each."""
    empty_project.write(
        "test_ids.py",
        "import pytest\n"
        "@pytest.mark.parametrize('p', ['a', 'A', 'a:b', 'a?b', 'CON', 'x' * 300, '../up'])\n"
        "def test_ids(p, ctx_snapshot): ctx_snapshot.check(p)\n",
    )
    empty_project.run("--ctx-snapshot-create").assert_outcomes(passed=7)
    names = [path.name for path in (empty_project.path / "__ctxfp__/test_ids").iterdir()]
    assert len({name.casefold() for name in names}) == 7
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,110}\.md", name) for name in names)
    empty_project.run().assert_outcomes(passed=7)


HUNDRED = """
def test_hundred(ctx_snapshot):
    ctx_snapshot.check("".join(f"## Layer {n}\\n{n}VERSION\\n" for n in range(100)))
"""


@pytest.mark.parametrize(
    "flags", [[], ["-q"], ["--tb=no"], ["--assert=plain"], ["--tb=line"], ["-n2"]], ids=str
)
def test_a_hundred_changed_layers_stay_readable(
    empty_project: Project, monkeypatch: pytest.MonkeyPatch, flags: list[str]
) -> None:
    """The first line counts, names a few and fits the short summary; rows are capped; CI or not."""
    monkeypatch.setenv("COLUMNS", "80")
    empty_project.write("test_hundred.py", HUNDRED.replace("VERSION", ""))
    empty_project.run("--ctx-snapshot-create")
    empty_project.write("test_hundred.py", HUNDRED.replace("VERSION", "!"))
    for ci in (False, True):
        if ci:
            monkeypatch.setenv("CI", "true")
        result = empty_project.run("-rf", *flags)
        result.stdout.fnmatch_lines(["FAILED test_hundred.py::test_hundred - 100 layers changed: *"])
        assert len(result.outlines) < 500


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("x y", "x  y", "only white space"),
        ("x\\ny", "x\\r\\ny", "line ends"),
        ("caf\\u00e9", "cafe\\u0301", "Unicode normalisation"),
    ],
)
def test_changes_that_cannot_be_seen_are_named(
    empty_project: Project, before: str, after: str, says: str
) -> None:
    """A change that is only white space, line ends or Unicode normalisation says so."""
    test = 'def test_it(ctx_snapshot): ctx_snapshot.check("## A\\n{}\\n")\n'
    empty_project.write("test_it.py", test.format(before))
    empty_project.run("--ctx-snapshot-create")
    empty_project.write("test_it.py", test.format(after))
    empty_project.run().stdout.fnmatch_lines([f"E*~ A *{says}*"])


def test_one_move_is_one_row(empty_project: Project) -> None:
    """A layer that moved over six others is one row, not seven."""
    layers = [f"## L{n}\n{n}\n" for n in range(7)]
    test = "def test_it(ctx_snapshot): ctx_snapshot.check({!r})\n"
    empty_project.write("test_it.py", test.format("".join(layers)))
    empty_project.run("--ctx-snapshot-create")
    empty_project.write("test_it.py", test.format("".join([*layers[1:], layers[0]])))
    result = empty_project.run()
    result.stdout.fnmatch_lines(["E*SnapshotMismatch: 1 layer moved: L0*", "E*> L0 *now after L6*"])
    assert len([line for line in result.outlines if re.match(r"E\s+> ", line)]) == 1


def test_summary_names_each(empty_project: Project) -> None:
    """The summary counts matched, changed, missing and unused snapshots and names all but the first."""
    module = (
        "def test_same(ctx_snapshot): ctx_snapshot.check('a')\n"
        "def test_other(ctx_snapshot): ctx_snapshot.check('b')\n"
        "def test_gone(ctx_snapshot): ctx_snapshot.check('c')\n"
    )
    empty_project.write("test_it.py", module)
    empty_project.run("--ctx-snapshot-create")
    empty_project.write(
        "test_it.py",
        module.replace("'b'", "'bb'").replace("test_gone", "test_new"),
    )
    empty_project.run().stdout.fnmatch_lines(
        [
            "snapshots*1 matched, 1 changed, 1 missing, 1 unused",
            "*changed*__ctxfp__/test_it.ctxfp: test_other#0",
            "*missing*__ctxfp__/test_it.ctxfp: test_new#0",
            "*unused*__ctxfp__/test_it.ctxfp: test_gone#0",
        ]
    )


EVERYWHERE = """
import asyncio
import pytest

def check_twice(ctx_snapshot, context):
    for name in ("first", "second"):
        ctx_snapshot.check(context, name=f"{name} of {context}")

def test_loop_and_helper(ctx_snapshot):
    for context in ("a", "b"):
        check_twice(ctx_snapshot, context)

@pytest.fixture
def context(ctx_snapshot):
    ctx_snapshot.check("from a fixture", name="fixture")
    yield "x"
    ctx_snapshot.check("from its teardown", name="teardown")

def test_fixture(context): pass

def test_async(ctx_snapshot):
    async def body():
        await asyncio.sleep(0)
        assert "from a loop" == ctx_snapshot
    asyncio.run(body())

def test_mapping(ctx_snapshot):
    ctx_snapshot.check({"System": "be brief", "User": "hello"})

def test_split(ctx_snapshot):
    from pytest_ctxfp import Layer
    def split(text):
        half = len(text) // 2
        return [Layer(key="one", name="one", header="", body=text[:half]),
                Layer(key="two", name="two", header="", body=text[half:])]
    ctx_snapshot.check("abcd", split=split)
"""


def test_wherever_it_is_called(empty_project: Project) -> None:
    """``check`` works in loops, helpers, fixtures and async tests, with mappings and splitters."""
    empty_project.write("test_everywhere.py", EVERYWHERE)
    empty_project.run("--ctx-snapshot-create").assert_outcomes(passed=5)
    result = empty_project.run()
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["snapshots*9 matched"])
    empty_project.edit("test_everywhere.py", '"User": "hello"', '"User": "hello!"')
    empty_project.edit("test_everywhere.py", '"abcd"', '"abxd"')
    result = empty_project.run()
    result.stdout.fnmatch_lines(["E*1 layer changed: User (+1 byte)*"])
    result.stdout.fnmatch_lines(["E*1 layer changed: two*"])


def test_repeated_tests_have_names_of_their_own(empty_project: Project) -> None:
    """A plugin that repeats a test by renaming it needs a snapshot for each name: those are missing."""
    empty_project.write("test_one.py", ONE)
    empty_project.run("--ctx-snapshot-create")
    empty_project.write(
        "conftest.py",
        "def pytest_generate_tests(metafunc):\n"
        "    metafunc.fixturenames.append('step')\n"
        "    metafunc.parametrize('step', range(2))\n",
    )
    result = empty_project.run()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["E*no snapshot is stored for test_one[[]0]#0*"])
