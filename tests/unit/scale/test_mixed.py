"""Services on machines of several types, on-demand and spot: what is bought, what is lost, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.scale.fleet import FleetSetup, FleetState, ReplicaMachine, cheapest_cover, setup_of
from chipwise.scale.load import RequestLoad, load_of
from chipwise.scale.questions.mixed import fleet_policy
from chipwise.scale.questions.scaling import scaling_policy
from chipwise.scale.serving import ScaledService
from chipwise.scale.simulator.mixed import MixedOutcome, SpotZones, play_mixed
from chipwise.scale.simulator.pooled import PooledQueue
from chipwise.scale.simulator.scaling import play
from chipwise.scale.traces import Series

SMALL = ReplicaMachine(name="small", per_s=1.0, on_demand_usd=1.0, spot_usd=0.3)
BIG = ReplicaMachine(name="big", per_s=4.0, on_demand_usd=3.0, spot_usd=1.6)
SERVICE = ScaledService(replica_per_s=1.0)
HOUR_TICKS = 60


def a_load(per_s: float = 8.0, hours: float = 1.0) -> RequestLoad:
    return load_of("steady", np.arange(0.0, hours * 3600.0, 1.0 / per_s))


def zone(name: str, flags: list[int]) -> Series:
    return Series(name, 1.0 / HOUR_TICKS, np.array(flags, np.bool_))


def played(purchase: str, zones: list[Series], machines: tuple[ReplicaMachine, ...] = (SMALL,)) -> MixedOutcome:
    setup = setup_of(machines, [series.name for series in zones])
    names = SpotZones({series.name: series for series in zones})
    return play_mixed(a_load(), SERVICE, scaling_policy("hpa:60"), setup, fleet_policy(purchase), names)


def test_on_one_machine_type_without_spot_it_is_the_plain_simulation() -> None:
    plain = play(a_load(), SERVICE, scaling_policy("hpa:60"), PooledQueue)
    mixed = played("on-demand-fleet", [])
    assert mixed.scaling.replicas.tolist() == plain.replicas.tolist()
    assert mixed.usd == pytest.approx(plain.replica_hours * SMALL.on_demand_usd)
    assert mixed.scaling.punctual == plain.punctual


@pytest.mark.parametrize(("capacity", "counts"), [(0.0, [0, 0]), (1.0, [1, 0]), (3.0, [3, 0]), (4.0, [0, 1]), (9.5, [2, 2])])
def test_the_last_machine_is_the_cheapest_that_covers_the_rest(capacity: float, counts: list[int]) -> None:
    setup = setup_of((SMALL, BIG), [])
    cover = cheapest_cover(setup, capacity)
    cost = sum(count * pool.usd for count, pool in zip(cover, setup.pools, strict=True))
    assert cost == sum(count * pool.usd for count, pool in zip(counts, setup.pools, strict=True))


def test_spot_that_is_always_there_is_paid_at_its_price_and_nothing_else() -> None:
    outcome = played("spot-spread", [zone("a", [1] * HOUR_TICKS), zone("b", [1] * HOUR_TICKS)])
    assert outcome.usd == pytest.approx(outcome.scaling.replica_hours * 0.3)
    assert (outcome.lost, outcome.scaling.within_goal) == (0, 1.0)


def test_where_no_zone_has_any_on_demand_machines_serve() -> None:
    for purchase in ("spot-hedge", "spot-spread"):
        outcome = played(purchase, [zone("a", [0] * HOUR_TICKS), zone("b", [0] * HOUR_TICKS)])
        assert outcome.scaling.within_goal == 1.0
        assert outcome.usd == pytest.approx(outcome.scaling.replica_hours * 1.0)
    assert played("spot-fleet", [zone("a", [0] * HOUR_TICKS)]).scaling.within_goal < 0.1


def test_a_lost_zone_takes_its_share_and_others_take_over() -> None:
    lossy, steady = zone("a", [1] * 30 + [0] * 30), zone("b", [1] * HOUR_TICKS)
    outcome = played("spot-spread", [lossy, steady])
    assert outcome.lost == pytest.approx(outcome.scaling.replicas[100] / 2.0, abs=1)
    assert outcome.usd == pytest.approx(outcome.scaling.replica_hours * 0.3, rel=0.02)


def state(setup: FleetSetup, wanted: float, ready: list[int], refused: frozenset[str] = frozenset()) -> FleetState:
    return FleetState(now_s=0.0, wanted=wanted, ready=ready, starting=[0] * len(setup.pools), refused=refused)


def test_new_spot_machines_avoid_the_zone_that_refused() -> None:
    setup = setup_of((SMALL,), ["a", "b", "c"])
    for purchase in ("spot-hedge:0", "spot-spread"):
        buy = fleet_policy(purchase)(setup)
        assert list(buy(state(setup, 6.0, [0, 0, 0, 0])))[1:] == [2, 2, 2]
        assert list(buy(state(setup, 6.0, [0, 0, 2, 2], frozenset({"a"}))))[1:] == [0, 3, 3]


def test_spot_hedge_covers_with_on_demand_what_no_spot_machine_serves_yet() -> None:
    setup = setup_of((SMALL,), ["a", "b"])
    buy = fleet_policy("spot-hedge:50")(setup)
    assert list(buy(state(setup, 4.0, [0, 0, 0]))) == [4, 3, 3]
    assert list(buy(state(setup, 4.0, [0, 2, 2]))) == [2, 3, 3]
    assert list(buy(state(setup, 4.0, [0, 3, 3]))) == [0, 3, 3]
