"""What autoscalers share: windows over time, and limits of a step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import ceil

from chipwise.scale.serving import ServeSignals


class Recommended:
    """The highest recommendation of the last seconds; the first is what there is."""

    __slots__ = ("_falling", "window_s")

    def __init__(self, window_s: float) -> None:
        self.window_s = window_s
        self._falling: deque[tuple[float, float]] = deque()  # those that no later one exceeds

    def after(self, signals: ServeSignals, replicas: float) -> float:
        falling = self._falling
        if not falling:
            falling.append((signals.now_s, float(signals.replicas)))
        while falling and falling[-1][1] <= replicas:
            falling.pop()
        falling.append((signals.now_s, replicas))
        while falling[0][0] < signals.now_s - self.window_s:
            falling.popleft()
        return falling[0][1]


class Mean:
    """Of a signal over the last seconds."""

    __slots__ = ("_sum", "_values", "window_s")

    def __init__(self, window_s: float) -> None:
        self.window_s = window_s
        self._values: deque[tuple[float, float]] = deque()
        self._sum = 0.0

    def after(self, now_s: float, value: float) -> float:
        self._values.append((now_s, value))
        self._sum += value
        while self._values[0][0] <= now_s - self.window_s:
            self._sum -= self._values.popleft()[1]
        return self._sum / len(self._values)


def step_up(signals: ServeSignals, replicas: float) -> float:
    """The default limit of the HPA: in 15 s at most twice as many, or four more."""
    return min(float(ceil(replicas - 1e-9)), max(2.0 * signals.replicas, signals.replicas + 4.0))


def lasting(seconds: float) -> Callable[[float, bool], bool]:
    """Whether something has been so for so long."""
    since: list[float] = []

    def lasts(now_s: float, is_so: bool) -> bool:
        if not is_so:
            since.clear()
        elif not since:
            since.append(now_s)
        return bool(since) and now_s - since[0] >= seconds

    return lasts
