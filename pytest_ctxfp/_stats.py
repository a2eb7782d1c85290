"""Intervals, paired tests, the drop that so many cases can show, and percentages."""

from __future__ import annotations

from math import comb, exp, inf, isfinite, lgamma, log, log1p, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_TRIALS = 2**53
"""Beyond it a double can't tell n from n + 1."""
_MAX_EXACT = 1_000
"""Up to here whole numbers give the correctly rounded result, and fast."""
_MAX_PAIRS = 1_000_000
"""Far beyond any suite; sums of so many terms stay fast and exact to about eight digits."""


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


def mcnemar_exact(b: int, c: int) -> float:
    """Return the two-sided exact p of McNemar's test (1947): pairs that flipped, one way and the other.

    It is the chance of flips at least as one-sided as these if both ways were equally likely. Pairs that did
    not flip say nothing.

    Args:
        b: pairs that flipped one way, 0 to 1,000,000.
        c: pairs that flipped the other way, 0 to 1,000,000.

    Raises:
        ValueError: an argument outside of its range.
    """
    _check_flips(b, c)
    return min(1.0, 2 * _lower_tail(min(b, c), b + c))


def mcnemar_one_sided(b: int, c: int) -> float:
    """Return the chance of at least ``b`` flips of ``b + c`` going the first way if both were equally likely.

    Raises:
        ValueError: as ``mcnemar_exact``.
    """
    _check_flips(b, c)
    return _lower_tail(c, b + c)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return p values adjusted for their number by Holm's step-down method (1979), in the same order.

    Args:
        p_values: each 0..1.

    Raises:
        ValueError: a value outside of 0..1.
    """
    for p in p_values:
        if not 0 <= p <= 1:
            message = f"p values must be from 0 to 1, not {p!r}"
            raise ValueError(message)
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return tuple(adjusted)


def smallest_detectable_drop(n: int, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the smallest drop that McNemar's exact test would find in ``n`` paired cases.

    The drop is the share of cases that go from pass to fail where none goes the other way. Answers that flip
    both ways by chance only make it harder, so no smaller drop can be counted on.

    Args:
        n: pairs, 0 to 1,000,000.
        power: probability of finding it, between 0 and 1, both excluded.
        alpha: two-sided significance level, between 0 and 1, both excluded.

    Returns:
        A share, 0..1; infinity where ``n`` cases can't show any drop, not even that of all of them.

    Raises:
        ValueError: an argument outside of its range.
    """
    _check_count("n", n)
    for name, value in (("power", power), ("alpha", alpha)):
        if not 0 < value < 1:
            message = f"{name} must be between 0 and 1, not {value!r}"
            raise ValueError(message)
    # b flips, all one way, have p = 2 * 2**-b.
    n_needed = next(b for b in range(1, 1_100) if 2.0 ** (1 - b) <= alpha)
    if n_needed > n:
        return inf
    low, high = 0.0, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        if _chance_of_fewer(n_needed, n, middle) <= 1 - power:
            high = middle
        else:
            low = middle
    return high


def _chance_of_fewer(k: int, n: int, share: float) -> float:
    """Return the chance of fewer than ``k`` events in ``n`` trials that each happen with this probability."""
    total = 0.0
    for i in range(min(k, n + 1)):
        total += exp(_log_choose(n, i) + i * log(share) + (n - i) * log1p(-share))
    return total


def _lower_tail(k: int, n: int) -> float:
    """Return the chance of at most ``k`` heads in ``n`` throws of a fair coin."""
    if n <= _MAX_EXACT:
        n_ways: int = sum(comb(n, i) for i in range(k + 1))
        return n_ways / (1 << n)
    term = total = 1.0
    for i in range(k, 0, -1):
        term *= i / (n - i + 1)
        total += term
        if term < total * 1e-17:
            break
    return min(1.0, exp(_log_choose(n, k) - n * log(2) + log(total)))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _check_flips(b: int, c: int) -> None:
    _check_count("b", b)
    _check_count("c", c)


def _check_count(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_PAIRS:
        message = f"{name} must be an integer from 0 to 1,000,000, not {value!r}"
        raise ValueError(message)


def format_interval(passes: float, n: int) -> str:
    """Return the 95 % interval (Wilson) of a share as people read it: ``83.2% to 95.8%``.

    Args:
        passes: 0..n; pass rates of cases may add up to a fraction.
        n: at least 1.
    """
    return " to ".join(map(format_percent, wilson_interval(passes, n)))


def format_passes(passes: float) -> str:
    """Return a sum of pass rates as people read it, with at most four decimals: ``12000``, ``0.6667``."""
    return f"{round(passes, 4):.15g}"


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
