"""A project in small, run as a user would, and all that a run leaves behind, to be held against another."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

INI = """[pytest]
ctx_agent_paths = agent
ctx_model = stub-1
markers =
    slow: takes long
"""

CONFTEST = """
import pathlib
import runpy

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.fixture
def ctx_assembler():
    def assemble(question):
        return f"## Identity\\nYou answer.\\n\\n## Rules\\n- count all\\n\\n## Question\\n{question}\\n"

    return assemble


@pytest.fixture
def ask_bot():
    return runpy.run_path(str(HERE / "agent" / "bot.py"))["ask"]


@pytest.fixture
def ctx_agent(ask_bot):
    return ask_bot
"""

AGENT = """
import os
import pathlib

LOG = os.environ.get("CALLS_LOG", pathlib.Path(__file__).parent.parent / "calls.txt")
ANSWERS = {"refunds?": 4, "returns?": 2}


def ask(question):
    log = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, f"{question}\\n".encode())
    os.close(log)
    return {"columns": ["n"], "rows": [[ANSWERS.get(question, 1)]]}
"""

GOLDEN = """cases:
  - {id: orders, question: "orders?", tags: [easy], match: scalar, expected: {rows: [[1]]}}
  - {id: customers, question: "customers?", tags: [easy, people], match: scalar, expected: {rows: [[1]]}}
  - {id: größe, question: "größe?", marks: [slow], match: set, expected: {columns: [n], rows: [["1"]]}}
  - {id: refunds, question: "refunds?", match: scalar, expected: {rows: [[3]]}}
  - {id: returns, question: "returns?", xfail: not yet, match: scalar, expected: {rows: [[1]]}}
  - {id: sales, question: "sales?", skip: no data, match: scalar, expected: {rows: [[1]]}}
"""

MARKED = """cases:
  - {id: stock, question: "stock?", match: scalar, expected: {rows: [[1]]}}
  - {id: again, question: "returns?", match: scalar, expected: {rows: [[1]]}}
"""

TRACED = """
import pytest


@pytest.mark.ctx_golden("golden_marked.yaml")
def test_traced(ctx_case, ctx_trace):
    ctx_trace(ctx_case).check()


def test_call(ctx_trace, ask_bot):
    assert ctx_trace.call("hello", lambda: ask_bot("hello"))["rows"] == [[1]]
"""

CONTEXTS = """
import pytest


@pytest.mark.parametrize("name", ["plain", "schön", "a/b"])
def test_context(ctx_snapshot, ctx_assembler, name):
    ctx_snapshot.check(ctx_assembler(name))


class TestTurns:
    def test_turns(self, ctx_snapshot, ctx_assembler):
        ctx_snapshot.check(ctx_assembler("one"), name="first")
        assert ctx_assembler("two") == ctx_snapshot
"""

WITNESS = '''
"""Writes what became of every test, in the process that hears of all of them."""
import json
import os


class Witness:
    def __init__(self, config):
        self.config = config
        self.outcomes = {}

    def pytest_runtest_logreport(self, report):
        status = self.config.hook.pytest_report_teststatus(report=report, config=self.config)
        if status[0]:
            self.outcomes.setdefault(report.nodeid, []).append(status[0])

    def pytest_sessionfinish(self, session):
        with open(os.environ["WITNESS"], "w") as file:
            json.dump(self.outcomes, file)


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Witness(config))
'''

COLD = ("--ctx-cache", "--ctx-snapshot-create")
WARM = ("--ctx-cache",)

_VARYING = re.compile(r"; oldest hit .*|^cache .*\n", re.MULTILINE)
_OUTER = ("PYTEST", "COV", "PYTHONDONTWRITEBYTECODE")  # of the run of these tests; byte code saves half
_TIMES = ("recorded_at", "latency_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a run of pytest left behind.

    Attributes:
        status: the exit status.
        output: what it printed.
        outcomes: what became of each test, by file name and names below it.
        summary: the block of the summary, without ages and the place of the cache.
        report: the JSON report, without times.
        snapshots: the files of snapshots, by path below the project.
        calls: the questions that the agent was asked, sorted.
    """

    status: int
    output: str
    outcomes: dict[str, list[str]]
    summary: str
    report: object
    snapshots: dict[str, bytes]
    calls: list[str]

    def observed(self) -> dict[str, object]:
        """Return all that must not depend on how the tests were run."""
        return {
            "status": self.status,
            "outcomes": self.outcomes,
            "summary": self.summary.splitlines(),
            "report": self.report,
            "snapshots": self.snapshots,
            "calls": self.calls,
        }

    def line(self, label: str) -> str:
        """Return the first line of the summary that has a label, without it."""
        found = next(line for line in self.summary.splitlines() if line.startswith(f"{label} "))
        return found.removeprefix(label).strip()


class Project:
    """A project on disk in which tests run pytest, as a program of its own.

    No plugin is loaded but ours and those that a run names: what is compared is what they add.
    """

    def __init__(self, path: Path, scratch: Path) -> None:
        self.path = path
        self.scratch = scratch
        scratch.mkdir(parents=True, exist_ok=True)
        (scratch / "witness.py").write_text(WITNESS, encoding="utf-8")

    def write(self, files: Mapping[str, str]) -> Project:
        """Write files of the project, given by their path."""
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        return self

    def run(
        self,
        *args: str,
        plugins: Sequence[str] = (),
        cwd: Path | None = None,
        autoload: bool = False,
        wrap: Sequence[str] = (),
    ) -> Run:
        """Run pytest and return what is left of it.

        Args:
            args: of the command line.
            plugins: to load beside ours, by the names of their entry points.
            cwd: where, by default in the project.
            autoload: load all plugins that are installed.
            wrap: a command to run it by.
        """
        witnessed, report = self.scratch / "outcomes.json", self.scratch / "report.json"
        for path in (witnessed, report):
            path.unlink(missing_ok=True)
        loaded = [] if autoload else ["ctxfp", *plugins]
        command = [
            *[*wrap, sys.executable, "-m", "pytest", "-p", "witness"],
            *[word for name in loaded for word in ("-p", name)],
            *[f"--ctx-report={report}", *args],
        ]
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(_OUTER)},
            **({} if autoload else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(self.scratch), os.environ.get("PYTHONPATH")])),
            "PYTHONIOENCODING": "utf-8",
            "WITNESS": str(witnessed),
            "CALLS_LOG": str(self.scratch / "calls.txt"),
            "CI": "",  # some plugins do other things in CI
        }
        done = subprocess.run(
            command,
            env=environment,
            cwd=cwd or self.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        return Run(
            status=done.returncode,
            output=done.stdout,
            outcomes=_read_outcomes(witnessed),
            summary=_cut_summary(done.stdout),
            report=_without_times(json.loads(report.read_bytes())) if report.exists() else None,
            snapshots=self.snapshots(),
            calls=self._take_calls(),
        )

    def run_twice(self, *args: str, **options: object) -> tuple[Run, Run]:
        """Run with an empty cache, where snapshots are stored, and with a full one."""
        cold = self.run(*COLD, *args, **options)  # type: ignore[arg-type] # handed on
        return cold, self.run(*WARM, *args, **options)  # type: ignore[arg-type]

    def snapshots(self) -> dict[str, bytes]:
        """Return the files of snapshots, by path below the project."""
        return {
            path.relative_to(self.path).as_posix(): path.read_bytes()
            for path in sorted(self.path.rglob("__ctxfp__/**/*"))
            if path.is_file()
        }

    def _take_calls(self) -> list[str]:
        log = self.scratch / "calls.txt"
        asked = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return sorted(asked)


def _read_outcomes(path: Path) -> dict[str, list[str]]:
    outcomes = json.loads(path.read_bytes()) if path.exists() else {}
    return {re.sub(r"^([^:]*/)", "", nodeid): found for nodeid, found in sorted(outcomes.items())}


def _cut_summary(output: str) -> str:
    found = re.search(r"^=+ ctxfp =+\n(.*?)^=", output, re.MULTILINE | re.DOTALL)
    return _VARYING.sub("", found.group(1)) if found else ""


def _without_times(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_times(inner) for name, inner in value.items() if not name.startswith(_TIMES)}
    return [_without_times(inner) for inner in value] if isinstance(value, list) else value


SUITE = {
    "pytest.ini": INI,
    "conftest.py": CONFTEST,
    "agent/bot.py": AGENT,
    "suite/golden.yaml": GOLDEN,
    "suite/golden_marked.yaml": MARKED,
    "suite/test_traced.py": TRACED,
    "suite/test_contexts.py": CONTEXTS,
}


@pytest.fixture
def new_project(tmp_path: Path) -> Callable[[str], Project]:
    """A function that returns a project without any file, in a folder of the given name."""

    def make(name: str) -> Project:
        return Project(tmp_path / name, tmp_path / "scratch")

    return make


@pytest.fixture
def project(new_project: Callable[[str], Project]) -> Project:
    """The project in small."""
    return new_project("project").write(SUITE)


@pytest.fixture
def suite_files() -> dict[str, str]:
    """The files of the project in small."""
    return dict(SUITE)


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """What the project's runs leave behind with no other plugin: with an empty cache, and with a full one."""
    folder = tmp_path_factory.mktemp("plain")
    return Project(folder / "project", folder / "scratch").write(SUITE).run_twice()
