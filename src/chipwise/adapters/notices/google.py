"""Google: preemption of spot machines, and maintenance that ends a machine, from the metadata server.

`preempted` becomes TRUE thirty seconds before the end, so the question waits for a change instead of being repeated.
`maintenance-event` names no time: a machine is told sixty seconds before, one with GPUs earlier, and the shorter is assumed. A
migration is not the end of anything. The early word is only given to those who ask now and then, as is done here.
"""

from __future__ import annotations

import time

from chipwise.adapters.notices.asking import MetadataAnswer, ask
from chipwise.adapters.notices.notice import SPARE_S, Notice, Silent

BASE = "http://169.254.169.254"  # metadata.google.internal, without asking for its name
PREEMPTED_AHEAD_S, MAINTENANCE_AHEAD_S = 30.0, 60.0
WAITS_S = 10.0  # for a change; in between the other key is looked at
_HEADERS = {"Metadata-Flavor": "Google"}


def preemption(text: str, now: float) -> Notice | None:
    """From the answer of instance/preempted."""
    if text.strip().upper() != "TRUE":
        return None
    return Notice("Google is reclaiming the spot machine", now + PREEMPTED_AHEAD_S - SPARE_S)


def maintenance(text: str, now: float) -> Notice | None:
    """From the answer of instance/maintenance-event."""
    if text.strip() != "TERMINATE_ON_HOST_MAINTENANCE":
        return None
    return Notice("Google stops the machine for host maintenance", now + MAINTENANCE_AHEAD_S - SPARE_S)


class Google:
    every_s = 5.0

    def __init__(self, base: str) -> None:
        self.base = f"{base}/computeMetadata/v1/instance"
        self.etag = ""
        self.standing: Notice | None = None  # its time counts from when it was first seen

    def look(self) -> Notice | None:
        notice = maintenance(self._get("maintenance-event").text, time.time())
        if notice is None:
            waits = f"?wait_for_change=true&timeout_sec={WAITS_S:.0f}&last_etag={self.etag}" if self.etag else ""
            answer = self._get(f"preempted{waits}", WAITS_S if waits else 0.0)
            self.etag = answer.etag
            notice = preemption(answer.text, time.time())
        if notice is None or self.standing is None or self.standing.reason != notice.reason:
            self.standing = notice
        return self.standing

    def acknowledge(self, notice: Notice) -> None:
        """Google waits for nobody."""

    def _get(self, key: str, waits_s: float = 0.0) -> MetadataAnswer:
        answer = ask(f"{self.base}/{key}", _HEADERS, waits_s + 5.0)
        if answer.status == 404:  # not on this kind of machine
            return MetadataAnswer(404, "")
        if answer.status != 200:
            raise Silent(f"{key}: status {answer.status}")
        return answer


def connect(base: str) -> Google:
    return Google(base)
