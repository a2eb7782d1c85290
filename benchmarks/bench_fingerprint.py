"""Fingerprinting a context against two bare SHA-256 passes over the same bytes.

Prints one line a case: the ratio of the two times over interleaved rounds of this run, and the median
times behind it. Two passes are the least there is: one over the whole, one over the layers.

    python benchmarks/bench_fingerprint.py

Example output:
    context             two passes  fingerprint   ratio min/median/max
    10 MB ASCII            11.0 ms      17.1 ms   1.52 / 1.56 / 1.71
"""

from __future__ import annotations

import hashlib
import statistics
import time
from typing import TYPE_CHECKING

from pytest_ctxfp import fingerprint_context

if TYPE_CHECKING:
    from collections.abc import Callable

N_LAYERS = 50
N_ROUNDS = 41
LINES = {
    "ASCII": "- fact {}: the deploy target is fly.io and the database is postgres 16\n",
    "non-ASCII": "- fact {}: цель — café 東京, база postgres 16 🚀\n",
}


def make_context(line: str, n_bytes: int) -> str:
    """Return a text of about this many bytes, in layers of equal size."""
    n_lines = n_bytes // N_LAYERS // len(line.format(1000).encode())
    body = "".join(line.format(i) for i in range(n_lines))
    return "".join(f"## Layer {number}\n{body}" for number in range(N_LAYERS))


def hash_twice(data: bytes) -> None:
    """Take the two passes that any fingerprint needs."""
    hashlib.sha256(data).hexdigest()
    hashlib.sha256(data).hexdigest()


def seconds(function: Callable[[], object]) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measure(name: str, context: str) -> str:
    """Return the line of one case."""
    data = context.encode()
    rounds = [
        (seconds(lambda: hash_twice(data)), seconds(lambda: fingerprint_context(context)))
        for _ in range(N_ROUNDS)
    ]
    ratios = [ours / bare for bare, ours in rounds]
    bare, ours = (statistics.median(times) * 1000 for times in zip(*rounds, strict=True))
    spread = f"{min(ratios):.2f} / {statistics.median(ratios):.2f} / {max(ratios):.2f}"
    return f"{name:<18} {bare:8.1f} ms  {ours:8.1f} ms   {spread}"


def main() -> None:
    """Print the table."""
    print("context             two passes  fingerprint   ratio min/median/max")
    for n_megabytes in (1, 10):
        for kind, line in LINES.items():
            print(measure(f"{n_megabytes} MB {kind}", make_context(line, n_megabytes * 1_000_000)))


if __name__ == "__main__":
    main()
