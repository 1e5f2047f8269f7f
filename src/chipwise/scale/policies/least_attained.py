"""Least attained service in two queues, after Tiresias (NSDI'19): no estimate is needed. A job falls to the second queue when
it has had `SPLIT_S` of GPU time, the threshold of the Tiresias paper; in each queue, first come, first served.
"""

from __future__ import annotations

from math import inf

from chipwise.scale.queue import QueuedJob, QueueRule, QueueSettings

KIND = "queue"
SUMMARY = "Jobs with little GPU time so far first (two queues, Tiresias), with preemption."
NEEDS = "checkpoints"

SPLIT_S = 3200.0  # GPU seconds
_SECOND = 1e13  # above all times of arrival
_ROUNDING_S = 1e-6


def begin(settings: QueueSettings) -> QueueRule:
    return QueueRule(rank=_rank, preempts=True, next_change_s=_next_change_s)


def _rank(queued: QueuedJob) -> float:
    return queued.job.arrival_s + (_SECOND if queued.attained_s >= SPLIT_S - _ROUNDING_S else 0.0)


def _next_change_s(queued: QueuedJob) -> float:
    left_s = SPLIT_S - queued.attained_s
    return left_s / queued.job.gpus if left_s > _ROUNDING_S else inf
