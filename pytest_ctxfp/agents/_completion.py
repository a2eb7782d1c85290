"""A chat completion's JSON, as an answer with what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_ctxfp._errors import AgentError
from pytest_ctxfp._model import AgentResult

if TYPE_CHECKING:
    from collections.abc import Mapping

_CUT_OFF = "the answer was cut off at the greatest number of tokens: raise max_tokens in parameters"
_FILTERED = "the provider's content filter withheld the answer"
_UNFINISHED = {
    "length": _CUT_OFF,
    "max_tokens": _CUT_OFF,  # servers that translate another API to this one leave its words
    "model_length": _CUT_OFF,
    "content_filter": _FILTERED,
    "safety": _FILTERED,
    "error": "the provider broke off with an error",
    "tool_calls": "the model asked for a tool, and this agent runs none",
    "function_call": "the model asked for a function, and this agent runs none",
}
_PER = 1_000_000
_MOST_TOKENS = 2**53


class NoCompletionError(ValueError):
    """JSON of another form."""


def read_completion(data: Any, prices: Mapping[str, float] | None) -> AgentResult:
    """Return the answer of the first choice.

    Args:
        data: the response's body.
        prices: USD per million tokens by ``input``, ``output`` and ``cached_input``.

    Raises:
        AgentError: the answer is cut off, filtered, or a wish for a tool.
        NoCompletionError: this is no chat completion.
    """
    choices = data.get("choices") if isinstance(data, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        problem = "it has no choices with a message"
        raise NoCompletionError(problem)
    unfinished = _UNFINISHED.get(str(choice.get("finish_reason")).lower())
    if unfinished is not None:
        raise AgentError(unfinished)
    text = _text_of(message)
    if text is None:
        problem = "its message has no content"
        raise NoCompletionError(problem)
    tokens = _tokens_of(data.get("usage"))
    served = data.get("model")
    return AgentResult(
        text,
        cost=_cost_of(tokens, prices),
        turns=1,
        tokens=tokens or None,
        served_model=served if isinstance(served, str) else None,
    )


def _text_of(message: Mapping[str, Any]) -> str | None:
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    if isinstance(content, str) and content:
        return content
    refusal = message.get("refusal")
    return refusal if isinstance(refusal, str) and refusal else None


def _tokens_of(usage: Any) -> dict[str, int]:
    if not isinstance(usage, dict):
        return {}
    details = usage.get("prompt_tokens_details")
    counts = {
        "input": usage.get("prompt_tokens"),
        "output": usage.get("completion_tokens"),
        "cached_input": details.get("cached_tokens") if isinstance(details, dict) else None,
    }
    return {name: n for name, n in counts.items() if type(n) is int and 0 <= n < _MOST_TOKENS}


def _cost_of(tokens: Mapping[str, int], prices: Mapping[str, float] | None) -> float | None:
    """Return USD, or None where a count or a price is missing: absent is not zero."""
    if prices is None or not {"input", "output"} <= tokens.keys() or not {"input", "output"} <= prices.keys():
        return None
    cached = min(tokens.get("cached_input", 0), tokens["input"]) if "cached_input" in prices else 0
    total = (
        (tokens["input"] - cached) * prices["input"]
        + cached * prices.get("cached_input", 0.0)
        + tokens["output"] * prices["output"]
    )
    return total / _PER
