"""What an operator decides about a gateway: limits, time-outs, retries, prices. The defaults suit a service on one machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.serving.breaker import BreakerRule


@dataclass(frozen=True, slots=True)
class SizeLimits:
    head_bytes: int = 16 * 1024
    headers: int = 100
    body_bytes: int = 16 * 1024 * 1024
    all_bodies_bytes: int = 256 * 1024 * 1024  # of all clients together, while they are read or wait
    pipelined_bytes: int = 64 * 1024  # that a client may send while it waits for an answer
    unread_bytes: int = 256 * 1024  # of an answer that its client has not read; more, and the replica waits
    connections: int = 8192  # of clients; beyond, the longest idle one is closed
    answer_head_bytes: int = 64 * 1024


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds of each phase."""

    head_s: float = 10.0  # from the first byte of a request to the end of its head
    body_s: float = 60.0  # of a request
    idle_s: float = 75.0  # of a client between requests
    queue_s: float = 30.0  # for a place at a replica
    connect_s: float = 3.0
    first_byte_s: float = 120.0  # of an answer
    between_bytes_s: float = 60.0  # of an answer
    unread_s: float = 60.0  # that a client may leave its answer unread
    total_s: float = 3600.0
    replica_idle_s: float = 30.0  # of a connection to a replica that is kept for the next request


@dataclass(frozen=True, slots=True)
class Prices:
    usd_per_million_prompt: float = 0.0
    usd_per_million_answer: float = 0.0

    def usd(self, prompt_tokens: float, answer_tokens: float) -> float:
        return (prompt_tokens * self.usd_per_million_prompt + answer_tokens * self.usd_per_million_answer) / 1e6


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    sizes: SizeLimits = field(default_factory=SizeLimits)
    timeouts: Timeouts = field(default_factory=Timeouts)
    breaker: BreakerRule = field(default_factory=BreakerRule)
    prices: Prices = field(default_factory=Prices)
    attempts: int = 3  # at replicas, all before the first byte of an answer
    waiting: int = 1024  # requests in the queue of a pool
