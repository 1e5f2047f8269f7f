"""Samples over time: what is kept, how finely, and that it never grows beyond a bound."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from chipwise.observe.metrics import MetricKind
from chipwise.observe.sample import HOST, NoReading, Sample
from chipwise.observe.series import SampleStore, Series, kind_of

SMALL = ((1.0, 6), (3.0, 4), (12.0, 4))


def test_an_hour_is_kept_by_the_second() -> None:
    series = Series(MetricKind.LEVEL)
    for second in range(3600):
        series.add(float(second), second / 3600)
    rows = series.points()
    assert len(rows) == 3600
    assert {row.span_s for row in rows} == {1.0}


def test_what_is_older_is_coarser_and_nothing_is_kept_twice() -> None:
    series = Series(MetricKind.LEVEL, SMALL)
    for second in range(40):
        series.add(float(second), float(second))
    rows = series.points()
    assert [row.span_s for row in rows] == sorted((row.span_s for row in rows), reverse=True)
    assert all(before.at_s + before.span_s <= after.at_s for before, after in pairwise(rows))
    assert rows[-1].mean == 39.0


def test_a_coarse_row_keeps_mean_lowest_and_highest() -> None:
    series = Series(MetricKind.LEVEL, SMALL)
    for second in range(60):
        series.add(float(second), float(second % 12))
    first = series.points()[0]
    assert (first.span_s, first.low, first.high) == (24.0, 0.0, 11.0)
    assert math.isclose(first.mean, 5.5)


def test_a_counter_keeps_its_last_value() -> None:
    series = Series(MetricKind.COUNTER, SMALL)
    for second in range(60):
        series.add(float(second), 1e15 + second)
    assert series.points()[0].last == 1e15 + 23
    assert series.points()[-1].last == 1e15 + 59


@given(st.lists(st.floats(0.0, 50.0), min_size=1, max_size=300), st.sampled_from(list(MetricKind)))
def test_the_start_is_never_forgotten_and_rows_are_bounded(gaps: list[float], kind: MetricKind) -> None:
    series, at_s = Series(kind, SMALL), 0.0
    values = []
    for place, gap in enumerate(gaps):
        at_s += gap
        values.append(float(place))
        series.add(at_s, float(place))
    rows = series.points()
    assert len(rows) <= 14
    assert rows[0].at_s <= gaps[0]
    assert rows[-1].last <= values[-1]
    if kind is MetricKind.LEVEL:
        assert min(row.low for row in rows) >= 0.0


def test_a_rate_is_taken_between_values_and_not_over_a_reset() -> None:
    series = Series(MetricKind.COUNTER)
    assert series.rate() is None
    for second in range(5):
        series.add(float(second), 100.0 * second)
    assert series.rate() == 100.0
    for second in range(5, 8):
        series.add(float(second), 10.0 * (second - 5))
    assert series.rate() == 10.0


def test_a_missing_sensor_is_in_the_newest_sample_and_in_no_series() -> None:
    store = SampleStore()
    store.add(Sample(1.0, "nvidia:0", {"busy": 0.5, "power": NoReading("no such sensor")}))
    assert store.recent("nvidia:0", "busy", 5) == [0.5]
    assert store.series("nvidia:0", "power") is None
    assert store.newest["nvidia:0"].readings["power"] == NoReading("no such sensor")


def test_a_value_that_is_no_number_is_not_stored() -> None:
    store = SampleStore()
    store.add(Sample(1.0, HOST, {"cpu": math.nan, "load": math.inf}))
    assert store.size_bytes == 0


def test_memory_is_bounded_over_months_of_one_series() -> None:
    series = Series(MetricKind.LEVEL, ((1.0, 60), (30.0, 60), (600.0, 60)))
    for step in range(30_000):
        series.add(step * 300.0, 0.5)
    assert series.size_bytes <= 180 * 24


def test_the_kind_of_source_says_what_is_a_counter() -> None:
    assert kind_of("nvidia:3", "energy") is MetricKind.COUNTER
    assert kind_of("server:8000", "requests") is MetricKind.COUNTER
    assert kind_of("program", "cpu") is MetricKind.LEVEL
    assert kind_of("host", "unheard") is MetricKind.LEVEL
