"""Requests that the load generator sends per CPU second against one dummy token server, and how late it sends them.

Per CPU second of the generator's own process: on a machine that is shared, wall time would measure the neighbours. How late it
sends does suffer from them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

from figure import ROOT, Figure
from gateway import SERVER, process

RATE, SECONDS = 4000.0, 5.0
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
print(json.dumps({"answered": report.answered, "requests": report.requests, "cpu": cpu, "late": report.lateness.p99}))
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
