"""Processes of the gateway's benchmark: our gateway with everything switched on, and a client that counts events.

python benchmarks/gateway_parts.py gateway REPLICA_PORT [POLICY]       prints its port
python benchmarks/gateway_parts.py bare REPLICA_PORT                   a proxy that only copies bytes: what the loop costs
python benchmarks/gateway_parts.py streams PORT STREAMS ROUNDS         prints events, and seconds that each event was under way
python benchmarks/gateway_parts.py requests PORT REQUESTS AT_ONCE      prints answers and their seconds
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from pathlib import Path
from typing import cast

from chipwise.adapters.http.gateway import Door, Gateway
from chipwise.adapters.http.loops import run
from chipwise.adapters.http.state import Clocks, GatewayState
from chipwise.serving.keys import Key, KeyRing, digest_of
from chipwise.serving.limits import KeyLimits
from chipwise.serving.replica import Address, Replica
from chipwise.serving.routing import ReplicaPool, policy_named
from chipwise.serving.settings import GatewaySettings, Prices

SECRET = "benchmark-secret-0123456789abcdef"
KEYS = 1000
STAMP = b'"t":'
PROMPT = "Explain how a gateway passes tokens on, in a few sentences. " * 8


async def gateway(port: int, policy: str) -> None:
    """Authentication among a thousand keys, rates and budgets, routing, token counts, metrics and the access log: all on."""
    limits = KeyLimits(requests_per_s=1e6, tokens_per_s=1e9, requests_at_once=10_000, tokens_per_day=1e12, usd_per_day=1e6)
    keys = [Key(f"key-{number}", digest_of(f"{SECRET}-{number}"), "team", limits=limits) for number in range(KEYS - 1)]
    keys.append(Key("bench", digest_of(SECRET), "team", limits=limits))
    replicas = tuple(Replica(f"replica-{number}", Address("127.0.0.1", port)) for number in range(4))
    pool = ReplicaPool("main", replicas, policy_named(policy, random.random))
    with Path("/dev/null").open("wb", buffering=0) as log:
        state = GatewayState(
            [pool],
            KeyRing(keys),
            GatewaySettings(prices=Prices(1.0, 2.0)),
            Clocks(time.monotonic, time.time),
            random.random,
            log.write,
        )
        print(await Gateway(state).start(Door()), flush=True)
        await asyncio.Event().wait()


class Copied(asyncio.Protocol):
    """One end of a connection whose bytes go to the other end as they are, one replica's connection for each client's."""

    def __init__(self, port: int = 0, other: Copied | None = None) -> None:
        self._port = port
        self.other = other
        self.transport: asyncio.Transport | None = None
        self._early = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        if self.other is None:
            self._opening = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        _, self.other = await asyncio.get_running_loop().create_connection(lambda: Copied(other=self), "127.0.0.1", self._port)
        assert self.other.transport is not None
        self.other.transport.write(self._early)

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)
        else:
            self._early += data

    def connection_lost(self, error: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


async def bare(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: Copied(port), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


def message(streams: bool) -> bytes:
    document = {"model": "tiny", "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 100, "stream": streams}
    body = json.dumps(document).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\nuser-agent: bench/1\r\n"
        f"content-type: application/json\r\nauthorization: Bearer {SECRET}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Reader(asyncio.Protocol):
    """Sends a request again when its answer is complete, `rounds` times."""

    def __init__(self, request: bytes, rounds: int, streams: bool, seconds: list[float]) -> None:
        self._request = request
        self._left = rounds
        self._streams = streams
        self._seconds = seconds
        self._data = b""
        self._sent = 0.0
        self.events = 0
        self.failed = False
        self.over = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._ask()

    def _ask(self) -> None:
        if not self._left:
            self._transport.close()
            return
        self._left -= 1
        self._data = b""
        self._sent = time.monotonic()
        self._transport.write(self._request)

    def connection_lost(self, error: Exception | None) -> None:
        self.failed = self._left > 0
        if not self.over.done():
            self.over.set_result(None)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        if self._streams:
            position = data.find(STAMP)
            while position >= 0:
                self.events += 1
                self._seconds.append(now - float(data[position + 4 : position + 18]))
                position = data.find(STAMP, position + 18)
            self._data = self._data[-16:] + data
            if self._data.endswith(b"0\r\n\r\n"):
                self._ask()
            return
        self._data += data
        head, found, body = self._data.partition(b"\r\n\r\n")
        lower = head.lower()
        if not found:
            return
        at = lower.find(b"content-length:")
        is_whole = body.endswith(b"0\r\n\r\n") if at < 0 else len(body) >= int(lower[at + 15 :].split(b"\r\n", 1)[0])
        if is_whole:
            self.events += head.startswith(b"HTTP/1.1 200")
            self._seconds.append(now - self._sent)
            self._ask()


async def client(port: int, streams: bool, at_once: int, rounds: int) -> None:
    loop = asyncio.get_running_loop()
    seconds: list[float] = []
    readers = []
    for _ in range(at_once):
        _, reader = await loop.create_connection(lambda: Reader(message(streams), rounds, streams, seconds), "127.0.0.1", port)
        readers.append(reader)
    await asyncio.gather(*(reader.over for reader in readers))
    seconds.sort()
    at = [seconds[min(len(seconds) - 1, int(share * len(seconds)))] if seconds else float("nan") for share in (0.5, 0.99)]
    events = sum(reader.events for reader in readers)
    print(json.dumps({"events": events, "p50": at[0], "p99": at[1], "failed": sum(reader.failed for reader in readers)}))


if __name__ == "__main__":
    part, port, *rest = sys.argv[1:]
    match part:
        case "gateway":
            run(gateway(int(port), rest[0] if rest else "least-work"))
        case "bare":
            run(bare(int(port)))
        case "streams":
            run(client(int(port), True, int(rest[0]), int(rest[1])))
        case "requests":
            run(client(int(port), False, int(rest[1]), int(rest[0]) // int(rest[1])))
