"""Rules of queues on traces of jobs: how long jobs take by each, against a bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chipwise.errors import BadInput, UnknownName
from chipwise.scale.policy_files import queue_policy
from chipwise.scale.questions.spot import content_of, named_policies, trace_files
from chipwise.scale.queue import MOST_GPUS, BeginQueue, Cluster, NodeGroup, QueueJob, QueueSettings
from chipwise.scale.queue_traces import GAVEL_CLUSTER, SIA_CLUSTER, gavel_jobs, read_jobs, read_nodes
from chipwise.scale.simulator.placement import Placement
from chipwise.scale.simulator.queue import Costs, Failure, QueueOutcome, play_queue
from chipwise.scale.simulator.queue_bound import least_mean_s
from chipwise.scale.simulator.queue_compared import QueueAnswer, QueueComparison, queue_timeline
from chipwise.spelling import nearest
from chipwise.units import parse_count

if TYPE_CHECKING:
    from chipwise.catalog.feed import Report

DEFAULT_POLICIES = ("fifo", "backfill", "shortest-estimate", "least-attained", "fair-share")
LOAD = 0.8  # of a cluster that nobody described
MOST_ERROR = 10.0  # of estimates, as the standard deviation of their logarithm
PER_MACHINE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueQuestion:
    policies: tuple[str, ...] = DEFAULT_POLICIES
    trace: Path | None = None
    synthetic: str | None = None
    gpus: int | None = None  # None: as the trace says, else for a load of 80%
    gpus_per_machine: int = PER_MACHINE
    placement: str = "pack"
    restart_s: float = 60.0
    checkpoint_s: float = 0.0
    failure_s: float | None = None  # mean time between failures of a machine; None: none fails
    repair_s: float = 3600.0
    estimate_error: float = 0.0  # standard deviation of the logarithm
    deadline_factor: float = 5.0  # times the duration, for jobs without a deadline
    quotas: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class QueueScene:
    """What is played."""

    jobs: tuple[QueueJob, ...]
    cluster: Cluster
    failures: Iterable[Failure]


def simulate_queue(question: QueueQuestion, report: Report) -> list[QueueAnswer]:
    """One answer per policy, in the order asked for."""
    return list(compare_queue(question, report).answers)


def compare_queue(question: QueueQuestion, report: Report, *, has_timelines: bool = False) -> QueueComparison:
    """The answers; and when which jobs ran, where that is asked for."""
    begins = {name: queue_policy(name) for name in named_policies(question.policies)}
    scene = queue_scene(question)
    _check_quotas(question.quotas, {job.team for job in scene.jobs})
    total = len(scene.jobs)
    least_s = bound_s(scene, _jobs_of(report, total, "bound"))
    deadlines = np.array([np.inf if job.deadline_s is None else job.deadline_s for job in scene.jobs])
    answers, timelines = [], []
    for name, begin in begins.items():
        outcome = play(scene, begin, question, _jobs_of(report, total, name))
        completion_s = outcome.completion_s
        answers.append(
            QueueAnswer(
                policy=name,
                jobs=total,
                mean_jct_s=float(completion_s.mean()),
                p99_jct_s=float(np.quantile(completion_s, 0.99)),
                makespan_s=outcome.makespan_s,
                ratio_to_bound=float(completion_s.mean()) / least_s,
                fairness=outcome.fairness,
                utilisation=outcome.utilisation,
                preemptions=outcome.preemptions,
                late=int((outcome.end_s > deadlines).sum()),
            )
        )
        if has_timelines:
            timelines.append(queue_timeline(name, outcome))
    return QueueComparison(tuple(answers), tuple(timelines))


def _check_quotas(quotas: Mapping[str, float], teams: set[str]) -> None:
    unknown = next((team for team in quotas if team not in teams), None)
    if unknown is None:
        return
    known_teams = sorted(filter(None, teams))
    if not known_teams:
        raise BadInput(f"--quota {unknown}: the jobs name no teams.", remedy="Add a column team, or leave --quota out.")
    raise UnknownName(
        "team of the jobs", unknown, nearest(unknown, known_teams), remedy=f"The jobs name: {', '.join(known_teams[:10])}."
    )


def play(
    scene: QueueScene, begin: BeginQueue, question: QueueQuestion, each_job: Callable[[int], None] | None = None
) -> QueueOutcome:
    return play_queue(
        scene.jobs,
        scene.cluster,
        begin,
        settings=QueueSettings(cluster=scene.cluster, jobs=scene.jobs, quotas=question.quotas),
        placement=Placement(question.placement),
        costs=Costs(restart_s=question.restart_s, checkpoint_s=question.checkpoint_s),
        failures=scene.failures,
        each_job=each_job,
    )


def bound_s(scene: QueueScene, each_job: Callable[[int], None] | None = None) -> float:
    """A mean completion time that no order of the jobs can fall below, on GPUs that never fail and are as fast as the fastest
    for each job."""
    machines = scene.cluster.machines
    arrivals_s = [job.arrival_s for job in scene.jobs]
    works_s = [job.work_s / max(job.speed(machine) for machine in machines) for job in scene.jobs]
    return least_mean_s(arrivals_s, [job.gpus for job in scene.jobs], works_s, scene.cluster.gpus, each_job)


def _jobs_of(report: Report, total: int, name: str) -> Callable[[int], None]:
    def each_job(ended: int) -> None:
        if ended % 500 == 0 or ended == total:
            report(ended, total, name)

    return each_job


def queue_scene(question: QueueQuestion) -> QueueScene:
    if (question.trace is None) == (question.synthetic is None):
        raise BadInput("Give either --trace or --synthetic.")
    jobs, cluster = _synthetic(question) if question.trace is None else _traced(question.trace, question)
    if question.gpus is not None or cluster is None:
        cluster = _cluster(jobs, question)
    first_s = min(job.arrival_s for job in jobs)
    chance = np.random.default_rng([question.seed, 2])
    if not 0.0 <= question.estimate_error <= MOST_ERROR:
        raise BadInput(
            f"--estimate-error {question.estimate_error:g} is not possible.", remedy=f"Allowed: 0 to {MOST_ERROR:g}."
        )
    errors = np.exp(question.estimate_error * chance.standard_normal(len(jobs)))
    known = tuple(
        replace(
            job,
            arrival_s=job.arrival_s - first_s,
            estimate_s=job.estimate_s * float(errors[place]),
            deadline_s=job.arrival_s - first_s + question.deadline_factor * job.work_s
            if job.deadline_s is None
            else job.deadline_s - first_s,
        )
        for place, job in enumerate(jobs)
    )
    return QueueScene(known, cluster, _failures(known, cluster, question))


def _failures(jobs: tuple[QueueJob, ...], cluster: Cluster, question: QueueQuestion) -> Iterable[Failure]:
    from chipwise.scale.simulator.queue_synthetic import HOPELESS, FailingMachines

    if question.failure_s is None:
        return ()
    needed_s = max(sum(job.work_s * job.gpus for job in jobs) / cluster.gpus, max(job.work_s for job in jobs))
    return FailingMachines(
        cluster=cluster,
        between_s=question.failure_s,
        repair_s=question.repair_s,
        hopeless_s=HOPELESS * (max(job.arrival_s for job in jobs) + needed_s),
        seed=question.seed,
    )


def _cluster(jobs: list[QueueJob], question: QueueQuestion) -> Cluster:
    """As many GPUs as asked for, else so many that the jobs need 80% of them while they come in."""
    size = question.gpus_per_machine
    if question.gpus is not None:
        if question.gpus < size:
            return Cluster((NodeGroup("gpu", question.gpus, 1),))
        full_machines, rest = divmod(question.gpus, size)
        return Cluster((NodeGroup("gpu", size, full_machines), *((NodeGroup("gpu", rest, 1),) if rest else ())))
    arrivals = [job.arrival_s for job in jobs]
    span_s = max(max(arrivals) - min(arrivals), max(job.work_s for job in jobs))
    wanted = max(sum(job.work_s * job.gpus for job in jobs) / span_s / LOAD, max(job.gpus for job in jobs))
    if wanted > MOST_GPUS:
        raise BadInput(
            f"These jobs need a cluster of {wanted:,.0f} GPUs, and at most {MOST_GPUS:,} are simulated.",
            remedy="Give fewer jobs at a time, or the size of the cluster with --gpus.",
        )
    return Cluster((NodeGroup("gpu", size, ceil(wanted / size)),))


def _traced(path: Path, question: QueueQuestion) -> tuple[list[QueueJob], Cluster | None]:
    path = path.expanduser()
    nodes: Cluster | None = None
    jobs: list[QueueJob] = []
    for file in trace_files(path, (".csv", ".json")):
        if file.name.startswith("simulation_throughputs"):
            return gavel_jobs(file.name, content_of(file), seed=question.seed), GAVEL_CLUSTER
        if "node_list" in file.name or "node_info" in file.name:
            nodes = read_nodes(file.name, content_of(file))
            continue
        part = read_jobs(file.name, content_of(file))
        begins_s = 0.0 if not jobs else max(job.arrival_s for job in jobs)
        jobs += [replace(job, arrival_s=job.arrival_s + begins_s) for job in part] if path.is_dir() else part
        if "workload" in file.name:
            nodes = SIA_CLUSTER
    if not jobs:
        machines = "" if nodes is None else f" ({sum(group.count for group in nodes.groups):,} with {nodes.gpus:,} GPUs)"
        raise BadInput(
            f"{path} has machines{machines} and no jobs.",
            remedy="Add the table of jobs to the folder: a time, GPUs, a duration.",
        )
    return jobs, nodes


def _synthetic(question: QueueQuestion) -> tuple[list[QueueJob], None]:
    """`jobs=2000,rate=60,median=900,spread=2,teams=4`, each with a default."""
    from chipwise.scale.simulator.queue_synthetic import synthetic_jobs

    settings = {"jobs": 2000.0, "rate": 60.0, "median": 900.0, "spread": 2.0, "teams": 4.0}
    for part in filter(None, (question.synthetic or "").split(",")):
        key, equals, value = part.partition("=")
        if key.strip() not in settings or not equals:
            raise UnknownName(
                "setting of --synthetic", key.strip(), nearest(key.strip(), settings), remedy="Write jobs=2000,rate=60."
            )
        settings[key.strip()] = parse_count(value)
    if not 1 <= settings["jobs"] <= 1_000_000:
        raise BadInput(f"--synthetic jobs={settings['jobs']:g} is not possible.", remedy="Allowed: 1 to 1,000,000.")
    jobs = synthetic_jobs(
        count=int(settings["jobs"]),
        per_hour=settings["rate"],
        median_s=settings["median"],
        spread=settings["spread"],
        teams=int(settings["teams"]),
        seed=question.seed,
    )
    return jobs, None
