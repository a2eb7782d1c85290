"""The verdict on a stored answer where more than the answer is needed: SQL to run, or a scorer to call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_ctxfp._answer import to_json_value
from pytest_ctxfp._chain import separate_calls
from pytest_ctxfp._compare import compare_tables
from pytest_ctxfp._display import escape_line
from pytest_ctxfp._errors import AgentError, CtxfpError, ScorerError, describe_error, first_line
from pytest_ctxfp._extract import is_table
from pytest_ctxfp._frames import read_frame
from pytest_ctxfp._match import MODES, check_scorable, has_own_scorer, rescore, score_answer, stored_answer
from pytest_ctxfp._model import Comparison, Table
from pytest_ctxfp._texts import map_texts
from pytest_ctxfp._values import type_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ctxfp._judging import Judgement, Judges
    from pytest_ctxfp._model import GoldenCase, JSONValue
    from pytest_ctxfp._suite import Suite
    from pytest_ctxfp._trace import Trace

_MAX_SQL = 500
_NO_EXECUTE = """ has expected_sql, which nothing runs: give a fixture in conftest.py, for instance

    @pytest.fixture
    def ctx_execute():
        connection = sqlite3.connect("file:shop.sqlite?mode=ro", uri=True)
        yield connection.execute
        connection.close()"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A comparison and what it took.

    Attributes:
        comparison: the verdict.
        executed: the table that the agent's SQL gives today, where it was run again in place of its answer.
        judgement: what a cached scorer said, where there is one.
        scorer: name, version and model of the suite's own scorer, where one was asked.
    """

    comparison: Comparison
    executed: JSONValue = None
    judgement: Judgement | None = None
    scorer: str | None = None


async def prepare_case(case: GoldenCase, suite: Suite) -> GoldenCase:
    """Return a case that can be scored, its ``expected_sql`` run; nobody was asked anything yet.

    Raises:
        CtxfpError: it can't be scored: its SQL fails, its scorer is unknown, what it expects doesn't fit.
    """
    if case.expected_sql is not None:
        case = replace(case, expected=await _run_sql(case.expected_sql, case, suite, what="expected_sql"))
        score_answer(case, {"rows": []})  # the table is new: its shape and tolerances were not checked yet
    if has_own_scorer(case):
        from pytest_ctxfp._scorers import find_scorer

        find_scorer(case, suite.load_scorers(), modes=MODES[case.result_kind])
    else:
        check_scorable(case)
    return case


async def score_trace(
    trace: Trace,
    case: GoldenCase,
    *,
    suite: Suite,
    context: object,
    judges: Judges,
    is_stored: bool,
    redact: Callable[[str], str] | None = None,
) -> Verdict | None:
    """Score an answer.

    Args:
        trace: the answer.
        case: as `prepare_case` returned it.
        suite: gives the scorers and what runs SQL.
        context: as it is now.
        judges: asks cached scorers.
        is_stored: the answer is from the store: its SQL is run again where what is expected was too.
        redact: leaves secrets out of what its SQL gives.

    Returns:
        The verdict; None where the stored answer has not the shape that the case needs.

    Raises:
        ScorerError: a scorer raised, or SQL failed.
        CacheMiss: no verdict of a cached scorer is stored and it may not be called.
    """
    if has_own_scorer(case):
        return await _score_by_scorer(trace, case, suite=suite, context=context, judges=judges)
    if (
        is_stored
        and case.expected_sql is not None
        and trace.sql_executed
        and trace.sql_gave_answer is not False
    ):
        executed = await _run_sql(trace.sql_executed, case, suite, what="the stored answer's SQL")
        table: JSONValue = executed.to_dict()
        if redact is not None:  # as the answer was, so that a hit is scored as the miss was
            table = map_texts(table, redact)
        return Verdict(score_answer(case, table), executed=table)
    comparison = rescore(trace, case)
    if comparison is None:
        return None
    if is_stored and case.expected_sql is not None and not comparison.passed:
        comparison = replace(comparison, reason=comparison.reason + _say_why_not_run(trace))
    return Verdict(comparison)


def _say_why_not_run(trace: Trace) -> str:
    if trace.sql_executed is None:
        return " (the answer as it was recorded: it has no SQL to run again)"
    return " (the answer as it was recorded, which its SQL did not give then: not run again)"


async def is_answer_of_sql(trace: Trace, case: GoldenCase, suite: Suite) -> bool | None:
    """Tell whether a fresh answer is what its SQL gives: only then may the SQL stand for it later.

    Returns:
        None where nothing was tried: the case has no ``expected_sql``, or the answer no SQL.
    """
    if case.expected_sql is None or trace.sql_executed is None or not is_table(trace.result):
        return None
    try:
        executed = await _run_sql(trace.sql_executed, case, suite, what="the answer's SQL")
        return compare_tables(trace.result, executed, match="set").passed
    except (ScorerError, ValueError):
        return False


async def _score_by_scorer(
    trace: Trace, case: GoldenCase, *, suite: Suite, context: object, judges: Judges
) -> Verdict | None:
    from pytest_ctxfp._scorers import CachedScorer, call_scorer, find_scorer, judge_opinion

    answer = stored_answer(trace, case)
    if answer.status == "unparseable":
        if trace.status == "ok":
            return None
        return Verdict(Comparison(False, f"no {case.result_kind.value} in the answer to score", 0.0))
    scorer = find_scorer(case, suite.load_scorers(), modes=MODES[case.result_kind])
    if not isinstance(scorer, CachedScorer):
        opinion = await call_scorer(scorer, case, answer.value, suite=suite, context=context, trace=trace)
        return Verdict(judge_opinion(case, opinion), scorer=case.match)
    judgement = await judges.judge(scorer, case, answer.value, suite=suite, sample=trace.sample)
    identity = f"{case.match} {scorer.version} {scorer.model}"
    return Verdict(judge_opinion(case, judgement.opinion), judgement=judgement, scorer=identity)


async def _run_sql(sql: str, case: GoldenCase, suite: Suite, *, what: str) -> Table:
    place = (
        f"{suite.show_path(case.path)}:{case.line}: case {case.id!r}" if case.path else f"case {case.id!r}"
    )
    execute = suite.load_execute()
    if execute is None:
        raise CtxfpError(place + _NO_EXECUTE)
    if not callable(execute):
        message = f"fixture ctx_execute gave {type_name(execute)}: return a function from SQL to a table"
        raise CtxfpError(message)
    try:
        with separate_calls():
            return _read_table(await suite.settle(execute(sql), case.timeout))
    except AgentError as error:
        reason, cause = first_line(error), error  # type: tuple[str, BaseException]
    except suite.let_through:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - drivers raise what they like
        reason, cause = describe_error(error), error
    message = f"{place}: {what} failed: {reason}\n    {escape_line(sql, limit=_MAX_SQL)}"
    raise ScorerError(message) from cause


def _read_table(returned: object) -> Table:
    """Return what ``ctx_execute`` gave as a table.

    Raises:
        AgentError: it is no table, or can't be read.
    """
    frame = read_frame(returned)
    value = to_json_value(returned if frame is None else frame)
    if not is_table(value):
        message = (
            f"ctx_execute returned {type_name(returned)}: return a cursor, a DataFrame, or a dict with"
            " 'columns' and 'rows'"
        )
        raise AgentError(message)
    columns, rows = value.get("columns"), value["rows"]
    assert isinstance(rows, list)
    return Table(
        tuple(map(str, columns)) if isinstance(columns, list) else None,
        tuple(tuple(row) for row in rows if isinstance(row, list)),
    )
