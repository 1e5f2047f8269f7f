"""Queues for GPUs: exact outcomes of small cases, and laws that every policy keeps."""

from __future__ import annotations

from importlib import import_module
from itertools import islice
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.errors import BadInput
from chipwise.scale.queue import BeginQueue, Cluster, NodeGroup, QueueJob
from chipwise.scale.simulator.placement import Floor, Placement
from chipwise.scale.simulator.queue import Costs, Failure, QueueOutcome, play_queue
from chipwise.scale.simulator.queue_bound import least_mean_s
from chipwise.scale.simulator.queue_synthetic import FailingMachines, synthetic_jobs
from effort import cases

POLICIES = (
    "fifo",
    "backfill",
    "shortest_estimate",
    "shortest_remaining",
    "least_attained",
    "fair_share",
    "heterogeneity",
    "deadline",
)


def rule(name: str) -> BeginQueue:
    begin: BeginQueue = import_module(f"chipwise.scale.policies.{name}").begin
    return begin


def job(arrival_s: float, gpus: int, work_s: float, team: str = "", deadline_s: float | None = None) -> QueueJob:
    return QueueJob(
        name=f"{arrival_s:g}",
        arrival_s=arrival_s,
        gpus=gpus,
        work_s=work_s,
        estimate_s=work_s,
        team=team,
        deadline_s=deadline_s,
    )


def machines(*gpus: int) -> Cluster:
    return Cluster(tuple(NodeGroup("gpu", size, 1) for size in gpus))


FIRST_LARGE = [job(0, 1, 10), job(1, 2, 10), job(2, 1, 8), job(3, 1, 9)]
LONG_AND_SHORT = [job(0, 2, 10_000), job(100, 2, 50)]


@pytest.mark.parametrize(
    ("name", "jobs", "ends"),
    [
        ("fifo", FIRST_LARGE, [10, 20, 28, 29]),
        ("backfill", FIRST_LARGE, [10, 20, 10, 29]),  # the third is over when the second can start, the fourth is not
        ("shortest_estimate", FIRST_LARGE, [10, 29, 10, 19]),
        ("fifo", LONG_AND_SHORT, [10_000, 10_050]),
        ("shortest_remaining", LONG_AND_SHORT, [10_080, 150]),  # 30 s for the second start of the first
        ("least_attained", LONG_AND_SHORT, [10_080, 1650]),  # when the first has had 3,200 GPU seconds
        ("deadline", [job(0, 2, 100, deadline_s=900), job(10, 2, 50, deadline_s=70)], [180, 60]),
        ("fair_share", [job(0, 2, 100, "a"), job(1, 2, 100, "a"), job(20, 2, 50, "b")], [100, 181, 70]),
    ],
    ids=str,
)
def test_small_queues_end_as_reckoned_by_hand(name: str, jobs: list[QueueJob], ends: list[float]) -> None:
    cluster = machines(4) if name == "fair_share" else machines(2)
    outcome = play_queue(jobs, cluster, rule(name), costs=Costs(restart_s=30))
    assert outcome.end_s.tolist() == pytest.approx(ends)


def random_jobs(count: int, seed: int) -> list[QueueJob]:
    return synthetic_jobs(count=count, per_hour=120, median_s=600, spread=1.5, seed=seed)


@pytest.mark.parametrize("placement", list(Placement), ids=str)
def test_no_policy_gives_out_more_than_there_is_or_loses_work(placement: Placement) -> None:
    cluster = Cluster((NodeGroup("gpu", 8, 2), NodeGroup("gpu", 4, 2)))
    jobs = random_jobs(60, 1)
    for name in POLICIES:
        outcome = play_queue(jobs, cluster, rule(name), placement=placement, costs=Costs(restart_s=20))
        _is_possible(jobs, outcome, name)
        again = play_queue(jobs, cluster, rule(name), placement=placement, costs=Costs(restart_s=20))
        assert again.stretches == outcome.stretches, name


def _is_possible(jobs: list[QueueJob], outcome: QueueOutcome, name: str) -> None:
    changes = [(begin, 1, jobs[number].gpus) for number, begin, _ in outcome.stretches]
    changes += [(end, 0, -jobs[number].gpus) for number, _, end in outcome.stretches]
    assert np.cumsum([gpus for _, _, gpus in sorted(changes)]).max() <= outcome.cluster_gpus, name
    for number, queued in enumerate(jobs):
        held = sum(end - begin for place, begin, end in outcome.stretches if place == number)
        assert held >= queued.work_s - 1e-3, name
        assert outcome.end_s[number] >= queued.arrival_s + queued.work_s - 1e-6, name


@settings(max_examples=cases(12))
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 60), st.integers(1, 4), st.integers(1, 60)).map(lambda cells: job(*cells)),
        min_size=1,
        max_size=12,
    ),
    size=st.integers(4, 8),
)
def test_no_policy_is_ever_below_the_bound(jobs: list[QueueJob], size: int) -> None:
    bound = _bound(jobs, size)
    assert bound >= np.mean([one.work_s for one in jobs]) - 1e-9
    for name in POLICIES:
        outcome = play_queue(jobs, machines(size), rule(name), placement=Placement.POOLED)
        assert outcome.completion_s.mean() >= bound - 1e-6, name


def _bound(jobs: list[QueueJob], size: int) -> float:
    return least_mean_s([one.arrival_s for one in jobs], [one.gpus for one in jobs], [one.work_s for one in jobs], size)


def test_the_bound_holds_where_the_least_work_first_is_not_the_best() -> None:
    """A long job that two GPUs do beside short ones, and that waits for ever behind them where the shortest goes first."""
    short = [job(float(at), 1, 1000) for at in range(2000, 12_000, 1000) for _ in range(2)]
    jobs = [job(0, 1, 2000), job(0, 1, 1000), job(0, 1, 1000), *short]
    fifo = play_queue(jobs, machines(2), rule("fifo")).completion_s.mean()
    assert 0.8 * fifo < _bound(jobs, 2) <= fifo + 1e-6


def test_the_bound_is_reached_where_nothing_is_lost() -> None:
    assert _bound([job(0, 2, 10), job(0, 2, 30), job(5, 2, 1)], 2) == pytest.approx((11 + 41 + 1) / 3)
    assert _bound([job(0, 1, 10), job(0, 1, 30)], 4) == pytest.approx(20), "nobody waits"


def test_a_line_of_single_gpus_waits_as_the_erlang_formula_says() -> None:
    servers, load, count = 4, 0.7, 8000
    chance = np.random.default_rng(3)
    arrivals = np.cumsum(chance.exponential(1.0 / (servers * load), count))
    jobs = [job(float(at), 1, float(work)) for at, work in zip(arrivals, chance.exponential(1.0, count), strict=True)]
    outcome = play_queue(jobs, machines(servers), rule("fifo"))
    waited = float((outcome.completion_s - outcome.work_s).mean())
    offered = servers * load
    last = offered**servers / factorial(servers) / (1 - load)
    waits = last / (sum(offered**place / factorial(place) for place in range(servers)) + last)
    assert waited == pytest.approx(waits / (servers * (1 - load)), rel=0.15)


def test_a_failure_costs_the_work_since_the_last_checkpoint() -> None:
    outcome = play_queue(
        [job(0, 1, 100)],
        machines(1),
        rule("fifo"),
        costs=Costs(restart_s=5, checkpoint_s=20),
        failures=[Failure(50, 0, 60)],
    )
    assert outcome.end_s.tolist() == pytest.approx([60 + 5 + 60])
    assert outcome.failures == 1


def failing(cluster: Cluster, **times: float) -> FailingMachines:
    return FailingMachines(cluster=cluster, **({"repair_s": 600.0, "hopeless_s": 1e9, "seed": 4} | times))  # type: ignore[arg-type]


def test_failures_by_chance_are_survived_and_the_same_for_a_seed() -> None:
    cluster = Cluster((NodeGroup("gpu", 8, 4),))
    failures = failing(cluster, between_s=7200.0)
    assert list(islice(failures, 50)) == list(islice(failures, 50))
    for name in ("fifo", "shortest_remaining", "fair_share"):
        outcome = play_queue(random_jobs(60, 5), cluster, rule(name), failures=failures, costs=Costs(checkpoint_s=300))
        assert np.isfinite(outcome.end_s).all(), name


def test_a_machine_fails_once_in_the_stated_time_that_it_is_up_however_much_of_it_is_used() -> None:
    """Against a machine of a few lines that works until it fails: 1,000 hours of work at a failure in five hours."""
    chance, counts = np.random.default_rng(8), []
    for _ in range(60):
        left_h, count = 1000.0, 0
        while (up_h := chance.exponential(5.0)) < left_h:
            left_h, count = left_h - up_h, count + 1
        counts.append(count)
    for gpus in (1, 4, 8):
        cluster = Cluster((NodeGroup("gpu", 8, 1),))
        failed = [
            play_queue(
                [job(0, gpus, 3_600_000)],
                cluster,
                rule("fifo"),
                failures=failing(cluster, between_s=18_000.0, repair_s=3600.0, seed=seed),
            )
            for seed in range(5)
        ]
        mean = np.mean([outcome.failures for outcome in failed])
        assert mean == pytest.approx(np.mean(counts), abs=4 * np.std(counts) / np.sqrt(5)), gpus
        for outcome in failed:
            assert outcome.end_s[0] == pytest.approx(3_600_000 + 3600 * outcome.failures), gpus


def test_machines_that_fail_before_any_work_is_saved_are_an_error_and_no_endless_play() -> None:
    cluster = Cluster((NodeGroup("gpu", 8, 1),))
    with pytest.raises(BadInput, match="would not finish"):
        play_queue(
            [job(0, 1, 3600)],
            cluster,
            rule("fifo"),
            failures=failing(cluster, between_s=60.0, hopeless_s=360_000.0),
            costs=Costs(checkpoint_s=3600),
        )


def test_placements_take_the_machine_that_they_say() -> None:
    """Of machines with 3 and 8 free GPUs, two GPUs."""
    for placement, node in ((Placement.PACK, 0), (Placement.SPREAD, 1), (Placement.LEAST_FRAGMENTATION, 0)):
        floor = Floor(Cluster((NodeGroup("gpu", 8, 2),)), placement, {1: 0.5, 8: 0.5})
        floor.take(((0, 5),))
        assert floor.place(job(0, 2, 1)) == ((node, 2),), placement


def test_a_gang_over_several_machines_takes_whole_ones() -> None:
    floor = Floor(Cluster((NodeGroup("gpu", 8, 3),)), Placement.PACK, {1: 1.0})
    floor.take(((0, 1),))
    assert floor.place(job(0, 24, 1)) is None
    assert floor.place(job(0, 20, 1)) == ((1, 8), (2, 8), (0, 4))


def test_a_job_larger_than_the_cluster_is_refused() -> None:
    with pytest.raises(BadInput, match="needs 9 GPUs at once"):
        play_queue([job(0, 9, 1)], machines(8), rule("fifo"))


def test_a_gpu_goes_to_the_job_that_loses_least_on_it() -> None:
    fast, old = NodeGroup("fast", 1, 1), NodeGroup("old", 1, 1)
    gains = QueueJob(name="gains", arrival_s=0, gpus=1, work_s=100, estimate_s=100, speeds={"fast": 1.0, "old": 0.1})
    alike = QueueJob(name="alike", arrival_s=0, gpus=1, work_s=100, estimate_s=100, speeds={"fast": 1.0, "old": 0.8})
    outcome = play_queue([alike, gains], Cluster((old, fast)), rule("heterogeneity"))
    assert outcome.end_s.max() <= 200.0 + 1e-6
