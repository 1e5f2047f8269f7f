"""Where a gang goes: on one machine where it fits on one, else on whole machines of one kind and a part of one more.

Machines of a kind are sorted by how many of their GPUs are free, so that finding a place takes as many steps as a machine has
GPUs, however many machines there are. Which of the machines that would do is taken is the placement's:

- pooled: no machine borders at all; any free GPUs of a type will do
- spread: the emptiest, as Kubernetes does by default
- pack: the fullest (best fit)
- least-fragmentation: the one after which the least is left in pieces too small for the jobs that come (after FGD, ATC'23)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from chipwise.scale.queue import Cluster, NodeGroup, QueueJob

Allocation = tuple[tuple[int, int], ...]  # machines, and GPUs on each


class Placement(StrEnum):
    POOLED = "pooled"
    SPREAD = "spread"
    PACK = "pack"
    LEAST_FRAGMENTATION = "least-fragmentation"


class _Kind:
    """The machines of one group, by free GPUs. A dict keeps the order in which they became so: the first is taken."""

    def __init__(self, group: NodeGroup, first: int, fragments: list[float]) -> None:
        self.group = group
        self.numbers = range(first, first + group.count)
        self.by_free: list[dict[int, None]] = [{} for _ in range(group.gpus + 1)]
        self.by_free[group.gpus] = dict.fromkeys(self.numbers)
        self.fragments = fragments  # expected, by free GPUs of a machine


class Floor:
    """The machines of a cluster, and what of them is free."""

    def __init__(self, cluster: Cluster, placement: Placement, sizes: Mapping[int, float]) -> None:
        """`sizes`: the share of jobs with each number of GPUs."""
        self.placement = placement
        groups = _pooled(cluster) if placement is Placement.POOLED else cluster.groups
        self._kinds: list[_Kind] = []
        self._kind_of: list[_Kind] = []
        self.free_on: list[int] = []
        for group in groups:
            kind = _Kind(group, len(self.free_on), _fragments(group.gpus, sizes))
            self._kinds.append(kind)
            self._kind_of += [kind] * group.count
            self.free_on += [group.gpus] * group.count
        self.free = sum(self.free_on)
        self.free_of = {machine: cluster.gpus_of(machine) for machine in cluster.machines}
        self._down: set[int] = set()

    @property
    def nodes(self) -> int:
        return len(self.free_on)

    def machine(self, node: int) -> str:
        return self._kind_of[node].group.machine

    def size(self, node: int) -> int:
        return self._kind_of[node].group.gpus

    def is_down(self, node: int) -> bool:
        return node in self._down

    def kinds_for(self, job: QueueJob) -> list[tuple[NodeGroup, range]]:
        """That can run it, with the numbers of their machines."""
        return [(kind.group, kind.numbers) for kind in self._kinds if job.speed(kind.group.machine) > 0.0]

    def can_ever(self, job: QueueJob) -> bool:
        """Whether the gang fits where nothing else runs."""
        return any(
            job.speed(kind.group.machine) > 0.0 and job.gpus <= kind.group.gpus * kind.group.count for kind in self._kinds
        )

    def place(self, job: QueueJob, types: Iterable[str] | None = None) -> Allocation | None:
        """Taken at once. `types`: in the order of preference; None: the order of the cluster."""
        if job.gpus > self.free:
            return None
        if types is None:
            kinds = [kind for kind in self._kinds if job.speed(kind.group.machine) > 0.0]
        else:
            kinds = [kind for machine in types for kind in self._kinds if kind.group.machine == machine]
        for kind in kinds:
            allocation = self._on(kind, job.gpus)
            if allocation is not None:
                self.take(allocation)
                return allocation
        return None

    def take(self, allocation: Allocation) -> None:
        for node, gpus in allocation:
            self._set(node, self.free_on[node] - gpus)

    def release(self, allocation: Allocation) -> None:
        for node, gpus in allocation:
            if node not in self._down:
                self._set(node, self.free_on[node] + gpus)

    def fail(self, node: int) -> None:
        """Its jobs are released before."""
        self._set(node, 0)
        self._down.add(node)
        self._kind_of[node].by_free[0].pop(node)

    def repair(self, node: int) -> None:
        self._down.discard(node)
        self._kind_of[node].by_free[0][node] = None
        self._set(node, self.size(node))

    def _set(self, node: int, free: int) -> None:
        kind, before = self._kind_of[node], self.free_on[node]
        del kind.by_free[before][node]
        kind.by_free[free][node] = None
        self.free_on[node] = free
        self.free += free - before
        self.free_of[kind.group.machine] += free - before

    def _on(self, kind: _Kind, gpus: int) -> Allocation | None:
        size = kind.group.gpus
        whole, rest = divmod(gpus, size)
        if whole and len(kind.by_free[size]) < whole:
            return None
        allocation = [(node, size) for node, _ in zip(kind.by_free[size], range(whole), strict=False)]
        if rest:
            skipped = whole if whole else 0
            node = self._part(kind, rest, skipped)
            if node is None:
                return None
            allocation.append((node, rest))
        return tuple(allocation)

    def _part(self, kind: _Kind, gpus: int, skipped: int) -> int | None:
        """A machine with so many free; of the empty ones as many are spoken for as `skipped` says."""
        size = kind.group.gpus
        choices = [free for free in range(gpus, size + 1) if len(kind.by_free[free]) > (skipped if free == size else 0)]
        if not choices:
            return None
        if self.placement is Placement.SPREAD:
            free = choices[-1]
        elif self.placement is Placement.LEAST_FRAGMENTATION:
            free = min(choices, key=lambda free: (kind.fragments[free - gpus] - kind.fragments[free], free))
        else:
            free = choices[0]
        nodes = iter(kind.by_free[free])
        for _ in range(skipped if free == size else 0):
            next(nodes)
        return next(nodes)


def _pooled(cluster: Cluster) -> tuple[NodeGroup, ...]:
    """A single machine of each type."""
    return tuple(NodeGroup(machine, cluster.gpus_of(machine), 1) for machine in cluster.machines)


def _fragments(size: int, sizes: Mapping[int, float]) -> list[float]:
    """Of a machine with 0, 1, ... free GPUs: how many of these a job finds too few, on average over the jobs. A gang that is
    larger than a machine wants whole ones."""
    return [free * sum(share for gpus, share in sizes.items() if min(gpus, size) > free) for free in range(size + 1)]
