"""The page of guarantees: each line names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")]
PROMISES = [line for line in ROWS if not line.startswith(("| promised", "| ---"))]
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


@pytest.mark.parametrize("line", PROMISES, ids=lambda line: line.split("|")[1].strip()[:40])
def test_every_promise_names_tests_that_exist(line: str) -> None:
    """A promise is proven by at least one test, and that test is there."""
    named = NAMED.findall(line)
    assert named
    for file, test in named:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {test}(" in text if test else "def test_" in text
