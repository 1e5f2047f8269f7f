"""A server that speaks like a model server and costs next to nothing: answers of a fixed number of tokens at a fixed pace.

python tests/support/token_server.py [--tokens 100] [--interval 0.01] [--prefill 0]      prints its port

It is a stand-in: tokens are the word "tok". `Faults` makes it misbehave for tests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, cast

from chipwise.adapters.http.loops import run

EVENT_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


@dataclass(slots=True)
class Faults:
    """What goes wrong with the next answers; None or 0: nothing."""

    refuse_status: int = 0  # this status instead of an answer
    close_before_answer: bool = False
    cut_after_events: int | None = None
    bad_bytes: bool = False
    hangs: bool = False
    ends_by_closing: bool = False


@dataclass(slots=True)
class Seen:
    requests: list[bytes] = field(default_factory=list)  # heads
    bodies: list[bytes] = field(default_factory=list)
    gone: int = 0  # clients that left before their answer was complete
    keeps: bool = False  # heads and bodies are kept only where a test reads them


def _chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


def _event(document: object) -> bytes:
    return _chunk(b"data: " + json.dumps(document, separators=(",", ":")).encode() + b"\n\n")


def _whole(document: object) -> bytes:
    body = json.dumps(document).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


ROLE = _event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})
FINISH = _event({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})


class TokenServer:
    def __init__(self, tokens: int = 5, interval_s: float = 0.0, prefill_s: float = 0.0, name: str = "tiny") -> None:
        self.tokens = tokens
        self.interval_s = interval_s
        self.prefill_s = prefill_s
        self.name = name
        self.is_controllable = False  # by POST /faults
        self.first_pace = (interval_s, prefill_s)
        self.asked = 0
        self.answered = 0  # requests whose answer was begun
        self.stamps = False  # events carry the instant at which they were sent
        self.healthy = False  # /health answers well, whatever the faults
        self.fails_each = 0  # every so many requests get a status 500; 0: none
        self.opening = b""  # sent at once, before the first token
        self.faults = Faults()
        self.seen = Seen()
        self.connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        usage = {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 7 + tokens}
        common = {"id": "x", "created": 1, "model": name}
        text = "tok " * tokens
        message = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "length"}
        self.whole = {
            b"/v1/chat/completions": _whole({**common, "object": "chat.completion", "choices": [message], "usage": usage}),
            b"/v1/completions": _whole(
                {
                    **common,
                    "object": "text_completion",
                    "choices": [{"index": 0, "text": text, "finish_reason": "length", "logprobs": None}],
                    "usage": usage,
                }
            ),
            b"/v1/embeddings": _whole(
                {
                    "object": "list",
                    "model": name,
                    "data": [{"object": "embedding", "index": 0, "embedding": [0.5, -0.25]}],
                    "usage": {"prompt_tokens": 7, "total_tokens": 7},
                }
            ),
            b"/v1/models": _whole(
                {"object": "list", "data": [{"id": name, "object": "model", "created": 1, "owned_by": "us"}]}
            ),
            b"/generate": _whole({"generated_text": text, "details": {"generated_tokens": tokens}}),
            b"/": _whole([{"generated_text": text}]),
            b"/tokenize": _whole([{"id": 1, "text": "tok", "start": 0, "stop": 3}]),
            b"/info": _whole({"model_id": name, "max_total_tokens": 4096}),
            b"/health": _whole({}),
            b"/health_generate": _whole({}),
            b"/get_model_info": _whole({"model_path": name, "is_generation": True}),
            b"/get_server_info": _whole({"model_path": name}),
            b"/server_info": _whole({"model_path": name}),
        }
        delta = {"index": 0, "delta": {"content": "tok "}, "finish_reason": None}
        token = {"id": 1, "text": "tok ", "logprob": -0.1, "special": False}
        self.events = {
            b"/v1/chat/completions": _event({**common, "object": "chat.completion.chunk", "choices": [delta]}),
            b"/v1/completions": _event({**common, "object": "text_completion", "choices": [{"index": 0, "text": "tok "}]}),
            b"/generate_stream": _event({"token": token, "generated_text": None, "details": None}),
            b"/": _event({"token": token, "generated_text": None, "details": None}),
        }
        last = _event({**common, "object": "chat.completion.chunk", "choices": [], "usage": usage})
        self.last = {path: last if path.startswith(b"/v1") else b"" for path in self.events}
        self.end = _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
        self.tgi_end = b"0\r\n\r\n"

    async def start(self, port: int = 0) -> int:
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Connection(self), "127.0.0.1", port, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self.port

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections):
            connection.cut()


class _Connection(asyncio.Protocol):
    def __init__(self, server: TokenServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._data = b""
        self._left = 0  # events of the present answer
        self._path = b""
        self._is_answering = False
        self._timer: asyncio.TimerHandle | None = None
        self._next_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # those of uvloop are not derived from it
        self._server.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._server.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._server.seen.gone += self._is_answering

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._data += data
        while not self._is_answering and (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end]
            lower = head.lower()
            at = lower.find(b"content-length:")
            length = int(lower[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._data) < end + 4 + length:
                return
            body = self._data[end + 4 : end + 4 + length]
            self._data = self._data[end + 4 + length :]
            if self._server.seen.keeps:
                self._server.seen.requests.append(head)
                self._server.seen.bodies.append(body)
            words = head.split(b" ", 2)
            if len(words) < 3:  # such as the preface of HTTP/2
                self.cut()
                return
            self._answer(words[1].partition(b"?")[0], body)

    def _answer(self, path: bytes, body: bytes) -> None:
        server, faults, transport = self._server, self._server.faults, self._transport
        assert transport is not None
        server.asked += 1
        if path == b"/faults" and server.is_controllable:
            self._change(json.loads(body))
        elif server.fails_each and server.asked % server.fails_each == 0:
            transport.write(b"HTTP/1.1 500 No\r\ncontent-length: 2\r\n\r\nno")
        elif faults.close_before_answer:
            transport.abort()
        elif faults.hangs:
            self._is_answering = True
        elif faults.refuse_status and not (server.healthy and path == b"/health"):
            transport.write(b"HTTP/1.1 %d No\r\ncontent-length: 2\r\n\r\nno" % faults.refuse_status)
        elif faults.bad_bytes:
            transport.write(EVENT_HEAD + b"zz\r\nnot a chunk\r\n")
        elif faults.ends_by_closing:
            transport.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nuntil the end")
            transport.close()
        elif path == b"/generate_stream" or (path in server.events and (b'"stream":true' in body or b'"stream": true' in body)):
            self._path = path
            self._is_answering = True
            self._left = server.tokens
            server.answered += 1
            loop = asyncio.get_running_loop()
            self._next_at = loop.time() + server.prefill_s
            if server.prefill_s or server.interval_s:
                transport.write(EVENT_HEAD + server.opening)
                self._timer = loop.call_at(self._next_at, self._step)
            else:
                cut = faults.cut_after_events
                count = server.tokens if cut is None else min(cut, server.tokens)
                transport.write(EVENT_HEAD + server.opening + server.events[path] * count)
                self._left = 0
                if cut is not None:
                    transport.close()
                else:
                    self._finish()
        else:
            whole = server.whole.get(path, b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            if server.prefill_s:
                self._timer = asyncio.get_running_loop().call_later(server.prefill_s, transport.write, whole)
            else:
                transport.write(whole)

    def _change(self, wanted: dict[str, Any]) -> None:
        """Faults from now on, and how much slower than at first; answers how many requests came so far."""
        server = self._server
        slower = wanted.pop("slower", 1.0)
        server.interval_s, server.prefill_s = slower * server.first_pace[0], slower * server.first_pace[1]
        server.faults = Faults(**wanted)
        assert self._transport is not None
        self._transport.write(_whole({"requests": server.answered}))

    def _step(self) -> None:
        server, transport = self._server, self._transport
        assert transport is not None
        if server.stamps:
            content = b'data: {"choices":[{"index":0,"delta":{"content":"tok "}}],"t":%014.6f}\n\n' % monotonic()
            transport.write(_chunk(content))
        else:
            transport.write(server.events[self._path])
        self._left -= 1
        cut = server.faults.cut_after_events
        if cut is not None and server.tokens - self._left >= cut:
            transport.close()
        elif self._left:
            self._next_at += server.interval_s
            self._timer = asyncio.get_running_loop().call_at(self._next_at, self._step)
        else:
            self._finish()

    def _finish(self) -> None:
        server, transport = self._server, self._transport
        assert transport is not None
        self._is_answering = False
        end = server.end if self._path.startswith(b"/v1") else server.tgi_end
        transport.write(server.last[self._path] + end)
        if self._data:
            asyncio.get_running_loop().call_soon(self.data_received, b"")


async def _main(arguments: argparse.Namespace) -> None:
    server = TokenServer(arguments.tokens, arguments.interval, arguments.prefill)
    server.stamps = arguments.stamps
    server.opening = ROLE if arguments.role else b""
    server.faults.refuse_status = arguments.refuse
    if arguments.refuse:
        server.healthy = True
    server.is_controllable = arguments.controllable
    print(await server.start(arguments.port), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--interval", type=float, default=0.01)
    parser.add_argument("--prefill", type=float, default=0.0)
    parser.add_argument("--role", action="store_true", help="begin streams at once with an event that has no content")
    parser.add_argument("--stamps", action="store_true")
    parser.add_argument("--refuse", type=int, default=0, help="answer prompts with this status")
    parser.add_argument("--controllable", action="store_true")
    parser.add_argument("--port", type=int, default=0)
    run(_main(parser.parse_args()))
