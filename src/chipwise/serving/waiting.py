"""The queue in front of a pool: bounded, by priority and then by age, and nothing waits beyond its deadline."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")
SMOOTHING_S = 30.0
STEP_S = 0.5


@dataclass(slots=True, eq=False)
class Place(Generic[Item]):
    item: Item | None  # None: left or served
    tokens: float
    deadline: float


class WaitingLine(Generic[Item]):
    def __init__(self, most_items: int) -> None:
        self._most_items = most_items
        self._heap: list[tuple[int, int, Place[Item]]] = []
        self._order = 0
        self.length = 0
        self.tokens = 0.0  # of all who wait

    def join(self, item: Item, *, tokens: float, priority: int, deadline: float) -> Place[Item] | None:
        """A place in the line; None: it is full."""
        if self.length >= self._most_items:
            return None
        self._order += 1
        place = Place(item, tokens, deadline)
        heappush(self._heap, (-priority, self._order, place))
        self.length += 1
        self.tokens += tokens
        return place

    def leave(self, place: Place[Item]) -> None:
        if place.item is not None:
            place.item = None
            self.length -= 1
            self.tokens = max(0.0, self.tokens - place.tokens) if self.length else 0.0

    def first(self) -> Place[Item] | None:
        """Whose turn it is; it stays in the line until it leaves."""
        heap = self._heap
        while heap and heap[0][2].item is None:
            heappop(heap)
        return heap[0][2] if heap else None

    def expired(self, now: float) -> list[Place[Item]]:
        """Those whose deadline has passed, oldest first; they are still in the line."""
        late = [entry for entry in self._heap if entry[2].item is not None and entry[2].deadline <= now]
        return [place for _, _, place in sorted(late, key=lambda entry: entry[1])]


class Throughput:
    """Tokens that a pool finishes per second while requests wait, smoothed over the last half minute or so. What it finishes
    while nobody waits is what was asked for, and not what it can do."""

    __slots__ = ("_at_s", "_unseen", "per_s")

    def __init__(self) -> None:
        self.per_s = 0.0
        self._at_s: float | None = None
        self._unseen = 0.0  # finished since `_at_s`

    def finished(self, tokens: float, now: float, *, is_busy: bool = True) -> None:
        if not is_busy:
            self._at_s, self._unseen = None, 0.0
            return
        if self._at_s is None:
            self._at_s = now
        self._unseen += tokens
        elapsed = now - self._at_s
        if elapsed < STEP_S:
            return
        weight = 1.0 if self.per_s == 0.0 else min(1.0, elapsed / SMOOTHING_S)
        self.per_s += weight * (self._unseen / elapsed - self.per_s)
        self._at_s, self._unseen = now, 0.0

    def wait_s(self, tokens: float) -> float | None:
        """Until so many tokens are worked off; None: nothing has been seen yet."""
        return tokens / self.per_s if self.per_s > 0.0 else None
