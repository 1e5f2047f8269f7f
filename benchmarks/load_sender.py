"""Requests that the load generator sends per CPU second against one dummy token server, and how late it sends them.

Per CPU second of the generator's own process: on a machine that is shared, wall time would measure the neighbours. How late it
sends does suffer from them.

To show coordinated omission the server is stopped for a second in the middle of a test: a closed loop, whose clients wait for
an answer before they send again, has few requests in that second, and its p99 hardly notices.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from figure import ROOT, Figure
from gateway import PARTS, SERVER, process

RATE, SECONDS = 4000.0, 5.0
SLOW_RATE, CLOSED_REQUESTS, CLOSED_CLIENTS = 200.0, 4000, 4
STOPPED_S = 1.0
SEND = """
import json, sys, time
import numpy as np
from chipwise.adapters.http.load import LoadTest, Patience, Target
from chipwise.adapters.http.loops import run
from chipwise.serving.arrivals import poisson
from chipwise.serving.load_report import LoadGoals, summarise
from chipwise.serving.replica import Address
body = b'{"model":"tiny","messages":[{"role":"user","content":"hello"}]}'
due = poisson(float(sys.argv[2]), float(sys.argv[3]), np.random.default_rng(1))
test = LoadTest(Target(Address("127.0.0.1", int(sys.argv[1]))), due, [body], Patience(connections=128))
before = time.process_time()
report = summarise(run(test.run()), LoadGoals())
cpu = time.process_time() - before
seen = {"answered": report.answered, "requests": report.requests, "cpu": cpu, "late": report.lateness.p99}
print(json.dumps({**seen, "p99": report.total.p99}))
"""


def figures() -> Iterator[Figure]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}"}
    with process([*SERVER, "--tokens", "10"]) as (_, port):
        command = [sys.executable, "-c", SEND, str(port), str(RATE), str(SECONDS)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, timeout=120).stdout
    seen = json.loads(printed)
    yield Figure("load_requests_per_cpu_second", seen["answered"] / seen["cpu"], "1/s", {"min": 20_000.0})
    yield Figure("load_answered_share", seen["answered"] / seen["requests"], "share", {"min": 1.0})
    yield Figure("load_lateness_p99", 1e3 * seen["late"], "ms", {"max": 1.0})
    yield Figure("load_open_loop_p99_of_stopped_server", 1e3 * _stopped([SEND], [SLOW_RATE, SECONDS]), "ms", {"min": 500.0})
    closed = _stopped(["requests"], [CLOSED_REQUESTS, CLOSED_CLIENTS])
    yield Figure("load_closed_loop_p99_of_stopped_server", 1e3 * closed, "ms", {})


def _stopped(part: Sequence[str], numbers: Sequence[float]) -> float:
    """The p99 that a client sees of a server that stands still for a second."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}"}
    program = [sys.executable, "-c"] if part == [SEND] else PARTS
    with process([*SERVER, "--tokens", "10", "--prefill", "0.002"]) as (server, port):
        command = [*program, *part, str(port), *map(str, numbers)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as client:
            time.sleep(3.0)
            server.send_signal(signal.SIGSTOP)
            time.sleep(STOPPED_S)
            server.send_signal(signal.SIGCONT)
            printed, _ = client.communicate(timeout=120)
    p99: float = json.loads(printed)["p99"]
    return p99
