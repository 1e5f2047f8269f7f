"""Work that asks somebody else, within a time in all: for a server that sends a byte a minute no time-out of a read helps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from chipwise.catalog.feed import Report
from chipwise.errors import TryLater
from chipwise.text import duration

T = TypeVar("T")


def within(limit_s: float, name: str, work: Callable[[Report], T], report: Report) -> T:
    """What `work` gives. When the time is over it is left alone: it ends at the next step that it reports, or with us."""
    ends = time.monotonic() + limit_s
    late = TryLater(
        f"{name} did not answer in full within {_duration(limit_s)}; nothing was changed.",
        remedy="Try again later, with fewer regions, or give it more time: -o minutes=120.",
    )
    results: list[T] = []
    raised: list[BaseException] = []

    def step(done: int, total: int | None, what: str) -> None:
        if time.monotonic() > ends:
            raise late
        report(done, total, what)

    def act() -> None:
        try:
            results.append(work(step))
        except BaseException as error:  # told to whoever waits
            raised.append(error)

    thread = threading.Thread(target=act, name=f"refresh of {name}", daemon=True)
    thread.start()
    thread.join(limit_s)
    if thread.is_alive():
        raise late
    if raised:
        raise raised[0]
    return results[0]


def _duration(seconds: float) -> str:
    return duration(seconds) if seconds >= 60 else f"{seconds:g} s"
