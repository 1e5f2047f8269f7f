"""What the GPUs of this machine are used for, as NVML or nvidia-smi tells it. A sensor that is not there is a value: None."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from chipwise.observe.sample import Sample
from chipwise.units import MIB

WITHIN_S = 5.0  # a driver that hangs must not hold up who only looks
_FIELDS = ("index", "utilization.gpu", "memory.used", "memory.total")


@dataclass(frozen=True, slots=True)
class GpuUse:
    percent: float | None  # of the time in which a kernel ran
    memory_bytes: float | None
    memory_total_bytes: float | None
    sm_percent: float | None = None  # of the multiprocessors that worked; nvidia-smi does not tell
    power_w: float | None = None


def of_samples(samples: Sequence[Sample]) -> dict[int, GpuUse]:
    """Of the probe that reads NVML."""
    usage: dict[int, GpuUse] = {}
    for sample in samples:
        busy, active = sample.value("busy"), sample.value("sm_active")
        usage[int(sample.source.rpartition(":")[2])] = GpuUse(
            percent=None if busy is None else 100.0 * busy,
            memory_bytes=sample.value("memory_used"),
            memory_total_bytes=sample.value("memory_total"),
            sm_percent=None if active is None else 100.0 * active,
            power_w=sample.value("power"),
        )
    return usage


def look() -> dict[int, GpuUse]:
    """By index; empty where nobody can tell."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    command = [program, f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=WITHIN_S)
    except (OSError, subprocess.SubprocessError):
        return {}
    return read(result.stdout) if result.returncode == 0 else {}


def read(text: str) -> dict[int, GpuUse]:
    """Lines such as `0, 97, 70112, 81559`; where a card cannot tell, it says `[N/A]` or `[Not Supported]`."""
    usage: dict[int, GpuUse] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == len(_FIELDS) and cells[0].isdecimal():
            percent, used, total = map(_number, cells[1:])
            usage[int(cells[0])] = GpuUse(percent, _bytes(used), _bytes(total))
    return usage


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0.0 <= value < 1e12 else None


def _bytes(mib: float | None) -> float | None:
    return None if mib is None else mib * MIB
