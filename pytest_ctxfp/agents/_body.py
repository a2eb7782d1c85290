"""The body of a chat request, from a question and a context."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_ctxfp._errors import AgentError, first_line
from pytest_ctxfp._messages import dump_request

if TYPE_CHECKING:
    from collections.abc import Mapping


def build_body(question: str, context: object) -> dict[str, object]:
    """Return the body that an assembler's context makes, without model and parameters.

    A text becomes the system message and the question the user's. Messages, and a mapping with
    ``messages``, are sent as they are, in the form in which they are fingerprinted: then the assembler has
    put the question in.

    Raises:
        AgentError: a context of another form, or one that asks for a stream.
    """
    asked = {"role": "user", "content": question}
    if context is None:
        return {"messages": [asked]}
    if isinstance(context, bytes):
        context = context.decode("utf-8", "replace")
    if isinstance(context, str):
        return {"messages": [{"role": "system", "content": context}, asked]}
    request = _dump(context)
    if isinstance(request, list):
        return {"messages": request}
    if isinstance(request, dict):
        return _check_body(request)
    message = f"a context of type {type(context).__name__} can't be sent: assemble a text or messages"
    raise AgentError(message)


def encode_body(body: Mapping[str, object]) -> bytes:
    """Return a body as JSON in ASCII, so that a lone surrogate is the server's to refuse.

    Raises:
        AgentError: JSON can't hold it.
    """
    try:
        return json.dumps(body, allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        message = f"the request can't be written as JSON: {first_line(error)}"
        raise AgentError(message) from None


def _dump(context: object) -> object:
    try:
        return dump_request(context)
    except ValueError as error:
        message = f"the context can't be sent: {first_line(error)}"
        raise AgentError(message) from None


def _check_body(body: dict[str, object]) -> dict[str, object]:
    if "messages" not in body:
        message = "a mapping is sent as the request's body, and this one has no 'messages'"
        raise AgentError(message)
    if body.get("stream"):
        message = "the context asks for a stream, and this agent reads whole answers: leave 'stream' out"
        raise AgentError(message)
    return body
