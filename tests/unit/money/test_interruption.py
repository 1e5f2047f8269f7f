from __future__ import annotations

from itertools import pairwise
from math import log
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.fact import Fact
from chipwise.catalog.load import load
from chipwise.catalog.price_tables import Interruption
from chipwise.errors import InvalidSettings
from chipwise.money.gathering import all_at_once, alone_by_size, independence
from chipwise.money.interruption import MONTH_HOURS, Rates, rate_of_share, region_of
from patience import slowness

CATALOG = load(prices=False)
ROWS: tuple[Interruption, ...] = CATALOG.rows("interruptions")
RATES = Rates(ROWS, CATALOG.machines)


def band(machine: str, low: float, high: float, region: str = "r1", provider: str = "p", as_of: str = "2025") -> Interruption:
    fact = Fact((), as_of)
    return Interruption(
        provider, region, machine, "monthly_interruption_range", None, low, high, "share", "month", "published", "advisor", fact
    )


def trace(
    label: str,
    rate: float,
    zone: str = "r1",
    provider: str = "p",
    evidence: str = "followed",
    measure: str = "loss_rate",
) -> Interruption:
    return Interruption(provider, zone, label, measure, rate, None, None, "", "a week", "computed", evidence, Fact((), "2023"))


def test_the_nearest_evidence_wins() -> None:
    rows = [
        band("m.large", 0.05, 0.1, "r1"),
        band("m.large", 0.2, 1.0, "r2"),
        trace("V100 x1", 0.3, "r1-a"),
        trace("V100 x1", 0.5, "r3-a"),
        trace("T4 x1", 0.7, "r4-a"),
        trace("L4 x1", 0.9, "r1-a", provider="q"),
    ]
    rates = Rates(rows)
    assert rates.of("p", "r1", "m.large", "V100-16").basis.startswith("the advisor's monthly band of m.large in r1")
    assert "m.large in other regions, median of 2 rows" in rates.of("p", "r9", "m.large", "V100-16").basis
    assert rates.of("p", "r1", "other", "V100-16").per_hour == 0.3
    assert rates.of("p", "r9", "other", "V100-16").per_hour == pytest.approx(0.4)
    assert "all of p" in rates.of("p", "r9", "other", "MI300X").basis
    assert not rates.of("p", "r9", "other", "MI300X").assumed


def test_of_an_unknown_provider_the_worst_of_the_known_ones_is_assumed() -> None:
    rows = [
        trace("V100 x1", 0.3),
        trace("V100 x8", 0.5),
        trace("L4 x1", 0.9, provider="q"),
        trace("L4 x8", 0.4, provider="q"),
        trace("V100 x1", 2.0, measure="mean_wait_for_capacity"),
        trace("L4 x1", 3.0, provider="q", measure="mean_wait_for_capacity"),
    ]
    rates = Rates(rows)
    for chip in ("L4", "V100", "MI300X"):
        found = {chips: rates.of("z", "r1", "m", chip, chips) for chips in (1, 8)}
        assert (found[1].per_hour, found[8].per_hour) == (0.9, 0.5)
        assert all(one.assumed and "assumed" in one.basis for one in found.values())
        assert rates.wait_hours("z", "r1", chip) == 3.0


def test_the_first_wait_is_that_of_a_request_at_a_random_moment() -> None:
    """Of traces that say how often there was one, and by the size of the machine."""
    rows = [trace("V100 x1", 0.3)]
    for label, there, mean in (("V100 x1", 0.8, 0.5), ("H100 x1", 0.6, 1.5), ("V100 x8", 0.5, 2.0)):
        rows += [trace(label, there, measure="availability_share"), trace(label, mean, measure="mean_wait_of_request")]
    rates = Rates(rows)
    assert rates.first_wait("p", "r1", "V100", 1) == pytest.approx((0.2, 2.5))
    assert rates.first_wait("p", "r9", "H100-SXM", 1).mean == pytest.approx(1.5)
    one, two, eight, pod = (rates.first_wait("z", "r9", "B200", chips) for chips in (1, 2, 8, 64))
    assert (one.absent, one.mean) == pytest.approx((0.3, 1.0))
    assert (eight.absent, eight.mean) == pytest.approx((0.5, 2.0))
    assert two.mean == pytest.approx(2.0 ** (1 / 3))
    assert pod == pytest.approx(eight)  # nothing says how losses grow with the size
    rates = Rates([*rows, trace("V100 x8", 0.9)])  # as the square root of it, nearly
    larger = rates.first_wait("z", "r9", "B200", 64)
    counted = 8 ** (log(3) / log(8))
    assert larger.absent == pytest.approx(1 - 0.5**counted)
    assert larger.hours > eight.hours
    for chips, times in ((1, 0.3), (8, 0.9), (64, 0.9 * counted)):
        assert rates.of("p", "r1", "m", "V100", chips).per_hour == pytest.approx(times)
    assert "3 times as often for the size of 64 chips" in rates.of("p", "r1", "m", "V100", 64).basis
    assert Rates(rows[:1]).first_wait("p", "r1", "V100", 8).mean == 0.0


def test_the_exponential_wait_has_the_published_percentiles() -> None:
    """Of eight chips 5.67 and 5.83 h nine times in ten, of one chip 3.36 h in the middle of the traces."""
    for chips, p90 in ((8, 5.75), (1, 3.36)):
        wait = RATES.first_wait("aws", "nowhere", "B200", chips)
        assert wait.hours * log(wait.absent / 0.1) == pytest.approx(p90, rel=0.1)


def test_published_bands_followed_instances_and_probes_are_not_mixed() -> None:
    probe = trace("V100 x1", 5.0, evidence="probe")
    followed = trace("V100 x1", 0.3)
    assert Rates([probe, followed]).of("p", "r1", "m", "V100").per_hour == 0.3
    assert Rates([probe]).of("p", "r1", "m", "V100").per_hour == 5.0
    assert "may overstate" in Rates([probe]).of("p", "r1", "m", "V100").basis
    mixed = Rates([probe, followed, band("m", 0.0, 0.05)], [])
    assert "advisor" in mixed.of("p", "r7", "elsewhere", "T4").basis


def test_machines_of_as_many_chips_are_preferred() -> None:
    rates = Rates([trace("V100 x1", 0.2), trace("V100 x8", 0.9)])
    assert rates.of("p", "r1", "m", "V100", 8).per_hour == 0.9
    assert rates.of("p", "r1", "m", "V100", 4).per_hour == pytest.approx(0.55)


def test_the_last_reading_of_a_band_counts() -> None:
    rates = Rates([band("m", 0.2, 1.0, as_of="2026-09"), band("m", 0.0, 0.05, as_of="2025-06")])
    assert "(2026-09)" in rates.of("p", "r1", "m").basis
    assert "rows" not in rates.of("p", "r2", "m").basis


def test_a_mean_life_is_the_inverse_of_a_rate_and_counts_once() -> None:
    life = trace("V100 x1", 4.0, measure="mean_uptime")
    assert Rates([life]).of("p", "r1", "m", "V100").per_hour == 0.25
    assert "median" not in Rates([life, trace("V100 x1", 0.25)]).of("p", "r1", "m", "V100").basis


@given(st.floats(0, 0.94), st.floats(0.001, 0.05))
def test_a_larger_share_is_a_higher_rate(share: float, more: float) -> None:
    assert rate_of_share(share, MONTH_HOURS) <= rate_of_share(share + more, MONTH_HOURS)


def test_a_share_of_a_month_turns_into_the_rate_that_gives_it() -> None:
    assert 1 - 2.718281828459045 ** (-rate_of_share(0.2, MONTH_HOURS) * MONTH_HOURS) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("zone", "region"),
    [
        ("us-east-1a", "us-east-1"),
        ("us-east1-b", "us-east1"),
        ("us-east-1", "us-east-1"),
        ("europe-west1", "europe-west1"),
        ("eastus", "eastus"),
        ("not stated", "not stated"),
    ],
)
def test_a_zone_counts_as_its_region(zone: str, region: str) -> None:
    assert region_of(zone) == region


def test_every_band_of_the_catalog_is_a_plausible_rate() -> None:
    for row in ROWS:
        if row.measure == "monthly_interruption_range":
            found = RATES.of(row.provider, row.region_or_zone, row.machine_or_chip)
            assert 0 <= found.low < found.per_hour < found.high < 1
            assert row.region_or_zone in found.basis


def test_every_accelerated_machine_of_the_catalog_has_an_answer() -> None:
    for machine in CATALOG.machines:
        found = RATES.of(machine.provider, "nowhere", machine.name, machine.chip, machine.chips)
        assert 0 <= found.low <= found.per_hour <= found.high
        assert found.per_hour > 0


def test_a_worse_band_is_never_a_lower_rate() -> None:
    rates = [
        Rates([band("m", *edges)]).of("p", "r1", "m") for edges in ((0, 0.05), (0.05, 0.1), (0.1, 0.15), (0.15, 0.2), (0.2, 1))
    ]
    for better, worse in pairwise(rates):
        assert better.low <= worse.low
        assert better.per_hour < worse.per_hour
        assert better.high < worse.high


def test_traces_without_a_machine_know_the_chip_by_its_short_name() -> None:
    assert "H100 in us-central1" in RATES.of("gcp", "us-central1", "a3-highgpu-1g", "H100-SXM", 1).basis
    assert "A100-40 in" in RATES.of("gcp", "europe-west4", "a2-highgpu-8g", "A100-40", 8).basis
    assert Rates(ROWS).of("azure", "eastus", "Standard_NC6s_v3", "V100-16", 1).assumed


def test_the_advisor_speaks_for_a_chip_where_the_catalog_knows_who_carries_it() -> None:
    assert "advisor" in RATES.of("aws", "us-east-1", "p5.4xlarge", "H100-SXM", 1).basis
    assert "H100-SXM" in RATES.of("aws", "us-east-1", "p5.4xlarge", "H100-SXM", 1).basis


def test_waits_are_of_the_chip_where_there_is_one_and_unknown_without_traces() -> None:
    assert RATES.wait_hours("gcp", "us-central1", "H100-SXM") == pytest.approx(0.6181)
    assert RATES.wait_hours("azure", "eastus") is not None
    assert Rates([band("m", 0.0, 0.05)]).wait_hours("p", "r1") is None


def test_a_table_without_rates_is_refused() -> None:
    with pytest.raises(InvalidSettings, match="interruptions: no row states"):
        Rates([])


def test_the_table_is_indexed_in_milliseconds_and_asked_in_microseconds() -> None:
    building, asking = [], []
    for _ in range(7):
        start = process_time()
        rates = Rates(ROWS, CATALOG.machines)
        building.append(process_time() - start)
        start = process_time()
        for number in range(5000):
            rates.of("aws", f"region-{number % 30}", f"g5.{number // 30}", "A10G", 1)
        asking.append(process_time() - start)
    slow = slowness()
    assert min(building) < 0.015 * slow
    assert min(asking) / 5000 < 50e-6 * slow


def several(label: str, number: int, some: float, every: float) -> list[Interruption]:
    unit = {"any": "fraction of probes with at least one", "all": f"fraction of probes with all {number}"}
    shares = {"any": some, "all": every}
    return [trace(label, shares[one], measure=f"availability_share_{one}")._replace(unit=unit[one]) for one in shares]


def test_machines_that_come_and_go_together_are_waited_for_as_one_and_others_longer() -> None:
    """Four that are there independently with p: all with p^4, one of them with 1 - (1 - p)^4."""
    alone, together = several("A100 x8", 4, 1 - 0.4**4, 0.6**4), several("V100 x1", 4, 0.6, 0.6)
    never = several("H100 x8", 4, 0.9, 0.0)
    assert independence(alone) == pytest.approx({8.0: 1.0})
    assert independence([*alone, *together]) == pytest.approx({1.0: 0.0, 8.0: 1.0}, abs=1e-9)
    assert independence(never) == {8.0: 1.0}
    assert alone_by_size({1.0: 0.0, 8.0: 1.0}, np.array([1.0, 2.0, 8.0, 64.0])) == pytest.approx([0.0, 1 / 3, 1.0, 1.0])
    assert alone_by_size({}, np.array([8.0])) == pytest.approx([0.0])


@pytest.mark.parametrize("number", [1, 2, 5, 16])
def test_the_wait_for_all_is_that_of_the_last_to_come(number: int) -> None:
    random = np.random.default_rng(7)
    waits = np.where(random.random((200_000, number)) < 0.35, random.exponential(4.8, (200_000, number)), 0.0).max(axis=1)
    absent, hours = all_at_once(np.array([0.35]), np.array([4.8]), np.array([float(number)]))
    assert absent[0] == pytest.approx(np.mean(waits > 0), abs=0.005)
    assert absent[0] * hours[0] == pytest.approx(np.mean(waits), rel=0.01)
