"""Doors of the gateway with real processes: TLS by file, a port that processes share, a restart by socket hand-over."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
from collections import Counter
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path

import pytest

from gateway_harness import CHAT, STREAM
from gateway_processes import Process, change, ending, sent, started

pytestmark = pytest.mark.e2e
PATH = "/v1/chat/completions"


def certificate(folder: Path) -> tuple[Path, Path]:
    """For 127.0.0.1, signed by itself."""
    files = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-out", files[0], "-keyout", files[1], *names], check=True, capture_output=True)
    return files


def test_tls_by_file_serves_streams_and_refuses_plain_text_and_old_versions(tmp_path: Path) -> None:
    files = certificate(tmp_path)
    replica, replica_port = started("token_server.py", "--tokens", 20, "--interval", 0.002)
    gateway, port = started("gateway_process.py", replica_port, "--certificate", files[0], "--key", files[1])
    with ending([gateway, replica]):
        context = ssl.create_default_context(cafile=str(files[0]))
        connection = HTTPSConnection("127.0.0.1", port, context=context, timeout=10.0)
        for body in (CHAT, STREAM, CHAT):  # on one connection
            connection.request("POST", PATH, body)
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == 200
            assert text.count(b"tok ") == 20
        connection.close()
        plain = HTTPConnection("127.0.0.1", port, timeout=10.0)
        plain.request("POST", PATH, CHAT)
        with pytest.raises((OSError, HTTPException)):
            plain.getresponse()
        plain.close()
        with pytest.raises(ssl.SSLCertVerificationError):
            HTTPSConnection("127.0.0.1", port, context=ssl.create_default_context(), timeout=10.0).request("GET", "/health")


def test_processes_share_a_port_and_one_that_is_killed_is_missed_by_its_own_clients_only() -> None:
    replica, replica_port = started("token_server.py", "--tokens", 3, "--interval", 0)
    first, port = started("gateway_process.py", replica_port, "--share")
    second, same = started("gateway_process.py", replica_port, "--share", "--listen", port)
    with ending([first, second, replica]):
        assert same == port

        async def scene() -> tuple[Counter[str], Counter[str]]:
            both = await sent(port, 200.0, 1.0, [CHAT])
            first.kill()
            first.wait(10)
            alone = await sent(port, 200.0, 1.0, [CHAT])
            return Counter(both.errors), Counter(alone.errors)

        both, alone = asyncio.run(scene())
        assert both == Counter({"": 200})
        assert alone == Counter({"": 200})


def test_a_restart_by_hand_over_loses_no_request_and_answers_none_twice(tmp_path: Path) -> None:
    """Three restarts in ten seconds while 100 requests a second come, streamed and whole, over kept connections."""
    replica, replica_port = started("token_server.py", "--tokens", 20, "--interval", 0.01, "--controllable")
    offer = tmp_path / "gateway.sock"
    gateway, port = started("gateway_process.py", replica_port, "--offer", offer)
    gateways: list[Process] = [gateway]

    async def scene() -> Counter[str]:
        load = asyncio.create_task(sent(port, 100.0, 10.0, [STREAM, CHAT]))
        for _ in range(3):
            await asyncio.sleep(2.5)
            successor, same = await asyncio.to_thread(
                started, "gateway_process.py", replica_port, "--take", offer, "--offer", offer
            )
            gateways.append(successor)
            assert same == port
        shots = await load
        assert set(shots.events.tolist()[::2]) == {20.0}  # the usage and [DONE] are no tokens
        return Counter(shots.errors)

    with ending([replica]):
        try:
            assert asyncio.run(scene()) == Counter({"": 1000})
            for old in gateways[:-1]:
                assert old.stdout is not None
                assert old.stdout.read() == "drained\n"
                assert old.wait(20) == 0
            assert change(replica_port)["requests"] == 500  # the streams: each began once
        finally:
            with ending(gateways):
                pass


def test_a_successor_that_does_not_start_changes_nothing(tmp_path: Path) -> None:
    replica, replica_port = started("token_server.py", "--tokens", 3, "--interval", 0)
    offer = tmp_path / "gateway.sock"
    gateway, port = started("gateway_process.py", replica_port, "--offer", offer)
    with ending([gateway, replica]):
        with pytest.raises(RuntimeError, match="ended with"):
            started("gateway_process.py", replica_port, "--take", offer, "--certificate", tmp_path / "nowhere.pem")
        connection = HTTPConnection("127.0.0.1", port, timeout=10.0)
        connection.request("POST", PATH, CHAT)
        assert json.loads(connection.getresponse().read())["choices"]
        connection.close()
        assert (offer.stat().st_mode & 0o077) == 0
