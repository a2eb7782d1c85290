"""The line that tells an editor the schema of a golden file; every other byte of the file stays."""

from __future__ import annotations

import re

MODELINE = "# yaml-language-server: $schema="

# What the language server takes for its line, and which lines may stand above the content of a document.
_REFERENCE = re.compile(r"^#\s+yaml-language-server\s*:.*?\$schema=(\S+)")
_HEAD = re.compile(r"[ \t]*(?:#.*)?|%.*|---(?:[ \t].*)?")
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|$)")


def point_yaml_to(text: str, reference: str) -> str:
    r"""Return a YAML text whose head names a schema: where one is named, another; else by a first line.

    Args:
        text: a golden file, without a byte order mark.
        reference: path or URL of the schema; a path counts from the folder of the file.

    Example:
        >>> point_yaml_to("cases: []\n", "golden.schema.json")
        '# yaml-language-server: $schema=golden.schema.json\\ncases: []\n'
    """
    for start, line in _head_lines(text):
        found = _REFERENCE.match(line)
        if found is not None:
            return text[: start + found.start(1)] + reference + text[start + found.end(1) :]
    first_line = _LINE.match(text)
    line_end = (first_line and first_line[2]) or "\n"
    return f"{MODELINE}{reference}{line_end}{text}"


def _head_lines(text: str) -> list[tuple[int, str]]:
    """Return where the comments, directives and markers above the content begin, and what they are."""
    lines = []
    position = 0
    while position < len(text):
        line = _LINE.match(text, position)
        if line is None or not _HEAD.fullmatch(line[1]):
            break
        lines.append((position, line[1]))
        position = line.end()
    return lines


def point_json_to(text: str, reference: str) -> str:
    """Return the text of a golden file in JSON whose key ``$schema`` names a schema.

    Args:
        text: an object in JSON, without a byte order mark.
        reference: path or URL of the schema.
    """
    import json

    from pytest_ctxfp._cli.stamping import edit_json

    return edit_json(text, "$schema", json.dumps(reference))
