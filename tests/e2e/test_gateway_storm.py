"""The gateway under trouble, with real processes: short versions of benchmarks/faults/gateway.py, and crowds of clients."""

from __future__ import annotations

import asyncio
import resource
import socket
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest

from gateway_harness import CHAT, STREAM
from gateway_processes import ending, started
from gateway_storm import CUT, leaks, storm

pytestmark = pytest.mark.e2e
PATH = "/v1/chat/completions"
MEBIBYTE = 1 << 20


def test_replicas_fail_in_every_way_and_the_gateway_restarts_while_requests_come(tmp_path: Path) -> None:
    seen = storm(tmp_path, per_s=60.0, duration_s=40.0)
    assert seen.requests == 2400
    assert seen.restarts >= 2
    assert min(seen.killed, seen.stopped, seen.faults) >= 1
    assert set(seen.errors) <= {CUT}, seen  # streams that had begun, and nothing else
    assert seen.p99_s < 8.0


def test_memory_and_sockets_do_not_grow_with_requests() -> None:
    seen = leaks(requests=20_000, per_s=800.0)
    assert seen.failed == 0
    assert seen.grown_bytes < 4 * MEBIBYTE
    assert seen.sockets == 0


def test_ten_thousand_idle_connections_cost_little_and_hurt_nobody() -> None:
    """As many as this process may open; the gateway keeps 8,192 of them, and lets the longest idle ones go."""
    wanted = min(10_000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 500)
    replica, replica_port = started("token_server.py", "--tokens", 10, "--interval", 0.002)
    gateway, port = started("gateway_process.py", replica_port)
    crowd: list[socket.socket] = []
    with ending([gateway, replica]):
        watched = psutil.Process(gateway.pid)
        before = watched.memory_info().rss
        try:
            for number in range(wanted):
                client = socket.create_connection(("127.0.0.1", port), 10.0)
                if number % 3 == 0:
                    client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n")  # and nothing more
                crowd.append(client)
            for body in (CHAT, STREAM):
                connection = HTTPConnection("127.0.0.1", port, timeout=20.0)
                connection.request("POST", PATH, body)
                assert connection.getresponse().read().count(b"tok ") == 10
                connection.close()
            assert watched.memory_info().rss - before < 200 * MEBIBYTE
        finally:
            for client in crowd:
                client.close()


def test_a_stream_without_end_that_its_client_does_not_read_is_bounded() -> None:
    replica, replica_port = started("token_server.py", "--tokens", 1_000_000, "--interval", 0.00001)
    gateway, port = started("gateway_process.py", replica_port)
    with ending([gateway, replica]):
        watched = psutil.Process(gateway.pid)
        before = watched.memory_info().rss
        clients = [socket.create_connection(("127.0.0.1", port), 10.0) for _ in range(20)]
        for client in clients:
            client.sendall(
                b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (PATH.encode(), len(STREAM), STREAM)
            )
        asyncio.run(asyncio.sleep(8.0))
        grown = watched.memory_info().rss - before
        for client in clients:
            client.close()
        assert grown < 100 * MEBIBYTE
        connection = HTTPConnection("127.0.0.1", port, timeout=10.0)
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200
        connection.close()
