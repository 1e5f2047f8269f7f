"""The host: processor, memory, disks, network and pressure, of /proc and of the control group; of psutil on other systems.

Nine small files a sample, each of which the kernel writes in microseconds. A file that is missing or cannot be read makes its
readings a reason. Shares of the processor are counted between two samples, so the first one has none.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from chipwise.observe.sample import HOST, NoReading, Reading, Sample, SampledDevice

LEAST_S = 0.45  # between two samples: shares of less are noise, and cost the program that is watched
FIRST = NoReading("the next sample has it: it is counted between two")
_KIB, _SECTOR = 1024.0, 512.0
_IS_DISK = re.compile(r"(?:sd|hd|vd|xvd)[a-z]+|nvme\d+n\d+|mmcblk\d+")  # not their parts, nor what is stacked on them
_LIMITLESS = 1 << 60  # as control groups of version 1 write "no limit"


def connect(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> Host | HostElsewhere:
    return Host(proc, groups) if sys.platform == "linux" else HostElsewhere()


class Host:
    def __init__(self, proc: Path, groups: Path) -> None:
        self._proc = proc
        self._group = group_of(proc, groups)
        self._page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
        self._before: dict[str, list[int]] = _cpu_times(proc)
        self._at_s: float | None = None

    def devices(self) -> Sequence[SampledDevice]:
        return ()

    def read(self, at_s: float) -> Sequence[Sample]:
        if self._at_s is not None and 0 <= at_s - self._at_s < LEAST_S:
            return ()
        self._at_s = at_s
        readings: dict[str, Reading] = {}
        for names, ask in (
            (("cpu", "cpu_highest_core", "cpu_wait", "cpu_stolen"), self._processor),
            (("cores",), self._cores),
            (("load",), self._load),
            (("memory_used", "memory_total"), self._memory),
            (("swapped", "major_faults"), self._paging),
            (("disk_read", "disk_written"), self._disks),
            (("network_received", "network_sent"), self._network),
            (("pressure_cpu",), lambda: self._pressure("cpu")),
            (("pressure_memory",), lambda: self._pressure("memory")),
            (("pressure_io",), lambda: self._pressure("io")),
            (("cpu_limited",), self._limited),
        ):
            _add_readings(readings, names, ask)
        return [Sample(at_s, HOST, readings)]

    def close(self) -> None: ...

    def _processor(self) -> Sequence[Reading]:
        before, now = self._before, _cpu_times(self._proc)
        self._before = now
        if "cpu" not in before or "cpu" not in now:
            return (FIRST,) * 4
        total, idle, wait, stolen = _spent(before["cpu"], now["cpu"])
        if total <= 0:
            return (FIRST,) * 4
        busiest = 0.0
        for name, times in now.items():
            if name != "cpu" and name in before:
                spent, rest, _, _ = _spent(before[name], times)
                busiest = max(busiest, 1.0 - rest / spent if spent > 0 else 0.0)
        return (1.0 - idle / total, busiest, wait / total, stolen / total)

    def _cores(self) -> Sequence[Reading]:
        count = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
        limit = self._group.cores()
        return (min(count, limit) if limit is not None else count,)

    def _load(self) -> Sequence[Reading]:
        return (float(self._read("loadavg").split()[0]),)

    def _memory(self) -> Sequence[Reading]:
        fields = _fields(self._read("meminfo"), "MemTotal", "MemAvailable")
        total, used = fields["MemTotal"] * _KIB, (fields["MemTotal"] - fields["MemAvailable"]) * _KIB
        limit, held_bytes = self._group.memory()
        if limit is not None and limit < total:
            return (held_bytes if held_bytes is not None else used, limit)
        return (used, total)

    def _paging(self) -> Sequence[Reading]:
        fields = _fields(self._read("vmstat"), "pswpin", "pswpout", "pgmajfault")
        return ((fields["pswpin"] + fields["pswpout"]) * float(self._page), fields["pgmajfault"])

    def _disks(self) -> Sequence[Reading]:
        """Of those of the machine; none where it has none of its own, as in many containers."""
        read = written = 0.0
        for line in self._read("diskstats").splitlines():
            cells = line.split()
            if len(cells) > 9 and _IS_DISK.fullmatch(cells[2]):
                read += float(cells[5]) * _SECTOR
                written += float(cells[9]) * _SECTOR
        return (read, written)

    def _network(self) -> Sequence[Reading]:
        received = sent = 0.0
        for line in self._read("net/dev").splitlines()[2:]:
            name, _, rest = line.partition(":")
            cells = rest.split()
            if name.strip() != "lo" and len(cells) >= 9:
                received += float(cells[0])
                sent += float(cells[8])
        return (received, sent)

    def _pressure(self, name: str) -> Sequence[Reading]:
        """Of our control group where it counts, else of the host: a container is slowed by what its own limit makes it wait."""
        text = self._group.pressure(name) or self._read(f"pressure/{name}")
        match = re.search(r"^some avg10=([\d.]+)", text, re.MULTILINE)
        return (float(match[1]) / 100.0,) if match else (NoReading("the kernel does not count it"),)

    def _limited(self) -> Sequence[Reading]:
        limited = self._group.limited_s()
        return (limited if limited is not None else NoReading("there is no control group that counts it"),)

    def _read(self, name: str) -> str:
        return (self._proc / name).read_text(errors="replace")


def _add_readings(readings: dict[str, Reading], names: Sequence[str], ask: Callable[[], Sequence[Reading]]) -> None:
    try:
        readings.update(zip(names, ask(), strict=True))
    except PermissionError:
        readings.update(dict.fromkeys(names, NoReading("this user may not read it")))
    except OSError:
        readings.update(dict.fromkeys(names, NoReading("the kernel does not count it")))
    except (LookupError, ValueError):
        readings.update(dict.fromkeys(names, NoReading("the kernel writes it in another form")))


def _cpu_times(proc: Path) -> dict[str, list[int]]:
    """Ticks by processor, and of all as "cpu"."""
    times: dict[str, list[int]] = {}
    with suppress(OSError, ValueError), open(proc / "stat", "rb") as file:
        for line in file:
            if not line.startswith(b"cpu"):  # they come first; what follows is long
                break
            name, *cells = line.decode().split()
            times[name] = list(map(int, cells))
    return times


def _spent(before: Sequence[int], now: Sequence[int]) -> tuple[float, float, float, float]:
    """Ticks in all, idle, waiting for a disk, stolen; guests are counted in user time already."""
    ticks = [max(last - first, 0) for first, last in zip(before[:8], now[:8], strict=False)]
    ticks += [0] * (8 - len(ticks))
    return float(sum(ticks)), float(ticks[3] + ticks[4]), float(ticks[4]), float(ticks[7])


def _fields(text: str, *names: str) -> Mapping[str, float]:
    """Of lines such as `MemTotal:   1000 kB` or `pswpin 5`, those with these names."""
    rows = re.finditer(rf"^({'|'.join(names)}):?[ \t]+(\d+)", text, re.MULTILINE)
    return {row[1]: float(row[2]) for row in rows}


class ControlGroup:
    """The control group of this process; whatever is not there is None."""

    def __init__(self, cpu: Path | None, memory: Path | None, is_unified: bool) -> None:
        self._cpu, self._memory, self._is_unified = cpu, memory, is_unified

    def cores(self) -> float | None:
        if self._is_unified:
            quota, _, period = _content(self._cpu, "cpu.max").partition(" ")
        else:
            quota, period = _content(self._cpu, "cpu.cfs_quota_us"), _content(self._cpu, "cpu.cfs_period_us")
        with suppress(ValueError, ZeroDivisionError):
            share = float(quota) / float(period)
            return share if share > 0 else None
        return None

    def memory(self) -> tuple[float | None, float | None]:
        """The limit, and what is held_bytes of it without what can be dropped."""
        names = ("memory.max", "memory.current", "inactive_file") if self._is_unified else _OLD_NAMES
        with suppress(ValueError, IndexError):
            limit, held_bytes = float(_content(self._memory, names[0])), float(_content(self._memory, names[1]))
            droppable = _fields(_content(self._memory, "memory.stat"), names[2]).get(names[2], 0.0)
            return (limit if limit < _LIMITLESS else None), max(held_bytes - droppable, 0.0)
        return None, None

    def limited_s(self) -> float | None:
        with suppress(ValueError, IndexError):
            fields = _fields(_content(self._cpu, "cpu.stat"), "throttled_usec", "throttled_time")
            if "throttled_usec" in fields:
                return fields["throttled_usec"] / 1e6
            return fields["throttled_time"] / 1e9 if "throttled_time" in fields else None
        return None

    def pressure(self, name: str) -> str:
        return _content(self._cpu, f"{name}.pressure") if self._is_unified else ""


_OLD_NAMES = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def group_of(proc: Path, groups: Path) -> ControlGroup:
    """Of version 2 where there is one, else of version 1; in a container its folder may be the root of the mount."""
    paths: dict[str, str] = {}
    with suppress(OSError):
        for line in (proc / "self/cgroup").read_text().splitlines():
            _, _, rest = line.partition(":")
            names, _, path = rest.partition(":")
            paths.update((name, path) for name in names.split(","))
    if (groups / "cgroup.controllers").exists():
        own = _folder(groups, paths.get("", "/"))
        return ControlGroup(own, own, is_unified=True)
    return ControlGroup(
        _folder(groups / "cpu", paths.get("cpu", "/")), _folder(groups / "memory", paths.get("memory", "/")), is_unified=False
    )


def _folder(root: Path, path: str) -> Path | None:
    own = root / path.lstrip("/")
    return own if own.is_dir() else root if root.is_dir() else None


def _content(folder: Path | None, name: str) -> str:
    with suppress(OSError):
        return (folder / name).read_text().strip() if folder is not None else ""
    return ""


class HostElsewhere:
    """What psutil counts on other systems; all else is missing there."""

    def __init__(self) -> None:
        import psutil

        self._psutil = psutil
        psutil.cpu_percent(percpu=True)

    def devices(self) -> Sequence[SampledDevice]:
        return ()

    def read(self, at_s: float) -> Sequence[Sample]:
        absent = NoReading("this system does not count it")
        shares = [percent / 100.0 for percent in self._psutil.cpu_percent(percpu=True)]
        memory = self._psutil.virtual_memory()
        readings: dict[str, Reading] = {
            "cpu": sum(shares) / len(shares) if shares else absent,
            "cpu_highest_core": max(shares, default=0.0) if shares else absent,
            "cores": float(len(shares) or os.cpu_count() or 1),
            "memory_used": float(memory.total - memory.available),
            "memory_total": float(memory.total),
            **dict.fromkeys(
                ("cpu_wait", "cpu_stolen", "pressure_cpu", "pressure_memory", "pressure_io", "cpu_limited"), absent
            ),
        }
        disk, network = self._psutil.disk_io_counters(), self._psutil.net_io_counters()
        readings |= {"disk_read": absent, "disk_written": absent} if disk is None else {
            "disk_read": float(disk.read_bytes), "disk_written": float(disk.write_bytes)
        }  # fmt: skip
        readings |= {"network_received": float(network.bytes_recv), "network_sent": float(network.bytes_sent)}
        return [Sample(at_s, HOST, readings)]

    def close(self) -> None: ...
