"""The example project by its parts: its agent, its golden cases and what each rule is worth."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_ctxfp import Trace, extract_result, load_facts, load_golden, render_flat, rescore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_ctxfp import AgentResult, GoldenCase

SUITE = Path(__file__).parents[2] / "example_suite"
CASES = {
    case.id: case for path in sorted((SUITE / "golden").iterdir()) for case in load_golden(str(path)).cases
}
SCORED = {name: case for name, case in CASES.items() if case.skip is None and case.xfail is None}


QUERIED = {"table", "verdict"}
"""Kinds of answers that take a query; texts and JSON are answered by the facts alone."""


class Shop(NamedTuple):
    """The example's assembler, and its agent with the database bound."""

    assemble: Callable[..., str]
    ask: Callable[[str, str], AgentResult]

    def context(self, case: GoldenCase) -> str:
        """Assemble a case's context."""
        return self.assemble(case.question, case.inputs)

    def failing(self, edit: Callable[[str], str]) -> set[str]:
        """Ask everything with edited contexts and return the ids of the cases that fail."""
        return {
            case.id
            for case in SCORED.values()
            if not is_passing(case, self.ask(case.question, edit(self.context(case))))
        }


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Import the example from its folder, as its pytest.ini does, and forget it afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SUITE))
        agent, assembler, database = (
            importlib.import_module(f"shop.{name}") for name in ("agent", "assembler", "database")
        )
        path = database.build_database(tmp_path_factory.mktemp("shop") / "shop.sqlite")
        yield Shop(
            assembler.assemble, lambda question, context: agent.answer(question, context, database=path)
        )
        for name in [name for name in sys.modules if name.split(".")[0] == "shop"]:
            del sys.modules[name]


def is_passing(case: GoldenCase, answer: AgentResult) -> bool:
    """Score an answer as a stored one is scored; an answer that can't be read is a wrong one."""
    value = answer.value
    result = extract_result(value, case.result_kind) if isinstance(value, str) else value
    if result is None:
        return False
    stored = {
        "case_id": case.id,
        "agent_sha": "0" * 40,
        "model": "offline",
        "context_sha": "0" * 40,
        "question": case.question,
        "result": result,
        "latency_ms": 0,
    }
    comparison = rescore(Trace.from_json(json.dumps(stored)), case)
    return comparison is not None and comparison.passed


def without_rule(rule: str) -> Callable[[str], str]:
    """Return an edit that takes a line of the business rules, given by its beginning, out of a context."""

    def edit(context: str) -> str:
        edited, n_lines = re.subn(rf"^- {re.escape(rule)}.*\n", "", context, flags=re.MULTILINE)
        assert n_lines == 1, rule
        return edited

    return edit


def replaced(old: str, new: str) -> Callable[[str], str]:
    """Return an edit that replaces the only occurrence of a text in a context."""

    def edit(context: str) -> str:
        assert context.count(old) == 1, old
        return context.replace(old, new)

    return edit


@pytest.mark.parametrize("case", SCORED.values(), ids=SCORED.keys())
def test_every_case_passes(shop: Shop, case: GoldenCase) -> None:
    """The agent answers every case that is neither skipped nor expected to fail."""
    assert is_passing(case, shop.ask(case.question, shop.context(case)))


def test_expected_failure_fails(shop: Shop) -> None:
    """The case marked as an expected failure has a readable answer, and a wrong one."""
    expected_to_fail = [case for case in CASES.values() if case.xfail is not None]
    assert [case.id for case in expected_to_fail] == ["customers_without_orders"]
    answer = shop.ask(expected_to_fail[0].question, shop.context(expected_to_fail[0]))
    assert extract_result(str(answer.value)) is not None
    assert not is_passing(expected_to_fail[0], answer)


def test_kinds_and_modes_are_all_there() -> None:
    """The golden cases show every kind of answer, every table mode and every kind of tolerance."""
    assert {case.result_kind.value for case in CASES.values()} == {"table", "verdict", "text", "json"}
    tables = [case for case in CASES.values() if case.result_kind.value == "table"]
    assert {case.match for case in tables} == {"scalar", "set", "ordered"}
    assert {key for case in tables for key in case.tolerance} == {"numeric", "relative", "columns"}
    assert any(case.extra_columns for case in tables)
    assert len(tables) >= 20


REVENUE = {
    "average_order_value",
    "net_revenue_by_currency",
    "revenue_by_fiscal_quarter",
    "revenue_by_year",
    "revenue_total",
}
"""The cases that any fault in a sum of money breaks."""

RULES = {
    "gift cards [filter": REVENUE | {"gift_card_units", "revenue_by_month", "winter_sale_revenue"},
    "cancelled orders [filter": REVENUE
    | {
        "gold_revenue_by_country",
        "refunds_by_reason",
        "revenue_by_month",
        "revenue_new_zealand_follow_up",
        "top_customers",
    },
    "test accounts [filter": REVENUE
    | {
        "buyers_by_channel",
        "customers_total",
        "first_orders_new_zealand",
        "gold_revenue_by_country",
        "orders_by_status",
        "orders_critical",
        "orders_total",
        "orders_warn",
        "refunds_by_reason",
        "repeat_customers",
        "revenue_new_zealand_follow_up",
        "top_customers",
    },
    "cents [column": REVENUE
    | {
        "gold_revenue_by_country",
        "refunds_by_reason",
        "revenue_by_month",
        "revenue_new_zealand_follow_up",
        "tents_price_list",
        "top_customers",
        "winter_sale_revenue",
    },
    "shop time [column": (REVENUE - {"average_order_value", "revenue_total"})
    | {
        "first_orders_new_zealand",
        "new_year_orders",
        "revenue_by_month",
        "winter_sale_revenue",
    },
    "critical [severity": {"orders_critical"},
    "refunds [cadence": {"refunds_fresh"},
    "units [measure": {"gift_card_units", "units_by_postcode"},
}


@pytest.mark.parametrize(("rule", "failing"), RULES.items(), ids=[rule.split(" [")[0] for rule in RULES])
def test_rule_decides_its_cases(shop: Shop, rule: str, failing: set[str]) -> None:
    """A context without a business rule fails exactly the cases that rest on the rule."""
    assert shop.failing(without_rule(rule)) == failing


def test_no_rule_is_idle(shop: Shop) -> None:
    """Each business rule is needed by a case: without it at least one fails."""
    rules = re.findall(r"^- ([^\n\[]+ \[\w+)", (SUITE / "shop" / "rules.md").read_text("utf-8"), re.MULTILINE)
    assert len(rules) > 30
    assert [rule for rule in rules if not shop.failing(without_rule(rule))] == []


def test_fact_decides_its_case(shop: Shop) -> None:
    """A campaign that starts a day earlier changes the campaign's revenue, and no other answer."""
    earlier = replaced("winter sale=2024-06-15", "winter sale=2024-06-14")
    assert shop.failing(earlier) == {"winter_sale_revenue"}
    case = SCORED["winter_sale_revenue"]
    table = extract_result(str(shop.ask(case.question, earlier(shop.context(case))).value))
    assert isinstance(table, dict)
    assert table["rows"] == [[pytest.approx(1336.58 + 89.00)]]  # order 1023: a camp stove, late on the 14th


def test_facts_may_come_as_a_list(shop: Shop) -> None:
    """The agent reads facts a line each as it reads them in clusters, ``[topic] key=value|key=value``."""
    facts = f"## Project Facts\n{render_flat(load_facts(SUITE / 'shop' / 'facts.jsonl'))}\n\n"

    def flatten(context: str) -> str:
        assert "\n[terms] gold members=" in context
        pattern = re.compile(r"^## Project Facts\n.*?(?=^## )", re.DOTALL | re.MULTILINE)
        return pattern.sub(lambda _: facts, context)

    assert shop.failing(flatten) == set()


@pytest.mark.parametrize("layer", ["Schema", "Business Rules"])
def test_agent_knows_nothing_by_itself(shop: Shop, layer: str) -> None:
    """Without the schema or the rules, no query is planned: the agent says that it doesn't know."""

    def drop(context: str) -> str:
        return re.sub(rf"^## {layer}\n.*?(?=^## )", "", context, flags=re.DOTALL | re.MULTILINE)

    assert shop.failing(drop) == {name for name, case in SCORED.items() if case.result_kind.value in QUERIED}
    case = SCORED["revenue_total"]
    answer = shop.ask(case.question, drop(shop.context(case)))
    assert str(answer.value).startswith("I don't know")
    assert answer.sql is None


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is our return window?", "The return window is: 30 days with the receipt, 60 days for tents."),
        ("The free shipping threshold as JSON, please.", {"free shipping threshold": "99.00 AUD"}),
        (
            "Who is our accountant?",
            "I don't know: nothing that the question names is defined in the context.",
        ),
    ],
)
def test_facts_answer_what_no_query_can(shop: Shop, question: str, answer: object) -> None:
    """A question about a fact is answered by the fact, as text or JSON, and an unknown one is admitted."""
    assert shop.ask(question, shop.assemble(question, {})).value == answer


def test_follow_up_needs_recent_context(shop: Shop) -> None:
    """A follow-up can't be answered once the question before it is taken out of the context."""
    case = SCORED["revenue_new_zealand_follow_up"]
    assert not is_passing(case, shop.ask(case.question, shop.assemble(case.question, {})))


def test_runs_are_equal(shop: Shop) -> None:
    """Context, answer, cost and turns are the same every time: no clock, no chance."""
    for case in CASES.values():
        context = shop.context(case)
        assert context == shop.context(case)
        assert shop.ask(case.question, context) == shop.ask(case.question, context)


def test_layers_are_in_order(shop: Shop) -> None:
    """The context has its six layers, the steady ones first."""
    headers = re.findall(r"^## (.+)$", shop.context(SCORED["orders_total"]), re.MULTILINE)
    assert headers == ["Identity", "Schema", "Business Rules", "Project Facts", "Recent Context", "Question"]


@pytest.mark.parametrize(
    "question", ["", "?", "Which '); drop table orders; --", "top 0 of in country ''", "🦘 (("]
)
def test_odd_questions_are_answered(shop: Shop, question: str) -> None:
    """A question that makes no sense is answered in words and breaks nothing."""
    assert isinstance(shop.ask(question, shop.assemble(question, {})).value, str)
