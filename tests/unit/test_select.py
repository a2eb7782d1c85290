"""Selection of cases by tag and subset."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_ctxfp import Selection, select_cases

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data/select.jsonl").read_text(encoding="utf-8").splitlines()
]


@dataclass(frozen=True)
class Case:
    id: str
    tags: tuple[str, ...] = ()


def make_cases(*tags: str) -> list[Case]:
    """Return a case for each text of tags."""
    return [Case(f"c{index}", tuple(text.split())) for index, text in enumerate(tags)]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_vectors(vector: dict) -> None:
    """The same cases are kept as by the original tool, or none where the request is no good."""
    given = vector["input"]
    cases = [Case(case["id"], tuple(case["tags"])) for case in given["cases"]]
    if vector["expected"].get("error"):
        with pytest.raises(ValueError, match=r"tag|subset|case"):
            select_cases(cases, given["tags"], given["sample"])
    else:
        selection = select_cases(cases, given["tags"], given["sample"])
        assert [cases[index].id for index in selection.indices] == vector["expected"]["ids"]


def test_note() -> None:
    """The note says how many of how many cases are left, and by what; without a request there is none."""
    cases = make_cases("a", "a b", "c", "")
    assert select_cases(cases) == Selection((0, 1, 2, 3), "")
    assert select_cases(cases, "a,b", "1") == Selection((0,), "1 of 4 cases (tags a,b; subset 1)")
    assert select_cases(cases, sample="50%").note == "2 of 4 cases (subset 50%)"


@pytest.mark.parametrize(
    ("sample", "n"),
    [
        ("1e-400", 1),
        ("1e-999999999999", 1),
        ("0." + "0" * 380 + "1", 1),
        ("99.99999999999999999999%", 1_000),
        ("0.999", 999),
        ("0.9990000000000000001", 1_000),
        ("9" * 5_000, 1_000),
        ("per-tag:" + "9" * 5_000, 1_000),
        ("0" * 5_000 + "7", 7),
    ],
)
def test_extreme_subsets(sample: str, n: int) -> None:
    """Shares are exact however small or long, and no size of a number is beyond reading."""
    assert len(select_cases(make_cases(*["t"] * 1_000), sample=sample).indices) == n


@pytest.mark.parametrize(
    "sample",
    ["1e999999999", "0e5", "1e5%", "-1", "+3", "100.0001%", "1" * 500 + ".5", "per-tag:-1", "\ud800"],
)
def test_refused_subsets(sample: str) -> None:
    """What is no subset is a ValueError, at once."""
    with pytest.raises(ValueError, match="subset"):
        select_cases(make_cases(*["t"] * 10), sample=sample)


@pytest.mark.parametrize("tags", [" ", ",", " , ,"])
def test_tags_without_a_name(tags: str) -> None:
    """Tags that name none are an error, and not all cases."""
    with pytest.raises(ValueError, match="name no tag"):
        select_cases(make_cases("a"), tags)
