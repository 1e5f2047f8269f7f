"""The least work left first, by the estimates, and what runs is preempted for it."""

from __future__ import annotations

from chipwise.scale.queue import QueueRule, QueueSettings, QueueState, RunningColumns, Seconds

KIND = "queue"
SUMMARY = "The least estimated work left first, with preemption."
NEEDS = "estimates of durations, checkpoints"


def begin(settings: QueueSettings) -> QueueRule:
    def running(columns: RunningColumns, state: QueueState) -> Seconds:
        ranks: Seconds = columns.rank - columns.gpus * (state.now_s - columns.since_s)
        return ranks

    return QueueRule(rank=lambda queued: queued.estimate_left_s * queued.job.gpus, preempts=True, running=running)
