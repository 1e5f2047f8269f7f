"""Interruption warnings and rebalance recommendations, from EventBridge by way of a queue.

A message is taken out of the queue only after its notice stands in S3, so that none is lost with a controller. One queue
belongs to one place: what a message of a machine that nobody knows says is of no use to anybody else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .cloud import Cloud
from .errors import translated

WARNING, REBALANCE = "EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation"
AHEAD_S = 120.0  # that a warning comes before the end
YOUNG_S = 120.0  # in which EC2 may not show a machine yet
_READS = 20  # of ten messages each, at one look
_REASONS = {
    WARNING: "AWS is reclaiming the spot machine",
    REBALANCE: "AWS sent a rebalance recommendation",
}


@dataclass(frozen=True, slots=True)
class SpotNotice:
    machine: str
    kind: str
    moment: float
    receipt: str

    @property
    def reason(self) -> str:
        return _REASONS[self.kind]


def read(message: Mapping[str, Any], now: float) -> SpotNotice | None:
    """None: of something else, or not readable."""
    try:
        event = json.loads(message["Body"])
        kind, machine = event["detail-type"], str(event["detail"]["instance-id"])
        if kind not in _REASONS:
            return None
        seconds = datetime.fromisoformat(event["time"]).timestamp() if event.get("time") else now
    except (ValueError, KeyError, TypeError):
        return None
    return SpotNotice(machine, kind, min(seconds, now), message["ReceiptHandle"])


def receive(cloud: Cloud, now: float) -> tuple[list[SpotNotice], list[str]]:
    """Notices, and receipts of messages that say nothing to us."""
    notices: list[SpotNotice] = []
    useless: list[str] = []
    for _ in range(_READS):
        messages: list[Any] = []
        with translated("sqs:ReceiveMessage"):
            answer = cloud.client("sqs").receive_message(
                QueueUrl=cloud.config.queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=0, VisibilityTimeout=30
            )
            messages = answer.get("Messages", [])
        for message in messages:
            notice = read(message, now)
            if notice is None:
                useless.append(message["ReceiptHandle"])
            else:
                notices.append(notice)
        if len(messages) < 10:
            break
    return notices, useless


def remove(cloud: Cloud, receipts: list[str]) -> None:
    for start in range(0, len(receipts), 10):
        entries = [{"Id": str(number), "ReceiptHandle": one} for number, one in enumerate(receipts[start : start + 10])]
        with translated("sqs:DeleteMessage"):
            cloud.client("sqs").delete_message_batch(QueueUrl=cloud.config.queue_url, Entries=entries)
