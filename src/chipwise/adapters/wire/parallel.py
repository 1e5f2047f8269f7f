"""Several requests at once, with progress. The first failure stops the rest: a snapshot is complete or does not exist."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
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
    """`work` of every key, in the order of the keys."""
    ordered = list(keys)
    if not ordered:
        return {}
    progress.expect(len(ordered))
    results: dict[K, T] = {}
    pool = ThreadPoolExecutor(max_workers=min(workers, len(ordered)), thread_name_prefix="chipwise-feed")
    try:
        futures = {pool.submit(work, key): key for key in ordered}
        for future in as_completed(futures):
            results[futures[future]] = future.result()
            progress.step(f"{futures[future]}: {subject}")
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # after success nothing is left; after a failure nobody waits
    return {key: results[key] for key in ordered}
