"""A record that was damaged while jobs run on this machine, and jobs that are ended at once: the real command and processes."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable

import psutil
import pytest

from patience import deadline
from run_machine import Machine, machine, python

pytestmark = pytest.mark.e2e
__all__ = ["machine"]  # a fixture, taken by its name
LONG = "import time; print('runs', flush=True); time.sleep(300)"


def damage(machine: Machine, id: str) -> None:
    record = sqlite3.connect(machine.home / "data" / "record.db", timeout=20)
    with record:
        record.execute("DROP TRIGGER IF EXISTS events_never_update")
        record.execute("UPDATE jobs SET body = '{' WHERE id = ?", (id,))
        record.execute("UPDATE events SET body = '[' WHERE job = ?", (id,))
    record.close()


def test_a_damaged_job_is_told_and_stands_in_nobodys_way(machine: Machine) -> None:
    """Its GPU stays its own, its process lives on, and it is over when its owner gives it up."""
    broken = machine.submitted("--gpus", "1", "--name", "broken", *python(LONG))
    held = machine.until(broken, "running")["attempts"][0]["gpus"]
    supervisor = psutil.Process(machine.supervisor(machine.job(broken)))
    os.kill(machine.controller(), signal.SIGKILL)  # one that lives knows the job, and mends its row with the next event
    damage(machine, broken)
    other = machine.submitted("--gpus", "1", *python("import os; print(os.environ['CUDA_VISIBLE_DEVICES'])"))
    assert machine.until(other, "done")["attempts"][0]["gpus"] != held
    both = machine.submitted("--gpus", "2", "--name", "both", *python("pass"))
    time.sleep(1.0)
    assert machine.job(both)["phase"] == "queued", "it would share a GPU with what is damaged"
    listed = machine("ps")
    [row] = [line for line in listed.stdout.splitlines() if line.startswith(broken)]
    assert "running" in row
    assert "damaged" in row
    remedy = f"`chipwise forget {broken} --damaged`"
    assert listed.stderr.count(f"The database row of {broken} is damaged") == 1
    assert remedy in listed.stderr
    described = machine("describe", broken)
    assert "its database row is damaged" in described.stdout
    assert remedy in " ".join(described.stdout.split())
    assert json.loads(machine("describe", "--json", broken).stdout)["damaged"].startswith(
        f"The database row of {broken} is damaged"
    )
    for words in (("stop", broken), ("logs", broken), ("retry", broken)):
        assert remedy in machine(*words, code=3).stderr
    assert remedy in (machine.home / "data" / "run" / "controller.log").read_text()
    assert supervisor.is_running()
    assert "is not damaged" in machine("forget", other, "--damaged", code=2).stderr
    assert "would be given up" in machine("forget", broken, "--damaged", "--dry-run").stdout
    assert supervisor.is_running()
    assert f"{broken} given up" in machine("forget", broken, "--damaged").stdout
    _until(lambda: not supervisor.is_running() or supervisor.status() == psutil.STATUS_ZOMBIE)
    assert machine.job(broken)["phase"] == "failed"
    assert "gave it up" in machine("describe", broken).stdout
    assert machine("logs", broken).stdout == "runs\n"
    machine.until(both, "done")
    refused = machine("retry", broken, code=2).stderr
    assert "Its command is no longer known" in refused


def test_one_that_its_controller_still_knows_is_over_too_when_it_is_given_up(machine: Machine) -> None:
    """The controller sees it end, writes all of it anew, and would start it again."""
    id = machine.submitted("--retries", "5", *python(LONG))
    machine.until(id, "running")
    damage(machine, id)
    told = machine("forget", id, "--damaged").stdout
    assert f"{id} given up" in told or f"{id} is being killed, and is no longer damaged" in told
    assert machine.until(id, "failed", "stopped")["attempts"][-1]["number"] == 1
    after = machine.submitted("--cpus", "4", *python("print('ran')"))
    assert machine.until(after, "done"), "its devices are free"
    assert machine.job(id)["phase"] in ("failed", "stopped")


def test_one_that_is_ended_at_once_has_no_grace(machine: Machine) -> None:
    deaf = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('runs', flush=True)\ntime.sleep(300)"
    asked, plain = (machine.submitted("--grace", "10m", "--name", name, *python(deaf)) for name in ("asked", "plain"))
    for id in (asked, plain):
        machine.until(id, "running")
        _until(lambda id=id: "runs" in machine("logs", id).stdout)  # type: ignore[misc]
    machine("stop", asked)
    machine.until(asked, "leaving")
    begun = time.monotonic()
    machine("stop", "--now", "--wait", asked, plain)
    assert time.monotonic() - begun < 20
    for id in (asked, plain):
        assert machine.job(id)["phase"] == "stopped"
        assert "is killed at once, without time to save" in machine("describe", id).stdout


def _until(found: Callable[[], bool], seconds: float = 30) -> None:
    late = deadline(seconds)
    while not found():
        assert time.monotonic() < late
        time.sleep(0.1)
