"""Neuron devices, on reports in the form of neuron-monitor, and on a stand-in program that writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chipwise.adapters.probes import neuron
from chipwise.errors import BadInput, NotFound, OutsideFailed
from chipwise.observe.sample import NoReading


def runtime(pid: int, cores: dict[str, float], memory: dict[str, int] | None = None) -> dict[str, Any]:
    breakdown = {core: {"constants": size, "tensors": size} for core, size in (memory or {}).items()}
    return {
        "pid": pid,
        "neuron_runtime_tag": str(pid),
        "error": "",
        "report": {
            "neuroncore_counters": {
                "period": 1.0,
                "neuroncores_in_use": {core: {"neuroncore_utilization": share} for core, share in cores.items()},
                "error": "",
            },
            "memory_used": {
                "neuron_runtime_used_bytes": {
                    "host": 5,
                    "neuron_device": 1000,
                    "usage_breakdown": {"neuroncore_memory_usage": breakdown},
                }
            },
        },
    }


REPORT: dict[str, Any] = {
    "neuron_runtime_data": [runtime(10, {"0": 80.0, "1": 40.0}, {"0": 100, "1": 200}), runtime(11, {"1": 10.0}, {"1": 5})],
    "system_data": {
        "neuron_hw_counters": {
            "period": 1.0,
            "neuron_devices": [
                {"neuron_device_index": 0, "mem_ecc_corrected": 3, "mem_ecc_uncorrected": 0, "sram_ecc_uncorrected": 1}
            ],
        }
    },
    "neuron_hardware_info": {
        "neuron_device_type": "trainium",
        "neuron_device_count": 2,
        "neuron_device_memory_size": 34359738368,
        "neuroncore_per_device_count": 2,
        "error": "",
    },
}


def test_cores_are_joined_to_their_devices() -> None:
    readings = neuron.readings_of(REPORT)
    assert readings[0] == pytest.approx(
        {
            "busy": 0.65,
            "memory_used": 610.0,
            "memory_total": 34359738368.0,
            "ecc_corrected": 3.0,
            "ecc_uncorrected": 1.0,
            "processes": 2.0,
        }
    )
    assert readings[1]["busy"] == 0.0
    assert readings[1]["ecc_corrected"] == NoReading("neuron-monitor does not report it")


def test_memory_without_a_breakdown_belongs_to_the_only_device() -> None:
    alone = REPORT | {"neuron_runtime_data": [runtime(10, {"2": 10.0})]}
    assert neuron.readings_of(alone)[1]["memory_used"] == 1000.0
    both = REPORT | {"neuron_runtime_data": [runtime(10, {"0": 10.0, "2": 10.0})]}
    assert isinstance(neuron.readings_of(both)[0]["memory_used"], NoReading)


@pytest.mark.parametrize("share", [-1.0, 1000.0, "x", None])
def test_a_share_that_cannot_be_is_a_reason(share: Any) -> None:
    odd = REPORT | {"neuron_runtime_data": [runtime(10, {"0": share})]}
    assert isinstance(neuron.readings_of(odd)[0]["busy"], NoReading)


@pytest.mark.parametrize(
    "content", [{}, {"neuron_hardware_info": 5}, {"neuron_runtime_data": [5, {"report": []}]}, {"system_data": []}]
)
def test_odd_reports_have_no_devices(content: dict[str, Any]) -> None:
    assert neuron.readings_of(content) == {}


def monitor(tmp_path: Path, body: str) -> str:
    path = tmp_path / "neuron-monitor"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_the_program_is_followed_and_ended(tmp_path: Path) -> None:
    (tmp_path / "report").write_text(json.dumps(REPORT) + "\n")
    command = monitor(tmp_path, f"cp $2 {tmp_path}/settings; cat {tmp_path}/report; exec sleep 30")
    probe = neuron.connect(command=[command])
    try:
        assert [device.name for device in probe.devices()] == ["AWS Trainium"] * 2
        first, _ = probe.read(1.0)
        assert first.value("busy") == pytest.approx(0.65)
        assert json.loads((tmp_path / "settings").read_text())["period"] == "1s"
    finally:
        probe.close()


def test_a_program_that_ends_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "report").write_text(json.dumps(REPORT) + "\n")
    command = monitor(tmp_path, f"cat {tmp_path}/report; sleep 0.2")
    probe = neuron.connect([0], command=[command])
    probe._reports._thread.join(5.0)
    [sample] = probe.read(1.0)
    assert sample.readings["busy"] == NoReading("neuron-monitor ended.")
    probe.close()


@pytest.mark.parametrize("text", ["no json", "[1]", ""])
def test_a_program_that_writes_something_else(tmp_path: Path, text: str) -> None:
    command = monitor(tmp_path, f"echo '{text}'; exec sleep 30" if text else "exit 1")
    with pytest.raises(OutsideFailed, match="neuron-monitor"):
        neuron.connect(command=[command])


def test_no_program_and_no_such_device(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="not installed"):
        neuron.connect(command=[str(tmp_path / "none")])
    (tmp_path / "report").write_text(json.dumps(REPORT) + "\n")
    with pytest.raises(BadInput, match="no Neuron device 7"):
        neuron.connect([7], command=[monitor(tmp_path, f"cat {tmp_path}/report; exec sleep 30")])
