"""``ctx_snapshot``: create, match, and every kind of change, as a user sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project

CONTEXT = (
    "## Identity\nYou answer.\n\n## Business Rules\n- count all\n\n## Document\none\n\n## Document\ntwo\n"
)
TEST = """
import pathlib
import pytest

HERE = pathlib.Path(__file__).parent

def test_context(ctx_snapshot):
    ctx_snapshot.check((HERE / "context.md").read_bytes().decode("utf-8", "surrogateescape"))
"""
FILES = ["__ctxfp__/test_context.ctxfp", "__ctxfp__/test_context/test_context-0-"]


@pytest.fixture
def snapshots(empty_project: Project) -> Project:
    """A project with one test of one context, whose snapshot is stored."""
    empty_project.write("test_context.py", TEST)
    empty_project.write("context.md", CONTEXT)
    empty_project.run("--ctx-snapshot-create").assert_outcomes(passed=1)
    return empty_project


def stored(project: Project) -> dict[str, bytes]:
    """Return every file of the snapshots, by name."""
    folder = project.path / "__ctxfp__"
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_missing_snapshot_fails_and_create_stores_it(empty_project: Project, how: list[str]) -> None:
    """A missing snapshot fails and shows the command; that command stores it, and then the test passes."""
    empty_project.write("test_context.py", TEST)
    empty_project.write("context.md", CONTEXT)
    result = empty_project.run(*how)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*SnapshotMissing: no snapshot is stored for test_context#0 (4 layers, 89 bytes)",
            "E*store it with: pytest test_context.py::test_context --ctx-snapshot-create",
            "snapshots*1 missing",
            "FAILED test_context.py::test_context - no snapshot is stored*",
        ]
    )
    assert not (empty_project.path / "__ctxfp__").exists()
    result = empty_project.run("--ctx-snapshot-create", *how)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["snapshots*1 written"])
    result = empty_project.run(*how)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["snapshots*1 matched"])


def test_file_format(snapshots: Project) -> None:
    """The snapshot file is JSON Lines: version, snapshot, a line a layer; the text is the context itself."""
    files = stored(snapshots)
    [text_name] = [name for name in files if name.endswith(".md")]
    assert text_name.startswith("test_context/test_context-0-")
    assert files[text_name] == CONTEXT.encode()
    lines = files["test_context.ctxfp"].decode().splitlines()
    assert lines[0] == '{"ctxfp": 1}'
    assert lines[1].startswith('{"key": "test_context#0", "sha256": "')
    assert lines[1].endswith(', "bytes": 89, "layers": 4}')
    assert [line.split('"')[1] for line in lines[2:]] == [
        "Identity",
        "Business Rules",
        "Document",
        "Document#2",
    ]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("count all", "count some", ["1 layer changed: Business Rules (+1 byte)*", "*  ~ Business Rules  *"]),
        ("count all", "count few", ["1 layer changed: Business Rules (same number of bytes)*"]),
        ("## Business", "## Facts\nx\n\n## Business", ["1 layer added: Facts (+*", "*  + Facts  *"]),
        (
            "## Business Rules\n- count all\n\n",
            "",
            ["1 layer removed: Business Rules (-*", "*  - Business Rules*"],
        ),
        (
            "## Identity\nYou answer.\n\n## Business Rules\n- count all\n\n",
            "## Business Rules\n- count all\n\n## Identity\nYou answer.\n\n",
            ["1 layer moved: *"],
        ),
        (
            "## Business Rules\n",
            "##  Business Rules \n",
            ["1 layer changed: Business Rules*", "*only its header*"],
        ),
        ("## Document\none\n\n", "", ["1 layer removed: Document (-*", "*3 layers unchanged*"]),
        ("You answer.\n", "You answer. \n", ["1 layer changed: Identity*", "*only white space*"]),
        ("You answer.\n", "You answer.\r\n", ["1 layer changed: Identity*", "*line ends*"]),
    ],
    ids=["change", "same-size", "add", "remove", "reorder", "header", "duplicate", "space", "line-end"],
)
def test_changes_are_named(snapshots: Project, old: str, new: str, says: list[str]) -> None:
    """Each kind of change fails with a first line that begins with the layers, and is accepted by
    ``--ctx-snapshot-update``, after which a second update changes no byte.
    """
    before = stored(snapshots)
    snapshots.edit("context.md", old, new)
    result = snapshots.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*SnapshotMismatch: " + says[0], *(f"E{line}" for line in says[1:])])
    result.stdout.fnmatch_lines(
        ["E*accept with: pytest test_context.py::test_context --ctx-snapshot-update", "snapshots*1 changed"]
    )
    result.stdout.fnmatch_lines([f"FAILED test_context.py::test_context - {says[0][:20]}*"])
    assert stored(snapshots) == before
    snapshots.run("--ctx-snapshot-create").assert_outcomes(failed=1)
    assert stored(snapshots) == before
    snapshots.run("--ctx-snapshot-update").assert_outcomes(passed=1)
    after = stored(snapshots)
    assert after != before
    snapshots.run("--ctx-snapshot-update").stdout.fnmatch_lines(["snapshots*1 matched"])
    assert stored(snapshots) == after
    snapshots.run().assert_outcomes(passed=1)


def test_diff_on_a_fresh_clone(snapshots: Project, how: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``CI=true`` and nothing but the committed files, the changed layer's diff is shown."""
    monkeypatch.setenv("CI", "true")
    snapshots.edit("context.md", "- count all", "- count all\n- but no tests")
    result = snapshots.run(*how)
    result.stdout.fnmatch_lines(
        [
            "*context diff: test_context#0*",
            "--- Business Rules (stored)",
            "+++ Business Rules (now)",
            "+- but no tests",
        ]
    )
    result.stdout.fnmatch_lines(["FAILED * - 1 layer changed: Business Rules (+*"])
    assert "one" not in result.stdout.str().split("context diff")[1]


def test_diff_survives_line_ends_that_git_changed(snapshots: Project) -> None:
    """A text file with CRLF still gives the diff; the hashes decide, so the same context passes."""
    [text] = (snapshots.path / "__ctxfp__/test_context").iterdir()
    text.write_bytes(text.read_bytes().replace(b"\n", b"\r\n"))
    snapshots.run().assert_outcomes(passed=1)
    snapshots.edit("context.md", "count all", "count some")
    snapshots.run().stdout.fnmatch_lines(["-- count all", "+- count some"])


def test_no_text_no_diff(snapshots: Project) -> None:
    """Where the text is not at hand the failure says so; the hashes still name the layer."""
    [text] = (snapshots.path / "__ctxfp__/test_context").iterdir()
    text.unlink()
    snapshots.edit("context.md", "count all", "count some")
    snapshots.run().stdout.fnmatch_lines(["E*1 layer changed: Business Rules*", "no diff: no text*"])


@pytest.mark.parametrize("where", ["local", "none"])
def test_texts_elsewhere_or_nowhere(empty_project: Project, where: str) -> None:
    """Ini ``ctx_snapshot_text``: ``local`` keeps texts below ``.ctxfp/layers``, ``none`` keeps none."""
    empty_project.write("pytest.ini", f"[pytest]\nctx_snapshot_text = {where}\n")
    empty_project.write("test_context.py", TEST)
    empty_project.write("context.md", CONTEXT)
    empty_project.run("--ctx-snapshot-create").assert_outcomes(passed=1)
    assert list(stored(empty_project)) == ["test_context.ctxfp"]
    assert len(list(empty_project.path.glob(".ctxfp/layers/**/*.md"))) == (where == "local")
    empty_project.edit("context.md", "count all", "count some")
    result = empty_project.run()
    result.stdout.fnmatch_lines(["+- count some" if where == "local" else "no diff: no text*"])
    empty_project.run("--ctx-snapshot-update").assert_outcomes(passed=1)
    empty_project.run().assert_outcomes(passed=1)


def test_bad_ini_value_is_a_usage_error(empty_project: Project) -> None:
    """Another word for ``ctx_snapshot_text`` is refused with those there are."""
    empty_project.write("pytest.ini", "[pytest]\nctx_snapshot_text = always\n")
    empty_project.write("test_context.py", TEST)
    empty_project.write("context.md", CONTEXT)
    result = empty_project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *ctx_snapshot_text = 'always'*commit, local, none*"])


def test_equality_and_names(empty_project: Project) -> None:
    """``assert context == ctx_snapshot`` checks too; several checks of a test are counted or named."""
    empty_project.write(
        "test_many.py",
        "def test_many(ctx_snapshot):\n"
        "    assert 'a' == ctx_snapshot\n"
        "    assert ctx_snapshot == 'b'\n"
        "    ctx_snapshot.check('c', name='third')\n"
        "    ctx_snapshot.check({'A': 'x', 'B': 'y'}, 'fourth')\n",
    )
    empty_project.run("--ctx-snapshot-create").stdout.fnmatch_lines(["snapshots*4 written"])
    text = (empty_project.path / "__ctxfp__/test_many.ctxfp").read_text()
    for key in ("#0", "#1", "#third", "#fourth"):
        assert f'"key": "test_many{key}"' in text
    empty_project.run().stdout.fnmatch_lines(["snapshots*4 matched"])
    empty_project.edit("test_many.py", "'a' ==", "'z' ==")
    result = empty_project.run("--assert=plain")
    result.stdout.fnmatch_lines(["E*SnapshotMismatch: 1 layer changed: (preamble)*"])


def test_same_name_twice_is_an_error_with_both_lines(empty_project: Project) -> None:
    """A name used twice in one test is an error at once that names both lines."""
    empty_project.write(
        "test_twice.py",
        "def test_twice(ctx_snapshot):\n" + "    ctx_snapshot.check('a', name='x')\n" * 2,
    )
    result = empty_project.run("--ctx-snapshot-create")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*'x' is asserted twice*test_twice.py:2 and at test_twice.py:3*"])


def test_unnamed_checks_are_counted_by_themselves(empty_project: Project) -> None:
    """A named check does not take a number from the unnamed ones; ``!=`` is refused."""
    empty_project.write(
        "test_mixed.py",
        "import pytest\nfrom pytest_ctxfp import CtxfpError\n"
        "def test_mixed(ctx_snapshot):\n    ctx_snapshot.check('a', name='1')\n    ctx_snapshot.check('b')\n"
        "    with pytest.raises(CtxfpError, match='=='):\n        assert 'a' != ctx_snapshot\n",
    )
    empty_project.run("--ctx-snapshot-create").assert_outcomes(passed=1)
    text = (empty_project.path / "__ctxfp__/test_mixed.ctxfp").read_text()
    assert '"test_mixed#0"' in text


def test_keys_are_names_not_node_ids(empty_project: Project) -> None:
    """Classes, parameters and xdist groups: the key is the names below the file, whatever a run appends."""
    empty_project.write(
        "test_keys.py",
        "import pytest\n"
        "@pytest.mark.xdist_group('g')\n"
        "class TestX:\n"
        "    @pytest.mark.parametrize('p', ['a', 'B'])\n"
        "    def test_y(self, p, ctx_snapshot): ctx_snapshot.check(p)\n",
    )
    empty_project.run("--ctx-snapshot-create").assert_outcomes(passed=2)
    text = (empty_project.path / "__ctxfp__/test_keys.ctxfp").read_text()
    assert '"key": "TestX::test_y[a]#0"' in text
    empty_project.run("-n2", "--dist=loadgroup").assert_outcomes(passed=2)


def test_golden_items_can_use_snapshots(project: Project) -> None:
    """An assembler fixture may check its context: the snapshot stands beside the golden file."""
    project.edit("conftest.py", "def ctx_assembler():\n", "def ctx_assembler(ctx_snapshot):\n")
    project.edit(
        "conftest.py",
        "    def assemble(question):\n",
        "    ctx_snapshot.check('x')\n    def assemble(question):\n",
    )
    project.run("--ctx-snapshot-create").assert_outcomes(passed=2)
    project.run().assert_outcomes(passed=2)
    assert (project.path / "__ctxfp__/golden.yaml.ctxfp").exists()


def test_modules_below_a_collector_of_their_own(project: Project) -> None:
    """Where a file is collected as several modules, each test has a snapshot under its module's name."""
    project.write(
        "conftest.py",
        """
import pytest

class Flavours(pytest.File):
    def collect(self):
        for name in ("small", "large"):
            nodeid = f"{self.nodeid}::{name}"
            yield pytest.Module.from_parent(self, path=self.path, name=name, nodeid=nodeid)

def pytest_pycollect_makemodule(module_path, parent):
    return Flavours.from_parent(parent, path=module_path)
""",
    )
    project.write(
        "test_x.py",
        "def test_context(ctx_snapshot, request):\n"
        "    ctx_snapshot.check('## Rules\\n' + request.node.parent.name + '\\n')\n",
    )
    for flags in (["--ctx-snapshot-create"], []):
        project.run_apart(*flags, "test_x.py").assert_outcomes(passed=2)
    stored = (project.path / "__ctxfp__" / "test_x.ctxfp").read_text()
    assert "small::test_context#0" in stored
    assert "large::test_context#0" in stored
