"""Golden SQL on a real database: what is expected, and what a stored answer's SQL gives today."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project

CONFTEST = """
import pathlib
import sqlite3

import pytest

from pytest_ctxfp import AgentResult

HERE = pathlib.Path(__file__).parent
SQL = {"How many orders?": "select count(*) as n from orders", "Which orders?": "select id from orders"}


@pytest.fixture
def ctx_execute():
    connection = sqlite3.connect(f"file:{HERE / 'shop.sqlite'}?mode=ro", uri=True)
    yield connection.execute
    connection.close()


@pytest.fixture
def ctx_agent():
    def ask(question):
        with open(HERE / "calls.txt", "a") as log:
            log.write(question + "\\n")
        connection = sqlite3.connect(HERE / "shop.sqlite")
        cursor = connection.execute(SQL[question])
        table = {"columns": [column[0] for column in cursor.description], "rows": cursor.fetchall()}
        connection.close()
        return AgentResult(table, sql=SQL[question])
    return ask
"""

GOLDEN = """cases:
  - id: total
    question: How many orders?
    expected_sql: select count(id) as n from orders
  - id: ids
    question: Which orders?
    match: set
    expected_sql: |
      select id from orders
  - id: rows
    question: Which orders?
    match: set
    expected: {columns: [id], rows: [[1], [2]]}
"""


@pytest.fixture
def shop(project: Project) -> Project:
    """A project over a database with two orders."""
    project.write("conftest.py", CONFTEST)
    project.write("golden.yaml", GOLDEN)
    run_sql(project, "create table orders (id integer)", "insert into orders values (1), (2)")
    return project


def run_sql(project: Project, *statements: str) -> None:
    """Change the database."""
    with closing(sqlite3.connect(project.path / "shop.sqlite")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_stored_sql_runs_again(shop: Project, how: list[str]) -> None:
    """The database changes: golden SQL and the stored answer's SQL give new rows alike, without any call."""
    shop.run("--ctx-cache", *how).assert_outcomes(passed=3)
    assert len(shop.calls()) == 3
    run_sql(shop, "insert into orders values (3)")
    shop.run("--ctx-cache", *how).assert_outcomes(passed=3)
    assert shop.calls() == []


def test_stored_sql_may_fail_today(shop: Project) -> None:
    """A stored answer's SQL that gives other rows than the golden SQL fails, with what it gives today."""
    shop.run("--ctx-cache")
    shop.edit("golden.yaml", "select count(id) as n from orders", "select count(id) + 1 as n from orders")
    run_sql(shop, "insert into orders values (3)")
    result = shop.run("--ctx-cache")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "row 1, column 'n': expected 4, actual 3 (off by 1)",
            "match      scalar, SQL select count(id) + 1 as n from orders",
            "answer     stored, *; its SQL was run again; re-scored: passed -> failed",
        ]
    )


def test_sql_that_fails_is_an_error(shop: Project) -> None:
    """Golden SQL that the database refuses is an ERROR with its words and the line; nobody is asked."""
    shop.edit("golden.yaml", "count(id) as n", "count(total) as n")
    result = shop.run("--ctx-cache")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        [
            "golden.yaml:2: case 'total': expected_sql failed: OperationalError: no such column: total",
            "    select count(total) as n from orders",
        ]
    )
    assert len(shop.calls()) == 2


def test_stored_sql_that_fails_is_an_error(shop: Project) -> None:
    """A stored answer whose SQL the database refuses today is an ERROR of its item, no wrong answer."""
    shop.run("--ctx-cache")
    run_sql(shop, "alter table orders rename column id to number")
    shop.edit("golden.yaml", "      select id from orders", "      select number from orders")
    shop.edit("golden.yaml", "count(id)", "count(number)")
    result = shop.run("--ctx-cache")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["golden.yaml:5: case 'ids': the stored answer's SQL failed: *no such column: id"]
    )


def test_answer_that_its_sql_does_not_give(shop: Project) -> None:
    """An agent that misreads its own rows fails on every run: its SQL never stands in for its answer."""
    shop.edit(
        "conftest.py", "return AgentResult(table,", 'return AgentResult({"columns": ["n"], "rows": [[7]]},'
    )
    shop.write("golden.yaml", GOLDEN[: GOLDEN.index("  - id: ids")])
    for _ in range(2):
        result = shop.run("--ctx-cache")
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["row 1, column 'n': expected 2, actual 7*"])
    assert len(shop.calls()) == 1


def test_without_the_fixture(shop: Project) -> None:
    """Golden SQL without ``ctx_execute`` is an error that shows the lines to write."""
    shop.edit("conftest.py", "def ctx_execute", "def other_execute")
    result = shop.run("--ctx-cache")
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(["golden.yaml:2: case 'total' has expected_sql, which nothing runs: *"])


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("return lambda sql: 3", "*expected_sql failed: ctx_execute returned int: return a cursor*"),
        ("return 3", "fixture ctx_execute gave int: return a function from SQL to a table"),
        (
            "return lambda sql: {'columns': ['n'], 'rows': []}",
            "*a scalar is expected as one row of one cell*",
        ),
    ],
)
def test_what_ctx_execute_may_not_give(shop: Project, body: str, text: str) -> None:
    """What is no table, or no table that the case can be scored by, is an error of the item."""
    shop.write("golden.yaml", GOLDEN[: GOLDEN.index("  - id: ids")])
    start, rest = (shop.path / "conftest.py").read_text().split("    connection = sqlite3.connect(f", 1)
    shop.write("conftest.py", f"{start}    {body}\n\n\n{rest[rest.index('@pytest.fixture') :]}")
    result = shop.run("--ctx-cache")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([text])
    assert shop.calls() == []


def test_async_execute(shop: Project) -> None:
    """``ctx_execute`` may be async."""
    shop.edit("conftest.py", "    yield connection.execute\n", ASYNC)
    shop.run("--ctx-cache").assert_outcomes(passed=3)


ASYNC = """
    async def execute(sql):
        return connection.execute(sql)
    yield execute
"""
