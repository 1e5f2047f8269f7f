"""First come, first served: whoever is behind a job that does not fit waits with it."""

from __future__ import annotations

from chipwise.scale.queue import Overtaking, QueueRule, QueueSettings

KIND = "queue"
SUMMARY = "First come, first served; nobody overtakes."
NEEDS = "nothing"


def begin(settings: QueueSettings) -> QueueRule:
    return QueueRule(rank=lambda queued: queued.job.arrival_s, overtaking=Overtaking.NONE)
