from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from chipwise.observe.evidence import gather
from chipwise.observe.readings import read
from chipwise.observe.sample import NoReading, Reading, Recording, Sample


def samples(metric: str, values: Sequence[Reading], source: str = "nvidia:0") -> list[Sample]:
    return [Sample(float(place), source, {metric: value}) for place, value in enumerate(values)]


def test_what_is_no_number_negative_or_above_one_is_dropped_with_a_note() -> None:
    tracks = read("nvidia:0", samples("busy", [0.5, math.nan, -0.1, 87.0, math.inf, 0.7]))
    assert tracks.levels["busy"].mean == pytest.approx(0.6, abs=0.05)
    assert len(tracks.notes) == 3
    assert all("busy" in note for note in tracks.notes)


def test_a_counter_becomes_a_rate_and_its_restart_counts_nothing() -> None:
    tracks = read("host", samples("disk_read", [100.0, 200.0, 300.0, 5.0, 105.0], "host"))
    assert tracks.levels["disk_read"].mean == pytest.approx(100.0)
    assert "ran backwards" in tracks.notes[0]


def test_a_missing_sensor_keeps_its_reason() -> None:
    recording = Recording("", samples=samples("sm_active", [NoReading("the driver is too old")] * 5))
    (device,) = gather(recording).devices
    assert device.mean("sm_active") is None
    assert device.why_missing("sm_active") == "the driver is too old"
    assert device.why_missing("power") == "not sampled"


def test_samples_out_of_the_order_of_time_are_dropped() -> None:
    tracks = read("nvidia:0", [Sample(at_s, "nvidia:0", {"busy": 0.5}) for at_s in (1.0, 2.0, 1.5, math.nan, 3.0)])
    assert len(tracks.levels["busy"].values) == 3
    assert tracks.notes == ("nvidia:0: 2 samples out of the order of time were dropped",)


def test_a_mean_weighs_time_and_not_readings() -> None:
    coarse = [Sample(float(at_s), "host", {"cpu": 0.0}) for at_s in range(0, 100, 10)]
    fine = [Sample(90 + 0.1 * tick, "host", {"cpu": 1.0}) for tick in range(1, 101)]
    mean = read("host", coarse + fine).levels["cpu"].mean
    assert mean > 0.5  # the gap of the coarse part is a hole by the fine part's measure
    assert read("host", coarse).levels["cpu"].mean == 0.0


def test_percentiles_and_shares_are_of_the_time() -> None:
    track = read("host", samples("cpu", [0.1] * 9 + [0.9], "host")).levels["cpu"]
    assert track.percentile(0.5) == 0.1
    assert track.percentile(0.99) == 0.9
    assert track.share_above(0.5) == pytest.approx(0.1)


def test_an_empty_recording_has_no_evidence_and_does_not_fail() -> None:
    evidence = gather(Recording(""))
    assert (evidence.devices, evidence.steady_s, evidence.active) == ((), 0.0, None)
