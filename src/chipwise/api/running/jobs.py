"""Asking something of jobs, and telling their story; how they are found is in `runner/finding.py`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.api.running.installed import package_or_none, runs_here
from chipwise.errors import TryLater, UnknownName
from chipwise.runner.abilities import ServesInside
from chipwise.runner.comparing import Compared, compared
from chipwise.runner.engine import Room
from chipwise.runner.events import Wished
from chipwise.runner.finding import allowed as allowed
from chipwise.runner.finding import find as find
from chipwise.runner.finding import in_order as in_order
from chipwise.runner.finding import targets as targets
from chipwise.runner.job import LIVE, Job, Phase, Wish
from chipwise.runner.queue import Rules, why_short, why_waiting
from chipwise.runner.record import Change, Happened, Stale, Wanted
from chipwise.runner.story import event_sentence
from chipwise.runner.waiting import earlier, said_by_controller

if TYPE_CHECKING:
    from chipwise.runner.record import Record

TRIES = 20  # for a job that its controller changes at the same time


def ask(record: Record, job: Job, wish: Wish, author: str = "", reason: str = "") -> Job:
    """Recorded; the controller does the rest. Its owner's word is not lost when the controller writes at the same time."""
    for _ in range(TRIES):
        allowed(job, wish)
        [answer] = record.write([Change(job, (Wished(wish, author, reason),))], time.time())
        if not isinstance(answer, Stale):
            return answer
        again = record.job(job.id)
        if again is None:
            raise UnknownName("job", job.id)
        job = again
        time.sleep(0.01)
    raise TryLater(f"{job.id} is being changed by other programs.", remedy="Try again.")


@dataclass(frozen=True, slots=True)
class Described:
    job: Job
    story: tuple[tuple[float, str], ...]
    waiting: str
    compared: tuple[Compared, ...]  # predicted beside measured


def describe(record: Record, job: Job, room: Room, rules: Rules, trouble: str = "", *, here: bool = True) -> Described:
    """`trouble`: what is known to keep all jobs of its place waiting. `room`: of this machine, which is its place (`here`)."""
    now = time.time()
    elsewhere = not runs_here(job.spec.engine) and not job.phase.over
    waiting = job.waiting if elsewhere or job.phase is Phase.RUNNING else ""
    if job.phase is Phase.QUEUED and trouble:
        waiting = trouble
    elif job.phase is Phase.QUEUED and (before := earlier(record, job)):  # stages may run at other places than this one
        waiting = why_short(job, before, Room(), rules, now)
    elif job.phase is Phase.QUEUED and (known := said_by_controller(record, job, now, here=here)):
        waiting = known
    elif job.phase is Phase.QUEUED and runs_here(job.spec.engine):
        live = record.jobs(Wanted(phases=LIVE, place=job.spec.place))
        waiting = why_waiting(job, live, room, rules, now)
    events = record.events(job.id)
    return Described(job, tuple(story(events)), waiting, compared(job, events))


def serves_at(job: Job) -> str:
    """Of a service on a cluster: how others in it call it, and how one gets there from here; empty while it has no attempt."""
    spec = job.spec
    ports = [
        resource["spec"]["ports"][0]["port"]  # type: ignore[index]
        for resource in spec.objects
        if resource.get("kind") == "Service" and spec.service
    ]
    if not ports or not job.attempts or job.phase.over:
        return ""
    kind = package_or_none(spec.engine)
    return kind.serves_at(job, ports[0]) if isinstance(kind, ServesInside) else ""


def story(happened: Sequence[Happened]) -> list[tuple[float, str]]:
    return [(one.moment, line) for one in happened if (line := event_sentence(one.event))]
