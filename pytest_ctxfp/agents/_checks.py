"""What the arguments of ready agents must be, so that a slip is told when an agent is built."""

from __future__ import annotations

import math


def check_seconds(name: str, seconds: float) -> None:
    """Raise unless this is a time above 0; raises TypeError or ValueError."""
    _check_number(name, seconds)
    if not (0 < seconds < math.inf):
        message = f"{name} is {seconds!r}: write seconds above 0"
        raise ValueError(message)


def check_price(name: str, usd: float) -> None:
    """Raise unless this is a price; raises TypeError or ValueError."""
    _check_number(name, usd)
    if not (0 <= usd < math.inf):
        message = f"{name} is {usd!r}: write USD per million tokens, 0 or more"
        raise ValueError(message)


def check_count(name: str, n: int, *, least: int) -> None:
    """Raise unless this is a whole number of at least so many; raises TypeError or ValueError."""
    if isinstance(n, bool) or not isinstance(n, int):
        message = f"{name} is {n!r}: write a whole number"
        raise TypeError(message)
    if n < least:
        message = f"{name} is {n!r}: write {least} or more"
        raise ValueError(message)


def _check_number(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        message = f"{name} is {value!r:.80}: write a number"
        raise TypeError(message)
