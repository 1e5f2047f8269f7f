"""Owning against renting as a page: numbers, totals with intervals, the crossing, and names that are only text."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import plans
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import tco
from chipwise.money.tco import compare, owned_cash, rented_cash
from chipwise.money.tco_values import Rent, Tco, TcoRequest
from chipwise.report.tco_page import tco_page
from page_reading import Read

TODAY = date(2026, 11, 15)
SESSION = Session(Config(Path("none/config"), Path("none/data")), TODAY, [])
RESULT = tco(SESSION, TcoRequest("h100", machines=4, years=3, utilisation=0.6, country="DEU", rent=Rent(4.0), term="1y"))


def read(result: Tco) -> Read:
    return Read(tco_page(result, TODAY))


def test_the_page_says_what_the_command_says() -> None:
    found = read(RESULT)
    assert {"numbers", "totals", "rented", "contracts", "cash", "own", "sensitivity", "assumptions", "notes"} <= found.ids()
    offered = RESULT.cloud[0]
    assert f"negotiated 8x H100-SXM reserved-1y binds to ${4 * 8 * 4.0 * 8760:,.0f} over 1 year." in found.shown
    assert offered.decline.how in found.shown
    for one in RESULT.cloud:
        assert one.offer.machine in found.shown


def test_without_offers_the_own_cost_stands_alone() -> None:
    found = read(tco(SESSION, TcoRequest("h100", regions=("NZL",))))
    assert not {"totals", "rented", "cash", "sensitivity"} & found.ids()
    assert "No real offer" in found.shown


def test_hostile_names_are_text() -> None:
    offer = replace(RESULT.cloud[0].offer, provider=plans.HOSTILE, machine=plans.HOSTILE)
    bad = replace(RESULT.cloud[0], offer=offer, place=plans.HOSTILE)
    found = read(replace(RESULT, chip=plans.HOSTILE, cloud=(bad,), reference=bad, notes=(plans.HOSTILE,)))
    assert "img" not in {name for name, _ in found.elements}
    assert "<script>window.hurt=1</script>" in found.shown


def test_the_lines_of_cash_cross_in_the_month_of_the_break_even() -> None:
    for one in RESULT.cloud:
        rented = rented_cash(RESULT.own, one.usd_per_hour, one.offer.purchase, one.decline.value)
        owned = owned_cash(RESULT.own)
        assert len(rented) == len(owned) == RESULT.own.months + 1
        crossed = next((month for month, (a, b) in enumerate(zip(owned, rented, strict=True)) if a <= b * (1 + 1e-12)), None)
        assert crossed == compare(RESULT.own, one.usd_per_hour, one.offer.purchase, one.decline.value).break_even_month
