"""What the agent knows: all of it read from the context, nothing of it built in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatch

LAYER = re.compile(r"^## (.+)\n", re.MULTILINE)
RULE = re.compile(r"^- ([^\[\n]+) \[(\w+) ?([^\]\n]*)\][^`\n]*`([^`\n]+)`", re.MULTILINE)
TABLE = re.compile(r"CREATE TABLE (\w+) \((.*?)^\);", re.DOTALL | re.MULTILINE)
FOREIGN_KEY = re.compile(r"(\w+) [^,\n]*REFERENCES (\w+)\((\w+)\)")
NOTE = re.compile(r"^- (now|asked before): (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Rule:
    """One line of the business rules: ``- names [kind about]: prose: `sql` ``."""

    names: tuple[str, ...]
    kind: str
    about: tuple[str, ...]
    sql: str

    @property
    def name(self) -> str:
        """The first name as an SQL identifier: it heads the column."""
        return self.names[0].replace(" ", "_")


@dataclass(frozen=True)
class Knowledge:
    """A context, understood.

    ``parents`` maps a table to the tables that its foreign keys lead to, each with the join condition.
    """

    rules: tuple[Rule, ...]
    facts: dict[str, str]
    parents: dict[str, dict[str, str]]
    now: str
    asked_before: tuple[str, ...]

    def of(self, kind: str) -> list[Rule]:
        """Return the rules of a kind, in the order of the context."""
        return [rule for rule in self.rules if rule.kind == kind]

    def columns(self, sql: str) -> list[tuple[str, str]]:
        """Return the ``(table, column)`` pairs that an expression names."""
        return [pair for pair in re.findall(r"\b(\w+)\.(\w+)\b", sql) if pair[0] in self.parents]

    def convert(self, sql: str) -> str:
        """Apply the rules on columns: ``sum(a.b_cents)`` -> ``sum((a.b_cents / 100.0))``."""

        def convert_column(match: re.Match[str]) -> str:
            column = match[0]
            if match[1] not in self.parents:
                return column
            for rule in self.of("column"):
                if any(fnmatch(match[0], pattern) for pattern in rule.about):
                    column = f"({rule.sql.replace('{column}', column)})"
            return column

        return re.sub(r"\b(\w+)\.\w+\b", convert_column, sql)


def read_context(context: str) -> Knowledge:
    """Read an assembled context; a layer that is not there leaves its part empty."""
    parts = LAYER.split(context)
    layers = dict(zip(parts[1::2], parts[2::2], strict=True))
    notes = NOTE.findall(layers.get("Recent Context", ""))
    return Knowledge(
        rules=read_rules(layers.get("Business Rules", "")),
        facts=read_facts(layers.get("Project Facts", "")),
        parents=read_parents(layers.get("Schema", "")),
        now=next((value for name, value in notes if name == "now"), ""),
        asked_before=tuple(value for name, value in notes if name == "asked before"),
    )


def read_rules(text: str) -> tuple[Rule, ...]:
    """Read the business rules; prose between them is for people and models."""
    return tuple(
        Rule(tuple(names.split(", ")), kind, tuple(filter(None, about.split(", "))), sql)
        for names, kind, about, sql in RULE.findall(text)
    )


def read_facts(text: str) -> dict[str, str]:
    """Read ``- category/key=value`` lines, and ``[topic] key=value|key=value`` ones."""
    facts = {}
    for line in text.splitlines():
        for item in re.sub(r"^(- |\[[^\]]*\] )", "", line).split("|"):
            key, found, value = item.partition("=")
            if found:
                facts[key.rpartition("/")[2].strip()] = value.strip()
    return facts


def read_parents(text: str) -> dict[str, dict[str, str]]:
    """Read which table's foreign keys lead where."""
    return {
        table: {
            parent: f"{table}.{column} = {parent}.{key}"
            for column, parent, key in FOREIGN_KEY.findall(columns)
        }
        for table, columns in TABLE.findall(text)
    }
