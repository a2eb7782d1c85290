"""Clustering facts, against its own growth.

Prints three tables: for shapes of facts the exponent of growth from 1,000 to 20,000 facts (1.0 is linear,
2.0 quadratic), over interleaved rounds, with the median times behind it; the same, up to 4,000 facts, for
shapes that stay nearly quadratic; and how long 5,000 facts take. Garbage collection is off, so that the
growth is that of the algorithm.

    python benchmarks/bench_chunking.py

Example output:
    shape                               1,000       20,000      exponent min/median/max
    7 categories                         15.0 ms     313.9 ms   0.98 / 1.02 / 1.02
"""

from __future__ import annotations

import gc
import math
import random
import statistics
import time
from typing import TYPE_CHECKING

from pytest_ctxfp import KnowledgeFact, cluster_facts

if TYPE_CHECKING:
    from collections.abc import Callable

N_ROUNDS = 5
SMALL, LARGE = 1_000, 20_000
DENSE_LARGE = 4_000
"""What stays quadratic is measured up to here."""


def make_seven_categories(n: int) -> list[KnowledgeFact]:
    """Return facts of 7 categories in turn that share no words."""
    return [KnowledgeFact(f"c{i % 7}", f"k{i}", f"v{i} w{i} x{i} y{i}") for i in range(n)]


def make_one_category(n: int) -> list[KnowledgeFact]:
    """Return facts of one category that share no words."""
    return make_seven_categories(7 * n)[::7]


def make_all_different(n: int) -> list[KnowledgeFact]:
    """Return facts that share nothing, each of a category of its own."""
    return [KnowledgeFact(f"c{i}", f"k{i}", f"v{i} w{i} x{i} y{i}") for i in range(n)]


def make_stop_word(n: int) -> list[KnowledgeFact]:
    """Return facts of categories of their own with one word in all of them."""
    return [KnowledgeFact(f"c{i}", f"k{i}", f"the v{i} w{i} x{i}") for i in range(n)]


def make_vocabulary(n: int, *, n_words: int, n_categories: int | None = None) -> list[KnowledgeFact]:
    """Return facts of five words at random; None stands for categories of their own."""
    chance = random.Random(n)
    words = [f"w{i}" for i in range(n_words)]
    facts = []
    for i in range(n):
        key, *value = chance.sample(words, 5)
        facts.append(KnowledgeFact(f"c{i % (n_categories or n)}", key, " ".join(value)))
    return facts


def make_nested(n: int) -> list[KnowledgeFact]:
    """Return facts of two words that all facts have, and of up to five others."""
    chance = random.Random(n)
    return [
        KnowledgeFact(f"c{i}", "status", " ".join(["ok", *(f"v{i}-{j}" for j in range(chance.randrange(6)))]))
        for i in range(n)
    ]


def make_shared_path(n: int) -> list[KnowledgeFact]:
    """Return facts of categories of their own that all name one path."""
    return [KnowledgeFact(f"c{i}", f"k{i}", f"src/app.py v{i} w{i} x{i}") for i in range(n)]


def make_mixed_pairs(n: int) -> list[KnowledgeFact]:
    """Return pairs of equal words, the second of one category: clusters that no other fact joins."""
    return [
        KnowledgeFact("notes" if i % 2 else f"c{i}", "the", f"v{i // 2} w{i // 2} x{i // 2}")
        for i in range(n)
    ]


SHAPES: dict[str, Callable[[int], list[KnowledgeFact]]] = {
    "7 categories": make_seven_categories,
    "all different": make_all_different,
    "a stop word in every fact": make_stop_word,
    "5 of 1,000 words": lambda n: make_vocabulary(n, n_words=1_000),
    "5 of 1,000 words, 7 categories": lambda n: make_vocabulary(n, n_words=1_000, n_categories=7),
    "a path in every fact": make_shared_path,
    "pairs across categories": make_mixed_pairs,
}
DENSE_SHAPES: dict[str, Callable[[int], list[KnowledgeFact]]] = {
    "words that are part of most facts": make_nested,
    "5 of 100 words": lambda n: make_vocabulary(n, n_words=100),
    "5 of 20 words": lambda n: make_vocabulary(n, n_words=20),
}


def seconds(facts: list[KnowledgeFact], **options: float) -> float:
    """Return how long clustering takes."""
    gc.collect()
    start = time.perf_counter()
    cluster_facts(facts, **options)  # type: ignore[arg-type]
    return time.perf_counter() - start


def measure_growth(
    name: str, make: Callable[[int], list[KnowledgeFact]], n_large: int, **options: float
) -> str:
    """Return the line of one shape."""
    small, large = make(SMALL), make(n_large)
    rounds = [(seconds(small, **options), seconds(large, **options)) for _ in range(N_ROUNDS)]
    factor = math.log(len(large) / len(small))
    exponents = [math.log(long / short) / factor for short, long in rounds]
    short, long = (statistics.median(times) * 1000 for times in zip(*rounds, strict=True))
    spread = f"{min(exponents):.2f} / {statistics.median(exponents):.2f} / {max(exponents):.2f}"
    return f"{name:<32} {short:8.1f} ms {long:9.1f} ms   {spread}"


def measure_time(name: str, facts: list[KnowledgeFact]) -> str:
    """Return the line of one list of facts."""
    times = [seconds(facts) for _ in range(N_ROUNDS)]
    return f"{name:<32} {min(times):.3f} / {statistics.median(times):.3f} / {max(times):.3f}"


def main() -> None:
    """Print the tables."""
    gc.disable()
    print(f"{'shape':<32} {SMALL:>8,}    {LARGE:>9,}      exponent min/median/max")
    for name, make in SHAPES.items():
        print(measure_growth(name, make, LARGE), flush=True)
    print(f"\n{'quadratic shape':<32} {SMALL:>8,}    {DENSE_LARGE:>9,}      exponent min/median/max")
    for name, make in DENSE_SHAPES.items():
        print(measure_growth(name, make, DENSE_LARGE), flush=True)
    no_limit = {"max_size": LARGE, "threshold": 0.2}
    print(measure_growth("one cluster without a limit", make_one_category, DENSE_LARGE, **no_limit))
    print(f"\n{'5,000 facts':<32} seconds min/median/max")
    print(measure_time("all different", make_all_different(5_000)))
    print(measure_time("7 categories", make_seven_categories(5_000)))


if __name__ == "__main__":
    main()
