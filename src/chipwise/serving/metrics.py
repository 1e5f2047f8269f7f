"""What a gateway counted, and its text for Prometheus. Labels come from configuration and tables, never from clients."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
TOKEN_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0)


class Histogram:
    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str) -> Iterator[str]:
        yield f"# TYPE {name} histogram"
        total = 0
        for bound, count in zip((*self._bounds, "+Inf"), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self._sum:.9g}"
        yield f"{name}_count {total}"


class Finished(NamedTuple):
    """One request, when it is over."""

    id: str
    path: str
    status: int
    key: str
    team: str
    prompt_tokens: float = 0.0
    answer_tokens: float = 0.0
    usd: float = 0.0
    queue_s: float | None = None
    first_token_s: float | None = None
    per_token_s: float | None = None
    total_s: float = 0.0
    error: str = ""
    pool: str = ""
    replica: str = ""  # that answered
    attempts: int = 0
    sent_bytes: int = 0


class ReplicaState(NamedTuple):
    name: str
    requests: int
    tokens: float
    is_open: bool  # its circuit breaker


class Metrics:
    def __init__(self) -> None:
        self._requests: defaultdict[tuple[str, int, str], int] = defaultdict(int)
        self._errors: defaultdict[str, int] = defaultdict(int)
        self._tokens: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        self._first = Histogram(SECONDS)
        self._each = Histogram(TOKEN_SECONDS)
        self._total = Histogram(SECONDS)
        self._queue = Histogram(SECONDS)
        self.retries = 0

    def count(self, request: Finished) -> None:
        self._requests[request.path, request.status, request.key] += 1
        if request.error:
            self._errors[request.error] += 1
        used = self._tokens[request.key, request.team]
        used[0] += request.prompt_tokens
        used[1] += request.answer_tokens
        used[2] += request.usd
        self._total.observe(request.total_s)
        if request.queue_s is not None:
            self._queue.observe(request.queue_s)
        if request.first_token_s is not None:
            self._first.observe(request.first_token_s)
        if request.per_token_s is not None:
            self._each.observe(request.per_token_s)

    def text(self, connections: int, waiting: int, replicas: Iterable[ReplicaState]) -> str:
        return "\n".join((*self._lines(connections, waiting, tuple(replicas)), ""))

    def _lines(self, connections: int, waiting: int, replicas: tuple[ReplicaState, ...]) -> Iterator[str]:
        prefix = "chipwise_gateway"
        yield f"# TYPE {prefix}_requests_total counter"
        for (path, status, key), number in sorted(self._requests.items()):
            yield f'{prefix}_requests_total{{path="{path}",status="{status}",key="{_quoted(key)}"}} {number}'
        yield f"# TYPE {prefix}_errors_total counter"
        for error, number in sorted(self._errors.items()):
            yield f'{prefix}_errors_total{{kind="{error}"}} {number}'
        yield f"# TYPE {prefix}_retries_total counter"
        yield f"{prefix}_retries_total {self.retries}"
        for position, name in enumerate(("prompt_tokens", "answer_tokens", "cost_usd")):
            yield f"# TYPE {prefix}_{name}_total counter"
            for (key, team), used in sorted(self._tokens.items()):
                yield f'{prefix}_{name}_total{{key="{_quoted(key)}",team="{_quoted(team)}"}} {used[position]:.9g}'
        yield from self._first.lines(f"{prefix}_time_to_first_token_seconds")
        yield from self._each.lines(f"{prefix}_time_per_output_token_seconds")
        yield from self._queue.lines(f"{prefix}_queue_seconds")
        yield from self._total.lines(f"{prefix}_request_seconds")
        yield f"# TYPE {prefix}_connections gauge"
        yield f"{prefix}_connections {connections}"
        yield f"# TYPE {prefix}_waiting_requests gauge"
        yield f"{prefix}_waiting_requests {waiting}"
        for name in ("requests", "tokens", "open"):
            yield f"# TYPE {prefix}_replica_{name} gauge"
            for replica in replicas:
                value = {"requests": replica.requests, "tokens": replica.tokens, "open": int(replica.is_open)}[name]
                yield f'{prefix}_replica_{name}{{replica="{_quoted(replica.name)}"}} {value:.9g}'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
