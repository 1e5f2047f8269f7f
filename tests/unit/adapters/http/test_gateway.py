"""Requests through a gateway: both APIs, streamed and whole, with every way in which a replica can fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from chipwise.serving.breaker import BreakerRule
from chipwise.serving.keys import Key, digest_of
from chipwise.serving.limits import KeyLimits
from chipwise.serving.settings import GatewaySettings, Prices, Timeouts
from gateway_harness import CHAT, STREAM, Running, get, post, read_answer, running, status
from token_server import FINISH, ROLE, TokenServer

SECRET = "a-long-secret-of-a-test-0123456789"
KEY = Key("ann", digest_of(SECRET), team="research")
QUICK = Timeouts(first_byte_s=0.15, between_bytes_s=0.15, queue_s=0.3)


def until(check: Callable[[], bool]) -> Coroutine[Any, Any, None]:
    async def wait() -> None:
        async with asyncio.timeout(5.0):
            while not check():
                await asyncio.sleep(0.005)

    return wait()


def log_lines(run: Running) -> list[dict[str, Any]]:
    run.gateway.state.log.flush()
    return [json.loads(line) for line in run.log.decode().splitlines()]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/generate", "/tokenize"])
def test_a_whole_answer_is_passed_as_it_is(path: str) -> None:
    async def scene() -> None:
        server = TokenServer()
        async with running([server]) as run:
            answer = await run.send(post(path, CHAT))
            assert status(answer) == 200
            assert answer.split(b"\r\n\r\n", 1)[1] == server.whole[path.encode()].split(b"\r\n\r\n", 1)[1]

    asyncio.run(scene())


@pytest.mark.parametrize("path", ["/v1/models", "/info", "/health", "/metrics"])
def test_questions_about_the_service_are_answered(path: str) -> None:
    async def scene() -> None:
        async with running([TokenServer()]) as run:
            assert status(await run.send(get(path))) == 200

    asyncio.run(scene())


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/generate_stream"])
def test_every_event_of_a_stream_arrives_and_is_counted(path: str) -> None:
    async def scene() -> None:
        server = TokenServer(tokens=7, interval_s=0.001)
        async with running([server]) as run:
            answer = await run.send(post(path, STREAM))
            assert answer.count(b"data: {") >= 7
            assert answer.endswith(b"0\r\n\r\n")
            [line] = log_lines(run)
            assert line["answer_tokens"] == 7
            assert line["first_token_us"] > 0
            assert server.seen.gone == 0

    asyncio.run(scene())


def test_the_first_token_is_the_first_event_with_content() -> None:
    async def scene() -> None:
        server = TokenServer(tokens=6, interval_s=0.05, prefill_s=0.1)
        server.opening = ROLE
        server.last = dict.fromkeys(server.events, FINISH)  # no usage is reported
        async with running([server]) as run:
            await run.send(post("/v1/chat/completions", STREAM))
            [line] = log_lines(run)
            assert line["answer_tokens"] == 6
            assert line["first_token_us"] >= 100_000
            assert 25_000 <= line["per_token_us"] < 100_000  # a busy machine sees the first event late and the others on time

    asyncio.run(scene())


def test_connections_are_kept_on_both_sides() -> None:
    async def scene() -> None:
        server = TokenServer()
        async with running([server]) as run:
            reader, writer = await asyncio.open_connection("127.0.0.1", run.port)
            for _ in range(3):
                writer.write(post("/v1/chat/completions", CHAT, closes=False))
                assert status(await read_answer(reader)) == 200
            writer.write(post("/v1/chat/completions", STREAM, closes=False) + post("/v1/chat/completions", CHAT))
            rest = await asyncio.wait_for(reader.read(), 5)  # two at once: their answers come in order
            assert rest.index(b"text/event-stream") < rest.index(b'chat.completion"')
            writer.close()
            assert len(server.connections) == 1

    asyncio.run(scene())


def test_a_client_of_http_1_0_gets_no_chunks() -> None:
    async def scene() -> None:
        async with running([TokenServer(tokens=3)]) as run:
            request = b"POST /v1/chat/completions HTTP/1.0\r\ncontent-length: %d\r\n\r\n%b" % (len(STREAM), STREAM)
            head, body = (await run.send(request)).split(b"\r\n\r\n", 1)
            assert b"chunked" not in head
            assert body.startswith(b"data: {")
            assert body.endswith(b"data: [DONE]\n\n")

    asyncio.run(scene())


def test_an_answer_that_ends_by_closing_is_passed_in_chunks() -> None:
    async def scene() -> None:
        server = TokenServer()
        server.faults.ends_by_closing = True
        async with running([server]) as run:
            answer = await run.send(post("/generate", b'{"inputs":"a"}', closes=False), ends=False)
            assert answer.endswith(b"d\r\nuntil the end\r\n0\r\n\r\n")

    asyncio.run(scene())


def test_chunks_of_a_request_become_one_body() -> None:
    async def scene() -> None:
        server = TokenServer()
        server.seen.keeps = True
        async with running([server]) as run:
            chunks = b"".join(b"%x;a=b\r\n%b\r\n" % (len(part), part) for part in (CHAT[:10], CHAT[10:]))
            head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
            answer = await run.send(head + chunks + b"0\r\nx: y\r\n\r\n", ends=False)
            assert status(answer) == 200
            assert server.seen.bodies == [CHAT]
            assert b"transfer-encoding" not in server.seen.requests[0]

    asyncio.run(scene())


def test_a_client_that_leaves_ends_the_work_of_the_replica() -> None:
    async def scene() -> None:
        server = TokenServer(tokens=10_000, interval_s=0.005)
        async with running([server]) as run:
            reader, writer = await asyncio.open_connection("127.0.0.1", run.port)
            writer.write(post("/v1/chat/completions", STREAM))
            await reader.readuntil(b"tok")
            writer.close()
            await until(lambda: server.seen.gone == 1)
            assert run.pool.replicas[0].requests == 0
            assert log_lines(run)[0]["error"] == "client_left"

    asyncio.run(scene())


@pytest.mark.parametrize("fault", ["close", "status", "down", "bad"])
def test_another_replica_answers_before_the_first_byte(fault: str) -> None:
    async def scene() -> None:
        bad, good = TokenServer(name="bad"), TokenServer(name="good")
        bad.faults = replace(
            bad.faults, close_before_answer=fault == "close", refuse_status=503 * (fault == "status"), bad_bytes=fault == "bad"
        )
        async with running([bad, good]) as run:
            if fault == "down":
                bad.stop()
            for _ in range(4):
                answer = await run.send(post("/v1/chat/completions", CHAT))
                assert status(answer) == 200
                assert b'"good"' in answer
            assert run.gateway.state.metrics.retries >= 2

    asyncio.run(scene())


def test_a_connection_that_the_replica_closed_meanwhile_is_no_failure() -> None:
    async def scene() -> None:
        server = TokenServer()
        async with running([server]) as run:
            await run.send(post("/v1/chat/completions", CHAT))
            for connection in list(server.connections):
                connection.cut()
            assert status(await run.send(post("/v1/chat/completions", CHAT))) == 200
            assert run.pool.replicas[0].breaker.failures == 0
            assert run.gateway.state.metrics.retries == 0

    asyncio.run(scene())


def test_a_stream_that_is_cut_says_so_and_is_not_repeated() -> None:
    async def scene() -> None:
        servers = [TokenServer(tokens=9), TokenServer(tokens=9)]
        for server in servers:
            server.faults.cut_after_events = 3
        async with running(servers) as run:
            answer = await run.send(post("/v1/chat/completions", STREAM))
            assert answer.count(b"chat.completion.chunk") == 3
            assert b'"answer_cut"' in answer
            assert not answer.endswith(b"0\r\n\r\n")
            [line] = log_lines(run)
            assert (line["attempts"], line["error"]) == (1, "answer_cut")

    asyncio.run(scene())


def test_a_replica_that_hangs_is_given_up_in_time() -> None:
    async def scene() -> None:
        server = TokenServer()
        server.faults.hangs = True
        async with running([server], GatewaySettings(timeouts=QUICK)) as run:
            answer = await run.send(post("/v1/chat/completions", CHAT))
            assert status(answer) == 504
            await until(lambda: server.seen.gone == 1)

    asyncio.run(scene())


def test_the_breaker_keeps_requests_from_a_broken_replica_until_a_trial_succeeds() -> None:
    async def scene() -> None:
        server = TokenServer()
        server.faults.close_before_answer = True
        rule = BreakerRule(failures=2, open_s=0.1)
        async with running([server], GatewaySettings(breaker=rule, attempts=1)) as run:
            for _ in range(2):
                assert status(await run.send(post("/v1/chat/completions", CHAT))) == 502
            answer = await run.send(post("/v1/chat/completions", CHAT))
            assert status(answer) == 503
            assert b"retry-after: 1" in answer
            server.faults.close_before_answer = False
            await asyncio.sleep(0.12)
            assert status(await run.send(post("/v1/chat/completions", CHAT))) == 200
            assert run.pool.replicas[0].breaker.open_until is None

    asyncio.run(scene())


def test_requests_wait_for_room_and_are_refused_when_too_many_wait() -> None:
    async def scene() -> None:
        server = TokenServer(tokens=5, interval_s=0.02)
        async with running([server], GatewaySettings(waiting=2), at_once=1) as run:
            requests = [asyncio.create_task(run.send(post("/v1/chat/completions", STREAM))) for _ in range(4)]
            answers = await asyncio.gather(*requests)
            assert sorted(map(status, answers)) == [200, 200, 200, 429]
            [refused] = [answer for answer in answers if status(answer) == 429]
            assert b"retry-after: " in refused
            assert run.pool.replicas[0].requests == 0

    asyncio.run(scene())


def test_who_waits_beyond_the_deadline_is_refused() -> None:
    async def scene() -> None:
        server = TokenServer(tokens=1000, interval_s=0.01)
        async with running([server], GatewaySettings(timeouts=QUICK), at_once=1) as run:
            first = asyncio.create_task(run.send(post("/v1/chat/completions", STREAM)))
            await until(lambda: run.pool.replicas[0].requests == 1)
            assert status(await run.send(post("/v1/chat/completions", CHAT))) == 429
            first.cancel()

    asyncio.run(scene())


def test_keys_are_needed_counted_and_never_passed_on() -> None:
    async def scene() -> None:
        server = TokenServer()
        server.seen.keeps = True
        settings = GatewaySettings(prices=Prices(1000.0, 1000.0))
        async with running([server], settings, keys=[KEY]) as run:
            for header in ("x: y", "authorization: Bearer wrong-wrong-wrong-wrong", f"authorization: Basic {SECRET}"):
                assert status(await run.send(post("/v1/chat/completions", CHAT, header))) == 401
            assert status(await run.send(get("/metrics"))) == 401
            assert status(await run.send(post("/v1/chat/completions", CHAT, f"Authorization: Bearer {SECRET}"))) == 200
            assert SECRET.encode() not in server.seen.requests[0]
            assert SECRET.encode() not in run.log
            metrics = (await run.send(get("/metrics", f"authorization: Bearer {SECRET}"))).decode()
            assert 'answer_tokens_total{key="ann",team="research"} 5' in metrics
            assert 'cost_usd_total{key="ann",team="research"} 0.012' in metrics

    asyncio.run(scene())


def test_a_key_beyond_its_rate_or_budget_waits() -> None:
    async def scene() -> None:
        slow = Key("slow", digest_of(SECRET), limits=KeyLimits(requests_per_s=0.1, burst_s=10.0))
        poor = Key("poor", digest_of(SECRET + "2"), limits=KeyLimits(tokens_per_day=19.0))
        async with running([TokenServer()], keys=[slow, poor]) as run:
            answers = [await run.send(post("/v1/chat/completions", CHAT, f"authorization: Bearer {SECRET}")) for _ in range(2)]
            assert list(map(status, answers)) == [200, 429]
            assert b"retry-after: 10" in answers[1]
            header = f"authorization: Bearer {SECRET}2"
            answers = [await run.send(post("/v1/chat/completions", CHAT, header)) for _ in range(3)]
            assert list(map(status, answers)) == [200, 429, 429]
            assert b"token_budget" in answers[2]

    asyncio.run(scene())


def test_models_of_pools_are_listed_and_others_not_found() -> None:
    async def scene() -> None:
        async with running([TokenServer()], models=frozenset({"tiny"})) as run:
            assert b'"id": "tiny"' in await run.send(get("/v1/models"))
            assert status(await run.send(post("/v1/chat/completions", CHAT))) == 200
            assert status(await run.send(post("/v1/chat/completions", CHAT.replace(b"tiny", b"huge")))) == 404

    asyncio.run(scene())


def test_draining_answers_what_was_begun() -> None:
    async def scene() -> None:
        async with running([TokenServer(tokens=20, interval_s=0.005)]) as run:
            stream = asyncio.create_task(run.send(post("/v1/chat/completions", STREAM)))
            await until(lambda: run.pool.replicas[0].requests == 1)
            assert await run.gateway.drain(5.0)
            assert (await stream).endswith(b"0\r\n\r\n")
            with pytest.raises(OSError, match=r".*"):
                await asyncio.open_connection("127.0.0.1", run.port)

    asyncio.run(scene())


def test_the_id_of_a_request_is_that_of_its_client_where_it_is_harmless() -> None:
    async def scene() -> None:
        async with running([TokenServer()]) as run:
            assert b"x-request-id: abc-1\r\n" in await run.send(post("/generate", b'{"inputs":"a"}', "x-request-id: abc-1"))
            answer = await run.send(post("/generate", b'{"inputs":"a"}', 'x-request-id: "}{'))
            assert b'"}{' not in answer
            assert [line["status"] for line in log_lines(run)] == [200, 200]

    asyncio.run(scene())
