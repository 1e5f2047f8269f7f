"""A load test against a stand-in: all is sent when it is due, and all is accounted for."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from chipwise.adapters.http.load import LoadTest, Patience, Target
from chipwise.serving.arrivals import constant
from chipwise.serving.load_report import LoadGoals, LoadReport, summarise
from chipwise.serving.replica import Address
from gateway_harness import CHAT, STREAM
from token_server import FINISH, ROLE, TokenServer


def report(server: TokenServer, body: bytes, due: np.ndarray, patience: Patience | None = None) -> LoadReport:
    async def scene() -> LoadReport:
        await server.start()
        test = LoadTest(Target(Address("127.0.0.1", server.port)), due, [body], patience or Patience())
        shots = await test.run()
        server.stop()
        await asyncio.sleep(0)
        return summarise(shots, LoadGoals())

    return asyncio.run(scene())


def test_streams_are_timed_token_by_token() -> None:
    seen = report(TokenServer(tokens=10, interval_s=0.01, prefill_s=0.05), STREAM, constant(100.0, 0.2))
    assert seen.answered == seen.requests == 20
    assert seen.first_token is not None
    assert seen.per_token is not None
    assert seen.first_token.p50 >= 0.05
    assert seen.per_token.p50 >= 0.009


def test_an_event_without_content_is_no_token() -> None:
    server = TokenServer(tokens=5, interval_s=0.005, prefill_s=0.08)
    server.opening = ROLE
    server.last = dict.fromkeys(server.events, FINISH)  # no usage is reported
    seen = report(server, STREAM, constant(100.0, 0.05))
    assert seen.first_token is not None
    assert seen.first_token.p50 >= 0.08
    assert seen.tokens_per_s * seen.duration_s == pytest.approx(5 * seen.answered)


def test_arrivals_do_not_wait_for_answers() -> None:
    """Twenty requests are due within 0.2 s, and each takes 0.3 s: a closed loop with one connection would take 6 s."""
    seen = report(TokenServer(prefill_s=0.3), CHAT, constant(100.0, 0.2))
    assert seen.answered == 20
    assert seen.duration_s < 2.0


def test_waiting_for_a_connection_counts() -> None:
    seen = report(TokenServer(prefill_s=0.1), CHAT, constant(100.0, 0.05), Patience(connections=1))
    assert seen.total is not None
    assert seen.answered == 5
    assert seen.total.highest >= 0.4


def test_errors_are_counted_by_kind() -> None:
    server = TokenServer()
    server.faults.refuse_status = 429
    assert report(server, CHAT, constant(100.0, 0.05)).errors == {"status_429": 5}
    server.faults.refuse_status = 0
    server.faults.close_before_answer = True
    assert report(server, CHAT, constant(100.0, 0.05)).errors == {"closed_before_answer": 5}
    server.faults.close_before_answer = False
    server.faults.hangs = True
    assert report(server, CHAT, constant(100.0, 0.05), Patience(answer_s=0.1)).errors == {"not_ended": 5}
