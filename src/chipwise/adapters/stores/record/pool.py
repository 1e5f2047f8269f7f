"""Connections: each is used by one thread at a time, kept for the next, and never carried into a forked process.

SQLite counts its locks per process: a child that inherits an open connection believes in locks that only its parent has, and
can lose what it writes. A socket to a server that two processes share mixes up both. So idle connections are closed before a
fork, threads in the middle of a transaction are waited for, and whatever was still open is left untouched in the child.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from chipwise.errors import BadInput

C = TypeVar("C")
_PATIENCE_S = 5.0  # for transactions of other threads before a fork
_POOLS: WeakSet[Pool[Any]] = WeakSet()
_FORKING = threading.RLock()
_ABANDONED: list[object] = []  # of a parent: closing or even forgetting one would reach into the parent's session


class Pool(Generic[C]):
    def __init__(self, make: Callable[[], C], end: Callable[[C], None], keep: int = 4) -> None:
        self._make, self._end, self._keep = make, end, keep
        self._idle: list[C] = []
        self._busy: dict[object, tuple[int, C | None]] = {}  # by loan: its thread, and what it has
        self._gate = threading.Condition()
        self._closed = False
        _POOLS.add(self)

    @contextmanager
    def connection(self) -> Iterator[C]:
        """A connection for one piece of work. After a failure it is not used again: nobody knows what state it is in."""
        loan, connection = self._lent()
        succeeded = False
        try:
            if connection is None:
                connection = self._make()
                self._busy[loan] = (threading.get_ident(), connection)
            yield connection
            succeeded = True
        finally:
            with self._gate:
                self._busy.pop(loan, None)
                reusable = succeeded and not self._closed and len(self._idle) < self._keep
                if reusable and connection is not None:
                    self._idle.append(connection)
                self._gate.notify_all()
            if not reusable and connection is not None:
                self._end(connection)

    def forget(self) -> None:
        """Closes those that nobody uses: after one was cut off, the others probably were too."""
        with self._gate:
            idle, self._idle = self._idle, []
        for connection in idle:
            self._end(connection)

    def close(self) -> None:
        self._closed = True
        self.forget()

    def _lent(self) -> tuple[object, C | None]:
        loan = object()
        with self._gate:
            if self._closed:
                raise BadInput("The database was closed.")
            connection = self._idle.pop() if self._idle else None
            self._busy[loan] = (threading.get_ident(), connection)
        return loan, connection

    def hold(self) -> None:
        """Before a fork: nothing open, nobody can open, until `go_on`."""
        self._gate.acquire()
        me, until = threading.get_ident(), time.monotonic() + _PATIENCE_S
        while any(thread != me for thread, _ in self._busy.values()) and time.monotonic() < until:
            self._gate.wait(0.05)
        while self._idle:
            self._end(self._idle.pop())

    def go_on(self) -> None:
        self._gate.release()

    def begin_anew(self) -> None:
        """In the child."""
        _ABANDONED.extend(self._busy.values())
        self._busy, self._idle = {}, []
        self._gate = threading.Condition()


_pools: list[Pool[Any]] = []


def _before() -> None:
    _FORKING.acquire()
    for pool in list(_POOLS):
        pool.hold()
        _pools.append(pool)


def _in_parent() -> None:
    while _pools:
        _pools.pop().go_on()
    _FORKING.release()


def _in_child() -> None:
    global _FORKING
    while _pools:
        _pools.pop().begin_anew()
    _FORKING = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
