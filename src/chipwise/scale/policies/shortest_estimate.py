"""The least work first, by the estimate of the performance model: GPUs times seconds. What runs is left alone."""

from __future__ import annotations

from chipwise.scale.queue import QueueRule, QueueSettings

KIND = "queue"
SUMMARY = "The least estimated work (GPUs x time) first, without preemption."
NEEDS = "estimates of durations"


def begin(settings: QueueSettings) -> QueueRule:
    return QueueRule(rank=lambda queued: queued.estimate_left_s * queued.job.gpus)
