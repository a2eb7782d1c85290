"""Wires the shop's assembler and agent to the golden cases."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from shop.agent import answer
from shop.assembler import assemble
from shop.database import build_database

from pytest_ctxfp import tree_sha

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_ctxfp import AgentResult

SHOP = Path(__file__).parent / "shop"


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
    return partial(answer, database=shop_database)


@pytest.fixture(scope="session")
def ctx_agent_key() -> dict[str, object]:
    """What answers depend on besides: other rows in the database ask every question again."""
    return {"params": {"database": tree_sha(SHOP, suffixes=[".sql"])}}
