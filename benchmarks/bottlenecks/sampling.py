"""Samples of this machine, ten a second, for the induced bottlenecks: NVML and /proc by the shortest way."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from chipwise.observe.sample import HOST, PROGRAM, NoReading, Reading, Sample, SampledDevice

TICKS = os.sysconf("SC_CLK_TCK")
MIB = 2.0**20
# Numbers of NVML's GPM metrics, and what makes them our units.
GPM = {
    "graphics_active": (1, 0.01),
    "sm_active": (2, 0.01),
    "sm_occupancy": (3, 0.01),
    "tensor_active": (5, 0.01),
    "dram_active": (10, 0.01),
    "fp64_active": (11, 0.01),
    "fp32_active": (12, 0.01),
    "fp16_active": (13, 0.01),
    "pcie_sent": (20, MIB),
    "pcie_received": (21, MIB),
}
POWER_BIT, HEAT_BITS, HARDWARE_BITS = 0x4, 0x20 | 0x40, 0x8 | 0x80


class Gpu:
    """The first NVIDIA device."""

    def __init__(self) -> None:
        import pynvml  # type: ignore[import-not-found, import-untyped, unused-ignore]

        self.nvml: Any = pynvml
        pynvml.nvmlInit()
        self.handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        self.samples: list[Any] = []
        self.reason = ""
        with suppress(pynvml.NVMLError):
            if pynvml.nvmlGpmQueryDeviceSupport(self.handle).isSupportedDevice:
                self.samples = [pynvml.nvmlGpmSampleAlloc() for _ in range(2)]
                pynvml.nvmlGpmSampleGet(self.handle, self.samples[0])

    def device(self) -> SampledDevice:
        name = self.nvml.nvmlDeviceGetName(self.handle)
        text = name.decode() if isinstance(name, bytes) else str(name)
        chip = next((chip for word, chip in (("H200", "H200"), ("H100", "H100-SXM")) if word in text), None)
        return SampledDevice(source="nvidia:0", name=text, chip=chip)

    def read(self, at_s: float) -> Sample:
        nvml, handle = self.nvml, self.handle
        readings: dict[str, Reading] = {}

        def attempt(name: str, call: Any) -> None:
            try:
                readings[name] = float(call())
            except nvml.NVMLError as error:
                readings[name] = NoReading(str(error))

        with suppress(nvml.NVMLError):
            rates = nvml.nvmlDeviceGetUtilizationRates(handle)
            readings |= {"busy": rates.gpu / 100, "memory_busy": rates.memory / 100}
        with suppress(nvml.NVMLError):
            memory = nvml.nvmlDeviceGetMemoryInfo(handle)
            readings |= {"memory_used": float(memory.used), "memory_total": float(memory.total)}
        attempt("power", lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3)
        attempt("power_limit", lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3)
        attempt("temperature", lambda: nvml.nvmlDeviceGetTemperature(handle, 0))
        attempt("clock", lambda: nvml.nvmlDeviceGetClockInfo(handle, 1))
        attempt("clock_max", lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, 1))
        attempt("pcie_generation", lambda: nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle))
        attempt("pcie_generation_max", lambda: nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle))
        attempt("pcie_width", lambda: nvml.nvmlDeviceGetCurrPcieLinkWidth(handle))
        attempt("pcie_width_max", lambda: nvml.nvmlDeviceGetMaxPcieLinkWidth(handle))
        attempt("processes", lambda: len(nvml.nvmlDeviceGetComputeRunningProcesses(handle)))
        with suppress(nvml.NVMLError):
            bits = int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
            readings["throttled_power"] = float(bool(bits & POWER_BIT))
            readings["throttled_heat"] = float(bool(bits & HEAT_BITS))
            readings["throttled_hardware"] = float(bool(bits & HARDWARE_BITS))
        readings |= self._counters()
        return Sample(at_s, "nvidia:0", readings)

    def _counters(self) -> dict[str, Reading]:
        if not self.samples:
            return {name: NoReading("no GPM counters") for name in GPM}
        nvml = self.nvml
        nvml.nvmlGpmSampleGet(self.handle, self.samples[1])
        request = nvml.c_nvmlGpmMetricsGet_t()
        request.version = nvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(GPM)
        request.sample1, request.sample2 = self.samples
        for place, (number, _) in enumerate(GPM.values()):
            request.metrics[place].metricId = number
        nvml.nvmlGpmMetricsGet(request)
        self.samples.reverse()
        return {
            name: request.metrics[place].value * scale if request.metrics[place].nvmlReturn == 0 else NoReading("not counted")
            for place, (name, (_, scale)) in enumerate(GPM.items())
        }


def cores() -> float:
    """That may be used, after affinity and the control group's limit."""
    available = float(len(os.sched_getaffinity(0)))
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            available = min(available, float(quota) / float(period))
    return available


def pressure(kind: str) -> float | NoReading:
    try:
        first = Path(f"/proc/pressure/{kind}").read_text().splitlines()[0]
        return float(first.split("avg10=")[1].split()[0]) / 100
    except (OSError, IndexError, ValueError):
        return NoReading("this kernel does not report pressure")


@dataclass
class Host:
    cores: float = field(default_factory=cores)
    before: Any = field(default_factory=psutil.cpu_times)
    before_cores: Any = field(default_factory=lambda: psutil.cpu_times(percpu=True))

    def read(self, at_s: float) -> Sample:
        times, each = psutil.cpu_times(), psutil.cpu_times(percpu=True)
        change = {name: getattr(times, name, 0.0) - getattr(self.before, name, 0.0) for name in times._fields}
        total = max(sum(change.values()) - change.get("guest", 0.0), 1e-9)
        idle = change["idle"] + change.get("iowait", 0.0)
        highest = max(_busy(now, then) for now, then in zip(each, self.before_cores, strict=True))
        self.before, self.before_cores = times, each
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
        readings: dict[str, Reading] = {
            "cpu": max(1 - idle / total, 0.0),
            "cpu_highest_core": highest,
            "cpu_wait": change.get("iowait", 0.0) / total,
            "cpu_stolen": change.get("steal", 0.0) / total,
            "cores": self.cores,
            "memory_used": float(memory.total - memory.available),
            "memory_total": float(memory.total),
            "swapped": float(swap.sin + swap.sout),
            "pressure_cpu": pressure("cpu"),
            "pressure_memory": pressure("memory"),
            "pressure_io": pressure("io"),
        }
        with suppress(OSError, RuntimeError, AttributeError):
            disks = psutil.disk_io_counters()
            if disks is not None:
                readings |= {"disk_read": float(disks.read_bytes), "disk_written": float(disks.write_bytes)}
        with suppress(OSError):
            networks = [net for name, net in psutil.net_io_counters(pernic=True).items() if name != "lo"]
            readings["network_received"] = float(sum(net.bytes_recv for net in networks))
            readings["network_sent"] = float(sum(net.bytes_sent for net in networks))
        return Sample(at_s, HOST, readings)


def _busy(now: Any, then: Any) -> float:
    total = sum(now) - sum(then)
    idle = now.idle - then.idle + getattr(now, "iowait", 0.0) - getattr(then, "iowait", 0.0)
    return min(max(1 - idle / total, 0.0), 1.0) if total > 0 else 0.0


@dataclass
class Program:
    """A process and its children, as /proc shows them."""

    pid: int
    source: str = PROGRAM
    before: dict[tuple[int, int], float] = field(default_factory=dict)
    before_s: float = 0.0

    def read(self, at_s: float) -> Sample:
        threads: dict[tuple[int, int], float] = {}
        totals = dict.fromkeys(("io_read", "io_written", "disk_read", "switches_waiting", "switches_taken", "memory_used"), 0.0)
        pids = self._tree()
        for pid in pids:
            threads |= dict(_threads(pid))
            for name, value in _counts(pid):
                totals[name] += value
        passed = at_s - self.before_s
        used = [seconds - self.before[key] for key, seconds in threads.items() if key in self.before]
        readings: dict[str, Reading] = {**totals, "threads": float(len(threads)), "processes": float(len(pids))}
        if self.before and passed > 0:
            readings["cpu"] = sum(used) / passed
            readings["cpu_highest_thread"] = min(max(used, default=0.0) / passed, 1.0)
        self.before, self.before_s = threads, at_s
        return Sample(at_s, self.source, readings)

    def _tree(self) -> list[int]:
        try:
            process = psutil.Process(self.pid)
            return [self.pid, *(child.pid for child in process.children(recursive=True))]
        except psutil.Error:
            return [self.pid]


def _threads(pid: int) -> Iterator[tuple[tuple[int, int], float]]:
    """Processor seconds of every thread."""
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError, IndexError, ValueError):
                fields = Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(")")[2].split()
                yield (pid, int(thread)), (int(fields[11]) + int(fields[12])) / TICKS


def _counts(pid: int) -> Iterator[tuple[str, float]]:
    names = {"rchar": "io_read", "wchar": "io_written", "read_bytes": "disk_read"}
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/io").read_text().splitlines():
            key, _, value = line.partition(": ")
            if key in names:
                yield names[key], float(value)
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            key, _, value = line.partition(":")
            if key == "VmRSS":
                yield "memory_used", float(value.split()[0]) * 1024
            elif key == "voluntary_ctxt_switches":
                yield "switches_waiting", float(value)
            elif key == "nonvoluntary_ctxt_switches":
                yield "switches_taken", float(value)


@dataclass
class Watcher:
    """Everything of one program, sampled when asked."""

    programs: Sequence[Program]
    gpu: Gpu | None
    host: Host = field(default_factory=Host)
    samples: list[Sample] = field(default_factory=list)
    started_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if self.gpu is not None:
            self.gpu.read(0.0)  # counters start here, and not with the program before

    def look(self) -> None:
        at_s = time.monotonic() - self.started_s
        if self.gpu is not None:
            self.samples.append(self.gpu.read(at_s))
        self.samples.append(self.host.read(at_s))
        self.samples += [program.read(at_s) for program in self.programs]
