"""Golden cases whose answers take half a second, on eight workers, against as many tests that sleep as long.

Prints the ratio of wall times over interleaved rounds of this run, and the median times behind it: what keys,
locks, files and scoring add where the time goes to waiting for answers. A last run on the filled cache must
make no call.

    python benchmarks/bench_parallel.py [number of rounds]

Example output:
    run                          bare       ours   ratio min/median/max
    64 answers, -n 8          17.581 s  18.248 s   0.98 / 1.03 / 1.35
    second run                        14.528 s   0 calls
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

N_ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
N_CASES = 64
N_WORKERS = 8

CONFTEST = """
import pathlib
import time

import pytest

HERE = pathlib.Path(__file__).parent

@pytest.fixture
def ctx_assembler():
    return lambda question: f"## Rules\\n- be right\\n## Question\\n{question}\\n"

@pytest.fixture
def ctx_agent():
    def ask(question):
        with open(HERE / "calls.txt", "a") as log:
            log.write(question + "\\n")
        time.sleep(0.5)
        return {"columns": ["n"], "rows": [[int(question)]]}

    return ask
"""
SLEEPING_TESTS = f"""
import time
import pytest

@pytest.mark.parametrize("n", range({N_CASES}))
def test_sleep(n):
    time.sleep(0.5)
"""


def write_project(folder: Path) -> None:
    """Write a suite of golden cases and one of sleeping tests beside each other."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "agent.md").write_text("be right\n")
    (folder / "pytest.ini").write_text("[pytest]\nctx_agent_paths = agent.md\n")
    (folder / "test_sleep.py").write_text(SLEEPING_TESTS)
    cases = [
        f"  - {{id: c{n}, question: '{n}', match: scalar, expected: {{columns: [n], rows: [[{n}]]}}}}\n"
        for n in range(N_CASES)
    ]
    (folder / "golden.yaml").write_text("cases:\n" + "".join(cases))


def run(folder: Path, *args: str) -> float:
    """Return the wall seconds of one run of pytest that must pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"-n{N_WORKERS}", *args]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return wall


def count_calls(folder: Path) -> int:
    """Return how many calls were made since the last time."""
    log = folder / "calls.txt"
    n_calls = len(log.read_text().splitlines()) if log.exists() else 0
    log.unlink(missing_ok=True)
    return n_calls


def run_cold(folder: Path) -> float:
    """Return the wall seconds of a run on an empty cache, which must ask each case once."""
    shutil.rmtree(folder / ".ctxfp", ignore_errors=True)
    wall = run(folder, "golden.yaml", "--ctx-cache")
    n_calls = count_calls(folder)
    if n_calls != N_CASES:
        sys.exit(f"{n_calls} calls were made for {N_CASES} cases")
    return wall


def main() -> None:
    """Print the table, and the figures as JSON for a machine."""
    for variable in ("PYTEST_ADDOPTS", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(variable, None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_project(folder)
        run_cold(folder)
        rounds = [(run(folder, "test_sleep.py"), run_cold(folder)) for _ in range(N_ROUNDS)]
        second = run(folder, "golden.yaml", "--ctx-cache")
        n_calls = count_calls(folder)
    ratios = [ours / bare for bare, ours in rounds]
    bare, ours = (statistics.median(times) for times in zip(*rounds, strict=True))
    spread = f"{min(ratios):.2f} / {statistics.median(ratios):.2f} / {max(ratios):.2f}"
    print("run                          bare       ours   ratio min/median/max")
    print(f"{f'{N_CASES} answers, -n {N_WORKERS}':<24} {bare:7.3f} s  {ours:7.3f} s   {spread}")
    print(f"{'second run':<24}            {second:7.3f} s   {n_calls} calls")
    print(json.dumps({"ratio": statistics.median(ratios), "second_run_calls": n_calls}))


if __name__ == "__main__":
    main()
