"""A server on the loopback that answers what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from aws_models import read_once
from loopback import Reply, certificates_read_once


@dataclass(frozen=True)
class Asked:
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    host: str


Answer = Callable[[Asked], Reply]


class Loopback(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked: list[Asked] = []
        self.first: list[Reply] = []  # answered before anything else, one per request

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Loopback

    def do_GET(self) -> None:
        self.reply(urlsplit(self.path).query)

    def do_POST(self) -> None:
        self.reply(self.rfile.read(int(self.headers["Content-Length"])).decode())

    def reply(self, form: str) -> None:
        query = {name: values[0] for name, values in parse_qs(form).items()}
        asked = Asked(urlsplit(self.path).path, query, dict(self.headers), self.server.url)
        self.server.asked.append(asked)
        reply = self.server.first.pop(0) if self.server.first else self.server.answer(asked)
        body = reply.body.encode()
        self.send_response(reply.status)
        self.send_header("Content-Length", str(len(body) + (100 if reply.cut else 0)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = reply.cut

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving(answer: Answer) -> Iterator[Loopback]:
    server = Loopback(answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@pytest.fixture(scope="session")
def serve() -> Callable[[Answer], AbstractContextManager[Loopback]]:
    """`with serve(answer) as server`: `answer` maps what was asked to a reply."""
    return serving


@pytest.fixture(scope="module", autouse=True)
def _read_once() -> Iterator[None]:
    with read_once(), certificates_read_once():
        yield
