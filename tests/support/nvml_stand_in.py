"""A stand-in for the module pynvml, with as many devices as asked for: there is no driver where tests run.

It answers as the real one does: values in the driver's units, structures with the same fields, errors with the same codes.
What a test wants to fail is named in `failing`, with the code. Nothing here was measured; `benchmarks/watch_device.py` runs the
probe on a real driver.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

GPM_VALUES = {1: 97.0, 2: 96.0, 3: 20.0, 5: 94.0, 10: 16.0, 11: 0.0, 12: 1.0, 13: 2.0, 20: 10.0, 21: 2000.0, 60: 5.0, 61: 6.0}


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"code {value}")
        self.value = value


@dataclass
class Nvml:
    count: int = 1
    failing: dict[str, int] = field(default_factory=dict)  # by the name of the function, the code
    gpm_values: dict[int, float] = field(default_factory=lambda: dict(GPM_VALUES))
    gpm_returns: dict[int, int] = field(default_factory=dict)
    supports_gpm: bool = True
    reasons: int = 0x4
    utilisation: int = 99
    events: list[tuple[int, int]] = field(default_factory=list)  # device and XID, to come
    calls: list[str] = field(default_factory=list)
    energy_mj: int = 0

    NVMLError = NVMLError
    NVML_GPM_METRICS_GET_VERSION = 1

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml"):
            self.calls.append(name)
            if (code := self.failing.get(name)) is not None:
                raise_it(code)
        return object.__getattribute__(self, name)

    def nvmlInit(self) -> None: ...  # noqa: N802
    def nvmlShutdown(self) -> None: ...  # noqa: N802

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:  # noqa: N802
        return SimpleNamespace(index=index)

    def nvmlDeviceGetIndex(self, handle: Any) -> int:  # noqa: N802
        return int(handle.index)

    def nvmlDeviceGetName(self, handle: Any) -> str:  # noqa: N802
        return "NVIDIA H200"

    def nvmlDeviceGetUUID(self, handle: Any) -> bytes:  # noqa: N802
        return f"GPU-{handle.index}".encode()

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.65.06"

    def nvmlDeviceGetPciInfo(self, handle: Any) -> Any:  # noqa: N802
        return SimpleNamespace(busId="00000000:3B:00.0")

    def nvmlDeviceGetUtilizationRates(self, handle: Any) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=self.utilisation, memory=30)

    def nvmlDeviceGetMemoryInfo(self, handle: Any) -> Any:  # noqa: N802
        return SimpleNamespace(used=60 << 30, total=141 << 30)

    def nvmlDeviceGetPowerUsage(self, handle: Any) -> int:  # noqa: N802
        return 692_000

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: Any) -> int:  # noqa: N802
        return 700_000

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any) -> int:  # noqa: N802
        self.energy_mj += 692_000
        return self.energy_mj

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: int) -> int:  # noqa: N802
        return 64

    def nvmlDeviceGetClockInfo(self, handle: Any, clock: int) -> int:  # noqa: N802
        return 1_755

    def nvmlDeviceGetMaxClockInfo(self, handle: Any, clock: int) -> int:  # noqa: N802
        return 1_980

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: Any) -> int:  # noqa: N802
        return self.reasons

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any) -> int:  # noqa: N802
        return self.reasons

    def nvmlDeviceGetCurrPcieLinkGeneration(self, handle: Any) -> int:  # noqa: N802
        return 5

    def nvmlDeviceGetMaxPcieLinkGeneration(self, handle: Any) -> int:  # noqa: N802
        return 5

    def nvmlDeviceGetCurrPcieLinkWidth(self, handle: Any) -> int:  # noqa: N802
        return 16

    def nvmlDeviceGetMaxPcieLinkWidth(self, handle: Any) -> int:  # noqa: N802
        return 16

    def nvmlDeviceGetPcieReplayCounter(self, handle: Any) -> int:  # noqa: N802
        return 3

    def nvmlDeviceGetTotalEccErrors(self, handle: Any, kind: int, counter: int) -> int:  # noqa: N802
        return 7 if kind == 0 else 0

    def nvmlDeviceGetRemappedRows(self, handle: Any) -> tuple[int, int, int, int]:  # noqa: N802
        return (1, 2, 0, 0)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Any) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=1, usedGpuMemory=1 << 30)]

    def nvmlDeviceGetFieldValues(self, handle: Any, numbers: list[int]) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(nvmlReturn=0, valueType=1, value=SimpleNamespace(uiVal=number)) for number in numbers]

    def nvmlEventSetCreate(self) -> Any:  # noqa: N802
        return SimpleNamespace()

    def nvmlDeviceRegisterEvents(self, handle: Any, kinds: int, waits: Any) -> None: ...  # noqa: N802

    def nvmlEventSetWait_v2(self, waits: Any, timeout_ms: int) -> Any:  # noqa: N802
        if not self.events:
            raise_it(10)
        device, code = self.events.pop(0)
        return SimpleNamespace(device=SimpleNamespace(index=device), eventData=code)

    def nvmlGpmQueryDeviceSupport(self, handle: Any) -> Any:  # noqa: N802
        return SimpleNamespace(isSupportedDevice=int(self.supports_gpm))

    def nvmlGpmSampleAlloc(self) -> Any:  # noqa: N802
        return SimpleNamespace()

    def nvmlGpmSampleFree(self, sample: Any) -> None: ...  # noqa: N802

    def nvmlGpmSampleGet(self, handle: Any, sample: Any) -> Any:  # noqa: N802
        return sample

    def c_nvmlGpmMetricsGet_t(self) -> Any:  # noqa: N802
        return SimpleNamespace(metrics=[SimpleNamespace(nvmlReturn=0, value=0.0) for _ in range(98)])

    def nvmlGpmMetricsGet(self, question: Any) -> Any:  # noqa: N802
        for metric in question.metrics[: question.numMetrics]:
            metric.value = self.gpm_values[metric.metricId]
            metric.nvmlReturn = self.gpm_returns.get(metric.metricId, 0)
        return question


def raise_it(code: int) -> None:
    raise NVMLError(code)
