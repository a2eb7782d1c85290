"""One event loop for a whole session, so that clients opened for one case serve the next."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine

    T = TypeVar("T")

_NEVER = object()
_AT_ONCE: ContextVar[object] = ContextVar("ctxfp_at_once", default=_NEVER)
"""The loop, or None, that ran where a coroutine was begun that must not wait in it."""


class SessionLoop:
    """Runs awaitables to their end on a loop of its own, made when the first one comes."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self, awaitable: Awaitable[T]) -> T:
        """Return the awaitable's result; on any exception, Ctrl-C included, it is cancelled first."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        task = self._loop.create_task(_as_coroutine(awaitable))
        try:
            return self._loop.run_until_complete(task)
        except asyncio.CancelledError as error:
            # Nothing outside cancels this task, so this is an error as any other, and no wish to stop.
            message = "it was cancelled from within"
            raise RuntimeError(message) from error
        except BaseException:
            self._cancel({task})
            raise

    def close(self) -> None:
        """Cancel what still runs and close the loop."""
        if self._loop is None:
            return
        self._cancel(asyncio.all_tasks(self._loop))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        self._loop = None

    def _cancel(self, tasks: set[asyncio.Task[T]] | set[asyncio.Task[object]]) -> None:
        """Cancel tasks and wait for their end; others, such as a client's reader, run on."""
        assert self._loop is not None
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(_ended(tasks))


async def _as_coroutine(awaitable: Awaitable[T]) -> T:
    return await awaitable


async def _ended(tasks: set[asyncio.Task[T]] | set[asyncio.Task[object]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


async def within(awaitable: Awaitable[T], seconds: float) -> T:
    """Await with a limit; raises ``TimeoutError`` beyond it."""
    try:
        return await asyncio.wait_for(awaitable, seconds)
    except asyncio.TimeoutError:  # Python 3.10 has two of them
        message = f"no answer within its timeout of {seconds:g} s"
        raise TimeoutError(message) from None


def run_without_loop(coroutine: Coroutine[object, None, T]) -> T:
    """Run a coroutine that never waits for anything, without an event loop."""
    token = _AT_ONCE.set(_running_loop())
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        _AT_ONCE.reset(token)
    coroutine.close()
    message = "a coroutine meant to run at once waited for something"
    raise RuntimeError(message)


def may_wait() -> bool:
    """Whether a coroutine may wait for the loop: one does run, and not around ``run_without_loop``."""
    loop = _running_loop()
    return loop is not None and loop is not _AT_ONCE.get()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
