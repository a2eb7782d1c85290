"""All targets of speed in one run: the plugin against the same work without it, or with another tool.

    python benchmarks/run.py --quick        # every row, under three minutes, smaller suites
    python benchmarks/run.py                # the sizes that the targets speak of
    python benchmarks/run.py --rows 3,4     # some rows only

Each row is a ratio: at least, median and at most of interleaved rounds of this run. The exit status is 1
where a median is beyond its target. Rows of other tools have no target; one that is not installed says so.
``benchmarks/README.md`` says how to read them.
"""

from __future__ import annotations

import argparse
import gc
import math
import platform
import statistics
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import bench_chunking
import bench_compare
import bench_fingerprint
from suites import (
    BARE,
    CTXFP,
    OURS,
    PEERS,
    Tool,
    change_contexts,
    copy_of,
    write_golden,
    write_modules,
    write_parameters,
    write_plain,
)
from timing import Ratio, clock, interleave, ratio_of, run_pytest

from pytest_ctxfp import cluster_facts, fingerprint_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MISSED = "MISSED"


@dataclass(frozen=True)
class Row:
    """One line of the table; a peer's has no target."""

    number: int
    name: str
    ratio: Ratio | None
    target: float | None = None
    unit: str = ""
    is_more_better: bool = False

    @property
    def is_missed(self) -> bool:
        """Whether the median is beyond the target."""
        if self.ratio is None or self.target is None:
            return False
        return self.ratio.median < self.target if self.is_more_better else self.ratio.median > self.target

    def __str__(self) -> str:
        """Return the line."""
        if self.ratio is None:
            return f"{self.number:>2}  {self.name:<52} not installed"
        target = ""
        if self.target is not None:
            sign = ">=" if self.is_more_better else "<="
            target = f"{sign} {self.target:g}{self.unit} {MISSED if self.is_missed else 'met'}"
        return f"{self.number:>2}  {self.name:<52} {self.ratio}   {target}"


@dataclass(frozen=True)
class Sizes:
    """How large the suites are, and how often each is run."""

    golden: int
    tests: int
    rounds: int
    starts: int
    table: int
    facts: int


FULL = Sizes(golden=10_000, tests=2_000, rounds=5, starts=40, table=100_000, facts=20_000)
QUICK = Sizes(golden=2_000, tests=600, rounds=2, starts=10, table=20_000, facts=8_000)


def measure_golden(folder: Path, sizes: Sizes) -> Iterator[Row]:
    """Yield rows 1, 2 and 12: golden cases against as many empty tests."""
    suite = write_golden(folder / "golden", sizes.golden)
    cached = ("golden.yaml", "--ctx-cache")
    run_pytest(suite, *cached, plugins=(OURS,))
    times = interleave(
        {
            "empty": lambda: run_pytest(suite, "test_empty.py"),
            "ours": lambda: run_pytest(suite, *cached, plugins=(OURS,)),
            "empty collected": lambda: run_pytest(suite, "test_empty.py", "--collect-only"),
            "ours collected": lambda: run_pytest(suite, "golden.yaml", "--collect-only", plugins=(OURS,)),
        },
        sizes.rounds,
    )
    name = f"re-score {sizes.golden:,} golden cases, against empty tests"
    yield Row(1, name, ratio_of(times["ours"], times["empty"]), 1.35)
    yield Row(
        2,
        "the same by the command, cases a second",
        _cases_a_second(suite, sizes),
        20_000,
        is_more_better=True,
    )
    name = f"collect {sizes.golden:,} golden cases, against empty tests"
    yield Row(12, name, ratio_of(times["ours collected"], times["empty collected"]), 1.6)


def _cases_a_second(suite: Path, sizes: Sizes) -> Ratio:
    from pytest_ctxfp._cli.cache import open_store
    from pytest_ctxfp._cli.rescoring import rescore_cases, result_lines
    from pytest_ctxfp._golden import load_golden

    golden = load_golden(suite / "golden.yaml")

    def rescore() -> None:
        store = open_store(str(suite / ".ctxfp" / "traces"))
        result_lines(rescore_cases([golden], store, None), None)

    rates = [len(golden.cases) / clock(rescore) for _ in range(sizes.rounds + 1)][1:]
    return Ratio(min(rates), statistics.median(rates), max(rates), len(golden.cases))


def measure_snapshots(folder: Path, sizes: Sizes) -> Iterator[Row]:
    """Yield rows 3 to 6: contexts checked and recorded, by us and by other tools."""
    layouts: list[tuple[int, str, Callable[[Path, Tool, int], Path], float]] = [
        (3, f"{sizes.tests:,} contexts in 20 modules", write_modules, 1.12),
        (4, f"{sizes.tests:,} parameters in one file", write_parameters, 1.25),
    ]
    for number, name, write, target in layouts:
        suites = {BARE: write(folder / f"{number}-bare", BARE, sizes.tests)}
        for tool in (CTXFP, *PEERS):
            # An inline snapshot holds one value, whatever the parameter is.
            if tool.is_installed and not (number == 4 and tool.name == "inline-snapshot"):
                suites[tool] = write(folder / f"{number}-{tool.module}", tool, sizes.tests)
        recorded = {}
        for tool, suite in suites.items():
            if tool is not BARE and tool is not CTXFP:
                recorded[tool] = run_pytest(suite, *tool.record, plugins=tool.plugins, codes=(0, 1))
        recordings = [
            run_pytest(copy_of(suites[CTXFP]), *CTXFP.record, plugins=CTXFP.plugins)
            for _ in range(sizes.rounds)
        ]
        run_pytest(suites[CTXFP], *CTXFP.record, plugins=CTXFP.plugins)
        contenders = {
            tool: (lambda tool=tool, suite=suite: run_pytest(suite, plugins=tool.plugins))
            for tool, suite in suites.items()
        }
        times = interleave(contenders, sizes.rounds)  # type: ignore[arg-type]
        yield Row(number, f"{name}, against building them", ratio_of(times[CTXFP], times[BARE]), target)
        for tool in PEERS:
            ratio = ratio_of(times[tool], times[BARE]) if tool in times else None
            if ratio is not None or not tool.is_installed:
                yield Row(number, f"  {tool.name}", ratio)
        if number == 3:
            yield Row(5, "record them, against checking them", ratio_of(recordings, times[CTXFP]), 1.3)
            for tool, seconds in recorded.items():
                yield Row(5, f"  {tool.name}", ratio_of([seconds] * sizes.rounds, times[tool]))
    yield from _measure_failures(folder, sizes)


def _measure_failures(folder: Path, sizes: Sizes) -> Iterator[Row]:
    name = "100 contexts that changed, against unchanged"
    yield Row(6, name, _ratio_of_failures(folder, CTXFP, 3 * sizes.rounds), 2.0)
    peer = PEERS[0]  # takes half a minute a round
    yield Row(6, f"  {peer.name}", _ratio_of_failures(folder, peer, 1) if peer.is_installed else None)


def _ratio_of_failures(folder: Path, tool: Tool, rounds: int) -> Ratio:
    passing = write_modules(folder / f"6-{tool.module}", tool, 100)
    run_pytest(passing, *tool.record, plugins=tool.plugins)
    failing = copy_of(passing)
    change_contexts(failing)
    times = interleave(
        {
            "passing": lambda: run_pytest(passing, plugins=tool.plugins),
            "failing": lambda: run_pytest(failing, plugins=tool.plugins, codes=(1,)),
        },
        rounds,
    )
    return ratio_of(times["failing"], times["passing"])


def measure_fingerprints(_: Path, sizes: Sizes) -> Iterator[Row]:
    """Yield row 7: a fingerprint against two bare passes of SHA-256."""
    for kind, target in (("ASCII", 1.6), ("non-ASCII", 2.3)):
        for megabytes in (1, 10):
            context = bench_fingerprint.make_context(bench_fingerprint.LINES[kind], megabytes * 1_000_000)
            data = context.encode()
            times = interleave(
                {
                    "bare": lambda data=data: clock(lambda: bench_fingerprint.hash_twice(data)),
                    "ours": lambda context=context: clock(lambda: fingerprint_context(context)),
                },
                10 * sizes.rounds + 1,
            )
            name = f"fingerprint of {megabytes} MB {kind}, against two SHA-256"
            yield Row(7, name, ratio_of(times["ours"], times["bare"]), target)


def measure_start_up(folder: Path, sizes: Sizes) -> Iterator[Row]:
    """Yield row 8: what an empty folder takes longer, in milliseconds of processor time."""
    empty = folder / "empty"
    empty.mkdir()
    others = {entry.name for entry in entry_points(group="pytest11")} - {"ctxfp"}
    alone = ["--collect-only", *(flag for name in sorted(others) for flag in ("-p", f"no:{name}"))]
    run = {
        "without": lambda: run_pytest(empty, *alone, "-p", "no:ctxfp", plugins=None, codes=(5,)),
        "with": lambda: run_pytest(empty, *alone, plugins=None, codes=(5,)),
    }
    interleave(run, 1)
    times = interleave(run, sizes.starts)
    more = sorted((one - other) * 1000 for one, other in zip(times["with"], times["without"], strict=True))
    median = (statistics.median(times["with"]) - statistics.median(times["without"])) * 1000
    yield Row(8, "start-up, milliseconds more", Ratio(more[0], median, more[-1], median / 1000), 7.0, " ms")


def measure_comparisons(_: Path, sizes: Sizes) -> Iterator[Row]:
    """Yield rows 9 and 10: tables against two Counters of their rows, and their growth."""
    rounds = max(2, sizes.rounds // 2)
    for number, scenarios in ((9, bench_compare.exact_scenarios), (10, bench_compare.tolerance_scenarios)):
        for scenario in scenarios(sizes.table):
            ours, bare = bench_compare.measure([scenario.compare, scenario.count], rounds)
            is_dense = scenario.name in {"two columns, no labels", "two columns, wider"}
            target = None if is_dense else scenario.limit
            yield Row(number, f"compare: {scenario.name}", ratio_of(ours, bare), target)
    small, large = sizes.table // 4, sizes.table * 2
    for one, other in zip(
        bench_compare.tolerance_scenarios(small), bench_compare.tolerance_scenarios(large), strict=True
    ):
        short, long = bench_compare.measure([one.compare, other.compare], 1 if sizes is QUICK else 2)
        yield Row(10, f"  growth exponent: {one.name}", _exponent(short, long, large / small), 1.3)


def _exponent(short: list[float], long: list[float], factor: float) -> Ratio:
    exponents = [math.log(b / a) / math.log(factor) for a, b in zip(short, long, strict=True)]
    return Ratio(min(exponents), statistics.median(exponents), max(exponents), statistics.median(long))


def measure_clusters(_: Path, sizes: Sizes) -> Iterator[Row]:
    """Yield row 11: the growth of clustering, with the garbage collector off."""
    gc.disable()
    for name in ("7 categories", "all different", "a stop word in every fact", "5 of 1,000 words"):
        small, large = (bench_chunking.SHAPES[name](n) for n in (1_000, sizes.facts))
        times = interleave(
            {
                "small": lambda facts=small: clock(lambda: cluster_facts(facts)),
                "large": lambda facts=large: clock(lambda: cluster_facts(facts)),
            },
            max(3, sizes.rounds),
        )
        ratio = _exponent(times["small"], times["large"], sizes.facts / 1_000)
        yield Row(11, f"cluster facts, growth exponent: {name}", ratio, 1.2)
    gc.enable()


def measure_plain(folder: Path, sizes: Sizes) -> Iterator[Row]:
    """Yield row 13: a suite that uses nothing of a plugin, with it and without."""
    suite = write_plain(folder / "plain", sizes.tests)
    plugins = {"none": (), "pytest-ctxfp": (OURS,), "syrupy": ("syrupy",)}
    plugins["inline-snapshot"] = ("inline_snapshot.pytest_plugin",)
    missing = {tool.name for tool in PEERS if not tool.is_installed}
    contenders = {
        name: (lambda loaded=loaded: run_pytest(suite, plugins=loaded))
        for name, loaded in plugins.items()
        if name not in missing
    }
    interleave(contenders, 1)  # type: ignore[arg-type]
    times = interleave(contenders, 3 * sizes.rounds)  # type: ignore[arg-type]
    for name in [name for name in plugins if name != "none"]:
        is_ours = name == "pytest-ctxfp"
        label = f"{sizes.tests:,} plain tests, loaded against not" if is_ours else f"  {name}"
        ratio = ratio_of(times[name], times["none"]) if name in times else None
        yield Row(13, label, ratio, 1.03 if is_ours else None)


GROUPS: dict[Callable[[Path, Sizes], Iterator[Row]], set[int]] = {
    measure_golden: {1, 2, 12},
    measure_snapshots: {3, 4, 5, 6},
    measure_fingerprints: {7},
    measure_start_up: {8},
    measure_comparisons: {9, 10},
    measure_clusters: {11},
    measure_plain: {13},
}


def main() -> int:
    """Print the table; return 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="smaller suites: under three minutes")
    parser.add_argument("--rows", default="", help="numbers of rows, as in 3,4; default: all")
    arguments = parser.parse_args()
    wanted = {int(number) for number in arguments.rows.split(",") if number} or set(range(1, 14))
    sizes = QUICK if arguments.quick else FULL
    print(f"{platform.python_implementation()} {platform.python_version()}, {_versions()}")
    print(f"{'#':>2}  {'work':<52} {'least':>6} {'median':>6} {'most':>6}")
    n_missed = 0
    with tempfile.TemporaryDirectory() as name:
        for measure, numbers in GROUPS.items():
            if numbers & wanted:
                for row in measure(Path(name), sizes):
                    print(row, flush=True)
                    n_missed += row.is_missed
    print(f"{n_missed} targets missed" if n_missed else "all targets met")
    return int(n_missed > 0)


def _versions() -> str:
    import os
    from importlib.metadata import version

    return f"pytest {version('pytest')}, {os.cpu_count()} cores"


if __name__ == "__main__":
    sys.exit(main())
