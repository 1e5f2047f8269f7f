"""Replicas that fail in every way and clients that leave, at random: nothing is answered twice, nothing held afterwards."""

from __future__ import annotations

import asyncio
import random

import pytest

from chipwise.serving.breaker import BreakerRule
from chipwise.serving.settings import GatewaySettings, Timeouts
from effort import cases
from gateway_harness import CHAT, STREAM, Running, post, running
from token_server import Faults, TokenServer

SETTINGS = GatewaySettings(
    timeouts=Timeouts(first_byte_s=0.3, between_bytes_s=0.3, queue_s=2.0),
    breaker=BreakerRule(failures=3, open_s=0.02, longest_open_s=0.1),
    waiting=50,
)
FAULTS = (
    Faults(),
    Faults(),
    Faults(refuse_status=503),
    Faults(refuse_status=500),
    Faults(close_before_answer=True),
    Faults(cut_after_events=2),
    Faults(bad_bytes=True),
    Faults(hangs=True),
    Faults(ends_by_closing=True),
)


@pytest.mark.chance
@pytest.mark.parametrize("policy", ["least-work", "prefix-affinity"])
def test_nothing_is_held_after_a_storm(policy: str) -> None:
    chance = random.Random(7)

    async def one(run: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", run.port)
        writer.write(post("/v1/chat/completions", chance.choice((CHAT, STREAM))))
        if chance.random() < 0.2:
            await asyncio.sleep(chance.random() * 0.01)
        else:
            answer = await asyncio.wait_for(reader.read(), 10.0)
            assert answer.count(b"HTTP/1.1 ") == 1
            assert answer.split(b" ", 2)[1] in (b"200", b"429", b"500", b"502", b"503", b"504")
        writer.close()

    async def scene() -> None:
        servers = [TokenServer(tokens=5, interval_s=chance.choice((0.0, 0.001))) for _ in range(3)]
        async with running(servers, SETTINGS, policy=policy, at_once=4) as run:
            state = run.gateway.state
            for _ in range(cases(60)):
                for server in servers:
                    server.faults = chance.choice(FAULTS)
                await asyncio.gather(*(one(run) for _ in range(20)))
            async with asyncio.timeout(5.0):
                while state.pending or state.connections:
                    await asyncio.sleep(0.01)
            assert state.body_bytes == 0
            assert [(replica.requests, replica.tokens) for replica in run.pool.replicas] == [(0, 0.0)] * 3
            assert [(pool.line.length, pool.line.tokens) for pool in state.pools] == [(0, 0.0)]
            for server in servers:
                server.faults = Faults()
            await asyncio.sleep(0.15)
            answers = [await run.send(post("/v1/chat/completions", CHAT)) for _ in range(6)]
            assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)

    asyncio.run(scene())
