"""Several requests at once, with progress. The first failure stops the rest: a snapshot is complete or does not exist."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from itertools import count
from queue import SimpleQueue
from typing import TypeVar

from chipwise.catalog.feed import Report

K = TypeVar("K")
T = TypeVar("T")


class Progress:
    """Counts steps over the stages of one refresh; the total grows as more work comes to light."""

    def __init__(self, report: Report) -> None:
        self._report, self._done, self._total = report, 0, 0
        self._lock = threading.Lock()

    def expect(self, steps: int) -> None:
        with self._lock:
            self._total += steps

    def step(self, message: str) -> None:
        with self._lock:
            self._done += 1
            self._report(self._done, max(self._total, self._done), message)


def run_parallel(keys: Iterable[K], work: Callable[[K], T], progress: Progress, subject: str, workers: int = 8) -> dict[K, T]:
    """`work` of every key, in the order of the keys. What hangs keeps neither a failure nor the end of the process waiting."""
    ordered = list(keys)
    if not ordered:
        return {}
    progress.expect(len(ordered))
    results: dict[int, T] = {}
    numbers, ended = count(), threading.Event()
    finished: SimpleQueue[tuple[int, BaseException | None]] = SimpleQueue()

    def serve() -> None:
        while not ended.is_set() and (number := next(numbers)) < len(ordered):
            try:
                results[number] = work(ordered[number])
                finished.put((number, None))
            except BaseException as error:  # told to whoever waits
                finished.put((number, error))
                return

    for _ in range(min(workers, len(ordered))):
        threading.Thread(target=serve, name="chipwise-feed", daemon=True).start()
    try:
        for _ in ordered:
            number, failure = finished.get()
            if failure is not None:
                raise failure
            progress.step(f"{ordered[number]}: {subject}")
    finally:
        ended.set()  # after success nothing is left; after a failure nobody waits
    return {key: results[number] for number, key in enumerate(ordered)}
