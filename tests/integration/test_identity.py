"""What an answer depends on besides the agent's files: variables, packages, data, the model that served."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project

METADATA = "Metadata-Version: 2.1\nName: Tiny_Client\nVersion: {}\n"


def add_option(project: Project, line: str) -> None:
    """Add a line to the ini file."""
    project.edit("pytest.ini", "[pytest]\n", f"[pytest]\n{line}\n")


def install(project: Project, version: str) -> None:
    """Let a package be installed in the project, in one version."""
    project.write("site/tiny_client-1.dist-info/METADATA", METADATA.format(version))


def everything_written(project: Project) -> str:
    """Return the text of all files that a run wrote."""
    files = [path for path in (project.path / ".ctxfp").rglob("*") if path.is_file()]
    assert files
    return "".join(path.read_text(encoding="utf-8") for path in files)


def test_edited_variable_misses_and_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another value, an empty one and none at all are three; the miss names the variable, and its value is
    written nowhere.
    """
    add_option(project, "ctx_agent_env = API_BASE OTHER")
    monkeypatch.setenv("OTHER", "same-all-along")
    for value in ("https://one.example", "https://two.example", "", None):
        if value is None:
            monkeypatch.delenv("API_BASE")
        else:
            monkeypatch.setenv("API_BASE", value)
        result = project.run("--ctx-cache")
        result.assert_outcomes(passed=2)
        if value != "https://one.example":
            result.stdout.fnmatch_lines(["answers*0 hit, 2 miss", "missed*2 env: API_BASE"])
        result.stdout.fnmatch_lines(["identity*model stub-1, env API_BASE, OTHER"])
        assert len(project.calls()) == 2
        again = project.run("--ctx-cache")
        again.stdout.fnmatch_lines(["answers*2 hit, 0 miss*"])
        shown = result.stdout.str() + again.stdout.str() + everything_written(project)
        assert ".example" not in shown
        assert "same-all-along" not in shown


def test_variable_that_is_not_named_is_not_in_the_key(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the variables that the ini file names decide anything."""
    project.run("--ctx-cache")
    project.calls()
    monkeypatch.setenv("API_BASE", "https://two.example")
    project.run("--ctx-cache")
    assert project.calls() == []


def test_variable_set_by_a_test_is_in_its_key(project: Project) -> None:
    """A variable is read for each case: what an autouse fixture sets is what the agent will see."""
    add_option(project, "ctx_agent_env = API_BASE")
    fixture = """

@pytest.fixture(autouse=True)
def base(monkeypatch):
    monkeypatch.setenv('API_BASE', 'one')
"""
    project.write("conftest.py", (project.path / "conftest.py").read_text() + fixture)
    project.run("--ctx-cache")
    project.run("--ctx-cache").stdout.fnmatch_lines(["answers*2 hit*"])
    project.edit("conftest.py", "'one'", "'two'")
    project.run("--ctx-cache").stdout.fnmatch_lines(["missed*2 env: API_BASE"])


def test_agent_fixture_that_sets_a_variable_is_refused(project: Project) -> None:
    """Where building the agent changes a variable of the key, which no hit would do, nobody is asked."""
    add_option(project, "ctx_agent_env = API_BASE")
    project.edit(
        "conftest.py",
        "def ctx_agent():\n",
        "def ctx_agent(monkeypatch):\n    monkeypatch.setenv('API_BASE', 'late')\n",
    )
    result = project.run("--ctx-cache")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*ctx_agent change an environment variable that ctx_agent_env names*"])
    assert project.calls() == []


def test_variable_with_a_value_is_refused_without_showing_it(project: Project) -> None:
    """``NAME=value`` in the ini file is a usage error that doesn't repeat the value."""
    add_option(project, "ctx_agent_env = API_KEY=hunter2")
    result = project.run("--ctx-cache")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: ini option ctx_agent_env: 'API_KEY' is followed by a value*"])
    assert "hunter2" not in result.stderr.str() + result.stdout.str()


def test_upgraded_package_misses_and_is_named(project: Project) -> None:
    """An upgrade of a package that the ini file names asks again, and says from which version to which."""
    add_option(project, "ctx_agent_packages = tiny.client\npythonpath = site")
    install(project, "1.0")
    result = project.run("--ctx-cache")
    result.stdout.fnmatch_lines(["identity*packages tiny-client 1.0"])
    project.run("--ctx-cache").stdout.fnmatch_lines(["answers*2 hit*"])
    install(project, "1.1")
    result = project.run("--ctx-cache")
    result.stdout.fnmatch_lines(["missed*2 packages: tiny-client 1.0 -> 1.1"])


def test_missing_package_is_an_error_that_names_it(project: Project) -> None:
    """A package that isn't installed ends the run before anybody is asked."""
    add_option(project, "ctx_agent_packages = pytest no-such-package-here")
    result = project.run("--ctx-cache")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: ini option ctx_agent_packages: package 'no-such-package-here' is not*"]
    )
    assert project.calls() == []


def test_new_database_misses_and_scratch_files_hit(project: Project) -> None:
    """A new or changed file under ``ctx_data_paths`` asks again and is named; an excluded one and what the
    system leaves behind change nothing.
    """
    add_option(project, "ctx_data_paths = data !data/*.tmp")
    project.write("data/shop.db", "one")
    project.run("--ctx-cache").stdout.fnmatch_lines(["identity*data * (1 file)"])
    project.write("data/scratch.tmp", "x")
    project.write("data/.DS_Store", "x")
    project.run("--ctx-cache").stdout.fnmatch_lines(["answers*2 hit*"])
    project.write("data/shop.db", "two")
    project.run("--ctx-cache").stdout.fnmatch_lines(["missed*2 data: data/shop.db"])
    project.write("data/stock.db", "new")
    project.run("--ctx-cache").stdout.fnmatch_lines(["missed*2 data: data/stock.db (new)"])
    project.calls()
    project.run("--ctx-cache")
    assert project.calls() == []


def test_data_that_isnt_there_is_a_usage_error(project: Project) -> None:
    """Patterns that match no file end the run, naming the option."""
    add_option(project, "ctx_data_paths = nowhere")
    result = project.run("--ctx-cache")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: ini option ctx_data_paths: *nowhere*"])


def test_option_that_is_added_asks_again_and_says_so(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naming something for the first time is a change of the key, and the miss says of what."""
    project.run("--ctx-cache")
    project.write("data/shop.db", "one")
    monkeypatch.setenv("API_BASE", "x")
    add_option(project, "ctx_data_paths = data\nctx_agent_env = API_BASE")
    result = project.run("--ctx-cache")
    result.stdout.fnmatch_lines(["missed*2 data: was not in the key; env: API_BASE"])


@pytest.mark.parametrize("name", ["env", "packages", "data"])
def test_own_names_are_kept_from_users_params(project: Project, name: str) -> None:
    """``ctx_agent_key`` can't give a param that the plugin gives itself."""
    key = f"\n\n@pytest.fixture\ndef ctx_agent_key():\n    return {{'params': {{{name!r}: 1}}}}\n"
    project.write("conftest.py", (project.path / "conftest.py").read_text() + key)
    result = project.run("--ctx-cache")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines([f"*params?{name!r}?, a name of the plugin's own*"])


def serve(project: Project, served: str) -> None:
    """Let the agent say which model served it, for the questions it is asked from now on."""
    project.write("served.txt", served)


@pytest.fixture
def served_project(project: Project) -> Project:
    """The project with an agent that says which model served it."""
    project.edit("conftest.py", "import pytest\n", "import pytest\nfrom pytest_ctxfp import AgentResult\n")
    project.edit(
        "conftest.py",
        "return answers[question]",
        "return AgentResult(answers[question], served_model=(HERE / 'served.txt').read_text())",
    )
    serve(project, "stub-a")
    return project


def test_served_model_is_recorded_and_a_refresh_says_that_it_changed(served_project: Project) -> None:
    """A refresh that is served by another model than the recording says both; the same model says nothing."""
    result = served_project.run("--ctx-cache")
    result.stdout.fnmatch_lines(["identity*served by stub-a"])
    assert {json.loads(path.read_text())["served_model"] for path in served_project.traces()} == {"stub-a"}
    assert "recorded by" not in served_project.run("--ctx-refresh").stdout.str()
    serve(served_project, "stub-b")
    result = served_project.run("--ctx-refresh")
    result.stdout.fnmatch_lines(["served*2 answers now by stub-b, recorded by stub-a"])


def test_hit_of_another_served_model_is_shown(served_project: Project) -> None:
    """Where calls of this run are served by another model than the hits were, under one label, it shows."""
    served_project.run("--ctx-cache")
    serve(served_project, "stub-b")
    served_project.edit("golden.yaml", "How many customers?", "How many people?")
    served_project.answer({"How many people?": {"rows": [[12]]}})
    result = served_project.run("--ctx-cache")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "served*1 answer now by stub-b, recorded by stub-a",
            "*1 hit recorded by stub-a, though stub-1 is now served by stub-b",
        ]
    )
