"""AMD devices, on JSON in the form of amd-smi and on a stand-in of its library; none of either is here."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from chipwise.adapters.probes import amd
from chipwise.errors import BadInput, NotFound, OutsideFailed
from chipwise.observe.sample import NoReading
from chipwise.units import MIB


def measured(value: object, unit: str) -> dict[str, object]:
    return {"value": value, "unit": unit}


DEVICE: dict[str, Any] = {
    "gpu": 0,
    "usage": {"gfx_activity": measured(97, "%"), "umc_activity": measured(41, "%"), "mm_activity": "N/A"},
    "power": {"socket_power": measured(612, "W"), "throttle_status": "UNTHROTTLED"},
    "clock": {"gfx_0": {"clk": measured(2100, "MHz"), "max_clk": measured(2100, "MHz"), "deep_sleep": "DISABLED"}},
    "temperature": {"edge": "N/A", "hotspot": measured(71, "C"), "mem": measured(58, "C")},
    "pcie": {"width": 16, "speed": measured(32, "GT/s"), "replay_count": "4", "current_bandwidth_sent": "N/A"},
    "ecc": {"total_correctable_count": 2, "total_uncorrectable_count": 0},
    "energy": {"total_energy_consumption": measured(1234.5, "J")},
    "mem_usage": {"total_vram": measured(196592, "MB"), "used_vram": measured(1024, "MB")},
}
READINGS = {
    "busy": 0.97,
    "memory_busy": 0.41,
    "power": 612.0,
    "temperature": 71.0,
    "memory_temperature": 58.0,
    "energy": 1234.5,
    "memory_used": 1024 * MIB,
    "memory_total": 196592 * MIB,
    "clock": 2100.0,
    "clock_max": 2100.0,
    "pcie_width": 16.0,
    "pcie_generation": 5.0,
    "pcie_replays": 4.0,
    "ecc_corrected": 2.0,
    "ecc_uncorrected": 0.0,
}


@pytest.mark.parametrize("content", [[DEVICE], {"gpu_data": [DEVICE]}])
def test_the_json_of_the_program(content: object) -> None:
    assert amd.read_json(json.dumps(content))[0] == pytest.approx(READINGS)


def test_what_a_chip_has_not_is_a_reason() -> None:
    [readings] = amd.read_json(json.dumps([{"gpu": 3, "usage": "N/A", "power": {"socket_power": "N/A"}}])).values()
    assert set(readings.values()) == {NoReading("amd-smi does not report it on this chip")}


@pytest.mark.parametrize("value", [-1, 400, "abc", True, [1]])
def test_a_share_that_cannot_be_is_a_reason(value: object) -> None:
    odd = DEVICE | {"usage": {"gfx_activity": measured(value, "%")}}
    assert isinstance(amd.read_json(json.dumps([odd]))[0]["busy"], NoReading)


@pytest.mark.parametrize("text", ["", "not json", "[" * 10_000])
def test_no_json_is_one_sentence(text: str) -> None:
    with pytest.raises(OutsideFailed, match="printed no JSON") as caught:
        amd.read_json(text)
    assert caught.value.remedy


def test_the_program_is_asked_now_and_then_only() -> None:
    asked = []

    def run() -> str:
        asked.append(1)
        return json.dumps([DEVICE])

    probe = amd.connect(run=run)
    for second in range(15):
        [sample] = probe.read(float(second))
        assert sample.value("power") == 612.0
    assert len(asked) == 3  # when it was connected, and twice since


def test_devices_that_are_not_there() -> None:
    with pytest.raises(BadInput, match="no AMD device 2"):
        amd.connect([2], run=lambda: json.dumps([DEVICE]))
    with pytest.raises(NotFound, match="lists no device"):
        amd.connect(run=lambda: "[]")


def test_a_program_that_fails_later_is_a_reason() -> None:
    answers = [json.dumps([DEVICE])]
    probe = amd.connect(run=lambda: answers.pop())
    [sample] = probe.read(0.0)
    assert isinstance(sample.readings["busy"], NoReading)


def failing(*_: object) -> Any:
    raise RuntimeError("AMDSMI_STATUS_NOT_SUPPORTED")


def test_the_library_and_what_it_does_not_support() -> None:
    library = SimpleNamespace(
        AmdSmiClkType=SimpleNamespace(GFX=0),
        AmdSmiTemperatureType=SimpleNamespace(HOTSPOT=1, VRAM=2),
        AmdSmiTemperatureMetric=SimpleNamespace(CURRENT=0),
        amdsmi_init=lambda: None,
        amdsmi_get_processor_handles=lambda: ["a", "b"],
        amdsmi_get_gpu_activity=lambda handle: {"gfx_activity": 97, "umc_activity": 41},
        amdsmi_get_power_info=lambda handle: {"current_socket_power": 612, "average_socket_power": "N/A"},
        amdsmi_get_temp_metric=lambda handle, sensor, metric: 71 if sensor == 1 else 58,
        amdsmi_get_gpu_vram_usage=lambda handle: {"vram_total": 196592, "vram_used": 1024},
        amdsmi_get_clock_info=lambda handle, clock: {"clk": 2100, "max_clk": 2100},
        amdsmi_get_pcie_info=lambda handle: {"pcie_metric": {"pcie_width": 16, "pcie_speed": 32000, "pcie_replay_count": 4}},
        amdsmi_get_gpu_total_ecc_count=lambda handle: {"correctable_count": 2, "uncorrectable_count": 0},
        amdsmi_get_energy_count=lambda handle: {"energy_accumulator": 1_000_000, "counter_resolution": 1234.5},
    )
    probe = amd.connect([1], library=library)
    [sample] = probe.read(0.0)
    assert sample.source == "amd:1"
    assert sample.readings == pytest.approx(READINGS)
    library.amdsmi_get_power_info = failing
    [sample] = probe.read(1.0)
    assert isinstance(sample.readings["power"], NoReading)
    assert sample.value("busy") == 0.97
