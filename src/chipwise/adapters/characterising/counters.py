"""The processor's own counters for a program and its children, by `perf_event_open`: instructions, misses, operations.

Floating-point operations are counted by events of their own: on Intel since Broadwell one for each width and format, on AMD
since Zen one for all. Virtual machines and containers often have none of them, and the system may keep them for its owner: both
are values with a reason.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from contextlib import suppress
from pathlib import Path

from chipwise.observe.sample import NoReading

_CALL = {"x86_64": 298, "aarch64": 241}
_HARDWARE, _RAW = 0, 4
_INSTRUCTIONS, _MISSES = 1, 3
# Umask of FP_ARITH_INST_RETIRED (event 0xC7) of Intel, and values that one such instruction computes.
_INTEL = {0x01: 1, 0x02: 1, 0x04: 2, 0x08: 4, 0x10: 4, 0x20: 8, 0x40: 8, 0x80: 16}
_AMD = 0xFF03  # RETIRED_SSE_AVX_FLOPS with all of its parts: counts operations, not instructions
_INHERIT = 1 << 1
_EXCLUDE_KERNEL = 1 << 5
_EXCLUDE_HYPERVISOR = 1 << 6
_REASONS = {
    errno.EACCES: "not allowed to this user (kernel.perf_event_paranoid)",
    errno.EPERM: "not allowed to this user (kernel.perf_event_paranoid)",
    errno.ENOENT: "this machine has none, as is usual in a virtual machine",
    errno.EOPNOTSUPP: "this machine has none, as is usual in a virtual machine",
    errno.ENOSYS: "this system has none",
}


class Counters:
    """Of a process and of what it starts from now on."""

    def __init__(self, pid: int) -> None:
        self.reason = ""
        self._open: dict[str, list[tuple[int, float]]] = {}
        if platform.system() != "Linux" or platform.machine() not in _CALL:
            self.reason = "they are read on Linux only"
            return
        self._add("instructions", pid, _HARDWARE, _INSTRUCTIONS, 1.0)
        if not self.reason:
            self._add("cache_misses", pid, _HARDWARE, _MISSES, 1.0)
            self._add_flop(pid)

    def _add_flop(self, pid: int) -> None:
        maker = ""
        with suppress(OSError):
            maker = Path("/proc/cpuinfo").read_text(errors="replace").partition("\n\n")[0]
        if "GenuineIntel" in maker:
            for umask, values in _INTEL.items():
                self._add("flop", pid, _RAW, umask << 8 | 0xC7, float(values))
        elif "AuthenticAMD" in maker:
            self._add("flop", pid, _RAW, _AMD, 1.0)

    def _add(self, name: str, pid: int, kind: int, event: int, weight: float) -> None:
        flags = _INHERIT | _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR
        attributes = bytearray(128)
        struct.pack_into("IIQQQQQ", attributes, 0, kind, len(attributes), event, 0, 0, 0, flags)
        library = ctypes.CDLL(None, use_errno=True)
        buffer = (ctypes.c_char * len(attributes)).from_buffer(attributes)
        descriptor = library.syscall(_CALL[platform.machine()], buffer, pid, -1, -1, 0)
        if descriptor < 0:
            number = ctypes.get_errno()
            self.reason = self.reason or _REASONS.get(number, os.strerror(number))
        else:
            self._open.setdefault(name, []).append((descriptor, weight))

    def read(self) -> dict[str, float] | NoReading:
        values = {}
        for name, parts in self._open.items():
            total = 0.0
            for descriptor, weight in parts:
                with suppress(OSError):
                    total += weight * struct.unpack("Q", os.read(descriptor, 8))[0]
            values[name] = total
        return values or NoReading(self.reason or "they show nothing")

    def close(self) -> None:
        for parts in self._open.values():
            for descriptor, _ in parts:
                os.close(descriptor)
        self._open = {}
