"""Queues for GPUs: exact outcomes of small cases, and laws that every policy keeps."""

from __future__ import annotations

from importlib import import_module
from math import factorial

import numpy as np
import pytest

from chipwise.errors import BadInput
from chipwise.scale.queue import BeginQueue, Cluster, NodeGroup, QueueJob
from chipwise.scale.simulator.placement import Floor, Placement
from chipwise.scale.simulator.queue import Costs, Failure, QueueOutcome, play_queue
from chipwise.scale.simulator.queue_bound import bound_ends_s
from chipwise.scale.simulator.queue_synthetic import synthetic_failures, synthetic_jobs

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


def test_no_policy_is_below_the_bound() -> None:
    for seed, size in ((2, 16), (3, 40)):
        jobs, cluster = random_jobs(150, seed), Cluster((NodeGroup("gpu", 8, size // 8),))
        arrivals_s = [one.arrival_s for one in jobs]
        ends = bound_ends_s(arrivals_s, [one.gpus for one in jobs], [one.work_s for one in jobs], size)
        bound = (ends - np.array(arrivals_s)).mean()
        assert bound >= np.mean([one.work_s for one in jobs]) - 1e-6
        for name in POLICIES:
            outcome = play_queue(jobs, cluster, rule(name), placement=Placement.POOLED)
            assert outcome.completion_s.mean() >= 0.97 * bound, name  # the order by work left is not the best in every case


def test_the_bound_shares_the_last_gpus() -> None:
    """The second job works on one of its two GPUs until the first is done."""
    assert bound_ends_s([0, 10], [1, 2], [60, 30], 2).tolist() == pytest.approx([60, 65])


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


def test_failures_by_chance_are_survived_and_the_same_for_a_seed() -> None:
    cluster = Cluster((NodeGroup("gpu", 8, 4),))
    failures = synthetic_failures(cluster, between_s=7200, repair_s=600, until_s=86400, seed=4)
    assert failures == synthetic_failures(cluster, between_s=7200, repair_s=600, until_s=86400, seed=4)
    for name in ("fifo", "shortest_remaining", "fair_share"):
        outcome = play_queue(random_jobs(60, 5), cluster, rule(name), failures=failures, costs=Costs(checkpoint_s=300))
        assert np.isfinite(outcome.end_s).all(), name


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
