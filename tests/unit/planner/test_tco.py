"""What `tco` promises: figures with a story, laws of the comparison, and JSON whose keys stay."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from math import fsum, isclose
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import tco
from chipwise.catalog.offer import Purchase
from chipwise.errors import BadInput
from chipwise.money.tco import YEAR_HOURS, Ownership, sensitivity
from chipwise.money.tco_values import Rent, TcoRequest
from chipwise.planner.owning.rents import parse_decline, parse_rent
from chipwise.views.tco import answer_words, tco_view
from effort import cases

SESSION = Session(Config(Path("none/config"), Path("none/data")), date(2026, 11, 15), [])
H100 = TcoRequest("h100", machines=4, years=3, utilisation=0.6, country="DEU")


def test_what_is_not_given_comes_from_the_catalog_and_says_so() -> None:
    found = tco(SESSION, H100)
    told = {one.name: one for one in found.settings}
    assert told["purchase_usd"].low is not None
    assert told["purchase_usd"].low < told["purchase_usd"].value < (told["purchase_usd"].high or 0)
    assert told["usd_per_kwh"].value == pytest.approx(0.1552)
    assert "DEU" in told["usd_per_kwh"].basis
    assert 1.3 < told["pue"].value < 1.7
    assert not any(one.is_given for one in found.settings)
    assert all(one.basis for one in found.settings)
    assert any("large industry" in note for note in found.notes)


def test_what_is_given_wins_and_is_marked() -> None:
    found = tco(
        SESSION, replace(H100, purchase_usd=250e3, usd_per_kwh=0.2, pue=1.3, power_w=10_200, staff_usd_per_machine_year=0)
    )
    given_ = {one.name: one.value for one in found.settings if one.is_given}
    assert given_ == {
        "purchase_usd": 250e3,
        "usd_per_kwh": 0.2,
        "pue": 1.3,
        "power_w": 10_200,
        "staff_usd_per_machine_year": 0,
    }
    assert found.low == found.cost == found.high
    assert "staff" not in {line.name for line in found.cost.cost.lines}


def test_lines_sum_to_the_year_and_the_year_to_the_hours() -> None:
    view = tco_view(tco(SESSION, H100))
    own = view["own"]
    assert isclose(fsum(line["usd_per_year"] for line in own["lines"]), own["usd_per_year"])
    assert isclose(own["usd_per_machine_hour"]["value"] * 4 * YEAR_HOURS, own["usd_per_year"])
    assert isclose(own["usd_per_useful_hour"]["value"] * 0.6, own["usd_per_machine_hour"]["value"])
    assert own["usd_per_useful_hour"]["low"] < own["usd_per_useful_hour"]["value"] < own["usd_per_useful_hour"]["high"]


def test_every_purchase_option_that_is_sold_is_compared() -> None:
    found = tco(SESSION, H100)
    options = [one.offer.purchase for one in found.cloud]
    assert {Purchase.ON_DEMAND, Purchase.SPOT, Purchase.RESERVED_1Y, Purchase.RESERVED_3Y} <= set(options)
    assert Purchase.OWNED not in options
    assert all(one.chips == 8 and one.chip == "H100-SXM" and one.offer.can_win for one in found.cloud)
    hourly = [one.usd_per_hour for one in found.cloud if one.offer.purchase is Purchase.ON_DEMAND]
    assert hourly == sorted(hourly)


def test_a_reservation_longer_than_the_machines_are_kept_is_left_out() -> None:
    found = tco(SESSION, replace(H100, years=2))
    assert Purchase.RESERVED_3Y not in {one.offer.purchase for one in found.cloud}
    assert [(option, "3 years" in why) for option, why in found.left_out] == [(Purchase.RESERVED_3Y, True)]


def test_a_smaller_machine_is_compared_chip_by_chip() -> None:
    small = tco(SESSION, replace(H100, against=("p5.4xlarge",)))
    assert {one.chips for one in small.cloud} == {1}
    assert all(isclose(one.usd_per_hour, 8 * one.offer.usd_per_hour) for one in small.cloud)
    assert any("as 8 of them" in note for note in small.notes)


def test_another_chip_is_told_to_be_one() -> None:
    assert any("A100-40 is another chip" in note for note in tco(SESSION, replace(H100, against=("p4d.24xlarge",))).notes)


@settings(max_examples=cases(25))
@given(st.floats(0.05, 1.0), st.floats(0.05, 1.0))
def test_a_busier_machine_has_cheaper_useful_hours_and_saves_more_against_on_demand(one: float, other: float) -> None:
    idle, busy = (tco(SESSION, replace(H100, against=("p5.48xlarge",), utilisation=use)) for use in sorted((one, other)))
    assert busy.cost.usd_per_useful_hour <= idle.cost.usd_per_useful_hour * (1 + 1e-9)
    assert idle.reference is not None
    assert busy.reference is not None
    assert busy.reference.compared.saving_usd >= idle.reference.compared.saving_usd - 1e-6


@settings(max_examples=cases(25))
@given(st.floats(1e4, 1e6), st.floats(1e4, 1e6))
def test_a_dearer_purchase_breaks_even_at_more_use_or_never(one: float, other: float) -> None:
    cheap, dear = (tco(SESSION, replace(H100, against=("p5.48xlarge",), purchase_usd=usd)) for usd in sorted((one, other)))
    for low, high in zip(cheap.cloud, dear.cloud, strict=True):
        least, most = low.compared.break_even_utilisation, high.compared.break_even_utilisation
        assert most is None or (least is not None and least <= most + 1e-12)


def test_the_answer_is_against_the_least_rent_that_lasts() -> None:
    result = tco(SESSION, H100)
    reference = result.reference
    assert reference is not None
    assert reference.is_durable
    steady = [rent for rent in result.cloud if rent.offer.purchase is not Purchase.SPOT and rent.is_durable]
    assert reference.compared.cloud_npv_usd == min(rent.compared.cloud_npv_usd for rent in steady)
    median = next(rent for rent in result.cloud if rent.place.startswith("median"))
    assert reference.usd_per_hour < median.usd_per_hour
    assert min(reference.rents) <= reference.usd_per_hour < max(reference.rents)
    assert answer_words(result).startswith(("Rent:", "Own:", "Close:"))


def test_the_sensitivity_is_that_of_the_reference() -> None:
    found = tco(SESSION, H100)
    assert found.reference in found.cloud
    assert found.reference is not None
    assert found.reference.offer.purchase is Purchase.ON_DEMAND
    decline = found.reference.decline
    expected = sensitivity(found.own, found.reference.usd_per_hour, purchase=Purchase.ON_DEMAND, decline=decline)
    assert "rent_decline" in {one.name for one in found.swings}
    assert found.swings == tuple(one for one in expected if one.width_usd > 0)
    assert [one.width_usd for one in found.swings] == sorted((one.width_usd for one in found.swings), reverse=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"country": "Germny"}, "--country: 'Germny' is no country"),
        ({"country": "ZAF"}, "--country: 'ZAF' has no electricity price in USD"),
        ({"chip": "l40"}, "--purchase: the catalog has no purchase price"),
        ({"chip": "tpu-v5e"}, "CHIP: TPU-v5e can only be rented"),
        ({"against": ("p5.48xlrge",)}, "--against: No machine"),
        ({"providers": ("awz",)}, "--provider: No provider"),
        ({"regions": ("mars",)}, "--region: No region"),
        ({"utilisation": 0.0}, "--utilisation: 0 is not possible"),
        ({"years": 0.01}, "--years: 0.01 is not possible"),
        ({"interest": -1.0}, "--interest: -1 is not possible"),
        ({"decline": 0.95}, "--decline: 0.95 is not possible"),
        ({"decline": float("nan")}, "--decline: nan is not possible"),
        ({"term": "3y"}, "--term goes with --rent"),
        ({"term": "2y", "rent": Rent(1.0)}, "--term: 2y is not possible"),
        ({"term": "3y", "rent": Rent(1.0), "years": 2}, "--term: 3y is longer than the 2 years"),
    ],
)
def test_what_cannot_be_is_told_by_its_flag(change: dict[str, object], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        tco(SESSION, replace(H100, **change))  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_a_country_without_a_price_is_fine_where_one_is_given() -> None:
    assert tco(SESSION, replace(H100, country="ZAF", usd_per_kwh=0.1)).own.usd_per_kwh == 0.1


def paid(own: Ownership, usd: float, share_in_use: float, decline: float, term: int) -> float:
    """What a rent of so much a machine and hour is worth today, month by month."""
    worth = 0.0
    for month in range(round(own.years * 12)):
        hourly = usd * (1 - decline) ** (month // term * term / 12)
        worth += own.machines * hourly * share_in_use * 730 / (1 + own.interest) ** ((month + 1) / 12)
    return worth


def test_a_rent_that_was_offered_stands_first_and_is_what_the_rest_is_held_against() -> None:
    found = tco(SESSION, replace(H100, rent=Rent(1.85), decline=0.2))
    offered = found.cloud[0]
    assert (offered.offer.provider, offered.usd_per_hour, offered.contract_usd) == ("negotiated", 8 * 1.85, None)
    assert found.reference is offered
    assert isclose(offered.compared.cloud_npv_usd, paid(found.own, 14.8, 0.6, 0.2, 1), rel_tol=1e-9)
    assert offered.slow == offered.compared == offered.fast
    assert "rent_decline" not in {one.name for one in found.swings}


def test_a_term_is_paid_in_all_hours_at_its_price_and_has_a_contract_value() -> None:
    found = tco(SESSION, replace(H100, rent=Rent(14.8, is_machine=True), term="1y", decline=0.2))
    offered = found.cloud[0]
    assert offered.usd_per_hour == 14.8
    assert isclose(offered.contract_usd or 0, 4 * 14.8 * 8760)
    assert isclose(offered.compared.cloud_npv_usd, paid(found.own, 14.8, 1.0, 0.2, 12), rel_tol=1e-9)


def test_commitments_of_providers_have_their_contract_value_too() -> None:
    for one in tco(SESSION, H100).cloud:
        years = {"reserved-1y": 1, "reserved-1y-upfront": 1, "reserved-3y": 3}.get(one.offer.purchase)
        assert one.contract_usd == (None if years is None else pytest.approx(4 * one.usd_per_hour * years * 8760))


def test_the_interval_of_the_decline_makes_intervals_of_month_and_total() -> None:
    found = tco(SESSION, H100)
    for one in found.cloud:
        share, term = (0.6, 1) if one.contract_usd is None else (1.0, 36 if "3y" in one.offer.purchase else 12)
        assert one.decline.low <= one.decline.value <= one.decline.high
        for end, decline in ((one.slow, one.decline.low), (one.fast, one.decline.high)):
            assert isclose(end.cloud_npv_usd, paid(found.own, one.usd_per_hour, share, decline, term), rel_tol=1e-9)
        assert one.fast.saving_usd <= one.compared.saving_usd <= one.slow.saving_usd
    assert any(one.fast.saving_usd < one.slow.saving_usd for one in found.cloud)
    still = tco(SESSION, replace(H100, decline=0.0))
    assert all(one.slow == one.fast for one in still.cloud)


@pytest.mark.parametrize(
    ("written", "usd", "is_machine"),
    [
        ("1.85/h", 1.85, False),
        ("$1.85", 1.85, False),
        (1.85, 1.85, False),
        ("1.85 per hour", 1.85, False),
        ("$1.85/chip-h", 1.85, False),
        ("14.80/machine-h", 14.8, True),
        ("14.80/machine-hour", 14.8, True),
        ("14.80 per machine hour", 14.8, True),
    ],
)
def test_a_rent_is_read_as_people_write_it(written: str | float, usd: float, is_machine: bool) -> None:
    assert parse_rent(written) == Rent(usd, is_machine)


@pytest.mark.parametrize(
    "written", ["", "0", "-1/h", "nan/h", "inf", "1e9/h", "1.85/month", "1.85/h/h", "/h", "cheap", "1.85 EUR/h"]
)
def test_what_is_no_rent_is_refused(written: str) -> None:
    with pytest.raises(BadInput, match=r"--rent: .* is not possible. Allowed: USD an hour above 0"):
        parse_rent(written)


@pytest.mark.parametrize(("written", "share"), [("20%", 0.2), (0.2, 0.2), ("-5%", -0.05), (-0.05, -0.05), ("0", 0.0), (0, 0.0)])
def test_a_decline_is_a_share_and_a_rise_a_negative_one(written: str | float, share: float) -> None:
    assert parse_decline(written) == pytest.approx(share)


@pytest.mark.parametrize("written", ["", "20", "-200%", "nan", "1e400", "--5%", "fast", "100%"])
def test_what_is_no_decline_is_refused(written: str) -> None:
    with pytest.raises(BadInput, match=r"--decline: .* is not possible. Allowed: shares a year"):
        parse_decline(written)


def test_nothing_to_compare_with_is_told_and_the_own_cost_stands() -> None:
    nothing = tco(SESSION, replace(H100, regions=("NZL",)))
    assert nothing.cloud == ()
    assert any("No real offer" in note for note in nothing.notes)
    assert tco_view(nothing)["sensitivity"] is None


def test_the_keys_of_the_json_are_those_of_the_page() -> None:
    view = tco_view(tco(SESSION, H100))
    assert list(view) == [
        "chip",
        "chips",
        "machines",
        "years",
        "utilisation",
        "country",
        "answer",
        "settings",
        "bought_usd",
        "resale_usd",
        "cash_flow_usd",
        "own",
        "cloud",
        "left_out",
        "sensitivity",
        "notes",
    ]
    assert list(view["own"]) == [
        "usd_per_year",
        "lines",
        "usd_per_machine_hour",
        "usd_per_useful_hour",
        "usd_per_useful_chip_hour",
    ]
    assert list(view["cloud"][0]) == [
        "purchase",
        "provider",
        "machine",
        "region",
        "chip",
        "chips",
        "place",
        "durable",
        "as_of",
        "verdict",
        "usd_per_hour",
        "usd_per_useful_hour",
        "break_even_utilisation",
        "break_even_month",
        "break_even_month_discounted",
        "own_npv_usd",
        "cloud_npv_usd",
        "saving_usd",
        "why",
        "decline",
        "break_even_month_low",
        "break_even_month_high",
        "cloud_npv_low_usd",
        "cloud_npv_high_usd",
        "saving_low_usd",
        "saving_high_usd",
        "term_years",
        "contract_usd",
    ]
    assert list(view["sensitivity"]) == ["against", "saving_usd", "swings"]
    assert list(view["sensitivity"]["swings"][0]) == [
        "name",
        "low",
        "high",
        "saving_at_low_usd",
        "saving_at_high_usd",
        "month_at_low",
        "month_at_high",
    ]
