"""An offline stand-in for an LLM agent: it answers from the context it is given and from the database.

By itself it knows nothing of the shop. Take a rule out of the context and the SQL changes, as a model's
would.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from pytest_ctxfp import AgentResult
from shop.knowledge import Knowledge, read_context
from shop.planner import CannotPlanError, plan_freshness, plan_table

if TYPE_CHECKING:
    from pathlib import Path

USD_PER_CHARACTER = 1e-7
FRESHNESS = re.compile(r"\b(fresh|stale|overdue)\b", re.IGNORECASE)


def answer(question: str, context: str, *, database: Path) -> AgentResult:
    """Answer a question from the context and the database.

    Args:
        question: the user's message.
        context: the assembled prompt: the only source of rules, schema, facts and history.
        database: the SQLite file; it is opened read-only.
    """
    know = read_context(context)
    value: object
    sql = None
    try:
        if FRESHNESS.search(question):
            value, sql = report_freshness(know, question, database=database)
        else:
            value, sql = report_table(know, question, database=database)
    except CannotPlanError as problem:
        value = report_facts(know, question) or f"I don't know: {problem}."
    # what a provider would bill, from what was read and written: the same in every run
    cost = round((len(context) + 4 * len(str(value))) * USD_PER_CHARACTER, 6)
    return AgentResult(value, cost=cost, turns=2 if sql else 1, sql=sql)


def report_table(know: Knowledge, question: str, *, database: Path) -> tuple[str, str]:
    """Return the answer as prose with a fenced table, and the SQL it rests on."""
    sql = plan_table(know, question)
    columns, rows = run_sql(sql, database)
    return (
        f"I asked the database and got {len(rows)} row(s).\n\n{fence({'columns': columns, 'rows': rows})}",
        sql,
    )


def report_freshness(know: Knowledge, question: str, *, database: Path) -> tuple[str, str]:
    """Return the answer as prose with a fenced verdict, and the SQL it rests on."""
    cadence, sql = plan_freshness(know, question)
    _, [[lag, severity]] = run_sql(sql, database)
    fresh = severity == "ok"
    label = f"{cadence.names[0]} freshness"
    status = {"type": "status", "state": "fresh" if fresh else "stale", "label": label, "severity": severity}
    verdict = {
        "type": "freshness_verdict",
        "fresh": fresh,
        "observed_lag_hours": lag,
        "expected_cadence": cadence.about[0],
    }
    return f"The newest row is {lag} hours old.\n\n{fence({'blocks': [status], 'verdict': verdict})}", sql


def report_facts(know: Knowledge, question: str) -> str | dict[str, str]:
    """Return what the facts say about the things a question names, as text or JSON, or nothing."""
    named = {key: value for key, value in know.facts.items() if key.lower() in question.lower()}
    if named and re.search(r"\bas JSON\b", question, re.IGNORECASE):
        return named
    return "\n".join(f"The {key} is: {value}." for key, value in named.items())


def run_sql(sql: str, database: Path) -> tuple[list[str], list[list[object]]]:
    """Return the column names and the rows of a query."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        cursor = connection.execute(sql)
        return [column[0] for column in cursor.description], [list(row) for row in cursor]


def fence(value: object) -> str:
    """Return a value as a fenced JSON block."""
    return f"```json\n{json.dumps(value, ensure_ascii=False)}\n```"
