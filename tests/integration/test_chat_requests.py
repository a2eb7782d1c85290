"""An assembler that returns a chat request: misses and snapshots name the part of it that changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project

CONFTEST = """
import json
import pathlib

import pytest

HERE = pathlib.Path(__file__).parent


def assemble(question):
    return json.loads((HERE / "request.json").read_text())


@pytest.fixture
def ctx_assembler():
    return assemble


@pytest.fixture
def ctx_agent():
    def ask(context):
        with open(HERE / "calls.txt", "a") as log:
            log.write("call\\n")
        assert context["messages"][0]["role"] == "system"
        return "30 days"
    return ask
"""
GOLDEN = """cases:
  - {id: refunds, question: How long?, result_kind: text, match: contains, expected: 30 days}
"""
REQUEST = """{
  "model": "large-1",
  "temperature": 0,
  "messages": [
    {"role": "system", "content": "## Identity\\nPolite.\\n## Business Rules\\n- no refunds for tents\\n"},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "## Document\\nShoes.\\n## Document\\nTents.\\n## Document\\nBoats.\\n"}
  ],
  "tools": [
    {"name": "search_orders", "input_schema": {"properties": {"id": {"type": "integer"}}}},
    {"name": "refund", "input_schema": {}}
  ]
}
"""
SNAPSHOT_TEST = """
from conftest import assemble

def test_request(ctx_snapshot):
    ctx_snapshot.check(assemble("How long?"))
"""
EDITS = {
    "tool:search_orders": ('{"type": "integer"}}', '{"type": "integer"}, "since": {}}'),
    "system/Business Rules": ("for tents", "for boats"),
    "user#2/Document#3": ("Boats", "Canoes"),
    "parameters": ('"temperature": 0', '"temperature": 1'),
}


@pytest.fixture
def chat(project: Project) -> Project:
    """A project whose assembler reads its request from a file."""
    project.write("conftest.py", CONFTEST)
    project.write("golden.yaml", GOLDEN)
    project.write("request.json", REQUEST)
    project.write("pytest.ini", (project.path / "pytest.ini").read_text() + "pythonpath = .\n")
    project.write("test_request.py", SNAPSHOT_TEST)
    return project


@pytest.mark.parametrize("layer", EDITS)
def test_changed_part_is_named(chat: Project, layer: str) -> None:
    """A change of the request is named by its layer, in the miss and in the snapshot's failure."""
    chat.run("--ctx-cache", "--ctx-snapshot-create").assert_outcomes(passed=2)
    chat.edit("request.json", *EDITS[layer])
    result = chat.run("--ctx-cache")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines_random([f"missed     1 context: {layer}", f"*~ {layer}*"])
    chat.run(f"--ctx-snapshot-update-layer={layer}", "test_request.py").assert_outcomes(passed=1)
    chat.run("test_request.py").assert_outcomes(passed=1)


def test_text_file_is_readable(chat: Project) -> None:
    """The snapshot's text shows messages as text and tools as JSON a value a line; a diff names it."""
    chat.run("--ctx-snapshot-create", "test_request.py").assert_outcomes(passed=1)
    (file,) = (chat.path / "__ctxfp__" / "test_request").glob("*.md")
    text = file.read_text()
    assert '<!-- layer "system/Business Rules" -->\n## Business Rules\n- no refunds for tents\n' in text
    assert '<!-- layer "tool:search_orders" -->\n{\n  "input_schema": {\n' in text
    assert '<!-- layer "parameters" -->\n{\n  "model": "large-1",\n  "temperature": 0\n}\n' in text
    chat.edit("request.json", *EDITS["tool:search_orders"])
    result = chat.run("test_request.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(['*+*"since": {}*'])


def test_messages_as_the_context_of_an_answer(chat: Project) -> None:
    """A black-box agent may hand back the messages it sent: they are fingerprinted in its trace."""
    chat.write(
        "conftest.py",
        "import pytest\nfrom pytest_ctxfp import AgentResult\n\n@pytest.fixture\ndef ctx_agent():\n"
        "    system = {'role': 'system', 'content': '## Rules\\n- a\\n'}\n"
        "    messages = [system, {'role': 'user', 'content': 'Hi'}]\n"
        "    return lambda question: AgentResult('30 days', context=messages)\n",
    )
    result = chat.run("--ctx-cache", "golden.yaml")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*not recorded*")
    (trace,) = chat.traces()
    assert '"order": ["system", "system/Rules", "user"]' in trace.read_text()


CHECK = '        assert context["messages"][0]["role"] == "system"\n'
READ = 'json.loads((HERE / "request.json").read_text())'
HOOK = """
from pytest_ctxfp import tag_layers

def pytest_ctxfp_split_layers(context):
    return tag_layers(context) if isinstance(context, str) and context.startswith("<") else None
"""
TAGGED = "<rules>\n- no refunds\n</rules>\n<facts>\n- boats float\n</facts>\n"


def test_hook_splits_contexts(chat: Project, how: list[str]) -> None:
    """The hook splits what it knows, for misses and snapshots alike; the rest is split by type."""
    conftest = CONFTEST.replace(READ, '(HERE / "tagged.txt").read_text()').replace(CHECK, "")
    chat.write("conftest.py", conftest + HOOK)
    chat.write("tagged.txt", TAGGED)
    chat.write("test_request.py", SNAPSHOT_TEST + "    ctx_snapshot.check('## A\\n', name='headed')\n")
    chat.run("--ctx-cache", "--ctx-snapshot-create", *how).assert_outcomes(passed=2)
    snapshots = (chat.path / "__ctxfp__" / "test_request.ctxfp").read_text()
    assert '["rules", ' in snapshots
    assert '["A", ' in snapshots
    chat.edit("tagged.txt", "boats float", "boats sink")
    result = chat.run("--ctx-cache", *how)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines_random(["missed     1 context: facts", "*~ facts*"])


def test_context_of_a_type_that_only_the_hook_knows(chat: Project) -> None:
    """A context of another type is keyed by the layers that the hook gives of it."""
    hook = """

def pytest_ctxfp_split_layers(context):
    from pytest_ctxfp import Layer
    return [Layer(key=str(i), name=str(i), header="", body=text) for i, text in enumerate(sorted(context))]
"""
    conftest = CONFTEST.replace(READ, "frozenset({question})").replace(CHECK, "")
    chat.write("conftest.py", conftest + hook)
    chat.run("--ctx-cache", "golden.yaml").assert_outcomes(passed=1)
    assert len(chat.calls()) == 1
    chat.run("--ctx-cache", "golden.yaml").assert_outcomes(passed=1)
    assert chat.calls() == []
