"""What an agent returned, as text and JSON that can be stored."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pytest_ctxfp._errors import AgentError, describe_error
from pytest_ctxfp._extract import extract_result, has_shape, read_verdict_field
from pytest_ctxfp._frames import read_frame
from pytest_ctxfp._json_answer import find_json
from pytest_ctxfp._model import AgentResult, ResultKind
from pytest_ctxfp._values import to_json_value

if TYPE_CHECKING:
    from pytest_ctxfp._model import JSONValue

__all__ = ["Answer", "re_extract", "take_answer", "to_json_value"]

_RETURNABLE = (
    "return text, a mapping with 'columns' and 'rows', another JSON value, a DataFrame (pandas, polars, "
    "pyarrow), a DB-API cursor or an AgentResult with one of these"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it is stored and scored.

    Args:
        raw: what the agent returned, as text; JSON where it returned something else.
        value: the answer after its JSON round trip, or None where there is none.
        status: ``unparseable`` where ``raw`` holds no answer of the wanted kind.
    """

    raw: str
    value: JSONValue
    status: Literal["ok", "unparseable"]


def take_answer(returned: object, kind: ResultKind | str, *, verdict_field: str | None = None) -> Answer:
    """Turn what an agent returned into what is stored and scored.

    Text and UTF-8 bytes are searched for an answer; anything else becomes JSON and, if it is not of
    the wanted shape itself, is searched as that JSON text. So the answer found now is the one that a
    better extractor starts from later.

    Args:
        returned: the agent's return value, or an ``AgentResult`` around it.
        kind: what the case asks for.
        verdict_field: the field that the case reads of a verdict. An envelope without it is then
            ``unparseable``, which is replayed; as ``ok`` it would be paid for again in every run.

    Raises:
        AgentError: nothing was returned, or something that JSON can't hold.
        ValueError: an unknown kind.
    """
    if isinstance(returned, AgentResult):
        returned = returned.value
    if returned is None:
        message = f"the agent returned nothing: {_RETURNABLE}"
        raise AgentError(message)
    kind = ResultKind(kind)
    value = _round_trip(_read_answer(returned))
    if isinstance(value, str):
        return re_extract(value, kind, verdict_field=verdict_field)
    raw = json.dumps(value, ensure_ascii=False)
    if has_shape(value, kind):
        return _check_field(Answer(raw, value, "ok"), kind, verdict_field)
    return re_extract(raw, kind, verdict_field=verdict_field)


def re_extract(raw: str | None, kind: ResultKind | str, *, verdict_field: str | None = None) -> Answer:
    """Look for the answer in a stored text again, by today's rules.

    Args:
        raw: the text of a trace; None where the trace has none.
        kind: what the case asks for.
        verdict_field: as in ``take_answer``.

    Raises:
        ValueError: an unknown kind.
    """
    if raw is None:
        return Answer("", None, "unparseable")
    kind = ResultKind(kind)
    if kind is ResultKind.JSON:
        found = find_json(raw)  # null is an answer too
        return Answer(raw, None, "unparseable") if found is None else Answer(raw, found.value, "ok")
    value = extract_result(raw, kind)
    status: Literal["ok", "unparseable"] = "unparseable" if value is None else "ok"
    return _check_field(Answer(raw, value, status), kind, verdict_field)


def _check_field(answer: Answer, kind: ResultKind, verdict_field: str | None) -> Answer:
    if kind is not ResultKind.VERDICT or verdict_field is None:
        return answer
    if read_verdict_field(answer.value, verdict_field) is not None:
        return answer
    return Answer(answer.raw, None, "unparseable")


def _round_trip(value: JSONValue) -> JSONValue:
    """Return what a stored value is loaded as: a pair of surrogates comes back as one character."""
    loaded: JSONValue = json.loads(json.dumps(value))
    return loaded


def _read_answer(returned: object) -> JSONValue:
    try:
        table = read_frame(returned)
        return _convert_answer(returned if table is None else table)
    except AgentError:
        raise
    except Exception as error:  # proxies, lazy objects and released buffers raise what they like
        message = f"the agent's answer can't be read: {describe_error(error)}"
        raise AgentError(message) from error


def _convert_answer(value: object) -> JSONValue:
    try:
        return to_json_value(value)
    except AgentError as error:
        also = "as the whole answer also a DataFrame, a DB-API cursor or an AgentResult"
        message = f"the agent's answer can't be stored: {error} ({also})"
        raise AgentError(message) from error
