"""Day and night from a peak, a low and a shape: what is refused, and the rates of the hours of a week."""

from __future__ import annotations

from datetime import time
from math import isclose

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import InvalidFile
from chipwise.workload.day import open_hours, week_rates
from chipwise.workload.demand import Arrival, DayShape
from chipwise.workload.kinds import Serve
from chipwise.workload.parse import parse
from chipwise.workload.schedule import BusinessHours, Day

CHAT = "kind: serve\nname: chat\nmodel: llama-3.1-8b\ninput_tokens: 1000\noutput_tokens: 300\n"
DAY = "arrival: {peak: 9 req/s, low: 0.5 req/s, shape: office-hours}\n"
HOURS = list(range(24))


def arrival(text: str) -> Arrival:
    work = parse(CHAT + text, "chat.yaml")
    assert isinstance(work, Serve)
    return work.arrival


def test_a_day_is_read_as_people_write_it() -> None:
    stated = arrival("arrival: {peak: 540/min, low: 0.5 req/s, shape: Office Hours}\n")
    assert (stated.peak, stated.low, stated.shape) == (9.0, 0.5, DayShape.OFFICE_HOURS)
    assert arrival(f"arrival: {{peak: 9, shape: {HOURS}}}\n").shape == tuple(map(float, HOURS))
    assert arrival("arrival: {peak: 9, low: 0, shape: evening}\n").low == 0.0


@pytest.mark.parametrize(
    ("text", "field", "told"),
    [
        ("{peak: 9}", "arrival.shape", "is needed with peak"),
        ("{peak: 9, low: 1}", "arrival.shape", "is needed with peak"),
        ("{peak: 9, shape: evening}", "arrival.low", "quietest hour is needed"),
        ("{low: 1, shape: evening}", "arrival.peak", "low and shape go with peak"),
        ("{rate: 3, shape: evening}", "arrival.peak", "shape goes with peak, and rate is given"),
        ("{rate: 3, peak: 9, low: 1, shape: evening}", "arrival.peak", "rate and peak cannot be combined"),
        ("{peak: 9, low: 10, shape: evening}", "arrival.low", "10 a second is above peak, which is 9"),
        ("{peak: 9, low: -1, shape: evening}", "arrival.low", "is not at least zero"),
        ("{peak: .nan, low: 1, shape: evening}", "arrival.peak", "nan"),
        ("{peak: 0, low: 0, shape: evening}", "arrival.peak", "is not above zero"),
        ("{peak: 9, low: 1, shape: offise-hours}", "arrival.shape", "'offise-hours' is not a shape of the day"),
        ("{peak: 9, low: 1, shape: 7}", "arrival.shape", "7 is not a shape of the day"),
        (f"{{peak: 9, low: 1, shape: {HOURS[:23]}}}", "arrival.shape", "23 numbers are not one for each hour"),
        (f"{{peak: 9, low: 1, shape: {[*HOURS[:23], -1]}}}", "arrival.shape", "-1, for 23:00, is not a number of at least"),
        (f"{{peak: 9, low: 1, shape: {[*HOURS[:23], '.nan']}}}".replace("'", ""), "arrival.shape", "'.nan', for 23:00"),
        (f"{{peak: 9, low: 1, shape: {[*HOURS[:23], '.inf']}}}".replace("'", ""), "arrival.shape", "'.inf', for 23:00"),
        (f"{{peak: 9, low: 1, shape: {[*HOURS[:23], 'true']}}}".replace("'", ""), "arrival.shape", "true, for 23:00"),
        (f"{{peak: 9, low: 1, shape: {[0] * 24}}}", "arrival.shape", "all of its numbers are zero"),
        (f"{{peak: 9, low: 1, shape: {[5] * 24}}}", "arrival.shape", "all of its numbers are the same"),
    ],
)
def test_what_is_wrong_is_told_with_what_is_allowed(text: str, field: str, told: str) -> None:
    with pytest.raises(InvalidFile) as refused:
        arrival(f"arrival: {text}\n")
    problem = refused.value.problems[0]
    assert (problem.field, told in problem.message) == (field, True), problem
    if "combined" not in told:
        assert problem.allowed


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -0.5])
def test_numbers_that_are_none_are_refused_from_python_too(number: float) -> None:
    with pytest.raises(ValueError, match="for 5:00, is not a number of at least zero"):
        Arrival.model_validate({"peak": 9, "low": 1, "shape": [*HOURS[:5], number, *HOURS[6:]]})


def test_a_misspelt_shape_gets_the_nearest_name() -> None:
    with pytest.raises(InvalidFile) as refused:
        arrival("arrival: {peak: 9, low: 1, shape: evning}\n")
    assert "evening" in refused.value.problems[0].nearest


@pytest.mark.parametrize("schedule", ["{kind: bursts, times: 4, lasts: 2h, every: 7d}", "{kind: market-hours, market: nyse}"])
def test_two_answers_to_when_the_load_comes_are_refused(schedule: str) -> None:
    with pytest.raises(InvalidFile) as refused:
        arrival(f"{DAY}schedule: {schedule}\n")
    assert refused.value.problems[0].field == "schedule"


days = st.one_of(st.sampled_from([*DayShape]), st.lists(st.floats(0.0, 100.0), min_size=24, max_size=24).filter(any))


@given(
    st.floats(0.1, 1e4),
    st.just(0.0) | st.floats(0.001, 1.0),
    days,
    st.lists(st.tuples(st.integers(-12, 14), st.floats(0.01, 1.0)), max_size=3),
)
def test_a_week_keeps_to_its_peak_and_its_low(
    peak: float, share: float, shape: object, clocks: list[tuple[int, float]]
) -> None:
    flat = isinstance(shape, list) and len(set(shape)) == 1
    low = peak if flat else peak * share
    stated = Arrival.model_validate({"peak": peak, "low": low, "shape": shape})
    total = sum(part for _, part in clocks)
    rates = week_rates(stated, [(hours, part / total) for hours, part in clocks] or [(0, 1.0)])
    assert len(rates) == 168
    assert isclose(float(rates.max()), peak)
    assert float(rates.min()) >= low * (1 - 1e-9)
    if not clocks and not flat:
        assert isclose(float(rates.min()), low, abs_tol=1e-9 * peak)


def test_numbers_of_any_scale_are_the_day_itself() -> None:
    numbers = [1.0, 3.0, *[2.0] * 22]
    alone = week_rates(Arrival.model_validate({"peak": 9, "shape": numbers}))
    assert alone[:24].tolist() == pytest.approx([3 * number for number in numbers])
    lifted = week_rates(Arrival.model_validate({"peak": 9, "low": 5, "shape": [10 * number for number in numbers]}))
    assert lifted[:3].tolist() == pytest.approx([5.0, 9.0, 7.0])
    assert lifted[24:48].tolist() == lifted[:24].tolist()


def test_weekends_of_the_office_are_quiet_and_evenings_are_of_every_day() -> None:
    office, evening = (week_rates(Arrival.model_validate({"peak": 9, "low": 1, "shape": one})) for one in DayShape)
    assert set(office[120:].tolist()) == {1.0}
    assert office[10] == office[4 * 24 + 10] == 9.0
    assert int(evening[:24].argmax()) == 20
    assert evening[120:144].tolist() == evening[:24].tolist()


def test_users_behind_utc_are_busy_later() -> None:
    stated = Arrival.model_validate({"peak": 9, "low": 1, "shape": "evening"})
    berlin, newyork = week_rates(stated, [(1, 1.0)]), week_rates(stated, [(-5, 1.0)])
    assert (int(berlin[:24].argmax()), int(newyork[24:48].argmax())) == (19, 1)
    both = week_rates(stated, [(1, 0.5), (-5, 0.5)])
    assert both.mean() > berlin.mean(), "two peaks of which each is half as high fill the day"


def test_open_hours_are_those_of_the_schedule() -> None:
    office = BusinessHours(time_zone="Europe/Berlin", start=time(8, 30), end=time(18))
    hours = open_hours(office)
    assert isclose(float(hours.sum()), office.hours_per_week)
    assert (hours[8], hours[9], hours[18], hours[5 * 24 + 9]) == (0.5, 1.0, 0.0, 0.0)
    night = open_hours(BusinessHours(time_zone="Europe/Berlin", start=time(22), end=time(6), days=(Day.SUN,)))
    assert np.flatnonzero(night).tolist() == [0, 1, 2, 3, 4, 5, 166, 167]
    assert isclose(float(open_hours(BusinessHours(time_zone="UTC", start=time(0), end=time(0), days=tuple(Day))).sum()), 168)


def test_a_file_of_a_day_can_be_written_and_read_again() -> None:
    stated = arrival(DAY)
    again = Arrival.model_validate(yaml.safe_load(yaml.safe_dump(stated.model_dump(mode="json", exclude_none=True))))
    assert again == stated
