"""A user's project in small: an agent whose answers lie in a file, and a log of its calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml  # noqa: F401 - its C part can't be imported twice, which runs in this process would do

import pytest_ctxfp.plugin.tracing  # noqa: F401 - imported once, not anew by each run in this process

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

CONFTEST = """
import json
import os
import subprocess
import sys
import pathlib

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.fixture
def ctx_assembler():
    def assemble(question):
        return (HERE / "rules.md").read_text(encoding="utf-8") + f"## Question\\n{question}\\n"

    return assemble


@pytest.fixture
def ctx_agent():
    def ask(question, context):
        with open(HERE / "calls.txt", "a", encoding="utf-8") as log:
            log.write(question + "\\n")
        answers = json.loads((HERE / "answers.json").read_text(encoding="utf-8"))
        return answers[question]

    return ask
"""

INI = """[pytest]
ctx_agent_paths = agent
ctx_model = stub-1
addopts = -p no:cacheprovider
"""

GOLDEN = """cases:
  - id: orders
    question: How many orders?
    tags: [easy]
    match: scalar
    expected: {columns: [n], rows: [[99]]}
  - id: customers
    question: How many customers?
    tags: [easy, people]
    match: scalar
    expected: {columns: [n], rows: [[12]]}
"""

COMPILE_ALL = """
import importlib
import pkgutil
import pytest_ctxfp

for module in pkgutil.walk_packages(pytest_ctxfp.__path__, "pytest_ctxfp."):
    importlib.import_module(module.name)
"""

MODES = {"plain": [], "xdist": ["-n2"], "without-xdist": ["-p", "no:xdist"]}


@pytest.fixture(scope="session", autouse=True)
def _byte_code(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the plugin's byte code as pytest rewrites it: hundreds of workers then start in half the time."""
    folder = tmp_path_factory.mktemp("compile")
    (folder / "conftest.py").write_text(COMPILE_ALL)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "pytest", "-q", "--co", "-p", "no:cacheprovider", str(folder)]
    subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=False)


@pytest.fixture(params=MODES)
def how(request: pytest.FixtureRequest) -> list[str]:
    """The three ways a flag is run: plain, on two workers, and with xdist absent."""
    return list(MODES[request.param])


class Project:
    """A project on disk that tests edit and run pytest in."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path: Path = pytester.path

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project and return its path."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
        return path

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text that stands in a file exactly once."""
        text = (self.path / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, (name, old)
        self.write(name, text.replace(old, new))

    def answer(self, answers: Mapping[str, object]) -> None:
        """Let the stub agent give these answers, by question."""
        self.write("answers.json", json.dumps(answers))

    def run(self, *args: str) -> pytest.RunResult:
        """Run pytest in the project, without plugins that are there for single tests; they ask for them."""
        return self.pytester.runpytest_inprocess(
            "--import-mode=importlib", "-p", "no:hypothesispytest", "-p", "no:asyncio", *args
        )

    def calls(self) -> list[str]:
        """Return the questions the stub agent was asked since the last time, sorted."""
        log = self.path / "calls.txt"
        asked = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return sorted(asked)

    def traces(self, folder: str = ".ctxfp/traces") -> list[Path]:
        """Return the files of the cache."""
        return sorted((self.path / folder).glob("*.json"))


CTXFP = "import sys; from pytest_ctxfp._cli import main; sys.exit(main())"


@pytest.fixture
def ctxfp(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command ``ctxfp`` as a program: arguments and standard input in, what it did out.

    It runs in the test's folder. The program is not looked for beside the interpreter: this works in a
    checkout, too.
    """

    def run(
        *args: str,
        input: str | None = None,  # noqa: A002 - as subprocess has it
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", CTXFP, *args],
            input=input,
            env={**os.environ, "PYTHONIOENCODING": "utf-8", **(env or {})},
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    return run


@pytest.fixture
def empty_project(pytester: pytest.Pytester) -> Project:
    """A project without any file."""
    return Project(pytester)


@pytest.fixture
def project(empty_project: Project) -> Project:
    """A project with two golden cases whose answers are right."""
    empty_project.write("conftest.py", CONFTEST)
    empty_project.write("pytest.ini", INI)
    empty_project.write("golden.yaml", GOLDEN)
    empty_project.write("rules.md", "## Identity\nYou answer.\n\n## Business Rules\n- count all\n\n")
    empty_project.write("agent/prompt.md", "Answer with a table.\n")
    empty_project.answer({"How many orders?": table(99), "How many customers?": table(12)})
    return empty_project


def table(value: object) -> dict[str, object]:
    """Return a table of one cell."""
    return {"columns": ["n"], "rows": [[value]]}


@pytest.fixture(name="table")
def table_fixture() -> Callable[[object], dict[str, object]]:
    """The function that makes a table of one cell."""
    return table
