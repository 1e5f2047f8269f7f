"""What a program counts beside its steps, for whoever watches it: how long it waited for data, and how many tokens it did.

    for batch in job.batches(loader):      # the time of each `next` is counted
        train_one(batch)
        job.add_tokens(batch.numel())

Both are reported with the steps, in `progress.json`; a program that reports no steps reports neither.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Batch = TypeVar("Batch")
_counts: dict[str, float] = {}


def batches(source: Iterable[Batch]) -> Iterator[Batch]:
    """The same batches, with the time that the program waits for each of them counted."""
    iterator = iter(source)
    while True:
        begun = time.monotonic()
        try:
            batch = next(iterator)
        except StopIteration:
            return
        finally:
            _counts["data_wait"] = _counts.get("data_wait", 0.0) + time.monotonic() - begun
        yield batch


def add_tokens(count: float) -> None:
    """Processed or generated since the last call."""
    _counts["tokens"] = _counts.get("tokens", 0.0) + count


def counts() -> dict[str, float]:
    """What was counted so far; what nobody counts is left out."""
    return {name: round(value, 6) for name, value in _counts.items()}
