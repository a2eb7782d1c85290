"""One attempt: a request sent by httpx, and what came back, within its time and a limit of length."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_ctxfp._errors import AgentError, CtxfpError, describe_error

if TYPE_CHECKING:
    from types import ModuleType

    import httpx

MAX_BODY = 32 * 2**20
"""Bytes that a response may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is sent; the headers hold the API key, and httpx's own type doesn't show it.

    Args:
        url: where to.
        content: JSON.
        headers: of the whole request.
        seconds: that an attempt may take.
    """

    url: str
    content: bytes = field(repr=False)
    headers: httpx.Headers
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back.

    Args:
        status: HTTP's; None where there was no whole response.
        failure: why there was none.
        retry_after: the header of this name.
        body: as it came.
    """

    status: int | None = None
    failure: str = field(default="", repr=False)
    retry_after: str | None = None
    body: bytes = field(default=b"", repr=False)


def import_httpx() -> ModuleType:
    """Return httpx; raises CtxfpError where it isn't installed."""
    try:
        import httpx
    except ImportError:
        message = "ChatAgent needs httpx: pip install 'pytest-ctxfp[http]'"
        raise CtxfpError(message) from None
    return httpx


def post(client: httpx.Client, request: Request) -> Reply:
    """Send a request and read the response; raises AgentError where it is too long to be an answer."""
    httpx = import_httpx()
    body = _Body(request.seconds)
    try:
        with client.stream("POST", request.url, content=request.content, headers=request.headers) as response:
            for chunk in response.iter_bytes():
                body.add(chunk)
            return body.to_reply(response)
    except (httpx.TransportError, httpx.DecodingError, IncompleteRead) as error:
        return Reply(failure=describe_error(error))


async def post_in_loop(client: httpx.AsyncClient, request: Request) -> Reply:
    """Do what `post` does, in an event loop."""
    httpx = import_httpx()
    body = _Body(request.seconds)
    try:
        async with client.stream(
            "POST", request.url, content=request.content, headers=request.headers
        ) as response:
            async for chunk in response.aiter_bytes():
                body.add(chunk)
            return body.to_reply(response)
    except (httpx.TransportError, httpx.DecodingError, IncompleteRead) as error:
        return Reply(failure=describe_error(error))


class IncompleteRead(Exception):
    """The rest of a response is not waited for."""


class _Body:
    """The response as it comes: httpx limits the time for a piece of it, not for the whole."""

    def __init__(self, seconds: float) -> None:
        self._data = bytearray()
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def add(self, chunk: bytes) -> None:
        self._data += chunk
        if time.monotonic() > self._end:
            message = f"the response was not whole after {self._seconds:g} s"
            raise IncompleteRead(message)
        if len(self._data) > MAX_BODY:
            message = f"the endpoint's response has more than {MAX_BODY:,} bytes"
            raise AgentError(message)

    def to_reply(self, response: httpx.Response) -> Reply:
        retry_after = response.headers.get("Retry-After")
        return Reply(status=response.status_code, retry_after=retry_after, body=bytes(self._data))
