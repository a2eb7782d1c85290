"""Intervals, paired tests, the drop that so many cases can show, and percentages."""

from __future__ import annotations

import math

import pytest
from scipy.stats import beta, binomtest
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from pytest_ctxfp._stats import (
    format_passes,
    format_percent,
    holm,
    mcnemar_exact,
    mcnemar_one_sided,
    smallest_detectable_drop,
    wilson_interval,
)


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


def test_wilson_is_that_of_statsmodels() -> None:
    """The interval is that of another implementation."""
    for n in (1, 5, 60, 1_000):
        for k in {0, 1, n // 3, n}:
            for confidence in (0.8, 0.95, 0.999):
                theirs = proportion_confint(k, n, alpha=1 - confidence, method="wilson")
                assert wilson_interval(k, n, confidence) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 60, 999, 1_000, 1_001, 5_000])
def test_mcnemar_is_that_of_statsmodels_and_scipy(n: int) -> None:
    """Both p values are those of other implementations, on both sides of where sums become exact."""
    for b in {0, 1 % (n + 1), n // 3, n // 2, n}:
        theirs = mcnemar([[0, b], [n - b, 0]], exact=True).pvalue if n else 1.0
        assert mcnemar_exact(b, n - b) == mcnemar_exact(n - b, b) == pytest.approx(theirs, rel=1e-8)
        if n:
            one_sided = binomtest(b, n, 0.5, alternative="greater").pvalue
            assert mcnemar_one_sided(b, n - b) == pytest.approx(one_sided, rel=1e-8)


def test_mcnemar_known_values() -> None:
    """Small counts have the exact p that one can work out by hand."""
    assert mcnemar_exact(0, 0) == 1.0
    assert mcnemar_exact(6, 0) == 2 / 2**6
    assert mcnemar_exact(1, 7) == 2 * 9 / 2**8
    assert mcnemar_one_sided(20, 0) == 2**-20
    assert mcnemar_one_sided(0, 20) == 1.0


def test_mcnemar_of_the_largest_counts() -> None:
    """The largest counts are worked out at once, and a p too small for a double is 0."""
    assert mcnemar_exact(10**6, 10**6) == 1.0
    assert mcnemar_exact(10**6, 0) == 0.0
    assert mcnemar_exact(10**6, 999_000) == pytest.approx(0.4798, abs=1e-3)


def test_holm_is_that_of_statsmodels() -> None:
    """Adjusted p values are those of another implementation, in the order given."""
    for p_values in ([0.04], [0.01, 0.04, 0.03, 0.005], [0.5, 0.5, 1.0, 0.0], [0.02] * 5):
        theirs = multipletests(p_values, method="holm")[1]
        assert holm(p_values) == pytest.approx(theirs, abs=1e-15)
    assert holm([]) == ()


@pytest.mark.parametrize("n", [6, 7, 15, 60, 250, 5_000])
@pytest.mark.parametrize(("power", "alpha"), [(0.8, 0.05), (0.95, 0.05), (0.5, 0.2)])
def test_smallest_drop_is_that_of_scipy(n: int, power: float, alpha: float) -> None:
    """The drop is where the chance of enough flips, all one way, reaches the power."""
    n_needed = next(b for b in range(1, 99) if binomtest(b, b, 0.5).pvalue <= alpha)
    theirs = beta.ppf(power, n_needed, n - n_needed + 1)
    assert smallest_detectable_drop(n, power, alpha) == pytest.approx(theirs, rel=1e-9)


def test_smallest_drop_of_few_cases() -> None:
    """Five cases can show no drop at all, and more cases show smaller ones."""
    assert smallest_detectable_drop(0) == smallest_detectable_drop(5) == math.inf
    drops = [smallest_detectable_drop(n) for n in (6, 10, 60, 1_000, 10**6)]
    assert drops == sorted(drops, reverse=True)
    assert 0 < drops[-1] < drops[0] < 1


@pytest.mark.parametrize("bad", [-1, 1_000_001, True, 1.0, math.nan])
def test_counts_out_of_range(bad: float) -> None:
    """Counts that are none are a ValueError."""
    for call in (
        lambda: mcnemar_exact(bad, 0),
        lambda: mcnemar_one_sided(0, bad),
        lambda: smallest_detectable_drop(bad),
    ):
        with pytest.raises(ValueError, match="must be an integer"):
            call()


@pytest.mark.parametrize("bad", [0, 1, -0.1, math.nan])
def test_levels_out_of_range(bad: float) -> None:
    """A power or level that is no probability between 0 and 1 is a ValueError."""
    with pytest.raises(ValueError, match="power must be"):
        smallest_detectable_drop(60, power=bad)
    with pytest.raises(ValueError, match="alpha must be"):
        smallest_detectable_drop(60, alpha=bad)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_holm_refuses(bad: float) -> None:
    """What is no p value is a ValueError."""
    with pytest.raises(ValueError, match="p values must be"):
        holm([0.5, bad])


@pytest.mark.parametrize(
    ("passes", "shown"),
    [(10_000.0, "10000"), (12_345.5, "12345.5"), (2 / 3, "0.6667"), (0.0, "0"), (2.00001, "2")],
)
def test_passes_as_people_read_them(passes: float, shown: str) -> None:
    """A sum of pass rates has at most four decimals, and no exponent however many cases there are."""
    assert format_passes(passes) == shown
