"""What a supervisor samples of its job: recorded in the attempt's folder, with a summary, and never in the job's way."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from chipwise.adapters.engines.local import folder, samples
from chipwise.adapters.probes import nvidia
from chipwise.adapters.recordings import NAME
from chipwise.observe.recording import load
from chipwise.observe.sample import NoReading
from nvml_stand_in import Nvml

ORDER: dict[str, Any] = {
    "gpus": [1],
    "watch": {
        "labels": {"job": "train-1", "team": ""},
        "predicted": {"steps_per_s": 2.0, "steps_per_s_low": 1.5, "steps_per_s_high": 3.0, "why_not": "x"},
        "usd_per_hour": 3600.0,
        "kg_per_kwh": 0.48,
    },
}


def watched(at: Path, order: dict[str, Any], seconds: float = 0.3) -> None:
    (at / "progress.json").write_text('{"step": 7}')
    sampler = samples.Samples(at, order)
    sampler.begin([os.getpid()])
    time.sleep(seconds)
    sampler.end()


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(samples.SETTING, "0.05")
    monkeypatch.setattr(nvidia, "COUNTERS_S", 0.05)


@pytest.mark.usefixtures("often")
def test_devices_host_and_program_are_recorded_with_their_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(count=2))
    watched(tmp_path, ORDER)
    recording = load(tmp_path / NAME).recording
    assert [device.source for device in recording.devices] == ["nvidia:1"]
    assert recording.labels == {"job": "train-1"}
    assert recording.predicted == {"steps_per_s": (1.5, 2.0, 3.0)}
    assert {sample.source for sample in recording.samples} == {"nvidia:1", "host", "program"}
    assert any(sample.value("step") == 7.0 for sample in recording.samples)
    summary = folder.read(tmp_path, folder.WATCHED)
    assert summary is not None
    assert summary["devices"]["nvidia:1"]["sm_active"]["p50"] == 0.96
    assert summary["usd"] > 0
    assert summary["kg_co2e"] == pytest.approx(summary["energy_kwh"] * 0.48, abs=1e-6)  # both are rounded to six places


@pytest.mark.usefixtures("often")
def test_a_gpu_that_nobody_can_read_is_a_reason(tmp_path: Path) -> None:
    watched(tmp_path, ORDER)
    [reading, *_] = [
        sample.readings["busy"] for sample in load(tmp_path / NAME).recording.samples if sample.source == "device:1"
    ]
    assert isinstance(reading, NoReading)


def test_it_can_be_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(samples.SETTING, "0")
    watched(tmp_path, ORDER, 0.0)
    monkeypatch.setenv(samples.SETTING, "1")
    watched(tmp_path, {"gpus": []}, 0.0)  # an order of before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["progress.json"]


@pytest.mark.usefixtures("often")
def test_a_driver_that_hangs_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "connect", lambda devices: time.sleep(3.0))
    monkeypatch.setattr("chipwise.adapters.sampling.ENDS_WITHIN_S", 0.1)
    begun = time.monotonic()
    watched(tmp_path, ORDER, 0.0)
    assert time.monotonic() - begun < 2.0
    assert not (tmp_path / folder.WATCHED).exists()


@pytest.mark.usefixtures("often")
def test_a_file_that_cannot_be_written_is_said_and_no_more(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / NAME).mkdir()
    watched(tmp_path, {**ORDER, "gpus": []})
    assert "Sampling failed" in capfd.readouterr().err
