"""A case: one piece of work at one size, as a value that says what it is before anything is allocated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Call = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Case:
    kind: str
    shape: tuple[tuple[str, int], ...]
    precision: str
    flop: float  # of one call
    bytes: float  # of one call
    prepare: Callable[[], Sequence[Call]]  # allocates; calls that do the same work on buffers of their own
    core: bool = False  # measured in quick mode too
    graph: bool = True  # timed within a CUDA graph: the device's time, without the host's

    def __str__(self) -> str:
        sizes = " ".join(f"{name} {size}" for name, size in self.shape)
        return f"{self.kind} {self.precision} {sizes}"


def sizes(**named: int) -> tuple[tuple[str, int], ...]:
    return tuple(named.items())
