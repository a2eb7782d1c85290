"""An agent's answer as a trace: the answer must be storable, what else it says is kept where it can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_ctxfp._answer import take_answer, to_json_value
from pytest_ctxfp._errors import AgentError, first_line
from pytest_ctxfp._misses import record_context
from pytest_ctxfp._model import AgentResult
from pytest_ctxfp._suite import expectation_sha
from pytest_ctxfp._trace import FIGURE_LIMIT, Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ctxfp._key import CaseKey
    from pytest_ctxfp._model import GoldenCase
    from pytest_ctxfp._split import Splitter
    from pytest_ctxfp._tokens import TokenCounter

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recording:
    """A trace without a verdict, and what of the agent's own figures could not be recorded."""

    trace: Trace
    notes: tuple[str, ...]


class AnswerRecorder:
    """Made before the call: an agent may change the context it is given.

    Args:
        case: what is asked.
        key: what the answer will be stored under.
        context: what the assembler built, or None.
        recorded_by: written into the trace.
        split: returns the layers of a context; None picks by type.
        counter: counts the tokens of the context's layers, where they are to be recorded.
    """

    def __init__(
        self,
        case: GoldenCase,
        key: CaseKey,
        *,
        context: object,
        recorded_by: str,
        split: Splitter | None = None,
        counter: TokenCounter | None = None,
    ) -> None:
        self._case = case
        self._key = key
        self._context = None if context is None else record_context(context, split=split, counter=counter)
        self._split = split
        self._recorded_by = recorded_by

    def record(
        self, returned: object, elapsed_ms: int, *, prepare: Callable[[CaseKey, Trace], Trace]
    ) -> Recording:
        """Return the answer as a later load gives it, so that a miss is scored as a hit will be.

        Raises:
            AgentError: the agent returned nothing, or an answer that JSON can't hold.
        """
        result = returned if isinstance(returned, AgentResult) else AgentResult(returned)
        answer = take_answer(result, self._case.result_kind, verdict_field=self._case.verdict_field)
        figures, notes = read_figures(result, split=self._split)
        known_context = self._context or figures.pop("context", None)
        trace = Trace(
            case_id=self._key.case_id,
            agent_sha=self._key.agent_sha,
            model=self._key.model,
            context_sha=self._key.context_sha,
            question=self._key.question,
            result=answer.value,
            latency_ms=elapsed_ms,
            raw=answer.raw,
            status=answer.status,
            recorded_at=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            recorded_by=self._recorded_by,
            expectation_sha=expectation_sha(self._case),
        )
        trace = replace(trace, **{**figures, "context": known_context})
        try:
            return Recording(prepare(self._key, trace), notes)
        except ValueError as error:
            message = f"the agent's answer can't be recorded: {error}"
            raise AgentError(message) from error


def read_figures(
    result: AgentResult, *, split: Splitter | None = None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what an agent says besides the answer, as fields of a trace, and notes on what was left out."""
    figures = _Figures(result)
    fields = {
        "sql_executed": figures.read("sql", _read_text),
        "cost": figures.read("cost", _read_amount),
        "latency_ms": figures.read("latency_ms", _read_count),
        "turns": figures.read("turns", _read_count),
        "tool_calls": figures.read("tool_calls", to_json_value),
        "served_model": figures.read("served_model", _read_text),
        "context": figures.read("context", lambda context: record_context(context, split=split)),
        "tokens": figures.read("tokens", _read_counts),
    }
    return {name: value for name, value in fields.items() if value is not None}, tuple(figures.notes)


def record_call(
    returned: object,
    elapsed_ms: int,
    *,
    key: CaseKey,
    recorded_by: str,
    prepare: Callable[[CaseKey, Trace], Trace],
) -> Recording:
    """Return what a test's own call gave, as a later load gives it; None is an answer too.

    Raises:
        AgentError: something that JSON can't hold.
    """
    result = returned if isinstance(returned, AgentResult) else AgentResult(returned)
    figures, notes = read_figures(result)
    trace = Trace(
        case_id=key.case_id,
        agent_sha=key.agent_sha,
        model=key.model,
        context_sha=key.context_sha,
        question=key.question,
        result=to_json_value(result.value),
        latency_ms=elapsed_ms,
        recorded_at=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        recorded_by=recorded_by,
    )
    try:
        return Recording(prepare(key, replace(trace, **figures)), notes)
    except ValueError as error:
        message = f"what the call {key.case_id!r} returned can't be recorded: {error}"
        raise AgentError(message) from error


class _Figures:
    """What an agent says besides the answer. A figure that can't be read is left out, and that is noted."""

    def __init__(self, result: AgentResult) -> None:
        self._result = result
        self.notes: list[str] = []

    def read(self, name: str, convert: Callable[[object], T]) -> T | None:
        value = getattr(self._result, name)
        if value is None:
            return None
        try:
            return convert(value)
        except (AgentError, TypeError, ValueError, OverflowError) as error:
            self.notes.append(f"AgentResult.{name} was not recorded: {first_line(error)}")
            return None


def _read_count(value: object) -> int:
    return round(_read_amount(value))


def _read_amount(value: object) -> float:
    """Return a number >= 0, also of a Decimal or a numpy scalar; never one of a text or a bool."""
    if isinstance(value, (bool, str, bytes)):
        message = f"{value!r} is no number"
        raise TypeError(message)
    number = float(value)  # type: ignore[arg-type] # raises TypeError for what is none
    if not 0 <= number < FIGURE_LIMIT:
        message = f"{value!r} is no number >= 0, or beyond all measure"
        raise ValueError(message)
    return number


def _read_counts(value: object) -> dict[str, int]:
    if not isinstance(value, Mapping):
        message = f"{type(value).__name__} is no mapping of names to counts"
        raise TypeError(message)
    return {_read_text(name): _read_count(count) for name, count in value.items()}


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        message = f"{type(value).__name__} is no text"
        raise TypeError(message)
    return value
