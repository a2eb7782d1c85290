"""The verdict on an answer: one place that knows how each kind of result is scored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_ctxfp._answer import re_extract
from pytest_ctxfp._compare import compare_tables
from pytest_ctxfp._display import escape_line
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._extract import is_table, read_verdict_field
from pytest_ctxfp._model import Comparison, ResultKind, Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ctxfp._model import GoldenCase, JSONValue
    from pytest_ctxfp._trace import Trace

_MAX_SHOWN = 80
"""Characters of an answer in a reason: the reason is one line."""


def score_answer(case: GoldenCase, value: JSONValue) -> Comparison:
    """Compare an answer with what its case expects.

    Args:
        case: the case, with its expected table at hand.
        value: the answer after its JSON round trip; one of another shape fails.

    Raises:
        CtxfpError: the case can't be scored: its kind or match mode isn't supported, or what it expects
            doesn't fit its kind.
    """
    return _score(case, value) or Comparison(False, _say_unfit(case, json.dumps(value, ensure_ascii=False)))


def rescore(trace: Trace, case: GoldenCase) -> Comparison | None:
    """Score a stored answer by what its case expects today; the agent is not asked.

    The answer of an ``unparseable`` trace is looked for again in its text first.

    Returns:
        The verdict; None where the stored value has not the shape that the case's kind needs, so that
        the case has to run again. An ``unparseable`` answer that stays one fails.

    Raises:
        CtxfpError: as ``score_answer``.
    """
    verdict = _score(case, scored_value(trace, case))
    if trace.status == "ok":
        return verdict
    return verdict or Comparison(False, _say_unfit(case, trace.raw or ""))


def scored_value(trace: Trace, case: GoldenCase) -> JSONValue:
    """Return the value of a trace that is scored: what was recorded, or what is found in its text today."""
    return trace.result if trace.status == "ok" else re_extract(trace.raw, case.result_kind).value


def check_scorable(case: GoldenCase) -> None:
    """Refuse a case whose answer can't be scored, before anybody is asked.

    Raises:
        CtxfpError: as ``score_answer``.
    """
    _score(case, None)


def _score(case: GoldenCase, value: JSONValue) -> Comparison | None:
    scorer = _SCORERS.get(case.result_kind)
    if scorer is None:
        message = (
            f"case {case.id!r}: answers of kind {case.result_kind.value!r} can't be scored: "
            f"use {' or '.join(kind.value for kind in _SCORERS)}"
        )
        raise CtxfpError(message)
    return scorer(case, value)


def _score_table(case: GoldenCase, value: JSONValue) -> Comparison | None:
    expected = _expected_table(case)
    if not is_table(value):
        return None
    try:
        return compare_tables(
            expected,
            value,
            match=case.match,
            tolerance=case.tolerance or None,
            extra_columns=case.extra_columns,
        )
    except ValueError as error:
        message = f"case {case.id!r}: {error}"
        raise CtxfpError(message) from error


def _score_verdict(case: GoldenCase, value: JSONValue) -> Comparison | None:
    rows = _expected_table(case).rows
    if [len(row) for row in rows] != [1]:
        message = f"case {case.id!r}: a verdict is expected as one cell: write expected: true"
        raise CtxfpError(message)
    expected = rows[0][0]
    try:
        actual = read_verdict_field(value, case.verdict_field)
    except ValueError as error:
        message = f"case {case.id!r}: {error}"
        raise CtxfpError(message) from error
    if actual is None:
        return None
    same = compare_tables({"rows": [[expected]]}, {"rows": [[actual]]}, match="scalar")
    reason = f"{case.verdict_field}: expected {_spell(expected)}, actual {_spell(actual)}"
    return Comparison(same.passed, reason)


_SCORERS: dict[ResultKind, Callable[[GoldenCase, JSONValue], Comparison | None]] = {
    ResultKind.TABLE: _score_table,
    ResultKind.VERDICT: _score_verdict,
}


def _expected_table(case: GoldenCase) -> Table:
    if isinstance(case.expected, Table):
        return case.expected
    remedy = "run its expected_sql first" if case.expected_sql else "add expected: {rows: [[...]]}"
    message = f"case {case.id!r}: no expected table to score by: {remedy}"
    raise CtxfpError(message)


def _say_unfit(case: GoldenCase, answer: str) -> str:
    """Say that an answer holds nothing to compare: ``no table in the answer: "I don't know"``."""
    shown = repr(answer if len(answer) <= _MAX_SHOWN else f"{answer[:_MAX_SHOWN]}…")
    if case.result_kind is ResultKind.VERDICT:
        expected = _spell(_expected_table(case).rows[0][0])
        return f"{case.verdict_field}: expected {expected}, the answer has none: {shown}"
    return f"no {case.result_kind.value} in the answer: {shown}"


def _spell(value: JSONValue) -> str:
    return escape_line(json.dumps(value, ensure_ascii=False), limit=_MAX_SHOWN)
