"""Where a project lies, where pytest is started and where its ini file is, make no difference."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .conftest import Project, Run


def _counts(run: Run) -> dict[str, object]:
    """Return what stays the same where paths are shown otherwise."""
    labels = ("cases", "answers", "calls", "cost", "accuracy", "snapshots")
    return {
        "status": run.status,
        "outcomes": run.outcomes,
        "snapshots": run.snapshots,
        "calls": run.calls,
        **{f"line {label}": run.line(label) for label in labels},
    }


STARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "in-suite": ("suite", ()),
    "outside": ("..", ("project",)),
    "absolute": ("/", ("{project}/suite",)),
    "rootdir-given": ("..", ("project/suite", "--rootdir=project", "-c", "project/pytest.ini")),
    "ini-below": (".", ("suite", "-c", "settings/pytest.ini", "--confcutdir=.")),
    "ini-beside": (".", ("suite", "-c", "../settings/pytest.ini")),
    "ini-beside-rootdir": (".", ("suite", "-c", "../settings/pytest.ini", "--rootdir=.")),
    "rootdir-above": (".", ("suite", "--rootdir=..", "-o", "ctx_agent_paths=project/agent")),
}


@pytest.mark.parametrize("name", STARTS)
def test_started_from_anywhere(project: Project, plain: tuple[Run, Run], name: str) -> None:
    """Outcomes, figures, snapshots and calls are those of a run in the project; a second start is warm."""
    start, args = STARTS[name]
    ini = (project.path / "pytest.ini").read_text(encoding="utf-8")
    beside = ini if "--rootdir=." in args else ini.replace("= agent", "= ../project/agent")
    project.write(
        {"settings/pytest.ini": ini.replace("= agent", "= ../agent"), "../settings/pytest.ini": beside}
    )
    words = [word.format(project=project.path) for word in args]
    cold, warm = project.run_twice(*words, cwd=project.path / start)
    assert _counts(cold) == _counts(plain[0]), cold.output
    assert _counts(warm) == _counts(plain[1]), warm.output


def test_answers_are_found_from_another_start(project: Project) -> None:
    """What a run stored is found by one that is started elsewhere in the same project."""
    project.run("--ctx-cache")
    for start, args in (("suite", ()), ("..", ("project",)), ("/", (str(project.path / "suite"),))):
        run = project.run("--ctx-cache", *args, cwd=project.path / start)
        assert run.calls == [], run.output
        assert run.line("answers") == "7 hit, 0 miss"


def test_moved_checkout_is_warm(
    project: Project, new_project: Callable[[str], Project], plain: tuple[Run, Run]
) -> None:
    """A project that is moved, also to a path with other letters and blanks, asks nobody again."""
    cold = project.run("--ctx-cache", "--ctx-snapshot-create")
    assert cold.calls
    moved = new_project("Größe 数据 'q' $HOME")
    project.path.rename(moved.path)
    warm = moved.run("--ctx-cache")
    assert warm.observed() == plain[1].observed(), warm.output


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
def test_paths_and_names_of_any_letters(
    new_project: Callable[[str], Project],
    suite_files: dict[str, str],
    plain: tuple[Run, Run],
    workers: tuple[str, ...],
) -> None:
    """A project in folders with blanks, quotes and other scripts runs as the plain one does."""
    project = new_project("Ä b/数据 (1)/it's $x").write(suite_files)
    cold, warm = project.run_twice(*workers, plugins=["xdist"])
    assert cold.observed() == plain[0].observed(), cold.output
    assert warm.observed() == plain[1].observed(), warm.output


ODD_NAMES = """cases:
  - {id: "größe", question: "a", tags: ["naïve"], match: scalar, expected: {rows: [[1]]}}
  - {id: "数据", question: "b", match: scalar, expected: {rows: [[1]]}}
  - {id: "two words", question: "c", match: scalar, expected: {rows: [[1]]}}
  - {id: "a/b::c[d]", question: "d", match: scalar, expected: {rows: [[1]]}}
"""


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
def test_ids_of_any_letters(project: Project, workers: tuple[str, ...]) -> None:
    """Cases of any id run, are found again, and can be selected by ``-k`` and by what the run calls them."""
    project.write({"daten/golden_größe 数.yaml": ODD_NAMES})
    flags = ("daten", "--ctx-cache", *workers)
    cold = project.run(*flags, plugins=["xdist"])
    assert (cold.status, len(cold.outcomes), cold.calls) == (0, 4, ["a", "b", "c", "d"]), cold.output
    warm = project.run(*flags, plugins=["xdist"])
    assert (warm.calls, warm.outcomes, warm.line("answers")) == ([], cold.outcomes, "4 hit, 0 miss")
    for words in (["daten", "-k", "größe and naïve"], ["daten/golden_größe 数.yaml::数据"]):
        one = project.run("--ctx-cache", *words)
        assert (one.status, one.line("cases")) == (0, "1: 1 passed, 0 failed"), one.output


TWO_SUITES = {
    f"{name}/{file}": text
    for name in ("red", "blue")
    for file, text in {
        "conftest.py": f"""
import pytest


@pytest.fixture
def ctx_agent(ask_bot):
    def ask(question):
        answer = ask_bot("{name} " + question)
        return {{"rows": [["{name}"]]}}

    return ask


@pytest.fixture
def ctx_agent_key():
    return {{"backend": "{name}"}}
""",
        f"golden_{name}.yaml": f"""cases:
  - {{id: same, question: "same?", match: scalar, expected: {{rows: [["{name}"]]}}}}
""",
        f"test_{name}.py": """
import pytest


def test_own(ctx_trace, ask_bot):
    assert ctx_trace.call("c", lambda: ask_bot("call"), key={"q": 1})["rows"] == [[1]]
""",
    }.items()
}


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
def test_two_suites_share_no_trace(
    new_project: Callable[[str], Project], suite_files: dict[str, str], workers: tuple[str, ...]
) -> None:
    """Two agents in one run, told apart by ``ctx_agent_key``, answer the same question each for itself."""
    files = {name: text for name, text in suite_files.items() if not name.startswith("suite/")}
    project = new_project("project").write({**files, **TWO_SUITES})
    cold, warm = project.run_twice("red", "blue", *workers, plugins=["xdist"])
    assert cold.status == warm.status == 0, cold.output
    assert cold.calls == ["blue same?", "call", "call", "red same?"]
    assert warm.calls == []
    assert warm.line("answers") == "2 hit, 0 miss"
    assert len(list((project.path / ".ctxfp/traces").glob("*.json"))) == 4


@pytest.fixture
def read_only(project: Project) -> Iterator[list[str]]:
    """A command that runs another one where the project can't be written to.

    Permissions don't stop root: for root it is a mount that only that command sees.
    """
    if os.geteuid() == 0:
        mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && cd "$PWD" && exec "$@"'
        yield ["unshare", "--mount", "sh", "-c", mount, str(project.path)]
        return
    folders = [project.path, *(path for path in project.path.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    yield []
    for folder in folders:
        folder.chmod(0o755)


def test_read_only_checkout_without_the_cache(project: Project, read_only: list[str]) -> None:
    """Without the cache nothing is written: golden items run as everywhere."""
    run = project.run("suite/golden.yaml", "-p", "no:cacheprovider", wrap=read_only)
    assert run.line("cases") == "6: 3 passed, 1 failed, 1 failed as expected, 1 skipped", run.output
    assert not (project.path / ".ctxfp").exists()


def test_read_only_checkout_replays(
    project: Project, request: pytest.FixtureRequest, plain: tuple[Run, Run]
) -> None:
    """A full cache and stored snapshots in a checkout that can't be written to serve as anywhere else."""
    project.run("--ctx-cache", "--ctx-snapshot-create")
    wrap = request.getfixturevalue("read_only")
    for flags in ((), ("-n2",)):
        args = ("--ctx-cache", "-p", "no:cacheprovider", *flags)
        run = project.run(*args, plugins=["xdist"], wrap=wrap)
        assert run.observed() == plain[1].observed(), run.output


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
def test_read_only_checkout_with_an_empty_cache(
    project: Project, read_only: list[str], workers: tuple[str, ...]
) -> None:
    """Answers that can't be stored are asked for and scored, and the summary says so; a snapshot that can't
    be written is a fault of the run.
    """
    args = ("suite", "--ctx-cache", "-p", "no:cacheprovider", *workers)
    run = project.run(*args, "--deselect=suite/test_contexts.py", plugins=["xdist"], wrap=read_only)
    assert run.line("cases") == "8: 4 passed, 2 failed, 1 failed as expected, 1 skipped", run.output
    assert run.line("warning").startswith("8 answers could not be stored: ")
    assert len(run.calls) == 8

    contexts = ("suite/test_contexts.py", "--ctx-snapshot-create", "-p", "no:cacheprovider", *workers)
    run = project.run(*contexts, plugins=["xdist"], wrap=read_only)
    assert {found for (found,) in run.outcomes.values()} == {"passed"}, run.output
    assert (run.status, run.line("snapshots"), run.snapshots) == (1, "5 not written", {})
    assert re.search("read-only|permission", run.output, re.IGNORECASE)
