"""A training program that is killed from outside goes on from its newest checkpoint: the real command, real processes."""

from __future__ import annotations

import sys

import pytest

from run_machine import Machine
from run_machine import machine as machine

pytestmark = pytest.mark.e2e
TRAIN = """
import os, signal, sys, time
import chipwise.job as job

kills = [int(step) for step in sys.argv[1:]]
state = {"seen": []}
for step in job.steps(state, total=12, every=2):
    state["seen"].append(step)
    print(os.environ["CHIPWISE_ATTEMPT"], step, flush=True)
    time.sleep(0.5)
    if kills and step == kills[min(int(os.environ["CHIPWISE_ATTEMPT"]), len(kills)) - 1]:
        os.kill(os.getpid(), signal.SIGKILL)  # as the out-of-memory killer does
print("all", state["seen"] == list(range(12)))
"""


def test_a_killed_program_goes_on_from_its_checkpoint(machine: Machine) -> None:
    id = machine.submitted("-d", "--", sys.executable, machine.program(TRAIN), "5", "99")
    job = machine.until(id, "done", "failed", seconds=60)
    assert job["phase"] == "done", job
    assert [attempt["code"] for attempt in job["attempts"]] == [137, 0]
    printed = machine("logs", id).stdout
    assert "2 4" in printed or "2 5" in printed or "2 6" in printed
    assert "2 0" not in printed.splitlines(), "it began anew"
    assert "all True" in printed


def test_a_program_that_is_killed_at_the_same_step_again_has_failed(machine: Machine) -> None:
    id = machine.submitted("-d", "--", sys.executable, machine.program(TRAIN), "5")
    job = machine.until(id, "done", "failed", seconds=60)
    assert job["phase"] == "failed"
    assert 2 <= len(job["attempts"]) <= 6
    assert "killed (SIGKILL)" in job["reason"]


def test_a_program_without_a_checkpoint_is_not_started_over(machine: Machine) -> None:
    id = machine.submitted("-d", "--", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    job = machine.until(id, "done", "failed", seconds=60)
    assert (job["phase"], len(job["attempts"])) == ("failed", 1)
