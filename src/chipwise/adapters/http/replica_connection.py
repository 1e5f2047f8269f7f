"""Connections to replicas, kept alive between requests: one request at a time on each, and its answer passed on as it comes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from enum import StrEnum
from typing import Protocol, cast

from chipwise.adapters.http.framing import Body, CloseBody, body_of
from chipwise.adapters.http.heads import BadMessage, RequestHead, ResponseHead, read_response
from chipwise.serving.replica import Replica


class Fault(StrEnum):
    """Why a replica gave no whole answer."""

    NO_CONNECTION = "no_connection"
    STALE = "stale_connection"  # kept alive here, closed there: nothing is wrong
    CLOSED = "closed_before_answer"
    CUT = "answer_cut"
    BAD_BYTES = "bad_answer"
    SLOW = "timed_out"


class Answered(Protocol):
    """Who waits for an answer."""

    def answer_began(self, head: ResponseHead, body: Body) -> None: ...

    def answer_came(self, data: bytes, body: Body) -> None:
        """Bytes of the body with their framing; `body` says which of them are content, and whether these are the last."""
        ...

    def answer_failed(self, fault: Fault) -> None: ...


class ReplicaConnection(asyncio.Protocol):
    """Reading is paused by who waits for the answer, through the transport. `own_lines` are header lines of every request."""

    __slots__ = (
        "_asking",
        "_body",
        "_head",
        "_keeps",
        "_most_head",
        "_own_lines",
        "_release",
        "idle_since",
        "is_closed",
        "is_used",
        "transport",
    )

    def __init__(self, most_head: int, release: Callable[[ReplicaConnection], None], own_lines: bytes = b"") -> None:
        self._most_head = most_head
        self._own_lines = own_lines
        self._release = release
        self._asking: Answered | None = None
        self._head = b""
        self._body: Body | None = None
        self._keeps = False
        self.transport: asyncio.Transport | None = None
        self.is_closed = False
        self.is_used = False  # for an earlier request
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # those of uvloop are not derived from it

    def message(self, head: RequestHead, request_id: str, body: bytes) -> bytes:
        """A client's request as this replica gets it."""
        line = head.line
        lines = [line.forwarded, self._own_lines, b"x-request-id: " + request_id.encode(), *head.passed_lines]
        if line.method == "POST":
            lines.append(b"content-length: %d" % len(body))
        lines += (b"", body)
        return b"\r\n".join(lines)

    def ask(self, asking: Answered, message: bytes) -> None:
        assert self._asking is None
        assert self.transport is not None
        self._asking = asking
        self._head = b""
        self._body = None
        self.transport.write(message)

    def abandon(self) -> None:
        """The answer is not wanted any more: closing the connection says so to the replica."""
        self._asking = None
        self.close()

    def close(self) -> None:
        self.is_closed = True
        if self.transport is not None:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        asking, body = self._asking, self._body
        if asking is None:
            self.close()  # bytes that nobody asked for
            return
        try:
            if body is None:
                self._read_head(asking, data)
                return
            end = body.feed(data)
        except BadMessage:
            self._fail(Fault.BAD_BYTES)
            return
        if body.done:
            self._finish(data, end, asking, body)
        else:
            asking.answer_came(data, body)

    def _read_head(self, asking: Answered, data: bytes) -> None:
        data = self._head + data if self._head else data
        end = data.find(b"\r\n\r\n")
        if end < 0:
            if len(data) > self._most_head:
                raise BadMessage("a head that is too long")
            self._head = data
            return
        head = read_response(data[:end])
        self._head = b""
        rest = data[end + 4 :]
        if head.status < 200:
            if head.status == 101:
                raise BadMessage("a protocol that was not asked for")
            if rest:
                self._read_head(asking, rest)
            return
        self._keeps = head.keeps_alive
        body = self._body = body_of(head.length)
        asking.answer_began(head, body)
        if self._asking is not asking:  # it was not wanted
            return
        if body.done:
            self._finish(rest, 0, asking, body)
        elif rest:
            self.data_received(rest)

    def _finish(self, data: bytes, end: int, asking: Answered, body: Body) -> None:
        self._asking = None
        self.is_used = True
        is_clean = end == len(data)
        if self._keeps and is_clean and not self.is_closed:
            self._release(self)
        else:
            self.close()
        asking.answer_came(data if is_clean else data[:end], body)

    def _fail(self, fault: Fault) -> None:
        asking, self._asking = self._asking, None
        self.close()
        if asking is not None:
            asking.answer_failed(fault)

    def eof_received(self) -> bool:
        return False  # closes; connection_lost follows

    def connection_lost(self, error: Exception | None) -> None:
        self.is_closed = True
        asking, body = self._asking, self._body
        if asking is None:
            return
        if body is None:
            untouched = self.is_used and not self._head
            self._fail(Fault.STALE if untouched else Fault.CLOSED)
        elif error is None and isinstance(body, CloseBody):
            self._asking = None
            body.done = True
            body.spans = []
            asking.answer_came(b"", body)
        else:
            self._fail(Fault.CUT)


class Connections:
    """Those of one replica."""

    def __init__(
        self,
        replica: Replica,
        most_head: int,
        connect_s: float,
        now: Callable[[], float],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._tls = tls
        self._replica = replica
        self._most_head = most_head
        secret = replica.secret
        authorization = b"" if secret is None else b"\r\nauthorization: Bearer " + secret.encode()
        self._own_lines = b"host: " + replica.address.text.encode() + authorization
        self._connect_s = connect_s
        self._now = now
        self._idle: list[ReplicaConnection] = []
        self._opening: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def idle(self) -> ReplicaConnection | None:
        """The one that was used last: the others may go."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed:
                return connection
        return None

    def open(self, then: Callable[[ReplicaConnection | None], None]) -> asyncio.Task[None]:
        """A new one; None: it could not be opened. Cancelling the task gives up."""
        task = asyncio.get_running_loop().create_task(self._connect(then))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)
        return task

    async def _connect(self, then: Callable[[ReplicaConnection | None], None]) -> None:
        loop = asyncio.get_running_loop()
        address = self._replica.address
        connection: ReplicaConnection | None = None
        try:
            async with asyncio.timeout(self._connect_s):
                _, connection = await loop.create_connection(self._new, address.host, address.port, ssl=self._tls)
        except (OSError, TimeoutError):
            connection = None
        then(connection)

    def _new(self) -> ReplicaConnection:
        return ReplicaConnection(self._most_head, self.keep, self._own_lines)

    def keep(self, connection: ReplicaConnection) -> None:
        if self._is_closed:
            connection.close()
            return
        connection.idle_since = self._now()
        self._idle.append(connection)

    def close_idle(self, before: float) -> None:
        """Those that nobody used since; the oldest are first."""
        old = [connection for connection in self._idle if connection.idle_since < before or connection.is_closed]
        if old:
            self._idle = [connection for connection in self._idle if connection not in old]
            for connection in old:
                connection.close()

    def close(self) -> None:
        for task in list(self._opening):
            task.cancel()
        self.retire()

    def retire(self) -> None:
        """Idle ones are closed now, those in use when their answer has been given."""
        self._is_closed = True
        for connection in self._idle:
            connection.close()
        self._idle.clear()
