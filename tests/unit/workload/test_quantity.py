"""Quantities inside a workload: bounds, percentages, words after numbers, and what a bad one is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from chipwise.countries import EEA, EU, members
from chipwise.workload import quantity
from chipwise.workload.country import parse_country
from chipwise.workload.media import Resolution

QUANTITIES = {name: alias for name, alias in vars(quantity).items() if hasattr(alias, "__metadata__")}


def read(name: str, value: object) -> Any:
    return TypeAdapter(QUANTITIES[name]).validate_python(value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("Bytes", "80GiB", 80 * 2**30),
        ("Seconds", "50ms", 0.05),
        ("Usd", "$1.5k", 1500),
        ("Count", "50M documents", 5e7),
        ("WholeNumber", "1.2k", 1200),
        ("Tokens", "4M tokens", 4e6),
        ("Rate", "12 req/s", 12),
        ("Rate", "20 qps", 20),
        ("FrameRate", "29.97 fps", 29.97),
        ("Bandwidth", "400 Gbit/s", 50e9),
        ("Flop", "1.5 PFLOP", 1.5e15),
        ("Share", "60%", 0.6),
        ("Share", 0.6, 0.6),
        ("WholeOrZero", 0, 0),
    ],
)
def test_a_field_takes_what_people_write(name: str, text: object, value: float) -> None:
    assert read(name, text) == pytest.approx(value)


@pytest.mark.parametrize("name", QUANTITIES)
def test_a_field_refuses_what_is_no_quantity_and_says_what_would_be(name: str) -> None:
    no_quantities: list[object] = ["plenty", "-1", -1, True, None, [], {}, "", float("nan"), float("inf"), 10**400]
    for value in no_quantities:
        with pytest.raises(ValidationError) as caught:
            pytest.fail(f"{value!r} is read as {read(name, value)!r}")
        assert all(error["ctx"]["allowed"] for error in caught.value.errors()), value


@pytest.mark.parametrize("name", sorted(set(QUANTITIES) - {"BytesOrZero", "RateOrZero", "WholeOrZero", "Headroom"}))
def test_zero_is_no_amount_unless_the_name_says_so(name: str) -> None:
    with pytest.raises(ValidationError, match="above zero"):
        read(name, 0)


def test_a_share_is_at_most_the_whole() -> None:
    with pytest.raises(ValidationError, match="above 1"):
        read("Share", "101%")


def test_half_a_person_is_no_person() -> None:
    with pytest.raises(ValidationError, match="whole number"):
        read("WholeNumber", 2.5)


@pytest.mark.parametrize("name", QUANTITIES)
def test_every_example_of_a_quantity_is_one(name: str) -> None:
    schema = TypeAdapter(QUANTITIES[name]).json_schema()
    assert all(read(name, example) >= 0 for example in schema["examples"])
    assert {"number", "integer", "string"} >= {choice["type"] for choice in schema["anyOf"]}


@given(st.floats(min_value=1e-6, max_value=1.0))
def test_percent_and_fraction_agree(share: float) -> None:
    assert read("Share", f"{share * 100!r}%") == pytest.approx(read("Share", share))


@pytest.mark.parametrize("text", ["DE", "de", "DEU", "Germany", "germany"])
def test_a_country_has_one_code_however_it_is_written(text: str) -> None:
    assert parse_country(text) == "DEU"


def test_norway_is_a_country_and_no_truth_value() -> None:
    assert parse_country("NO") == "NOR"


def test_a_group_stands_for_its_members() -> None:
    assert (len(EU), len(EEA)) == (27, 30)
    assert members("EU") < members("EEA")
    assert members("DEU") == {"DEU"}


@pytest.mark.parametrize(("text", "size"), [("1080p", (1920, 1080)), ("4K", (3840, 2160)), ("640 x 480", (640, 480))])
def test_a_resolution_is_read_from_its_name_or_its_sides(text: str, size: tuple[int, int]) -> None:
    resolution = Resolution.model_validate(text)
    assert (resolution.width, resolution.height) == size
