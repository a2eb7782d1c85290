"""Agents behind an HTTP endpoint of OpenAI's form, as most providers and local servers offer it."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pytest_ctxfp._errors import AgentError, CtxfpError
from pytest_ctxfp._hashing import canonical_json
from pytest_ctxfp.agents._completion import read_completion
from pytest_ctxfp.agents._retries import Retries

if TYPE_CHECKING:
    import asyncio
    import ssl
    from types import ModuleType

    import httpx

    from pytest_ctxfp._model import AgentResult, JSONValue

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
        unknown = sorted(set(prices or ()) - _PRICED)
        if unknown:
            message = f"unknown price {unknown[0]!r}: give input, output and cached_input"
            raise ValueError(message)
        self._url = base_url.rstrip("/")
        self._model = model
        self._parameters = dict(parameters or {})
        self._parameters_text = canonical_json(self._parameters)
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
        """Return what ``ctx_agent_key`` is to return: the endpoint, the model and the parameters."""
        params: dict[str, JSONValue] = {"endpoint": self._url, "chat_model": self._model}
        if self._parameters:
            params["chat_parameters"] = dict(self._parameters)
        return {"params": params}

    def __call__(self, question: str, context: object) -> AgentResult:
        """Send the request and return the answer, with tokens, the model that served it, and its cost.

        Raises:
            AgentError: no API key, no answer after all retries, or one that is cut off, filtered or asks for
                a tool.
        """
        httpx = _import_httpx()
        body, headers = self._body(question, context), self._headers()
        retries = Retries(self._retries)
        with self._slots, httpx.Client(timeout=self._timeout, verify=_tls()) as client:
            while True:
                try:
                    response = client.post(f"{self._url}/chat/completions", json=body, headers=headers)
                except httpx.TransportError as error:
                    retries.wait_after_error(self._no_answer(error))
                    continue
                if not retries.is_to_be_repeated(response.status_code):
                    return self._read(response)
                retries.wait_after_status(self._refused(response), response.headers.get("Retry-After"))

    def _body(self, question: str, context: object) -> dict[str, object]:
        body: dict[str, object] = {}
        if isinstance(context, Mapping):
            if "messages" not in context:
                message = "a mapping is sent as the request's body, and this one has no 'messages'"
                raise AgentError(message)
            body |= context
        elif isinstance(context, Sequence) and not isinstance(context, (str, bytes)):
            body["messages"] = list(context)
        else:
            body["messages"] = _messages(question, context)
        return {**body, **self._parameters, "model": self._model}

    def _headers(self) -> dict[str, str]:
        key = self._api_key()
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def _api_key(self) -> str | None:
        if self._api_key_env is None:
            return None
        key = os.environ.get(self._api_key_env, "").strip()
        if not key:
            message = (
                f"the environment variable {self._api_key_env} holds no API key: set it, or build the agent"
                " with api_key_env=None where the endpoint needs none"
            )
            raise AgentError(message)
        return key

    def _read(self, response: httpx.Response) -> AgentResult:
        if response.status_code != 200:
            raise AgentError(self._refused(response))
        try:
            return read_completion(response.json(), self._prices)
        except ValueError as error:
            message = f"{self._url} gave no completion: {error}: {self._shown(response)}"
            raise AgentError(message) from None

    def _refused(self, response: httpx.Response) -> str:
        return f"{self._url} answered {response.status_code}: {self._shown(response)}"

    def _no_answer(self, error: Exception) -> str:
        return f"{self._url} gave no answer: {type(error).__name__}: {self._without_key(str(error))}"

    def _shown(self, response: httpx.Response) -> str:
        return self._without_key(response.text)[:_MAX_SHOWN] or "(an empty body)"

    def _without_key(self, text: str) -> str:
        """Hide the API key: servers repeat it where they refuse it."""
        key = self._api_key()
        return text if key is None else text.replace(key, f"[{self._api_key_env}]")


class AsyncChatAgent(ChatAgent):
    """`ChatAgent` for event loops: of one agent's calls as many overlap in a loop as ``max_concurrency``."""

    async def __call__(self, question: str, context: object) -> AgentResult:  # type: ignore[override]
        """Send the request and return the answer; raises as `ChatAgent` does."""
        httpx = _import_httpx()
        body, headers = self._body(question, context), self._headers()
        retries = Retries(self._retries)
        async with self._slots_of_loop(), httpx.AsyncClient(timeout=self._timeout, verify=_tls()) as client:
            while True:
                try:
                    response = await client.post(f"{self._url}/chat/completions", json=body, headers=headers)
                except httpx.TransportError as error:
                    await retries.sleep_after_error(self._no_answer(error))
                    continue
                if not retries.is_to_be_repeated(response.status_code):
                    return self._read(response)
                await retries.sleep_after_status(self._refused(response), response.headers.get("Retry-After"))

    def _slots_of_loop(self) -> asyncio.Semaphore:
        import asyncio

        loop = asyncio.get_running_loop()
        if loop not in self._async_slots:
            self._async_slots[loop] = asyncio.Semaphore(self._max_concurrency)
        return self._async_slots[loop]


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        message = f"base_url is {url!r:.200}: write a URL such as https://api.openai.com/v1"
        raise ValueError(message)
    if "@" in parts.netloc or parts.query or parts.fragment:
        message = (
            "base_url holds credentials or a query, which would be in keys: name the variable with the API"
            " key in api_key_env"
        )
        raise ValueError(message)


def _messages(question: str, context: object) -> list[dict[str, str]]:
    asked = [{"role": "user", "content": question}]
    if context is None:
        return asked
    if isinstance(context, bytes):
        context = context.decode("utf-8", "replace")
    if not isinstance(context, str):
        message = f"a context of type {type(context).__name__} can't be sent: assemble a text or messages"
        raise AgentError(message)
    return [{"role": "system", "content": context}, *asked]


@cache
def _tls() -> ssl.SSLContext:
    """Return how servers are verified; reading all certificates takes longer than a short call."""
    return cast("ssl.SSLContext", _import_httpx().create_ssl_context())


def _import_httpx() -> ModuleType:
    try:
        import httpx
    except ImportError:
        message = "ChatAgent needs httpx: pip install 'pytest-ctxfp[http]'"
        raise CtxfpError(message) from None
    return httpx
