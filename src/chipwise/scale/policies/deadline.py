"""The latest moment at which a job must start comes first: its deadline less its estimate. Jobs without a deadline follow, in
the order of their arrival. What runs is preempted for a job that must start earlier than it had to."""

from __future__ import annotations

from chipwise.scale.queue import QueuedJob, QueueRule, QueueSettings

KIND = "queue"
SUMMARY = "The job that must start first to meet its deadline, with preemption."
NEEDS = "deadlines, estimates of durations, checkpoints"

_WITHOUT = 1e13  # above all deadlines


def begin(settings: QueueSettings) -> QueueRule:
    def rank(queued: QueuedJob) -> float:
        job = queued.job
        if job.deadline_s is None:
            return _WITHOUT + job.arrival_s
        return job.deadline_s - queued.estimate_left_s

    return QueueRule(rank=rank, preempts=True)
