"""NVIDIA devices by a stand-in of NVML: units, and that whatever fails becomes a reason."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from chipwise.adapters.probes import nvidia
from chipwise.errors import BadInput, ChipwiseError, MissingExtra, NotAllowed, NotFound, OutsideFailed
from chipwise.observe import metrics
from chipwise.observe.sample import NoReading
from chipwise.observe.series import SampleStore
from chipwise.units import GIB, MIB
from nvml_stand_in import Nvml


def test_every_reading_is_in_our_unit() -> None:
    [sample] = nvidia.connect(nvml=Nvml()).read(5.0)
    assert (sample.at_s, sample.source) == (5.0, "nvidia:0")
    expected = {
        "busy": 0.99,
        "memory_busy": 0.3,
        "graphics_active": 0.97,
        "sm_active": 0.96,
        "sm_occupancy": 0.2,
        "tensor_active": 0.94,
        "dram_active": 0.16,
        "fp64_active": 0.0,
        "fp32_active": 0.01,
        "fp16_active": 0.02,
        "pcie_sent": 10 * MIB,
        "pcie_received": 2000 * MIB,
        "nvlink_received": 5 * MIB,
        "nvlink_sent": 6 * MIB,
        "memory_used": 60 * GIB,
        "memory_total": 141 * GIB,
        "power": 692.0,
        "energy": 692.0,
        "temperature": 64.0,
        "clock": 1755.0,
        "throttled_power": 1.0,
        "throttled_heat": 0.0,
        "throttled_hardware": 0.0,
        "power_limit": 700.0,
        "clock_max": 1980.0,
        "memory_temperature": 82.0,
        "pcie_generation": 5.0,
        "pcie_generation_max": 5.0,
        "pcie_width": 16.0,
        "pcie_width_max": 16.0,
        "pcie_replays": 3.0,
        "nvlink_errors": 161.0 + 162 + 163,
        "ecc_corrected": 7.0,
        "ecc_uncorrected": 0.0,
        "remapped_rows": 3.0,
        "remap_pending": 0.0,
        "remap_failed": 0.0,
        "processes": 1.0,
        "xid": 0.0,
    }
    assert sample.readings == pytest.approx(expected)
    assert set(sample.readings) == set(metrics.DEVICE), "every metric of a device is read, or has a reason"


def test_devices_are_described_once() -> None:
    [device] = nvidia.connect([1], nvml=Nvml(count=2)).devices()
    assert (device.source, device.name, device.identity, device.driver) == ("nvidia:1", "NVIDIA H200", "GPU-1", "580.65.06")


CALLS = sorted({name for name in dir(Nvml) if name.startswith("nvmlDevice")} - {"nvmlDeviceGetCount", "nvmlDeviceGetIndex"})


@pytest.mark.parametrize("call", [*CALLS, "nvmlGpmSampleGet", "nvmlGpmMetricsGet", "nvmlGpmQueryDeviceSupport"])
def test_a_call_that_fails_is_a_reason_and_never_a_zero(call: str) -> None:
    nvml = Nvml(failing={call: nvidia.NO_PERMISSION})
    probe = nvidia.connect(nvml=nvml)
    probe.devices()
    [sample] = probe.read(0.0)
    reasons = {reading.reason for reading in sample.readings.values() if isinstance(reading, NoReading)}
    assert reasons <= {"the driver does not allow this user to read it"}
    is_about_a_reading = call not in (
        "nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetPciInfo", "nvmlDeviceGetCurrentClocksThrottleReasons"
    )  # fmt: skip
    assert bool(reasons) == is_about_a_reading


def test_a_chip_before_hopper_has_no_counters_and_all_else() -> None:
    [sample] = nvidia.connect(nvml=Nvml(supports_gpm=False)).read(0.0)
    assert sample.readings["sm_active"] == NoReading(nvidia.NO_GPM)
    assert sample.value("power") == 692.0


def test_an_old_driver_says_so_and_is_asked_by_the_old_name() -> None:
    nvml = Nvml(failing={"nvmlDeviceGetCurrentClocksEventReasons": nvidia.FUNCTION_NOT_FOUND}, reasons=0x48)
    [sample] = nvidia.connect(nvml=nvml).read(0.0)
    assert [sample.value(f"throttled_{cause}") for cause in ("power", "heat", "hardware")] == [0.0, 1.0, 1.0]
    nvml.failing["nvmlDeviceGetTotalEnergyConsumption"] = nvidia.FUNCTION_NOT_FOUND
    [sample] = nvidia.connect(nvml=nvml).read(0.0)
    assert sample.readings["energy"] == NoReading("the driver is too old for it")


@pytest.mark.parametrize("value", [math.nan, -1.0, math.inf])
def test_a_counter_that_cannot_be_is_a_reason(value: float) -> None:
    nvml = Nvml(gpm_returns={5: 3})
    nvml.gpm_values[2] = value
    [sample] = nvidia.connect(nvml=nvml).read(0.0)
    assert isinstance(sample.readings["sm_active"], NoReading)
    assert sample.readings["tensor_active"] == NoReading("this chip or driver has no such sensor")
    assert sample.value("dram_active") == 0.16


def test_a_lost_gpu_leaves_the_others_alone() -> None:
    nvml = Nvml(count=2)
    probe = nvidia.connect(nvml=nvml)
    nvml.failing |= dict.fromkeys(CALLS, nvidia.GPU_IS_LOST)
    for sample in probe.read(0.0):
        assert sample.readings["power"] == NoReading("the GPU is lost: restart the machine")


def test_an_error_code_of_the_driver_stays() -> None:
    nvml = Nvml(count=2)
    probe = nvidia.connect(nvml=nvml)
    nvml.events = [(1, 79)]
    assert [sample.value("xid") for sample in probe.read(0.0)] == [0.0, 79.0]
    assert [sample.value("xid") for sample in probe.read(1.0)] == [0.0, 79.0]


def test_slow_readings_are_kept_for_a_while() -> None:
    nvml = Nvml()
    probe = nvidia.connect(nvml=nvml)
    for second in range(20):
        [sample] = probe.read(float(second))
        assert "ecc_corrected" in sample.readings
    assert nvml.calls.count("nvmlDeviceGetRemappedRows") == 2
    assert nvml.calls.count("nvmlDeviceGetPowerUsage") == 20


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (nvidia.LIBRARY_NOT_FOUND, NotFound),
        (nvidia.DRIVER_NOT_LOADED, NotFound),
        (nvidia.NO_PERMISSION, NotAllowed),
        (nvidia.VERSION_MISMATCH, OutsideFailed),
        (999, OutsideFailed),
    ],
)
def test_no_driver_is_one_sentence_with_a_remedy(code: int, kind: type[ChipwiseError]) -> None:
    with pytest.raises(kind) as caught:
        nvidia.connect(nvml=Nvml(failing={"nvmlInit": code}))
    assert caught.value.remedy
    assert caught.value.exit_code == 3


def test_no_such_device() -> None:
    with pytest.raises(BadInput, match="no device 4: the driver lists 2"):
        nvidia.connect([0, 4], nvml=Nvml(count=2))


def test_without_the_package_the_message_has_the_pip_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NotFound, match="No NVIDIA driver"):
        nvidia.connect()
    monkeypatch.setattr(nvidia, "DRIVER", (tmp_path,))
    with pytest.raises(MissingExtra, match=r"chipwise\[nvidia\]"):
        nvidia.connect()


def test_the_stand_in_has_nothing_that_the_real_module_lacks() -> None:
    real = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    names = [name for name in dir(Nvml) if name.startswith(("nvml", "c_nvml"))]
    assert [name for name in names if not hasattr(real, name)] == []
    with pytest.raises(OutsideFailed):
        nvidia.connect()
    assert Path(real.__file__).exists()


def test_who_samples_for_long_reads_the_counters_less_often_and_the_newest_sample_keeps_them() -> None:
    nvml = Nvml()
    probe = nvidia.connect(nvml=nvml, counters_s=nvidia.COUNTERS_S)
    shares, store, shown = [], SampleStore(), []
    for second in range(12):
        nvml.gpm_values[2] = float(second)
        [sample] = probe.read(float(second) - 0.02 * (second % 2))  # now and then a little early
        shares.append(sample.value("sm_active"))
        store.add(sample)
        shown.append(store.newest["nvidia:0"].value("sm_active"))
    assert {second: share for second, share in enumerate(shares) if share is not None} == {1: 0.01, 6: 0.06, 11: 0.11}
    assert shown == [None, *[0.01] * 5, *[0.06] * 5, 0.11]
    assert nvml.calls.count("nvmlGpmMetricsGet") == 3
    assert nvml.calls.count("nvmlDeviceGetPowerUsage") == 12
