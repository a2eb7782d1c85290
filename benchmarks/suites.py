"""Suites of tests that do the same work with one tool each."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

OURS = "pytest_ctxfp.plugin"
N_MODULES = 20

BUILD = '''
import pytest


def build(n, word="orders"):
    """Return a context of 8 kB in 8 layers."""
    parts = []
    for layer in range(8):
        parts.append(f"## Layer {layer}\\n")
        for line in range(16):
            parts.append(f"- rule {line} of layer {layer} for case {n}: {word} are counted once a day\\n")
    return "".join(parts)


'''


@dataclass(frozen=True)
class Tool:
    """A tool for snapshots of texts.

    Attributes:
        name: what it is called.
        module: what must be importable.
        plugins: the pytest plugins that it is.
        arguments: the fixtures that a test asks for.
        check: the line of a test, with ``{text}`` for what is checked.
        record: flags that record.
        head: lines at the top of a module.
    """

    name: str
    module: str
    plugins: tuple[str, ...]
    arguments: str
    check: str
    record: tuple[str, ...] = ()
    head: str = ""

    @property
    def is_installed(self) -> bool:
        """Whether it can be measured here."""
        return not self.module or find_spec(self.module) is not None


BARE = Tool("building the text only", "", (), "", "{text}")
CTXFP = Tool(
    "pytest-ctxfp",
    "pytest_ctxfp",
    (OURS,),
    "ctx_snapshot",
    "ctx_snapshot.check({text})",
    ("--ctx-snapshot-create",),
)
PEERS = (
    Tool("syrupy", "syrupy", ("syrupy",), "snapshot", "assert {text} == snapshot", ("--snapshot-update",)),
    Tool(
        "pytest-snapshot",
        "pytest_snapshot",
        ("pytest_snapshot.plugin",),
        "snapshot",
        'snapshot.assert_match({text}, "context.txt")',
        ("--snapshot-update",),
    ),
    Tool(
        "pytest-regressions",
        "pytest_regressions",
        ("pytest_datadir.plugin", "pytest_regressions.plugin"),
        "file_regression",
        "file_regression.check({text})",
        ("--force-regen",),
    ),
    Tool(
        "inline-snapshot",
        "inline_snapshot",
        ("inline_snapshot.pytest_plugin",),
        "",
        "assert {text} == snapshot()",
        ("--inline-snapshot=create",),
        head="from inline_snapshot import snapshot\n",
    ),
)


def write_modules(folder: Path, tool: Tool, n: int) -> Path:
    """Write n tests in 20 modules, one context each."""
    folder.mkdir(parents=True)
    for module in range(N_MODULES):
        tests = [
            f"def test_{i}({tool.arguments}):\n    {tool.check.format(text=f'build({i})')}\n\n"
            for i in range(module, n, N_MODULES)
        ]
        (folder / f"test_module_{module}.py").write_text(tool.head + BUILD + "\n".join(tests))
    return folder


def write_parameters(folder: Path, tool: Tool, n: int) -> Path:
    """Write one test of n parameters, one context each."""
    folder.mkdir(parents=True)
    arguments = ", ".join(filter(None, ("n", tool.arguments)))
    text = f'@pytest.mark.parametrize("n", range({n}))\ndef test_all({arguments}):\n'
    (folder / "test_all.py").write_text(f"{tool.head}{BUILD}{text}    {tool.check.format(text='build(n)')}\n")
    return folder


def change_contexts(folder: Path) -> None:
    """Change nearly every line of every context."""
    for path in folder.glob("test_*.py"):
        path.write_text(path.read_text().replace('word="orders"', 'word="refunds"'))


GOLDEN_CONFTEST = """
import pytest

RULES = "".join(f"## Layer {n}\\n" + f"- rule {n} of the shop\\n" * 20 for n in range(8))

@pytest.fixture
def ctx_assembler():
    return lambda question: f"{RULES}## Question\\n{question}\\n"

@pytest.fixture
def ctx_agent():
    return lambda question: {"columns": ["n"], "rows": [[int(question.split()[-1])]]}
"""


def write_golden(folder: Path, n: int) -> Path:
    """Write a suite of n golden cases, and one of as many empty tests beside it."""
    folder.mkdir(parents=True)
    (folder / "conftest.py").write_text(GOLDEN_CONFTEST)
    (folder / "agent.md").write_text("be right\n")
    (folder / "pytest.ini").write_text("[pytest]\nctx_agent_paths = agent.md\n")
    (folder / "test_empty.py").write_text(
        f'import pytest\n\n@pytest.mark.parametrize("n", range({n}))\ndef test_empty(n): pass\n'
    )
    cases = (
        f"  - id: case_{i}\n    question: how many in {i}\n    tags: [easy]\n    match: scalar\n"
        f"    expected: {{columns: [n], rows: [[{i}]]}}\n"
        for i in range(n)
    )
    (folder / "golden.yaml").write_text("cases:\n" + "".join(cases))
    return folder


def write_plain(folder: Path, n: int) -> Path:
    """Write n tests in 20 modules that use nothing of any plugin."""
    folder.mkdir(parents=True)
    for module in range(N_MODULES):
        tests = "".join(f"def test_{i}():\n    assert {i} + 1 > {i}\n\n" for i in range(module, n, N_MODULES))
        (folder / f"test_module_{module}.py").write_text(tests)
    return folder


def copy_of(folder: Path) -> Path:
    """Return a fresh copy of a suite."""
    copy = folder.with_name(f"{folder.name}-copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    return copy
