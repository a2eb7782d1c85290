"""A user's project in small: an agent whose answers lie in a file, and a log of its calls."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import pkgutil
import subprocess
import sys
from typing import TYPE_CHECKING

import httpcore  # noqa: F401 - httpx keeps the first one's exceptions, and runs in this process import anew
import pytest
import yaml  # noqa: F401 - its C part can't be imported twice, which runs in this process would do

import pytest_ctxfp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

for _module in pkgutil.walk_packages(pytest_ctxfp.__path__, "pytest_ctxfp."):
    importlib.import_module(_module.name)  # once, not anew by each run in this process

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


@pytest.fixture(scope="session", autouse=True)
def _known_plugins() -> Iterator[None]:
    """Let runs in this process look for plugins among those found once, not in a hundred packages each."""
    found = [
        package
        for package in importlib.metadata.distributions()
        if any(point.group == "pytest11" for point in package.entry_points)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.metadata, "distributions", lambda **_: iter(found))
        yield


@pytest.fixture(params=MODES)
def how(request: pytest.FixtureRequest) -> list[str]:
    """The three ways a flag is run: plain, on two workers, and with xdist absent."""
    return list(MODES[request.param])


def _without_plugins(args: tuple[str, ...]) -> list[str]:
    """Return the flags that block what a run has no use for.

    anyio and hypothesis cost each process 0.15 s; rerunfailures leaves a server in the process.
    """
    blocked = ["hypothesispytest", "asyncio"]
    if "anyio" not in args:
        blocked.append("anyio")
    if not any(arg.startswith("--reruns") for arg in args):
        blocked.append("rerunfailures")
    return [flag for name in blocked for flag in ("-p", f"no:{name}")]


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
        return self.pytester.runpytest_inprocess("--import-mode=importlib", *_without_plugins(args), *args)

    def run_apart(self, *args: str) -> pytest.RunResult:
        """Run pytest in the project as a process of its own, without those plugins either."""
        return self.pytester.runpytest_subprocess(*_without_plugins(args), *args)

    def calls(self) -> list[str]:
        """Return the questions the stub agent was asked since the last time, sorted."""
        log = self.path / "calls.txt"
        asked = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return sorted(asked)

    def traces(self, folder: str = ".ctxfp/traces") -> list[Path]:
        """Return the files of the cache."""
        return sorted((self.path / folder).glob("*.json"))


SUITE_CONFTEST = """
import pathlib
import runpy

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.fixture
def ctx_assembler():
    return runpy.run_path(str(HERE / "assembler.py"))["assemble"]


@pytest.fixture
def ctx_agent():
    return runpy.run_path(str(HERE / "agent" / "bot.py"))["ask"]
"""

SUITE_ASSEMBLER = """
import pathlib

LAYERS = pathlib.Path(__file__).parent / "layers"


def assemble():
    return "".join(
        f"## {path.stem}\\n{path.read_text(encoding='utf-8')}\\n" for path in sorted(LAYERS.glob("*.md"))
    )
"""

SUITE_AGENT = """
import json
import pathlib

HERE = pathlib.Path(__file__).parent.parent


def ask(question, context, sample):
    with open(HERE / "calls.txt", "a", encoding="utf-8") as log:
        log.write(f"{question}#{sample}\\n")
    given = json.loads((HERE / "answers.json").read_text(encoding="utf-8"))[question]
    answer = given[min(sample, len(given) - 1)]
    if answer is None:
        raise OSError("no connection")
    return answer if isinstance(answer, str) else {"rows": [[answer]]}
"""


class CaseSuite(Project):
    """A project of many cases that all expect 1; the agent's answers, one a sample, lie in a file."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        super().__init__(pytester)
        self.given: dict[str, list[object]] = {}
        self.write("conftest.py", SUITE_CONFTEST)
        self.write("assembler.py", SUITE_ASSEMBLER)
        self.write("agent/bot.py", SUITE_AGENT)
        self.write("layers/Business Rules.md", "- count all orders")
        self.write("layers/Identity.md", "You answer.")
        self.write("pytest.ini", INI)

    def make(self, n: int, *, wrong: Iterable[int] = (), extra: str = "", name: str = "golden.yaml") -> None:
        """Write n cases ``c00``, ``c01``, ..., tagged ``even`` and ``odd``, and answers to them.

        Args:
            n: how many.
            wrong: numbers of the cases whose answer is wrong.
            extra: further fields of each case, as in ``, match: near``.
            name: the golden file.
        """
        lines = [
            f"  - {{id: c{i:02}, question: c{i:02}, tags: [{'odd' if i % 2 else 'even'}], match: scalar,"
            f" expected: {{rows: [[1]]}}{extra}}}"
            for i in range(n)
        ]
        self.write(name, "\n".join(["cases:", *lines, ""]))
        self.give({f"c{i:02}": [0 if i in set(wrong) else 1] for i in range(n)})

    def give(self, answers: Mapping[str, list[object]]) -> None:
        """Let the agent answer so from now on: a list a case, one answer a sample, the last one repeated."""
        self.given.update(answers)
        self.answer(self.given)

    def flip(self, numbers: Iterable[int], *samples: object) -> None:
        """Let the agent answer wrongly to these cases, or as given for each sample."""
        self.give({f"c{i:02}": list(samples or (0,)) for i in numbers})

    def record(self, *args: str, path: str = "base.json") -> pytest.RunResult:
        """Run with the cache on and record a baseline."""
        result = self.run("--ctx-cache", f"--ctx-report={path}", *args)
        self.calls()
        return result

    def hold(self, *args: str) -> pytest.RunResult:
        """Run with the cache on and hold the run against the baseline."""
        return self.run("--ctx-cache", "--ctx-baseline=base.json", *args)

    def edit_rule(self) -> None:
        """Edit one layer of all contexts."""
        self.write("layers/Business Rules.md", "- count paid orders only")


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
def suite(pytester: pytest.Pytester) -> CaseSuite:
    """A project whose cases and answers each test makes."""
    return CaseSuite(pytester)


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
