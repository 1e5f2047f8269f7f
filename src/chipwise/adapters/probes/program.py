"""A program: one process and all below it, of /proc, and how far it says it is (`progress.json` of `chipwise.job`).

Processor time is read by the kernel's own clock of each process (clock_getcpuclockid), which costs no file. Threads are looked
at in turn, at most `THREADS_AT_ONCE` a sample, and the busiest ones and the first of each process more often: what each did
since its last turn is added up, so that counts are complete however many threads there are, and a sample costs the same. The
tree of processes is walked every `TREE_S`.

What a process did that began and ended between two walks is not seen, unless its parent's counts include it.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from chipwise.errors import BadInput
from chipwise.observe.sample import PROGRAM, NoReading, Reading, Sample, SampledDevice

TREE_S = 5.0
LEAST_S = 0.45  # between two samples: they cost the program that is watched
SLOW_S = 10.0
THREADS_AT_ONCE = 24
OFTEN = 4  # threads that are looked at in every sample
PROGRESS_BYTES = 64 << 10
FIRST = NoReading("the next sample has it: it is counted between two")
_NO_DELAYS = NoReading("this kernel does not count how long threads wait for a core")
_HIDDEN = NoReading("this user may not read it")
_NO_STEPS = NoReading("the program does not report its steps; chipwise.job.steps() does")
_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True, slots=True)
class Closeness:
    """How closely a program is looked at, which costs it."""

    tree_s: float = TREE_S
    least_s: float = LEAST_S
    threads_at_once: int = THREADS_AT_ONCE
    from_start: bool = False  # what it did before the first look counts too


USUAL = Closeness()
CLOSE = Closeness(
    tree_s=0.0, least_s=0.0, threads_at_once=1024, from_start=True
)  # of one that is run to be measured, some times a second


def connect(
    tree: Callable[[], Iterable[int]],
    progress: Path | None = None,
    device_nodes: Sequence[int] = (),
    proc: Path = Path("/proc"),
    closeness: Closeness = USUAL,
) -> ProgramProbe:
    """`tree`: its processes, itself first; `device_nodes`: the NUMA nodes of the devices that it uses."""
    return ProgramProbe(tree, progress, device_nodes, proc, closeness)


def check(pid: int, proc: Path = Path("/proc")) -> None:
    """Raises where there is no such process."""
    if not (proc / str(pid)).exists():
        raise BadInput(f"There is no process {pid}.", remedy="ps -e lists those that run.")


@dataclass(slots=True)
class _Process:
    cpu_s: float
    counts: tuple[float, ...] | None  # io_read, io_written, disk_read; None: hidden


@dataclass(slots=True)
class _Thread:
    at_s: float
    cpu_s: float
    waiting: float
    preemptions: float
    delayed_s: float | None  # ready to run, while others held the cores; None: the kernel does not count it
    share: float = 0.0  # of a core, between its last two turns


class ProgramProbe:
    def __init__(
        self,
        tree: Callable[[], Iterable[int]],
        progress: Path | None,
        device_nodes: Sequence[int],
        proc: Path,
        closeness: Closeness,
    ) -> None:
        self._tree, self._progress, self._proc, self._closeness = tree, progress, proc, closeness
        self._nodes = _Nodes(device_nodes)
        self._pids: list[int] = []
        self._tree_at_s = -math.inf
        self._processes: dict[int, _Process] = {}
        self._threads: dict[tuple[int, int], _Thread] = {}
        self._turn: list[tuple[int, int]] = []
        self._io = [0.0, 0.0, 0.0]
        self._io_hidden = False
        self._switches = [0.0, 0.0]
        self._delayed_s: float | None = None
        self._at_s: float | None = None
        self._slow: dict[str, Reading] = {}
        self._slow_at_s = -math.inf

    def devices(self) -> Sequence[SampledDevice]:
        return ()

    def close(self) -> None: ...

    def read(self, at_s: float) -> Sequence[Sample]:
        if self._at_s is not None and 0 <= at_s - self._at_s < self._closeness.least_s:
            return ()
        if at_s - self._tree_at_s >= self._closeness.tree_s:
            self._pids, self._tree_at_s = list(dict.fromkeys(self._tree())), at_s
        elapsed = None if self._at_s is None else at_s - self._at_s
        cpu_s = memory = threads = 0.0
        living: list[int] = []
        for pid in self._pids:
            with suppress(OSError, ValueError, IndexError):
                cells = (self._proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
                if cells[0] in "ZX":
                    continue
                cpu_s += self._processor(pid, cells, begun_before=self._at_s is None and not self._closeness.from_start)
                memory += float(cells[21]) * _PAGE
                threads += float(cells[17])
                living.append(pid)
        for pid in self._processes.keys() - set(living):
            del self._processes[pid]
        self._pids, self._at_s = living, at_s
        self._look_at_threads(at_s)
        if at_s - self._slow_at_s >= SLOW_S:
            self._slow, self._slow_at_s = self._nodes.read(self._proc, living), at_s
        busiest = max((thread.share for thread in self._threads.values()), default=None)
        readings: dict[str, Reading] = {
            "cpu": cpu_s / elapsed if elapsed else FIRST,
            "cpu_highest_thread": busiest if busiest is not None and elapsed else FIRST,
            "memory_used": memory,
            "threads": threads,
            "processes": float(len(living)),
            "switches_waiting": self._switches[0],
            "switches_taken": self._switches[1],
            "cpu_delayed": _NO_DELAYS if self._delayed_s is None else self._delayed_s,
        }
        readings |= zip(("io_read", "io_written", "disk_read"), [_HIDDEN] * 3 if self._io_hidden else self._io, strict=True)
        if not living:
            readings = dict.fromkeys(readings, NoReading("the program has ended"))
        return [Sample(at_s, PROGRAM, readings | self._reported() | self._slow)]

    def _processor(self, pid: int, cells: Sequence[str], *, begun_before: bool) -> float:
        """Seconds that it worked since the last sample; of one that is new, since it began."""
        cpu_s = _cpu_clock(pid)
        if cpu_s is None:
            cpu_s = (float(cells[11]) + float(cells[12])) * _TICK_S
        counts = self._io_counts(pid)
        known = self._processes.get(pid)
        before = known.counts if known is not None else None if begun_before else (0.0,) * 3
        if counts is None:
            self._io_hidden = True
        elif before is not None:
            for place, (first, last) in enumerate(zip(before, counts, strict=True)):
                self._io[place] += max(last - first, 0.0)
        self._processes[pid] = _Process(cpu_s, counts)
        if known is not None:
            return max(cpu_s - known.cpu_s, 0.0)
        return 0.0 if begun_before else cpu_s

    def _io_counts(self, pid: int) -> tuple[float, ...] | None:
        try:
            fields = dict(line.split(": ") for line in (self._proc / str(pid) / "io").read_text().splitlines())
            return float(fields["rchar"]), float(fields["wchar"]), float(fields["read_bytes"])
        except (OSError, ValueError, KeyError):
            return None

    def _look_at_threads(self, at_s: float) -> None:
        if not self._turn:
            self._turn = [(pid, int(name)) for pid in self._pids for name in _listed(self._proc / str(pid) / "task")]
            for key in self._threads.keys() - set(self._turn):
                del self._threads[key]
            self._turn.reverse()
        busiest = sorted(self._threads, key=lambda key: -self._threads[key].share)[:OFTEN]
        due = dict.fromkeys([*((pid, pid) for pid in self._pids[:OFTEN]), *busiest])
        while self._turn and len(due) < self._closeness.threads_at_once:
            due[self._turn.pop()] = None
        for key in due:
            self._look_at_thread(key, at_s)

    def _look_at_thread(self, key: tuple[int, int], at_s: float) -> None:
        known = self._threads.get(key)
        try:
            now = self._thread(*key, at_s)
        except (OSError, ValueError, LookupError):
            self._threads.pop(key, None)
            return
        if known is not None and at_s > known.at_s:
            now.share = min(max(now.cpu_s - known.cpu_s, 0.0) / (at_s - known.at_s), 1.0)
            self._switches[0] += max(now.waiting - known.waiting, 0.0)
            self._switches[1] += max(now.preemptions - known.preemptions, 0.0)
        if now.delayed_s is not None:
            before_s = known.delayed_s if known is not None else None
            grown_s = 0.0 if before_s is None else max(now.delayed_s - before_s, 0.0)
            self._delayed_s = (self._delayed_s or 0.0) + grown_s
        self._threads[key] = now

    def _thread(self, pid: int, thread: int, at_s: float) -> _Thread:
        folder = f"{self._proc}/{pid}/task/{thread}"
        with open(f"{folder}/status", "rb") as file:
            status = file.read()
        waiting, preemptions = (
            _field(status, name) for name in (b"\nvoluntary_ctxt_switches:", b"nonvoluntary_ctxt_switches:")
        )
        delayed_s: float | None = None
        try:
            with open(f"{folder}/schedstat", "rb") as file:
                nanoseconds = file.read().split()
            cpu_s, delayed_s = int(nanoseconds[0]) / 1e9, int(nanoseconds[1]) / 1e9
        except (OSError, IndexError):
            with open(f"{folder}/stat", "rb") as file:
                cells = file.read().rpartition(b")")[2].split()
            cpu_s = (int(cells[11]) + int(cells[12])) * _TICK_S
        return _Thread(at_s=at_s, cpu_s=cpu_s, waiting=waiting, preemptions=preemptions, delayed_s=delayed_s)

    def _reported(self) -> dict[str, Reading]:
        """What the program says of itself, be it nonsense: it is a file that a program writes."""
        if self._progress is None:
            return {}
        try:
            with open(self._progress, "rb") as file:
                content = json.loads(file.read(PROGRESS_BYTES))
        except (OSError, ValueError, RecursionError):
            return {"step": _NO_STEPS}
        if not isinstance(content, dict):
            return {"step": _NO_STEPS}
        step = _number(content.get("step"))
        readings: dict[str, Reading] = {"step": _NO_STEPS if step is None else step}
        for name in ("tokens", "data_wait"):
            if (value := _number(content.get(name))) is not None:
                readings[name] = value
        return readings


class _Nodes:
    """How far the core on which a program runs is from its devices."""

    def __init__(self, device_nodes: Sequence[int]) -> None:
        self._device_nodes = sorted(set(device_nodes))
        self._of_core: dict[int, int] = {}
        self._distances: dict[int, list[int]] = {}
        if self._device_nodes:
            for folder in Path("/sys/devices/system/node").glob("node[0-9]*"):
                with suppress(OSError, ValueError):
                    node = int(folder.name[4:])
                    self._distances[node] = list(map(int, (folder / "distance").read_text().split()))
                    self._of_core |= dict.fromkeys(cores((folder / "cpulist").read_text()), node)

    def read(self, proc: Path, pids: Sequence[int]) -> dict[str, Reading]:
        if not self._device_nodes or not pids:
            return {}
        with suppress(OSError, ValueError, LookupError):
            core = int((proc / str(pids[0]) / "stat").read_text().rpartition(")")[2].split()[36])
            row = self._distances[self._of_core[core]]
            return {"device_numa_distance": float(max(row[node] for node in self._device_nodes))}
        return {"device_numa_distance": NoReading("the kernel does not say which node a core is in")}


def cores(text: str) -> list[int]:
    """0-3,8: 0, 1, 2, 3 and 8."""
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def _cpu_clock(pid: int) -> float | None:
    """Of all threads that it has or had, in nanoseconds of the scheduler."""
    with suppress(OSError, OverflowError, AttributeError):
        return time.clock_gettime((~pid << 3) | 2)
    return None


def _listed(folder: Path) -> list[str]:
    with suppress(OSError):
        return os.listdir(folder)
    return []


def _field(status: bytes, name: bytes) -> float:
    begin = status.index(name) + len(name)
    return float(status[begin : status.index(b"\n", begin)])


def _number(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) and 0 <= value < 1e18 else None  # type: ignore[arg-type,operator]
