"""What a person reads when an answer is not what its case expects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_ctxfp._display import escape_line, escape_lines, shorten_time
from pytest_ctxfp._model import ResultKind, Table
from pytest_ctxfp._table_text import render_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ctxfp._model import GoldenCase, JSONValue
    from pytest_ctxfp._runner import Outcome

_LABEL_WIDTH = 11
_MAX_QUESTION = 500
_MAX_ANSWER_LINES = 12
_MAX_ANSWER_CHARACTERS = 2_000


def describe_failure(outcome: Outcome) -> str:
    """Return the whole text of a failed case; its first line, the reason, stands alone.

    Of several samples it is about the first that failed, and says how many did.

    Example::

        row 1, column n: expected 99, actual 98 (off by 1)

        question   How many orders are there?
        match      scalar, tolerance numeric 0.01
        expected   n
                   --
                   99
        actual     n
                   --
                   98
        samples    2 of 3 failed (min_pass_rate 0.8); this is sample 1 of 0 to 2
        answer     stored, recorded 2026-11-30 18:22:04 UTC under model opus; no call was made
        ask again  pytest 'golden.yaml::total_orders' --ctx-refresh
    """
    case = outcome.case
    failing = next((sample for sample in outcome.samples if not sample.comparison.passed), outcome)
    blocks = [
        _block("question", [escape_line(outcome.trace.question, limit=_MAX_QUESTION)]),
        _block("match", [_describe_match(case)]),
        *_describe_score(failing),
        _block("expected", _render_expected(failing.case)),
        _block("actual", _render_actual(failing)),
        *_describe_samples(outcome, failing),
        _block("answer", [_describe_origin(failing)]),
    ]
    if any(sample.hit for sample in outcome.samples):
        blocks.append(_block("ask again", [outcome.ask_again()]))
    return "\n".join([escape_line(failing.comparison.reason), "", *blocks])


def _block(label: str, lines: Iterable[str]) -> str:
    first, *rest = list(lines) or [""]
    return "\n".join([f"{label:<{_LABEL_WIDTH}}{first}", *(" " * _LABEL_WIDTH + line for line in rest)])


def _describe_match(case: GoldenCase) -> str:
    parts = [f"{case.match}, SQL {case.expected_sql}" if case.expected_sql else case.match]
    if case.result_kind is ResultKind.VERDICT:
        parts = [f"verdict, field {case.verdict_field}"]
    parts += [f"tolerance {name} {json.dumps(value)}" for name, value in case.tolerance.items()]
    if case.ignore_case:
        parts.append("ignoring case")
    if case.min_score is not None:
        parts.append(f"min_score {case.min_score:g}")
    if case.extra_columns:
        parts.append("extra columns allowed")
    return escape_line(", ".join(parts))


def _describe_score(outcome: Outcome) -> list[str]:
    """Return what a scorer gave: ``0.5 of 1, stored: no call was made``."""
    score = outcome.comparison.score
    if score is None:
        return []
    origin = ""
    if outcome.judgement is not None:
        origin = "; stored, the scorer was not called" if outcome.judgement.hit else "; the scorer was called"
    return [_block("score", [f"{score:.4g} of 1{origin}"])]


def _describe_samples(outcome: Outcome, failing: Outcome) -> list[str]:
    """Return how many of several samples failed, and which one is shown."""
    n, least = len(outcome.samples), outcome.case.min_pass_rate
    if n == 1:
        return []
    n_failed = sum(not sample.comparison.passed for sample in outcome.samples)
    rule = "" if least is None else f" (min_pass_rate {least!r})"
    shown = f"; this is sample {failing.key.sample} of 0 to {n - 1}"
    return [_block("samples", [f"{n_failed} of {n} failed{rule}{shown}"])]


def _render_expected(case: GoldenCase) -> list[str]:
    if isinstance(case.expected, Table):
        return render_table(case.expected.to_dict())
    return _render_value(case.expected)


def _render_actual(outcome: Outcome) -> list[str]:
    answer = outcome.answer
    if (
        (outcome.trace.status == "ok" or outcome.executed is not None)
        and outcome.case.result_kind is ResultKind.TABLE
        and isinstance(answer, dict)
    ):
        return render_table(answer)
    return _render_value(answer)


def _render_value(value: JSONValue) -> list[str]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    lines = escape_lines(text[:_MAX_ANSWER_CHARACTERS]).split("\n")
    shown = lines[:_MAX_ANSWER_LINES]
    if len(lines) > len(shown) or len(text) > _MAX_ANSWER_CHARACTERS:
        shown.append(f"... cut, {len(text)} characters in all")
    return shown


def _describe_origin(outcome: Outcome) -> str:
    trace = outcome.trace
    if not outcome.hit:
        return escape_line(f"asked in this run under model {trace.model}")
    recorded = shorten_time(trace.recorded_at) if trace.recorded_at else "at an unknown time"
    served = f" (served by {trace.served_model})" if trace.served_model else ""
    ran = "its SQL was run again" if outcome.executed is not None else "no call was made"
    origin = f"stored, recorded {recorded} under model {trace.model}{served}; {ran}"
    if not outcome.rescored:
        return escape_line(origin)
    then = {True: "passed", False: "failed", None: "unknown"}[trace.passed_then]
    return escape_line(f"{origin}; re-scored: {then} -> failed")
