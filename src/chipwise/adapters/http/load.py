"""Sends requests at instants that were decided before, whatever the service does, and notes what came of each.

One connection carries one request at a time; a request that is due while all are busy opens another. Beyond `connections` it
waits, and its waiting counts, for its times start when it was due.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from chipwise.adapters.http.answer_count import AnswerCount
from chipwise.adapters.http.framing import Body
from chipwise.adapters.http.heads import ResponseHead
from chipwise.adapters.http.replica_connection import Connections, Fault, ReplicaConnection
from chipwise.serving.load_report import Shots
from chipwise.serving.replica import Address, Replica

LEAD_S = 0.1  # before the first request is due
NOT_ENDED = "not_ended"
PROGRESS_S = 0.5
MOST_HEAD = 1 << 16  # bytes of an answer's head


@dataclass(frozen=True, slots=True)
class Target:
    address: Address
    path: str = "/v1/chat/completions"
    headers: tuple[str, ...] = ()  # lines, such as an authorization
    is_secure: bool = False  # https

    def message(self, body: bytes) -> bytes:
        lines = [
            f"POST {self.path} HTTP/1.1",
            f"host: {self.address.text}",
            "content-type: application/json",
            f"content-length: {len(body)}",
            *self.headers,
        ]
        return "\r\n".join((*lines, "", "")).encode() + body


@dataclass(frozen=True, slots=True)
class Patience:
    connections: int = 4096
    connect_s: float = 10.0
    answer_s: float = 600.0  # after the last request was due


class _Shot:
    """One request, from its connection to its last byte."""

    __slots__ = ("_answer", "_number", "_test")

    def __init__(self, test: LoadTest, number: int) -> None:
        self._test = test
        self._number = number
        self._answer: AnswerCount | None = None

    def answer_began(self, head: ResponseHead, body: Body) -> None:
        self._answer = AnswerCount(head.is_stream)
        if head.status != 200:
            self._test.errors[self._number] = f"status_{head.status}"

    def answer_came(self, data: bytes, body: Body) -> None:
        test, number, answer = self._test, self._number, self._answer
        assert answer is not None
        answer.note(data, body)
        if test.first_s[number] != test.first_s[number] and (answer.has_content or not answer.is_stream):
            test.first_s[number] = test.elapsed()
        if body.done:
            test.events[number] = answer.content_events()
            test.finished(number, float(answer.tokens()))

    def answer_failed(self, fault: Fault) -> None:
        if fault is Fault.STALE:
            self._test.send(self._number)
        else:
            self._test.errors[self._number] = fault.value
            self._test.finished(self._number, 0.0)


class LoadTest:
    def __init__(
        self,
        target: Target,
        due_s: NDArray[np.float64],
        bodies: Sequence[bytes],
        patience: Patience,
        progress: Callable[[int, float], None] | None = None,
    ) -> None:
        """Request i sends `bodies[i % len(bodies)]`. `progress` is told now and then how many are over, and the seconds."""
        self._progress = progress
        self._tls = ssl.create_default_context() if target.is_secure else None
        self._messages = [target.message(body) for body in bodies]
        self._due = due_s.tolist()
        self._patience = patience
        self._replica = Replica("target", target.address)
        self._waiting: deque[int] = deque()
        self._open = 0
        self._next = 0
        self._left = len(self._due)
        self._start = 0.0
        count = len(self._due)
        self.sent_s = [float("nan")] * count
        self.first_s = [float("nan")] * count
        self.end_s = [float("nan")] * count
        self.tokens = [0.0] * count
        self.events = [0] * count
        self.errors = [""] * count

    def elapsed(self) -> float:
        return monotonic() - self._start  # the loop's own clock stands still while it works

    async def run(self) -> Shots:
        loop = self._loop = asyncio.get_running_loop()
        self._connections = Connections(
            self._replica, most_head=MOST_HEAD, connect_s=self._patience.connect_s, now=monotonic, tls=self._tls
        )
        self._done = asyncio.Event()
        self._start = monotonic() + LEAD_S
        loop.call_later(LEAD_S, self._send_due)
        if self._progress is not None:
            loop.call_later(PROGRESS_S, self._tell)
        longest = LEAD_S + (self._due[-1] if self._due else 0.0) + self._patience.answer_s
        try:
            async with asyncio.timeout(longest):
                await self._done.wait()
        except TimeoutError:
            self.errors = [
                error or ("" if end == end else NOT_ENDED) for error, end in zip(self.errors, self.end_s, strict=True)
            ]
        self._connections.close()
        return Shots(
            due_s=np.array(self._due),
            sent_s=np.array(self.sent_s),
            first_s=np.array(self.first_s),
            end_s=np.array(self.end_s),
            tokens=np.array(self.tokens),
            events=np.array(self.events, dtype=np.float64),
            errors=self.errors,
        )

    def _send_due(self) -> None:
        due, number, count = self._due, self._next, len(self._due)
        now = self.elapsed()
        while number < count and due[number] <= now:
            self.send(number)
            number += 1
            now = self.elapsed()
        self._next = number
        if number < count:
            self._loop.call_later(due[number] - now, self._send_due)
        elif not count:
            self._done.set()

    def _tell(self) -> None:
        if self._progress is not None and self._left:
            self._progress(len(self._due) - self._left, self.elapsed())
            self._loop.call_later(PROGRESS_S, self._tell)

    def send(self, number: int) -> None:
        connection = self._connections.idle()
        if connection is not None:
            self._ask(connection, number)
            return
        self._waiting.append(number)
        if self._open < self._patience.connections:
            self._open += 1
            self._connections.open(self._opened)

    def _opened(self, connection: ReplicaConnection | None) -> None:
        if connection is None:
            self._open -= 1
            if self._waiting:
                number = self._waiting.popleft()
                self.errors[number] = Fault.NO_CONNECTION.value
                self.finished(number, 0.0)
        elif self._waiting:
            self._ask(connection, self._waiting.popleft())
        else:
            connection.is_used = True
            self._connections.keep(connection)

    def _ask(self, connection: ReplicaConnection, number: int) -> None:
        messages = self._messages
        self.sent_s[number] = self.elapsed()
        connection.ask(_Shot(self, number), messages[number % len(messages)])

    def finished(self, number: int, tokens: float) -> None:
        self.end_s[number] = self.elapsed()
        self.tokens[number] = tokens
        self._left -= 1
        if not self._left:
            self._done.set()
        elif self._waiting:
            connection = self._connections.idle()
            if connection is not None:
                self._ask(connection, self._waiting.popleft())
