"""The gateway of a service: replicas come, go, are lost and are back while requests run; the file of the service says which."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from chipwise.adapters import state_files
from chipwise.adapters.http.gateway import Door
from chipwise.adapters.http.service_gateway import SEEN, SERVICE, ServiceGateway
from chipwise.serving.engine import ReplicaRequest
from chipwise.serving.keys import KeyRing
from chipwise.serving.service import ReplicaRecord, ServiceDoor, ServiceRecord, ServiceVersion, read_service, written
from gateway_harness import CHAT, STREAM, Running, get, post, status
from token_server import TokenServer

VERSION = ServiceVersion(1, "command", ReplicaRequest("tiny", "tiny"), 0.0)


def service(*replicas: ReplicaRecord, queue_s: float = 5.0) -> ServiceRecord:
    return ServiceRecord("tiny", ServiceDoor(), (VERSION,), replicas, queue_s=queue_s, revision=len(replicas))


async def client(running: ServiceGateway, body: bytes = CHAT) -> bytes:
    harness = Running(running.gateway, [], running.state.pools[0].pool, running.port, bytearray())
    return await harness.send(post("/v1/chat/completions", body))


async def opened(folder: Path, record: ServiceRecord) -> ServiceGateway:
    state_files.write(folder, SERVICE, written(record), durable=False)
    running = ServiceGateway(folder, record, KeyRing())
    running.take(record)
    running.port = await running.gateway.start(Door())
    return running


async def close(running: ServiceGateway, *servers: TokenServer) -> None:
    running.close()
    for server in servers:
        server.stop()
    await asyncio.sleep(0.01)


def test_what_is_written_of_a_service_is_read_again() -> None:
    record = service(ReplicaRecord("tiny-1", "j", 1, 8001, is_draining=True))
    assert read_service(written(record)) == record


def test_a_request_waits_for_the_only_replica_that_was_lost_and_is_answered_when_it_is_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = TokenServer()
        port = await server.start()
        running = await opened(tmp_path, service(ReplicaRecord("tiny-1", "j", 1, port)))
        assert status(await client(running)) == 200
        server.stop()
        await asyncio.sleep(0.02)
        waiting = [asyncio.ensure_future(client(running)) for _ in range(20)]
        await asyncio.sleep(0.1)
        assert not any(task.done() for task in waiting)
        again = TokenServer()
        await again.start(port)
        assert [status(answer) for answer in await asyncio.gather(*waiting)] == [200] * 20
        await close(running, again)

    asyncio.run(scenario())


def test_requests_that_have_not_begun_to_stream_go_to_another_replica_when_theirs_dies(tmp_path: Path) -> None:
    async def scenario() -> None:
        slow, other = TokenServer(prefill_s=0.3), TokenServer()
        records = [ReplicaRecord(f"tiny-{number}", "j", 1, await server.start()) for number, server in enumerate((slow, other))]
        running = await opened(tmp_path, service(*records))
        while any(replica.is_away for replica in running.state.pools[0].pool.replicas):
            await asyncio.sleep(0.01)
        waiting = [asyncio.ensure_future(client(running)) for _ in range(20)]
        await asyncio.sleep(0.1)
        slow.stop()
        assert [status(answer) for answer in await asyncio.gather(*waiting)] == [200] * 20
        await close(running, slow, other)

    asyncio.run(scenario())


def test_a_draining_replica_gets_nothing_new_and_ends_its_streams_before_it_is_taken_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        old, new = TokenServer(tokens=10, interval_s=0.02), TokenServer()
        first = ReplicaRecord("tiny-1", "j", 1, await old.start())
        running = await opened(tmp_path, service(first))
        streams = [asyncio.ensure_future(client(running, STREAM)) for _ in range(10)]
        await asyncio.sleep(0.1)
        second = ReplicaRecord("tiny-2", "j", 1, await new.start())
        changed = service(first, second).draining({"tiny-1"})
        state_files.write(tmp_path, SERVICE, written(changed), durable=False)
        running.look()
        old.seen.keeps = True
        assert all(status(answer) == 200 for answer in await asyncio.gather(*(client(running) for _ in range(10))))
        assert old.seen.requests == []
        answers = await asyncio.gather(*streams)
        assert all(answer.count(b'"tok "') == 10 and b"[DONE]" in answer for answer in answers)
        running.look()
        await asyncio.sleep(0.25)
        running.look()
        seen = state_files.read(tmp_path, SEEN)
        assert seen is not None
        assert seen["revision"] == 2
        assert seen["replicas"]["tiny-1"] == {"requests": 0, "tokens": 0, "away": False, "draining": True, "open": False}
        running.take(changed.without({"tiny-1"}))
        assert status(await client(running)) == 200
        await close(running, old, new)

    asyncio.run(scenario())


def test_a_service_without_replicas_lets_requests_wait_for_the_first(tmp_path: Path) -> None:
    async def scenario() -> None:
        running = await opened(tmp_path, service())
        waiting = asyncio.ensure_future(client(running))
        await asyncio.sleep(0.05)
        server = TokenServer()
        running.take(service(ReplicaRecord("tiny-1", "j", 1, await server.start())))
        assert status(await waiting) == 200
        await close(running, server)

    asyncio.run(scenario())


def test_a_request_to_a_service_that_sleeps_waits_longer_than_others_and_is_counted(tmp_path: Path) -> None:
    """Its first replica needs longer to start than a request waits for a busy one."""

    async def scenario() -> None:
        asleep = replace(service(queue_s=0.2), fewest_replicas=0, most_replicas=2, cold_start_s=1.0)
        running = await opened(tmp_path, asleep)
        harness = Running(running.gateway, [], running.state.pools[0].pool, running.port, bytearray())
        assert status(await harness.send(get("/health"))) == 200
        assert b'"id": "tiny"' in await harness.send(get("/v1/models"))
        waiting = asyncio.ensure_future(client(running))
        await asyncio.sleep(0.7)
        running.look()
        seen = state_files.read(tmp_path, SEEN)
        assert seen is not None
        assert (seen["waiting"], seen["arrived"], seen["answered"]) == (1, 1, 0)
        server = TokenServer()
        running.take(replace(asleep, replicas=(ReplicaRecord("tiny-1", "j", 1, await server.start()),)))
        assert status(await waiting) == 200
        assert running.state.answered == 1
        await close(running, server)

    asyncio.run(scenario())


def test_a_service_that_does_not_sleep_is_not_healthy_without_replicas(tmp_path: Path) -> None:
    async def scenario() -> None:
        running = await opened(tmp_path, service(queue_s=0.2))
        harness = Running(running.gateway, [], running.state.pools[0].pool, running.port, bytearray())
        assert status(await harness.send(get("/health"))) == 503
        assert status(await client(running)) == 429
        await close(running)

    asyncio.run(scenario())


def test_a_service_that_had_little_to_do_does_not_refuse_those_who_wait_for_a_lost_replica(tmp_path: Path) -> None:
    """What it did while nobody waited says nothing of what it can do."""

    async def scenario() -> None:
        server = TokenServer()
        port = await server.start()
        running = await opened(tmp_path, service(ReplicaRecord("tiny-1", "j", 1, port), queue_s=2.0))
        for _ in range(3):
            assert status(await client(running)) == 200
            await asyncio.sleep(0.3)
        server.stop()
        await asyncio.sleep(0.02)
        waiting = [asyncio.ensure_future(client(running)) for _ in range(30)]
        await asyncio.sleep(0.1)
        again = TokenServer()
        await again.start(port)
        assert [status(answer) for answer in await asyncio.gather(*waiting)] == [200] * 30
        await close(running, again)

    asyncio.run(scenario())
