"""How many calls a run may make and what they may cost, counted by all its processes in one file."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from pytest_ctxfp._errors import CtxfpError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO


class LimitReached(CtxfpError):
    """A call that the run's limits don't allow; it was not made."""


LimitReached.__module__ = "pytest_ctxfp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run may spend.

    Attributes:
        max_calls: calls of agents, helpers and cached scorers, or None for any number.
        max_cost: USD, or None for any amount.
    """

    max_calls: int | None = None
    max_cost: Decimal | None = None

    @property
    def is_set(self) -> bool:
        """Whether anything is limited."""
        return self.max_calls is not None or self.max_cost is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spent:
    calls: int = 0
    cost: Decimal = Decimal(0)
    has_unknown: bool = False


class CallLedger:
    """Counts calls exactly, however many processes and threads make them.

    Args:
        path: a file that all processes of the run share; made if it isn't there.
        limits: what is allowed.
    """

    def __init__(self, path: Path, limits: Limits) -> None:
        self._path = path
        self._limits = limits

    def claim(self, n_calls: int = 1) -> None:
        """Take calls out of what is left, all of them or none.

        Raises:
            LimitReached: with the limit that stands in the way.
            OSError: the file can't be read or written.
        """
        with _locked(self._path) as handle:
            spent = _read(handle)
            reason = self._refusal(spent, n_calls)
            if reason is not None:
                message = f"not asked: {reason}"
                raise LimitReached(message)
            _write(handle, calls=spent.calls + n_calls, cost=spent.cost, has_unknown=spent.has_unknown)

    def release(self, n_calls: int = 1) -> None:
        """Give back calls that were claimed and not made."""
        with _locked(self._path) as handle:
            spent = _read(handle)
            _write(handle, calls=spent.calls - n_calls, cost=spent.cost, has_unknown=spent.has_unknown)

    def settle(self, cost: float | None) -> None:
        """Note what a call has cost, in USD; None where that is unknown, as after an error."""
        with _locked(self._path) as handle:
            spent = _read(handle)
            # By repr: ten calls of 0.1 USD make 1 USD, not a little less.
            total = spent.cost if cost is None else spent.cost + Decimal(repr(cost))
            _write(handle, calls=spent.calls, cost=total, has_unknown=spent.has_unknown or cost is None)

    def _refusal(self, spent: _Spent, n_calls: int) -> str | None:
        most, dearest = self._limits.max_calls, self._limits.max_cost
        if most is not None and spent.calls + n_calls > most:
            needed = "" if n_calls == 1 else f", and this needs {n_calls} calls"
            return f"--ctx-max-calls={most} is reached{needed}"
        if dearest is None:
            return None
        if spent.cost >= dearest:
            return f"--ctx-max-cost={dearest} is reached"
        if spent.has_unknown:
            return (
                f"--ctx-max-cost={dearest} can't be kept, since what an earlier call cost is unknown:"
                " return AgentResult(value, cost=...)"
            )
        return None


@dataclass(slots=True)
class Bill:
    """What a call has cost in USD, None as long as that is unknown."""

    cost: float | None = None


@contextmanager
def settling(ledger: CallLedger | None) -> Iterator[Bill]:
    """Count what the call inside has cost: unknown where nobody says, and after an error."""
    bill = Bill()
    try:
        yield bill
    finally:
        if ledger is not None:
            ledger.settle(bill.cost)


@contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that no other process or thread has open this way; a process that dies lets go of it."""
    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0) as handle:
        if sys.platform == "win32":
            while True:
                try:
                    msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK, 1)
                    break
                except OSError:  # it gives up after ten seconds
                    continue
        else:
            fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield handle
        finally:
            if sys.platform == "win32":
                handle.seek(0)
                msvcrt.locking(handle.fileno(), msvcrt.LK_UNLCK, 1)
            else:
                fcntl.flock(handle, fcntl.LOCK_UN)


def _read(handle: IO[bytes]) -> _Spent:
    handle.seek(0)
    data = handle.read()
    if not data:
        return _Spent()
    calls, cost, has_unknown = json.loads(data)
    return _Spent(calls=calls, cost=Decimal(cost), has_unknown=has_unknown)


def _write(handle: IO[bytes], *, calls: int, cost: Decimal, has_unknown: bool) -> None:
    handle.seek(0)
    handle.truncate()
    handle.write(json.dumps([calls, str(cost), has_unknown]).encode())
