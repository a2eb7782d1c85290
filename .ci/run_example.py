"""Run the example suite cold, warm and with edited expectations, and check what its summary says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Run the three runs in a copy, so that the checkout stays clean."""
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder) / "example_suite"
        shutil.copytree(ROOT / "example_suite", suite, ignore=shutil.ignore_patterns(".ctxfp", "__pycache__"))
        cold = run(suite, exit_code=0)
        n_answers = int(search(r"answers +0 hit, (\d+) miss", cold))
        search(rf"in {n_answers} calls", cold)
        warm = run(suite, exit_code=0)
        search(rf"answers +{n_answers} hit, 0 miss", warm)
        search(r"spent 0.0000 USD in 0 calls", warm)
        edit(suite / "golden" / "golden_shop.yaml", "rows: [[28]]", "rows: [[29]]")
        rescored = run(suite, exit_code=1)
        search(rf"answers +{n_answers} hit \(1 re-scored\), 0 miss", rescored)
        search(r"spent 0.0000 USD in 0 calls", rescored)
        search(r"re-scored +orders_total: passed -> failed", rescored)
    print(f"example suite: {n_answers} answers asked cold, replayed warm, re-scored after an edit")


def run(suite: Path, *, exit_code: int) -> str:
    """Run the suite with the cache and return what it printed."""
    command = [sys.executable, "-m", "pytest", str(suite), "--ctx-cache", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=suite.parent, capture_output=True, text=True, check=False)
    if done.returncode != exit_code:
        sys.exit(f"{done.stdout}{done.stderr}\nexit code {done.returncode}, expected {exit_code}")
    return done.stdout


def search(pattern: str, text: str) -> str:
    """Return the first group of a pattern (or all of it) that must stand in a text."""
    found = re.search(pattern, text)
    if found is None:
        sys.exit(f"{text}\nthe summary lacks {pattern!r}")
    return found.group(found.re.groups)


def edit(path: Path, old: str, new: str) -> None:
    """Replace a text that stands in a file exactly once."""
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        sys.exit(f"{path} should hold {old!r} once")
    path.write_text(text.replace(old, new), encoding="utf-8")


if __name__ == "__main__":
    main()
