"""A gateway before stand-ins of replicas, in the event loop of a test, and a client that sends bytes as they are."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from chipwise.adapters.http.gateway import Door, Gateway
from chipwise.adapters.http.state import Clocks, GatewayState
from chipwise.serving.keys import Key, KeyRing
from chipwise.serving.replica import Address, Replica
from chipwise.serving.routing import ReplicaPool, policy_named
from chipwise.serving.settings import GatewaySettings
from token_server import TokenServer

CHAT = b'{"model":"tiny","messages":[{"role":"user","content":"hello there"}],"max_tokens":5}'
STREAM = b'{"model":"tiny","messages":[{"role":"user","content":"hello there"}],"stream":true}'


@dataclass(slots=True)
class Running:
    gateway: Gateway
    servers: list[TokenServer]
    pool: ReplicaPool
    port: int
    log: bytearray

    async def send(self, data: bytes, *, ends: bool = True) -> bytes:
        """What comes back until the gateway closes, or one answer where it keeps the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            await writer.drain()
            return await asyncio.wait_for(reader.read() if ends else read_answer(reader), 5.0)
        finally:
            writer.close()


async def read_answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in head:
        return head + await reader.readuntil(b"0\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    return head + await reader.readexactly(length)


def post(path: str, body: bytes, *headers: str, closes: bool = True) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: x", f"content-length: {len(body)}", *headers]
    if closes:
        lines.append("connection: close")
    return "\r\n".join((*lines, "", "")).encode() + body


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join((f"GET {path} HTTP/1.1", "host: x", "connection: close", *headers, "", "")).encode()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@asynccontextmanager
async def running(
    servers: Sequence[TokenServer],
    settings: GatewaySettings | None = None,
    *,
    keys: Sequence[Key] = (),
    policy: str = "round-robin",
    at_once: int = 100,
    models: frozenset[str] = frozenset(),
) -> AsyncIterator[Running]:
    replicas = []
    for number, server in enumerate(servers):
        await server.start()
        replicas.append(Replica(f"replica-{number}", Address("127.0.0.1", server.port), most_requests=at_once))
    log = bytearray()
    chance = random.Random(1)
    pool = ReplicaPool("main", tuple(replicas), policy_named(policy, chance.random), models)
    state = GatewayState(
        [pool], KeyRing(keys), settings or GatewaySettings(), Clocks(time.monotonic, time.time), chance.random, log.extend
    )
    gateway = Gateway(state)
    port = await gateway.start(Door())
    try:
        yield Running(gateway, list(servers), pool, port, log)
    finally:
        gateway.close()
        for server in servers:
            server.stop()
        await asyncio.sleep(0)
