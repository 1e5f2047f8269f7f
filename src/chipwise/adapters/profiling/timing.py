"""How long one call takes: the median over repeats, and how much the repeats differ.

On a GPU a case runs within a CUDA graph unless it asks not to: kernels of a few microseconds are then queued by the device
itself, as in a serving engine, and not by Python. Calls go round over buffers of their own (`Device.cold`), so weights come
from memory and not from the cache. Repeats are short, so a chip that throttles after seconds of load is seen before it does.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from chipwise.adapters.profiling.case import Call
from chipwise.adapters.profiling.device import Device

_REPEAT_S = 1e-3  # a repeat lasts at least this long: an event's own time is some microseconds
_MOST_CALLS = 2000
_MOST_REPEATS = 50


@dataclass(frozen=True, slots=True)
class Timing:
    seconds: float  # of one call
    spread: float


def time_calls(device: Device, calls: Sequence[Call], seconds: float, graph: bool) -> Timing:
    """Times `calls` for about `seconds` after a warm-up."""
    for call in calls:
        call()
    device.wait()
    began = time.perf_counter()
    for call in calls:
        call()
    device.wait()
    once = max(time.perf_counter() - began, 1e-9)
    if not device.gpu:
        return summary(_on_host(calls, once, seconds))
    if graph:
        return summary(_in_graph(device, calls, seconds))
    rounds = _rounds(calls, once)

    def work() -> None:
        for _ in range(rounds):
            for call in calls:
                call()

    return summary([t / (rounds * len(calls)) for t in _on_device(device, work, rounds * once, seconds)])


def summary(times: Sequence[float]) -> Timing:
    ordered = sorted(times)
    middle = statistics.median(ordered)
    low, high = (ordered[round(share * (len(ordered) - 1))] for share in (0.1, 0.9))
    return Timing(middle, (high - low) / middle)


def _rounds(calls: Sequence[Call], once: float) -> int:
    return max(1, min(math.ceil(_REPEAT_S / once), _MOST_CALLS // len(calls)))


def _repeats(once: float, seconds: float) -> int:
    return max(3, min(_MOST_REPEATS, int(seconds / once)))


def _on_host(calls: Sequence[Call], once: float, seconds: float) -> list[float]:
    rounds = _rounds(calls, once)
    times = []
    for _ in range(_repeats(rounds * once, seconds)):
        began = time.perf_counter()
        for _ in range(rounds):
            for call in calls:
                call()
        times.append((time.perf_counter() - began) / (rounds * len(calls)))
    return times


def _on_device(device: Device, work: Callable[[], object], once: float, seconds: float) -> list[float]:
    """Seconds of each repeat; they are queued back to back, so the device never waits for the host between them."""
    marks = [device.torch.cuda.Event(enable_timing=True) for _ in range(_repeats(once, seconds) + 1)]
    marks[0].record()
    for mark in marks[1:]:
        work()
        mark.record()
    device.wait()
    return [before.elapsed_time(after) / 1e3 for before, after in pairwise(marks)]


def _in_graph(device: Device, calls: Sequence[Call], seconds: float) -> list[float]:
    graph = _captured(device, calls, 1)
    once = max(min(_on_device(device, graph.replay, 1.0, 0.0)), 1e-9)
    rounds = _rounds(calls, once)  # from the device's own time: what the host needs to queue a call is no measure of it
    if rounds > 1:
        graph = _captured(device, calls, rounds)
        graph.replay()
    return [t / (rounds * len(calls)) for t in _on_device(device, graph.replay, rounds * once, seconds)]


def _captured(device: Device, calls: Sequence[Call], rounds: int) -> Any:
    torch = device.torch
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(rounds):
            for call in calls:
                call()
    return graph
