"""Quantities as people write them: what is read, what is refused, and the laws that hold between reading and showing."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise import units
from chipwise.errors import BadInput

Parse = Callable[[str | float], float]
PARSERS: list[Parse] = [
    units.parse_bytes,
    units.parse_seconds,
    units.parse_usd,
    units.parse_count,
    units.parse_rate,
    units.parse_bandwidth,
    units.parse_flop,
]
sensible = st.floats(min_value=1e-3, max_value=1e12, allow_nan=False)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_bytes, "80GiB", 80 * 2**30),
        (units.parse_bytes, "80 gb", 80e9),
        (units.parse_bytes, "1.5 TB", 1.5e12),
        (units.parse_bytes, "1,024 KiB", 2**20),
        (units.parse_bytes, "1_000 bytes", 1000),
        (units.parse_bytes, " 2PiB ", 2**51),
        (units.parse_bytes, "512", 512),
        (units.parse_seconds, "72h", 259200),
        (units.parse_seconds, "50ms", 0.05),
        (units.parse_seconds, "5us", 5e-6),
        (units.parse_seconds, "5µs", 5e-6),
        (units.parse_seconds, "5μs", 5e-6),  # the Greek letter, as keyboards give it
        (units.parse_seconds, "1d 12h", 129600),
        (units.parse_seconds, "1h30m", 5400),
        (units.parse_seconds, "2 hrs", 7200),
        (units.parse_seconds, "3 weeks", 3 * units.WEEK),
        (units.parse_seconds, "90", 90),
        (units.parse_usd, "$500", 500),
        (units.parse_usd, "US$ 1.5k", 1500),
        (units.parse_usd, "USD 500", 500),
        (units.parse_usd, "1,200.50 USD", 1200.5),
        (units.parse_usd, "2 million dollars", 2e6),
        (units.parse_count, "70B", 7e10),
        (units.parse_count, "250k", 250_000),
        (units.parse_count, "4,000,000", 4e6),
        (units.parse_rate, "1.2k/min", 20),
        (units.parse_rate, "20 per second", 20),
        (units.parse_rate, "7", 7),
        (units.parse_bandwidth, "25 GB/s", 25e9),
        (units.parse_bandwidth, "400Gbps", 50e9),
        (units.parse_bandwidth, "400 Gbit/s", 50e9),
        (units.parse_bandwidth, "1 GiB/s", 2**30),
        (units.parse_bandwidth, "100", 100),
        (units.parse_flop, "3e21", 3e21),
        (units.parse_flop, "1.5 PFLOP", 1.5e15),
        (units.parse_flop, "20 TFLOPS", 2e13),
        (units.parse_flop, "5EFLOP", 5e18),
        (units.parse_flop, "1 ZFLOP", 1e21),
    ],
)
def test_what_people_write_is_read(parse: Parse, text: str, value: float) -> None:
    assert parse(text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.parse_bytes, "80 gigs"),
        (units.parse_bytes, "80 Gbit"),
        (units.parse_bytes, "GiB"),
        (units.parse_bytes, ""),
        (units.parse_bytes, "1e999"),
        (units.parse_bytes, "1e300 PB"),
        (units.parse_seconds, "5 parsecs"),
        (units.parse_seconds, "10 20"),
        (units.parse_seconds, "1h 20"),
        (units.parse_seconds, "soon"),
        (units.parse_seconds, ""),
        (units.parse_usd, "€500"),
        (units.parse_usd, "$5 $6"),
        (units.parse_usd, "500 EUR"),
        (units.parse_count, "4M tokens"),  # no noun was allowed here
        (units.parse_count, "4Q"),
        (units.parse_rate, "20/parsec"),
        (units.parse_rate, "20/s/region"),
        (units.parse_bandwidth, "25 GHz"),
        (units.parse_flop, "3 GB"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_an_example(parse: Parse, text: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert len(str(caught.value)) > 15


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("text", ["1,5", "1,000,00", "12,34", ",5"])
def test_a_comma_groups_thousands_and_is_no_decimal_point(parse: Parse, text: str) -> None:
    with pytest.raises(BadInput):
        parse(text)


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("value", [True, False, math.nan, math.inf, -math.inf, 10**400])
def test_a_number_must_be_finite_and_no_truth_value(parse: Parse, value: float) -> None:
    with pytest.raises(BadInput):
        parse(value)


@pytest.mark.parametrize("parse", PARSERS)
def test_a_page_of_text_is_refused_at_once_and_shown_short(parse: Parse) -> None:
    with pytest.raises(BadInput) as caught:
        parse("9" * 1_000_000)
    assert len(str(caught.value)) < 300


@given(sensible)
def test_a_plain_number_is_already_in_the_unit(value: float) -> None:
    assert all(parse(value) == value for parse in PARSERS)


@given(sensible)
def test_a_number_in_a_text_is_the_same_number(value: float) -> None:
    assert all(parse(repr(value)) == value for parse in PARSERS)


@given(sensible)
def test_binary_and_decimal_units_differ_by_their_ratio(value: float) -> None:
    assert units.parse_bytes(f"{value!r}GiB") / units.parse_bytes(f"{value!r}GB") == pytest.approx(2**30 / 1e9)


@given(sensible)
def test_bits_are_an_eighth_of_bytes(value: float) -> None:
    assert units.parse_bandwidth(f"{value!r} Gbit/s") * 8 == pytest.approx(units.parse_bandwidth(f"{value!r} GB/s"))


@given(sensible, sensible)
def test_durations_add_up(hours: float, minutes: float) -> None:
    together = units.parse_seconds(f"{hours!r}h {minutes!r}min")
    assert together == pytest.approx(hours * units.HOUR + minutes * units.MINUTE)


@given(st.integers(min_value=0, max_value=10**12))
def test_grouping_digits_changes_nothing(value: int) -> None:
    assert units.parse_count(f"{value:,}") == units.parse_count(f"{value:_}") == value


@given(sensible)
def test_a_rate_per_hour_is_a_3600th_of_one_per_second(value: float) -> None:
    assert units.parse_rate(f"{value!r} req/h", "req") * 3600 == pytest.approx(units.parse_rate(f"{value!r} req/s", "req"))
