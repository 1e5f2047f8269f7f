"""AWS Trainium and Inferentia by `neuron-monitor`, which writes one report of JSON a line.

The program is started once and read in a thread of its own; a sample takes its newest report. Fields are those of the guide to
neuron-monitor. Cores are numbered over all devices, so many to each.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

from chipwise.errors import BadInput, NotFound, OutsideFailed, TryLater
from chipwise.observe.probe import MOST_SHARE, usable
from chipwise.observe.sample import NoReading, Reading, Sample, SampledDevice

WITHIN_S = 15.0  # until the first report
MOST_BYTES = 4 << 20  # of a line
_AUTHOR = "neuron-monitor"
_NAMES = ("busy", "memory_used", "memory_total", "ecc_corrected", "ecc_uncorrected", "processes")
_SETTINGS = {
    "period": "1s",
    "neuron_runtimes": [
        {"tag_filter": ".*", "metrics": [{"type": name} for name in ("neuroncore_counters", "memory_used", "execution_stats")]}
    ],
    "system_metrics": [{"type": "neuron_hw_counters"}],
}


def connect(devices: Collection[int] | None = None, command: Sequence[str] = ("neuron-monitor",)) -> Neuron:
    """Raises where there is no such program or no device."""
    if shutil.which(command[0]) is None:
        raise NotFound("neuron-monitor is not installed.", remedy="Install the package aws-neuronx-tools.")
    probe = Neuron(_Reports(command))
    try:
        probe.begin(devices)
    except BaseException:
        probe.close()
        raise
    return probe


class Neuron:
    def __init__(self, reports: _Reports) -> None:
        self._reports = reports
        self._numbers: list[int] = []
        self._kind = ""

    def begin(self, devices: Collection[int] | None) -> None:
        report = read_report(self._reports.first())
        present = devices_of(report)
        if not present:
            raise NotFound("neuron-monitor lists no device.", remedy="Check that neuron-ls shows them.")
        if devices is not None and (absent := sorted(set(devices) - set(present))):
            raise BadInput(f"There is no Neuron device {absent[0]}.", remedy="neuron-ls shows them.")
        self._numbers = sorted(present if devices is None else devices)
        self._kind = _kind(report)

    def devices(self) -> Sequence[SampledDevice]:
        return [SampledDevice(f"neuron:{number}", self._kind) for number in self._numbers]

    def read(self, at_s: float) -> Sequence[Sample]:
        try:
            readings = readings_of(read_report(self._reports.newest()))
        except OutsideFailed as error:
            failed = NoReading(error.message)
            return [Sample(at_s, f"neuron:{number}", dict.fromkeys(_NAMES, failed)) for number in self._numbers]
        lost: dict[str, Reading] = {"busy": NoReading("neuron-monitor does not list this device any more")}
        return [Sample(at_s, f"neuron:{number}", readings.get(number, lost)) for number in self._numbers]

    def close(self) -> None:
        self._reports.close()


# -- a report


def read_report(line: bytes) -> Mapping[str, Any]:
    try:
        report = json.loads(line)
    except (ValueError, RecursionError):
        raise OutsideFailed("neuron-monitor wrote a line that is no JSON.", remedy="Check that it works by itself.") from None
    if not isinstance(report, dict):
        raise OutsideFailed("neuron-monitor wrote a line that is no report.", remedy="Check that it works by itself.")
    return report


def devices_of(report: Mapping[str, Any]) -> list[int]:
    count = _integer(_object(report, "neuron_hardware_info"), "neuron_device_count")
    return list(range(min(count or 0, 4096)))


def _kind(report: Mapping[str, Any]) -> str:
    kind = _object(report, "neuron_hardware_info").get("neuron_device_type")
    return f"AWS {kind.capitalize()}" if isinstance(kind, str) and kind else "AWS Neuron device"


def readings_of(report: Mapping[str, Any]) -> dict[int, dict[str, Reading]]:
    """By device. A core that no runtime holds does nothing."""
    hardware = _object(report, "neuron_hardware_info")
    cores = max(_integer(hardware, "neuroncore_per_device_count") or 1, 1)
    devices = devices_of(report)
    shares: dict[int, Reading] = {}
    used: dict[int, float] = dict.fromkeys(devices, 0.0)
    holders: dict[int, float] = dict.fromkeys(devices, 0.0)
    unknown_memory = False
    for runtime in _list(report, "neuron_runtime_data"):
        content = _object(runtime, "report")
        in_use = _object(_object(content, "neuroncore_counters"), "neuroncores_in_use")
        held_devices: set[int] = set()
        for text, core in in_use.items():
            if not text.isdecimal() or not isinstance(core, dict):
                continue
            held_devices.add(int(text) // cores)
            share = usable(core.get("neuroncore_utilization"), _AUTHOR, 100.0 * MOST_SHARE)
            shares[int(text)] = _sum(shares.get(int(text), 0.0), share if isinstance(share, NoReading) else share / 100.0)
        for device in held_devices & holders.keys():
            holders[device] += 1.0
        memory = _object(_object(content, "memory_used"), "neuron_runtime_used_bytes")
        by_core = _object(_object(memory, "usage_breakdown"), "neuroncore_memory_usage")
        if by_core:
            for text, parts in by_core.items():
                if text.isdecimal() and isinstance(parts, dict) and (device := int(text) // cores) in used:
                    used[device] += sum(size for size in parts.values() if isinstance(size, int | float) and size > 0)
        elif len(held_devices) == 1 and isinstance(total := usable(memory.get("neuron_device"), _AUTHOR), float):
            used[min(held_devices)] = used.get(min(held_devices), 0.0) + total
        elif memory:
            unknown_memory = True
    errors = {
        _integer(row, "neuron_device_index"): row
        for row in _list(_object(_object(report, "system_data"), "neuron_hw_counters"), "neuron_devices")
    }
    total_memory = hardware.get("neuron_device_memory_size")
    absent = NoReading("neuron-monitor does not report it")
    result: dict[int, dict[str, Reading]] = {}
    for device in devices:
        own = [shares.get(core, 0.0) for core in range(device * cores, (device + 1) * cores)]
        values = [share for share in own if not isinstance(share, NoReading)]
        lying = next((share for share in own if isinstance(share, NoReading)), None)
        row = errors.get(device)
        result[device] = {
            "busy": lying or sum(values) / cores,
            "memory_used": NoReading("neuron-monitor reports it for several devices together")
            if unknown_memory
            else used[device],
            "memory_total": absent if total_memory is None else usable(total_memory, _AUTHOR),
            "ecc_corrected": absent if row is None else _errors(row, "mem_ecc_corrected", "sram_ecc_corrected"),
            "ecc_uncorrected": absent if row is None else _errors(row, "mem_ecc_uncorrected", "sram_ecc_uncorrected"),
            "processes": holders[device],
        }
    return result


def _errors(row: Mapping[str, Any], *names: str) -> Reading:
    total: Reading = NoReading("neuron-monitor does not report it")
    for name in names:
        if name in row:
            total = _sum(0.0 if isinstance(total, NoReading) else total, usable(row[name], _AUTHOR))
            if isinstance(total, NoReading):
                break
    return total


def _sum(first: Reading, second: Reading) -> Reading:
    if isinstance(first, NoReading):
        return first
    return second if isinstance(second, NoReading) else first + second


def _object(content: object, name: str) -> Mapping[str, Any]:
    value = content.get(name) if isinstance(content, dict) else None
    return value if isinstance(value, dict) else {}


def _list(content: object, name: str) -> list[Any]:
    value = content.get(name) if isinstance(content, dict) else None
    return value if isinstance(value, list) else []


def _integer(content: object, name: str) -> int | None:
    value = content.get(name) if isinstance(content, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


# -- the program


class _Reports:
    """The newest line that it wrote."""

    def __init__(self, command: Sequence[str]) -> None:
        handle, self._settings = tempfile.mkstemp(prefix="chipwise-neuron-", suffix=".json")
        with os.fdopen(handle, "w") as file:
            json.dump(_SETTINGS, file)
        self._came = threading.Event()
        self._line = b""
        self._has_ended = False
        try:
            self._process = subprocess.Popen(
                [*command, "-c", self._settings], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            self._remove()
            raise OutsideFailed(
                f"neuron-monitor could not be started: {error}.", remedy="Check that it is installed."
            ) from error
        assert self._process.stdout is not None
        self._thread = threading.Thread(target=self._follow, args=(self._process.stdout,), daemon=True)
        self._thread.start()

    def _follow(self, stream: IO[bytes]) -> None:
        with suppress(OSError, ValueError):
            while line := stream.readline(MOST_BYTES):
                if line.endswith(b"\n"):
                    self._line = line
                    self._came.set()
        self._has_ended = True
        self._came.set()

    def first(self) -> bytes:
        if not self._came.wait(WITHIN_S):
            raise TryLater(f"neuron-monitor reported nothing within {WITHIN_S:g} s.", remedy="Check that it works by itself.")
        return self.newest()

    def newest(self) -> bytes:
        if self._has_ended:
            raise OutsideFailed("neuron-monitor ended.", remedy="Check that it works by itself.")
        return self._line

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._thread.join(1.0)  # its stream has ended
        if self._process.stdout is not None and not self._thread.is_alive():
            self._process.stdout.close()
        self._remove()

    def _remove(self) -> None:
        with suppress(OSError):
            os.unlink(self._settings)
