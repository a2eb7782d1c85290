"""Fixtures behind golden cases live as long as their scope says, and each file has its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project

CONFTEST = """
import pathlib
import pytest

LOG = pathlib.Path(__file__).parent / "log.txt"
N_BUILT = []

def say(text):
    with open(LOG, "a") as log:
        log.write(text + "\\n")

@pytest.fixture(scope="{scope}")
def ctx_assembler():
    N_BUILT.append(None)
    number = len(N_BUILT)
    say(f"build {{number}}")
    def assemble(question):
        say(f"use {{number}}")
        return question
    yield assemble
    say(f"end {{number}}")

@pytest.fixture
def ctx_agent():
    return lambda question: {{"rows": [[1]]}}
"""

CASES = """
cases:
  - {id: a, question: a, expected: {rows: [[1]]}}
  - {id: b, question: b, expected: {rows: [[1]]}}
"""


@pytest.fixture
def suite(project: Project) -> Project:
    """Two files of two cases each."""
    for name in ("one", "two"):
        project.write(f"golden/golden_{name}.yaml", CASES)
    (project.path / "golden.yaml").unlink()
    return project


@pytest.mark.parametrize(
    ("scope", "log"),
    [
        ("function", "b1 u1 e1 b2 u2 e2 b3 u3 e3 b4 u4 e4"),
        ("module", "b1 u1 u1 e1 b2 u2 u2 e2"),
        ("session", "b1 u1 u1 u1 u1 e1"),
    ],
)
def test_value_lives_as_long_as_its_scope(suite: Project, scope: str, log: str) -> None:
    """An assembler is built once for each test, file or session, used in that time, and ended after it."""
    suite.write("conftest.py", CONFTEST.format(scope=scope))
    suite.run().assert_outcomes(passed=4)
    lines = (suite.path / "log.txt").read_text().splitlines()
    assert " ".join(f"{line[0]}{line[-1]}" for line in lines) == log


def test_value_is_of_the_folder_of_the_file(suite: Project) -> None:
    """A folder's own fixture of the session's scope serves its files; the other files keep theirs."""
    suite.write("conftest.py", CONFTEST.format(scope="session"))
    suite.write("golden/sub/golden_three.yaml", CASES)
    own = '@pytest.fixture(scope="session")\ndef ctx_model():\n    return "their-own"\n'
    suite.write("golden/sub/conftest.py", f"import pytest\n\n{own}")
    result = suite.run("--ctx-cache", "-rA")
    result.assert_outcomes(passed=6)
    models = [path.read_text().split('"model": ')[1].split(",")[0] for path in suite.traces()]
    assert sorted(models) == ['"stub-1"'] * 2 + ['"their-own"'] * 2


def test_test_that_runs_again_has_fixtures_of_its_own(suite: Project) -> None:
    """A rerun sets fixtures of a test up anew, and keeps those of the session."""
    conftest = CONFTEST.format(scope="function").replace("[[1]]", "[[N_BUILT and len(N_BUILT)]]")
    suite.write("conftest.py", conftest)
    result = suite.run_apart("--reruns", "1", "golden/golden_one.yaml")
    result.assert_outcomes(passed=1, failed=1)
    lines = (suite.path / "log.txt").read_text().splitlines()
    assert [line for line in lines if line.startswith("build")] == ["build 1", "build 2", "build 3"]


def test_fixture_inserted_for_one_case_is_its_own(suite: Project) -> None:
    """A hook that inserts a fixture for a marked case, as pytest-freezer does, changes no other case."""
    hook = """
@pytest.fixture
def frozen():
    say("frozen")

def pytest_collection_modifyitems(items):
    items[0].fixturenames.insert(0, "frozen")
"""
    suite.write("conftest.py", CONFTEST.format(scope="session") + hook)
    suite.run().assert_outcomes(passed=4)
    assert (suite.path / "log.txt").read_text().splitlines().count("frozen") == 1
