"""One call per key, however many workers, processes, threads and tasks ask for it at once."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_ctxfp._locks import make_lock, remove_stale_locks
from pytest_ctxfp._loop import may_wait
from pytest_ctxfp._modes import CacheMode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from pytest_ctxfp._locks import Lock
    from pytest_ctxfp._runner import Outcome
    from pytest_ctxfp._store import TraceStore

MAX_WAIT_SECONDS = 600.0
"""How long a call waits for the same call of another, where the case has no timeout."""

_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.1
_HELD: ContextVar[frozenset[str]] = ContextVar("ctxfp_held_locks", default=frozenset())
"""What the running call holds, and the calls it is made within: a call never waits for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """Whether a call is the only one of its key.

    Attributes:
        is_sole: nobody else asks; the store may hold by now what another has just been told.
        note: what a user should know: that another still asks, and was waited for long enough.
    """

    is_sole: bool = False
    note: str | None = None

    def annotate(self, outcome: Outcome) -> Outcome:
        """Return an outcome with the note among its own."""
        return outcome if self.note is None else replace(outcome, notes=(*outcome.notes, self.note))


class SingleFlight:
    """Lets one call of a key be made at a time; the others wait, and find its answer in the store.

    It holds in a local folder, where stored answers are used: a refresh wants every answer anew. A folder
    whose file system knows no locks is no error, there the calls are made side by side. So they are by
    several processes where ``filelock`` is not installed (extra ``locks``).

    Args:
        store: where the answers are; locks are in its ``.locks``.
    """

    def __init__(self, store: TraceStore) -> None:
        is_used = store.mode is CacheMode.AUTO and store.folder is not None
        self._folder: Path | None = store.folder / ".locks" if is_used and store.folder else None
        self._is_swept = False

    @asynccontextmanager
    async def hold(self, name: str, timeout: float | None = None) -> AsyncIterator[Flight]:
        """Wait until nobody else makes the call, for ``timeout`` seconds at most, and keep others from it.

        Args:
            name: of the lock: the hash of a key.
            timeout: of a call, in seconds. One that takes longer hangs, and is not waited for.
        """
        lock = None if self._folder is None or name in _HELD.get() else self._make_lock(self._folder, name)
        if lock is None:
            yield Flight()
            return
        seconds = MAX_WAIT_SECONDS if timeout is None else timeout
        flight = await _acquire(lock, seconds)
        token = _HELD.set(_HELD.get() | {name})
        try:
            yield flight
        finally:
            _HELD.reset(token)
            lock.release()

    def _make_lock(self, folder: Path, name: str) -> Lock | None:
        if not self._is_swept:
            self._is_swept = True
            remove_stale_locks(folder)
        try:
            return make_lock(folder, name)
        except OSError:  # the write that follows reports the folder
            return None


async def _acquire(lock: Lock, seconds: float) -> Flight:
    started, pause = time.monotonic(), _FIRST_PAUSE
    try:
        while not lock.try_acquire():
            waited = time.monotonic() - started
            if waited >= seconds:
                return Flight(note=_give_up(seconds))
            await _pause(min(pause, seconds - waited))
            pause = min(pause * 1.5, _LONGEST_PAUSE)
    except OSError:
        return Flight()
    return Flight(is_sole=True)


async def _pause(seconds: float) -> None:
    """Let time pass: for the other tasks too where a loop runs that may be waited in."""
    if may_wait():
        await asyncio.sleep(seconds)
    else:
        time.sleep(seconds)


def _give_up(seconds: float) -> str:
    minutes = f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:g} s"
    return f"another process has been asking the same for {minutes}: it was not waited for any longer"
