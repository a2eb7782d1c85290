"""``--ctx-snapshot-update-layer``, ``ignore`` and ``redact``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Project

TEST = """
import pathlib
HERE = pathlib.Path(__file__).parent

def test_context(ctx_snapshot):
    ctx_snapshot.check((HERE / "context.md").read_text()ARGUMENTS)
"""
CONTEXT = "## Identity\nYou answer.\n\n## Business Rules\n- count all\n\n## Recent Context\nhello\n\n"


@pytest.fixture
def checked(empty_project: Project) -> Callable[..., Project]:
    """A function that makes a project with one stored snapshot, checked with these arguments."""

    def make(arguments: str = "", context: str = CONTEXT) -> Project:
        empty_project.write("test_context.py", TEST.replace("ARGUMENTS", arguments))
        empty_project.write("context.md", context)
        empty_project.run("--ctx-snapshot-create").assert_outcomes(passed=1)
        return empty_project

    return make


def snapshot_file(project: Project) -> str:
    """Return the snapshot file's text."""
    return (project.path / "__ctxfp__/test_context.ctxfp").read_text()


def test_accepted_layer_alone_is_written(checked: Callable[..., Project], how: list[str]) -> None:
    """Where only accepted layers changed the snapshot is written, the test passes and the summary says so."""
    project = checked()
    project.edit("context.md", "count all", "count some")
    result = project.run("--ctx-snapshot-update-layer=Business Rules", *how)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["snapshots*1 written", "*written*test_context#0 (accepted: Business Rules)"])
    project.run(*how).stdout.fnmatch_lines(["snapshots*1 matched"])


@pytest.mark.parametrize("name", ["Business Rules", "Business*", "[B]usiness ?ules"])
def test_another_change_fails_and_nothing_is_written(checked: Callable[..., Project], name: str) -> None:
    """Where another layer changed too, the failure names only that one and nothing is written."""
    project = checked()
    before = snapshot_file(project)
    project.edit("context.md", "count all", "count some")
    project.edit("context.md", "You answer.", "You answer briefly.")
    result = project.run(f"--ctx-snapshot-update-layer={name}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E*1 layer changed: Identity (+8 bytes)", "E*nothing of this snapshot was written*"]
    )
    assert "~ Business Rules" not in result.stdout.str()
    assert snapshot_file(project) == before


def test_repeated_flag_accepts_several(checked: Callable[..., Project]) -> None:
    """The flag may be given several times."""
    project = checked()
    project.edit("context.md", "count all", "count some")
    project.edit("context.md", "You answer.", "You answer briefly.")
    flags = ["--ctx-snapshot-update-layer=Business Rules", "--ctx-snapshot-update-layer=Identity"]
    project.run(*flags).assert_outcomes(passed=1)
    project.run().assert_outcomes(passed=1)


def test_a_typo_is_said_at_the_end(checked: Callable[..., Project]) -> None:
    """A name that no layer of the run has is said, one that fits is not."""
    project = checked()
    result = project.run("--ctx-snapshot-update-layer=Busyness", "--ctx-snapshot-update-layer=Identity")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["warning*--ctx-snapshot-update-layer=Busyness: no layer of this run has that name"]
    )
    assert "=Identity: no layer" not in result.stdout.str()


@pytest.mark.parametrize("also", ["--ctx-snapshot-update", "--ctx-snapshot-update-layer="])
def test_contradictions_are_usage_errors(checked: Callable[..., Project], also: str) -> None:
    """Accepting all layers and only some can't both be meant; an empty name is refused."""
    result = checked().run("--ctx-snapshot-update-layer=Identity", also)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *--ctx-snapshot-update-layer*"])


def test_missing_snapshot_is_not_accepted_by_layer(empty_project: Project) -> None:
    """Accepting a layer is not creating a snapshot."""
    empty_project.write("test_context.py", TEST.replace("ARGUMENTS", ""))
    empty_project.write("context.md", CONTEXT)
    empty_project.run("--ctx-snapshot-update-layer=*").assert_outcomes(failed=1)


def test_ignored_layer_keeps_name_and_place(checked: Callable[..., Project]) -> None:
    """The content of an ignored layer may change; its absence, another name or place fail."""
    project = checked(", ignore=('Recent Context',)")
    line = '["Recent Context", null]'
    assert line in snapshot_file(project)
    project.edit("context.md", "hello", "good morning")
    project.run().assert_outcomes(passed=1)
    before = snapshot_file(project)
    project.run("--ctx-snapshot-update").assert_outcomes(passed=1)
    assert snapshot_file(project) == before
    project.write("context.md", CONTEXT.replace("## Recent Context\nhello\n\n", ""))
    project.run().stdout.fnmatch_lines(["E*1 layer removed: Recent Context*"])
    project.write("context.md", CONTEXT.replace("Recent Context", "Recent"))
    project.run().assert_outcomes(failed=1)
    project.write(
        "context.md", "## Recent Context\nx\n\n" + CONTEXT.replace("## Recent Context\nhello\n\n", "")
    )
    project.run().stdout.fnmatch_lines(["E*moved: Recent Context*"])


def test_globbed_layers_come_and_go(checked: Callable[..., Project]) -> None:
    """Five retrieved documents today, three tomorrow: layers under an ignored glob may vary in number."""
    five = "## Identity\nYou answer.\n\n" + "".join(f"## Document\n{n}\n\n" for n in range(5)) + "## End\nx\n"
    project = checked(", ignore=('Document*',)", five)
    project.write("context.md", five.replace("## Document\n1\n\n## Document\n2\n\n", ""))
    project.run().assert_outcomes(passed=1)
    project.write("context.md", five.replace("## Document\n1", "## Document\nother\n\n## Document\nmore"))
    project.run().assert_outcomes(passed=1)
    project.edit("context.md", "You answer.", "You answer briefly.")
    project.run().stdout.fnmatch_lines(["E*1 layer changed: Identity*"])


def test_redaction_works_across_lines_and_shows_in_the_text(checked: Callable[..., Project]) -> None:
    """What is redacted may vary, also across line ends; the text file shows the replacement."""
    project = checked(
        r""", redact=((r"\d{4}-\d\d-\d\d", "<date>"), (r"(?s)<secret>.*?</secret>", "<secret/>"))""",
        "## Now\non 2024-01-01\n<secret>\na\n</secret>\n",
    )
    [text] = (project.path / "__ctxfp__/test_context").iterdir()
    assert text.read_text() == "## Now\non <date>\n<secret/>\n"
    project.write("context.md", "## Now\non 2025-12-31\n<secret>\nb\nc\n</secret>\n")
    project.run().assert_outcomes(passed=1)
    project.edit("context.md", "on 2025", "at 2025")
    project.run().stdout.fnmatch_lines(["-on <date>", "+at <date>"])


def test_idle_redaction_is_said_once(checked: Callable[..., Project]) -> None:
    """A redaction that finds nothing in any context of the run is said once."""
    project = checked(r""", redact=((r"\d{9}", "<id>"), ("hello", "<x>"))""")
    result = project.run()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([r"warning*redact *{9}: found in no context"])
    assert result.stdout.str().count("found in no context") == 1


def test_idle_ignore_is_said(checked: Callable[..., Project]) -> None:
    """A name under ``ignore`` that no context of the run has is said; one that fits is not."""
    project = checked(", ignore=('Recnt*', 'Recent*')")
    result = project.run()
    result.stdout.fnmatch_lines(["warning*ignore Recnt[*]: no context has such a layer"])
    assert "ignore Recent" not in result.stdout.str()


@pytest.mark.parametrize(
    "arguments",
    [", ignore=5", ", ignore=(5,)", ", redact=5", ", redact=('ab',)", ", redact=(('(', 'x'),)", ", name=''"],
)
def test_bad_arguments_are_errors(empty_project: Project, arguments: str) -> None:
    """Arguments of a wrong kind fail with what to write instead, whatever flag is given."""
    empty_project.write("test_context.py", TEST.replace("ARGUMENTS", arguments))
    empty_project.write("context.md", CONTEXT)
    result = empty_project.run("--ctx-snapshot-create")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*pytest_ctxfp.CtxfpError: ctx_snapshot.check*"])
