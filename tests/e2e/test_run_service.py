"""A service on this machine, and one that is asked to go, as their owner sees them: the real command, real processes."""

from __future__ import annotations

import re
import socket
import sys
import time
from collections.abc import Callable

import pytest

from patience import deadline
from run_machine import Machine, machine, python

pytestmark = pytest.mark.e2e
__all__ = ["machine"]  # a fixture, taken by its name

SERVES_LATER = """
import http.server, pathlib, sys, time
while not pathlib.Path("go").exists(): time.sleep(0.05)
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


def test_a_service_that_does_not_answer_yet_is_told_so_and_when_it_did(machine: Machine) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    machine.program(SERVES_LATER)
    command = f"[{sys.executable}, program.py, '{port}']"
    (machine.home / "work" / "echo.yaml").write_text(
        "kind: serve\nname: echo\nmodel: llama-3.2-1b\narrival: {rate: 1 req/s}\ninput_tokens: 10\noutput_tokens: 10\n"
        f"program: {{command: {command}, port: {port}, health: /health}}\n"
    )
    id = machine.submitted("echo.yaml")
    url = f"http://127.0.0.1:{port}/health"
    _until(lambda: machine.job(id)["waiting"] == f"it does not pass its health check yet ({url}: Connection refused)")
    assert "it does not pass its health check yet" in machine("ps", env={"COLUMNS": "200"}).stdout
    shown = machine("describe", id, env={"COLUMNS": "200"}).stdout
    assert re.search(rf"waits +it does not pass its health check yet \({url}: Connection refused\), for [\d.]+ s\n", shown)
    (machine.home / "work" / "go").touch()
    _until(lambda: machine.job(id)["waiting"] == "")
    assert machine("describe", id).stdout.count("it passes its health check") == 1
    assert "check" not in machine("ps", env={"COLUMNS": "200"}).stdout
    machine("stop", "--now", "--wait", id)


def test_one_that_is_leaving_tells_until_when_it_has_time(machine: Machine) -> None:
    grace_s = 900.0  # more than all commands of this test take on the slowest machine
    code = f"import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep({grace_s})"
    id = machine.submitted("--grace", f"{grace_s:g}s", *python(code))
    _until(lambda: "ready" in machine("logs", id).stdout)
    before = time.time()
    machine("stop", id)
    job = machine.until(id, "leaving")
    assert before <= job["leave_by"] - grace_s <= time.time()
    until = time.strftime("%m-%d %H:%M:%S", time.localtime(job["leave_by"]))
    assert re.search(rf"exits +by {until}, in 1[0-5][.0-9]* min[^;]*; then it is killed", machine("describe", id).stdout)
    machine("stop", "--now", "--wait", id)
    assert machine.job(id)["leave_by"] is None


def _until(found: Callable[[], bool], seconds: float = 30) -> None:
    late = deadline(seconds)
    while not found():
        assert time.monotonic() < late
        time.sleep(0.1)
