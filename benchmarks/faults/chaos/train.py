"""A job of the chaos run: a few steps of training on one GPU, whose end can be compared with that of an undisturbed run.

    train.py STEPS NUMBER

Every tenth leaves a process behind that has no environment and a session of its own: it must be gone when the job is over.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import chipwise.job as job

EVERY = 5  # steps between checkpoints
STRAY = "chaos-stray"


def result(steps: int) -> list[int]:
    state = {"sum": 0, "mixed": 1}
    for step in range(steps):
        learn(state, step)
    return [state["sum"], state["mixed"]]


def learn(state: dict[str, int], step: int) -> None:
    state["sum"] += step
    state["mixed"] = (state["mixed"] * 48_271 + step) % 2_147_483_647


def main(steps: int, number: int) -> None:
    for name in ("alone.lock", f"../gpu{os.environ['CUDA_VISIBLE_DEVICES']}.lock"):
        try:
            fcntl.flock(os.open(name, os.O_RDWR | os.O_CREAT, 0o666), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            Path("two-at-once").write_text(name)
            sys.exit(1)
    if number % 10 == 0:
        stray = [sys.executable, "-c", "import time; time.sleep(3600)", STRAY, str(number)]
        subprocess.Popen(stray, env={}, start_new_session=True, close_fds=True)
    state = {"sum": 0, "mixed": 1}
    with Path("steps.log").open("a", buffering=1) as log:
        for step in job.steps(state, total=steps, every=EVERY):
            learn(state, step)
            log.write(f"{os.environ['CHIPWISE_ATTEMPT']} {step}\n")
            time.sleep(0.03)
    Path("result.json.new").write_text(json.dumps([state["sum"], state["mixed"]]))
    Path("result.json.new").replace("result.json")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
