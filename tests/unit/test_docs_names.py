"""The documentation and the code name the same flags, options, fixtures, markers, hooks and commands."""

from __future__ import annotations

import argparse
import ast
import re
from pathlib import Path

import pytest

import pytest_ctxfp
import pytest_ctxfp.agents
from pytest_ctxfp._cli import make_parser
from pytest_ctxfp.plugin import hookspecs
from pytest_ctxfp.plugin.options import add_options

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
ALL = {"README.md": (ROOT / "README.md").read_text(encoding="utf-8"), **PAGES}
REFERENCE = PAGES["reference.md"]
PLUGIN = ast.parse((ROOT / "pytest_ctxfp" / "plugin" / "__init__.py").read_text(encoding="utf-8"))


class Recorder:
    """Stands in for pytest's parser: keeps what is registered."""

    def __init__(self) -> None:
        self.flags: dict[str, dict[str, object]] = {}
        self.ini: set[str] = set()

    def getgroup(self, *_: object) -> Recorder:
        """Return the group of flags."""
        return self

    def addoption(self, name: str, **options: object) -> None:
        """Keep a flag."""
        self.flags[name] = options

    def addini(self, name: str, *_: object, **__: object) -> None:
        """Keep an ini option."""
        self.ini.add(name)


REGISTERED = Recorder()
add_options(REGISTERED)  # type: ignore[arg-type] # the part of a parser that it uses
FLAGS = {*REGISTERED.flags, "--no-cache"}
FIXTURES = {
    node.name
    for node in PLUGIN.body
    if isinstance(node, ast.FunctionDef) and any("fixture" in ast.unparse(one) for one in node.decorator_list)
}
HOOKS = {name for name in vars(hookspecs) if name.startswith("pytest_ctxfp_")}
MARKERS = {
    call.args[1].value.partition("(")[0]
    for call in ast.walk(PLUGIN)
    if isinstance(call, ast.Call)
    and ast.unparse(call.func).endswith("addinivalue_line")
    and isinstance(call.args[1], ast.Constant)
}


def first_cells(section: str) -> set[str]:
    """Return the names in the first column of the tables of a section of the reference."""
    text = REFERENCE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(--[\w-]+|\w+)", text, flags=re.MULTILINE)
    return set(rows)


@pytest.mark.parametrize(
    ("sections", "names"),
    [
        (["Flags of pytest"], FLAGS),
        (["Ini options"], REGISTERED.ini),
        (["Fixtures to override", "Fixtures to ask for"], FIXTURES),
        (["Marker"], MARKERS),
        (["Hooks"], HOOKS),
    ],
    ids=["flags", "ini", "fixtures", "markers", "hooks"],
)
def test_the_reference_lists_what_there_is(sections: list[str], names: set[str]) -> None:
    """The reference has a row for each name of the code, and no row for another."""
    assert names
    assert set().union(*map(first_cells, sections)) == names


def test_the_reference_tells_the_defaults() -> None:
    """What a flag takes, and how often, is what the code says."""
    for name, options in REGISTERED.flags.items():
        row = next(line for line in REFERENCE.splitlines() if line.startswith(f"| `{name}"))
        flag = row.split("`")[1]
        takes_value = options.get("action") != "store_true"
        assert ("=" in flag) == takes_value, flag
        assert ("repeatable" in row) == (options.get("action") == "append"), row
        for choice in options.get("choices", ()):  # type: ignore[attr-defined] # a tuple of texts
            assert f"`{choice}`" in row


@pytest.mark.parametrize("name", ALL)
def test_names_in_pages_exist(name: str) -> None:
    """Every flag, ini option, fixture, marker and hook that a page names is one of the code."""
    text = ALL[name]
    flags = set(re.findall(r"(?<![\w-])--(?:ctx-|no-ctx-|no-cache)[\w-]*", text))
    assert flags <= FLAGS
    modules = {path.stem for path in (ROOT / "pytest_ctxfp").rglob("*.py")}
    known = REGISTERED.ini | FIXTURES | MARKERS | HOOKS | modules
    names = set(re.findall(r"(?<![\w./-])(?:pytest_)?ctx(?:fp)?_\w+", text)) - JUNIT
    assert names <= known


JUNIT = {"ctxfp_state", "ctxfp_key", "ctxfp_cost", "ctxfp_score"}


def test_flags_in_pages_take_the_values_shown() -> None:
    """A value that a page gives to a flag in a command is one that the flag takes."""
    n_checked = 0
    for text in ALL.values():
        for line in re.findall(r"(?:\$ |run: |  )(?:pytest|ctxfp plan) .*", text):
            for name, value in re.findall(r"(--ctx-[\w-]+)=([^\s`'\"#|]+)", line):
                options = REGISTERED.flags[name]
                if "choices" in options:
                    assert value in options["choices"], line  # type: ignore[operator] # a tuple of texts
                if "type" in options:
                    options["type"](value)  # type: ignore[operator] # raises what is no value
                n_checked += 1
    assert n_checked > 20


def commands(parser: argparse.ArgumentParser, *names: str) -> dict[tuple[str, ...], set[str]]:
    """Return each command of ``ctxfp`` and its options."""
    found: dict[tuple[str, ...], set[str]] = {}
    options: set[str] = set()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                found |= commands(inner, *names, name)
        else:
            options |= {option for option in action.option_strings if option not in ("-h", "--help")}
    return found or {names: options}


COMMANDS = commands(make_parser())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_is_documented(command: tuple[str, ...]) -> None:
    """The page of the command has a section for each, and names each option there or at its head."""
    page = PAGES["command-line.md"]
    head, *sections = re.split(r"\n## ", page)
    section = next(text for text in sections if command[0] in text.partition("\n")[0].split())
    assert all(re.search(rf"\b{word}\b", section) for word in command[1:])
    shown = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", section + head))
    if command[0] == "diff":
        shown |= set(re.findall(r"--[a-z]+", page.split("\n## fingerprint")[1]))
    assert COMMANDS[command] <= shown


def test_options_of_commands_in_pages_exist() -> None:
    """Every option that a page gives to a command of ``ctxfp`` is one that it has."""
    by_first: dict[str, set[str]] = {}
    for command, options in COMMANDS.items():
        by_first.setdefault(command[0], set()).update(options)
    n_checked = 0
    for text in ALL.values():
        for line in re.findall(r"ctxfp (?:" + "|".join(by_first) + r")\b[^`\n|]*", text):
            name = line.split()[1]
            options = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", line.partition(" # ")[0]))
            allowed = by_first[name] | (FLAGS | {"--help"} if name == "plan" else {"--help"})
            assert options <= allowed, line
            n_checked += len(options)
    assert n_checked > 5


def test_the_api_page_lists_all_public_names() -> None:
    """Each public name has an entry, and no other name has one."""
    entries = re.findall(r"^::: pytest_ctxfp\.(\w+)$", PAGES["api.md"], flags=re.MULTILINE)
    assert sorted(entries) == sorted({*pytest_ctxfp.__all__, "agents"})
    shown = re.search(r"members: \[(.*)\]", PAGES["api.md"])
    assert shown is not None
    assert sorted(shown[1].split(", ")) == sorted(pytest_ctxfp.agents.__all__)


def test_extras_that_are_named_exist() -> None:
    """Each extra of the reference is one of the package."""
    extras = first_cells("Extras")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert extras
    assert all(re.search(rf"^{extra} = \[", project, flags=re.MULTILINE) for extra in extras)
