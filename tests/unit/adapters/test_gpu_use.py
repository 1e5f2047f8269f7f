"""What nvidia-smi tells, from a stand-in program of that name: there is no driver where tests run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from chipwise.adapters import gpu_use
from chipwise.adapters.gpu_use import GpuUse, look, of_samples, read
from chipwise.observe.sample import NoReading, Sample
from chipwise.units import MIB


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for nvidia-smi; tests write what it does."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "nvidia-smi"


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_the_stand_in_is_asked_as_the_real_one_and_read_by_index(stand_in: Path, tmp_path: Path) -> None:
    script(stand_in, f'echo "$@" >{tmp_path}/asked; printf "1, 97, 70112, 81559\\n0, 0, 4, 81559\\n"')
    assert look() == {1: GpuUse(97.0, 70112 * MIB, 81559 * MIB), 0: GpuUse(0.0, 4 * MIB, 81559 * MIB)}
    asked = (tmp_path / "asked").read_text().strip()
    assert asked == "--query-gpu=index,utilization.gpu,memory.used,memory.total --format=csv,noheader,nounits"


def test_a_missing_sensor_is_a_value() -> None:
    assert read("0, [N/A], 10, [Not Supported]\n") == {0: GpuUse(None, 10 * MIB, None)}
    assert read("0, nan, -1, inf\n") == {0: GpuUse(None, None, None)}


@pytest.mark.parametrize("text", ["", "No devices were found\n", "0, 1\n", "x, 1, 2, 3\n", "0, 1, 2, 3, 4\n"])
def test_lines_of_another_form_tell_nothing(text: str) -> None:
    assert read(text) == {}


def test_a_driver_that_fails_or_hangs_or_is_not_there_tells_nothing(stand_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert look() == {}, "it is not there yet"
    script(stand_in, 'echo "0, 1, 2, 3"; exit 9')
    assert look() == {}
    stand_in.write_bytes(b"\x7fELF nonsense")
    assert look() == {}
    script(stand_in, "exec sleep 30")
    monkeypatch.setattr(gpu_use, "WITHIN_S", 0.3)
    begun = time.monotonic()
    assert look() == {}
    assert time.monotonic() - begun < 5.0


def test_the_same_of_samples_with_what_nvidia_smi_does_not_tell() -> None:
    samples = [Sample(0.0, "nvidia:1", {"busy": 0.5, "memory_used": 5.0, "sm_active": 0.25, "power": NoReading("no sensor")})]
    assert of_samples(samples) == {1: GpuUse(50.0, 5.0, None, sm_percent=25.0)}
