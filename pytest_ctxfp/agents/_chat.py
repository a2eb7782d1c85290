"""Agents behind an HTTP endpoint of OpenAI's form, as most providers and local servers offer it."""

from __future__ import annotations

import json
import threading
import time
from functools import cache
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pytest_ctxfp._display import escape_line
from pytest_ctxfp._errors import AgentError
from pytest_ctxfp._hashing import canonical_json
from pytest_ctxfp.agents._api_key import ApiKey
from pytest_ctxfp.agents._body import build_body, encode_body
from pytest_ctxfp.agents._checks import check_count, check_price, check_seconds
from pytest_ctxfp.agents._completion import NoCompletionError, read_completion
from pytest_ctxfp.agents._post import Reply, Request, import_httpx, post, post_in_loop
from pytest_ctxfp.agents._retries import Retries

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Mapping
    from urllib.parse import SplitResult

    from pytest_ctxfp._model import AgentResult, JSONValue

_FORM = 1
"""Counts up when a context is sent in another form than before: its answers may be others."""

_MAX_SHOWN = 500
_PRICED = frozenset({"input", "output", "cached_input"})


class ChatAgent:
    """Asks ``POST <base_url>/chat/completions``; needs httpx (extra ``http``).

    A text context becomes the system message and the question the user's. A list of messages is sent as it
    is, a mapping with ``messages`` as the request's body: then the assembler has put the question in. Calls
    of one agent may overlap in threads, as many as ``max_concurrency``.

    Args:
        base_url: the endpoint without ``/chat/completions``: ``https://api.openai.com/v1``.
        model: the model's name.
        parameters: further fields of the request's body: ``{"temperature": 0}``. They are in the key.
        api_key_env: name of the environment variable that holds the API key, read at each call; None sends
            none.
        prices: USD per million tokens, by ``input``, ``output`` and, where it differs, ``cached_input``.
            Without them the cost is unknown.
        timeout: seconds for an attempt.
        retries: how often a call is tried again after a 408, 429 or 5xx, or where no answer came: with a
            back-off, or after what ``Retry-After`` says.
        max_concurrency: calls at the same time.

    Raises:
        ValueError: no URL, credentials in it, parameters that JSON can't hold, or a price of another name.
    """

    def __init__(  # noqa: PLR0913 - what an endpoint needs to be told
        self,
        base_url: str,
        model: str,
        *,
        parameters: Mapping[str, JSONValue] | None = None,
        api_key_env: str | None = "OPENAI_API_KEY",
        prices: Mapping[str, float] | None = None,
        timeout: float = 120.0,
        retries: int = 4,
        max_concurrency: int = 8,
    ) -> None:
        _check_url(base_url)
        _check_parameters(parameters or {})
        for name, price in (prices or {}).items():
            _check_price(name, price)
        if not isinstance(model, str) or not model:
            message = f"model is {model!r:.80}: write its name"
            raise ValueError(message)
        check_seconds("timeout", timeout)
        check_count("retries", retries, least=0)
        check_count("max_concurrency", max_concurrency, least=1)
        self._url = base_url.rstrip("/")
        self._model = model
        self._parameters = canonical_json(dict(parameters or {}))
        self._api_key_env = api_key_env
        self._prices = None if prices is None else dict(prices)
        self._timeout = timeout
        self._retries = retries
        self._max_concurrency = max_concurrency
        self._slots = threading.BoundedSemaphore(max_concurrency)
        self._async_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        """Return the endpoint and the model."""
        return f"{type(self).__name__}({self._url!r}, {self._model!r})"

    def key_parts(self) -> dict[str, object]:
        """Return what ``ctx_agent_key`` is to return: endpoint, model, parameters, form of messages."""
        params: dict[str, JSONValue] = {
            "endpoint": self._url,
            "chat_model": self._model,
            "chat_form": _FORM,
        }
        parameters = json.loads(self._parameters)
        if parameters:
            params["chat_parameters"] = parameters
        return {"params": params}

    def __call__(self, question: str, context: object) -> AgentResult:
        """Send the request and return the answer, with tokens, the model that served it, and its cost.

        Raises:
            AgentError: no API key, no answer after all retries, or one that is cut off, filtered or asks for
                a tool.
        """
        exchange = self._begin(question, context)
        with self._slots, import_httpx().Client(timeout=self._timeout, verify=_tls()) as client:
            while exchange.goes_on(reply := post(client, exchange.request)):
                time.sleep(exchange.next_wait(reply))
        return exchange.read(reply)

    def _begin(self, question: str, context: object) -> _Exchange:
        httpx = import_httpx()
        key = ApiKey(self._api_key_env)
        body = {**build_body(question, context), **json.loads(self._parameters), "model": self._model}
        request = Request(
            url=f"{self._url}/chat/completions",
            content=encode_body(body),
            headers=httpx.Headers({"Content-Type": "application/json", **key.to_headers()}),
            seconds=self._timeout,
        )
        return _Exchange(request, key, retries=Retries(self._retries), prices=self._prices)


class AsyncChatAgent(ChatAgent):
    """`ChatAgent` for event loops: of one agent's calls as many overlap in a loop as ``max_concurrency``."""

    async def __call__(self, question: str, context: object) -> AgentResult:  # type: ignore[override]
        """Send the request and return the answer; raises as `ChatAgent` does."""
        import asyncio

        exchange = self._begin(question, context)
        async with (
            self._slots_of_loop(),
            import_httpx().AsyncClient(timeout=self._timeout, verify=_tls()) as client,
        ):
            while exchange.goes_on(reply := await post_in_loop(client, exchange.request)):
                await asyncio.sleep(exchange.next_wait(reply))
        return exchange.read(reply)

    def _slots_of_loop(self) -> asyncio.Semaphore:
        import asyncio

        loop = asyncio.get_running_loop()
        if loop not in self._async_slots:
            self._async_slots[loop] = asyncio.Semaphore(self._max_concurrency)
        return self._async_slots[loop]


class _Exchange:
    """One question's request, and what is made of the replies to it."""

    def __init__(
        self, request: Request, key: ApiKey, *, retries: Retries, prices: Mapping[str, float] | None
    ) -> None:
        self.request = request
        self._key = key
        self._retries = retries
        self._prices = prices

    def goes_on(self, reply: Reply) -> bool:
        return self._retries.is_to_be_repeated(reply.status)

    def next_wait(self, reply: Reply) -> float:
        return self._retries.next_wait(self._refused(reply), reply.retry_after)

    def read(self, reply: Reply) -> AgentResult:
        if reply.status != 200:
            raise AgentError(self._refused(reply))
        try:
            text = self._key.hide_in_answer(reply.body.decode("utf-8-sig"))
            return read_completion(json.loads(text), self._prices)
        except (ValueError, RecursionError) as error:
            problem = error if isinstance(error, NoCompletionError) else "it is no JSON"
        message = f"{self.request.url} gave no completion: {problem}: {self._shown(reply)}"
        raise AgentError(message)

    def _refused(self, reply: Reply) -> str:
        if reply.status is None:
            return f"{self.request.url} gave no answer: {self._key.hide(reply.failure)}"
        return f"{self.request.url} answered {reply.status}: {self._shown(reply)}"

    def _shown(self, reply: Reply) -> str:
        text = self._key.hide(reply.body.decode("utf-8", "replace"))
        return escape_line(text.strip(), limit=_MAX_SHOWN) or "(an empty body)"


def _check_url(url: str) -> None:
    if "@" in url or "?" in url or "#" in url:
        message = (
            "base_url holds credentials or a query, which would be in keys: name the variable with the API"
            " key in api_key_env"
        )
        raise ValueError(message)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not _has_port(parts):
        message = f"base_url is {url!r:.200}: write a URL such as https://api.openai.com/v1"
        raise ValueError(message)


def _has_port(parts: SplitResult) -> bool:
    """Whether the port, if any, is one."""
    try:
        return parts.port != 0
    except ValueError:
        return False


def _check_parameters(parameters: Mapping[str, JSONValue]) -> None:
    taken = sorted({"messages", "model", "stream"} & set(parameters))
    if taken:
        message = f"parameters has {taken[0]!r}, which the agent sets itself: leave it out"
        raise ValueError(message)


def _check_price(name: str, price: float) -> None:
    if name not in _PRICED:
        message = f"unknown price {name!r}: give input, output and cached_input"
        raise ValueError(message)
    check_price(f"price {name!r}", price)


@cache
def _tls() -> ssl.SSLContext:
    """Return how servers are verified; reading all certificates takes longer than a short call."""
    return cast("ssl.SSLContext", import_httpx().create_ssl_context())
