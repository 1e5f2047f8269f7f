"""The jobs that run, as columns for rules that preempt, and whose GPUs a job may take.

A running job has an entry for each of its machines. Entries are dense: the last takes the place of one that leaves.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.scale.queue import NodeGroup, QueuedJob, QueueRule, QueueState, RunningColumns, Seconds
from chipwise.scale.simulator.placement import Allocation, Floor

_ROUNDING = 1e-6  # of ranks: equals do not take from each other


@dataclass(frozen=True, slots=True)
class Stay:
    """A job on its machines."""

    allocation: Allocation
    since_s: float
    works_from_s: float
    speed: float
    expected_end_s: float
    gpus: int


@dataclass(frozen=True, slots=True)
class Taking:
    """GPUs for a job, and the jobs that must leave them first."""

    allocation: Allocation
    victims: tuple[int, ...]


class RunningJobs:
    def __init__(self, floor: Floor, teams: Mapping[str, int], *, has_columns: bool, has_ends: bool) -> None:
        """Columns are for rules that preempt, the order of expected ends for those that reserve."""
        self._floor, self._teams = floor, teams
        self._has_columns, self._has_ends = has_columns, has_ends
        self.stays: dict[int, Stay] = {}
        self._ends: list[tuple[float, int, int]] = []  # expected end, job, GPUs
        self._count = 0
        self._slots: dict[int, list[int]] = {}  # of each job
        self._jobs_on: list[dict[int, None]] = [{} for _ in range(floor.nodes)]
        self._resize(64)

    def _resize(self, size: int) -> None:
        columns = getattr(self, "_floats", np.zeros((2, 0))), getattr(self, "_whole", np.zeros((5, 0), np.int64))
        self._floats: Seconds = np.zeros((2, size))  # rank, since
        self._whole: NDArray[np.int64] = np.zeros((5, size), np.int64)  # GPUs of the job, those here, team, machine, job
        self._floats[:, : columns[0].shape[1]] = columns[0]
        self._whole[:, : columns[1].shape[1]] = columns[1]

    def add(self, queued: QueuedJob, stay: Stay, rank: float) -> None:
        number = queued.number
        self.stays[number] = stay
        if self._has_ends:
            insort(self._ends, (stay.expected_end_s, number, stay.gpus))
        if not self._has_columns:
            return
        team = self._teams[queued.job.team]
        slots = []
        for node, gpus in stay.allocation:
            slot = self._count
            if slot == self._floats.shape[1]:
                self._resize(2 * slot)
            self._floats[:, slot] = rank, stay.since_s
            self._whole[:, slot] = stay.gpus, gpus, team, node, number
            self._count += 1
            self._jobs_on[node][number] = None
            slots.append(slot)
        self._slots[number] = slots

    def remove(self, number: int) -> Stay:
        stay = self.stays.pop(number)
        if self._has_ends:
            del self._ends[bisect_left(self._ends, (stay.expected_end_s, number, stay.gpus))]
        if self._has_columns:
            for node, _ in stay.allocation:
                del self._jobs_on[node][number]
            for slot in sorted(self._slots.pop(number), reverse=True):
                self._vacate(slot)
        return stay

    def _vacate(self, slot: int) -> None:
        self._count = last = self._count - 1
        if slot == last:
            return
        self._floats[:, slot], self._whole[:, slot] = self._floats[:, last], self._whole[:, last]
        slots = self._slots[int(self._whole[4, slot])]
        slots[slots.index(last)] = slot

    def rerank(self, number: int, rank: float) -> None:
        if self._has_columns:
            self._floats[0, self._slots[number]] = rank

    def on_node(self, node: int) -> list[int]:
        return sorted(number for number, stay in self.stays.items() if any(node == one for one, _ in stay.allocation))

    def columns(self) -> RunningColumns:
        count = self._count
        return RunningColumns(
            rank=self._floats[0, :count],
            since_s=self._floats[1, :count],
            gpus=self._whole[0, :count],
            gpus_here=self._whole[1, :count],
            team=self._whole[2, :count],
        )

    def ranks_on(self, node: int, rule: QueueRule, state: QueueState) -> list[tuple[float, int]]:
        """Of the jobs on a machine: the rank, and the GPUs there."""
        slots = [slot for number in self._jobs_on[node] for slot in self._slots[number] if self._whole[3, slot] == node]
        if not slots:
            return []
        floats, whole = self._floats[:, slots], self._whole[:, slots]
        columns = RunningColumns(rank=floats[0], since_s=floats[1], gpus=whole[0], gpus_here=whole[1], team=whole[2])
        return list(zip(rule.running(columns, state).tolist(), whole[1].tolist(), strict=True))

    def reservation(self, gpus: int, free: int) -> tuple[float, int]:
        """When so many GPUs will be free, by the estimates, and how many more will be then."""
        for expected_end_s, _, freed in self._ends:
            free += freed
            if free >= gpus:
                return expected_end_s, free - gpus
        return float("inf"), 0

    def taking(self, queued: QueuedJob, ranks: Seconds, claim: float) -> Taking | None:
        """The machines on which fewest GPUs must be taken from others, all of a rank above `claim`."""
        if queued.job.gpus == 1 and not queued.job.speeds:
            return self._single(ranks, claim)
        worse = np.flatnonzero(ranks > claim + _ROUNDING)
        if not len(worse):
            return None
        nodes, parts = self._whole[3, worse], self._whole[1, worse]
        lent = np.bincount(nodes, weights=parts, minlength=self._floor.nodes).astype(np.int64)
        if self._floor.free + int(lent.sum()) < queued.job.gpus:
            return None
        free = np.array(self._floor.free_on, np.int64)
        for group, numbers in self._floor.kinds_for(queued.job):
            allocation = _machines(group, numbers, queued.job.gpus, free, lent)
            if allocation is not None:
                return Taking(allocation, self._victims(allocation, worse, ranks, free))
        return None

    def _single(self, ranks: Seconds, claim: float) -> Taking | None:
        """One GPU, of the job with the highest rank."""
        slot = int(ranks.argmax()) if len(ranks) else -1
        if slot < 0 or not ranks[slot] > claim + _ROUNDING:
            return None
        return Taking(((int(self._whole[3, slot]), 1),), (int(self._whole[4, slot]),))

    def _victims(
        self, allocation: Allocation, worse: NDArray[np.intp], ranks: Seconds, free: NDArray[np.int64]
    ) -> tuple[int, ...]:
        """On each machine those of the highest rank, as many as must be."""
        victims: dict[int, None] = {}
        for node, gpus in allocation:
            room = int(free[node]) + sum(
                part for number in victims for one, part in self.stays[number].allocation if one == node
            )
            here = worse[self._whole[3, worse] == node]
            for slot in here[np.lexsort((-self._whole[4, here], -ranks[here]))]:
                if room >= gpus:
                    break
                number = int(self._whole[4, slot])
                if number not in victims:
                    victims[number] = None
                    room += int(self._whole[1, slot])
        return tuple(victims)


def _machines(
    group: NodeGroup, numbers: range, gpus: int, free: NDArray[np.int64], lent: NDArray[np.int64]
) -> Allocation | None:
    here = slice(numbers.start, numbers.stop)
    could = free[here] + lent[here]
    order = np.argsort(-free[here], kind="stable")  # where most is free, least must be taken
    whole, rest = divmod(gpus, group.gpus)
    empty = order[could[order] >= group.gpus][:whole]
    if len(empty) < whole:
        return None
    allocation = [(numbers.start + int(place), group.gpus) for place in empty]
    if rest:
        fits = [place for place in order[could[order] >= rest][: whole + 1] if place not in empty]
        if not fits:
            return None
        allocation.append((numbers.start + int(fits[0]), rest))
    return tuple(allocation)
