"""A fact of the example project: what its edit changes, which answers it costs, and what is said of it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SUITE = Path(__file__).parents[2] / "example_suite"
OLD, NEW = "2024-06-15 to 2024-06-30", "2024-06-14 to 2024-06-30"
UNUSED = ("anyio", "asyncio", "cacheprovider", "hypothesispytest", "rerunfailures")
WITHOUT = [flag for name in UNUSED for flag in ("-p", f"no:{name}")]


class ExampleSuite:
    """A copy of the example project, to edit and to run pytest in."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path / "suite"
        shutil.copytree(SUITE, self.path, ignore=shutil.ignore_patterns(".ctxfp", "__pycache__"))

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text that stands in a file exactly once."""
        path = self.path / name
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, (name, old)
        path.write_text(text.replace(old, new), encoding="utf-8")

    def run(self, *args: str) -> pytest.RunResult:
        """Run the suite with the cache, in a process of its own: it has packages of its own."""
        return self.pytester.runpytest_subprocess(
            "--rootdir", str(self.path), "-c", str(self.path / "pytest.ini"), *WITHOUT,
            "--ctx-cache", *(args or (str(self.path),)),
        )  # fmt: skip

    def traces(self) -> Iterator[dict[str, object]]:
        """Yield what is stored of each answer."""
        for path in (self.path / ".ctxfp" / "traces").glob("*.json"):
            trace = json.loads(path.read_text(encoding="utf-8"))
            assert isinstance(trace, dict)
            yield trace

    def n_answers(self) -> dict[str, int]:
        """Return how many answers are stored of each case."""
        counts: dict[str, int] = {}
        for trace in self.traces():
            case_id = str(trace["case_id"])
            counts[case_id] = counts.get(case_id, 0) + 1
        return counts


@pytest.fixture
def suite(pytester: pytest.Pytester) -> ExampleSuite:
    """A fresh copy of the example project."""
    return ExampleSuite(pytester)


def n_of(pattern: str, result: pytest.RunResult) -> int:
    """Return the number that a pattern finds in what was printed."""
    found = re.search(pattern, result.stdout.str())
    assert found is not None, pattern
    return int(found[1])


def test_an_edited_fact_changes_its_layer_alone(suite: ExampleSuite) -> None:
    """Each snapshot fails with the layer Project Facts, no other layer, and the line that differs."""
    assert suite.run().ret == 0
    suite.edit("shop/facts.jsonl", OLD, NEW)
    result = suite.run(str(suite.path / "test_context.py"))
    result.assert_outcomes(failed=4)
    changes = re.findall(r"^E +([~+>-]) (.+?)  ", result.stdout.str(), re.MULTILINE)
    assert set(changes) == {("~", "Project Facts")}
    result.stdout.fnmatch_lines(["E *1 layer changed: Project Facts*"])
    result.stdout.fnmatch_lines(
        [f"-[[]campaigns] winter sale={OLD}|*", f"+[[]campaigns] winter sale={NEW}|*"]
    )


def test_an_edited_fact_costs_every_answer_that_saw_it(suite: ExampleSuite) -> None:
    """All contexts hold the fact, so all cases miss, the summary says why, and one verdict differs."""
    golden = str(suite.path / "golden")
    n_cases = n_of(r"answers +0 hit, (\d+) miss", suite.run(golden))
    assert n_of(r"answers +(\d+) hit, 0 miss", suite.run(golden)) == n_cases
    suite.edit("shop/facts.jsonl", OLD, NEW)
    result = suite.run(golden)
    assert n_of(r"answers +0 hit, (\d+) miss", result) == n_cases
    result.stdout.fnmatch_lines([f"*{n_cases}*context: Project Facts*"])
    result.stdout.fnmatch_lines(["FAILED *::winter_sale_revenue*"])
    assert result.parseoutcomes()["failed"] == 1


def test_cases_without_the_layer_stay_in_the_cache(suite: ExampleSuite) -> None:
    """Where an assembler leaves facts out, as for cases with a time, the edit asks the other cases only."""
    suite.edit(
        "shop/assembler.py",
        '"Project Facts": list_facts(),',
        '**({} if "now" in inputs else {"Project Facts": list_facts()}),',
    )
    golden = str(suite.path / "golden")
    n_cases = n_of(r"answers +0 hit, (\d+) miss", suite.run(golden))
    suite.edit("shop/facts.jsonl", OLD, NEW)
    result = suite.run(golden)
    n_hits, n_misses = (n_of(pattern, result) for pattern in (r"answers +(\d+) hit", r"hit, (\d+) miss"))
    timed = {"orders_fresh", "orders_warn", "orders_critical", "refunds_fresh"}
    assert (n_hits, n_misses) == (len(timed), n_cases - len(timed))
    assert {case for case, n in suite.n_answers().items() if n == 1} == timed
    assert set(suite.n_answers().values()) == {1, 2}
    result.stdout.fnmatch_lines([f"*{n_misses}*context: Project Facts*"])


def test_other_orders_of_the_facts_file_are_other_contexts(suite: ExampleSuite) -> None:
    """Facts of one topic stand in the order of the file; a blank line between them changes nothing."""
    golden = str(suite.path / "golden")
    n_cases = n_of(r"answers +0 hit, (\d+) miss", suite.run(golden))
    facts = suite.path / "shop" / "facts.jsonl"
    lines = facts.read_text(encoding="utf-8").splitlines(keepends=True)
    facts.write_text("\n".join(lines), encoding="utf-8")
    assert n_of(r"answers +(\d+) hit, 0 miss", suite.run(golden)) == n_cases
    facts.write_text("".join(reversed(lines)), encoding="utf-8")
    assert n_of(r"answers +0 hit, (\d+) miss", suite.run(golden)) == n_cases
