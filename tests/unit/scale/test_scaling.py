"""Queues before replicas against their formulas and against each other, and what replicas cost."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest

from chipwise.errors import BadInput
from chipwise.scale.load import Floats, RequestLoad, load_of
from chipwise.scale.serving import BeginScaling, ScaledService, ServeSignals
from chipwise.scale.simulator.clairvoyant import bare_work_hours, clairvoyant
from chipwise.scale.simulator.pooled import PooledQueue
from chipwise.scale.simulator.scaling import ReplicaFleet, play
from chipwise.scale.simulator.servers import ServerQueue
from chipwise.scale.simulator.synthetic_load import SyntheticLoad, synthetic_load
from effort import cases


def constant(replicas: float) -> BeginScaling:
    return lambda service: lambda signals: replicas


def changing(seed: int, most: int) -> BeginScaling:
    chance = np.random.default_rng(seed)
    return lambda service: lambda signals: float(chance.integers(1, most + 1))


def poisson(per_s: float, count: int, *, work: str, seed: int = 1) -> RequestLoad:
    chance = np.random.default_rng(seed)
    times = np.cumsum(chance.exponential(1.0 / per_s, count))
    return load_of(work, times, work=chance.exponential(1.0, count) if work == "exponential" else None)


def fixed(replicas: int, **settings: float) -> ScaledService:
    return ScaledService(replica_per_s=1.0, least_replicas=replicas, most_replicas=replicas, **settings)


def erlang_c(servers: int, offered: float) -> float:
    """The chance that a request waits."""
    last = offered**servers / factorial(servers) * servers / (servers - offered)
    return last / (sum(offered**k / factorial(k) for k in range(servers)) + last)


def test_waits_at_one_replica_are_those_of_m_d_1_and_m_m_1() -> None:
    busy = 0.7
    for work, expected in (("even", busy / (2.0 * (1.0 - busy))), ("exponential", busy / (1.0 - busy))):
        load = poisson(busy, 200_000, work=work)
        waits = play(load, fixed(1, tick_s=3600.0), constant(1), PooledQueue).waits_s
        assert waits.mean() == pytest.approx(expected, rel=0.05), work


def test_waits_at_several_servers_are_those_of_m_m_k() -> None:
    servers, offered = 4, 2.8
    load = poisson(offered, 60_000, work="exponential")
    waits = play(load, fixed(servers, tick_s=600.0), constant(servers), ServerQueue).waits_s
    chance = erlang_c(servers, offered)
    assert (waits > 1e-9).mean() == pytest.approx(chance, rel=0.05)
    assert waits.mean() == pytest.approx(chance / (servers - offered), rel=0.1)


def test_one_server_waits_as_one_pooled_replica_does() -> None:
    load = poisson(0.8, 3000, work="exponential")
    pooled, servers = (play(load, fixed(1), constant(1), queue) for queue in (PooledQueue, ServerQueue))
    np.testing.assert_allclose(servers.waits_s, pooled.waits_s, atol=1e-6)
    assert servers.punctual == pooled.punctual


def noting(service: ScaledService, seed: int, speeds: list[tuple[float, int]]) -> BeginScaling:
    """Replicas by chance; `speeds` gets from when on how many are ready."""
    rule, fleet = changing(seed, 6)(service), ReplicaFleet(service, 0)

    def decide(signals: ServeSignals) -> float:
        if not speeds:
            fleet.ready = signals.replicas
            speeds.append((0.0, signals.ready))
        for when, count in fleet.pass_to(signals.now_s):
            speeds.append((when, speeds[-1][1] + count))
        assert fleet.ready == signals.ready
        wanted = rule(signals)
        fleet.want(int(wanted))
        speeds.append((signals.now_s, fleet.ready))
        return wanted

    return lambda service: decide


def test_pooled_waits_are_those_of_a_plain_loop_over_events() -> None:
    for seed in range(cases(4)):
        load = poisson(3.0, 400, work="exponential", seed=seed)
        service = ScaledService(replica_per_s=1.0, cold_start_s=40.0, goal_wait_s=5.0)
        speeds: list[tuple[float, int]] = []
        outcome = play(load, service, noting(service, seed, speeds), PooledQueue)
        expected = by_events(load, speeds)
        began = load.times_s + expected < load.duration_s  # after the last tick there is nothing to compare
        assert began.sum() > 200
        np.testing.assert_allclose(outcome.waits_s[began], expected[began], atol=1e-6)


def by_events(load: RequestLoad, speeds: list[tuple[float, int]]) -> Floats:
    """One request after another, each worked off piece by piece."""
    free, waits = 0.0, []
    for arrival, work in zip(load.times_s, load.work, strict=True):
        begin = max(arrival, free)
        at, left = begin, work
        for place, (_, ready) in enumerate(speeds):
            until = speeds[place + 1][0] if place + 1 < len(speeds) else np.inf
            if until <= at:
                continue
            done = ready * (until - at)
            if ready and done >= left:
                at += left / ready
                break
            at, left = until, left - done
        waits.append(begin - arrival)
        free = at
    return np.array(waits)


def test_replicas_are_paid_from_their_order_and_the_newest_end_first() -> None:
    fleet = ReplicaFleet(ScaledService(replica_per_s=1.0, cold_start_s=20.0), 2)
    assert fleet.want(5) == 0
    assert fleet.pass_to(10.0) == []
    assert fleet.want(6) == 0
    assert fleet.pass_to(15.0) == []
    assert (fleet.want(4), fleet.ready, list(fleet.starts)) == (0, 2, [(20.0, 2)])
    assert fleet.pass_to(25.0) == [(20.0, 2)]
    assert (fleet.want(1), fleet.ready) == (3, 1)
    assert fleet.paid_s == 5 * 10 + 6 * 5 + 4 * 10


def test_the_clairvoyant_plan_keeps_the_goal_and_costs_more_than_bare_work() -> None:
    load = synthetic_load(SyntheticLoad(hours=6.0, rate=20.0, bursts=24.0), 3)
    service = ScaledService(replica_per_s=load.mean_per_s / 10.0)
    planned = play(load, service, clairvoyant(load), PooledQueue)
    assert planned.within_goal > 0.999
    assert bare_work_hours(load, service) < planned.replica_hours < 1.6 * bare_work_hours(load, service)


def test_the_same_seed_gives_the_same_load_and_another_does_not() -> None:
    shape = SyntheticLoad(hours=1.0)
    first, again, other = (synthetic_load(shape, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.counts, again.counts)
    assert first.requests != other.requests
    assert first.mean_per_s == pytest.approx(25.0, rel=0.25)  # the hour after midnight


def test_rates_have_no_single_requests_to_put_on_servers() -> None:
    load = synthetic_load(SyntheticLoad(hours=0.1), 1)
    with pytest.raises(BadInput, match="no single requests"):
        ServerQueue(load, ScaledService(replica_per_s=1.0), 1)


@pytest.mark.parametrize(
    "settings", [{"replica_per_s": 0.0}, {"cold_start_s": -1.0}, {"goal_share": 1.0}, {"tick_s": float("nan")}], ids=str
)
def test_a_service_that_cannot_be_is_refused(settings: dict[str, float]) -> None:
    with pytest.raises(BadInput):
        ScaledService(**{"replica_per_s": 1.0, **settings})  # type: ignore[arg-type]
