"""What is watched fits a terminal of 80 columns and 24 lines."""

from __future__ import annotations

import pytest

from chipwise.adapters.probes import nvidia
from chipwise.observe.sample import HOST, PROGRAM, NoReading, Recording, Sample
from chipwise.observe.series import SampleStore
from chipwise.views.watch import lines, sparkline
from nvml_stand_in import Nvml

HOST_READINGS = {
    "cpu": 0.345,
    "cores": 64.0,
    "cpu_highest_core": 1.0,
    "memory_used": 120 * 2**30,
    "memory_total": 512 * 2**30,
    "pressure_cpu": 0.5,
    "pressure_memory": 0.01,
    "pressure_io": 0.123,
}


def watched(gpus: int, seconds: int = 90) -> tuple[SampleStore, Recording]:
    probe, store = nvidia.connect(nvml=Nvml(count=gpus)), SampleStore()
    for at in range(seconds):
        for sample in probe.read(float(at)):
            store.add(sample)
        counters = {"disk_read": 1e9 * at, "disk_written": 5e8 * at, "network_received": 1e8 * at}
        store.add(Sample(float(at), HOST, HOST_READINGS | counters))
        program = {"cpu": 3.4, "cpu_highest_thread": 0.99, "memory_used": 2e10, "processes": 9.0, "threads": 240.0}
        store.add(Sample(float(at), PROGRAM, program | {"step": 2.5 * at, "tokens": 1024.0 * at, "data_wait": 0.25 * at}))
    header = Recording(
        "", devices=probe.devices(), labels={"job": "a-name-of-thirty-letters-in-it-abcdefg", "attempt": "3"},
        predicted={"steps_per_s": (2.1, 2.6, 3.0)},
    )  # fmt: skip
    return store, header


@pytest.mark.parametrize("gpus", [0, 1, 8, 16])
def test_it_fits_80_columns_and_24_lines(gpus: int) -> None:
    shown = lines(*watched(gpus), notes=["a note " * 20], finding="launch-bound: " + "many tiny kernels " * 8)
    assert max(map(len, shown)) <= 80
    assert len(shown) <= 24
    assert any("and 4 devices more" in line for line in shown) == (gpus == 16)


def test_the_finding_is_one_line() -> None:
    assert "finding  idle: Nothing runs." in lines(*watched(1), finding="idle: Nothing runs.")


def test_a_device_has_one_line_with_its_history() -> None:
    shown = lines(*watched(1))
    assert shown[1].split() == [
        "device", "busy", "SM", "tensor", "DRAM", "memory", "GiB", "power", "temp", "PCIe", "GB/s", "history"
    ]  # fmt: skip
    assert shown[2].startswith("0 H200       99%  96%    94%  16%     60/141  692 W  64C   2.1/0.0 ████")


def test_steps_stand_beside_their_prediction() -> None:
    text = " ".join(" ".join(lines(*watched(1))).split())
    assert "step 222, 2.5 steps/s (predicted 2.6, 2.1 to 3)" in text
    assert "1,024 tokens/s, waiting for data 25.0%" in text
    assert "CPU 34.5% of 64 cores, busiest core 100%, memory 120 GiB of 512 GiB" in text
    assert "disk read 954 MiB/s" in text


def test_a_reason_stands_below_what_is_missing() -> None:
    store = SampleStore()
    store.add(
        Sample(0.0, "nvidia:0", {"busy": 0.5, "sm_active": NoReading("no counters"), "tensor_active": NoReading("no counters")})
    )
    shown = lines(store, Recording(""))
    assert shown[2].split()[:4] == ["0", "nvidia", "50%", "-"]
    assert shown[3] == "SM, tensor: no counters"


def test_nothing_yet_is_a_title() -> None:
    assert len(lines(SampleStore(), Recording(""))) == 1


def test_a_sparkline_in_letters_that_the_terminal_has() -> None:
    assert sparkline([0.0, 0.5, 1.0, 1.2, -1.0]) == "▁▅██▁"
    assert sparkline([0.0, 1.0], unicode=False) == " #"
