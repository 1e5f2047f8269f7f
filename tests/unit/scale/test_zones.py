"""Spot in several zones: what is billed, and that no rule is late."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.errors import BadInput
from chipwise.scale.policies.patient_zones import begin
from chipwise.scale.simulator.zones import play_zones
from chipwise.scale.zones import Zone, ZonesJob, ZonesState


def zone(name: str, flags: str, usd: float) -> Zone:
    """A letter per tick: x where spot is there."""
    available = np.array([flag == "x" for flag in flags])
    return Zone(name=name, region=name, available=available, spot_usd=np.full(len(flags), usd), on_demand_usd=10.0)


def job(work_h: float, deadline_h: float) -> ZonesJob:
    return ZonesJob(
        work_h=work_h,
        deadline_h=deadline_h,
        restart_h=1.0,
        tick_h=1.0,
        checkpoint_gb=10.0,
        egress_usd={("a", "b"): 0.05, ("b", "a"): 0.05},
    )


def test_the_cheapest_zone_costs_its_price_and_the_first_start_nothing() -> None:
    outcome = play_zones([zone("a", "x" * 9, 1.0), zone("b", "x" * 9, 2.0)], job(4, 9), begin)
    assert outcome.usd == pytest.approx(4.0)
    assert (outcome.starts, outcome.looks_usd, outcome.is_late) == (1, 0.0, False)


def test_a_lost_zone_is_waited_for_while_there_is_time() -> None:
    outcome = play_zones([zone("a", "xx..xxxxxxxx", 1.0), zone("b", "x" * 12, 2.0)], job(4, 12), begin)
    looks = 2 / 60  # at both ticks without a machine
    assert outcome.usd == pytest.approx(2 + looks + 3)  # two ticks of work, one of restart, two of work
    assert outcome.starts == 2


def test_with_little_time_left_the_job_moves_and_pays_for_its_checkpoint() -> None:
    outcome = play_zones([zone("a", "x" * 10 + "." * 20, 1.0), zone("b", "x" * 30, 2.0)], job(20, 30), begin)
    assert outcome.moves_usd == pytest.approx(0.5)
    assert outcome.usd == pytest.approx(10 + outcome.looks_usd + 0.5 + 11 * 2.0)  # a restart, and ten ticks of work
    assert (outcome.is_late, outcome.on_demand_h) == (False, 0.0)


def test_a_dear_zone_is_left_when_a_cheap_one_is_back() -> None:
    outcome = play_zones([zone("a", "." + "x" * 39, 1.0), zone("b", "x" * 40, 50.0)], job(30, 40), begin)
    assert outcome.on_demand_h == 0.0
    assert outcome.usd < 2 * 50.0 + 40.0


def test_no_rule_is_late() -> None:
    chance = np.random.default_rng(0)

    def hopeful(job: ZonesJob) -> object:
        return lambda state: tuple(state.spot_usd)  # whatever comes

    def waiting(job: ZonesJob) -> object:
        return lambda state: (state.zone,) if state.zone else ()

    for _ in range(40):
        ticks = int(chance.integers(8, 30))
        work_h = float(chance.uniform(1.0, ticks - 2.5))
        zones = [zone(name, "".join(chance.choice(["x", "."], ticks)), float(chance.uniform(1, 5))) for name in ("a", "b")]
        for rule in (begin, hopeful, waiting):
            assert not play_zones(zones, job(work_h, float(ticks)), rule).is_late  # type: ignore[arg-type]


def test_only_time_and_prices_are_known_before_a_look() -> None:
    assert not {"available", "zones"} & set(ZonesState.__slots__)
    with pytest.raises(BadInput, match="do not fit into 4 hours"):
        job(4, 4)
