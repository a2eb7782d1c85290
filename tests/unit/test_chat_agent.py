"""An agent behind an HTTP endpoint, against a real server on loopback."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest

from pytest_ctxfp import AgentError, CtxfpError
from pytest_ctxfp.agents import AsyncChatAgent, ChatAgent
from pytest_ctxfp.agents._retries import Retries, seconds_of

SECRET = "sk-test-abcdefghijklmnopqrstuvwxyz"


def completion(text: str | None = "42", **changes: Any) -> dict[str, Any]:
    """Return a chat completion."""
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 10}
    return {"model": "served-1", "choices": [choice], "usage": usage, **changes}


@pytest.fixture(autouse=True)
def api_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a key, and let no back-off take seconds."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setattr("pytest_ctxfp.agents._retries._FIRST_WAIT", 0.001)


def ask(agent: ChatAgent, question: str = "how many?", context: object = "## A\n") -> Any:
    """Ask an agent of either kind."""
    result = agent(question, context)
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


both = pytest.mark.parametrize("kind", [ChatAgent, AsyncChatAgent])


@both
def test_answer_with_tokens_and_cost(kind: type[ChatAgent], serve_chat: Any) -> None:
    """An answer says which model served it, what it took, and what it cost at the user's prices."""
    with serve_chat(completion()) as server:
        agent = kind(server.url, "m", parameters={"temperature": 0}, prices={"input": 2, "output": 10})
        result = ask(agent)
    assert (result.value, result.served_model, result.turns) == ("42", "served-1", 1)
    assert result.tokens == {"input": 1000, "output": 10}
    assert result.cost == pytest.approx(0.0021)
    assert server.asked == [
        {
            "messages": [{"role": "system", "content": "## A\n"}, {"role": "user", "content": "how many?"}],
            "temperature": 0,
            "model": "m",
        }
    ]
    assert server.keys == [f"Bearer {SECRET}"]


def test_contexts_that_are_requests_are_sent_as_they_are(serve_chat: Any) -> None:
    """Messages and request bodies are the assembler's own; the agent adds its model and parameters."""
    messages = [{"role": "user", "content": "hello"}]
    with serve_chat(completion()) as server:
        agent = ChatAgent(server.url, "m")
        ask(agent, "q", messages)
        ask(agent, "q", {"messages": messages, "seed": 1})
        ask(agent, "q", None)
        with pytest.raises(AgentError, match="no 'messages'"):
            ask(agent, "q", {"input": "x"})
        with pytest.raises(AgentError, match="type int can't be sent"):
            ask(agent, "q", 5)
    bodies = [{"messages": messages}, {"messages": messages, "seed": 1}]
    bodies.append({"messages": [{"role": "user", "content": "q"}]})
    assert server.asked == [{**body, "model": "m"} for body in bodies]


@pytest.mark.parametrize(
    ("usage", "prices", "cost"),
    [
        (None, {"input": 1, "output": 1}, None),
        ({"prompt_tokens": 10}, {"input": 1, "output": 1}, None),
        ({"prompt_tokens": 10, "completion_tokens": 10}, None, None),
        ({"prompt_tokens": 10, "completion_tokens": 10}, {"input": 1}, None),
        ({"prompt_tokens": True, "completion_tokens": 10}, {"input": 1, "output": 1}, None),
        ({"prompt_tokens": 10**6, "completion_tokens": 0}, {"input": 3, "output": 1}, 3.0),
        ({"prompt_tokens": 10**400, "completion_tokens": 0}, {"input": 0.5, "output": 1}, None),
        (
            {
                "prompt_tokens": 10**6,
                "completion_tokens": 0,
                "prompt_tokens_details": {"cached_tokens": 10**9},
            },
            {"input": 2, "output": 4, "cached_input": 1},
            1.0,
        ),
        (
            {
                "prompt_tokens": 10**6,
                "completion_tokens": 10**6,
                "prompt_tokens_details": {"cached_tokens": 500_000},
            },
            {"input": 2, "output": 4, "cached_input": 1},
            5.5,
        ),
    ],
)
def test_cost_is_known_or_absent(
    usage: object, prices: dict[str, float] | None, cost: float | None, serve_chat: Any
) -> None:
    """Where counts or prices are missing the cost is unknown, never zero."""
    with serve_chat(completion(usage=usage)) as server:
        assert ask(ChatAgent(server.url, "m", prices=prices)).cost == cost


@both
@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_busy_servers_are_asked_again(kind: type[ChatAgent], status: int, serve_chat: Any) -> None:
    """A busy server is asked again until it answers."""
    with serve_chat((status, {}, b"busy"), (status, {"Retry-After": "0"}, b""), completion()) as server:
        assert ask(kind(server.url, "m")).value == "42"
    assert len(server.asked) == 3


@both
def test_retries_end(kind: type[ChatAgent], serve_chat: Any) -> None:
    """After its retries the call is an error with what the server said."""
    with (
        serve_chat((429, {}, b"slow down")) as server,
        pytest.raises(AgentError, match=r"429: slow down \(tried 3"),
    ):
        ask(kind(server.url, "m", retries=2))
    assert len(server.asked) == 3


@both
def test_wait_that_is_too_long_ends_the_call(kind: type[ChatAgent], serve_chat: Any) -> None:
    """A server that says to come back in an hour is not waited for."""
    with serve_chat((429, {"Retry-After": "3600"}, b"")) as server, pytest.raises(AgentError, match="3600 s"):
        ask(kind(server.url, "m"))
    assert len(server.asked) == 1


@both
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((400, {}, b"bad request"), "400: bad request"),
        ((302, {"Location": "http://127.0.0.1:9/"}, b""), "302: .an empty body"),
        (b"<html>", "gave no completion"),
        ({"choices": []}, "no choices with a message"),
        ([1], "no choices with a message"),
        (completion(None), "its message has no content"),
        (
            completion(choices=[{"message": {"content": "4"}, "finish_reason": "length"}]),
            "cut off at the greatest number of tokens",
        ),
        (completion(choices=[{"message": {}, "finish_reason": "content_filter"}]), "content filter"),
        (completion(choices=[{"message": {}, "finish_reason": "tool_calls"}]), "asked for a tool"),
        (completion(choices=[{"message": {"content": "4"}, "finish_reason": "MAX_TOKENS"}]), "cut off"),
        (completion(choices=[{"message": {"content": "4"}, "finish_reason": "error"}]), "broke off"),
        (b"[" * 200_000, "it is no JSON"),
        (b"\xff", "it is no JSON"),
    ],
)
def test_what_is_no_answer_is_an_error(
    kind: type[ChatAgent], answer: object, said: str, serve_chat: Any
) -> None:
    """What isn't a whole answer is an error, never a wrong answer, and is not asked for again."""
    with serve_chat(answer) as server, pytest.raises(AgentError, match=said):
        ask(kind(server.url, "m"))
    assert len(server.asked) == 1


def test_refusals_and_parts_are_answers(serve_chat: Any) -> None:
    """A refusal is what the model answered; content in parts is joined."""
    refusal = completion(choices=[{"message": {"content": None, "refusal": "I can't."}}])
    parts = completion(choices=[{"message": {"content": [{"text": "a"}, {"type": "x"}, {"text": "b"}]}}])
    with serve_chat(refusal, parts) as server:
        assert ask(ChatAgent(server.url, "m")).value == "I can't."
        assert ask(ChatAgent(server.url, "m")).value == "ab"


@both
def test_nobody_there(kind: type[ChatAgent]) -> None:
    """An endpoint that can't be reached is an error after the retries."""
    with pytest.raises(AgentError, match=r"gave no answer: ConnectError.*\(tried 2 times\)"):
        ask(kind("http://127.0.0.1:9/v1", "m", retries=1))


@both
def test_slow_server(kind: type[ChatAgent], serve_chat: Any) -> None:
    """An attempt that takes too long is tried again, then an error."""
    with serve_chat(completion(), seconds=0.5) as server, pytest.raises(AgentError, match="ReadTimeout"):
        ask(kind(server.url, "m", timeout=0.1, retries=0))


@both
def test_key_is_nowhere(kind: type[ChatAgent], serve_chat: Any) -> None:
    """A server that repeats the API key does not bring it into the error; nor is it in key or repr."""
    with serve_chat((401, {}, f"no such key: {SECRET}".encode())) as server:
        agent = kind(server.url, "m")
        with pytest.raises(AgentError) as caught:
            ask(agent)
    assert "no such key: [OPENAI_API_KEY]" in str(caught.value)
    assert SECRET not in f"{caught.value!r} {agent!r} {agent.key_parts()} {vars(agent)}"


@pytest.mark.parametrize("secret", ["sk-abc\ndef-secret", "sk-abc\u00e9-secret"])
@both
def test_key_that_no_header_can_hold(
    kind: type[ChatAgent], secret: str, monkeypatch: pytest.MonkeyPatch, serve_chat: Any
) -> None:
    """A key with a line break, as from a file, is told before anything is sent, and isn't shown."""
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    with (
        serve_chat(completion()) as server,
        pytest.raises(AgentError, match="OPENAI_API_KEY holds") as caught,
    ):
        ask(kind(server.url, "m"))
    assert "secret" not in str(caught.value)
    assert server.asked == []


def test_key_in_an_answer_and_in_escaped_errors(monkeypatch: pytest.MonkeyPatch, serve_chat: Any) -> None:
    """A key that the model repeats is not stored; one that is a plain word leaves answers as they are."""
    monkeypatch.setenv("OPENAI_API_KEY", "abc/def/ghi/jkl")
    with serve_chat(completion("key abc/def/ghi/jkl"), (403, {}, rb'"abc\/def\/ghi\/jkl"')) as server:
        assert ask(ChatAgent(server.url, "m")).value == "key [OPENAI_API_KEY]"
        with pytest.raises(AgentError, match=r'403: "\[OPENAI_API_KEY\]"'):
            ask(ChatAgent(server.url, "m"))
    monkeypatch.setenv("OPENAI_API_KEY", "ollama")
    with serve_chat(completion("use ollama")) as server:
        assert ask(ChatAgent(server.url, "m")).value == "use ollama"


@both
def test_redirects_are_not_followed(kind: type[ChatAgent], serve_chat: Any) -> None:
    """A redirect is an error: another host gets neither the request nor the API key."""
    with serve_chat(completion()) as other, serve_chat((307, {"Location": other.url}, b"")) as server:
        with pytest.raises(AgentError, match="answered 307"):
            ask(kind(server.url, "m"))
        assert (other.asked, other.keys) == ([], [])


@both
def test_response_that_drips_in(kind: type[ChatAgent]) -> None:
    """The timeout is an attempt's, however often a piece of the response comes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        with pytest.raises(AgentError, match=r"not whole after 0\.3 s"):
            ask(kind(url, "m", timeout=0.3, retries=0))
        thread.join()


def drip(listener: socket.socket) -> None:
    """Answer one request, a byte each 50 ms, until the other side has enough."""
    connection, _ = listener.accept()
    with connection:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n")
        for _ in range(100):
            try:
                connection.sendall(b" ")
            except OSError:
                return
            time.sleep(0.05)


@both
def test_response_has_a_limit(
    kind: type[ChatAgent], monkeypatch: pytest.MonkeyPatch, serve_chat: Any
) -> None:
    """A response too long for an answer is an error, and is not asked for again."""
    monkeypatch.setattr("pytest_ctxfp.agents._post.MAX_BODY", 1000)
    with serve_chat(b" " * 1001) as server, pytest.raises(AgentError, match="more than 1,000 bytes"):
        ask(kind(server.url, "m"))
    assert len(server.asked) == 1


@pytest.mark.parametrize("broken", [{"Content-Length": "1000"}, {"Content-Encoding": "gzip"}])
def test_broken_responses_are_asked_for_again(broken: dict[str, str], serve_chat: Any) -> None:
    """A response that breaks off, or can't be unpacked, is a lost one."""
    with serve_chat((200, broken, b"not gzip"), completion()) as server:
        assert ask(ChatAgent(server.url, "m")).value == "42"
    assert len(server.asked) == 2


def test_contexts_that_json_cannot_hold(serve_chat: Any) -> None:
    """What can't be sent is an error of the agent; objects of a client library are sent as their dump."""

    class Message:
        def model_dump(self) -> dict[str, str]:
            return {"role": "user", "content": "hello"}

    refused: list[object] = [[object()], {"messages": [], "stream": True}, {"messages": [float("nan")]}]
    with serve_chat(completion()) as server:
        agent = ChatAgent(server.url, "m")
        for context in refused:
            with pytest.raises(AgentError, match=r"context|request"):
                ask(agent, "q", context)
        assert server.asked == []
        ask(agent, "q", [Message()])
        ask(agent, "\ud800", None)
    assert [body["messages"][0]["content"] for body in server.asked] == ["hello", "\ud800"]


@both
def test_missing_key(kind: type[ChatAgent], monkeypatch: pytest.MonkeyPatch, serve_chat: Any) -> None:
    """Without the variable the call is an error before anything is sent; an agent may need none."""
    monkeypatch.delenv("OPENAI_API_KEY")
    with serve_chat(completion()) as server:
        with pytest.raises(AgentError, match="OPENAI_API_KEY holds no API key"):
            ask(kind(server.url, "m"))
        assert server.asked == []
        assert ask(kind(server.url, "m", api_key_env=None)).value == "42"
    assert server.keys == [None]


def test_building_does_nothing_and_says_what_the_key_holds() -> None:
    """An agent is inert when built; endpoint, model and parameters are its key, prices and limits are not."""
    agent = ChatAgent("http://nowhere.invalid/v1/", "m", parameters={"seed": 1}, prices={"input": 1})
    params = {"endpoint": "http://nowhere.invalid/v1", "chat_model": "m", "chat_form": 1}
    assert agent.key_parts() == {"params": {**params, "chat_parameters": {"seed": 1}}}
    limits: dict[str, Any] = {"timeout": 1, "retries": 0, "max_concurrency": 1, "api_key_env": "X"}
    other = ChatAgent("http://nowhere.invalid/v1", "m", **limits)
    assert other.key_parts() == {"params": params}


def test_httpx_waits_for_the_first_question() -> None:
    """Importing and building agents loads no HTTP client and no event loop."""
    code = (
        "import sys; from pytest_ctxfp.agents import ChatAgent, CommandAgent;"
        "ChatAgent('https://x', 'm').key_parts(); CommandAgent(['x']).key_parts();"
        "print(sorted({'httpx', 'asyncio', 'ssl', 'tempfile'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_httpx_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without httpx the first question says how to get it."""
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(CtxfpError, match=r"pip install 'pytest-ctxfp\[http\]'"):
        ask(ChatAgent("https://x", "m"))


@pytest.mark.parametrize(
    "arguments",
    [
        {"base_url": "api.openai.com"},
        {"base_url": "ftp://x"},
        {"base_url": "https://user:pw@x/v1"},
        {"base_url": "https://x/v1?key=1"},
        {"base_url": "https://x", "prices": {"inputs": 1}},
        {"base_url": "https://x:99999"},
        {"base_url": "https://x", "parameters": {"stop": {1}}},
        {"base_url": "https://x", "parameters": {"messages": []}},
        {"base_url": "https://x", "parameters": {"stream": True}},
        {"base_url": "https://x", "prices": {"input": -1}},
        {"base_url": "https://x", "prices": {"input": float("nan")}},
        {"base_url": "https://x", "model": ""},
        {"base_url": "https://x", "retries": -1},
        {"base_url": "https://x", "max_concurrency": 0},
        {"base_url": "https://x", "timeout": 0},
    ],
)
def test_bad_arguments(arguments: dict[str, Any]) -> None:
    """What can't be right, or would bring a credential into keys, is refused when the agent is built."""
    with pytest.raises(ValueError, match=r"base_url|price|JSON|parameters|model|retries|max_concur|timeout"):
        ChatAgent(**{"model": "m", **arguments})


def test_credentials_in_a_url_are_not_shown() -> None:
    """The error about them doesn't repeat them, also where the URL is wrong in another way."""
    for url in ("user:s3cret@host/v1", "https://user:s3cret@host/v1", "https://host/v1?key=s3cret"):
        with pytest.raises(ValueError, match="base_url holds credentials") as caught:
            ChatAgent(url, "m")
        assert "s3cret" not in str(caught.value)


def test_parameters_stay_as_they_were_built() -> None:
    """What a caller changes afterwards neither reaches the key nor the request."""
    stop: list[Any] = ["a"]
    agent = ChatAgent("https://x", "m", parameters={"stop": stop})
    before = agent.key_parts()
    stop.append("b")
    assert agent.key_parts() == before


def test_threads_are_limited(serve_chat: Any) -> None:
    """No more calls overlap than the agent allows."""
    with serve_chat(completion(), seconds=0.05) as server:
        agent = ChatAgent(server.url, "m", max_concurrency=2)
        threads = [threading.Thread(target=agent, args=("q", "c")) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (len(server.asked), server.n_most) == (6, 2)


def test_tasks_are_limited_in_every_loop(serve_chat: Any) -> None:
    """No more calls overlap in a loop than the agent allows, in a second loop too."""

    async def ask_all(agent: AsyncChatAgent) -> None:
        await asyncio.gather(*(agent("q", "c") for _ in range(6)))

    with serve_chat(completion(), seconds=0.05) as server:
        agent = AsyncChatAgent(server.url, "m", max_concurrency=2)
        asyncio.run(ask_all(agent))
        asyncio.run(ask_all(agent))
    assert (len(server.asked), server.n_most) == (12, 2)


NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
        (format_datetime(NOW - timedelta(seconds=90), usegmt=True), 0.0),
        ("soon", None),
        ("-1", None),
        ("", None),
        ("\u0661", None),
    ],
)
def test_retry_after(text: str, seconds: float | None) -> None:
    """A wait is given in seconds or as a date; what is neither says nothing."""
    assert seconds_of(text, NOW) == seconds


def test_back_off_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a word from the server each wait is longer than the one before could be."""
    monkeypatch.setattr("pytest_ctxfp.agents._retries._FIRST_WAIT", 1.0)
    retries = Retries(3)
    waits = [retries.next_wait("busy", None) for _ in range(3)]
    with pytest.raises(AgentError, match=r"busy \(tried 4 times\)"):
        retries.next_wait("busy", None)
    assert all(low <= wait <= 2 * low for wait, low in zip(waits, (0.5, 1, 2), strict=True))
