"""One thread that writes, one snapshot that may wait for it: memory is never more than two states beside the living one.

A third is refused or waited for, as the caller wishes. What goes wrong in the thread is kept, and raised by the next call.
Nobody waits for it without limit: after that the thread is given up, and every later call says so at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Work = TypeVar("Work")
SAYS_AFTER_S = 30.0


class GivenUp(Exception):
    """Nothing came of what is being written within the limit."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"nothing within {limit_s:g} s")
        self.limit_s = limit_s


@dataclass(slots=True)
class Ticket(Generic[Work]):
    """One piece of work, from the taking of its snapshot to its end."""

    work: Work
    taken_s: float  # what the snapshot took
    finished: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None
    seconds: float = 0.0


class Background(Generic[Work]):
    def __init__(
        self, write: Callable[[Work], None], name: str, limit_s: Callable[[], float], say: Callable[[float], None]
    ) -> None:
        """`limit_s`: of one wait; `say`: called once in a wait that is long, with its limit."""
        self._write = write
        self._limit_s, self._say = limit_s, say
        self.given_up: GivenUp | None = None
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
            if not block and (self._waiting is not None or self._reserved):
                return None
            self._wait(lambda: self._waiting is None and not self._reserved)
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
        with self._change:
            self._wait(ticket.finished.is_set)
            if self._failed is ticket:
                self._failed = None
        if ticket.error is not None:
            raise ticket.error

    def idle(self) -> None:
        """Until nothing is waiting or being written."""
        with self._change:
            self._wait(lambda: not self._busy and self._waiting is None)

    def _wait(self, over: Callable[[], bool]) -> None:
        """Under the lock, which is free meanwhile."""
        limit_s, begun, said = self._limit_s(), time.monotonic(), False
        while not over():
            waited = time.monotonic() - begun
            if self.given_up is None and waited >= limit_s:
                self.given_up = GivenUp(limit_s)
            if self.given_up is not None:
                raise self.given_up
            if waited >= SAYS_AFTER_S and not said:
                said = True
                self._say(limit_s)
            self._change.wait(min(limit_s - waited, SAYS_AFTER_S))

    def close(self) -> None:
        if self.given_up is not None:  # a daemon: it goes with the process
            return
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
