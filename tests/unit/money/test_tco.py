from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chipwise.catalog.load import load
from chipwise.catalog.offer import Purchase
from chipwise.catalog.owned import hourly_cost
from chipwise.errors import BadInput, InvalidSettings, UnknownName
from chipwise.money.owning import colocation_rent, electricity, industry_pue, purchase_price
from chipwise.money.tco import CLOUD, Ownership, cash_flow, compare, own_cost, sensitivity
from chipwise.units import YEAR

CATALOG = load(prices=False)
EIGHT = Ownership(297_000, 10_200, 0.155, idle_power_w=2_500, space_usd_per_kw_month=150, staff_usd_per_machine_year=8_000)

owners = st.builds(
    Ownership,
    purchase_usd=st.floats(1_000, 1e6),
    power_w=st.floats(300, 15_000),
    usd_per_kwh=st.floats(0.01, 0.5),
    idle_power_w=st.floats(0, 300),
    machines=st.integers(1, 20),
    years=st.floats(0.5, 8),
    utilisation=st.floats(0.05, 1),
    residual_share=st.floats(0, 0.6),
    interest=st.sampled_from([0.0, 0.01, 0.06, 0.15]),
    pue=st.floats(1, 2),
    cooling_share=st.floats(0, 0.4),
    space_usd_per_kw_month=st.floats(0, 300),
    staff_usd_per_machine_year=st.floats(0, 20_000),
    maintenance_share=st.floats(0, 0.2),
    network_storage_share=st.floats(0, 0.5),
)
prices = st.floats(0.1, 150)
options = st.sampled_from([Purchase.ON_DEMAND, Purchase.SPOT, Purchase.RESERVED_3Y])


class Ledger:
    """Owning against renting, month by month and line by line: no formula of the module is used."""

    def __init__(self, own: Ownership, cloud: float, option: Purchase, interest: float, decline: float = 0.0) -> None:
        hours = 730.0
        term = {"reserved-1y": 12, "reserved-3y": 36}.get(option, 1)  # months in which the price stays
        rent = market = cloud
        months = round(own.years * 12)
        step = (1 + interest) ** (1 / 12)
        rented = hours * (own.utilisation if option in (Purchase.ON_DEMAND, Purchase.SPOT) else 1.0)
        bought = sum(own.purchase_usd + own.purchase_usd * own.network_storage_share for _ in range(own.machines))
        self.owning, self.renting = bought, 0.0
        self.crossed: int | None = 0 if bought == 0 else None
        worth = 1.0
        for month in range(1, months + 1):
            worth /= step
            if (month - 1) % term == 0:
                rent = market
            market *= (1 - decline) ** (1 / 12)
            useful, idle = hours * own.utilisation, hours * (1 - own.utilisation)
            for _ in range(own.machines):
                kwh = (own.power_w * useful + own.idle_power_w * idle) / 1000
                paid = kwh * own.usd_per_kwh
                paid += kwh * (own.pue - 1) * own.usd_per_kwh + kwh * own.cooling_share * own.usd_per_kwh
                paid += own.power_w / 1000 * own.space_usd_per_kw_month
                paid += own.staff_usd_per_machine_year / 12 + own.purchase_usd * own.maintenance_share / 12
                self.owning += paid * worth
                self.renting += rent * rented * worth
            if month == months:
                self.owning -= bought * own.residual_share * worth
            if self.crossed is None and self.owning <= self.renting * (1 + 1e-12):
                self.crossed = month


# -- owning


@given(owners)
def test_the_lines_sum_to_the_hourly_cost(own: Ownership) -> None:
    found = own_cost(own)
    assert found.cost.usd == pytest.approx(sum(line.usd for line in found.cost.lines))
    assert found.usd_per_machine_hour * own.machines == pytest.approx(found.cost.usd)


@given(owners)
def test_the_annuity_pays_for_what_a_ledger_adds_up(own: Ownership) -> None:
    """Paying the hourly cost every month is worth what is really paid over the years."""
    monthly = own_cost(own).cost.usd * 730
    step = (1 + own.interest) ** (1 / 12)
    paid = sum(monthly / step**month for month in range(1, own.months + 1))
    assert paid == pytest.approx(Ledger(own, 0.0, Purchase.ON_DEMAND, own.interest).owning, rel=1e-9)


@given(owners, st.floats(0, 1))
def test_more_use_never_raises_the_cost_of_a_useful_hour(own: Ownership, share: float) -> None:
    busier = replace(own, utilisation=own.utilisation + (1 - own.utilisation) * share)
    assert own_cost(busier).usd_per_useful_hour <= own_cost(own).usd_per_useful_hour * (1 + 1e-12)


@given(owners, st.floats(0, 1), prices, options)
def test_dearer_energy_never_makes_owning_cheaper(own: Ownership, more: float, cloud: float, option: Purchase) -> None:
    dearer = replace(own, usd_per_kwh=own.usd_per_kwh + more)
    assert own_cost(dearer).cost.usd >= own_cost(own).cost.usd * (1 - 1e-12)
    before, after = compare(own, cloud, option), compare(dearer, cloud, option)
    assert after.saving_usd <= before.saving_usd + abs(before.saving_usd) * 1e-9 + 1e-6
    if after.break_even_month is not None:
        assert before.break_even_month is not None
        assert before.break_even_month <= after.break_even_month


@given(owners)
def test_the_cash_flow_adds_up_to_what_is_paid(own: Ownership) -> None:
    flows = cash_flow(own)
    assert -sum(flows) == pytest.approx(Ledger(own, 0.0, Purchase.ON_DEMAND, 0.0).owning, rel=1e-9, abs=1e-6)
    assert len(flows) == 1 + -(-own.months // 12)


@given(st.floats(1_000, 1e6), st.floats(100, 15_000), st.floats(1, 2), st.floats(0.01, 0.5), st.integers(1, 8))
def test_without_extras_it_is_the_catalogs_hourly_cost(usd: float, watts: float, pue: float, kwh: float, years: int) -> None:
    plain = Ownership(
        usd,
        watts,
        kwh,
        years=years,
        utilisation=1,
        residual_share=0,
        interest=0,
        pue=pue,
        maintenance_share=0,
        network_storage_share=0,
    )
    expected, _ = hourly_cost(usd, years * YEAR, watts, pue, kwh)
    assert own_cost(plain).usd_per_machine_hour == pytest.approx(expected)


# -- against a cloud


@given(owners, prices, options)
def test_the_present_values_against_a_ledger(own: Ownership, cloud: float, option: Purchase) -> None:
    found, ledger = compare(own, cloud, option), Ledger(own, cloud, option, own.interest)
    assert found.own_npv_usd == pytest.approx(ledger.owning, rel=1e-9)
    assert found.cloud_npv_usd == pytest.approx(ledger.renting, rel=1e-9)


@given(owners, prices, st.sampled_from([*Purchase][:4]), st.floats(-0.5, 0.8))
def test_a_rent_that_moves_against_a_ledger(own: Ownership, cloud: float, option: Purchase, decline: float) -> None:
    found = compare(own, cloud, option, decline)
    ledger, cash = (Ledger(own, cloud, option, interest, decline) for interest in (own.interest, 0.0))
    assert found.cloud_npv_usd == pytest.approx(ledger.renting, rel=1e-9)
    assert (found.break_even_month, found.break_even_month_discounted) == (cash.crossed, ledger.crossed)


@given(owners, prices, st.floats(-0.3, 0.5))
def test_a_level_rent_has_the_break_even_utilisation_of_the_rent_that_moves(
    own: Ownership, cloud: float, decline: float
) -> None:
    moving = compare(own, cloud, decline=decline)
    level = compare(own, moving.cloud_usd_per_useful_hour)
    assert moving.break_even_utilisation == pytest.approx(level.break_even_utilisation)
    assert moving.saving_usd == pytest.approx(level.saving_usd, rel=1e-6, abs=1e-3)


def test_a_rent_that_falls_faster_never_saves_more_and_never_pays_back_sooner() -> None:
    months, savings = zip(
        *(
            (one.break_even_month or 999, one.saving_usd)
            for one in (compare(EIGHT, 40.0, "spot", d) for d in (-0.2, 0, 0.1, 0.4))
        ),
        strict=True,
    )
    assert list(months) == sorted(months)
    assert list(savings) == sorted(savings, reverse=True)


@given(owners, prices, options)
def test_the_break_even_month_is_the_month_of_the_simulated_crossing(own: Ownership, cloud: float, option: Purchase) -> None:
    found = compare(own, cloud, option)
    assert found.break_even_month == Ledger(own, cloud, option, 0.0).crossed
    assert found.break_even_month_discounted == Ledger(own, cloud, option, own.interest).crossed


@given(owners, prices)
def test_owning_saves_exactly_from_the_break_even_utilisation_on(own: Ownership, cloud: float) -> None:
    even = compare(own, cloud).break_even_utilisation
    if even is None:
        assert compare(replace(own, utilisation=1.0), cloud).saving_usd < 0
        return
    assume(even > 1e-3)
    scale = abs(compare(own, cloud).own_npv_usd) * 1e-6
    assert abs(compare(replace(own, utilisation=even), cloud).saving_usd) <= scale
    assert compare(replace(own, utilisation=(1 + even) / 2), cloud).saving_usd >= -scale
    assert compare(replace(own, utilisation=even / 2), cloud).saving_usd <= scale


def test_a_reservation_is_paid_in_idle_hours_too() -> None:
    by_use, always = compare(EIGHT, 24.0), compare(EIGHT, 24.0, "reserved-3y")
    assert by_use.cloud_usd_per_useful_hour == 24.0
    assert always.cloud_usd_per_useful_hour == pytest.approx(24.0 / 0.7)
    assert always.break_even_utilisation == 0.0


def test_a_cheap_cloud_is_never_caught_up_with() -> None:
    found = compare(EIGHT, 5.0)
    assert (found.break_even_utilisation, found.break_even_month) == (None, None)
    assert "even always in use" in found.why


def test_a_purchase_option_nobody_sells_is_refused() -> None:
    with pytest.raises(UnknownName, match="on-demand"):
        compare(EIGHT, 24.0, "on-demnd")
    with pytest.raises(UnknownName):
        compare(EIGHT, 24.0, Purchase.OWNED)
    with pytest.raises(InvalidSettings, match="cloud_usd_per_hour"):
        compare(EIGHT, -1.0)
    for decline in (1.0, 1.5, float("nan"), float("-inf")):
        with pytest.raises(InvalidSettings, match="decline"):
            compare(EIGHT, 24.0, decline=decline)


# -- sensitivity


def test_each_bar_is_the_comparison_with_one_setting_changed() -> None:
    bars = sensitivity(EIGHT, 24.0, {"utilisation": (0.3, 0.9), "years": (3, 5), CLOUD: (12.0, 30.0)})
    assert {bar.name for bar in bars} == {"utilisation", "years", CLOUD}
    assert [bar.width_usd for bar in bars] == sorted((bar.width_usd for bar in bars), reverse=True)
    by_name = {bar.name: bar for bar in bars}
    assert by_name["utilisation"].saving_at_low_usd == compare(replace(EIGHT, utilisation=0.3), 24.0).saving_usd
    assert by_name[CLOUD].saving_at_high_usd == compare(EIGHT, 30.0).saving_usd
    assert by_name["years"].month_at_high == compare(replace(EIGHT, years=5), 24.0).break_even_month


def test_the_usual_doubts_lie_on_both_sides_and_use_the_spread_of_the_purchase() -> None:
    bars = {bar.name: bar for bar in sensitivity(replace(EIGHT, purchase_low_usd=199_000, purchase_high_usd=375_000), 24.0)}
    assert (bars["purchase_usd"].low, bars["purchase_usd"].high) == (199_000, 375_000)
    for name, bar in bars.items():
        now = 24.0 if name == CLOUD else getattr(EIGHT, name)
        assert bar.low <= now <= bar.high


@given(owners, prices, options)
def test_the_usual_doubts_can_be_asked_of_any_owner(own: Ownership, cloud: float, option: Purchase) -> None:
    assert len(sensitivity(own, cloud, purchase=option)) == 9


def test_a_setting_nobody_knows_is_told_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="utilisation"):
        sensitivity(EIGHT, 24.0, {"utilization": (0.1, 0.2)})


# -- what is refused


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"utilisation": 0.0}, "utilisation"),
        ({"utilisation": 1.5}, "utilisation"),
        ({"pue": 0.9}, "pue"),
        ({"machines": 0}, "machines"),
        ({"years": 0.01}, "years"),
        ({"idle_power_w": 20_000}, "idle_power_w"),
        ({"residual_share": 2.0}, "residual_share"),
        ({"purchase_usd": float("nan")}, "purchase_usd"),
        ({"years": float("inf")}, "years"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(change: dict[str, float], field: str) -> None:
    settings = {f.name: getattr(EIGHT, f.name) for f in fields(EIGHT)} | change
    with pytest.raises(InvalidSettings) as caught:
        Ownership(**settings)
    assert [problem.field for problem in caught.value.problems] == [field]
    assert all(problem.allowed for problem in caught.value.problems)


# -- what the catalog knows


def test_a_server_is_priced_as_a_whole_where_somebody_priced_it() -> None:
    found = purchase_price(CATALOG.rows("boards"), "H100-SXM", 8)
    assert found.low <= found.value <= found.high
    assert 200_000 < found.value < 400_000
    assert "servers with 8 x H100-SXM" in found.how


def test_boards_alone_get_a_server_around_them_and_are_not_certain() -> None:
    found = purchase_price(CATALOG.rows("boards"), "L40S", 4)
    assert found.low == 4 * 9750
    assert found.value > 4 * (9750 + 14000) / 2
    assert not found.certain


def test_every_chip_with_a_price_can_be_bought() -> None:
    for chip in {row.chip for row in CATALOG.rows("boards") if row.chip}:
        found = purchase_price(CATALOG.rows("boards"), chip, 8)
        assert 0 < found.low <= found.value <= found.high


def test_a_chip_without_a_price_asks_for_one() -> None:
    with pytest.raises(BadInput, match="purchase_usd"):
        purchase_price(CATALOG.rows("boards"), "Trainium2", 16)
    with pytest.raises(BadInput, match="chips"):
        purchase_price(CATALOG.rows("boards"), "L40S", 0)


@pytest.mark.parametrize(
    ("place", "usd"),
    [("Germany", 0.1552), ("DE", 0.1552), ("Texas", 0.0882), ("US Georgia", 0.107), ("Georgia", 0.0911), ("Europe", 0.204)],
)
def test_electricity_has_the_price_of_the_place(place: str, usd: float) -> None:
    assert electricity(CATALOG.rows("energy"), place).value == usd


def test_one_month_does_not_stand_for_a_year() -> None:
    assert electricity(CATALOG.rows("energy"), "Ohio", "industrial").value == 0.0703


def test_a_place_without_a_price_in_dollars_asks_for_one() -> None:
    with pytest.raises(UnknownName, match="usd_per_kwh"):
        electricity(CATALOG.rows("energy"), "Antarctica")
    with pytest.raises(UnknownName, match="sector"):
        electricity(CATALOG.rows("energy"), "DE", "industry")


def test_the_industry_says_what_is_lost_and_what_a_room_costs() -> None:
    assert industry_pue(CATALOG.rows("energy")).value == 1.54
    rent = colocation_rent(CATALOG.rows("energy"))
    assert (rent.low, rent.value, rent.high) == (125, 195.94, 195.94)
