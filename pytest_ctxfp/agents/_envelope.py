"""What a command printed: the JSON envelope that agents on the command line share, or plain text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_ctxfp._errors import AgentError
from pytest_ctxfp._model import AgentResult

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIGURES = frozenset({"total_cost_usd", "duration_ms", "num_turns"})


def read_output(text: str) -> AgentResult:
    """Return what a command printed on its standard output.

    An envelope is a JSON object with ``result`` and any of ``total_cost_usd``, ``duration_ms`` and
    ``num_turns``, alone or as the last item of a list of messages (Claude Code's ``--output-format json``).
    Any other text is the answer itself, also where it is JSON.

    Raises:
        AgentError: nothing was printed, or the envelope says that it holds an error.
    """
    if not text.strip():
        message = "the command printed nothing: print the answer to standard output"
        raise AgentError(message)
    envelope = _find_envelope(text)
    if envelope is None:
        return AgentResult(text)
    if envelope.get("is_error"):
        message = f"the command's envelope says is_error: {envelope['result']!r:.500}"
        raise AgentError(message)
    return AgentResult(
        envelope["result"],
        cost=envelope.get("total_cost_usd"),
        turns=envelope.get("num_turns"),
        latency_ms=envelope.get("duration_ms"),
    )


def _find_envelope(text: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list) and value:
        value = value[-1]
    if isinstance(value, dict) and "result" in value and not _FIGURES.isdisjoint(value):
        return value
    return None
