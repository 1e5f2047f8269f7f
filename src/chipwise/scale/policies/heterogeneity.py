"""Machine types that differ, after Gavel (OSDI'20): a job goes where its advantage over other jobs is largest.

How fast a type is differs from job to job: one gains ten times on the newer GPU, another twice. The value of a type is the
mean speed of all jobs on it, so that a job's speed there over that value is its comparative advantage. While a type is free
enough for all that want it, the fastest is taken; the fuller the cluster, the more the advantage counts. The least work first,
by the estimate on the type that is fastest for the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log

from chipwise.scale.queue import QueuedJob, QueueRule, QueueSettings

KIND = "queue"
SUMMARY = "Least work first, each job on the machine type where it gains most (Gavel)."
NEEDS = "speeds by machine type, estimates of durations"


def begin(settings: QueueSettings) -> QueueRule:
    machines = settings.cluster.machines
    values = {machine: _value(settings, machine) for machine in machines}
    gpus = {machine: settings.cluster.gpus_of(machine) for machine in machines}

    def best_types(queued: QueuedJob, free: Mapping[str, int]) -> tuple[str, ...]:
        load = 1.0 - sum(free.values()) / sum(gpus.values())

        def gain(machine: str) -> float:
            return log(queued.job.speed(machine)) - load * values[machine]

        return tuple(sorted((one for one in machines if queued.job.speed(one) > 0.0), key=gain, reverse=True))

    def rank(queued: QueuedJob) -> float:
        fastest = max((queued.job.speed(machine) for machine in machines), default=1.0)
        return queued.estimate_left_s * queued.job.gpus / max(fastest, 1e-9)

    return QueueRule(rank=rank, best_types=best_types)


def _value(settings: QueueSettings, machine: str) -> float:
    """The logarithm of the mean speed there of the jobs that can run there."""
    speeds = [speed for job in settings.jobs if (speed := job.speed(machine)) > 0.0]
    return log(sum(speeds) / len(speeds)) if speeds else 0.0
