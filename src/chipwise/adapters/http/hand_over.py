"""A restart without a lost request: the listening socket goes from the running gateway to its successor.

The running one waits at a Unix socket that only its own user can reach. A successor connects, gets the listening socket,
starts, and says so; from then on the kernel gives it all new connections, those that wait already included, and the old one
drains. Where the successor does not start, nothing has changed.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from chipwise.errors import BadInput, OutsideFailed

READY = b"ready"
ANSWER_S = 30.0  # for a successor to start


class HandOver:
    """The offer of a running gateway."""

    def __init__(self, path: Path, listening: int, on_successor: Callable[[], None]) -> None:
        """`on_successor` is called once a successor serves."""
        self._path = path
        self._listening = listening
        self._on_successor = on_successor
        self._task: asyncio.Task[None] | None = None
        self._waits: socket.socket | None = None

    def start(self) -> None:
        if len(os.fsencode(self._path)) > 100:
            raise BadInput(f"{self._path} is too long for a Unix socket.", remedy="Use a path of at most 100 characters.")
        self._path.unlink(missing_ok=True)
        waits = self._waits = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            waits.bind(str(self._path))
        finally:
            os.umask(before)
        waits.listen(1)
        waits.setblocking(False)
        self._task = asyncio.get_running_loop().create_task(self._offer(waits))

    async def _offer(self, waits: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            successor, _ = await loop.sock_accept(waits)
            with successor, suppress(OSError, TimeoutError):
                socket.send_fds(successor, [b"listening"], [self._listening])
                async with asyncio.timeout(ANSWER_S):
                    is_ready = await loop.sock_recv(successor, 16) == READY
                if is_ready:
                    waits.close()
                    self._on_successor()
                    return

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._waits is not None:
            self._waits.close()


class TakenOver:
    """What a successor got: the socket to listen on. `confirm` when it serves."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._line.settimeout(ANSWER_S)
            self._line.connect(str(path))
            _, descriptors, _, _ = socket.recv_fds(self._line, 16, 1)
            self.listening = socket.socket(fileno=descriptors[0])
        except (OSError, IndexError) as error:
            self._line.close()
            raise OutsideFailed(f"No gateway hands over at {path}.", remedy="Start this one without hand-over.") from error
        self.listening.setblocking(False)

    def confirm(self) -> None:
        """Removes the old path, so that an offer of this process can take its place."""
        self._path.unlink(missing_ok=True)
        self._line.sendall(READY)
        self._line.close()
