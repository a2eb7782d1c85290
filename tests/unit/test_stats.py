"""Intervals and percentages."""

from __future__ import annotations

import math

import pytest

from pytest_ctxfp._stats import format_percent, wilson_interval


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (0, 10, 0.0, 0.27754),
        (10, 10, 0.72246, 1.0),
        (5, 10, 0.23659, 0.76341),
        (81, 263, 0.25527, 0.36623),
        (15, 148, 0.06238, 0.16054),
        (1, 29, 0.00611, 0.17177),
    ],
)
def test_wilson_known_values(k: int, n: int, low: float, high: float) -> None:
    """The bounds are those of Newcombe (1998), table I, method 3, and of the closed form at the ends."""
    assert wilson_interval(k, n) == pytest.approx((low, high), abs=1e-4)


def test_wilson_without_cases() -> None:
    """Without any case every share is possible."""
    assert wilson_interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("n", [1, 3, 7, 50, 10**6, 2**53])
def test_wilson_holds_the_share(n: int) -> None:
    """The interval lies within 0..1, holds the share, and its ends are exact at none and all."""
    assert wilson_interval(0, n)[0] == 0.0
    assert wilson_interval(n, n)[1] == 1.0
    for k in {0, 1, n // 2, n - 1, n}:
        low, high = wilson_interval(k, n)
        assert 0 <= low <= k / n <= high <= 1


def test_wilson_widens_with_confidence() -> None:
    """More confidence gives a wider interval."""
    widths = [high - low for low, high in (wilson_interval(7, 10, c) for c in (0.5, 0.9, 0.95, 1 - 1e-15))]
    assert widths == sorted(set(widths))


def test_wilson_takes_a_mean_of_samples() -> None:
    """Fractional passes lie between their neighbours."""
    assert wilson_interval(7, 10)[0] < wilson_interval(7.5, 10)[0] < wilson_interval(8, 10)[0]


@pytest.mark.parametrize(
    ("k", "n", "confidence"),
    [
        (-1, 10, 0.95),
        (11, 10, 0.95),
        (1, 0, 0.95),
        (math.nan, 10, 0.95),
        (0, -1, 0.95),
        (1, 2**53 + 1, 0.95),
        (1, 10, 0),
        (1, 10, 1),
        (1, 10, math.nan),
    ],
)
def test_wilson_refuses(k: float, n: int, confidence: float) -> None:
    """Arguments outside of their range are a ValueError."""
    with pytest.raises(ValueError, match="must be"):
        wilson_interval(k, n, confidence)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0%"),
        (1, "100%"),
        (0.5, "50%"),
        (5 / 6, "83.3%"),
        (0.29, "29%"),
        (0.9996, "99.9%"),
        (0.99949, "99.9%"),
        (1 - 2**-53, "99.9%"),
        (0.0004, "0.1%"),
        (5e-324, "0.1%"),
        (0.999, "99.9%"),
        (0.001, "0.1%"),
    ],
)
def test_format_percent(share: float, text: str) -> None:
    """A share is shown with one decimal at most, and as 0 or 100 only where it is exactly that."""
    assert format_percent(share) == text


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan, math.inf])
def test_format_percent_refuses(share: float) -> None:
    """What is no share is a ValueError."""
    with pytest.raises(ValueError, match="a share is"):
        format_percent(share)
