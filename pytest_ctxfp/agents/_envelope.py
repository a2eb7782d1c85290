"""What a command printed: the JSON envelope that agents on the command line share, or plain text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_ctxfp._model import AgentResult

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIGURES = frozenset({"total_cost_usd", "duration_ms", "num_turns", "is_error"})


def read_output(text: str) -> AgentResult:
    """Return what a command printed on its standard output.

    An envelope is a JSON object with ``result`` and any of ``total_cost_usd``, ``duration_ms``,
    ``num_turns`` and ``is_error``, alone or as the last item of a list of messages (Claude Code's
    ``--output-format json``). It has no ``result`` where the agent gave up, and then ``type`` tells what it
    is. Any other text is the answer itself, also where it is JSON.

    Raises:
        ValueError: nothing was printed, or the envelope holds an error or no answer.
    """
    if not text.strip():
        message = "it printed nothing: print the answer to standard output"
        raise ValueError(message)
    envelope = _find_envelope(text)
    if envelope is None:
        return AgentResult(text)
    _check_envelope(envelope)
    return AgentResult(
        envelope["result"],
        cost=envelope.get("total_cost_usd"),
        turns=envelope.get("num_turns"),
        latency_ms=envelope.get("duration_ms"),
    )


def _find_envelope(text: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list) and value:
        value = value[-1]
    if not isinstance(value, dict) or _FIGURES.isdisjoint(value):
        return None
    return value if "result" in value or value.get("type") == "result" else None


def _check_envelope(envelope: Mapping[str, Any]) -> None:
    result, kind = envelope.get("result"), envelope.get("subtype")
    if envelope.get("is_error") or str(kind).startswith("error"):
        told = [repr(value) for value in (kind, result, envelope.get("errors")) if value]
        message = f"its envelope says that it failed: {', '.join(told) or 'is_error'}"
        raise ValueError(message)
    if result is None or result == "":
        message = "its envelope holds no result"
        raise ValueError(message)
