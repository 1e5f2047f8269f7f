"""A machine with a record of its own, for tests that run jobs on it as a user does: the real command, real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from chipwise.adapters.engines.local import processes
from patience import deadline

CHIPWISE = str(Path(sys.executable).parent / "chipwise")
Done = subprocess.CompletedProcess[str]


class Machine:
    """A machine with four CPUs and two GPUs by number only, since nothing here asks a driver."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "config").mkdir()
        (home / "work").mkdir()
        self.env = {
            **os.environ,
            "CHIPWISE_DATA_DIR": str(home / "data"),
            "CHIPWISE_CONFIG_DIR": str(home / "config"),
            "CHIPWISE_GPUS": "0,1",
            "CHIPWISE_CPUS": "0,1,2,3",
        }
        self.env.pop("XDG_RUNTIME_DIR", None)

    def __call__(self, *words: str, code: int | None = 0, timeout: float = 300, env: dict[str, str] | None = None) -> Done:
        done = subprocess.run(
            [CHIPWISE, *words],
            cwd=self.home / "work",
            env={**self.env, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert code is None or done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def submitted(self, *words: str) -> str:
        found: str = json.loads(self("run", "--json", *words).stdout)[0]["id"]
        return found

    def job(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("describe", "--json", name).stdout)
        return found

    def until(self, name: str, *phases: str, seconds: float = 40) -> dict[str, Any]:
        late = deadline(seconds)
        while (job := self.job(name))["phase"] not in phases:
            assert time.monotonic() < late, (job, (self.home / "data/run/controller.log").read_text())
            time.sleep(0.1)
        return job

    def supervisor(self, job: dict[str, Any]) -> int:
        at = self.home / "data" / "run" / "jobs" / job["id"] / str(len(job["attempts"]))
        pid: int = json.loads((at / "state.json").read_text())["pid"]
        return pid

    def controller(self) -> int:
        """0 while one is about to write its id."""
        return int((self.home / "data" / "run" / "controller.lock").read_text() or 0)

    def program(self, text: str) -> str:
        path = self.home / "work" / "program.py"
        path.write_text(text)
        return str(path)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    yield Machine(tmp_path)
    clear(tmp_path)


def clear(home: Path) -> None:
    """Ends the controller and the jobs of a test."""
    with suppress(OSError, ValueError, psutil.Error):
        pid = int((home / "data" / "run" / "controller.lock").read_text())
        if "control" in psutil.Process(pid).cmdline():
            os.kill(pid, signal.SIGTERM)
            psutil.Process(pid).wait(10)
    root = home / "data" / "run" / "jobs"
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(processes.MARK, "").startswith(str(root)) or str(root) in " ".join(process.cmdline()):
                process.kill()


def python(code: str) -> tuple[str, ...]:
    return ("--", sys.executable, "-u", "-c", code)
