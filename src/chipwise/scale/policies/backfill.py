"""First come, first served, with EASY backfill: a later job starts early where it is over, by the estimates, before the first
one could start, or leaves what that one needs (Lifka, 1995)."""

from __future__ import annotations

from chipwise.scale.queue import Overtaking, QueueRule, QueueSettings

KIND = "queue"
SUMMARY = "First come, first served; later jobs fill gaps that delay nobody."
NEEDS = "estimates of durations"


def begin(settings: QueueSettings) -> QueueRule:
    return QueueRule(rank=lambda queued: queued.job.arrival_s, overtaking=Overtaking.EASY)
