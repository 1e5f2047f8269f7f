"""EC2: spot interruptions and rebalance recommendations, from the instance metadata service (version 2, with a token).

A path answers 404 until there is something to say. An interruption comes two minutes before the end and names its time; a
recommendation names none, so that as much is assumed. $CHIPWISE_REBALANCE=ignore stays until the machine is really taken.
"""

from __future__ import annotations

import json
import os
import time
from datetime import datetime

from chipwise.adapters.notices.asking import MetadataAnswer, ask
from chipwise.adapters.notices.notice import SPARE_S, Notice, Silent

BASE = "http://169.254.169.254"
AHEAD_S = 120.0
_TOKEN_S = 3600
_ACTIONS = {
    "terminate": "AWS is reclaiming the spot machine",
    "stop": "AWS is reclaiming the spot machine, and stops it",
    "hibernate": "AWS is reclaiming the spot machine, and hibernates it",
}


def interruption(text: str, now: float) -> Notice | None:
    """From the answer of spot/instance-action."""
    try:
        action = json.loads(text)
        reason = _ACTIONS.get(action["action"], f"AWS is reclaiming the spot machine ({action['action']:.40})")
    except (ValueError, KeyError, TypeError):
        return None
    try:
        end = datetime.fromisoformat(action["time"]).timestamp()
    except (ValueError, KeyError, TypeError):  # that it goes is known: the time that it always has
        end = now + AHEAD_S
    return Notice(reason, end - SPARE_S)


def rebalance(text: str, now: float) -> Notice | None:
    """From the answer of events/recommendations/rebalance."""
    try:
        json.loads(text)["noticeTime"]
    except (ValueError, KeyError, TypeError):
        return None
    return Notice("AWS sent a rebalance recommendation", now + AHEAD_S - SPARE_S)


class Ec2:
    every_s = 5.0

    def __init__(self, base: str) -> None:
        self.base = base
        self.token, self.until = "", 0.0
        self.heeds_rebalance = os.environ.get("CHIPWISE_REBALANCE") != "ignore"
        self.advised: Notice | None = None  # its time counts from when it was first seen

    def look(self) -> Notice | None:
        if (answer := self._get("spot/instance-action")) and (notice := interruption(answer, time.time())):
            return notice
        if not self.heeds_rebalance:
            return None
        answer = self._get("events/recommendations/rebalance")
        self.advised = (self.advised or rebalance(answer, time.time())) if answer else None
        return self.advised

    def acknowledge(self, notice: Notice) -> None:
        """AWS waits for nobody."""

    def _get(self, path: str) -> str:
        """Empty: there is nothing."""
        answer = self._request(path)
        if answer.status == 401:  # the token is no longer good
            self.until = 0.0
            answer = self._request(path)
        if answer.status not in (200, 404):
            raise Silent(f"{path}: status {answer.status}")
        return answer.text if answer.status == 200 else ""

    def _request(self, path: str) -> MetadataAnswer:
        if time.monotonic() >= self.until:
            wanted = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_S)}
            answer = ask(f"{self.base}/latest/api/token", wanted, method="PUT")
            if answer.status != 200:
                raise Silent(f"no token: status {answer.status}")
            self.token, self.until = answer.text.strip(), time.monotonic() + _TOKEN_S / 2
        return ask(f"{self.base}/latest/meta-data/{path}", {"X-aws-ec2-metadata-token": self.token})


def connect(base: str) -> Ec2:
    return Ec2(base)
