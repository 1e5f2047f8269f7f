"""Azure: Scheduled Events, from the instance metadata service.

Events are told to all machines of a group, so those count that name this one. A freeze is a pause of seconds, and no reason to
leave. Until NotBefore nothing happens; once an event has begun it has no time any more. The first question turns the service
on, and may take two minutes.
"""

from __future__ import annotations

import json
import time
from email.utils import parsedate_to_datetime
from typing import Any

from chipwise.adapters.notices.asking import ask
from chipwise.adapters.notices.notice import SPARE_S, Notice, Silent

BASE = "http://169.254.169.254"
BEGUN_S = 10.0  # what may be left of one that has begun
FIRST_WITHIN_S, WITHIN_S = 120.0, 10.0
_EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
_NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
_HEADERS = {"Metadata": "true"}
_REASONS = {
    "Preempt": "Azure is reclaiming the spot machine",
    "Terminate": "Azure deletes the machine",
    "Reboot": "Azure restarts the machine",
    "Redeploy": "Azure moves the machine to another host",
}


def scheduled(text: str, name: str, now: float) -> Notice | None:
    """The first event that ends this machine. Without a name of our own every event counts: leaving is the safe side."""
    try:
        events = json.loads(text)["Events"]
        notices = [one for one in (_read(event, name, now) for event in events) if one is not None]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Silent(f"scheduled events that cannot be read: {error!r:.200}") from None
    return min(notices, key=lambda one: one.deadline, default=None)


def _read(event: dict[str, Any], name: str, now: float) -> Notice | None:
    reason, machines = _REASONS.get(event["EventType"]), event.get("Resources") or []
    if reason is None or (name and machines and name.lower() not in (str(one).lower() for one in machines)):
        return None
    try:
        deadline = parsedate_to_datetime(event["NotBefore"]).timestamp() - SPARE_S
    except (ValueError, TypeError, KeyError):  # it has begun
        deadline = now + BEGUN_S
    alone = len(machines) == 1 and bool(name)  # to acknowledge is to speak for all machines that an event names
    return Notice(reason, deadline, str(event.get("EventId", "")) if alone else "")


class Azure:
    every_s = 5.0

    def __init__(self, base: str) -> None:
        self.base = base
        self.name = ""
        self.within_s = FIRST_WITHIN_S
        self.standing: Notice | None = None  # one without a time: it counts from when it was first seen

    def look(self) -> Notice | None:
        if not self.name and (answer := ask(self.base + _NAME, _HEADERS)).status == 200:
            self.name = answer.text.strip()
        answer = ask(self.base + _EVENTS, _HEADERS, self.within_s)
        if answer.status != 200:
            raise Silent(f"scheduled events: status {answer.status}")
        notice = scheduled(answer.text, self.name, time.time())
        self.within_s = WITHIN_S
        if notice is not None and self.standing is not None and notice.event == self.standing.event:
            notice = min(notice, self.standing, key=lambda one: one.deadline)
        self.standing = notice
        return notice

    def acknowledge(self, notice: Notice) -> None:
        if notice.event:
            wish = json.dumps({"StartRequests": [{"EventId": notice.event}]}).encode()
            headers = {**_HEADERS, "Content-Type": "application/json"}
            answer = ask(self.base + _EVENTS, headers, WITHIN_S, "POST", wish)
            if answer.status != 200:
                raise Silent(f"acknowledging {notice.event}: status {answer.status}")


def connect(base: str) -> Azure:
    return Azure(base)
