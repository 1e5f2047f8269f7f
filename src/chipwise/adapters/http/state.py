"""What all requests of a gateway share: pools and queues, keys and accounts, metrics, the access log, the clocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from chipwise.adapters.http.access_log import AccessLog
from chipwise.adapters.http.replica_connection import Connections
from chipwise.serving.estimate import Learned
from chipwise.serving.keys import Key, KeyRing
from chipwise.serving.limits import Account
from chipwise.serving.metrics import Metrics, ReplicaState
from chipwise.serving.policy import Draw
from chipwise.serving.replica import Replica
from chipwise.serving.routing import ReplicaPool
from chipwise.serving.settings import GatewaySettings
from chipwise.serving.waiting import Throughput, WaitingLine


class Pending(Protocol):
    """A request that is being served."""

    def try_replicas(self) -> bool:
        """Goes to a replica if one can take it."""
        ...

    def check_time(self, now: float) -> None: ...

    def stop(self) -> None: ...


class PoolState:
    def __init__(self, pool: ReplicaPool, most_waiting: int) -> None:
        self.pool = pool
        self.line: WaitingLine[Pending] = WaitingLine(most_waiting)
        self.learned = Learned()
        self.throughput = Throughput()

    def serve_waiting(self) -> None:
        """Replicas have room: the first in the line go."""
        while place := self.line.first():
            pending = place.item
            if pending is None or not pending.try_replicas():
                return
            self.line.leave(place)


@dataclass(frozen=True, slots=True)
class Clocks:
    now: Callable[[], float]  # of a clock that nobody sets
    wall: Callable[[], float]  # seconds since 1970


class GatewayState:
    def __init__(
        self,
        pools: Sequence[ReplicaPool],
        keys: KeyRing,
        settings: GatewaySettings,
        clocks: Clocks,
        draw: Draw,
        write_log: Callable[[bytes], object] | None = None,
    ) -> None:
        self.settings = settings
        self.keys = keys
        self.draw = draw
        self.now = clocks.now
        self.wall = clocks.wall
        self.pools = [PoolState(pool, settings.waiting) for pool in pools]
        self.metrics = Metrics()
        self.log = AccessLog(write_log, clocks.wall)
        self.pending: set[Pending] = set()
        self.connections = 0  # of clients
        self.arrived = self.answered = 0  # requests with a prompt that were let in, and those of them that had an answer
        self.body_bytes = 0  # of requests, read and not yet answered
        self.is_draining = False  # answers end their connections
        self.has_successor = False  # another process takes new connections; requests on old ones are still answered here
        self._accounts = {key.name: Account(key.limits, clocks.wall()) for key in keys.all()}
        self._replicas = {replica.name: self._connections(replica) for replica in _replicas(pools)}
        self.suspects: Callable[[Replica], None] | None = None  # who finds out when a replica is well again
        self._request_prefix = f"{int(draw() * 2**40):010x}"
        self._requests = 0

    def account(self, key: Key) -> Account:
        return self._accounts[key.name]

    def connections_to(self, replica: Replica) -> Connections:
        return self._replicas[replica.name]

    def new_request_id(self) -> str:
        self._requests += 1
        return f"{self._request_prefix}-{self._requests:x}"

    def pool_for(self, model: str) -> PoolState | None:
        """The pool that names the model, else the first that takes any."""
        open_pool = None
        for state in self.pools:
            if model in state.pool.models:
                return state
            if not state.pool.models and open_pool is None:
                open_pool = state
        return open_pool

    def is_healthy(self) -> bool:
        now = self.now()
        return any(
            state.pool.is_asleep or any(replica.breaker.allows(now) and not replica.is_away for replica in state.pool.replicas)
            for state in self.pools
        )

    def suspect(self, replica: Replica) -> bool:
        """A replica took no connection, or closed one: it gets no request until its health check says that it is well. False:
        nobody here checks it, so the circuit breaker alone decides."""
        if self.suspects is None:
            return False
        replica.is_away = True
        self.suspects(replica)
        return True

    def set_pool(self, state: PoolState, pool: ReplicaPool) -> None:
        """Other replicas or shares from now on. Requests at a replica that is no longer listed are answered all the same."""
        listed = {replica.name: replica for replica in pool.replicas}
        unlisted = [replica for replica in state.pool.replicas if listed.get(replica.name) is not replica]
        for replica in unlisted:
            self._replicas.pop(replica.name).retire()
        for replica in pool.replicas:
            if replica.name not in self._replicas:
                self._replicas[replica.name] = self._connections(replica)
        state.pool = pool
        state.serve_waiting()

    def _connections(self, replica: Replica) -> Connections:
        settings = self.settings
        return Connections(replica, settings.sizes.answer_head_bytes, settings.timeouts.connect_s, self.now)

    def metrics_text(self) -> str:
        replicas = [
            ReplicaState(replica.name, replica.requests, replica.tokens, replica.breaker.open_until is not None)
            for replica in _replicas(state.pool for state in self.pools)
        ]
        return self.metrics.text(self.connections, sum(state.line.length for state in self.pools), replicas)

    def check_times(self) -> None:
        now = self.now()
        for pending in list(self.pending):
            pending.check_time(now)
        for connections in self._replicas.values():
            connections.close_idle(now - self.settings.timeouts.replica_idle_s)
        for state in self.pools:
            state.serve_waiting()  # a breaker may allow a trial by now
        self.log.flush()

    def close(self) -> None:
        for pending in list(self.pending):
            pending.stop()
        for connections in self._replicas.values():
            connections.close()
        self.log.flush()


def _replicas(pools: Iterable[ReplicaPool]) -> Iterator[Replica]:
    return (replica for pool in pools for replica in pool.replicas)
