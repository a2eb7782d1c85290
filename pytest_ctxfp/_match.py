"""The verdict on an answer: one place that knows how each kind of result is scored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_ctxfp._answer import Answer, re_extract
from pytest_ctxfp._compare import compare_tables
from pytest_ctxfp._display import escape_line
from pytest_ctxfp._errors import CtxfpError
from pytest_ctxfp._extract import has_shape, is_table, read_verdict_field
from pytest_ctxfp._json_match import JSON_MODES, match_json
from pytest_ctxfp._model import Comparison, ResultKind, Table
from pytest_ctxfp._text_match import TEXT_MODES, match_text

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
        CtxfpError: the case can't be scored: its match mode is none of its kind, or what it expects doesn't
            fit.
    """
    return _score(case, value) or Comparison(False, _say_unfit(case, json.dumps(value, ensure_ascii=False)))


def rescore(trace: Trace, case: GoldenCase) -> Comparison | None:
    """Score a stored answer by what its case expects today; the agent is not asked.

    Where the stored value is not what the case asks for, the answer is looked for again in its text.

    Returns:
        The verdict; None where neither value nor text hold what the case's kind needs, so that the case has
        to run again. An ``unparseable`` answer that stays one fails.

    Raises:
        CtxfpError: as ``score_answer``.
    """
    answer = stored_answer(trace, case)
    if answer.status == "ok":
        verdict = _score(case, answer.value)
        if verdict is not None:
            return verdict
    check_scorable(case)
    return None if trace.status == "ok" else Comparison(False, _say_unfit(case, trace.raw or ""))


def stored_answer(trace: Trace, case: GoldenCase) -> Answer:
    """Return the answer of a trace that is scored: what was recorded, or what is found in its text today.

    The answer to a JSON case is always looked for in the text: it has any shape, so what was recorded while
    the case asked for something else could pass for it.
    """
    recorded = Answer(trace.raw or "", trace.result, trace.status)
    is_fitting = trace.status == "ok" and has_shape(trace.result, case.result_kind)
    if is_fitting and (case.result_kind is not ResultKind.JSON or trace.raw is None):
        return recorded
    found = re_extract(trace.raw, case.result_kind)
    return recorded if is_fitting and found.status == "unparseable" else found


def scored_value(trace: Trace, case: GoldenCase) -> JSONValue:
    """Return the value of `stored_answer`."""
    return stored_answer(trace, case).value


def check_scorable(case: GoldenCase) -> None:
    """Refuse a case whose answer can't be scored, before anybody is asked.

    Raises:
        CtxfpError: as ``score_answer``.
    """
    _score(case, None)


def _score(case: GoldenCase, value: JSONValue) -> Comparison | None:
    return _SCORERS[case.result_kind](case, value)


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


def _score_text(case: GoldenCase, value: JSONValue) -> Comparison | None:
    _check_mode(case)
    comparison = match_text(case, value if isinstance(value, str) else "")
    return comparison if isinstance(value, str) else None


def _score_json(case: GoldenCase, value: JSONValue) -> Comparison | None:
    _check_mode(case)
    return match_json(case, value)


def _check_mode(case: GoldenCase) -> None:
    if has_own_scorer(case):
        modes = ", ".join(MODES[case.result_kind])
        message = (
            f"case {case.id!r}: match {case.match!r} is no mode of {case.result_kind.value} answers"
            f" ({modes}): a scorer of that name is called where a test resolves the case"
        )
        raise CtxfpError(message)


MODES = {ResultKind.TEXT: TEXT_MODES, ResultKind.JSON: JSON_MODES}


def has_own_scorer(case: GoldenCase) -> bool:
    """Tell whether a case is scored by an entry of ``ctx_scorers``: its match is no mode of its kind."""
    return case.result_kind in MODES and case.match not in MODES[case.result_kind]


_SCORERS: dict[ResultKind, Callable[[GoldenCase, JSONValue], Comparison | None]] = {
    ResultKind.TABLE: _score_table,
    ResultKind.VERDICT: _score_verdict,
    ResultKind.TEXT: _score_text,
    ResultKind.JSON: _score_json,
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
