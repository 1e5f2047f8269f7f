"""Time of `make test` with two workers: what a person waits for, and what it costs the machine.

The wall time holds for two idle cores; CPU seconds of a busy machine are higher as well, by up to a half.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from time import perf_counter

from figure import ROOT, Figure

SUITE = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-m", "not e2e"]


def figures() -> Iterator[Figure]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    done = subprocess.run(SUITE, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter() - start
    if done.returncode:
        raise SystemExit("The tests fail, so their time says nothing: run make test.")
    yield Figure("test_suite_wall", wall, "s", {"max": 100.0})
    yield Figure("test_suite_cpu", after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, "s", {"max": 200.0})
