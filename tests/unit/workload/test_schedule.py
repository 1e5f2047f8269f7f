"""When a workload runs: time zones, hours, markets and cron."""

from __future__ import annotations

import zoneinfo
from datetime import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from chipwise.errors import InvalidFile
from chipwise.workload.cron import check_cron, starts_per_week
from chipwise.workload.parse import parse
from chipwise.workload.schedule import (
    HOURS_PER_WEEK,
    MARKET_HOURS,
    BusinessHours,
    Cron,
    Market,
    MarketHours,
    Schedule,
    _is_zone,
    parse_zone,
)


def read(value: object) -> Any:
    return TypeAdapter(Schedule).validate_python(value)


def test_always_needs_no_mapping() -> None:
    assert read("always") == read({"kind": "always"})
    assert read("always").hours_per_week == HOURS_PER_WEEK


def test_business_hours_are_counted_over_their_days() -> None:
    assert BusinessHours(time_zone="Europe/Berlin", start="08:00", end="18:30").hours_per_week == 52.5


def test_an_end_before_the_start_is_the_next_day() -> None:
    assert BusinessHours(time_zone="UTC", start="19:00", end="07:00", days=("mon",)).hours_per_week == 12


def test_midnight_may_end_a_day_as_24_00() -> None:
    hours = BusinessHours(time_zone="UTC", start="08:00", end="24:00", days=("monday",))
    assert (hours.end, hours.hours_per_week) == (time(0), 16)


@pytest.mark.parametrize("clock", ["25:00", "8", "8:5", "08:60", "24:01", "noon", 800, ""])
def test_a_time_of_day_has_hours_and_minutes(clock: object) -> None:
    with pytest.raises(ValidationError, match="time of day"):
        BusinessHours(time_zone="UTC", start=clock)


def test_hours_that_never_pass_are_refused() -> None:
    with pytest.raises(ValidationError, match="same"):
        BusinessHours(time_zone="UTC", start="08:00", end="08:00")


@pytest.mark.parametrize(
    ("text", "near"), [("Europe/Berln", "Europe/Berlin"), ("Berlin", "Europe/Berlin"), ("New_York", "America/New_York")]
)
def test_an_unknown_time_zone_is_answered_with_the_nearest(text: str, near: str) -> None:
    with pytest.raises(ValidationError) as caught:
        BusinessHours(time_zone=text)
    assert near in caught.value.errors()[0]["ctx"]["nearest"]()


@pytest.mark.parametrize("text", ["", "../../etc/passwd", "/etc/passwd", "Europe", "Europe/", "a" * 500, 5, None])
def test_a_time_zone_is_no_path_and_no_folder(text: object) -> None:
    with pytest.raises(ValidationError, match="time zone"):
        BusinessHours(time_zone=text)


def test_without_a_database_a_time_zone_is_judged_by_its_form(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(key: str) -> zoneinfo.ZoneInfo:
        raise zoneinfo.ZoneInfoNotFoundError(key)

    monkeypatch.setattr(zoneinfo, "ZoneInfo", missing)
    _is_zone.cache_clear()
    assert parse_zone("Europe/Berlin") == "Europe/Berlin"
    with pytest.raises(Exception, match="time zone"):
        parse_zone("half past nine")
    _is_zone.cache_clear()


@pytest.mark.parametrize("market", [market for market in Market if market in MARKET_HOURS])
def test_every_market_opens_before_it_closes_in_a_real_zone(market: Market) -> None:
    zone, opens, closes = MARKET_HOURS[market]
    assert parse_zone(zone) == zone
    assert opens < closes
    assert 0 < MarketHours(market=market).hours_per_week < 60


def test_a_market_goes_by_its_common_name_too() -> None:
    assert MarketHours(market="NYSE").market is Market.XNYS
    assert MarketHours(market="nyse", before="30min", after="30min").hours_per_week == 37.5


@pytest.mark.parametrize(
    ("expression", "per_week"),
    [
        ("0 2 * * *", 7),
        ("*/15 * * * *", 4 * 168),
        ("0 9 * * mon-fri", 5),
        ("0 9 * * 0,7", 1),
        ("0 9 * * sun", 1),
        ("30 13 * * sat,sun", 2),
        ("0 0 1 * *", 12 / 365.25 * 7),
        ("0 0 29 2 *", 7 / 1461),
        ("0 0 1 * mon", pytest.approx(1 + 12 / 365.25 * 7 * 6 / 7, rel=0.02)),  # either of two restricted days will do
        ("5/20 * * * *", 3 * 168),
    ],
)
def test_a_cron_expression_comes_true_as_often_as_it_says(expression: str, per_week: float) -> None:
    assert starts_per_week(check_cron(expression)) == pytest.approx(per_week)


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("0 2 * *", "4 instead of 5 fields"),
        ("@daily", "1 instead"),
        ("60 2 * * *", "out of range in the minute field"),
        ("0 24 * * *", "hour"),
        ("0 0 0 * *", "day of month"),
        ("0 0 * 13 *", "month"),
        ("0 0 * * 8", "day of week"),
        ("0 0 * * mom", "not a number or a name"),
        ("0 0 * foo *", "not a number or a name"),
        ("*/0 * * * *", "step of 0"),
        ("5-1 * * * *", "out of range"),
        ("1,,2 * * * *", "cannot be read"),
        ("0 0 30 2 *", "never comes true"),
        ("x" * 10_000, "0 instead of 5"),
    ],
)
def test_a_bad_cron_expression_is_told_which_field_and_why(expression: str, complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Cron(expression=expression)


@given(st.text(max_size=40))
def test_no_text_breaks_the_cron_reader(text: str) -> None:
    try:
        cron = Cron(expression=text)
    except ValidationError:
        return
    assert cron.starts_per_week > 0


def test_a_cron_job_is_never_on_longer_than_the_week() -> None:
    assert Cron(expression="* * * * *", runs_for="1h").hours_per_week == HOURS_PER_WEEK
    assert Cron(expression="0 2 * * *", runs_for="3h").hours_per_week == 21
    assert Cron(expression="0 2 * * *").hours_per_week is None


def test_a_burst_ends_before_the_next() -> None:
    with pytest.raises(ValidationError, match="shorter"):
        read({"kind": "bursts", "times": 4, "lasts": "7d", "every": "7d"})


def test_midnight_to_midnight_is_the_whole_day_and_any_other_same_time_is_refused() -> None:
    whole = parse(
        "kind: serve\nname: x\nmodel: m\narrival: 1/s\n"
        "schedule: {kind: business-hours, time_zone: UTC, start: '00:00', end: '24:00', days: [mon, tue]}\n"
    )
    assert whole.schedule.hours_per_week == 48
    with pytest.raises(InvalidFile, match="the same"):
        parse(
            "kind: serve\nname: x\nmodel: m\narrival: 1/s\n"
            "schedule: {kind: business-hours, time_zone: UTC, start: '08:00', end: '08:00'}\n"
        )
