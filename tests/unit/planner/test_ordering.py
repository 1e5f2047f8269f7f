"""What is sold in several countries is counted on the grid of the one that the answer names."""

from __future__ import annotations

from functools import cache

import pytest
import yaml

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.planner.explain.words import headline
from chipwise.planner.values.plan import Plan

pytestmark = pytest.mark.real_catalog


@cache
def session() -> Session:
    return open_session()


@cache
def planned(country: str) -> Plan:
    work = {
        "kind": "batch",
        "name": "somewhere",
        "model": "llama-3.1-8b",
        "items": 3e6,
        "input_tokens": 500,
        "output_tokens": 200,
        "limits": {"clouds": ["runpod"], "countries": [country]},
    }
    return plan(session(), "somewhere.yaml", text=yaml.safe_dump(work))


@pytest.mark.parametrize(("country", "name", "least", "most"), [("SE", "Sweden", 10, 80), ("IN", "India", 500, 900)])
def test_the_grid_is_that_of_the_country_in_the_headline(country: str, name: str, least: float, most: float) -> None:
    found = planned(country)
    assert found.winner is not None
    assert found.emitted is not None
    assert f"in {name}" in headline(found)
    line = found.emitted.lines[0]
    grams = float(line.how.rpartition(" x ")[2].split(" g/kWh")[0])
    assert least < grams < most
    assert line.how.endswith(f"g/kWh of {name}")
    hours, watts = (float(part.split()[0].replace(",", "")) for part in line.how.split(" x ")[1::-1])
    assert line.kg == pytest.approx(watts * hours * 1.54 * grams / 1e6, rel=0.01)


def test_one_price_in_two_countries_differs_in_emissions_alone() -> None:
    north, south = planned("SE").winner, planned("IN").winner
    assert north is not None
    assert south is not None
    assert north.machine == south.machine
    assert north.usd == pytest.approx(south.usd)
    assert south.kg - south.making_kg > 5 * (north.kg - north.making_kg)
