from __future__ import annotations

import pytest

from chipwise.catalog.fact import Fact
from chipwise.catalog.load import load
from chipwise.catalog.price_tables import Commitment
from chipwise.errors import InvalidSettings
from chipwise.money.commitment import HOURS_PER_YEAR, Commitments, Committed

ROWS: tuple[Commitment, ...] = load(prices=False).rows("commitments")
KNOWN = Commitments(ROWS)


def row(
    name: str,
    measure: str,
    value: float,
    region: str = "r1",
    term: str = "1y",
    payment: str = "no upfront",
    on_demand: float | None = None,
    doubtful: bool = False,
    **other: str,
) -> Commitment:
    return Commitment(
        "p",
        "Reserved",
        name,
        region,
        term,
        payment,
        {"no upfront": "none", "partial upfront": "partial", "all upfront": "all"}.get(payment, ""),
        measure,
        value,
        other.get("basis", "computed"),
        on_demand,
        superseded=False,
        doubtful=doubtful,
        fact=Fact((), other.get("as_of", "2025"), (), ""),
    )


def only(
    *rows: Commitment, machine: str = "m.large", region: str = "r1", on_demand: float | None = 10.0, chips: float | None = 4
) -> Committed:
    (found,) = Commitments(rows).of("p", machine, region, on_demand, chips)
    return found


def test_a_discount_is_off_the_on_demand_price() -> None:
    found = only(row("m", "discount_fraction", 0.4))
    assert found.usd_per_hour == pytest.approx(6.0)
    assert (found.upfront_usd, found.term_years, found.certain) == (0.0, 1.0, True)


def test_a_price_per_accelerator_is_times_the_chips() -> None:
    assert only(row("m.large", "usd_hour_per_accelerator", 1.5)).usd_per_hour == 6.0
    assert Commitments([row("m.large", "usd_hour_per_accelerator", 1.5)]).of("p", "m.large", "r1", 10.0, None) == ()


def test_all_upfront_is_the_whole_term_and_partial_half_of_it() -> None:
    whole = only(row("m", "discount_fraction", 0.4, term="3y", payment="all upfront"))
    assert whole.upfront_usd == pytest.approx(6.0 * HOURS_PER_YEAR * 3)
    assert only(row("m", "discount_fraction", 0.4, payment="partial upfront")).upfront_usd == pytest.approx(
        3.0 * HOURS_PER_YEAR
    )
    assert only(row("m", "discount_fraction", 0.4, payment="not stated")).upfront_usd is None


def test_another_regions_discount_is_used_and_marked() -> None:
    found = only(row("m", "discount_fraction", 0.4), region="r2")
    assert found.usd_per_hour == pytest.approx(6.0)
    assert not found.certain
    assert "as in r1" in found.basis


def test_another_regions_price_is_used_only_beside_its_on_demand_price() -> None:
    silent, told = (
        row("m.large", "usd_hour_instance", 3.0),
        row("m.large", "usd_hour_instance", 3.0, on_demand=5.0),
    )
    assert Commitments([silent]).of("p", "m.large", "r2", 10.0) == ()
    assert only(told, region="r2").usd_per_hour == pytest.approx(6.0)
    assert not only(told, region="r2").certain
    assert only(told, region="r1").usd_per_hour == 3.0


def test_advertised_maxima_are_bounds_and_come_last() -> None:
    found = KNOWN.of("aws", "g5.xlarge", "us-east-1", 1.006, 1)
    bounds = [one for one in found if one.bound]
    assert bounds
    assert all(not one.certain and "up to" in one.basis for one in bounds)
    assert found[-len(bounds) :] == tuple(bounds)
    assert found[0].certain


def test_what_third_parties_say_is_not_certain() -> None:
    assert not only(row("m", "discount_fraction", 0.4, basis="third-party", doubtful=True)).certain
    assert not only(row("m.large", "usd_hour_instance", 3.0, term="not stated")).certain


def test_the_row_in_force_counts() -> None:
    (block,) = (one for one in KNOWN.of("aws", "p5.48xlarge", "us-east-1", 55.04, 8) if "Capacity" in one.instrument)
    assert block.usd_per_hour == pytest.approx(47.76)
    assert block.as_of == "2026-10-07"
    (gov,) = (one for one in KNOWN.of("aws", "p6-b200.48xlarge", "us-gov-west-1", 130.0, 8) if "Capacity" in one.instrument)
    assert gov.usd_per_hour == pytest.approx(14.801 * 8)


def test_the_machines_own_row_is_before_its_familys() -> None:
    assert only(row("m", "discount_fraction", 0.4), row("m.large", "discount_fraction", 0.5)).usd_per_hour == pytest.approx(5.0)


def test_committed_use_is_known_by_the_family() -> None:
    terms = {one.term_years: one.usd_per_hour for one in KNOWN.of("gcp", "a2-highgpu-8g", "us-central1", 29.4, 8)}
    assert terms == {1.0: pytest.approx(29.4 * 0.63), 3.0: pytest.approx(29.4 * 0.35)}


def test_what_is_sold_by_negotiation_has_a_note_and_no_price() -> None:
    assert KNOWN.of("gcp", "a4x-highgpu-4g", "us-central1", 60.0, 4) == ()
    assert "by negotiation" in KNOWN.notes("gcp", "a4x-highgpu-4g")[0]


def test_every_row_with_a_figure_of_a_machine_can_be_reached() -> None:
    for one in ROWS:
        if one.measure in ("note", "max_discount_fraction") or "," in one.machine_or_family:
            continue
        suffix = {"aws": ".48xlarge", "gcp": "-8g", "azure": ""}[one.provider] if "." not in one.machine_or_family else ""
        suffix = "" if one.machine_or_family.startswith("u-") else suffix
        found = KNOWN.of(one.provider, one.machine_or_family + suffix, one.region.split()[0], 10.0, 8)
        assert any(answer.instrument == one.instrument and answer.term == one.term for answer in found), one


def test_without_an_on_demand_price_only_absolute_prices_are_told() -> None:
    assert Commitments([row("m", "discount_fraction", 0.4)]).of("p", "m.large", "r1", None) == ()
    assert only(row("m.large", "usd_hour_instance", 3.0), on_demand=None).usd_per_hour == 3.0


def test_an_impossible_price_is_named() -> None:
    with pytest.raises(InvalidSettings, match="on_demand_usd_per_hour"):
        KNOWN.of("aws", "g5.xlarge", "us-east-1", -1.0)
