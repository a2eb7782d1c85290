"""When a request is sent again, and after how long."""

from __future__ import annotations

import random
import time
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

from pytest_ctxfp._errors import AgentError

_FIRST_WAIT = 0.5
_LONGEST_WAIT = 60.0


class Retries:
    """Counts the attempts of one call.

    Args:
        n: how many may follow the first attempt.
    """

    def __init__(self, n: int) -> None:
        self._n_allowed = n
        self._n_done = 0

    def is_to_be_repeated(self, status: int) -> bool:
        """Whether a status says that the same request may be answered later."""
        return status in (408, 429) or status >= 500

    def wait_after_error(self, problem: str) -> None:
        """Wait before the next attempt; raises AgentError with the problem where there is none left."""
        time.sleep(self._next_wait(problem, None))

    def wait_after_status(self, problem: str, retry_after: str | None) -> None:
        """Wait as long as the server says, or else longer each time; raises as `wait_after_error`."""
        time.sleep(self._next_wait(problem, retry_after))

    async def sleep_after_error(self, problem: str) -> None:
        """Do what `wait_after_error` does, in an event loop."""
        import asyncio

        await asyncio.sleep(self._next_wait(problem, None))

    async def sleep_after_status(self, problem: str, retry_after: str | None) -> None:
        """Do what `wait_after_status` does, in an event loop."""
        import asyncio

        await asyncio.sleep(self._next_wait(problem, retry_after))

    def _next_wait(self, problem: str, retry_after: str | None) -> float:
        if self._n_done == self._n_allowed:
            tries = f" (tried {self._n_done + 1} times)" if self._n_done else ""
            raise AgentError(f"{problem}{tries}")
        asked = None if retry_after is None else seconds_of(retry_after, datetime.now(timezone.utc))
        if asked is not None and asked > _LONGEST_WAIT:
            message = f"{problem} (it says to wait {asked:.0f} s, longer than an agent waits)"
            raise AgentError(message)
        backoff = min(_FIRST_WAIT * 2**self._n_done, _LONGEST_WAIT) * random.uniform(0.5, 1)  # noqa: S311
        self._n_done += 1
        return backoff if asked is None else asked


def seconds_of(retry_after: str, now: datetime) -> float | None:
    """Return how many seconds a ``Retry-After`` says to wait (RFC 9110, 10.2.3); None if it says nothing."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:10])
    try:
        then = parsedate_to_datetime(text)
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=timezone.utc)
    return max(0.0, (then - now).total_seconds())
