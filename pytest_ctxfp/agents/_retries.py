"""When a request is sent again, and after how long."""

from __future__ import annotations

import random
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

    def is_to_be_repeated(self, status: int | None) -> bool:
        """Whether the same request may be answered later: no answer came, or one that says so."""
        return status is None or status in (408, 429) or status >= 500

    def next_wait(self, problem: str, retry_after: str | None) -> float:
        """Return seconds until the next attempt: what the server says, or else longer each time.

        Raises:
            AgentError: the problem, where no attempt is left or the server says to wait for too long.
        """
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
    except (ValueError, TypeError, OverflowError):
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=timezone.utc)
    return max(0.0, (then - now).total_seconds())
