"""Set comparison against building two Counters of the same rows: ratios, in interleaved rounds.

Run as ``python benchmarks/bench_compare.py [--rows N] [--rounds N]``. The last block prints how the time
grows with the number of rows, as an exponent: 1 is linear, 2 quadratic.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pytest_ctxfp import compare_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Rows = list[list[Any]]


@dataclass(frozen=True)
class Scenario:
    """Two tables that match, or don't, and how many times the yardstick they may take."""

    name: str
    limit: float
    expected: Rows
    actual: Rows
    tolerance: dict[str, Any] = field(default_factory=dict)
    names: tuple[list[str], list[str]] = (["id", "city", "x", "y"], ["id", "city", "x", "y"])
    passed: bool = True

    def compare(self) -> None:
        """Run the comparison once and check its verdict."""
        comparison = compare_tables(
            {"columns": self.names[0], "rows": self.expected},
            {"columns": self.names[1], "rows": self.actual},
            match="set",
            tolerance=self.tolerance,
        )
        if comparison.passed != self.passed:
            message = f"{self.name}: wrong verdict: {comparison.reason}"
            raise AssertionError(message)

    def count(self) -> None:
        """Do what a user would do without tolerances, spellings and reasons."""
        _ = Counter(map(tuple, self.expected)) == Counter(map(tuple, self.actual))


def make_rows(n: int, rng: random.Random) -> Rows:
    """Return rows of an id, a label, a price of two decimals and a measure with all its digits."""
    return [[i, f"city {i % 97}", round(rng.uniform(0, 1000), 2), rng.uniform(0, 1000)] for i in range(n)]


def shuffled(rows: Rows, rng: random.Random) -> Rows:
    """Return the rows in another order."""
    return rng.sample(rows, len(rows))


def exact_scenarios(n: int) -> Iterator[Scenario]:
    """Yield tables that are equal without a tolerance, and one that isn't."""
    rng = random.Random(1)
    rows = make_rows(n, rng)
    yield Scenario("equal as they stand", 3, rows, [list(row) for row in rows])
    yield Scenario("shuffled", 25, rows, shuffled(rows, rng))
    yield Scenario("spelled as text", 25, rows, shuffled([[f"{cell}" for cell in row] for row in rows], rng))
    integers = [[row[0], row[1], i % 1000, i] for i, row in enumerate(rows)]
    spelled = [[row[0], row[1], f"{row[2]}.0", f"{row[3]}.0"] for row in integers]
    yield Scenario('"1.0" for 1', 25, integers, shuffled(spelled, rng))
    swapped = shuffled([[row[3], row[1], row[0], row[2]] for row in rows], rng)
    yield Scenario(
        "columns swapped, named", 25, rows, swapped, names=(["a", "b", "c", "d"], ["d", "b", "a", "c"])
    )
    yield Scenario("columns swapped, no names", 25, rows, swapped, names=([], []))
    wrong = shuffled([*rows[:-1], [*rows[-1][:3], -1.0]], rng)
    yield Scenario("one cell differs", 25, rows, wrong, passed=False)


def tolerance_scenarios(n: int) -> Iterator[Scenario]:
    """Yield tables with tolerances that are needed: noise, chains, all rows equal, many columns."""
    rng = random.Random(2)
    rows = make_rows(n, rng)

    def noisy(*columns: int, size: float) -> Rows:
        changed = [list(row) for row in rows]
        for row in changed:
            for column in columns:
                row[column] += rng.uniform(-size, size)
        return shuffled(changed, rng)

    y = {"columns": {"y": 0.01}}
    yield Scenario("noise", 30, rows, noisy(3, size=0.009), y)
    flat = [["x", "y", 1.5, value[3]] for value in rows]
    yield Scenario("noise, no labels", 30, flat, shuffled([[*r[:3], r[3] + 0.005] for r in flat], rng), y)
    chain = [["x", "y", 1.5, i / 100] for i in range(n)]
    yield Scenario("chain", 30, chain, shuffled([["x", "y", 1.5, (i + 1) / 100] for i in range(n)], rng), y)
    broken = shuffled([*chain[2:], *chain[:1], ["x", "y", 1.5, 1e6]], rng)
    yield Scenario("chain, broken", 30, chain, broken, y, passed=False)
    same = [["x", "y", 1.5, 2.5]] * n
    yield Scenario("all equal", 30, same, [["x", "y", 1.5, 2.505]] * n, y)
    both = {"columns": {"x": 0.02, "y": 0.02}}
    yield Scenario("two columns", 30, rows, noisy(2, 3, size=0.015), both)
    unlabelled = [[0, "a", row[2], row[3]] for row in rows]
    moved = [[0, "a", row[2] + rng.uniform(-0.015, 0.015), row[3] + 0.01] for row in rows]
    yield Scenario("two columns, no labels", 30, unlabelled, shuffled(moved, rng), both)
    wide = {"columns": {"x": 0.5, "y": 0.5}}
    yield Scenario("two columns, wider", 30, unlabelled, shuffled(moved, rng), wide)
    everywhere = {"numeric": 0.01, "relative": 1e-9}
    yield Scenario("tolerance for all columns", 30, rows, noisy(2, 3, size=0.009), everywhere)


def measure(functions: list[Callable[[], None]], rounds: int) -> list[list[float]]:
    """Return the seconds that each function took, round by round, all of them in each round."""
    seconds: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for function, taken in zip(functions, seconds, strict=True):
            start = perf_counter()
            function()
            taken.append(perf_counter() - start)
    return seconds


def print_ratios(scenarios: Iterator[Scenario], rounds: int) -> None:
    """Print how many times the yardstick each scenario takes."""
    for scenario in scenarios:
        ours, yardstick = measure([scenario.compare, scenario.count], rounds)
        ratios = [one / other for one, other in zip(ours, yardstick, strict=True)]
        spread = f"{min(ratios):6.1f} {median(ratios):6.1f} {max(ratios):6.1f}"
        print(f"{scenario.name:28} {spread}   at most {scenario.limit:g}   {median(ours):6.2f} s")


def print_growth(n: int, rounds: int) -> None:
    """Print the exponent of growth from a quarter of the rows to twice as many."""
    small, large = n // 4, n * 2
    for one, other in zip(tolerance_scenarios(small), tolerance_scenarios(large), strict=True):
        short, long = measure([one.compare, other.compare], rounds)
        exponent = math.log(median(long) / median(short)) / math.log(large / small)
        print(f"{one.name:28} {exponent:6.2f}   {median(short):6.2f} s for {small:,}, {median(long):6.2f} s")


def main() -> None:
    """Print all ratios and exponents."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{arguments.rows:,} rows of 4 cells; ratio to two Counters: min median max of {arguments.rounds}")
    print_ratios(exact_scenarios(arguments.rows), arguments.rounds)
    print_ratios(tolerance_scenarios(arguments.rows), arguments.rounds)
    print(f"growth exponent from {arguments.rows // 4:,} to {arguments.rows * 2:,} rows")
    print_growth(arguments.rows, max(1, arguments.rounds // 2))


if __name__ == "__main__":
    main()
