"""One request from its head to the end of its answer: checked, let in, sent to a replica, passed back, counted."""

from __future__ import annotations

import asyncio
import re

from chipwise.adapters.http import admission
from chipwise.adapters.http.admission import Refusal
from chipwise.adapters.http.framing import Body
from chipwise.adapters.http.heads import RequestHead, ResponseHead
from chipwise.adapters.http.local_replies import JSON, error_document, reply
from chipwise.adapters.http.passing import PassedAnswer
from chipwise.adapters.http.phases import ANSWERING, CLIENT_GONE, CONNECTING, FINISHED, QUEUED, READING, SENT, Client
from chipwise.adapters.http.replica_connection import Fault, ReplicaConnection
from chipwise.adapters.http.settlement import NOTHING, learn, used_by
from chipwise.adapters.http.state import GatewayState, Pending, PoolState
from chipwise.errors import BadInput
from chipwise.serving.breaker import CLOSED
from chipwise.serving.endpoints import ENDPOINTS, Dialect, Endpoint, Prompt, read_prompt
from chipwise.serving.keys import ANYONE, Key
from chipwise.serving.metrics import Finished
from chipwise.serving.policy import RouteQuery
from chipwise.serving.replica import Replica
from chipwise.serving.waiting import Place

REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
RETRIED_STATUS = 503  # a replica that is not ready or has no room


class Exchange:
    _body = b""
    _prompt = Prompt()
    _key: Key = ANYONE
    _ask = RouteQuery(0.0, 0.0)
    _tokens = 0.0  # that it is expected to need
    _taken_usd: float | None = None  # from the account of the key, with the tokens; None: nothing
    _pool: PoolState | None = None
    _place: Place[Pending] | None = None
    _sent_at: float | None = None
    _first_at: float | None = None
    _attempts = 0
    _replica: Replica | None = None
    _served_by = ""
    _opening: asyncio.Task[None] | None = None
    _connection: ReplicaConnection | None = None
    _answer: PassedAnswer | None = None
    _answer_body: Body | None = None
    _unread_since: float | None = None

    def __init__(self, state: GatewayState, client: Client, head: RequestHead) -> None:
        self._state = state
        self._client = client
        self._head = head
        own = head.request_id
        self._id = own.decode("ascii") if own and REQUEST_ID.fullmatch(own) else state.new_request_id()
        self._endpoint: Endpoint | None = ENDPOINTS.get(head.line.path)
        self._started = self._last = state.now()
        self._phase = READING
        self._tried: list[Replica] = []

    # ---- admission

    def check_head(self) -> bool:
        """Whether the body may come; if not, the answer has been given."""
        endpoint = self._endpoint
        if endpoint is None:
            return self._refuse(admission.NO_PATH)
        key = admission.key_of(self._state, endpoint, self._head)
        if key is None:
            return self._refuse(admission.NO_KEY)
        self._key = key
        refusal = admission.head_refusal(self._state, endpoint, self._head)
        return True if refusal is None else self._refuse(refusal)

    def begin(self, body: bytes) -> None:
        """The request is complete."""
        endpoint, state = self._endpoint, self._state
        assert endpoint is not None
        if not endpoint.has_prompt and (answer := admission.local_answer(state, endpoint.kind)) is not None:
            self._reply(answer.status, answer.text, answer.content_type)
            return
        self._body = body
        state.body_bytes += len(body)
        if endpoint.has_prompt:
            try:
                self._prompt = read_prompt(endpoint.kind, body)
            except BadInput as error:
                self._refuse(Refusal(400, "invalid_body", error.message))
                return
        pool = self._pool = state.pool_for(self._prompt.model)
        if pool is None:
            self._refuse(admission.NO_MODEL)
            return
        if endpoint.has_prompt:
            ask = self._ask = admission.needs(pool, self._prompt)
            tokens = self._tokens = ask.prompt_tokens + ask.answer_tokens
            usd = state.settings.prices.usd(ask.prompt_tokens, ask.answer_tokens)
            refusal = admission.account_refusal(state, self._key, tokens, usd)
            if refusal is not None:
                self._refuse(refusal)
                return
            self._taken_usd = usd
            state.arrived += 1
        state.pending.add(self)
        if pool.line.length or not self.try_replicas():
            self._queue(pool)

    # ---- waiting and choosing

    def _queue(self, pool: PoolState) -> None:
        state, now = self._state, self._state.now()
        replicas = pool.pool.replicas
        opens = [replica.breaker.open_until for replica in replicas if replica.breaker.open_until and not replica.is_away]
        if opens and len(opens) == len(replicas) and not any(replica.requests for replica in replicas):
            self._refuse(Refusal(503, "no_replica", "No replica answers at present.", max(1.0, min(opens) - now)))
            return
        wait = pool.throughput.wait_s(pool.line.tokens + self._tokens)
        longest = max(state.settings.timeouts.queue_s, pool.pool.waking_s)
        if wait is not None and wait > longest and pool.line.length:
            self._refuse(Refusal(429, "too_busy", "Too many requests wait already.", wait - longest))
            return
        self._phase = QUEUED
        tokens, priority = self._tokens, self._key.priority
        self._place = pool.line.join(self, tokens=tokens, priority=priority, deadline=now + longest)
        if self._place is None:
            self._refuse(Refusal(429, "queue_full", "Too many requests wait already.", wait or 1.0))

    def try_replicas(self) -> bool:
        state, pool = self._state, self._pool
        assert pool is not None
        candidates = pool.pool.candidates(state.now(), self._tried, state.draw)
        if not candidates:
            return False
        replica = pool.pool.policy.choose(self._ask, candidates)
        replica.requests += 1
        replica.tokens += self._tokens
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
            self._phase = CONNECTING
            self._last = state.now()
            self._opening = connections.open(self._opened)
        return True

    def _opened(self, connection: ReplicaConnection | None) -> None:
        self._opening = None
        if self._phase is not CONNECTING:
            if connection is not None:
                connection.close()
        elif connection is None:
            self.answer_failed(Fault.NO_CONNECTION)
        else:
            self._send(connection)

    def _send(self, connection: ReplicaConnection) -> None:
        self._phase = SENT
        self._connection = connection
        now = self._last = self._state.now()
        if self._sent_at is None:
            self._sent_at = now
        connection.ask(self, connection.message(self._head, self._id, self._body))

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
        self._phase = ANSWERING
        keeps_alive = self._head.keeps_alive and not state.is_draining
        self._answer = PassedAnswer(head, self._id.encode(), self._head.line.is_old, keeps_alive)
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
        if body.done:
            self._connection = None  # it is idle again, and may serve another request from now on
        out = answer.take(data, body)
        if self._first_at is None and answer.has_content:
            self._first_at = now
        if out:
            self._client.write(out)
        if body.done and self._phase is not FINISHED:
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
            self._refuse(Refusal(status, fault.value, "The replica gave no answer."))

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
        if self._phase is not FINISHED:
            self._finish(CLIENT_GONE, "client_left")

    def stop(self) -> None:
        """The gateway closes."""
        if self._phase is not FINISHED:
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
        elif self._phase is QUEUED:
            if self._place is not None and now >= self._place.deadline:
                wait = self._pool.throughput.wait_s(self._pool.line.tokens) if self._pool is not None else None
                self._refuse(Refusal(429, "queue_timeout", "No replica had room in time.", wait or 1.0))
        elif self._phase is SENT and now - self._last > timeouts.first_byte_s:
            self._first_byte_missing()
        elif self._phase is ANSWERING:
            if self._unread_since is not None:
                if now - self._unread_since > timeouts.unread_s:
                    self._finish(CLIENT_GONE, "client_does_not_read")
                    self._client.answered(keeps_alive=False)
            elif now - self._last > timeouts.between_bytes_s:
                self._give_up("stalled", "The replica stopped in the middle of its answer.")

    def _first_byte_missing(self) -> None:
        """Nothing has reached the client: another replica may answer, and this one is told to stop by closing."""
        replica, connection = self._replica, self._connection
        assert replica is not None
        if self._attempts < self._state.settings.attempts and self._has_another(replica) and connection is not None:
            self._connection = None
            connection.abandon()
            self._retry(failed=True)
        else:
            self._give_up("no_first_byte", "The replica did not begin its answer in time.")

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
            self._refuse(Refusal(504, code, message))

    # ---- the end

    def _refuse(self, refusal: Refusal) -> bool:
        status, code, message, retry_after_s = refusal
        dialect = self._endpoint.dialect if self._endpoint is not None else Dialect.OPENAI
        self._reply(status, error_document(dialect, status, code, message), retry_after_s=retry_after_s, error=code)
        return False

    def _reply(
        self, status: int, text: str, content_type: str = JSON, *, retry_after_s: float | None = None, error: str = ""
    ) -> None:
        was_reading = self._phase is READING and bool(self._head.length) and not self._body
        keeps_alive = self._head.keeps_alive and not was_reading
        data = reply(status, text, self._id, closes=not keeps_alive, content_type=content_type, retry_after_s=retry_after_s)
        self._finish(status, error)
        self._client.write(data)
        self._client.answered(keeps_alive)

    def _leave_replica(self) -> None:
        replica, self._replica = self._replica, None
        if replica is not None:
            replica.requests -= 1
            replica.tokens = max(0.0, replica.tokens - self._tokens) if replica.requests else 0.0
            if replica.breaker is not CLOSED:
                replica.breaker = replica.breaker.given_up()

    def _finish(self, status: int, error: str) -> None:
        """Counts the request and gives back all that it holds."""
        self._phase = FINISHED
        state, pool = self._state, self._pool
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
        self._count(status, error)
        if pool is not None and pool.line.length:
            pool.serve_waiting()

    def _count(self, status: int, error: str) -> None:
        state, pool, answer, now = self._state, self._pool, self._answer, self._state.now()
        used, taken_usd = NOTHING, self._taken_usd
        if taken_usd is not None:
            if answer is not None and answer.has_begun and status < 400 and pool is not None:
                used = used_by(state, self._ask, answer)
                learn(pool, self._prompt, used, is_whole=not error, now=now)
                state.answered += 1
            extra_tokens = used.prompt_tokens + used.answer_tokens - self._tokens
            state.account(self._key).settle(extra_tokens, used.usd - taken_usd)
        first, sent, started, gaps = self._first_at, self._sent_at, self._started, used.gaps
        finished = Finished(
            id=self._id,
            path=self._endpoint.path if self._endpoint is not None else "other",
            status=status,
            key=self._key.name,
            team=self._key.team,
            prompt_tokens=used.prompt_tokens,
            answer_tokens=used.answer_tokens,
            usd=used.usd,
            queue_s=None if sent is None else sent - started,
            first_token_s=None if first is None else first - started,
            per_token_s=None if first is None or gaps < 1.0 else (now - first) / gaps,
            total_s=now - started,
            error=error,
            pool=pool.pool.name if pool is not None else "",
            replica=self._served_by,
            attempts=self._attempts,
            sent_bytes=answer.sent if answer is not None else 0,
        )
        state.metrics.count(finished)
        state.log.add(finished)
