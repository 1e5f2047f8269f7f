"""Time of `make test` with three workers, as on two cores: what a person waits for, and what it costs the machine.

The goals are for two idle cores of an ordinary machine. Machines differ and are shared, so a loop of plain Python is timed
before and after: `REFERENCE_S` of CPU is what an ordinary core of a server takes for it, and the scaled figures say what the
tests would take there. The figures as measured are printed beside them.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from time import perf_counter, process_time

from figure import ROOT, Figure

SUITE = [sys.executable, "-m", "pytest", "-q", "--forks", "3", "-m", "not e2e and not long"]
REFERENCE_S = 0.45


def figures() -> Iterator[Figure]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    first = loop_seconds()
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    done = subprocess.run(SUITE, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter() - start
    if done.returncode:
        raise SystemExit("The tests fail, so their time says nothing: run make test.")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    slower = max(1.0, (first + loop_seconds()) / 2 / REFERENCE_S)
    yield Figure("test_suite_wall_here", wall, "s", {})
    yield Figure("test_suite_cpu_here", cpu, "s", {})
    yield Figure("test_suite_core_slower_than_reference", slower, "times", {})
    yield Figure("test_suite_wall", wall / slower, "s", {"max": 100.0})
    yield Figure("test_suite_cpu", cpu / slower, "s", {"max": 200.0})


def loop_seconds() -> float:
    start, total = process_time(), 0
    for number in range(5_000_000):
        total += number * number
    return process_time() - start
