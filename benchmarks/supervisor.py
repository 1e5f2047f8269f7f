"""What one supervisor costs on a machine with 2,000 other processes: CPU while its job is quiet, and output that it keeps.

The other processes sleep; they are children of this program, and are ended by it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chipwise.adapters.engines.local import folder
from figure import Figure

OTHERS = 2_000
QUIET_S = 10.0
OUTPUT_BYTES = 64 << 20
QUIET = "import time; time.sleep(600)"
LOUD = f"import sys\nline = b'x' * 127 + b'\\n'\nfor _ in range({OUTPUT_BYTES} // 128): sys.stdout.buffer.write(line)"


def figures() -> Iterator[Figure]:
    for others in (0, OTHERS):
        with _others(others), tempfile.TemporaryDirectory() as home:
            quiet, loud = _quiet(Path(home) / "1"), _loud(Path(home) / "2")
        yield Figure(f"supervisor_quiet_cpu_beside_{others}", 100.0 * quiet, "% of a core", {"max": 0.5})
        yield Figure(f"supervisor_output_beside_{others}", loud / 1e6, "MB/s", {"min": 20.0})


def _quiet(at: Path) -> float:
    """The share of a core while nothing happens."""
    with _supervised(at, QUIET) as supervisor:
        time.sleep(2.0)
        before, start = _cpu_s(supervisor.pid), time.monotonic()
        time.sleep(QUIET_S)
        return (_cpu_s(supervisor.pid) - before) / (time.monotonic() - start)


def _cpu_s(pid: int) -> float:
    """In nanoseconds of the scheduler: ticks of a clock would show nothing."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def _loud(at: Path) -> float:
    """Bytes per second of a program that prints without end."""
    start = time.monotonic()
    with _supervised(at, LOUD) as supervisor:
        while not (at / folder.ENDED).exists() and time.monotonic() - start < 60.0:
            time.sleep(0.02)
        ended = folder.read(at, folder.ENDED)
        if ended is None:  # so slow that only what came is counted
            return sum(path.stat().st_size for path in at.glob("log*")) / (time.monotonic() - start)
        begun = folder.read(at, folder.STATE) or {}
        supervisor.wait()
    return OUTPUT_BYTES / (float(ended["at"]) - float(begun["begun"]))


@contextmanager
def _supervised(at: Path, code: str) -> Iterator[subprocess.Popen[bytes]]:
    at.mkdir()
    order = {"command": [sys.executable, "-S", "-c", code], "mark": str(at), "grace_s": 1, "log_bytes": OUTPUT_BYTES}
    folder.write(at, folder.ORDER, order)
    command = [sys.executable, "-P", "-m", folder.__package__ or "", str(at)]
    supervisor = subprocess.Popen(command, start_new_session=True)
    try:
        while not (at / folder.STATE).exists():
            time.sleep(0.02)
        yield supervisor
    finally:
        if supervisor.poll() is None:
            supervisor.send_signal(signal.SIGKILL)
            supervisor.wait()


@contextmanager
def _others(count: int) -> Iterator[None]:
    started = [subprocess.Popen(["sleep", "600"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()
