"""NVIDIA devices by NVML (the package nvidia-ml-py), with the GPM counters that Hopper and newer have.

Utilisation as NVML reports it says only that something ran. GPM counts between two of its samples how much of the device
worked: multiprocessors, matrix units, memory, PCIe, NVLink. Where the driver or the chip lacks a sensor, the reading is the
reason.

What changes slowly (limits, links, error counts) is read every `SLOW_S`, and so is the energy: that counter alone takes the
driver of an H200 4 ms, where all GPM counters take 1.5 ms, a replay counter 0.15 ms and other sensors some microseconds.
Whoever samples for hours reads GPM every `COUNTERS_S`: each reading is then the mean since the one before, and samples between
two have none. Nothing of a mean is lost; what changes faster is not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from chipwise.errors import BadInput, MissingExtra, NotAllowed, NotFound, OutsideFailed
from chipwise.observe.probe import usable
from chipwise.observe.sample import NoReading, Reading, Sample, SampledDevice
from chipwise.units import MIB

SLOW_S = 10.0
COUNTERS_S = 5.0  # for who samples as long as a job runs
DRIVER = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidiactl"))  # one of them is there where it is loaded
NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND = 3, 4, 9, 12, 13
GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH = 15, 16, 18
_REASONS = {
    NOT_SUPPORTED: "this chip or driver has no such sensor",
    NO_PERMISSION: "the driver does not allow this user to read it",
    FUNCTION_NOT_FOUND: "the driver is too old for it",
    GPU_IS_LOST: "the GPU is lost: restart the machine",
    RESET_REQUIRED: "the GPU must be reset",
}
_FIRST_S = 1.0  # until the first reading
_EARLY_S = 0.1  # a sample that comes a little before its time
NO_GPM = "only Hopper and newer chips have GPM counters"

# Metric: the number of the GPM counter, and what makes it our unit.
_GPM = {
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
    "nvlink_received": (60, MIB),
    "nvlink_sent": (61, MIB),
}
# Reasons for a lower clock, as bits.
_POWER, _HEAT, _HARDWARE = 0x4, 0x20 | 0x40, 0x8 | 0x80
_XID_EVENT = 0x8
_CORRECTED, _UNCORRECTED, _SINCE_START = 0, 1, 0
_SM, _CHIP = 1, 0  # a clock, a thermometer
_MEMORY_TEMPERATURE = 82  # fields of nvmlDeviceGetFieldValues
_LINK_ERRORS = (38, 45, 52, 59)  # CRC of flits and of data, replays, recoveries: of all lanes
_LINK_ERRORS_NEW = (161, 162, 163)  # replays, recoveries, CRC: as Hopper counts them


def connect(devices: Collection[int] | None = None, nvml: Any = None, counters_s: float = 0.0) -> Nvidia:
    """`devices`: their numbers as the driver lists them; None: all. `counters_s`: between two readings of GPM; 0: with every
    sample. Raises where there is no driver or no such device."""
    if nvml is None:
        try:
            nvml = import_module("pynvml")
        except ImportError:
            if not any(path.exists() for path in DRIVER):
                raise _no_driver() from None
            raise MissingExtra("Reading NVIDIA devices", "nvidia") from None
    try:
        nvml.nvmlInit()
        count = nvml.nvmlDeviceGetCount()
    except nvml.NVMLError as error:
        raise _cannot_start(error) from error
    if devices is not None and (absent := sorted(set(devices) - set(range(count)))):
        listed = f"{count} NVIDIA devices, numbered from 0" if count else "no NVIDIA device"
        raise BadInput(f"There is no device {absent[0]}: the driver lists {listed}.", remedy="nvidia-smi -L lists them.")
    return Nvidia(nvml, sorted(range(count) if devices is None else set(devices)), counters_s)


def _no_driver() -> NotFound:
    return NotFound("No NVIDIA driver is loaded.", remedy="Install it, or load it with `modprobe nvidia`.")


def _cannot_start(error: Any) -> OutsideFailed:
    code = getattr(error, "value", None)
    if code in (LIBRARY_NOT_FOUND, DRIVER_NOT_LOADED):
        return _no_driver()
    if code == NO_PERMISSION:
        return NotAllowed(
            "The NVIDIA driver does not admit this user.", remedy="Check the permissions of /dev/nvidiactl and /dev/nvidia*."
        )
    if code == VERSION_MISMATCH:
        return OutsideFailed(
            "The NVIDIA driver that runs and its library have different versions.",
            remedy="Restart the machine after an update.",
        )
    return OutsideFailed(f"The NVIDIA driver did not answer: {error}.", remedy="Check that nvidia-smi works.")


class Nvidia:
    def __init__(self, nvml: Any, numbers: Sequence[int], counters_s: float) -> None:
        self._nvml = nvml
        self._events = _Events(nvml)
        self._units = [_Unit(nvml, number, self._events, counters_s) for number in numbers]

    def devices(self) -> Sequence[SampledDevice]:
        return [unit.device() for unit in self._units]

    def read(self, at_s: float) -> Sequence[Sample]:
        self._events.poll()
        return [unit.read(at_s) for unit in self._units]

    def close(self) -> None:
        for unit in self._units:
            unit.close()
        with suppress(Exception):  # it ends with us
            self._nvml.nvmlShutdown()


class _Events:
    """Error codes (XID) that the driver reports while we look; it keeps none of earlier ones."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._waits: Any = None
        self.codes: dict[int, float] = {}  # by device
        with suppress(nvml.NVMLError, AttributeError):
            self._waits = nvml.nvmlEventSetCreate()

    def register(self, handle: Any) -> Reading:
        if self._waits is None:
            return NoReading(_REASONS[NOT_SUPPORTED])
        try:
            self._nvml.nvmlDeviceRegisterEvents(handle, _XID_EVENT, self._waits)
        except self._nvml.NVMLError as error:
            return _reason(error)
        return 0.0

    def poll(self) -> None:
        while self._waits is not None:
            try:
                event = self._nvml.nvmlEventSetWait_v2(self._waits, 0)
                self.codes[self._nvml.nvmlDeviceGetIndex(event.device)] = float(event.eventData)
            except self._nvml.NVMLError:  # a timeout: none came
                return


class _Unit:
    """One device."""

    def __init__(self, nvml: Any, number: int, events: _Events, counters_s: float) -> None:
        self._nvml, self.number, self._events = nvml, number, events
        self.source = f"nvidia:{number}"
        self._handle: Any = None
        self._lost: NoReading | None = None
        try:
            self._handle = nvml.nvmlDeviceGetHandleByIndex(number)
        except nvml.NVMLError as error:
            self._lost = _reason(error)
            return
        self._xid = events.register(self._handle)
        self._gpm = _Gpm(nvml, self._handle, counters_s)
        self._slow: dict[str, Reading] = {}
        self._slow_at_s: float | None = None

    def device(self) -> SampledDevice:
        if self._handle is None:
            return SampledDevice(self.source, "NVIDIA device that does not answer")
        nvml, handle = self._nvml, self._handle
        name, identity, driver, bus = "", "", "", ""
        with suppress(nvml.NVMLError):
            name = _text(nvml.nvmlDeviceGetName(handle))
        with suppress(nvml.NVMLError):
            identity = _text(nvml.nvmlDeviceGetUUID(handle))
        with suppress(nvml.NVMLError):
            driver = _text(nvml.nvmlSystemGetDriverVersion())
        with suppress(nvml.NVMLError):
            bus = _text(nvml.nvmlDeviceGetPciInfo(handle).busId)
        return SampledDevice(
            source=self.source, name=name or "NVIDIA device", identity=identity, numa_node=_numa_node(bus), driver=driver
        )

    def read(self, at_s: float) -> Sample:
        if self._lost is not None:
            return Sample(at_s, self.source, {"busy": self._lost})
        nvml, handle = self._nvml, self._handle
        readings: dict[str, Reading] = {}
        self._add_readings(readings, ("busy", "memory_busy"), lambda: _shares(nvml.nvmlDeviceGetUtilizationRates(handle)))
        readings |= self._gpm.read(at_s)
        self._add_readings(readings, ("memory_used", "memory_total"), lambda: _memory(nvml.nvmlDeviceGetMemoryInfo(handle)))
        self._add_reading(readings, "power", lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3)
        self._add_reading(readings, "temperature", lambda: nvml.nvmlDeviceGetTemperature(handle, _CHIP))
        self._add_reading(readings, "clock", lambda: nvml.nvmlDeviceGetClockInfo(handle, _SM))
        self._add_readings(
            readings,
            ("throttled_power", "throttled_heat", "throttled_hardware"),
            lambda: _throttling(self._clock_reasons()),
        )
        self._add_reading(readings, "processes", lambda: len(nvml.nvmlDeviceGetComputeRunningProcesses(handle)))
        if self._slow_at_s is None or at_s - self._slow_at_s >= SLOW_S:
            self._slow, self._slow_at_s = self._read_slow(), at_s
        readings |= self._slow
        readings["xid"] = self._events.codes.get(self.number, self._xid)
        return Sample(at_s, self.source, readings)

    def _read_slow(self) -> dict[str, Reading]:
        nvml, handle = self._nvml, self._handle
        readings: dict[str, Reading] = {}
        self._add_reading(readings, "energy", lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3)
        self._add_reading(readings, "power_limit", lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3)
        self._add_reading(readings, "clock_max", lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, _SM))
        self._add_reading(readings, "memory_temperature", lambda: self._field(_MEMORY_TEMPERATURE))
        self._add_reading(readings, "pcie_generation", lambda: nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle))
        self._add_reading(readings, "pcie_generation_max", lambda: nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle))
        self._add_reading(readings, "pcie_width", lambda: nvml.nvmlDeviceGetCurrPcieLinkWidth(handle))
        self._add_reading(readings, "pcie_width_max", lambda: nvml.nvmlDeviceGetMaxPcieLinkWidth(handle))
        self._add_reading(readings, "pcie_replays", lambda: nvml.nvmlDeviceGetPcieReplayCounter(handle))
        self._add_reading(readings, "nvlink_errors", self._link_errors)
        self._add_reading(readings, "ecc_corrected", lambda: nvml.nvmlDeviceGetTotalEccErrors(handle, _CORRECTED, _SINCE_START))
        self._add_reading(
            readings, "ecc_uncorrected", lambda: nvml.nvmlDeviceGetTotalEccErrors(handle, _UNCORRECTED, _SINCE_START)
        )
        self._add_readings(
            readings,
            ("remapped_rows", "remap_pending", "remap_failed"),
            lambda: _remapped(nvml.nvmlDeviceGetRemappedRows(handle)),
        )
        return readings

    def _clock_reasons(self) -> int:
        """By its new name, and on an older driver by its old one."""
        try:
            return int(self._nvml.nvmlDeviceGetCurrentClocksEventReasons(self._handle))
        except self._nvml.NVMLError as error:
            if getattr(error, "value", None) != FUNCTION_NOT_FOUND:
                raise
            return int(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))

    def _field(self, number: int) -> float:
        return _sum_of_fields(self._nvml, self._nvml.nvmlDeviceGetFieldValues(self._handle, [number]))

    def _link_errors(self) -> float:
        try:
            return _sum_of_fields(self._nvml, self._nvml.nvmlDeviceGetFieldValues(self._handle, list(_LINK_ERRORS_NEW)))
        except self._nvml.NVMLError:
            return _sum_of_fields(self._nvml, self._nvml.nvmlDeviceGetFieldValues(self._handle, list(_LINK_ERRORS)))

    def _add_reading(self, readings: dict[str, Reading], name: str, ask: Callable[[], float]) -> None:
        self._add_readings(readings, (name,), lambda: (ask(),))

    def _add_readings(self, readings: dict[str, Reading], names: Sequence[str], ask: Callable[[], Sequence[float]]) -> None:
        """What one call answers, or for each name why it does not."""
        try:
            values = ask()
        except self._nvml.NVMLError as error:
            reason = _reason(error)
            readings.update(dict.fromkeys(names, reason))
        except AttributeError:
            readings.update(dict.fromkeys(names, NoReading("nvidia-ml-py is too old for it")))
        else:
            readings.update((name, usable(float(value), "the driver")) for name, value in zip(names, values, strict=True))

    def close(self) -> None:
        if self._handle is not None:
            self._gpm.close()


class _Gpm:
    """Counters between the last reading and this one."""

    def __init__(self, nvml: Any, handle: Any, every_s: float) -> None:
        self._nvml, self._handle, self._every_s = nvml, handle, every_s
        self._read_at_s: float | None = None
        self._samples: list[Any] = []
        self._absent: NoReading | None = None
        self._has_first = False
        try:
            if not nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
                self._absent = NoReading(NO_GPM)
                return
            self._samples = [nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()]
            self._question = nvml.c_nvmlGpmMetricsGet_t()
            self._question.version = nvml.NVML_GPM_METRICS_GET_VERSION
            self._question.numMetrics = len(_GPM)
            for place, (number, _) in enumerate(_GPM.values()):
                self._question.metrics[place].metricId = number
            nvml.nvmlGpmSampleGet(handle, self._samples[0])
            self._has_first = True
        except nvml.NVMLError as error:
            unsupported = getattr(error, "value", None) in (NOT_SUPPORTED, FUNCTION_NOT_FOUND)
            self._absent = NoReading(NO_GPM) if unsupported else _reason(error)
        except AttributeError:
            self._absent = NoReading("nvidia-ml-py is too old for GPM counters")

    def read(self, at_s: float) -> dict[str, Reading]:
        if self._absent is not None:
            return dict.fromkeys(_GPM, self._absent)
        if self._read_at_s is None and self._every_s:  # of the moment since it was opened, which would stand for long
            self._read_at_s = at_s - self._every_s + _FIRST_S
            return dict.fromkeys(_GPM, NoReading("the next sample has it"))
        if self._read_at_s is not None and 0 <= at_s - self._read_at_s < self._every_s - _EARLY_S:
            return {}
        self._read_at_s = at_s
        return self._counted()

    def _counted(self) -> dict[str, Reading]:
        nvml, (before, now) = self._nvml, self._samples
        try:
            nvml.nvmlGpmSampleGet(self._handle, now)
            self._samples = [now, before]
            if not self._has_first:
                self._has_first = True
                return dict.fromkeys(_GPM, NoReading("the next sample has it"))
            self._question.sample1, self._question.sample2 = before, now
            nvml.nvmlGpmMetricsGet(self._question)
        except nvml.NVMLError as error:
            self._has_first = False
            return dict.fromkeys(_GPM, _reason(error))
        readings: dict[str, Reading] = {}
        for place, (name, (_, scale)) in enumerate(_GPM.items()):
            metric = self._question.metrics[place]
            readings[name] = (
                usable(metric.value * scale, "the driver") if metric.nvmlReturn == 0 else NoReading(_words(metric.nvmlReturn))
            )
        return readings

    def close(self) -> None:
        for sample in self._samples:
            with suppress(Exception):
                self._nvml.nvmlGpmSampleFree(sample)
        self._samples = []
        self._absent = NoReading("it is closed")


def _words(code: int) -> str:
    return _REASONS.get(code, f"the driver refuses with code {code}")


def _reason(error: Any) -> NoReading:
    code = getattr(error, "value", 0)
    return NoReading(_REASONS.get(code, f"the driver refuses: {error}"[:200]))


def _shares(rates: Any) -> tuple[float, float]:
    return rates.gpu / 100.0, rates.memory / 100.0


def _memory(memory: Any) -> tuple[float, float]:
    return memory.used, memory.total


def _throttling(bits: int) -> tuple[float, float, float]:
    return float(bool(bits & _POWER)), float(bool(bits & _HEAT)), float(bool(bits & _HARDWARE))


def _remapped(rows: Sequence[int]) -> tuple[float, float, float]:
    corrected, uncorrected, pending, failed = rows
    return corrected + uncorrected, pending, failed


def _sum_of_fields(nvml: Any, fields: Any) -> float:
    """Of unsigned values; raises where one of them is refused."""
    total = 0.0
    for field in fields:
        if field.nvmlReturn != 0:
            raise nvml.NVMLError(field.nvmlReturn)
        total += field.value.uiVal if field.valueType == 1 else field.value.ullVal
    return total


def _numa_node(bus: str) -> int | None:
    """As the kernel knows the device on that bus: 00000000:3B:00.0 is 0000:3b:00.0 there."""
    if not bus:
        return None
    domain, _, rest = bus.lower().partition(":")
    with suppress(OSError, ValueError):
        node = int(Path(f"/sys/bus/pci/devices/{domain[-4:]}:{rest}/numa_node").read_text())
        return node if node >= 0 else None
    return None


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
