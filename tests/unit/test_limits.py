"""The count of calls that the processes of a run share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from pytest_ctxfp._limits import CallLedger, LimitReached, Limits

if TYPE_CHECKING:
    from pathlib import Path


def test_threads_claim_exactly_what_there_is(tmp_path: Path) -> None:
    """However many ask at once, no call more than the limit is given."""
    ledgers = [CallLedger(tmp_path / "calls", Limits(max_calls=50)) for _ in range(8)]

    def claim_all(ledger: CallLedger) -> int:
        for n_claimed in range(100):
            try:
                ledger.claim()
            except LimitReached:
                return n_claimed
        return 100

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claim_all, ledgers)) == 50


def test_several_calls_are_claimed_together_or_not_at_all(tmp_path: Path) -> None:
    """A claim that is too large takes nothing."""
    ledger = CallLedger(tmp_path / "calls", Limits(max_calls=3))
    ledger.claim(2)
    with pytest.raises(LimitReached, match="--ctx-max-calls=3 is reached, and this needs 2 calls"):
        ledger.claim(2)
    ledger.claim()
    ledger.release()
    ledger.claim()


def test_costs_add_up_as_decimals(tmp_path: Path) -> None:
    """Ten times 0.1 USD is 1 USD."""
    ledger = CallLedger(tmp_path / "calls", Limits(max_cost=Decimal(1)))
    for _ in range(10):
        ledger.claim()
        ledger.settle(0.1)
    with pytest.raises(LimitReached, match="--ctx-max-cost=1 is reached"):
        ledger.claim()


@pytest.mark.parametrize("cost", [0, 0.0, 1e-300])
def test_free_calls_go_on(tmp_path: Path, cost: float) -> None:
    """A call that cost nothing, or next to nothing, stops nobody."""
    ledger = CallLedger(tmp_path / "calls", Limits(max_cost=Decimal(1)))
    for _ in range(20):
        ledger.claim()
        ledger.settle(cost)
    ledger.settle(1)
    with pytest.raises(LimitReached, match="--ctx-max-cost=1 is reached"):
        ledger.claim()


def test_unknown_cost_stops_only_where_costs_are_limited(tmp_path: Path) -> None:
    """Without a limit of costs an unknown one is nobody's concern."""
    CallLedger(tmp_path / "calls", Limits(max_calls=2)).settle(None)
    CallLedger(tmp_path / "calls", Limits(max_calls=2)).claim()
    with pytest.raises(LimitReached, match="what an earlier call cost is unknown"):
        CallLedger(tmp_path / "calls", Limits(max_cost=Decimal(2))).claim()
