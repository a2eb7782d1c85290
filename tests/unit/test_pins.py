"""Pins of golden files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_ctxfp import PinStatus, classify_pin

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data/context_version.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
SHA = "ce013625030ba8dba906f756967f9e9ca394464a"


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_vectors(vector: dict) -> None:
    """Dataset, pin and freshness are those of the original tool."""
    assert classify_pin(**vector["input"]) == PinStatus(**vector["expected"])


@pytest.mark.parametrize(
    ("pin", "freshness"),
    [("CE01362", "fresh"), (SHA.upper(), "fresh"), ("ce01363", "stale"), ("ce0136\n", "unpinned")],
)
def test_freshness(pin: str, freshness: str) -> None:
    """Upper and lower case are the same, and nothing may follow the digits."""
    assert classify_pin(f"shop@{pin}", SHA).freshness == freshness


def test_other_digits_are_no_pin() -> None:
    """Digits beyond ASCII are not hex digits."""
    assert classify_pin("shop@١٢٣٤٥٦٧", SHA).freshness == "unpinned"


def test_without_a_pin() -> None:
    """A golden file without a pin is unpinned."""
    assert classify_pin(None, SHA) == PinStatus(dataset=None, pin="", freshness="unpinned")
