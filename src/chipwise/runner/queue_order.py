"""Policies of queues, for the queue of our own devices: the rank of a job by what the record shows of it.

What runs is not preempted here: a policy that would, orders those that wait. Quotas of teams hold under every policy, and a job
that does not fit is not delayed by those that start before it, as without one.
"""

from __future__ import annotations

from collections.abc import Callable

from chipwise.runner.job import Job
from chipwise.runner.next_machine import rest_s
from chipwise.scale.queue import BeginQueue, Cluster, NodeGroup, Overtaking, QueuedJob, QueueJob, QueueSettings

UNKNOWN_S = 86400.0  # that a job takes of which nobody says how long: after those that say less


def order(begin: BeginQueue) -> tuple[Callable[[Job, float], float], bool]:
    """The rank of a job at a time, the lowest first, and whether nobody may overtake the first."""
    rule = begin(QueueSettings(cluster=Cluster((NodeGroup("gpu", 1, 1),)), jobs=()))
    return lambda job, now: rule.rank(_queued(job, now)), rule.overtaking is Overtaking.NONE


def _queued(job: Job, now: float) -> QueuedJob:
    estimate_s = max(job.spec.expected_s if job.spec.expected_s is not None else UNKNOWN_S, 1.0)
    left_s = rest_s(job)
    return QueuedJob(
        job=QueueJob(
            name=job.id,
            arrival_s=job.submitted,
            gpus=max(job.spec.needs.gpus * job.spec.needs.machines, 1),
            work_s=estimate_s,
            estimate_s=estimate_s,
            team=job.spec.team,
            deadline_s=job.spec.deadline,
        ),
        number=0,
        left_s=estimate_s if left_s is None else min(left_s, estimate_s),
        attained_s=sum(attempt.hours(now) * 3600.0 * max(len(attempt.devices), 1) for attempt in job.attempts),
        starts=len(job.attempts),
    )
