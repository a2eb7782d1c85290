"""Text and JSON answers, a suite's own scorers and a judge that is paid for, as a user would write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Project

GOLDEN = """cases:
  - id: refunds
    question: How long can I return shoes?
    result_kind: text
    match: contains
    expected: [30 days, receipt]
  - id: hours
    question: Give the hours as JSON.
    result_kind: json
    match: subset
    expected: {open: 9}
"""
ANSWERS = {
    "How long can I return shoes?": "For 30 days, with the receipt. See [policy-1] and [policy-2].",
    "Give the hours as JSON.": 'Gladly:\n```json\n{"open": 9, "close": 17}\n```\n',
}

SCORERS = '''

@pytest.fixture
def ctx_scorers():
    return {"citations": citations, "helpful": helpful, "broken": broken, "odd": lambda answer: "yes"}


def citations(answer, expected):
    """The share of the expected sources that the answer cites."""
    return sum(f"[{source}]" in answer for source in expected) / len(expected)


def broken(answer):
    raise RuntimeError("no network")


@cached_scorer(version="1", model="judge-1")
async def helpful(question, answer, expected):
    with open(HERE / "judged.txt", "a") as log:
        log.write(question + "\\n")
    score = 0.75 if expected["tone"] in answer else 0.25
    return AgentResult(score, cost=0.01)
'''

JUDGED = """cases:
  - id: refunds
    question: How long can I return shoes?
    result_kind: text
    match: helpful
    min_score: 0.7
    expected: {tone: receipt}
  - id: hours
    question: Give the hours as JSON.
    result_kind: json
    match: helpful
    min_score: 0.7
    expected: {tone: open}
"""


@pytest.fixture
def suite(project: Project) -> Project:
    """A project with a text and a JSON case, and scorers at hand."""
    conftest = (project.path / "conftest.py").read_text()
    project.write("conftest.py", f"from pytest_ctxfp import AgentResult, cached_scorer\n{conftest}{SCORERS}")
    project.write("golden.yaml", GOLDEN)
    project.answer(ANSWERS)
    return project


def judged(suite: Project) -> int:
    """Return how often the judge was called since the last time."""
    log = suite.path / "judged.txt"
    n_calls = len(log.read_text().splitlines()) if log.exists() else 0
    log.unlink(missing_ok=True)
    return n_calls


def test_texts_and_json(suite: Project) -> None:
    """Text and JSON are scored on a miss, and re-scored without a call when what is expected was edited."""
    suite.run("--ctx-cache").assert_outcomes(passed=2)
    suite.edit("golden.yaml", "30 days", "60 days")
    suite.edit("golden.yaml", "open: 9", "open: 8")
    suite.calls()
    result = suite.run("--ctx-cache")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines_random(
        [
            "'60 days' is not in the answer 'For 30 days, with the receipt. See [[]policy-1]*",
            "$.open: expected 8, actual 9 (off by 1)",
            "answers    2 hit (2 re-scored), 0 miss*",
        ]
    )
    assert suite.calls() == []


def test_bad_pattern_is_an_error_of_the_file(suite: Project) -> None:
    """A regular expression that is none is reported with its line before anything runs."""
    suite.edit(
        "golden.yaml", "match: contains\n    expected: [30 days, receipt]", "match: regex\n    expected: '('"
    )
    result = suite.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*golden.yaml:6: case 'refunds': the regular expression '(' is none: missing )*"]
    )
    assert suite.calls() == []


def test_scorer_of_ten_lines(suite: Project, how: list[str]) -> None:
    """A score is weighed against ``min_score``; it is shown in the failure and in the properties."""
    suite.edit("golden.yaml", "contains", "citations")
    suite.edit("golden.yaml", "[30 days, receipt]", "[policy-1, policy-2, policy-3]")
    result = suite.run("--ctx-cache", "--junit-xml=out.xml", *how)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            "scorer citations: failed, score 0.6667 of at least 1",
            "score      0.6667 of 1",
        ]
    )
    assert 'name="ctxfp_score" value="0.66' in (suite.path / "out.xml").read_text()
    suite.calls()
    suite.edit("golden.yaml", "match: citations", "match: citations\n    min_score: 0.6")
    suite.run("--ctx-cache", *how).assert_outcomes(passed=2)
    assert suite.calls() == []


@pytest.mark.parametrize(
    ("match", "text"),
    [
        ("broken", "scorer 'broken' raised RuntimeError: no network"),
        ("odd", "scorer 'odd' returned str: return a bool, a score from 0 to 1, or a Comparison"),
        (
            "containz",
            (
                "*match 'containz' is neither a mode of text answers (exact, contains, *)"
                " nor a scorer of the fixture ctx_scorers (broken, citations, helpful, odd)"
            ),
        ),
    ],
)
def test_scorers_that_give_no_verdict(suite: Project, match: str, text: str) -> None:
    """A scorer that raises, returns nonsense or isn't there is an ERROR of its item, and no failure."""
    suite.edit("golden.yaml", "match: contains", f"match: {match}")
    result = suite.run("--ctx-cache")
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines([text])
    assert len(suite.calls()) == (1 if match == "containz" else 2)
    assert len(suite.traces()) == (1 if match == "containz" else 2)


def test_judge_is_asked_once(suite: Project) -> None:
    """A judge's verdicts are stored, and what they cost stands apart from what the agent costs."""
    suite.write("golden.yaml", JUDGED)
    result = suite.run("--ctx-cache")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["cost *in 2 calls*", "scorers    spent 0.0200 USD in 2 calls, saved 0.0000 USD"]
    )
    assert (len(suite.calls()), judged(suite), len(suite.traces())) == (2, 2, 4)
    result = suite.run("--ctx-cache", "--ctx-on-miss=fail")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["cost *in 0 calls*", "scorers    spent 0.0000 USD in 0 calls, saved 0.0200 USD"]
    )
    assert (suite.calls(), judged(suite)) == ([], 0)


def test_judge_is_asked_again_only_where_its_key_changed(suite: Project) -> None:
    """``min_score`` costs nothing, ``expected`` a verdict, another agent with the same answer no verdict."""
    suite.write("golden.yaml", JUDGED)
    suite.run("--ctx-cache")
    suite.calls()
    judged(suite)
    suite.write("golden.yaml", JUDGED.replace("0.7", "0.8"))
    result = suite.run("--ctx-cache")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["score      0.75 of 1; stored, the scorer was not called"])
    assert (suite.calls(), judged(suite)) == ([], 0)
    suite.write("golden.yaml", JUDGED.replace("tone: open", "tone: shut"))
    suite.run("--ctx-cache").assert_outcomes(passed=1, failed=1)
    assert (suite.calls(), judged(suite)) == ([], 1)
    suite.write("golden.yaml", JUDGED)
    suite.write("agent/prompt.md", "Answer kindly.\n")
    suite.edit("rules.md", "- count all", "- count everything")
    suite.run("--ctx-cache").assert_outcomes(passed=2)
    assert (len(suite.calls()), judged(suite)) == (2, 0)
    suite.edit("conftest.py", 'version="1"', 'version="2"')
    suite.run("--ctx-cache").assert_outcomes(passed=2)
    assert (suite.calls(), judged(suite)) == ([], 2)


def test_verdict_that_is_not_stored_is_a_miss(suite: Project) -> None:
    """Where no call is allowed, a missing verdict is an ERROR that says so; nobody is asked."""
    suite.write("golden.yaml", JUDGED)
    suite.run("--ctx-cache")
    judged(suite)
    suite.edit("conftest.py", 'version="1"', 'version="2"')
    result = suite.run("--ctx-cache", "--ctx-on-miss=fail")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["the answer is stored, but no verdict of the scorer 'helpful' on it"])
    assert judged(suite) == 0


def test_judge_that_names_the_context_is_refused(suite: Project) -> None:
    """What is not in the key of a judge's verdict can't be named by it: the error says what can."""
    suite.write("golden.yaml", JUDGED)
    suite.edit("conftest.py", "async def helpful(question,", "async def helpful(context, question,")
    result = suite.run("--ctx-cache")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*asks for an argument 'context'; *case, question, answer, expected*"])
    assert suite.calls() == []


def test_judge_without_the_cache(suite: Project) -> None:
    """With the cache off a judge is called every time and nothing is stored."""
    suite.write("golden.yaml", JUDGED)
    suite.run().assert_outcomes(passed=2)
    suite.run().assert_outcomes(passed=2)
    assert (judged(suite), suite.traces()) == (4, [])


def test_scorers_in_python_tests(suite: Project) -> None:
    """``ctx_trace`` in a Python test scores by the same scorers and shows the score."""
    suite.write("golden.yaml", JUDGED)
    suite.write(
        "test_marked.py",
        "import pytest\n\n@pytest.mark.ctx_golden('golden.yaml')\ndef test_answer(ctx_case, ctx_trace):\n"
        "    outcome = ctx_trace(ctx_case)\n    assert outcome.comparison.score == 0.75\n"
        "    outcome.check()\n",
    )
    suite.run("--ctx-cache", "test_marked.py").assert_outcomes(passed=2)


def test_judge_counts_against_the_limits_of_a_run(suite: Project) -> None:
    """A judge's call is a call of the run; the answer that was paid for before it is kept."""
    suite.write("golden.yaml", JUDGED)
    result = suite.run("--ctx-cache", "--ctx-max-calls=3", "-rs")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(
        ["not asked*1 --ctx-max-calls=3 is reached: hours", "SKIPPED*--ctx-max-calls=3 is reached"]
    )
    assert (len(suite.calls()), judged(suite)) == (2, 1)
    suite.run("--ctx-cache", "--ctx-max-calls=1").assert_outcomes(passed=2)
    assert (suite.calls(), judged(suite)) == ([], 1)
    suite.edit("conftest.py", 'version="1"', 'version="2"')
    suite.run("--ctx-cache", "--ctx-max-cost=0.01").assert_outcomes(passed=1, skipped=1)
    assert judged(suite) == 1


def test_calls_that_a_judge_makes_are_no_turns_of_the_test(suite: Project) -> None:
    """What a test asks after a verdict is the same question whether the verdict was stored or not."""
    suite.write("golden.yaml", JUDGED)
    suite.edit("conftest.py", "import AgentResult,", "import AgentResult, cached_call,")
    suite.edit("conftest.py", "    score = 0.75", "    ask('judging ' + question)\n    score = 0.75")
    conftest = (suite.path / "conftest.py").read_text()
    suite.write(
        "conftest.py",
        f"{conftest}\n\n@cached_call\ndef ask(text):\n"
        "    with open(HERE / 'asked.txt', 'a') as log:\n        log.write(text + '\\n')\n    return text\n"
        "\n\n@pytest.fixture\ndef asker():\n    return ask\n",
    )
    suite.write(
        "test_answers.py",
        "import pytest\n\n@pytest.mark.ctx_golden('golden.yaml')\n"
        "def test_answer(ctx_case, ctx_trace, asker):\n"
        "    ctx_trace(ctx_case).check()\n    assert asker('thanks') == 'thanks'\n",
    )
    suite.run("--ctx-cache", "test_answers.py").assert_outcomes(passed=2)
    asked = (suite.path / "asked.txt").read_text()
    assert asked.count("judging") == 2
    suite.run("--ctx-cache", "--ctx-max-calls=0", "test_answers.py").assert_outcomes(passed=2)
    assert (suite.path / "asked.txt").read_text() == asked
