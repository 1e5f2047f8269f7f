"""A client's connection: requests read one after the other within limits of size and time, answers written in their order."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import cast

from chipwise.adapters.http.exchange import Exchange
from chipwise.adapters.http.framing import Body, body_of
from chipwise.adapters.http.heads import BadMessage, RequestHead, read_request
from chipwise.adapters.http.local_replies import error_document, reply
from chipwise.adapters.http.state import GatewayState
from chipwise.serving.endpoints import Dialect
from chipwise.serving.metrics import Finished

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
PARTING_S = 2.0  # for a client to read the last answer before its connection is cut
NOBODY = ""


class Clients:
    """All connections of clients; those without a request that is being answered, the longest idle first."""

    def __init__(self, most_connections: int) -> None:
        self.most_connections = most_connections
        self.all: set[ClientConnection] = set()
        self.idle: OrderedDict[ClientConnection, None] = OrderedDict()

    def make_room(self) -> bool:
        """For one more: the longest idle one goes, whether it sends nothing or a request that never ends."""
        if len(self.all) < self.most_connections:
            return True
        if not self.idle:
            return False
        longest, _ = self.idle.popitem(last=False)
        longest.cut()
        return True

    def check_times(self, now: float) -> None:
        for connection in list(self.idle):
            connection.check_time(now)


class ClientConnection(asyncio.Protocol):
    def __init__(self, state: GatewayState, clients: Clients) -> None:
        self._state = state
        self._clients = clients
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._exchange: Exchange | None = None
        self._is_busy = False  # a request is being answered
        self._is_processing = False
        self._is_paused = False
        self._is_parting = False
        self._head: RequestHead | None = None  # of the request whose body is being read
        self._body: Body | None = None
        self._parts: list[bytes] = []
        self._read_bytes = 0
        self._since = state.now()  # when this connection became idle, began a head, or began a body

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # those of uvloop are not derived from it
        if not self._clients.make_room():
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=self._state.settings.sizes.unread_bytes)
        self._clients.all.add(self)
        self._clients.idle[self] = None
        self._state.connections += 1

    def connection_lost(self, error: Exception | None) -> None:
        self._forget_body()
        if self in self._clients.all:
            self._clients.all.discard(self)
            self._clients.idle.pop(self, None)
            self._state.connections -= 1
        exchange, self._exchange = self._exchange, None
        if exchange is not None and self._is_busy:
            exchange.client_left()

    def eof_received(self) -> bool:
        return False  # a client that closes its half is gone: its answer is not produced any further

    # ---- reading

    def data_received(self, data: bytes) -> None:
        if self._is_parting:
            return
        if self._is_busy:
            self._buffer += data
            if len(self._buffer) > self._state.settings.sizes.pipelined_bytes and self._transport is not None:
                self._is_paused = True
                self._transport.pause_reading()
            return
        if self._body is not None:
            self._buffer = data
        else:
            if not self._buffer:
                self._since = self._state.now()
            self._buffer = self._buffer + data if self._buffer else data
        self._process()

    def _process(self) -> None:
        self._is_processing = True
        try:
            while self._buffer and not self._is_busy and not self._is_parting:
                if not (self._read_head() if self._body is None else self._read_body()):
                    break
        except BadMessage as bad:
            self._refuse(bad)
        finally:
            self._is_processing = False

    def _read_head(self) -> bool:
        """Whether there is more to do at once."""
        sizes, data = self._state.settings.sizes, self._buffer
        end = data.find(b"\r\n\r\n", 0, sizes.head_bytes)
        if end < 0:
            if len(data) >= sizes.head_bytes:
                raise BadMessage("a head that is too long", 431)
            return False
        head = read_request(data[:end], sizes.headers)
        exchange = self._exchange = Exchange(self._state, self, head)
        start = end + 4
        if not exchange.check_head():
            self._buffer = b"" if self._is_parting else data[start:]
            return not self._is_parting
        length = head.length
        if 0 <= length <= len(data) - start:
            self._buffer = data[start + length :]
            self._begin(exchange, data[start : start + length])
            return True
        self._buffer = data[start:]
        self._head = head
        self._body = body_of(length)
        self._since = self._state.now()
        if head.expects_continue and not self._buffer:
            self.write(CONTINUE)
        return True

    def _read_body(self) -> bool:
        body, exchange, state = self._body, self._exchange, self._state
        assert body is not None
        assert exchange is not None
        data = self._buffer
        end = body.feed(data)
        for start, stop in body.spans:
            self._parts.append(data[start:stop])
            self._read_bytes += stop - start
            state.body_bytes += stop - start
        self._buffer = data[end:]
        if self._read_bytes > state.settings.sizes.body_bytes:
            raise BadMessage(f"a body may have {state.settings.sizes.body_bytes:,} bytes", 413)
        if state.body_bytes > state.settings.sizes.all_bodies_bytes:
            raise BadMessage("too many requests at once", 503)
        if not body.done:
            return False
        content = b"".join(self._parts)
        self._forget_body()
        self._begin(exchange, content)
        return True

    def _forget_body(self) -> None:
        self._state.body_bytes -= self._read_bytes
        self._read_bytes = 0
        self._parts = []
        self._body = self._head = None

    def _begin(self, exchange: Exchange, body: bytes) -> None:
        self._is_busy = True
        self._clients.idle.pop(self, None)
        exchange.begin(body)

    def _refuse(self, bad: BadMessage) -> None:
        """Bytes that are no request, or too many: where the next request would begin is not known, so this is the end."""
        self._forget_body()
        self._exchange = None
        request_id = self._state.new_request_id()
        document = error_document(Dialect.OPENAI, bad.status, "bad_request", f"The request is not valid: {bad.reason}.")
        retry = 1.0 if bad.status == 503 else None
        self.write(reply(bad.status, document, request_id, closes=True, retry_after_s=retry))
        refused = Finished(id=request_id, path="other", status=bad.status, key=NOBODY, team=NOBODY, error="bad_request")
        self._state.metrics.count(refused)
        self._state.log.add(refused)
        self._part()

    # ---- writing

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def answered(self, keeps_alive: bool) -> None:
        self._exchange = None
        was_busy, self._is_busy = self._is_busy, False
        if not keeps_alive or self._state.is_draining:
            self._part()
            return
        self._since = self._state.now()
        if was_busy:
            self._clients.idle[self] = None
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        if self._buffer and not self._is_processing:
            self._process()

    def pause_writing(self) -> None:
        if self._exchange is not None:
            self._exchange.hold()

    def resume_writing(self) -> None:
        if self._exchange is not None:
            self._exchange.go_on()

    # ---- the end

    def _part(self) -> None:
        """Closes after the client could read what was written: closing at once would destroy it if more bytes are coming in."""
        self._is_parting = True
        self._buffer = b""
        self._since = self._state.now()
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._clients.idle[self] = None
        if transport.can_write_eof():
            transport.write_eof()
            if self._is_paused:
                self._is_paused = False
                transport.resume_reading()
        else:
            transport.close()  # TLS says that it ends by itself

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def close_if_idle(self) -> None:
        if not self._is_busy:
            self.cut()

    def check_time(self, now: float) -> None:
        timeouts = self._state.settings.timeouts
        if self._is_parting:
            limit = PARTING_S
        elif self._body is not None:
            limit = timeouts.body_s
        else:
            limit = timeouts.head_s if self._buffer else timeouts.idle_s
        if now - self._since <= limit:
            return
        if self._is_parting or not (self._buffer or self._body is not None):
            self.cut()
        else:
            self._refuse(BadMessage("it did not come in time", 408))
