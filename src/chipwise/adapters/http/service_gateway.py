"""The gateway of a service: its replicas are those of the service's file, which is read again whenever it changes.

What it sees (requests at each replica, who is away) it writes beside that file, for commands that wait for replicas to be ready
or to be without requests.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

from chipwise.adapters import state_files
from chipwise.adapters.http.gateway import Door, Gateway
from chipwise.adapters.http.key_file import read_keys
from chipwise.adapters.http.replica_watch import ReplicaWatch
from chipwise.adapters.http.state import Clocks, GatewayState
from chipwise.errors import BadInput, ChipwiseError
from chipwise.serving.keys import KeyRing
from chipwise.serving.routing import ReplicaPool, policy_named
from chipwise.serving.service import ServiceRecord, read_service, replicas_of
from chipwise.serving.settings import GatewaySettings, Timeouts

SERVICE, SEEN, ACCESS_LOG = "service.json", "gateway.json", "access.log"
LOOK_S = 0.1
TELLS_AT_MOST_S, TELLS_AT_LEAST_S = 0.2, 5.0  # between two words of what is seen, so that readers know that it lives
LOG_BYTES = 64 << 20
DRAINS_S = 25.0  # of the grace of its job


class LogFile:
    """Appended to, and put aside once when it is large."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = self._opened()

    def _opened(self) -> FileIO:
        return FileIO(self._path, "ab", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW, 0o600))

    def write(self, data: bytes) -> None:
        with suppress(OSError):  # a full disk keeps nobody from being served
            self._file.write(data)
            if self._file.tell() > LOG_BYTES:
                os.replace(self._path, self._path.with_suffix(".log.1"))
                full, self._file = self._file, self._opened()  # where no file can be opened, the full one stays in use
                full.close()

    def close(self) -> None:
        self._file.close()


def read_folder(folder: Path) -> ServiceRecord:
    document = state_files.read(folder, SERVICE)
    if document is None:
        raise BadInput(f"{folder} has no file of a service.", remedy="`chipwise serve` makes one.")
    return read_service(document)


class ServiceGateway:
    def __init__(self, folder: Path, service: ServiceRecord, keys: KeyRing) -> None:
        self._folder = folder
        chance = random.Random()
        pool = ReplicaPool(service.name, (), policy_named(service.policy, chance.random))
        settings = GatewaySettings(timeouts=Timeouts(queue_s=service.queue_s))
        clocks = Clocks(time.monotonic, time.time)
        log = self._log = LogFile(folder / ACCESS_LOG)
        self.state = GatewayState([pool], keys=keys, settings=settings, clocks=clocks, draw=chance.random, write_log=log.write)
        self.gateway = Gateway(self.state)
        self.watch = ReplicaWatch(self.state)
        self.port = 0
        self._revision = 0
        self._stamp: tuple[int, int] | None = None
        self._seen: Mapping[str, Any] = {}
        self._told_at = 0.0
        self._slot_s, self._counted_at = 0.0, self.state.now()

    def look(self) -> None:
        """Takes over what the service's file says, where that changed, and tells what is seen."""
        try:
            status = os.stat(self._folder / SERVICE)
        except OSError:
            return  # the service is being deleted; its jobs end by themselves
        self._count_slots()
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp != self._stamp:
            with suppress(ChipwiseError):  # what cannot be read changes nothing
                self.take(read_folder(self._folder))
                self._stamp = stamp
        self._tell()

    def take(self, service: ServiceRecord) -> None:
        pool_state = self.state.pools[0]
        before = {replica.name: replica for replica in pool_state.pool.replicas}
        replicas = replicas_of(service, before)
        self.watch.health = {record.name: record.health for record in service.replicas}
        policy = pool_state.pool.policy
        pool = ReplicaPool(
            service.name,
            replicas,
            policy,
            canary_share=service.canary_share,
            parks_s=service.parks_s,
            served=service.version(service.stable).request.served,
        )
        self.state.set_pool(pool_state, pool)
        for replica in replicas:
            if replica.is_away:
                self.watch.begin(replica)
        self._revision = service.revision

    def close(self) -> None:
        self.watch.close()
        self.gateway.close()
        self._log.close()

    def _count_slots(self) -> None:
        """Requests that replicas work on, summed over the time: how much of what they can take together is used."""
        now = self.state.now()
        self._slot_s += (now - self._counted_at) * sum(replica.requests for replica in self.state.pools[0].pool.replicas)
        self._counted_at = now

    def _tell(self) -> None:
        now = self.state.now()
        pool_state = self.state.pools[0]
        replicas = {
            replica.name: {
                "requests": replica.requests,
                "tokens": round(replica.tokens),
                "away": replica.is_away,
                "draining": replica.is_draining,
                "open": replica.breaker.open_until is not None,
            }
            for replica in pool_state.pool.replicas
        }
        seen = {
            "pid": os.getpid(),
            "port": self.port,
            "revision": self._revision,
            "replicas": replicas,
            "waiting": pool_state.line.length,
            "connections": self.state.connections,
            "arrived": self.state.arrived,
            "answered": self.state.answered,
            "slot_s": round(self._slot_s, 1),
        }
        waited_s = now - self._told_at
        if waited_s > TELLS_AT_LEAST_S or (seen != self._seen and waited_s > TELLS_AT_MOST_S):
            with suppress(OSError):
                state_files.write(self._folder, SEEN, {**seen, "at": self.state.wall()}, durable=False)
                self._seen, self._told_at = seen, now


async def serve(folder: Path) -> int:
    service = read_folder(folder)
    door = service.door
    keys = read_keys(Path(door.key_file)) if door.key_file else KeyRing()
    running = ServiceGateway(folder, service, keys)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    running.take(service)
    running.port = await running.gateway.start(
        Door(
            host=door.host,
            port=door.port,
            certificate=Path(door.certificate) if door.certificate else None,
            private_key=Path(door.private_key) if door.private_key else None,
        )
    )
    print(f"the gateway of {service.name} listens on {door.host}:{running.port}", flush=True)
    while not ended.is_set():
        running.look()
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                await ended.wait()
    was_all = await running.gateway.drain(DRAINS_S)
    running.close()
    print("all requests were answered" if was_all else "some requests were cut", flush=True)
    return 0
