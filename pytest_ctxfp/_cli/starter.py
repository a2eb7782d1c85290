"""The files of a suite that works as it stands, for ``ctxfp init``: an offline agent, three golden cases."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath

CONFTEST = '''\
"""What is tested: the assembler that builds the context, and the agent that answers from it."""

import my_agent
import my_context
import pytest


@pytest.fixture
def ctx_assembler():
    return my_context.build  # called as build(question=...)


@pytest.fixture
def ctx_agent():
    return my_agent.ask  # called as ask(question=..., context=...); not even built where all is replayed
'''

MY_CONTEXT = '''\
"""The assembler: it builds what the agent sees. Each heading begins a layer. Put your own in its place."""

RULES = """\\
- test orders don't count
- shoes can be returned within 30 days
"""

FACTS = """\\
- orders: 104
- test orders: 5
- customers: 12
"""


def build(question):
    identity = "## Identity\\nYou answer questions about a shop.\\n\\n"
    return f"{identity}## Business Rules\\n{RULES}\\n## Facts\\n{FACTS}\\n## Question\\n{question}\\n"
'''

MY_AGENT = '''\
"""The agent: a stand-in that needs no network and no key. Put the call of your model in its place."""

import re

from pytest_ctxfp import AgentResult

COST = 0.002  # USD; made up


def ask(question, context):
    if "return" in question:
        answer = re.search(r"- (shoes can be returned.*)", context)[1]
        return AgentResult(answer, cost=COST)
    facts = dict(re.findall(r"^- ([\\w ]+): (\\d+)$", context, flags=re.MULTILINE))
    name = next(name for name in facts if name in question)
    number = int(facts[name])
    if name == "orders" and "test orders don't count" in context:
        number -= int(facts["test orders"])
    return AgentResult({"columns": ["n"], "rows": [[number]]}, cost=COST)
'''

GOLDEN = """\
cases:
  - id: total_orders
    question: "How many orders are there?"
    tags: [numbers]
    match: scalar
    expected: { columns: [n], rows: [[99]] }
  - id: total_customers
    question: "How many customers are there?"
    tags: [numbers]
    match: scalar
    expected: { columns: [n], rows: [[12]] }
  - id: return_window
    question: "How long can I return shoes?"
    tags: [policy]
    result_kind: text
    match: contains
    expected: "30 days"
"""

WORKFLOW = """\
# Golden cases in CI. On main the run is recorded as the baseline; a pull request is held against it.
name: golden cases
on:
  push: { branches: [main] }
  pull_request:
permissions: { contents: read }
jobs:
  golden:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: { python-version: "3.12" }
      - run: pip install pytest-ctxfp
      # Stored answers, and the baseline. What main stores, every pull request finds.
      - uses: actions/cache/restore@v4
        with:
          path: .ctxfp
          key: ctxfp-${{ github.ref_name }}-${{ github.run_id }}
          restore-keys: |
            ctxfp-${{ github.ref_name }}-
            ctxfp-main-
      - name: record the baseline
        if: github.event_name == 'push'
        run: pytest --ctx-cache --ctx-max-calls=50 --ctx-report=.ctxfp/main.json
      - name: hold against the baseline
        if: github.event_name == 'pull_request'
        run: |
          if [ -f .ctxfp/main.json ]; then baseline=--ctx-baseline=.ctxfp/main.json; fi
          pytest --ctx-cache --ctx-max-calls=50 $baseline
      # Also of a red run: its answers are paid for.
      - uses: actions/cache/save@v4
        if: always()
        with:
          path: .ctxfp
          key: ctxfp-${{ github.ref_name }}-${{ github.run_id }}
"""

IGNORED = """\
.ctxfp/
__pycache__/
"""
WORKFLOW_PATH = ".github/workflows/ctxfp.yml"


@dataclass(frozen=True, slots=True, kw_only=True)
class IniOption:
    """An ini option of the suite; one with ``is_list`` takes several words, of which this is one."""

    name: str
    value: str
    is_list: bool = True

    def as_ini(self) -> str:
        """Return the line of an ini file, as in ``ctx_agent_paths = my_agent.py``."""
        return f"{self.name} = {shlex.quote(self.value)}"

    def as_toml(self) -> str:
        """Return the line of a TOML file, as in ``ctx_agent_paths = ["my_agent.py"]``."""
        return f"{self.name} = {json.dumps([self.value] if self.is_list else self.value)}"


def ini_options(folder: str) -> tuple[IniOption, ...]:
    """Return the ini options of the suite.

    Args:
        folder: where the suite lies, from the rootdir, with ``/``; ``.`` for the rootdir itself.
    """
    agent = (PurePosixPath(folder) / "my_agent.py").as_posix()
    return (
        IniOption(name="pythonpath", value=folder),
        IniOption(name="ctx_agent_paths", value=agent),
        IniOption(name="ctx_model", value="stand-in", is_list=False),
    )
