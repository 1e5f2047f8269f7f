from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import ceil, inf, isclose
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chipwise.catalog.load import load
from chipwise.errors import InvalidSettings
from chipwise.money.break_even import BreakEven, ReplicaSet, by_curve, by_the_request
from chipwise.money.serverless import Billing, Service, Span, read
from chipwise.money.serverless_cost import BURST_S, Container, Traffic, break_even, cold_start, cost, phases_of, unfit
from chipwise.units import GIB
from effort import cases, some

CATALOG = load(prices=False)
ALL = read(CATALOG)


def service(provider: str, hardware: str, name: str = "") -> Service:
    return next(s for s in ALL.services if s.provider == provider and hardware in s.hardware and name in s.name)


H100 = service("runpod", "H100")
LAMBDA = service("aws", "x86")
SMALL = Container(memory_bytes=2 * GIB)
MODEL = Container(memory_bytes=16e9, image_bytes=8e9, weights_bytes=16e9)
rates = st.floats(1e-5, 30.0)
times = st.floats(0.05, 20.0)


# -- rows


def test_every_row_is_a_service_a_part_or_has_a_reason() -> None:
    from_rows = [s for s in ALL.services if "billed by" not in s.hardware]
    assert len(from_rows) + len(ALL.parts) + len(ALL.unread) == len(CATALOG.rows("serverless"))
    assert all(unread.reason for unread in ALL.unread)
    assert {unread.reason for unread in ALL.unread} == {"no price was found"}


def test_every_gpu_service_names_chips_of_the_catalog() -> None:
    for found in ALL.services:
        assert set(found.chips) <= set(CATALOG.chips)
        assert bool(found.chips) == (found.gpus > 0)
        assert found.work_usd_per_second(4, 16 * GIB) > 0


def test_the_hourly_price_of_a_gpu_is_what_the_table_says() -> None:
    stated = {(r.provider, r.service, r.hardware, r.fact.notes): r.usd_per_gpu_hour for r in CATALOG.rows("serverless")}
    for found in ALL.services:
        expected = stated.get((found.provider, found.name, found.hardware, found.fact.notes))
        if expected and found.gpus:
            assert found.usd_per_second * 3600 / found.gpus == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize(
    ("provider", "hardware", "chips", "gpus"),
    [
        ("runpod", "L4/A5000", ("L4", "RTX-A5000", "RTX-3090"), 1),
        ("modal", "A100 40", ("A100-40",), 1),
        ("modal", "A100 80", ("A100-80",), 1),
        ("koyeb", "8x", ("H100-SXM",), 8),
        ("aws", "ml.g5.12xlarge", ("A10G",), 4),
        ("gcp", "NVIDIA L4, no", ("L4",), 1),
    ],
)
def test_hardware_is_read_as_people_write_it(provider: str, hardware: str, chips: tuple[str, ...], gpus: int) -> None:
    found = service(provider, hardware)
    assert (found.chips, found.gpus) == (chips, gpus)


def test_what_a_function_may_use_is_read_from_the_notes() -> None:
    assert (LAMBDA.memory_min_bytes, LAMBDA.memory_max_bytes) == (128 * 2**20, 10240 * 2**20)
    assert LAMBDA.time_limit_s == 900
    assert LAMBDA.billing is Billing.REQUEST
    assert LAMBDA.usd_per_request == 2e-7


def test_prices_that_need_a_promise_or_are_second_hand_are_not_certain() -> None:
    assert not service("fal", "H100").certain
    assert not service("beam", "A10G").certain
    assert not service("aws", "1024 MB").certain
    assert H100.certain


def test_a_row_of_an_unknown_unit_is_kept_with_the_reason() -> None:
    row = CATALOG.rows("serverless")[0]._replace(unit="fortnight")
    assert "fortnight" in read(CATALOG, [row]).unread[0].reason


def test_cpu_containers_are_made_of_their_parts() -> None:
    found = service("gcp", "billed by request")
    assert found.work_usd_per_second(2, 4 * GIB) == pytest.approx(2 * 3.36e-5 + 4 * 3.5e-6)
    assert found.idle_usd_per_second(2, 4 * GIB) == 0
    assert found.usd_per_request == 4e-7


# -- cold starts


def test_a_cold_start_is_platform_then_image_then_weights() -> None:
    bare, full = cold_start(H100, 0.0, 0.0), cold_start(H100, MODEL.image_bytes, MODEL.weights_bytes)
    assert (bare.low, bare.high) == H100.cold_start_s
    assert full.low < full.middle < full.high
    assert full.high - bare.high == pytest.approx(8e9 / 33e6 + 16e9 / 330e6)


@given(st.floats(0, 50e9), st.floats(0, 50e9), st.floats(0, 50e9))
def test_more_to_load_never_starts_faster(image: float, weights: float, more: float) -> None:
    before = cold_start(H100, image, weights)
    after = cold_start(H100, image + more, weights + more)
    assert all(b <= a for b, a in zip(before, after, strict=True))


def simulated(traffic: Traffic, cold_s: float, keep_warm_s: float, arrivals: int = 20_000) -> tuple[float, float]:
    """(cold share, instances up on average), request by request; the longest-standing instance with room takes the next.

    The first quarter fills the pool and is not counted.
    """
    gaps = np.random.default_rng(7).exponential(1 / traffic.requests_per_s, arrivals)
    settled = float(gaps[: arrivals // 4].sum())
    now, cold, up = 0.0, 0, 0.0
    standing: list[dict[str, float]] = []
    ends: dict[int, list[float]] = {}  # of the requests on each instance
    for gap in gaps:
        now += gap
        for instance in list(standing):
            mine = ends[id(instance)] = [end for end in ends[id(instance)] if end > now]
            if not mine and instance["last"] + keep_warm_s < now:
                up += max(0.0, instance["last"] + keep_warm_s - max(settled, instance["started"]))
                standing.remove(instance)
        room = next((i for i in standing if len(ends[id(i)]) < traffic.concurrency), None)
        if room is None:
            room = {"started": now, "ready": now + cold_s, "last": 0.0}
            standing.append(room)
            ends[id(room)] = []
        cold += settled < now < room["ready"]
        end = max(now, room["ready"]) + traffic.seconds_per_request
        ends[id(room)].append(end)
        room["last"] = max(room["last"], end)
    up += sum(now - max(settled, instance["started"]) for instance in standing)
    return cold / (arrivals * 3 / 4), up / (now - settled)


WAYS = [
    (rate, *times, *copies)
    for rate, copies, times in product(
        (0.003, 0.02, 0.1, 0.5, 2.0), ((1, 3.0), (4, 3.0), (1, 30.0), (4, 30.0)), ((1.0, 5.0), (4.0, 60.0), (0.5, 300.0))
    )
]


@pytest.mark.chance
@pytest.mark.parametrize(("rate", "seconds", "keep_warm", "concurrency", "cold_s"), some(WAYS))
def test_cold_starts_and_instances_against_simulated_traffic(
    rate: float, seconds: float, keep_warm: float, concurrency: int, cold_s: float
) -> None:
    traffic = Traffic(rate, seconds, concurrency)
    quick = replace(H100, cold_start_s=Span(cold_s, cold_s))
    bill = cost(quick, traffic, Container(1e9, keep_warm_s=keep_warm))
    share, up = simulated(traffic, cold_s, keep_warm)
    share_off, instances_off = (0.03, 0.12) if cold_s <= keep_warm else (0.15, 0.32)
    assert bill.cold_share == pytest.approx(share, abs=share_off)
    assert bill.instances == pytest.approx(up, rel=instances_off)


@given(rates, times)
def test_the_cold_share_is_a_share_and_so_is_the_utilisation(rate: float, seconds: float) -> None:
    bill = cost(H100, Traffic(rate, seconds), MODEL)
    assert 0 <= bill.cold_share <= 1
    assert 0 <= bill.utilisation <= 1
    assert bill.instances >= rate * seconds * (1 - 1e-6)


@given(st.floats(1e-4, 5.0), times, st.floats(0, 600), st.floats(1, 600))
def test_keeping_instances_longer_never_makes_more_cold_starts(rate: float, seconds: float, warm: float, more: float) -> None:
    def share(keep: float) -> float:
        return cost(H100, Traffic(rate, seconds), replace(MODEL, keep_warm_s=keep)).cold_share

    assert share(warm + more) <= share(warm) + 1e-6


def test_without_keeping_warm_every_request_starts_cold() -> None:
    assert cost(H100, Traffic(0.01, 1.0), replace(MODEL, keep_warm_s=0.0)).cold_share == pytest.approx(1.0)


def test_instances_that_are_never_given_up_are_paid_and_are_warm() -> None:
    bill = cost(H100, Traffic(1e-3, 1.0), replace(MODEL, minimum_instances=1))
    assert bill.cold_share < 0.01
    assert bill.usd_per_hour == pytest.approx(H100.usd_per_second * 3600, rel=0.05)


def test_nothing_costs_nothing() -> None:
    assert cost(H100, Traffic(0.0, 1.0), MODEL).usd_per_hour == 0


# -- cost


@given(rates, times, st.integers(1, 16), st.floats(1, 10))
def test_the_lines_sum_to_the_bill(rate: float, seconds: float, concurrency: int, burstiness: float) -> None:
    bill = cost(H100, Traffic(rate, seconds, concurrency, burstiness), MODEL)
    assert bill.usd_per_hour == pytest.approx(sum(line.usd for line in bill.cost.lines))
    assert all(line.usd >= 0 for line in bill.cost.lines)


@given(rates, st.floats(0.05, 20))
def test_a_function_without_cold_starts_costs_its_gigabyte_seconds(rate: float, seconds: float) -> None:
    plain = replace(LAMBDA, keep_warm_s=1e15)
    expected = rate * 3600 * (seconds * 2 * 1.66667e-5 + 2e-7)
    assert cost(plain, Traffic(rate, seconds), SMALL).usd_per_hour == pytest.approx(expected, rel=1e-6)


def test_short_requests_are_rounded_up_to_the_least_billed() -> None:
    fixed = replace(service("aws", "1024 MB"), min_billed_s=1.0, keep_warm_s=1e9)
    bill = cost(fixed, Traffic(1.0, 0.25), Container(1 * GIB))
    assert bill.usd_per_hour == pytest.approx(3600 * 2e-5)


@given(st.floats(1e-4, 10.0), st.floats(1.01, 5), times)
def test_more_traffic_never_costs_less_on_a_function(rate: float, factor: float, seconds: float) -> None:
    def usd(requests_per_s: float) -> float:
        return cost(replace(LAMBDA, keep_warm_s=0.0), Traffic(requests_per_s, seconds), SMALL).usd_per_hour

    assert usd(rate * factor) >= usd(rate) * (1 - 1e-9)


def test_what_does_not_fit_is_refused_with_the_numbers() -> None:
    assert unfit(H100, Container(200e9), 1.0) is not None
    with pytest.raises(InvalidSettings, match="80 GiB"):
        cost(H100, Traffic(1.0, 1.0), Container(200e9))
    with pytest.raises(InvalidSettings, match="seconds_per_request"):
        cost(LAMBDA, Traffic(1.0, 1000.0), SMALL)


def test_settings_that_cannot_be_are_told_all_at_once() -> None:
    with pytest.raises(InvalidSettings) as caught:
        Traffic(-1.0, 0.0, 0, 0.5)
    assert [p.field for p in caught.value.problems] == ["requests_per_s", "seconds_per_request", "concurrency", "burstiness"]
    with pytest.raises(InvalidSettings, match="image_bytes"):
        Container(1e9, image_bytes=inf)
    with pytest.raises(InvalidSettings, match="minimum"):
        ReplicaSet(1.0, 1.0, 0)


# -- break-even


@settings(deadline=None, max_examples=cases(40))
@given(st.floats(0.2, 20), times, st.floats(1, 4))
def test_above_the_break_even_the_machine_is_cheaper_and_below_it_is_not(usd: float, seconds: float, bursts: float) -> None:
    traffic = Traffic(0.0, seconds, 1, bursts)
    found = break_even(H100, ReplicaSet(usd), traffic, MODEL)
    assert found.always is not None

    def bill(rate: float) -> float:
        return cost(H100, replace(traffic, requests_per_s=rate), MODEL).usd_per_hour

    assert bill(found.always * 1.001) >= usd * (1 - 1e-6)
    assert bill(found.always * 0.98) <= usd * (1 + 1e-6)
    assert all(bill(found.always * more) >= usd * (1 - 1e-6) for more in (1.5, 3, 10))


def test_a_machine_that_costs_more_even_when_full_never_breaks_even_for_good() -> None:
    found = break_even(LAMBDA, ReplicaSet(10.0, requests_per_s=0.1), Traffic(0, 0.1), SMALL)
    assert found.always is None
    assert found.why


def test_a_dearer_machine_breaks_even_later() -> None:
    even = [break_even(H100, ReplicaSet(usd), Traffic(0, 2.0), MODEL).always or 0 for usd in (1, 2, 4, 8)]
    assert even == sorted(even)


@given(st.floats(1e-6, 1e-2), st.floats(0.1, 50), st.floats(0.1, 20), st.integers(1, 4), st.floats(0, 20))
@settings(deadline=None)
def test_the_closed_form_is_what_a_search_finds(usd: float, h: float, q: float, least: int, fixed: float) -> None:
    fleet = ReplicaSet(h, q, least, fixed)
    closed = by_the_request(usd, fleet)
    searched = by_curve(lambda rate: 3600 * usd * rate, 3600 * usd, fleet)
    if searched.always is not None:
        assert closed.always is not None
        assert isclose(closed.always, searched.always, rel_tol=1e-6)
        assert closed.first is not None
        assert searched.first is not None
        assert isclose(closed.first, searched.first, rel_tol=1e-6)


@given(
    st.floats(1e-6, 1e-2),
    st.floats(0.1, 50),
    st.floats(0.1, 20),
    st.integers(1, 4),
    st.lists(st.tuples(st.floats(0.05, 5), st.floats(0.1, 1)), min_size=2, max_size=5),
)
@example(1.5e-05, 0.4, 7.4140625, 1, [(1.0, 1.0), (1.0, 0.1)])  # a full one costs 0.1% less: a thousand steps
@example(1.5e-05, 0.4, 7.4140625, 1, [(1.0, 1.0), (3.0, 1.0), (1.75, 1.0), (1.859375, 1.0)])
@example(1.5e-05, 0.4, 7.4074075, 2, [(1.0, 1.0), (3.0, 1.0)])  # nearer than can be told apart
@settings(deadline=None)
def test_over_a_day_the_break_even_is_where_the_machines_of_each_hour_cost_as_much(
    usd: float, h: float, q: float, least: int, day: list[tuple[float, float]]
) -> None:
    fleet = ReplicaSet(h, q, least, day=tuple(day))
    found, slope = by_the_request(usd, fleet), 3600 * usd
    mean = sum(rate * share for rate, share in day) / sum(share for _, share in day)

    def machines(rate: float) -> float:
        hours = sum(share for _, share in day)
        return h * sum(share * max(least, ceil(rate * level / mean / q - 1e-9)) for level, share in day) / hours

    assert fleet.cost(3.7) == pytest.approx(machines(3.7))
    rates = [10 ** (k / 200 - 3) for k in range(1600)]
    wins = [slope * rate >= machines(rate) * (1 - 1e-9) for rate in rates]
    near = 0 < 1 - h / q / slope < 1e-3  # then many steps are looked at, and not all
    if found.first is None:
        assert not any(slope * rate >= machines(rate) * (1 + (1e-3 if near else 1e-6)) for rate in rates)
        return
    assert slope * found.first * (1 + 1e-6) >= machines(found.first * (1 - 1e-12))
    assert not any(win for rate, win in zip(rates, wins, strict=True) if rate < found.first * (1 - 1e-6))
    if found.always is None:
        assert near
        return
    assert all(win for rate, win in zip(rates, wins, strict=True) if rate > found.always * (1 + 1e-6))


def test_a_free_service_is_never_dearer() -> None:
    assert by_the_request(0.0, ReplicaSet(1.0)) == BreakEven(None, None, "the service costs nothing")


@pytest.mark.parametrize("rate", [0.001, 0.1, 5.0])
@pytest.mark.parametrize("variation", [1.5, 3.0, 6.0])
def test_phases_spread_the_counts_of_long_spans_as_the_gaps_do(rate: float, variation: float) -> None:
    """By simulated phases: variance over mean of the requests in spans of many phases."""
    times = phases_of(rate, variation)
    random, span = Random(7), 200 * BURST_S * times
    counts = []
    for _ in range(400):
        clock, on_s = 0.0, 0.0
        while clock < span:
            phase = min(random.expovariate(1 / BURST_S), span - clock)
            on_s += phase
            clock += phase + random.expovariate(1 / (BURST_S * (times - 1)))
        counts.append(on_s * rate * times)
    mean = sum(counts) / len(counts)
    spread = sum((one - mean) ** 2 for one in counts) / (len(counts) - 1) / mean + 1.0  # by chance within phases: 1
    assert spread == pytest.approx(variation**2, rel=0.35)


def test_arrivals_by_chance_or_steadier_have_no_phases() -> None:
    assert phases_of(1.0, 1.0) == phases_of(1.0, 0.2) == phases_of(0.0, 5.0) == 1.0
