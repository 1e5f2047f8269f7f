"""Samples of a program and of all its children from /proc, by the names of `observe.metrics.PROGRAM`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from chipwise.observe.sample import PROGRAM, NoReading, Reading, Sample

PROC = Path("/proc")
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Sampler:
    """Sums of a counter do not fall when a child ends: what it had last is kept."""

    def __init__(self) -> None:
        self._last: dict[str, dict[int, float]] = {}
        self._cpu: tuple[float, float] | None = None  # when, and seconds of processors until then

    def sample(self, pids: Iterable[int]) -> Sample | None:
        """None where none of them is left."""
        now, memory, threads, processes = time.monotonic(), 0.0, 0.0, 0.0
        for pid in pids:
            with suppress(OSError, ValueError, IndexError):
                folder = PROC / str(pid)
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
                self._keep("cpu", pid, (int(fields[11]) + int(fields[12])) * TICK_S)
                threads += int(fields[17])
                memory += int(fields[21]) * _PAGE
                processes += 1
                self._keep_io(folder, pid)
                self._keep_switches(folder, pid)
                self._keep_delay(folder, pid)
        if not processes:
            return None
        readings: dict[str, Reading] = {"memory_used": memory, "threads": threads, "processes": processes}
        for name in ("io_read", "io_written", "disk_read", "switches_waiting", "switches_taken", "cpu_delayed"):
            values = self._last.get(name)
            readings[name] = sum(values.values()) if values else NoReading("the system does not show it to this user")
        used, before = sum(self._last.get("cpu", {}).values()), self._cpu
        self._cpu = (now, used)
        if before is not None and now > before[0]:
            readings["cpu"] = (used - before[1]) / (now - before[0])
        return Sample(now, PROGRAM, readings)

    def _keep(self, name: str, pid: int, value: float) -> None:
        self._last.setdefault(name, {})[pid] = value

    def _keep_io(self, folder: Path, pid: int) -> None:
        with suppress(OSError, ValueError):
            lines = dict(line.split(": ") for line in (folder / "io").read_text().splitlines())
            self._keep("io_read", pid, float(lines["rchar"]))
            self._keep("io_written", pid, float(lines["wchar"]))
            self._keep("disk_read", pid, float(lines["read_bytes"]))

    def _keep_switches(self, folder: Path, pid: int) -> None:
        with suppress(OSError, ValueError):
            for line in (folder / "status").read_text(errors="replace").splitlines():
                name, _, value = line.partition(":")
                if name == "voluntary_ctxt_switches":
                    self._keep("switches_waiting", pid, float(value))
                elif name == "nonvoluntary_ctxt_switches":
                    self._keep("switches_taken", pid, float(value))

    def _keep_delay(self, folder: Path, pid: int) -> None:
        with suppress(OSError, ValueError, IndexError):
            nanoseconds = [float((thread / "schedstat").read_text().split()[1]) for thread in (folder / "task").iterdir()]
            before = self._last.get("cpu_delayed", {}).get(pid, 0.0)
            self._keep("cpu_delayed", pid, max(sum(nanoseconds) * 1e-9, before))  # threads that ended leave the sum
