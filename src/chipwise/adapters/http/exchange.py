"""One request from its head to the end of its answer: checked, let in, sent to a replica, passed back, counted."""

from __future__ import annotations

import asyncio
import json
import re
from enum import Enum, auto
from typing import Protocol

from chipwise.adapters.http.access_log import Served
from chipwise.adapters.http.framing import Body
from chipwise.adapters.http.heads import RequestHead, ResponseHead
from chipwise.adapters.http.local_replies import error_document, reply
from chipwise.adapters.http.passing import PassedAnswer
from chipwise.adapters.http.replica_connection import Fault, ReplicaConnection
from chipwise.adapters.http.state import GatewayState, Pending, PoolState
from chipwise.errors import BadInput
from chipwise.serving.breaker import CLOSED
from chipwise.serving.endpoints import BLOCK_BYTES, ENDPOINTS, Dialect, Endpoint, EndpointKind, Prompt, read_prompt
from chipwise.serving.keys import ANYONE, Key
from chipwise.serving.metrics import Finished
from chipwise.serving.policy import RouteQuery
from chipwise.serving.replica import Replica
from chipwise.serving.waiting import Place

REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
CLIENT_GONE = 499  # in logs, as nginx writes it; nobody gets it
RETRIED_STATUS = 503  # a replica that is not ready or has no room
NO_PROMPT = Prompt()
NOTHING_ASKED = RouteQuery(0.0, 0.0)


class Client(Protocol):
    def write(self, data: bytes) -> None: ...

    def answered(self, keeps_alive: bool) -> None:
        """The answer is complete, or ends here."""
        ...


class Phase(Enum):
    READING = auto()
    QUEUED = auto()
    CONNECTING = auto()
    SENT = auto()
    ANSWERING = auto()
    FINISHED = auto()


class Exchange:
    __slots__ = (
        "_answer",
        "_answer_body",
        "_ask",
        "_attempts",
        "_body",
        "_client",
        "_connection",
        "_endpoint",
        "_first_at",
        "_head",
        "_id",
        "_key",
        "_last",
        "_opening",
        "_phase",
        "_place",
        "_pool",
        "_prompt",
        "_replica",
        "_sent_at",
        "_served_by",
        "_started",
        "_state",
        "_taken",
        "_tried",
        "_unread_since",
    )

    def __init__(self, state: GatewayState, client: Client, head: RequestHead) -> None:
        self._state = state
        self._client = client
        self._head = head
        own = head.request_id
        self._id = own.decode("ascii") if own and REQUEST_ID.fullmatch(own) else state.new_request_id()
        self._endpoint: Endpoint | None = ENDPOINTS.get(head.path)
        self._key: Key = ANYONE
        self._started = self._last = state.now()
        self._phase = Phase.READING
        self._body = b""
        self._prompt = NO_PROMPT
        self._ask = NOTHING_ASKED
        self._taken: tuple[float, float] | None = None  # tokens and dollars, from the account of the key
        self._pool: PoolState | None = None
        self._place: Place[Pending] | None = None
        self._sent_at: float | None = None
        self._first_at: float | None = None
        self._tried: list[Replica] = []
        self._attempts = 0
        self._replica: Replica | None = None
        self._served_by = ""
        self._opening: asyncio.Task[None] | None = None
        self._connection: ReplicaConnection | None = None
        self._answer: PassedAnswer | None = None
        self._answer_body: Body | None = None
        self._unread_since: float | None = None

    # ---- doors

    def check_head(self) -> bool:
        """Whether the body may come; if not, the answer has been given."""
        endpoint, head, state = self._endpoint, self._head, self._state
        if endpoint is None:
            return self._refuse(404, "unknown_path", "There is nothing at this path.")
        if endpoint.kind is not EndpointKind.HEALTH:
            key = state.keys.find(head.authorization)
            if key is None:
                return self._refuse(401, "invalid_api_key", "The API key is missing or not valid.")
            self._key = key
        if head.method != endpoint.method:
            return self._refuse(405, "wrong_method", f"This path takes {endpoint.method} only.")
        sizes = state.settings.sizes
        if head.length > sizes.body_bytes:
            return self._refuse(413, "body_too_large", f"A body may have {sizes.body_bytes:,} bytes.")
        if state.is_draining:
            return self._refuse(503, "shutting_down", "The service is shutting down.", retry_after_s=1.0)
        return True

    def begin(self, body: bytes) -> None:
        """The request is complete."""
        endpoint, state = self._endpoint, self._state
        assert endpoint is not None
        if endpoint.kind is EndpointKind.HEALTH:
            healthy = state.is_healthy()
            self._reply(200 if healthy else 503, "" if healthy else "no replica answers", "text/plain")
            return
        if endpoint.kind is EndpointKind.METRICS:
            self._reply(200, state.metrics_text(), "text/plain; version=0.0.4")
            return
        if endpoint.kind is EndpointKind.MODELS and any(pool.pool.models for pool in state.pools):
            self._reply(200, self._models())
            return
        self._body = body
        state.body_bytes += len(body)
        if endpoint.has_prompt:
            try:
                self._prompt = read_prompt(endpoint.kind, body)
            except BadInput as error:
                self._refuse(400, "invalid_body", error.message)
                return
        pool = self._pool = state.pool_for(self._prompt.model)
        if pool is None:
            self._refuse(404, "model_not_found", "No such model is served here. GET /v1/models lists those that are.")
            return
        if endpoint.has_prompt and not self._let_in(pool):
            return
        state.pending.add(self)
        if pool.line.length or not self.try_replicas():
            self._queue(pool)

    def _models(self) -> str:
        names = sorted(name for state in self._state.pools for name in state.pool.models)
        return json.dumps(
            {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "chipwise"} for name in names]}
        )

    def _let_in(self, pool: PoolState) -> bool:
        prompt, learned = self._prompt, pool.learned
        prompt_tokens = learned.prompt_tokens(len(prompt.text)) if prompt.tokens is None else float(prompt.tokens)
        answer_tokens = learned.answer(prompt.answer_limit, prompt.answers)
        blocks = prompt.blocks() if pool.pool.policy.needs_blocks else ()
        self._ask = RouteQuery(
            prompt_tokens=prompt_tokens,
            answer_tokens=answer_tokens,
            blocks=blocks,
            block_tokens=BLOCK_BYTES / learned.bytes_per_token,
            session=prompt.session,
        )
        usd = self._state.settings.prices.usd(prompt_tokens, answer_tokens)
        exceeded = self._state.account(self._key).take(prompt_tokens + answer_tokens, usd, self._state.wall())
        if exceeded is not None:
            message = f"The limit {exceeded.limit.value} of this API key is reached."
            return self._refuse(429, exceeded.limit.value, message, retry_after_s=exceeded.retry_after_s)
        self._taken = (prompt_tokens + answer_tokens, usd)
        return True

    # ---- waiting and choosing

    def _queue(self, pool: PoolState) -> None:
        state, now = self._state, self._state.now()
        replicas = pool.pool.replicas
        opens = [replica.breaker.open_until for replica in replicas if replica.breaker.open_until and not replica.is_away]
        if opens and len(opens) == len(replicas) and not any(replica.requests for replica in replicas):
            self._refuse(503, "no_replica", "No replica answers at present.", retry_after_s=max(1.0, min(opens) - now))
            return
        wait = pool.throughput.wait_s(pool.line.tokens + self._ask.tokens)
        longest = state.settings.timeouts.queue_s
        if wait is not None and wait > longest and pool.line.length:
            self._refuse(429, "too_busy", "Too many requests wait already.", retry_after_s=wait - longest)
            return
        self._phase = Phase.QUEUED
        self._place = pool.line.join(self, tokens=self._ask.tokens, priority=self._key.priority, deadline=now + longest)
        if self._place is None:
            self._refuse(429, "queue_full", "Too many requests wait already.", retry_after_s=wait or 1.0)

    def try_replicas(self) -> bool:
        state, pool = self._state, self._pool
        assert pool is not None
        candidates = pool.pool.candidates(state.now(), self._tried, state.draw)
        if not candidates:
            return False
        replica = pool.pool.policy.choose(self._ask, candidates)
        replica.requests += 1
        replica.tokens += self._ask.tokens
        if replica.breaker is not CLOSED:
            replica.breaker = replica.breaker.sent()
        self._replica = replica
        self._served_by = replica.name
        self._attempts += 1
        connections = state.connections_to(replica)
        connection = connections.idle()
        if connection is not None:
            self._send(connection)
        else:
            self._phase = Phase.CONNECTING
            self._last = state.now()
            self._opening = connections.open(self._opened)
        return True

    def _opened(self, connection: ReplicaConnection | None) -> None:
        self._opening = None
        if self._phase is not Phase.CONNECTING:
            if connection is not None:
                connection.close()
        elif connection is None:
            self.answer_failed(Fault.NO_CONNECTION)
        else:
            self._send(connection)

    def _send(self, connection: ReplicaConnection) -> None:
        head, replica, body = self._head, self._replica, self._body
        assert replica is not None
        lines = [
            b"%b %b HTTP/1.1" % (head.method.encode(), head.target),
            b"host: " + replica.address.text.encode(),
            b"x-request-id: " + self._id.encode(),
        ]
        if replica.secret is not None:
            lines.append(b"authorization: Bearer " + replica.secret.encode())
        lines += head.passed_lines
        if head.method == "POST":
            lines.append(b"content-length: %d" % len(body))
        lines += (b"", body)
        self._phase = Phase.SENT
        self._connection = connection
        now = self._last = self._state.now()
        if self._sent_at is None:
            self._sent_at = now
        connection.ask(self, b"\r\n".join(lines))

    # ---- the answer

    def answer_began(self, head: ResponseHead, body: Body) -> None:
        state, replica = self._state, self._replica
        assert replica is not None
        self._last = state.now()
        if head.status == RETRIED_STATUS and self._attempts < state.settings.attempts and self._has_another(replica):
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.abandon()
            self._retry(failed=True)
            return
        if head.status >= 500:
            replica.breaker = replica.breaker.failed(state.settings.breaker, self._last)
        elif replica.breaker is not CLOSED:
            replica.breaker = CLOSED
        self._phase = Phase.ANSWERING
        self._answer = PassedAnswer(head, self._id.encode(), self._head.is_old, self._head.keeps_alive)
        self._answer_body = body

    def _has_another(self, failed: Replica) -> bool:
        assert self._pool is not None
        now = self._state.now()
        return any(
            replica is not failed and replica not in self._tried and replica.may_take(now)
            for replica in self._pool.pool.replicas
        )

    def answer_came(self, data: bytes, body: Body) -> None:
        answer = self._answer
        assert answer is not None
        now = self._last = self._state.now()
        if self._first_at is None:
            self._first_at = now
        if body.done:
            self._connection = None  # it is idle again, and may serve another request from now on
        out = answer.take(data, body)
        if out:
            self._client.write(out)
        if body.done and self._phase is not Phase.FINISHED:
            self._finish(answer.status, "")
            self._client.answered(answer.keeps_alive)

    def answer_failed(self, fault: Fault) -> None:
        self._connection = None
        replica, settings = self._replica, self._state.settings
        assert replica is not None
        if self._answer is not None and self._answer.has_begun:
            replica.breaker = replica.breaker.failed(settings.breaker, self._state.now())
            self._state.suspect(replica)
            self._cut(fault)
        elif fault is Fault.STALE or (fault is Fault.NO_CONNECTION and self._state.suspect(replica)):
            # A fresh connection to the same or another replica, or a place in the line until one is back: nothing was lost.
            self._attempts -= 1
            self._retry(failed=False)
        elif self._attempts < settings.attempts and fault is not Fault.SLOW:
            self._state.suspect(replica)
            self._retry(failed=True)
        else:
            replica.breaker = replica.breaker.failed(settings.breaker, self._state.now())
            status = 504 if fault is Fault.SLOW else 502
            self._refuse(status, fault.value, "The replica gave no answer.")

    def _retry(self, failed: bool) -> None:
        replica, pool, state = self._replica, self._pool, self._state
        assert replica is not None
        assert pool is not None
        if failed:
            replica.breaker = replica.breaker.failed(state.settings.breaker, state.now())
            self._tried.append(replica)
            state.metrics.retries += 1
        self._leave_replica()
        self._answer = None
        if self.try_replicas():
            return
        if self._tried and not any(other not in self._tried for other in pool.pool.replicas):
            self._tried.clear()  # all were tried: any of them again
            if self.try_replicas():
                return
        self._queue(pool)

    def _cut(self, fault: Fault) -> None:
        answer, body = self._answer, self._answer_body
        assert answer is not None
        assert body is not None
        notice = answer.cut_notice(body, "The answer was cut: the replica stopped in the middle.")
        if notice:
            self._client.write(notice)
        self._finish(answer.status, fault.value)
        self._client.answered(keeps_alive=False)

    # ---- clients that leave or do not read

    def client_left(self) -> None:
        """Nobody waits for the answer: the replica is let know by closing the connection to it."""
        if self._phase is not Phase.FINISHED:
            self._finish(CLIENT_GONE, "client_left")

    def stop(self) -> None:
        """The gateway closes."""
        if self._phase is not Phase.FINISHED:
            self._finish(CLIENT_GONE, "gateway_stopped")
            self._client.answered(keeps_alive=False)

    def hold(self) -> None:
        """The client reads more slowly than the replica writes."""
        if self._connection is not None and self._connection.transport is not None:
            self._unread_since = self._state.now()
            self._connection.transport.pause_reading()

    def go_on(self) -> None:
        if self._unread_since is not None:
            self._unread_since = None
            self._last = self._state.now()
            if self._connection is not None and self._connection.transport is not None:
                self._connection.transport.resume_reading()

    def check_time(self, now: float) -> None:
        timeouts = self._state.settings.timeouts
        if now - self._started > timeouts.total_s:
            self._give_up("too_long", "The request took too long.")
        elif self._phase is Phase.QUEUED:
            if self._place is not None and now >= self._place.deadline:
                wait = self._pool.throughput.wait_s(self._pool.line.tokens) if self._pool is not None else None
                self._refuse(429, "queue_timeout", "No replica had room in time.", retry_after_s=wait or 1.0)
        elif self._phase is Phase.SENT and now - self._last > timeouts.first_byte_s:
            self._give_up("no_first_byte", "The replica did not begin its answer in time.")
        elif self._phase is Phase.ANSWERING:
            if self._unread_since is not None:
                if now - self._unread_since > timeouts.unread_s:
                    self._finish(CLIENT_GONE, "client_does_not_read")
                    self._client.answered(keeps_alive=False)
            elif now - self._last > timeouts.between_bytes_s:
                self._give_up("stalled", "The replica stopped in the middle of its answer.")

    def _give_up(self, code: str, message: str) -> None:
        replica = self._replica
        if replica is not None:
            replica.breaker = replica.breaker.failed(self._state.settings.breaker, self._state.now())
        if self._answer is not None and self._answer.has_begun:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.abandon()
            self._cut(Fault.SLOW)
        else:
            self._refuse(504, code, message)

    # ---- the end

    def _refuse(self, status: int, code: str, message: str, retry_after_s: float | None = None) -> bool:
        dialect = self._endpoint.dialect if self._endpoint is not None else Dialect.OPENAI
        self._reply(status, error_document(dialect, status, code, message), retry_after_s=retry_after_s, error=code)
        return False

    def _reply(
        self,
        status: int,
        text: str,
        content_type: str = "application/json",
        *,
        retry_after_s: float | None = None,
        error: str = "",
    ) -> None:
        was_reading = self._phase is Phase.READING and bool(self._head.length) and not self._body
        keeps_alive = self._head.keeps_alive and not was_reading
        data = reply(status, text, self._id, closes=not keeps_alive, content_type=content_type, retry_after_s=retry_after_s)
        self._finish(status, error)
        self._client.write(data)
        self._client.answered(keeps_alive)

    def _leave_replica(self) -> None:
        replica, self._replica = self._replica, None
        if replica is not None:
            replica.requests -= 1
            replica.tokens = max(0.0, replica.tokens - self._ask.tokens) if replica.requests else 0.0
            if replica.breaker is not CLOSED:
                replica.breaker = replica.breaker.given_up()

    def _finish(self, status: int, error: str) -> None:
        """Counts the request and gives back all that it holds."""
        self._phase = Phase.FINISHED
        state, pool, now = self._state, self._pool, self._state.now()
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abandon()
        if self._place is not None and pool is not None:
            pool.line.leave(self._place)
        self._leave_replica()
        state.pending.discard(self)
        state.body_bytes -= len(self._body)
        state_of = self._counted(status, error, now)
        state.metrics.count(state_of)
        sent = self._answer.sent if self._answer is not None else 0
        pool_name = pool.pool.name if pool is not None else ""
        state.log.add(state_of, Served(self._id, pool_name, self._served_by, self._attempts, sent_bytes=sent))
        if pool is not None and pool.line.length:
            pool.serve_waiting()

    def _counted(self, status: int, error: str, now: float) -> Finished:
        answer, state, first = self._answer, self._state, self._first_at
        prompt_tokens = answer_tokens = usd = 0.0
        events = 0
        if answer is not None and answer.has_begun and status < 400 and self._taken is not None:
            assert self._pool is not None
            events = answer.events
            usage = answer.usage()
            prompt_tokens = self._ask.prompt_tokens if usage.prompt_tokens is None else float(usage.prompt_tokens)
            guess = float(events) if answer.is_stream else self._ask.answer_tokens
            answer_tokens = guess if usage.answer_tokens is None else float(usage.answer_tokens)
            usd = state.settings.prices.usd(prompt_tokens, answer_tokens)
            pool = self._pool
            pool.throughput = pool.throughput.finished(prompt_tokens + answer_tokens, now, is_busy=pool.line.length > 0)
            if not error and self._prompt.answer_limit != 0:
                pool.learned = pool.learned.after(
                    len(self._prompt.text), usage.prompt_tokens, answer_tokens / self._prompt.answers
                )
        if self._taken is not None:
            state.account(self._key).settle(prompt_tokens + answer_tokens - self._taken[0], usd - self._taken[1])
        return Finished(
            path=self._endpoint.path if self._endpoint is not None else "other",
            status=status,
            key=self._key.name,
            team=self._key.team,
            prompt_tokens=prompt_tokens,
            answer_tokens=answer_tokens,
            usd=usd,
            queue_s=None if self._sent_at is None else self._sent_at - self._started,
            first_token_s=None if first is None or not events else first - self._started,
            per_token_s=None if first is None or events < 2 else (now - first) / (events - 1),
            total_s=now - self._started,
            error=error,
        )
