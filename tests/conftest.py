"""What all tests share."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from pytest_ctxfp.plugin.reports import escape_serialized

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from contextlib import AbstractContextManager

hypothesis.settings.register_profile("unhurried", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("unhurried")


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, object, object]:
    """Let tests of lone surrogates log them when this suite itself runs on workers."""
    return escape_serialized((yield))


@dataclass
class ChatServer:
    """What the server is to answer, and what it was asked."""

    answers: list[Any]
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    n_now: int = 0
    n_most: int = 0
    seconds: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def _serve_chat(*answers: Any, seconds: float = 0.0) -> Iterator[ChatServer]:
    """Serve answers in order, the last one again and again: a body, or a status with headers and a body."""
    server = ChatServer(list(answers), seconds=seconds)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            with server.lock:
                server.n_now += 1
                server.n_most = max(server.n_most, server.n_now)
                server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                server.keys.append(self.headers["Authorization"])
                answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
            time.sleep(server.seconds)
            with server.lock:
                server.n_now -= 1
            status, headers, body = answer if isinstance(answer, tuple) else (200, {}, answer)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


@pytest.fixture
def serve_chat() -> Callable[..., AbstractContextManager[ChatServer]]:
    """A real server of chat completions on loopback: what it is to answer in, what it was asked out."""
    return _serve_chat
