"""What a gateway knows of a replica. The counters change with every request; nobody else writes them."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.serving.breaker import CLOSED, Breaker


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    @property
    def text(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(slots=True, eq=False)
class Replica:
    name: str
    address: Address
    most_requests: int = 256  # at once; more wait in the queue of the gateway
    is_canary: bool = False
    secret: str | None = None  # its own API key, where it wants one
    requests: int = 0  # at once, now
    tokens: float = 0.0  # outstanding work: what is to be read and to be generated for these, as estimated
    breaker: Breaker = CLOSED
    is_draining: bool = False  # gets no new requests
    is_away: bool = False  # does not answer its health check: it starts, or starts again

    def may_take(self, now: float) -> bool:
        is_free = self.requests < self.most_requests and not self.is_draining and not self.is_away
        return is_free and (self.breaker is CLOSED or self.breaker.allows(now))
