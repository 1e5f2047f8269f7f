"""Four replicas that fail in turn behind a gateway that is restarted, under steady load; and many requests in a row.

The short version is a test, the long one `benchmarks/faults/gateway.py`.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from chipwise.adapters.http.load import LoadTest, Patience, Target
from chipwise.serving.arrivals import constant
from chipwise.serving.replica import Address
from gateway_harness import CHAT, STREAM
from gateway_processes import Process, change, ending, sent, started

REPLICAS, TOKENS = 4, 10
PACE = ("--tokens", TOKENS, "--interval", 0.005, "--prefill", 0.01, "--controllable")
FAULTS: tuple[dict[str, object], ...] = (
    {"hangs": True},
    {"slower": 10.0},
    {"refuse_status": 503},
    {"close_before_answer": True},
    {"cut_after_events": 3},
    {"bad_bytes": True},
)
CUT = "answer_cut"


@dataclass(frozen=True, slots=True)
class Storm:
    requests: int
    errors: Counter[str]  # as clients saw them
    p99_s: float
    killed: int  # replicas, by signal 9
    stopped: int  # for a while, by signal
    faults: int  # others
    restarts: int  # of the gateway


@dataclass(slots=True)
class _Replica:
    process: Process
    port: int

    def restart(self) -> None:
        self.process.kill()
        self.process.wait(10)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process, _ = started("token_server.py", *PACE, "--port", self.port)


async def _trouble(replicas: Sequence[_Replica], chance: random.Random, counts: Counter[str], step_s: float) -> None:
    """One replica at a time is in trouble; the next when it is well again."""
    while True:
        replica = chance.choice(replicas)
        kind = chance.choice(("kill", "stop", "fault", "fault", "fault"))
        counts[kind] += 1
        if kind == "kill":
            await asyncio.to_thread(replica.restart)
        elif kind == "stop":
            replica.process.send_signal(signal.SIGSTOP)
            try:
                await asyncio.sleep(step_s)
            finally:
                replica.process.send_signal(signal.SIGCONT)
        else:
            await asyncio.to_thread(change, replica.port, **dict(chance.choice(FAULTS)))
            await asyncio.sleep(step_s)
            await asyncio.to_thread(change, replica.port)
        await asyncio.sleep(step_s / 2.0)


async def _restarts(gateways: list[Process], ports: Sequence[int], offer: Path, every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        successor, _ = await asyncio.to_thread(started, "gateway_process.py", *ports, "--take", offer, "--offer", offer)
        gateways.append(successor)


async def _scene(
    replicas: Sequence[_Replica], gateways: list[Process], port: int, offer: Path, per_s: float, duration_s: float
) -> Storm:
    counts: Counter[str] = Counter()
    ports = [replica.port for replica in replicas]
    troubles = [
        asyncio.create_task(_trouble(replicas, random.Random(5), counts, 1.5)),
        asyncio.create_task(_restarts(gateways, ports, offer, duration_s / 4.0)),
    ]
    shots = await sent(port, per_s, duration_s, [STREAM, CHAT], answer_s=60.0)
    for trouble in troubles:
        trouble.cancel()
        with suppress(asyncio.CancelledError):
            await trouble
    fine = np.array([not error for error in shots.errors])
    return Storm(
        requests=len(shots.errors),
        errors=Counter(error for error in shots.errors if error),
        p99_s=float(np.quantile((shots.end_s - shots.due_s)[fine], 0.99)),
        killed=counts["kill"],
        stopped=counts["stop"],
        faults=counts["fault"],
        restarts=len(gateways) - 1,
    )


def storm(folder: Path, per_s: float, duration_s: float) -> Storm:
    replicas = [_Replica(*started("token_server.py", *PACE)) for _ in range(REPLICAS)]
    offer = folder / "gateway.sock"
    gateways: list[Process] = []
    try:
        gateway, port = started("gateway_process.py", *(replica.port for replica in replicas), "--offer", offer)
        gateways.append(gateway)
        return asyncio.run(_scene(replicas, gateways, port, offer, per_s, duration_s))
    finally:
        with ending([*gateways, *(replica.process for replica in replicas)]):
            pass


@dataclass(frozen=True, slots=True)
class Leaks:
    requests: int
    failed: int
    grown_bytes: int  # resident, from a tenth of the requests on
    sockets: int  # of the gateway after all clients left


def leaks(requests: int, per_s: float) -> Leaks:
    """Half of the requests are streamed. The gateway's memory after the first tenth is what the rest is compared with."""
    replica, replica_port = started("token_server.py", "--tokens", 5, "--interval", 0)
    gateway, port = started("gateway_process.py", replica_port)
    with ending([gateway, replica]):
        watched = psutil.Process(gateway.pid)
        failed, before = 0, 0
        for part in (requests // 10, requests - requests // 10):
            due = constant(per_s, part / per_s)
            test = LoadTest(Target(Address("127.0.0.1", port)), due, [STREAM, CHAT], Patience(connections=64))
            failed += sum(bool(error) for error in asyncio.run(test.run()).errors)
            before = before or watched.memory_info().rss
        grown = watched.memory_info().rss - before
        asyncio.run(asyncio.sleep(0.3))
        clients = [line for line in watched.net_connections("tcp") if line.laddr.port == port and line.status == "ESTABLISHED"]
        return Leaks(requests, failed, grown, len(clients))
