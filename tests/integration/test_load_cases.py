"""Data that exists: JSON Lines, and other tools' files by the hook ``pytest_ctxfp_load_cases``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project

CONFTEST = """
import json

import pytest
import yaml


@pytest.fixture
def ctx_agent():
    return lambda question: {"Can I return shoes?": "Yes, for 30 days.", "Who pays?": "You pay."}[question]

"""
PROMPTFOO = """prompts: ["{{question}}"]
tests:
  - description: returns
    vars: {question: "Can I return shoes?"}
    assert:
      - {type: contains, value: 30 days}
  - description: postage
    vars: {question: "Who pays?"}
    assert:
      - {type: regex, value: "^You"}
"""
PROMPTFOO_HOOK = """
MODES = {"equals": "exact", "contains": "contains", "not-contains": "not_contains", "regex": "regex"}

def pytest_ctxfp_load_cases(path):
    if path.name != "promptfooconfig.yaml":
        return None
    return [
        {"id": f"{test['description']}-{n}", "question": test["vars"]["question"], "result_kind": "text",
         "match": MODES[check["type"]], "expected": check["value"]}
        for test in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]
        for n, check in enumerate(test["assert"])
    ]
"""
DEEPEVAL = """[{"input": "Can I return shoes?", "expected_output": "30 days", "context": ["policy"]},
 {"input": "Who pays?", "expected_output": "You pay", "context": null}]
"""
DEEPEVAL_HOOK = """
def pytest_ctxfp_load_cases(path):
    if path.name != "goldens.json":
        return None
    return [
        {"id": f"golden-{n}", "question": golden["input"], "result_kind": "text", "match": "contains",
         "expected": golden["expected_output"], "inputs": {"context": golden["context"]}}
        for n, golden in enumerate(json.loads(path.read_text(encoding="utf-8")))
    ]
"""
PYDANTIC_EVALS = """name: shop
cases:
- name: returns
  inputs: Can I return shoes?
  expected_output: Yes, for 30 days.
  metadata: {topic: returns}
- name: postage
  inputs: Who pays?
  expected_output: You pay.
evaluators: [EqualsExpected]
"""
PYDANTIC_EVALS_HOOK = """
from pytest_ctxfp import GoldenCase

def pytest_ctxfp_load_cases(path):
    if not path.name.endswith(".evals.yaml"):
        return None
    return (
        GoldenCase.from_dict(
            {"id": case["name"], "question": case["inputs"], "result_kind": "text", "match": "exact",
             "expected": case["expected_output"], "metadata": case.get("metadata", {})}
        )
        for case in yaml.safe_load(path.read_text(encoding="utf-8"))["cases"]
    )
"""
TRUTHS = """{"question": "Can I return shoes?", "truth": "30 days"}
{"question": "Who pays?", "truth": "You pay"}
"""
TRUTHS_HOOK = """
def pytest_ctxfp_load_cases(path):
    if path.name != "golden.jsonl":
        return None
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [
        {"id": f"row-{n}", "question": row["question"], "result_kind": "text", "match": "contains",
         "expected": row["truth"]}
        for n, row in enumerate(rows, 1)
    ]
"""
RECIPES = {
    "promptfooconfig.yaml": (PROMPTFOO, PROMPTFOO_HOOK, "returns-0"),
    "goldens.json": (DEEPEVAL, DEEPEVAL_HOOK, "golden-0"),
    "shop.evals.yaml": (PYDANTIC_EVALS, PYDANTIC_EVALS_HOOK, "returns"),
    "golden.jsonl": (TRUTHS, TRUTHS_HOOK, "row-1"),
}
LINES = """{"id": "returns", "question": "Who pays?","match": "regex", "expected": "Y", "result_kind": "text"}

{"id": "postage", "question": "Who pays?", "result_kind": "text", "expected": "You pay."}
"""


@pytest.fixture
def suite(project: Project) -> Project:
    """A project without golden files."""
    (project.path / "golden.yaml").unlink()
    project.write("conftest.py", CONFTEST)
    return project


def use(suite: Project, name: str) -> str:
    """Put a recipe's file and hook in place; return an id that it gives."""
    text, hook, case_id = RECIPES[name]
    suite.write(name, text)
    suite.write("conftest.py", CONFTEST + hook)
    return case_id


@pytest.mark.parametrize("name", RECIPES)
def test_recipes(suite: Project, name: str) -> None:
    """Cases of another tool's file are items as any: collected, selected, cached and replayed."""
    case_id = use(suite, name)
    result = suite.run("--ctx-cache", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([f"*{name}::{case_id} *"])
    suite.run("--ctx-cache", "--ctx-on-miss=fail", f"{name}::{case_id}").assert_outcomes(passed=1)


def test_marker_loads_by_the_hook(suite: Project) -> None:
    """A ``ctx_golden`` marker reads other formats too, and its cases leave the plain items aside."""
    use(suite, "goldens.json")
    suite.write(
        "test_marked.py",
        "import pytest\n\n@pytest.mark.ctx_golden('goldens.json')\ndef test_answer(ctx_case, ctx_trace):\n"
        "    ctx_trace(ctx_case).check()\n",
    )
    suite.run().assert_outcomes(passed=2, deselected=2)


def test_json_lines(suite: Project, how: list[str]) -> None:
    """JSON Lines hold a case a line; a fault names its line."""
    suite.write("golden.jsonl", LINES)
    suite.run("--ctx-cache", *how).assert_outcomes(passed=2)
    suite.write("golden.jsonl", LINES.replace('"match"', '"mach"'))
    result = suite.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*golden.jsonl:1: case 'returns': unknown key 'mach': did you mean 'match'?*"]
    )


def test_lines_of_someone_else_are_left_alone(suite: Project) -> None:
    """Without the hook, lines with a question and a truth are no golden cases."""
    suite.write("golden.jsonl", TRUTHS)
    suite.run().assert_outcomes()


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (
            "[{'id': 'a', 'question': 'q', 'expect': 1}]",
            "*goldens.json: case 'a': unknown key 'expect': did you mean*",
        ),
        (
            "2 * [{'id': 'a', 'question': 'q', 'result_kind': 'text', 'expected': 'x'}]",
            "*case 'a': duplicate id: *",
        ),
        ("['x']", "*goldens.json: a case is the text 'x': write a mapping*"),
        (
            "1 / 0",
            "*goldens.json: the hook pytest_ctxfp_load_cases raised ZeroDivisionError: division by zero*",
        ),
        ("7", "*goldens.json: the hook pytest_ctxfp_load_cases raised TypeError: *not iterable*"),
    ],
)
def test_hook_that_fails(suite: Project, returned: str, text: str) -> None:
    """What a hook raises, or gives that is no case, is a collection error of its file alone."""
    suite.write("goldens.json", DEEPEVAL)
    suite.write(
        "conftest.py",
        "def pytest_ctxfp_load_cases(path):\n"
        f"    return {returned} if path.name == 'goldens.json' else None\n",
    )
    suite.write("test_other.py", "def test_other(): pass\n")
    result = suite.run("--continue-on-collection-errors")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines([text])
