"""A queue of jobs on a cluster, event by event: arrivals, ends, changes of rank, failures and repairs.

At each moment all its events happen first (ends, repairs, failures, changes of rank, arrivals; among equals by number), then
the rule gives out GPUs. A job that is started again, after a preemption or a failure, pays `restart_s` before it works; a
preempted one keeps its work, one whose machine failed goes back to its last checkpoint. Everything is deterministic: failures
come as a list, and the same input gives the same output.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import floor, inf

import numpy as np

from chipwise.errors import BadInput
from chipwise.scale.queue import (
    LONGEST_S,
    BeginQueue,
    Cluster,
    Overtaking,
    QueuedJob,
    QueueJob,
    QueueRule,
    QueueSettings,
    QueueState,
    Seconds,
)
from chipwise.scale.simulator.placement import Allocation, Floor, Placement
from chipwise.scale.simulator.running import RunningJobs, Stay

_END, _REPAIR, _FAILURE, _CHANGE = range(4)  # the order of events at one moment; arrivals are last
_BACKFILL_DEPTH = 100  # jobs of a line that are looked at, as schedulers limit it
_SHORTEST_S = 1e-6  # that a job which is not over still takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What a stop costs: the time of each further start, and how often a job saves its work."""

    restart_s: float = 0.0
    checkpoint_s: float = 0.0  # between checkpoints; 0: it saves all the time

    def __post_init__(self) -> None:
        if not (0.0 <= self.restart_s <= LONGEST_S and 0.0 <= self.checkpoint_s <= LONGEST_S):
            raise BadInput(
                "The time of a restart and between checkpoints must not be below zero.",
                remedy=f"Allowed: up to {LONGEST_S:g} seconds.",
            )


@dataclass(frozen=True, slots=True)
class Failure:
    at_s: float
    node: int
    repaired_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOutcome:
    """One entry per job, in the order of the input."""

    arrival_s: np.typing.NDArray[np.float64]
    end_s: np.typing.NDArray[np.float64]
    work_s: np.typing.NDArray[np.float64]
    gpus: np.typing.NDArray[np.int64]
    preemptions: int
    failures: int  # of jobs
    cluster_gpus: int
    stretches: tuple[tuple[int, float, float], ...]  # job, begin and end of each time that it had GPUs

    @property
    def completion_s(self) -> np.typing.NDArray[np.float64]:
        return self.end_s - self.arrival_s

    @property
    def makespan_s(self) -> float:
        return float(self.end_s.max() - self.arrival_s.min())

    @property
    def utilisation(self) -> float:
        """Of all GPUs over all the time, the share that did work that counts."""
        return float((self.work_s * self.gpus).sum() / (self.cluster_gpus * self.makespan_s))

    @property
    def fairness(self) -> float:
        """Jain's index of how much of its time each job worked: 1 where all are slowed alike."""
        speeds = self.work_s / np.maximum(self.completion_s, _SHORTEST_S)
        return float(speeds.sum() ** 2 / (len(speeds) * (speeds**2).sum()))


def play_queue(
    jobs: Sequence[QueueJob],
    cluster: Cluster,
    begin: BeginQueue,
    *,
    settings: QueueSettings | None = None,
    placement: Placement = Placement.PACK,
    costs: Costs | None = None,
    failures: Sequence[Failure] = (),
    each_job: Callable[[int], None] | None = None,
) -> QueueOutcome:
    if not jobs:
        raise BadInput("There are no jobs.")
    rule = begin(settings or QueueSettings(cluster=cluster, jobs=tuple(jobs)))
    return _Queue(jobs, cluster, rule, placement, costs or Costs(), failures, each_job).run()


class _Queue:
    def __init__(
        self,
        jobs: Sequence[QueueJob],
        cluster: Cluster,
        rule: QueueRule,
        placement: Placement,
        costs: Costs,
        failures: Sequence[Failure],
        each_job: Callable[[int], None] | None,
    ) -> None:
        self.queued = [QueuedJob(job=job, number=number, left_s=job.work_s) for number, job in enumerate(jobs)]
        sizes = dict.fromkeys(sorted({job.gpus for job in jobs}), 0.0)
        for job in jobs:
            sizes[job.gpus] += 1.0 / len(jobs)
        self.floor = Floor(cluster, placement, sizes)
        for job in jobs:
            if not self.floor.can_ever(job):
                raise BadInput(
                    f"Job {job.name} needs {job.gpus} GPUs at once, and the cluster has no such place.",
                    remedy="Add --gpus, with as many as the largest job needs.",
                )
        self.gpus, self.rule, self.costs, self.each_job = cluster.gpus, rule, costs, each_job
        self.teams = tuple(dict.fromkeys(job.team for job in jobs))
        self.used = dict.fromkeys(self.teams, 0)
        self.running = RunningJobs(
            self.floor,
            {team: place for place, team in enumerate(self.teams)},
            has_columns=rule.preempts,
            has_ends=rule.overtaking is Overtaking.EASY,
        )
        self.lines: dict[Hashable, list[tuple[float, int]]] = {}
        self.events: list[tuple[float, int, int, int]] = []  # moment, kind, number, version
        self.versions = [0] * len(jobs)
        self.estimates = [job.estimate_s for job in jobs]  # of what is left
        self.fresh: set[Hashable] = set()  # lines with a first job that was not yet tried everywhere
        self.touched: list[int] = []  # machines on which GPUs became free, or ranks another, since the last turn
        self.lent: dict[int, list[tuple[float, int]]] = {}  # on some of these: ranks of jobs, and their GPUs there
        self.ranks: Seconds | None = None  # of all running jobs, while they hold
        self.failures = list(failures)
        for number, failure in enumerate(self.failures):
            heappush(self.events, (failure.at_s, _FAILURE, number, 0))
        self.ended = self.preemptions = self.failed = 0
        self.stretches: list[tuple[int, float, float]] = []

    def run(self) -> QueueOutcome:
        arrivals = sorted(self.queued, key=lambda one: (one.job.arrival_s, one.number))
        place, count = 0, len(arrivals)
        while self.ended < count:
            arrival_s = arrivals[place].job.arrival_s if place < count else inf
            now = min(arrival_s, self.events[0][0]) if self.events else arrival_s
            if now == inf:
                raise AssertionError("jobs wait, and nothing will happen")
            while self.events and self.events[0][0] <= now:
                self._happen(*heappop(self.events))
            while place < count and arrivals[place].job.arrival_s <= now:
                self._wait(arrivals[place])
                place += 1
            self._give_out(now)
        jobs = [one.job for one in self.queued]
        return QueueOutcome(
            arrival_s=np.array([job.arrival_s for job in jobs]),
            end_s=np.array([one.ended_s for one in self.queued]),
            work_s=np.array([job.work_s for job in jobs]),
            gpus=np.array([job.gpus for job in jobs]),
            preemptions=self.preemptions,
            failures=self.failed,
            cluster_gpus=self.gpus,
            stretches=tuple(self.stretches),
        )

    # what happens

    def _happen(self, now: float, kind: int, number: int, version: int) -> None:
        if kind == _FAILURE:
            self._fail(now, self.failures[number])
        elif kind == _REPAIR:
            self.floor.repair(number)
            self.touched.append(number)
        elif version == self.versions[number]:
            if kind == _END:
                self._end(now, self.queued[number])
            else:
                self._change(now, self.queued[number])

    def _end(self, now: float, queued: QueuedJob) -> None:
        self._leave(now, queued)
        queued.left_s, queued.ended_s = 0.0, now
        self.ended += 1
        if self.each_job is not None:
            self.each_job(self.ended)

    def _fail(self, now: float, failure: Failure) -> None:
        if self.floor.is_down(failure.node):
            return
        for number in self.running.on_node(failure.node):
            self._stop(now, self.queued[number], is_saved=False)
            self.failed += 1
        self.floor.fail(failure.node)
        heappush(self.events, (failure.repaired_s, _REPAIR, failure.node, 0))

    def _change(self, now: float, queued: QueuedJob) -> None:
        """Its rank is another from now on; what it attained is booked when it leaves."""
        attained_s = queued.attained_s
        queued.attained_s += queued.job.gpus * (now - self.running.stays[queued.number].since_s)
        self.running.rerank(queued.number, self.rule.rank(queued))
        queued.attained_s = attained_s
        self.touched += [node for node, _ in self.running.stays[queued.number].allocation]

    def _wait(self, queued: QueuedJob) -> None:
        line, entry = self.rule.line(queued.job), (self.rule.rank(queued), queued.number)
        waiting = self.lines.setdefault(line, [])
        insort(waiting, entry)
        if waiting[0] is entry:
            self.fresh.add(line)

    def _stop(self, now: float, queued: QueuedJob, *, is_saved: bool) -> None:
        """Back into its line. A preempted job keeps its work, one that failed what its last checkpoint has."""
        stay = self.running.stays[queued.number]
        worked_s = max(now - stay.works_from_s, 0.0)
        if not is_saved and self.costs.checkpoint_s > 0.0:
            worked_s = floor(worked_s / self.costs.checkpoint_s) * self.costs.checkpoint_s
        self._leave(now, queued)
        queued.left_s = max(queued.left_s - worked_s * stay.speed, _SHORTEST_S)
        self.estimates[queued.number] = queued.estimate_left_s
        self._wait(queued)

    def _leave(self, now: float, queued: QueuedJob) -> None:
        stay = self.running.remove(queued.number)
        self.stretches.append((queued.number, stay.since_s, now))
        queued.attained_s += stay.gpus * (now - stay.since_s)
        self.floor.release(stay.allocation)
        self.touched += [node for node, _ in stay.allocation]
        self.used[queued.job.team] -= stay.gpus
        self.versions[queued.number] += 1
        self._forget()

    # who gets GPUs

    def _give_out(self, now: float) -> None:
        """By turns: after each start all that may still start come anew, since the turns may be others."""
        overtaken: set[Hashable] = set()  # lines whose first job does not fit
        state = QueueState(now_s=now, gpus=self.gpus, free=self.floor.free_of, used=self.used, teams=self.teams)
        starts = True
        while starts and (self.rule.preempts or self.floor.free):
            starts = False
            for line in self._lines_in_turn(overtaken, state):
                rank, number = self.lines[line][0]
                queued = self.queued[number]
                allocation = self._place(queued)
                if allocation is None and self.rule.preempts:
                    allocation = self._taken(now, line, (rank, queued), state)
                if allocation is not None:
                    self._start(now, line, (rank, number), allocation)
                    starts = True
                    break
                if self.rule.overtaking is not Overtaking.ANY:
                    if self.rule.overtaking is Overtaking.EASY:
                        self._backfill(now, queued.job.gpus)
                    break
                overtaken.add(line)
        self.touched.clear()
        self._forget()

    def _forget(self) -> None:
        """Ranks of running jobs, which are others from now on."""
        self.lent.clear()
        self.ranks = None

    def _lines_in_turn(self, overtaken: set[Hashable], state: QueueState) -> list[Hashable]:
        turn, queued = self.rule.turn, self.queued
        heads = [(waiting[0], line) for line, waiting in self.lines.items() if line not in overtaken]
        if turn is None:
            heads.sort(key=lambda head: head[0])
        else:
            heads.sort(key=lambda head: (turn(queued[head[0][1]], state), head[0]))
        return [line for _, line in heads]

    def _backfill(self, now: float, gpus: int) -> None:
        """Those that start behind a first job that needs so many GPUs: over before it can start, or not in its way."""
        begins_s, spare = self.running.reservation(gpus, self.floor.free)
        overtaken: set[Hashable] = set()
        while self.floor.free:
            candidates = [
                (entry, line)
                for line, waiting in self.lines.items()
                if line not in overtaken and (entry := self._first_short(waiting, begins_s - now, spare)) is not None
            ]
            if not candidates:
                return
            entry, line = min(candidates)
            queued = self.queued[entry[1]]
            allocation = self._place(queued)
            if allocation is None:
                overtaken.add(line)
                continue
            if now + self.estimates[queued.number] > begins_s:
                spare -= queued.job.gpus
            self._start(now, line, entry, allocation)

    def _first_short(self, waiting: list[tuple[float, int]], time_s: float, spare: int) -> tuple[float, int] | None:
        gpus = self.queued[waiting[0][1]].job.gpus  # the same in all of the line
        if gpus > self.floor.free:
            return None
        if gpus <= spare:
            return waiting[0]
        estimates = self.estimates
        return next((entry for entry in waiting[:_BACKFILL_DEPTH] if estimates[entry[1]] <= time_s), None)

    def _place(self, queued: QueuedJob) -> Allocation | None:
        if queued.job.gpus > self.floor.free:
            return None
        types = self.rule.best_types
        return self.floor.place(queued.job, None if types is None else types(queued, self.floor.free_of))

    def _taken(self, now: float, line: Hashable, first: tuple[float, QueuedJob], state: QueueState) -> Allocation | None:
        """GPUs of jobs that must make room. Who was refused everywhere is tried again only where something changed: between
        changes the ranks of running jobs do not rise."""
        rank, queued = first
        claim = self.rule.claim(queued, rank, state)
        if claim == inf:
            return None
        if self.rule.turn is None and line not in self.fresh and not self._may_take(queued, claim, state):
            return None
        if self.ranks is None:
            self.ranks = self.rule.running(self.running.columns(), state)
        taking = self.running.taking(queued, self.ranks, claim)
        if taking is None:
            self.fresh.discard(line)
            return None
        for number in taking.victims:
            self._stop(now, self.queued[number], is_saved=True)
        self.preemptions += len(taking.victims)
        self.floor.take(taking.allocation)
        return taking.allocation

    def _may_take(self, queued: QueuedJob, claim: float, state: QueueState) -> bool:
        """Whether a machine that changed could now serve the job, or a part of it that fills a machine."""
        gpus, floor, lent = queued.job.gpus, self.floor, self.lent
        for node in self.touched:
            if node not in lent:
                lent[node] = self.running.ranks_on(node, self.rule, state)
            room = floor.free_on[node] + sum(part for rank, part in lent[node] if rank > claim)
            if room >= gpus or room == floor.size(node):
                return True
        return False

    def _start(self, now: float, line: Hashable, entry: tuple[float, int], allocation: Allocation) -> None:
        """A job of a line, on GPUs that are taken for it."""
        waiting = self.lines[line]
        del waiting[bisect_left(waiting, entry)]
        if waiting:
            self.fresh.add(line)
        else:
            del self.lines[line]
        rank, number = entry
        queued = self.queued[number]
        works_from_s = now + (self.costs.restart_s if queued.starts else 0.0)
        speed = queued.job.speed(self.floor.machine(allocation[0][0]))
        stay = Stay(
            allocation=allocation,
            since_s=now,
            works_from_s=works_from_s,
            speed=speed,
            expected_end_s=works_from_s + queued.estimate_left_s / speed,
            gpus=queued.job.gpus,
        )
        queued.starts += 1
        self._forget()
        self.running.add(queued, stay, rank)
        self.used[queued.job.team] += stay.gpus
        heappush(self.events, (works_from_s + queued.left_s / speed, _END, number, self.versions[number]))
        if self.rule.next_change_s is not None and (change_s := self.rule.next_change_s(queued)) < inf:
            heappush(self.events, (now + change_s, _CHANGE, number, self.versions[number]))
