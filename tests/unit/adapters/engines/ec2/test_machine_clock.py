"""A machine counts durations by how long it is up: a step of its clock ends no job, and gives none a longer time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

PROGRAM = str(resources.files("chipwise.adapters.engines.ec2") / "programs" / "supervise.sh")
# After the program: no cloud, no signal, one process that ends after 3 s, and a clock that is set after 1 s.
LED = """
KEEP=s3://kept/team CHIPWISE_ROOT=$PWD CHIPWISE_EVERY=0.2 CHIPWISE_UPLOAD_S=1 CHIPWISE_ASK_S=1 CHIPWISE_NOTICE_S=1000
source "$PROGRAM"
metadata() { return 1; }
aws() { return 1; }
upload() { :; }
idle() { return 1; }
take_wishes() { :; }
signal_all() { echo "$1" >>signals; }
mkdir -p "$RUN"
(sleep 1; cat stepped >offset; sleep 2; echo 0 >"$RUN/code-0") &
BEFORE
look_after
wait
echo "told: $WHY"
"""
DATE = """#!/bin/bash
echo $(("$(/bin/date +%s)" + $(cat "$OFFSET")))
"""
pytestmark = pytest.mark.skipif(
    shutil.which("bash") is None or not Path("/proc/uptime").exists(), reason="needs bash and /proc/uptime"
)


def _led(folder: Path, step_s: int, before: str = ":", **settings: str) -> tuple[str, list[str]]:
    """What it was told, and the signals that it sent."""
    for name, text in (("date", DATE), ("offset", "0"), ("stepped", str(step_s))):
        (folder / name).write_text(text)
    (folder / "date").chmod(0o755)
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "OFFSET": str(folder / "offset"), "PROGRAM": PROGRAM, **settings}
    done = subprocess.run(
        ["bash", "-c", LED.replace("BEFORE", before)], cwd=folder, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    signals = folder / "signals"
    return done.stdout.partition("told: ")[2].strip(), signals.read_text().split() if signals.exists() else []


@pytest.mark.parametrize("step_s", [7200, -7200])
def test_a_step_of_the_clock_is_no_time_without_a_controller(tmp_path: Path, step_s: int) -> None:
    assert _led(tmp_path, step_s, ORPHAN_S="600", IDLE_S="600", HARD_MINUTES="60", GRACE="10") == ("", [])


@pytest.mark.parametrize("step_s", [7200, -7200])
def test_the_time_to_save_is_as_long_as_it_was_said(tmp_path: Path, step_s: int) -> None:
    told, signals = _led(tmp_path, step_s, 'tell "asked" "$(($(now) + 60))"', GRACE="60")
    assert (told, signals) == ("asked", ["TERM"])
    notice = json.loads((tmp_path / "run" / "notice.json").read_text())
    up_s = float(Path("/proc/uptime").read_text().split()[0])
    assert up_s < notice["boottime"] <= up_s + 60.0


def test_a_clock_that_is_set_back_does_not_make_it_longer(tmp_path: Path) -> None:
    assert "KILL" in _led(tmp_path, -7200, 'tell "asked" "$(($(now) + 2))"', GRACE="2")[1]
