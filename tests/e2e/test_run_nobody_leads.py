"""What people are told of jobs while nobody leads, or while who leads does not answer: real processes, killed and stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from chipwise.adapters import waking
from patience import deadline
from run_machine import Machine, machine, python

pytestmark = pytest.mark.e2e
__all__ = ["machine"]  # a fixture, taken by its name

LONG = "import time; print('runs', flush=True); time.sleep(600)"


def row(machine: Machine, id: str) -> dict[str, Any]:
    [found] = [one for one in json.loads(machine("ps", "--json").stdout) if one["id"] == id]
    return dict(found)


def kill_all(machine: Machine, id: str) -> float:
    """The controller first, which would notice; then the supervisor, and with it the program. When they were dead."""
    supervisor = machine.supervisor(machine.job(id))
    victims = [psutil.Process(machine.controller()), psutil.Process(supervisor), *psutil.Process(supervisor).children()]
    for victim in victims:
        victim.kill()
    psutil.wait_procs(victims, 10)
    return time.time()


def no_controller(machine: Machine) -> None:
    """Whoever would start one starts something that does nothing."""
    (machine.home / "sitecustomize.py").write_text("import sys\nif 'control' in sys.orig_argv[-1:]:\n    raise SystemExit(0)\n")
    machine.env["PYTHONPATH"] = os.pathsep.join([str(machine.home), *filter(None, [os.environ.get("PYTHONPATH")])])


def test_a_job_whose_processes_are_all_gone_is_not_said_to_run(machine: Machine) -> None:
    id = machine.submitted("--retries", "0", *python(LONG))
    machine.until(id, "running")
    time.sleep(2.5)
    no_controller(machine)
    dead = kill_all(machine, id)
    seen = row(machine, id)
    assert seen["phase"] == "lost"
    assert dead - 4.0 < seen["seen"] <= dead
    assert seen["reason"].startswith("process gone, seen ")
    listed = machine("ps").stdout
    assert " lost " in listed
    assert "running" not in listed
    code = "import chipwise as cw; [job] = cw.jobs(); print(job.phase, cw.find_job(job.id).phase, cw.describe(job.id).phase)"
    done = subprocess.run([sys.executable, "-c", code], env=machine.env, capture_output=True, text=True, check=False)
    assert done.stdout == "lost lost lost\n", done.stderr
    assert machine("describe", id).stdout.startswith(f"{id}: lost, process gone, seen ")


def test_time_in_which_nothing_ran_is_no_run_time(machine: Machine) -> None:
    id = machine.submitted(*python(LONG))
    machine.until(id, "running")
    path = machine.env.get("PYTHONPATH")
    no_controller(machine)
    dead = kill_all(machine, id)
    time.sleep(6.0)
    del machine.env["PYTHONPATH"]
    if path is not None:
        machine.env["PYTHONPATH"] = path
    machine("ps")  # starts the next controller
    late = deadline(20)
    while len((job := machine.job(id))["attempts"]) < 2:
        assert time.monotonic() < late, job
        time.sleep(0.1)
    first = job["attempts"][0]
    assert first["outcome"] == "lost"
    assert first["begun"] <= first["ended"] <= dead
    machine("stop", "--now", "--wait", id)


def test_a_controller_that_is_stopped_is_replaced_and_others_are_told(machine: Machine) -> None:
    first = machine.submitted("--gpus", "2", *python(LONG))
    machine.until(first, "running")
    old = machine.controller()
    os.kill(old, signal.SIGSTOP)
    try:
        queued = machine.submitted("--gpus", "0", "--", "true")
        lock = machine.home / "data" / "run" / "controller.lock"
        late = deadline(20)
        while waking.silence(lock) is None:
            assert time.monotonic() < late
            time.sleep(0.2)
        told = row(machine, queued)["reason"]
        assert told.startswith(f"the controller (process {old}) has not answered for "), told
        assert "has not answered for " in machine("describe", queued).stdout
        assert "replaced after 30 s" in told
        assert row(machine, first)["phase"] == "running"  # what runs is seen all the same
        assert machine.until(queued, "done", seconds=60)["attempts"][0]["outcome"] == "done"
        assert not psutil.pid_exists(old) or psutil.Process(old).status() == psutil.STATUS_ZOMBIE
        assert machine.controller() != old
        assert f"(process {old}) did not answer for " in (lock.parent / "controller.log").read_text()
        assert len(machine.until(first, "running")["attempts"]) == 1
    finally:
        if psutil.pid_exists(old):
            os.kill(old, signal.SIGCONT)
    machine("stop", "--now", "--wait", first)


def test_a_list_alone_replaces_a_controller_that_was_stopped_long_ago(machine: Machine) -> None:
    """No job runs, so no supervisor is there to notice."""
    machine("run", "--", "true")
    old = machine.controller()
    os.kill(old, signal.SIGSTOP)
    queued = machine.submitted("--", "true")
    lock: Path = machine.home / "data" / "run" / "controller.lock"
    long_ago = time.time() - 2.0 * waking.SILENT_S
    os.utime(lock, (long_ago, long_ago))
    assert f"The controller (process {old}) has not answered for 1 min" in (told := machine("ps").stderr)
    assert "; it is being replaced." in told
    assert machine.until(queued, "done")["attempts"][0]["outcome"] == "done"
    assert machine.controller() != old
