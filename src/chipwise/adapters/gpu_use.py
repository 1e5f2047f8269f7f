"""What the GPUs of this machine are used for, as nvidia-smi tells it. A sensor that is not there is a value: None."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass

from chipwise.units import MIB

WITHIN_S = 5.0  # a driver that hangs must not hold up who only looks
_FIELDS = ("index", "utilization.gpu", "memory.used", "memory.total")


@dataclass(frozen=True, slots=True)
class GpuUse:
    percent: float | None  # of the time in which a kernel ran
    memory_bytes: float | None
    memory_total_bytes: float | None


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
