"""From a question to SQL, by a small grammar over the names that the context defines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from shop.knowledge import Knowledge, Rule

PERIOD = re.compile(r"(\d{4}-\d\d-\d\d) to (\d{4}-\d\d-\d\d)")


class CannotPlanError(Exception):
    """The question, the rules and the schema don't make a query together."""


@dataclass(frozen=True)
class Request:
    """What a question asks for, in the terms of the context."""

    outputs: tuple[Rule, ...]
    groups: tuple[Rule, ...]
    conditions: tuple[str, ...]
    having: str = ""
    highest_first: bool = False
    limit: str = ""


def plan_table(know: Knowledge, question: str) -> str:
    """Plan the query for the question; a follow-up is read together with the question before it.

    Raises:
        CannotPlanError: nothing in the question is defined in the context, or tables don't connect.
    """
    request = read_request(know, question)
    if not request.outputs and not request.groups and know.asked_before:
        request = read_request(know, f"{know.asked_before[-1]} {question}")
    if not request.outputs and not request.groups:
        raise CannotPlanError("nothing that the question names is defined in the context")
    return write_query(know, request)


def read_request(know: Knowledge, question: str) -> Request:
    """Find measures, dimensions, conditions and the order in a question."""
    dimension = any_name(know.of("dimension"))
    group = rf"\b(?:by|per|each|which|list|top \d+) ((?:{dimension})(?:(?:, | and )(?:{dimension}))*)\b"
    value = rf"\b(?:in|of|for|with|from|on) ({dimension}) ('[^']+'|[\w-]+)"
    groups = re.search(group, question, re.IGNORECASE)
    values = re.findall(value, question, re.IGNORECASE)
    # a word is read once: `top 3 customers by revenue` doesn't ask how many customers there are
    rest = re.sub(f"{group}|{value}", " ", question, flags=re.IGNORECASE)
    measures = find_rules(know.of("measure") + know.of("formula"), rest)
    more_than = re.search(r"\bmore than (\d+)\b", rest)
    return Request(
        outputs=measures,
        groups=find_rules(know.of("dimension"), groups[1]) if groups else (),
        conditions=(
            *(f"({find_rules(know.of('dimension'), name)[0].sql}) = {quote(text)}" for name, text in values),
            *find_terms(know, rest),
        ),
        having=f"{measures[0].name} > {more_than[1]}" if more_than and measures else "",
        highest_first=bool(re.search(r"\b(top \d+|highest first)\b", question, re.IGNORECASE)),
        limit="".join(re.findall(r"\btop (\d+)\b", question, re.IGNORECASE)[:1]),
    )


def any_name(rules: list[Rule]) -> str:
    """Return a pattern for any name of the rules, longest first; for no rules one that never matches."""
    names = sorted((name for rule in rules for name in rule.names), key=len, reverse=True)
    return "|".join(map(re.escape, names)) or r"(?!)"


def find_rules(rules: list[Rule], text: str) -> tuple[Rule, ...]:
    """Return the rules named in a text, each once, in the order of the text."""
    found = re.findall(rf"\b(?:{any_name(rules)})\b", text, re.IGNORECASE)
    by_name = {name.lower(): rule for rule in rules for name in rule.names}
    return tuple(dict.fromkeys(by_name[name.lower()] for name in found))


def find_terms(know: Knowledge, text: str) -> list[str]:
    """Return the conditions behind the facts that a text names: a period, or SQL over the schema."""
    conditions = []
    for key, value in know.facts.items():
        if not re.search(rf"\b{re.escape(key)}\b", text, re.IGNORECASE):
            continue
        period = PERIOD.fullmatch(value)
        if period:
            date = next((rule.sql for rule in know.of("dimension") if rule.name == "date"), "NULL")
            conditions.append(f"({date}) BETWEEN '{period[1]}' AND '{period[2]}'")
        elif know.columns(value):
            conditions.append(value)
    return conditions


def write_query(know: Knowledge, request: Request) -> str:
    """Write the query: each measure on its own grain, so that no join counts a row twice."""
    measures = base_measures(know, request.outputs)
    if not measures:
        return write_select(know, request, None) + write_order(request)
    groups = ", ".join(rule.name for rule in request.groups)
    parts = ", ".join(f"q_{measure.name} AS ({write_select(know, request, measure)})" for measure in measures)
    using = f" USING ({groups})" if groups else ""
    joins = "".join(f" LEFT JOIN q_{measure.name}{using}" for measure in measures[1:])
    outputs = [
        f"{rule.sql} AS {rule.name}" if rule.kind == "formula" else rule.name for rule in request.outputs
    ]
    columns = ", ".join([*(rule.name for rule in request.groups), *outputs])
    having = f" WHERE {request.having}" if request.having else ""
    return f"WITH {parts} SELECT {columns} FROM q_{measures[0].name}{joins}{having}{write_order(request)}"


def base_measures(know: Knowledge, outputs: tuple[Rule, ...]) -> list[Rule]:
    """Return the measures to compute for the outputs: a formula stands for those it names."""
    by_name = {rule.name: rule for rule in know.of("measure")}
    measures = {}
    for rule in outputs:
        # what is called in a formula is a function of SQL, every other name is a measure
        words = re.findall(r"\b[a-z_]+\b(?!\()", rule.sql) if rule.kind == "formula" else [rule.name]
        for word in words:
            if word not in by_name:
                raise CannotPlanError(f"{word!r} is not defined")
            measures[word] = by_name[word]
    return list(measures.values())


def write_select(know: Knowledge, request: Request, measure: Rule | None) -> str:
    """Write the query for one measure by the groups, or for the groups alone."""
    outputs = [*request.groups, *filter(None, [measure])]
    wanted = [know.convert(sql) for sql in (*(rule.sql for rule in outputs), *request.conditions)]
    own = tables_of(know, [know.convert(measure.sql)] if measure else wanted)
    base = find_base(know, own, needed=tables_of(know, wanted))
    conditions = [*wanted[len(outputs) :], *find_filters(know, base, measure)]
    columns = ", ".join(f"{sql} AS {rule.name}" for sql, rule in zip(wanted, outputs, strict=False))
    source = write_joins(know, base, tables_of(know, [*wanted, *conditions]))
    where = " AND ".join(f"({condition})" for condition in conditions)
    places = ", ".join(str(n) for n in range(1, len(request.groups) + 1))
    return f"SELECT {columns} FROM {source}" + clause("WHERE", where) + clause("GROUP BY", places)


def find_filters(know: Knowledge, base: str, measure: Rule | None) -> list[str]:
    """Return the conditions that the rules put on a measure, or on everything."""
    filters = [
        know.convert(rule.sql)
        for rule in know.of("filter")
        if not rule.about or (measure and measure.names[0] in rule.about)
    ]
    # what foreign keys don't lead to is about something else: products have no test accounts
    return [sql for sql in filters if all(find_path(know, base, table) for table in tables_of(know, [sql]))]


def tables_of(know: Knowledge, expressions: list[str]) -> list[str]:
    """Return the tables that expressions name, each once, in order."""
    return list(dict.fromkeys(table for sql in expressions for table, _ in know.columns(sql)))


def find_base(know: Knowledge, own: list[str], *, needed: list[str]) -> str:
    """Return the table from which foreign keys lead to every other: joining along them adds no rows."""
    if not needed:
        raise CannotPlanError("the schema has no table for it")
    for base in own:
        if all(find_path(know, base, table) for table in needed):
            return base
    raise CannotPlanError(f"no foreign keys lead from one table to all of {', '.join(needed)}")


def find_path(know: Knowledge, table: str, target: str) -> tuple[str, ...]:
    """Return the tables on the way along foreign keys, both ends included; empty where there is none."""
    if table == target:
        return (table,)
    for parent in know.parents.get(table, {}):
        path = find_path(know, parent, target)
        if path:
            return (table, *path)
    return ()


def write_joins(know: Knowledge, base: str, tables: list[str]) -> str:
    """Write ``order_items JOIN orders ON order_items.order_id = orders.id ...``."""
    joins = {
        parent: f" JOIN {parent} ON {know.parents[child][parent]}"
        for table in tables
        for child, parent in pairwise(find_path(know, base, table))
    }
    return base + "".join(joins.values())


def write_order(request: Request) -> str:
    """Write the order: by the first measure where asked for, and always by the groups."""
    names = [rule.name for rule in request.groups]
    if request.highest_first and request.outputs:
        names.insert(0, f"{request.outputs[0].name} DESC")
    return clause("ORDER BY", ", ".join(names)) + clause("LIMIT", request.limit)


def plan_freshness(know: Knowledge, question: str) -> tuple[Rule, str]:
    """Plan the query for the age of the newest row, in hours, and its severity.

    Raises:
        CannotPlanError: no cadence is known for what the question names, or the context has no time.
    """
    cadences = find_rules(know.of("cadence"), question)
    if not cadences or not know.of("severity") or not know.now:
        raise CannotPlanError("the cadence, the severities or the present time are not in the context")
    rule = cadences[0]
    hours = rule.about[0].split()[0]
    newest = Rule(
        rule.names, "measure", (), f"24 * (julianday({quote(know.now)}) - julianday(max({rule.sql})))"
    )
    request = Request(outputs=(newest,), groups=(), conditions=())
    severities = " ".join(f"WHEN {level.sql} THEN '{level.name}'" for level in know.of("severity"))
    age = write_select(know, request, newest)
    lag = f"SELECT round({rule.name}, 1) AS lag, {hours} AS cadence FROM ({age})"
    return rule, f"SELECT lag, CASE {severities} ELSE 'ok' END AS severity FROM ({lag})"


def clause(keyword: str, text: str) -> str:
    """Return a clause of a query, or nothing for an empty one."""
    return f" {keyword} {text}" if text else ""


def quote(text: str) -> str:
    """Return a text as an SQL literal; quotes around it in the question are not part of it."""
    return "'" + text.strip("'").replace("'", "''") + "'"
