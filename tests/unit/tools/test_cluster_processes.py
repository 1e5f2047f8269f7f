"""What a test starts for its cluster does not outlive it, however the test run ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kube.process import Ended, NotInTime, Running, free_ports, wait_for

SUPPORT = Path(__file__).resolve().parents[2] / "support"
STARTS = """
import sys, time
from pathlib import Path
from kube.process import Running
one = Running("sleep", ["/bin/sleep", "60"], Path(sys.argv[1]) / "sleep.log")
print(one.pid, flush=True)
time.sleep(60)
"""


def _gone(pid: int) -> bool:
    """Ended; one that nobody has collected yet counts."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: only its kernel ends a program with its parent")
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_killed_leaves_no_program_behind(tmp_path: Path, by: signal.Signals) -> None:
    environ = {**os.environ, "PYTHONPATH": str(SUPPORT)}
    with subprocess.Popen(
        [sys.executable, "-c", STARTS, str(tmp_path)], env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        wait_for("the program to be started", lambda: b"sleep" in Path(f"/proc/{pid}/comm").read_bytes(), 10)
        run.send_signal(by)
        run.wait(10)
    wait_for("the program to end", lambda: _gone(pid), 5)


def test_a_program_that_ends_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    one = Running("sh", ["/bin/sh", "-c", "echo the disk is full; exit 3"], tmp_path / "sh.log")
    with pytest.raises(Ended, match=r"sh ended with 3:\n.*the disk is full"):
        wait_for("the end", lambda: one.must_run(), 10)
    one.stop()


def test_one_that_ignores_the_polite_signal_is_ended_all_the_same(tmp_path: Path) -> None:
    log = tmp_path / "sh.log"
    one = Running("sh", ["/bin/sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done"], log)
    wait_for("the start", lambda: "up" in log.read_text(), 10)
    one.stop(patience=0.5)
    assert _gone(one.pid)


def test_a_wait_tells_what_it_saw_last() -> None:
    with pytest.raises(NotInTime, match=r"a full house: not so after 0 s; last seen: two of three"):
        wait_for("a full house", lambda: _raise("two of three"), 0.2)


def _raise(what: str) -> None:
    raise AssertionError(what)


def test_free_ports_differ() -> None:
    assert len(set(free_ports(20))) == 20
