"""Machine types that differ, after Gavel (OSDI'20): a GPU goes to the job that is done soonest on it.

How fast a type is differs from job to job: one gains ten times on the newer GPU, another twice. Of the types that are free each
job takes the one that is fastest for it, and the least work first, counted as the time that it takes there: so an old GPU goes
to a job that loses little on it. A type on which a job would be slower than `SLOWEST` of its best is not taken: the job waits
for a better one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from chipwise.scale.queue import QueuedJob, QueueJob, QueueRule, QueueSettings, QueueState

KIND = "queue"
SUMMARY = "Each GPU to the job that is done soonest on its type (Gavel)."
NEEDS = "speeds by machine type, estimates of durations"

SLOWEST = 0.2


def begin(settings: QueueSettings) -> QueueRule:
    machines = settings.cluster.machines

    def best_types(queued: QueuedJob, free: Mapping[str, int]) -> tuple[str, ...]:
        fastest = max(queued.job.speed(machine) for machine in machines)
        able = [machine for machine in machines if queued.job.speed(machine) >= SLOWEST * fastest]
        return tuple(sorted(able, key=queued.job.speed, reverse=True))

    def turn(queued: QueuedJob, state: QueueState) -> tuple[float, ...]:
        types = best_types(queued, state.free)
        speeds = [queued.job.speed(machine) for machine in types if state.free[machine] >= queued.job.gpus]
        speed = max(speeds, default=queued.job.speed(types[-1]))
        return (queued.estimate_left_s * queued.job.gpus / speed,)

    return QueueRule(rank=lambda queued: queued.estimate_left_s, line=_line, turn=turn, best_types=best_types)


def _line(job: QueueJob) -> Hashable:
    """Of jobs that are alike the shortest is first, wherever it runs."""
    return job.gpus, tuple(sorted(job.speeds.items()))
