"""Wires the shop's assembler and agent to the golden cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from shop.agent import answer
from shop.assembler import assemble
from shop.database import build_database

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pytest_ctxfp import AgentResult


@pytest.fixture(scope="session")
def shop_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shop's database, built once a run."""
    return build_database(tmp_path_factory.mktemp("shop") / "shop.sqlite")


@pytest.fixture
def ctx_assembler() -> Callable[[str, Mapping[str, object]], str]:
    """What makes the context of a case; called with the arguments it names."""
    return assemble


@pytest.fixture
def ctx_agent(shop_database: Path) -> Callable[[str, str], AgentResult]:
    """What answers a case; not even built where every answer is in the cache."""

    def ask(question: str, context: str) -> AgentResult:
        return answer(question, context, database=shop_database)

    return ask
