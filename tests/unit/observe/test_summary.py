"""What stays of a watched run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.observe.sample import HOST, PROGRAM, NoReading, Sample, SampledDevice
from chipwise.observe.summary import ShareHistogram, Summary, sentence


def watched(samples: list[Sample], usd_per_hour: float | None = None, kg_per_kwh: float | None = None) -> Summary:
    summary = Summary([SampledDevice("nvidia:0", "NVIDIA H200", chip="H200")], usd_per_hour, kg_per_kwh)
    for sample in samples:
        summary.add(sample)
    return summary


def test_devices_host_and_program_of_a_run() -> None:
    samples = [
        sample
        for at in range(101)
        for sample in (
            Sample(float(at), "nvidia:0", {"busy": at / 100, "energy": 1000.0 + 360.0 * at, "power": 1.0, "temperature": 60.0}),
            Sample(float(at), HOST, {"cpu": 0.25, "memory_used": 5e9}),
            Sample(float(at), PROGRAM, {"cpu": 3.5, "memory_used": 1e9 + at, "step": 2.0 * at}),
        )
    ]
    value = watched(samples, usd_per_hour=36.0, kg_per_kwh=0.4).value()
    assert value["seconds"] == 100.0
    device = value["devices"]["nvidia:0"]
    assert (device["name"], device["energy_j"], device["temperature_max_c"]) == ("H200", 36000.0, 60.0)
    assert device["busy"] == {"mean": 0.5, "p10": 0.1, "p50": 0.5, "p90": 0.9}
    assert (value["energy_kwh"], value["usd"], value["kg_co2e"]) == (0.01, 1.0, 0.004)
    assert value["program"] == {"memory_peak_bytes": 1e9 + 100, "steps_per_s": 2.0}
    assert value["host"]["cpu"]["p50"] == 0.25
    assert sentence(value) == "busy 50.0%, 0.01 kWh, 0.004 kg CO2e"


def test_between_two_readings_of_the_counter_energy_is_power_over_time() -> None:
    """It is read every ten seconds only: it costs the driver more than all else."""
    readings = [(0.0, 1000.0), (5.0, 1000.0), (10.0, 4000.0), (12.0, 4000.0)]
    samples = [Sample(at_s, "nvidia:0", {"energy": energy, "power": 200.0}) for at_s, energy in readings]
    assert watched(samples[:2]).value()["devices"]["nvidia:0"]["energy_j"] == 1000.0
    assert watched(samples).value()["devices"]["nvidia:0"]["energy_j"] == 3000.0 + 400.0


def test_without_a_counter_energy_is_power_over_time_and_not_over_gaps() -> None:
    samples = [Sample(at, "amd:0", {"power": 100.0}) for at in (0.0, 10.0, 1000.0, 1010.0)]
    assert watched(samples).value()["devices"]["amd:0"]["energy_j"] == 2000.0


def test_a_counter_that_starts_again_loses_nothing_else() -> None:
    samples = [Sample(float(at), "nvidia:0", {"energy": energy}) for at, energy in enumerate((100.0, 150.0, 5.0, 25.0))]
    assert watched(samples).value()["devices"]["nvidia:0"]["energy_j"] == 70.0


def test_what_was_not_measured_is_left_out_and_its_reason_stays() -> None:
    value = watched([Sample(0.0, "nvidia:0", {"busy": NoReading("no driver")})]).value()
    assert value == {"seconds": 0.0, "devices": {"nvidia:0": {"name": "H200", "missing": "no driver"}}}
    assert sentence(value) == ""


@given(st.lists(st.floats(0.0, 1.0), min_size=1))
def test_percentiles_are_known_to_one_percent(shares: list[float]) -> None:
    counted = ShareHistogram()
    for share in shares:
        counted.add(share)
    for rank in (10, 50, 90):
        exact = sorted(shares)[max(-(-rank * len(shares) // 100) - 1, 0)]
        assert counted.percentile(rank) == pytest.approx(exact, abs=0.0051)
