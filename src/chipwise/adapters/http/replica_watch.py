"""Replicas that are away, asked until they are well: those that start, and those whose connections fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from chipwise.adapters.http.state import GatewayState
from chipwise.serving.breaker import CLOSED
from chipwise.serving.replica import Replica

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5
ANSWERS_WITHIN_S = 3.0


async def is_well(host: str, port: int, path: str) -> bool:
    try:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nhost: {host}:{port}\r\nconnection: close\r\n\r\n".encode())
                words = (await reader.readline()).split()
            finally:
                writer.transport.abort()
    except (OSError, TimeoutError):
        return False
    return len(words) > 1 and words[1].isdigit() and 200 <= int(words[1]) < 400


class ReplicaWatch:
    def __init__(self, state: GatewayState) -> None:
        self._state = state
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.health: Mapping[str, str] = {}  # path by replica; one that is not listed is asked no more
        state.suspects = self.begin

    def begin(self, replica: Replica) -> None:
        if replica.name not in self._tasks:
            task = asyncio.get_running_loop().create_task(self._until_well(replica))
            self._tasks[replica.name] = task
            task.add_done_callback(self._forget(replica.name, task))

    def _forget(self, name: str, task: asyncio.Task[None]) -> Callable[[object], None]:
        def forget(_: object) -> None:
            if self._tasks.get(name) is task:
                del self._tasks[name]

        return forget

    async def _until_well(self, replica: Replica) -> None:
        pause_s = FIRST_PAUSE_S
        while replica.name in self.health:
            if await is_well(replica.address.host, replica.address.port, self.health[replica.name]):
                self._tasks.pop(replica.name, None)
                replica.is_away = False
                replica.breaker = CLOSED
                for pool in self._state.pools:
                    pool.serve_waiting()
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2.0 * pause_s, LONGEST_PAUSE_S)

    def close(self) -> None:
        for task in list(self._tasks.values()):
            task.cancel()
