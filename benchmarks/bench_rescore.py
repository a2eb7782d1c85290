"""Re-scoring golden cases from a warm cache, and starting up, against pytest doing nothing.

Prints the ratio of wall times over interleaved rounds of this run, and the median times behind it. Re-scoring
is measured against as many empty parametrised tests in the same pytest; start-up, in an empty folder, against
the same run with the plugin blocked.

    python benchmarks/bench_rescore.py [number of cases]

Example output:
    run                          bare       ours   ratio min/median/max
    5000 golden cases         2.400 s    3.100 s   1.25 / 1.29 / 1.33
    start-up, empty folder    0.210 s    0.214 s   1.00 / 1.02 / 1.05
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

N_CASES = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
N_ROUNDS = 5
N_STARTS = 40

CONFTEST = """
import pytest

RULES = "".join(f"## Layer {n}\\n" + f"- rule {n} of the shop\\n" * 20 for n in range(8))

@pytest.fixture
def ctx_assembler():
    return lambda question: f"{RULES}## Question\\n{question}\\n"

@pytest.fixture
def ctx_agent():
    return lambda question: {"columns": ["n"], "rows": [[int(question.split()[-1])]]}
"""
EMPTY_TESTS = """
import pytest

@pytest.mark.parametrize("n", range(N_CASES))
def test_empty(n): pass
"""


def write_project(folder: Path) -> None:
    """Write a suite of golden cases and one of empty tests beside each other."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "agent.md").write_text("be right\n")
    (folder / "pytest.ini").write_text("[pytest]\nctx_agent_paths = agent.md\n")
    (folder / "test_empty.py").write_text(EMPTY_TESTS.replace("N_CASES", str(N_CASES)))
    cases = [
        f"  - id: case_{n}\n    question: how many in {n}\n    tags: [easy]\n    match: scalar\n"
        f"    expected: {{columns: [n], rows: [[{n}]]}}\n"
        for n in range(N_CASES)
    ]
    (folder / "golden.yaml").write_text("cases:\n" + "".join(cases))


def run(folder: Path, *args: str, processor: bool = False) -> float:
    """Return the wall (or processor) seconds of one run of pytest that must pass, or find no test."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    if done.returncode not in {0, 5}:
        sys.exit(done.stdout + done.stderr)
    if not processor:
        return wall
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime


def report(name: str, rounds: list[tuple[float, float]]) -> dict[str, float]:
    """Print the line of one comparison and return its figures."""
    ratios = [ours / bare for bare, ours in rounds]
    bare, ours = (statistics.median(times) for times in zip(*rounds, strict=True))
    spread = f"{min(ratios):.2f} / {statistics.median(ratios):.2f} / {max(ratios):.2f}"
    print(f"{name:<24} {bare:7.3f} s  {ours:7.3f} s   {spread}   {(ours - bare) * 1000:+.1f} ms")
    return {"ratio": statistics.median(ratios), "difference_ms": (ours - bare) * 1000}


def main() -> None:
    """Print the table, and the figures as JSON for a machine."""
    # Byte code is kept between runs, as everywhere but in some containers.
    for variable in ("PYTEST_ADDOPTS", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(variable, None)
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as empty_name:
        folder, empty = Path(name), Path(empty_name)
        write_project(folder)
        run(folder, "golden.yaml", "--ctx-cache")
        print("run                          bare       ours   ratio min/median/max   difference of medians")
        rescoring = report(
            f"{N_CASES} golden cases",
            [
                (run(folder, "test_empty.py"), run(folder, "golden.yaml", "--ctx-cache"))
                for _ in range(N_ROUNDS)
            ],
        )
        starting = report(
            "start-up, empty folder",
            [
                (
                    run(empty, "--co", "-p", "no:ctxfp", processor=True),
                    run(empty, "--co", processor=True),
                )
                for _ in range(N_STARTS)
            ],
        )
    print(json.dumps({"rescoring": rescoring, "start_up": starting}))


if __name__ == "__main__":
    main()
