"""What mkdocs puts into pages when it builds them: the reference of golden files, and parts of the README.

A page says where by a line ``<!-- generated: NAME -->``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from pytest_ctxfp import golden_schema

README = Path(__file__).parents[1] / "README.md"
JSON_LINES = "a case: see $defs/case"
REPOSITORY_FILES = re.compile(r"\]\((?:docs/)([\w-]+\.md(?:#[\w-]*)?)\)")

_MARK = re.compile(r"^<!-- generated: (.+) -->$", flags=re.MULTILINE)
_COMMENT = re.compile(r"^<!-- .* -->\n", flags=re.MULTILINE)
_PARTS = (
    ("", "Top level"),
    ("case", "A case"),
    ("table", "A table in `expected`"),
    ("tolerance", "Tolerance"),
)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Fill in what a page asks for; mkdocs calls this for each page."""
    return _MARK.sub(lambda mark: _generate(mark[1]), markdown)


def _generate(name: str) -> str:
    if name == "golden reference":
        return render_golden_reference()
    if name == "readme key table":
        return readme_table("What is a hit")
    return readme_section(name.removeprefix("readme "))


def readme_section(heading: str) -> str:
    """Return what stands below a heading of the README, or its head; links are as pages have them."""
    text = README.read_text(encoding="utf-8")
    parts = re.split(r"^##? (.+)\n", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    section = sections["pytest-ctxfp" if heading == "intro" else heading]
    return REPOSITORY_FILES.sub(r"](\1)", _COMMENT.sub("", section)).strip()


def readme_table(heading: str) -> str:
    """Return the first table below a heading of the README."""
    lines = readme_section(heading).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("|"))
    rest = lines[start:]
    end = next((n for n, line in enumerate(rest) if not line.startswith("|")), len(rest))
    return "\n".join(rest[:end])


def render_golden_reference() -> str:
    """Return a section for each object of a golden file, and in it an entry for each of its keys."""
    schema = golden_schema()
    pieces = []
    for name, title in _PARTS:
        part = schema["$defs"][name] if name else schema
        pieces.append(f"### {title}\n\n{part['description'].replace(JSON_LINES, 'a case')}")
        required = part.get("required", [])
        pieces += [
            _render_key(key, value, schema, anchor=f"{name or 'top'}-{key}", is_required=key in required)
            for key, value in part["properties"].items()
        ]
    return "\n\n".join(pieces)


def _render_key(key: str, part: dict, schema: dict, *, anchor: str, is_required: bool) -> str:
    facts = [_name_types(part, schema), *(["required"] if is_required else [])]
    shown = "\n".join(f"{key}: {_flow(example)}" for example in part["examples"])
    return (
        f"#### `{key}` {{: #{anchor.replace('$', '')} }}\n\n{', '.join(filter(None, facts))}\n\n"
        f"{part['description']}\n\n```yaml\n{shown}\n```"
    )


def _name_types(part: dict, schema: dict) -> str:
    if "enum" in part:
        return "one of " + ", ".join(f"`{word}`" for word in part["enum"])
    reference = part.get("$ref") or next(
        (one["$ref"] for one in part.get("anyOf", []) if "$ref" in one), None
    )
    if reference is not None:
        target = schema["$defs"][reference.rpartition("/")[2]]
        return _name_types(target, schema) if reference.endswith("text") else "an object"
    types = part.get("type", [])
    names = [types] if isinstance(types, str) else types
    words = {"string": "text", "object": "an object", "array": "a list"}
    spoken = [words.get(name, name) for name in names if name != "null"]
    if spoken[:1] == ["text"]:  # what YAML takes for a number or a boolean is a text here
        return "text"
    limits = [f"{word} {part[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in part]
    return " ".join([" or ".join(spoken), *limits])


def _flow(value: object) -> str:
    """Return a value in YAML on one line: ``{ columns: [n], rows: [[99]] }``."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key}: {_flow(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if (
        isinstance(value, str)
        and re.fullmatch(r"[A-Za-z]\w*", value)
        and value not in ("true", "false", "null")
    ):
        return value
    return json.dumps(value, ensure_ascii=False)
