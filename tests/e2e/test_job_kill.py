"""Real training processes, killed at random moments: the short version of benchmarks/faults/checkpoint.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import chipwise.job as job

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.e2e

TRAIN = """
import sys, time
import numpy as np
import chipwise.job as job

state = {"w": np.zeros(8), "rng": np.random.default_rng(1)}
for step in job.steps(state, total=60, every=5, directory=sys.argv[1]):
    print(step, flush=True)
    state["w"] += state["rng"].normal(size=8)
    time.sleep(float(sys.argv[2]))
print(state["w"].tobytes().hex())
"""


def train(directory: Path, pause_s: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", TRAIN, str(directory), str(pause_s)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_forty_kills_lose_nothing_and_nothing_damaged_is_believed() -> None:
    script = [sys.executable, str(ROOT / "benchmarks" / "faults" / "checkpoint.py"), "40", "--seed", str(os.getpid())]
    done = subprocess.run(script, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    told = dict(line.rsplit(maxsplit=1) for line in done.stdout.splitlines() if line.split()[-1].isdigit())
    assert told["kills"] == "40"
    assert told["lost steps beyond checkpoint"] == "0"
    assert told["corrupted accepted"] == "0"


def test_a_program_told_to_leave_exits_with_75_and_ends_bit_equal(tmp_path: Path) -> None:
    wanted = train(tmp_path / "undisturbed", 0).communicate(timeout=300)[0]
    codes = []
    for _ in range(20):
        process = train(tmp_path / "told", 0.02)
        assert process.stdout is not None
        first = process.stdout.readline()  # the first step is under way, or all of them are done
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        printed, complained = process.communicate(timeout=300)
        codes.append(process.returncode)
        if process.returncode == 0:
            assert (first + printed).split()[-1:] == wanted.split()[-1:]  # all of it may stand in the first line
            break
        if process.returncode == -signal.SIGTERM:  # it had done its steps, and nothing listened any more
            assert (first + printed).split()[-1] in ("59", wanted.split()[-1]), complained
            continue
        assert process.returncode == job.LEFT, complained
    assert codes[-1] == 0
    assert job.LEFT in codes
