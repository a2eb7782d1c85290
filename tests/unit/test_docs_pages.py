"""What pages show is so: the generated reference, messages, YAML, links to pages."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import pytest
import yaml

from pytest_ctxfp import CtxfpError, _errors, golden_schema
from pytest_ctxfp._cli.starter import WORKFLOW

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}

_spec = importlib.util.spec_from_file_location("ctxfp_docs_hooks", DOCS / "_hooks.py")
assert _spec is not None
assert _spec.loader is not None
HOOKS = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(HOOKS)
GENERATED = HOOKS.render_golden_reference()


def properties() -> list[tuple[str, dict[str, object]]]:
    """Return every key of a golden file and its part of the schema."""
    schema = golden_schema()
    parts = [schema, *(schema["$defs"][name] for name in ("case", "table", "tolerance"))]  # type: ignore[index, call-overload]
    return [(key, value) for part in parts for key, value in part["properties"].items()]  # type: ignore[index, union-attr, call-overload]


@pytest.mark.parametrize(("key", "part"), properties(), ids=[key for key, _ in properties()])
def test_the_reference_has_every_key(key: str, part: dict[str, object]) -> None:
    """The generated reference has a heading, the description and each example of every key."""
    sections = [text for text in GENERATED.split("\n#### ") if text.startswith(f"`{key}` ")]
    assert any(str(part["description"]) in text for text in sections)
    examples = [
        yaml.safe_load(line)
        for text in sections
        for block in re.findall(r"```yaml\n(.*?)\n```", text, flags=re.DOTALL)
        for line in block.splitlines()
    ]
    assert all({key: example} in examples for example in part["examples"])  # type: ignore[attr-defined]


def test_generated_anchors_are_unique() -> None:
    """Two keys of one name, such as `columns`, have places of their own."""
    anchors = re.findall(r"\{: #([\w-]+) \}", GENERATED)
    assert len(anchors) == len(set(anchors)) == len(properties())


def test_pages_ask_for_what_can_be_generated() -> None:
    """What a page asks for is filled in, and its links lead to pages."""
    for text in PAGES.values():
        filled = HOOKS.on_page_markdown(text, page=None, config=None, files=None)
        assert "<!-- generated" not in filled
        assert "](docs/" not in filled


def test_every_page_is_in_the_navigation() -> None:
    """No page is written that nothing leads to."""
    lines = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    assert sorted(re.findall(r"[\w-]+\.md", lines)) == sorted(PAGES)


def test_links_of_the_readme_lead_to_pages() -> None:
    """The README, which mkdocs doesn't check, links to pages and headings that there are."""
    for target in re.findall(r"\]\(docs/([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        headings = re.findall(r"^#+ (.+)$", PAGES[name], flags=re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
        assert not anchor or anchor in slugs, target


def source_texts() -> str:
    """Return every text of the package's source; what is filled in at run time stands there as ``...``."""
    texts = []
    for path in sorted((ROOT / "pytest_ctxfp").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                texts.append(
                    "".join(str(one.value) if isinstance(one, ast.Constant) else "..." for one in node.values)
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\n".join(texts)


SOURCE = source_texts()
MESSAGES = re.findall(r"^\| `([^`]+)` \| [^|]+ \| [^|]+ \|$", PAGES["messages.md"], flags=re.MULTILINE)


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_are_those_of_the_code(message: str) -> None:
    """Each message of the page is one that the code has, word for word between what varies."""
    pieces = [piece for part in message.split("...") if len(piece := part.strip(" :()")) > 2]
    assert pieces
    assert all(piece in SOURCE for piece in pieces)


def test_lines_of_the_summary_are_told() -> None:
    """The page tells every label of the summary and no other; the gate's page tells the gate's."""
    summary = ast.parse((ROOT / "pytest_ctxfp" / "plugin" / "summary.py").read_text(encoding="utf-8"))
    labels = {
        node.elts[0].value
        for node in ast.walk(summary)
        if isinstance(node, ast.Tuple) and len(node.elts) == 2 and isinstance(node.elts[0], ast.Constant)
        if isinstance(node.elts[1], (ast.List, ast.ListComp, ast.Call, ast.IfExp))
    }
    told = set(re.findall(r"^\| `([\w -]+)` \| [^|]+ \|$", PAGES["messages.md"], flags=re.MULTILINE))
    exceptions = {name for name, value in vars(_errors).items() if is_public_error(name, value)}
    assert labels <= told
    assert told == labels | {"snapshots", "gate"} | exceptions


def is_public_error(name: str, value: object) -> bool:
    """Tell whether a name of the module of errors is an exception that users meet, but not their base."""
    is_error = isinstance(value, type) and issubclass(value, CtxfpError)
    return is_error and value is not CtxfpError and not name.startswith("_")


def yaml_blocks() -> list[tuple[str, str]]:
    """Return every block of YAML in the pages, with the page's name."""
    return [
        (name, block)
        for name, text in {**PAGES, "generated": GENERATED}.items()
        for block in re.findall(r"^```yaml\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    ]


@pytest.mark.parametrize(
    ("name", "block"), yaml_blocks(), ids=[f"{name}-{n}" for n, (name, _) in enumerate(yaml_blocks())]
)
def test_yaml_in_pages_can_be_read(name: str, block: str) -> None:
    """Every block of YAML that a page shows is YAML."""
    examples = block.splitlines() if name == "generated" else [block]  # alternatives, a line each
    assert all(yaml.safe_load(example) is not None for example in examples)


def test_workflows_are_whole() -> None:
    """Each whole workflow that is shown has a trigger, few permissions, and steps that do something."""
    loaded = [yaml.safe_load(block) for name, block in yaml_blocks() if name in ("recipes.md", "tutorial.md")]
    workflows = [one for one in loaded if isinstance(one, dict) and "jobs" in one]
    assert len(workflows) == 4
    for workflow in workflows:
        assert workflow[True], "YAML 1.1 reads the key `on` as true"
        assert "write-all" not in str(workflow["permissions"])
        for job in workflow["jobs"].values():
            assert all(("uses" in step) != ("run" in step) for step in job["steps"])


def test_the_comment_is_written_by_a_workflow_that_runs_no_foreign_code() -> None:
    """The workflow with the right to write checks nothing out, and puts nothing of an event into a script."""
    blocks = [block for name, block in yaml_blocks() if name == "recipes.md" and "workflow_run" in block]
    (block,) = blocks
    workflow = yaml.safe_load(block)
    steps = workflow["jobs"]["comment"]["steps"]
    assert not any("checkout" in step.get("uses", "") for step in steps)
    assert not any("${{" in step.get("run", "") for step in steps)


def test_the_workflow_of_the_tutorial_is_the_one_that_init_writes() -> None:
    """The tutorial shows what the command writes."""
    assert WORKFLOW in PAGES["tutorial.md"]
