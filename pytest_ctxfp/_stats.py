"""Intervals and percentages."""

from __future__ import annotations

from math import isfinite, sqrt

_MAX_TRIALS = 2**53
"""Beyond it a double can't tell n from n + 1."""


def wilson_interval(k: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the score interval of a share (Wilson 1927), without continuity correction.

    Args:
        k: passes, 0 to n; a mean of repeated samples may make it fractional.
        n: cases, 0 to 2**53.
        confidence: probability that the interval holds the true share, between 0 and 1, both excluded.

    Returns:
        Lower and upper bound, 0..1. Without any case nothing is known: ``(0.0, 1.0)``.

    Raises:
        ValueError: an argument outside of its range.
    """
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= _MAX_TRIALS:
        message = f"n must be an integer from 0 to 2**53, not {n!r}"
        raise ValueError(message)
    if not 0 <= k <= n:
        message = f"k must be a number from 0 to n, not {k!r} of {n!r}"
        raise ValueError(message)
    if not 0 < confidence < 1:
        message = f"confidence must be between 0 and 1, not {confidence!r}"
        raise ValueError(message)
    return _score_interval(k, n, (1 - confidence) / 2) if n else (0.0, 1.0)


def _score_interval(k: float, n: int, tail: float) -> tuple[float, float]:
    from statistics import NormalDist

    z = NormalDist().inv_cdf(tail)
    share, weight = k / n, z * z / n
    centre = (share + weight / 2) / (1 + weight)
    half = -z / (1 + weight) * sqrt(share * (1 - share) / n + weight / (4 * n))
    # At the ends rounding must not leave 1e-17 where the formula gives 0.
    low = 0.0 if k == 0 else min(share, max(0.0, centre - half))
    high = 1.0 if k == n else max(share, min(1.0, centre + half))
    return low, high


def format_percent(share: float) -> str:
    """Return a share as a percentage that says 0 or 100 only where it is exactly that.

    Examples: 0.5 -> ``50%``, 5/6 -> ``83.3%``, 0.9996 -> ``99.9%``, 0.0004 -> ``0.1%`` (the rule of
    coverage.py).

    Args:
        share: 0..1.

    Raises:
        ValueError: a share outside of 0..1.
    """
    if not isfinite(share) or not 0 <= share <= 1:
        message = f"a share is a number from 0 to 1, not {share!r}"
        raise ValueError(message)
    percent = round(share * 100, 1)
    if 0 < share < 1:
        percent = min(max(percent, 0.1), 99.9)
    return f"{percent:.1f}".removesuffix(".0") + "%"
