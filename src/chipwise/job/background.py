"""One thread that writes, one snapshot that may wait for it: memory is never more than two states beside the living one.

A third is refused or waited for, as the caller wishes. What goes wrong in the thread is kept, and raised by the next call.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Work = TypeVar("Work")


@dataclass(slots=True)
class Ticket(Generic[Work]):
    """One piece of work, from the taking of its snapshot to its end."""

    work: Work
    taken_s: float  # what the snapshot took
    finished: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None
    seconds: float = 0.0


class Background(Generic[Work]):
    def __init__(self, write: Callable[[Work], None], name: str) -> None:
        self._write = write
        self._name = name
        self._change = threading.Condition()
        self._waiting: Ticket[Work] | None = None
        self._reserved = False
        self._busy = False
        self._thread: threading.Thread | None = None
        self._failed: Ticket[Work] | None = None
        self._closing = False

    def offer(self, make: Callable[[], Work], *, block: bool) -> Ticket[Work] | None:
        """`make` takes the snapshot, and is called only where there is room for it; None where there is none."""
        with self._change:
            while self._waiting is not None or self._reserved:
                if not block:
                    return None
                self._change.wait()
            self._reserved = True
        try:
            start = time.monotonic()
            ticket = Ticket(make(), time.monotonic() - start)
        except BaseException:
            with self._change:
                self._reserved = False
                self._change.notify_all()
            raise
        with self._change:
            self._reserved, self._waiting = False, ticket
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._change.notify_all()
        return ticket

    def failure(self) -> BaseException | None:
        """The first error since the last call, once."""
        with self._change:
            failed, self._failed = self._failed, None
        return failed.error if failed else None

    def result(self, ticket: Ticket[Work]) -> None:
        """Wait for it; its error is raised here and not again."""
        ticket.finished.wait()
        with self._change:
            if self._failed is ticket:
                self._failed = None
        if ticket.error is not None:
            raise ticket.error

    def idle(self) -> None:
        """Until nothing is waiting or being written."""
        with self._change:
            while self._busy or self._waiting is not None:
                self._change.wait()

    def close(self) -> None:
        with self._change:
            self._closing = True
            self._change.notify_all()
        if self._thread is not None:
            self._thread.join()
        self._thread, self._closing = None, False

    def _run(self) -> None:
        while True:
            with self._change:
                while self._waiting is None:
                    if self._closing:
                        return
                    self._change.wait()
                ticket, self._waiting, self._busy = self._waiting, None, True
                self._change.notify_all()
            start = time.monotonic()
            try:
                self._write(ticket.work)
            except BaseException as error:
                ticket.error = error
            ticket.seconds = ticket.taken_s + time.monotonic() - start
            with self._change:
                if ticket.error is not None and self._failed is None:
                    self._failed = ticket
                self._busy = False
                ticket.finished.set()
                self._change.notify_all()
