"""A short version of `benchmarks/faults/local.py`: programs, supervisors, controllers and connections are killed at random."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import postgres_server

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("record", ["file", "postgres"])
def test_nothing_is_lost_whatever_is_killed(record: str) -> None:
    if record == "postgres" and postgres_server.programs() is None:
        pytest.skip(postgres_server.MISSING)
    command = [sys.executable, "benchmarks/faults/local.py", "--kills", "15", "--jobs", "2", "--steps", "300", "--minutes", "2"]
    command += ["--postgres"] if record == "postgres" else []
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    counted = json.loads(done.stdout.splitlines()[-1])
    assert sum(counted["kills"].values()) >= 5
    assert counted["wrong_results"] == counted["two_at_once"] == counted["orphans"] == 0
