"""A pipeline on this machine as a user follows it: each stage's output in its turn, under its name."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from patience import deadline
from run_machine import CHIPWISE, Machine, machine

pytestmark = pytest.mark.e2e
__all__ = ["machine"]  # a fixture, taken by its name
STAGES = ("fetch", "left", "right", "join")


def stage(name: str, code: str) -> str:
    command = json.dumps([sys.executable, "-u", "-c", code])
    return f"  - {{kind: hpc, name: {name}, steps: 1, flop_per_step: 1e9, precision: fp32, program: {{command: {command}}}}}\n"


def pipeline(machine: Machine, codes: dict[str, str]) -> str:
    hands = (("fetch", "left"), ("fetch", "right"), ("left", "join"), ("right", "join"))
    text = "kind: pipeline\nname: made\nstages:\n" + "".join(stage(name, codes[name]) for name in STAGES)
    text += "hand_offs:\n" + "".join(f"  - {{from: {one}, to: {other}, size: 1MB}}\n" for one, other in hands)
    path = machine.home / "work" / "pipeline.yaml"
    path.write_text(text)
    return str(path)


def saying(name: str, wait_s: float = 0.3) -> str:
    return f"import time; print('{name} begins'); time.sleep({wait_s}); print('{name} ends')"


def whole(*names: str) -> str:
    return "".join(f"--- made-{name}\n{name} begins\n{name} ends\n" for name in names)


def test_each_stage_is_shown_in_its_turn_under_its_name(machine: Machine) -> None:
    path = pipeline(machine, {name: saying(name) for name in STAGES})
    done = machine("run", path)
    assert done.stdout == whole(*STAGES)
    last = next(line.split()[0] for line in done.stderr.splitlines() if line.startswith("made-join") and "submitted" in line)
    assert machine("logs", "-f", last).stdout == whole(*STAGES), "also afterwards"
    assert machine("logs", last).stdout == "join begins\njoin ends\n", "without -f one job is one job"
    assert "join ends" in machine("attach", last).stdout
    assert "fetch" not in machine("attach", last).stdout, "from now on"


def test_a_pipeline_is_stopped_and_tried_again_by_its_name(machine: Machine) -> None:
    waits = "import pathlib, time\nprint('waits')\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)"
    path = pipeline(machine, {name: saying(name) if name != "left" else waits for name in STAGES})
    ids = [one["id"] for one in json.loads(machine("run", "--json", "--name", "mine", path).stdout)]
    assert [id.rpartition("-")[0] for id in ids] == [f"mine-{name}" for name in STAGES]
    machine.until(ids[2], "done")
    machine.until(ids[1], "running")
    said = machine("stop", "--wait", "mine").stderr
    assert said.splitlines()[:2] == [f"{ids[3]} asked to stop", f"{ids[1]} asked to stop"], "the last first"
    assert [machine.job(id)["phase"] for id in ids] == ["done", "stopped", "done", "stopped"]
    assert f"{ids[1]} is stopped" in machine("stop", "mine", code=2).stderr
    (machine.home / "work" / "go").touch()
    assert machine("retry", "mine").stderr == f"{ids[1]} restarts\n{ids[3]} restarts\n"
    machine.until(ids[3], "done")


def test_a_job_that_was_to_be_done_first_is_no_stage(machine: Machine) -> None:
    first = machine.submitted("--", sys.executable, "-c", "print('first')")
    second = machine.submitted("--after", first, "--", sys.executable, "-c", "print('second')")
    assert machine("logs", "-f", second).stdout == "second\n"


def test_what_a_failing_stage_printed_is_seen_and_the_rest_does_not_run(machine: Machine) -> None:
    codes = {name: saying(name) for name in STAGES}
    codes["left"] = "print('no such file'); raise SystemExit(126)"
    done = machine("run", pipeline(machine, codes), code=126)
    assert "--- made-left\nno such file\n" in done.stdout
    assert "join begins" not in done.stdout
    assert "--- made-join" not in done.stdout
    assert "made-left failed before it" in done.stderr


def test_an_interrupt_stops_all_stages(machine: Machine) -> None:
    codes = {name: saying(name, 60) for name in STAGES}
    with (machine.home / "out").open("w") as out:
        followed = subprocess.Popen(
            [CHIPWISE, "run", pipeline(machine, codes)], cwd=machine.home / "work", env=machine.env, stdout=out, stderr=out
        )
    _until(lambda: "fetch begins" in Path(machine.home / "out").read_text())
    os.kill(followed.pid, signal.SIGINT)
    assert followed.wait(60) == 130
    assert {row["phase"] for row in json.loads(machine("ps", "--json").stdout)} == {"stopped"}


def _until(found: Callable[[], bool], seconds: float = 30) -> None:
    late = deadline(seconds)
    while not found():
        assert time.monotonic() < late
        time.sleep(0.1)
