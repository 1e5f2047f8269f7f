"""`chipwise watch` as a person types it: this machine, a process, a job that really runs, recordings, and whatever is wrong."""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.adapters import exposition_server
from chipwise.adapters.recordings import NAME, Appender
from chipwise.errors import BadInput, OutsideFailed
from chipwise.observe.recording import load
from chipwise.observe.sample import HOST, Recording, Sample
from command import ROOT, Chipwise

HEADER = Recording("2026-11-18T08:00:00Z", labels={"job": "train-1"}, usd_per_hour=3600.0)


def recording(path: Path) -> Path:
    appender = Appender(path, HEADER)
    for second in range(60):
        gpu = {"busy": 0.5 + second / 200, "sm_active": 0.25, "power": 3600.0}
        appender.add([Sample(float(second), "nvidia:0", gpu), Sample(float(second), HOST, {"cpu": 0.5, "cores": 4.0})])
    return path


def test_this_machine_once(chipwise: Chipwise) -> None:
    done = chipwise("watch", "--once", "--every", "50ms")
    assert done.code == 0
    assert "this machine" in done.out
    assert "CPU" in done.out


def test_a_process_as_lines_of_json_and_a_recording(chipwise: Chipwise, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    done = chipwise("watch", "--pid", str(os.getpid()), "--every", "50ms", "--for", "300ms", "--json", "--record", str(path))
    assert done.code == 0
    assert '"program"' in done.out.splitlines()[0]
    assert len(load(path).recording.samples) >= 4
    assert chipwise("watch", "--record", str(path), "--once").code == 2


def test_a_recording_is_replayed_with_its_summary(chipwise: Chipwise, tmp_path: Path) -> None:
    path = recording(tmp_path / "run.jsonl")
    done = chipwise("watch", "--replay", str(path))
    assert done.code == 0
    assert "train-1" in done.out
    assert "0.059 kWh" in done.out
    summary = chipwise("watch", "--replay", str(path), "--json").json["summary"]
    assert summary["devices"]["nvidia:0"]["sm_active"]["p50"] == 0.25
    assert summary["usd"] == pytest.approx(59.0)


def test_a_cut_recording_is_shown_and_said(chipwise: Chipwise, tmp_path: Path) -> None:
    path = recording(tmp_path / "run.jsonl")
    path.write_bytes(path.read_bytes()[:-20])
    done = chipwise("watch", "--replay", str(path))
    assert done.code == 0
    assert "is missing" in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nosuch"], 2, "No job is called 'nosuch'"),
        (["--pid", "3999999"], 2, "There is no process 3999999"),
        (["x", "--pid", "1"], 2, "cannot be combined"),
        (["--replay", "none.jsonl"], 2, "There is no file none.jsonl"),
        (["--replay", "/dev/null"], 2, "is a device"),
        (["--replay", "x", "--all"], 2, "--replay cannot be combined"),
        (["--scrape", "localhost:8000"], 2, "not the address of an endpoint"),
        (["--scrape", "http://127.0.0.1:9/metrics"], 3, "does not answer"),
        (["--serve", "nine"], 2, "not an address to serve at"),
        (["--record", "/no/such/folder/x"], 2, "cannot be written"),
    ],
)
def test_what_cannot_be_is_one_sentence(chipwise: Chipwise, arguments: list[str], code: int, said: str) -> None:
    done = chipwise("watch", "--once", *arguments)
    assert done.code == code
    assert said in done.err
    assert "a bug in chipwise" not in done.err


def test_a_job_that_runs_here_is_watched_by_default(chipwise: Chipwise) -> None:
    own = replace(chipwise, environment={"CHIPWISE_GPUS": "none", "CHIPWISE_WATCH_S": "0.1", "PYTHONPATH": str(ROOT / "src")})
    program = "import time; time.sleep(0.6)"
    assert own("run", "--name", "busy", "--", sys.executable, "-S", "-c", program).code == 0
    done = chipwise("watch", "busy", "--once")
    assert done.code == 0
    assert "host" in done.out
    [job] = chipwise("ps", "--all", "--json").json
    [path] = [path for path in chipwise.home.rglob(NAME) if job["id"] in str(path)]
    loaded = load(path).recording
    assert loaded.labels["job"] == job["id"]
    assert any(sample.source == "program" and sample.value("memory_used") for sample in loaded.samples)
    assert (path.parent / "watched.json").exists()


def test_metrics_are_served_on_this_machine_only() -> None:
    server = exposition_server.Server(exposition_server.address(":0"), lambda: "up 1\n", "text/plain")
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=5) as answer:
            assert (answer.status, answer.read()) == (200, b"up 1\n")
        with pytest.raises(OutsideFailed, match="Nothing can be served"):
            exposition_server.Server(("127.0.0.1", server.port), lambda: "", "text/plain")
        with pytest.raises(urllib.request.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{server.port}/etc/passwd", timeout=5)
    finally:
        server.close()


@pytest.mark.parametrize("text", ["", "x", ":99999", "a b:1", "http://x:1/"])
def test_an_address_that_is_none(text: str) -> None:
    with pytest.raises(BadInput, match="not an address"):
        exposition_server.address(text)


def test_addresses() -> None:
    assert exposition_server.address(":9400") == ("127.0.0.1", 9400)
    assert exposition_server.address("9400") == ("127.0.0.1", 9400)
    assert exposition_server.address("0.0.0.0:9400") == ("0.0.0.0", 9400)


def test_a_client_that_breaks_off_is_no_news(capfd: pytest.CaptureFixture[str]) -> None:
    """Whoever reaches the port could else fill the terminal of whoever watches."""
    asked = threading.Event()

    def text() -> str:
        asked.set()
        return "up 1\n" * 10**6

    server = exposition_server.Server(exposition_server.address(":0"), text, "text/plain")
    try:
        for request in (b"GET /metr", b"GET /metrics HTTP/1.1\r\n\r\n"):
            client = socket.create_connection(("127.0.0.1", server.port))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(request)
            if request.endswith(b"\n"):
                asked.wait(10)
            time.sleep(0.2)
            client.close()  # by a reset
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=10) as answer:
            assert answer.status == 200
    finally:
        server.close()
    assert capfd.readouterr().err == ""


def test_a_watch_serves_while_it_runs(chipwise: Chipwise) -> None:
    answers: list[str] = []

    def ask() -> None:
        until = time.monotonic() + 10
        while time.monotonic() < until and not answers:
            try:
                with urllib.request.urlopen("http://127.0.0.1:19471/metrics", timeout=1) as answer:
                    if text := answer.read().decode():
                        answers.append(text)
            except OSError:
                time.sleep(0.05)

    reader = threading.Thread(target=ask)
    reader.start()
    done = chipwise("watch", "--serve", "127.0.0.1:19471", "--every", "50ms", "--for", "600ms")
    reader.join()
    assert done.code == 0
    assert "chipwise_host_memory_used_bytes" in answers[0]
