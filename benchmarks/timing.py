"""Interleaved rounds: every contender once a round, so that what else the machine does hits all alike."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Ratio:
    """How many times the yardstick something took: of all rounds the least, the median and the most."""

    least: float
    median: float
    most: float
    seconds: float
    """Median seconds, not of the yardstick."""

    def __str__(self) -> str:
        """Return the three figures; rates of thousands without decimals."""
        form = "6.2f" if self.most < 1_000 else "6.0f"
        return f"{self.least:{form}} {self.median:{form}} {self.most:{form}}"


def ratio_of(ours: list[float], yardstick: list[float]) -> Ratio:
    """Return the ratios of two lists of times, round by round."""
    ratios = [one / other for one, other in zip(ours, yardstick, strict=True)]
    return Ratio(min(ratios), statistics.median(ratios), max(ratios), statistics.median(ours))


def interleave(contenders: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Run every contender once a round; return the times of each.

    Args:
        contenders: each returns the seconds that it took.
        rounds: how many.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            times[name].append(run())
    return times


def clock(function: Callable[[], object]) -> float:
    """Return the seconds that one call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def run_pytest(
    folder: Path, *args: str, plugins: tuple[str, ...] | None = (), codes: tuple[int, ...] = (0,)
) -> float:
    """Return the processor seconds, user and system, of one run of pytest and its children.

    Args:
        folder: where it runs.
        args: its arguments.
        plugins: the only plugins that are loaded; None for all that are installed.
        codes: exit statuses that are as they should be; any other ends the benchmark.
    """
    names = [] if plugins is None else [argument for name in plugins for argument in ("-p", name)]
    command = [sys.executable, "-m", "pytest", "-q", *names, *args]
    environment = {**os.environ}
    # Byte code is kept between runs, as everywhere but in some containers.
    for variable in ("PYTEST_ADDOPTS", "PYTHONDONTWRITEBYTECODE", "CI"):
        environment.pop(variable, None)
    if plugins is not None:
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in codes:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
