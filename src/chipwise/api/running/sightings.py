"""What is known of jobs that are recorded as under way, for whoever asks and does not lead.

The record says what a controller wrote last, which may be long ago. Jobs of this machine are looked at here, whoever leads; of
others it is known when their controller last led, and what it saw until then.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from chipwise.api.running import controlling, place
from chipwise.runner.abilities import Glances
from chipwise.runner.job import PLACED, Job, Phase
from chipwise.runner.loop import LEASE_S
from chipwise.runner.record import Row, Unread, Wanted
from chipwise.runner.sighting import Sighting as Sighting
from chipwise.runner.sighting import of_sight
from chipwise.text import span

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.runner.record import Record

FRESH_S = 1.0  # that a look at this machine may be old when it is told
STALE_S = 3.0  # that reading rows and all about them may take before they are read again
READINGS = 3
T = TypeVar("T")
NOBODY = "no controller is running; starting one"
UNSEEN_S = 2.0 * LEASE_S  # without a look that succeeded, after which a controller that lives does not see its jobs


def listed(
    session: Session, record: Record, wanted: Wanted, ask: Callable[[Sequence[Row]], T]
) -> tuple[list[Row], T, dict[str, Sighting]]:
    """Rows, what else is asked about them, and what is known of them. The machine is looked at last, and where the record kept
    us waiting all is asked again: what is shown was so a moment ago."""
    for _ in range(READINGS):
        began = time.monotonic()
        rows = record.rows(wanted)
        answer, sightings = ask(rows), of_rows(session, record, rows)
        if time.monotonic() - began < STALE_S:
            break
    return rows, answer, sightings


def of_rows(session: Session, record: Record, rows: Sequence[Row]) -> dict[str, Sighting]:
    """By id, of those that are not over and of which there is more to say than their row does."""
    now, began, sightings = time.time(), time.monotonic(), dict[str, Sighting]()
    checked: list[Job] = []
    by_place: dict[tuple[str, bool], list[Row]] = defaultdict(list)
    for row in rows:
        if not row.phase.over:
            by_place[row.place, place.is_here(session, row)].append(row)
    for (site, is_local), live in by_place.items():
        placed = [row for row in live if row.phase.placed]
        if placed:
            jobs = {job.id: job for job in record.jobs(Wanted(phases=PLACED, place=site))} if is_local else {}
            checked += (own := [jobs[row.id] for row in placed if row.id in jobs])
            sightings |= _on_this_machine(session, own, now)
            sightings |= _changed(record, [row for row in placed if is_local and row.id not in jobs])
        rest = [row for row in live if row.id not in sightings]
        if rest:
            known = _by_controller(session, record, site, now)
            starts = is_local and place.is_ours(session)
            sightings |= {row.id: _worded(known, row.phase, starts, now, row.submitted) for row in rest}
    if checked and time.monotonic() - began > FRESH_S:  # the record kept us waiting: what was seen before is no longer sure
        sightings |= _on_this_machine(session, checked, time.time())
    return sightings


def _changed(record: Record, rows: Sequence[Row]) -> dict[str, Sighting]:
    """Of rows that were placed when they were read, and are not any more."""
    sightings = {}
    for row in rows:
        with suppress(Unread):  # a damaged one stays what its row says
            if (job := record.job(row.id)) is not None and not job.phase.placed:
                sightings[row.id] = Sighting(str(job.phase))
    return sightings


def of_job(session: Session, record: Record, job: Job) -> Sighting:
    if job.phase.over:
        return Sighting(str(job.phase))
    now, is_local = time.time(), place.is_here(session, job.spec)
    if is_local and job.phase.placed and (sighting := _on_this_machine(session, [job], now).get(job.id)) is not None:
        return sighting
    known = _by_controller(session, record, job.spec.place, now)
    return _worded(known, job.phase, is_local and place.is_ours(session), now, job.submitted)


def wake(session: Session, rows: Sequence[Row], wait_s: float = 0.0) -> None:
    """Sees to it that somebody leads this machine where jobs need that, and that a controller of another place that is on this
    machine and does not answer is replaced. `wait_s`: of who asks only once (`controlling.awake`)."""
    for site in {row.place for row in rows if not row.phase.over}:
        own = site == place.this_place(session)
        if own or controlling.lives(session, site):
            controlling.awake(session, "" if own else site, wait_s)


# Of this machine.


def _on_this_machine(session: Session, jobs: Sequence[Job], now: float) -> dict[str, Sighting]:
    """Without those of which nothing can be read here."""
    sightings: dict[str, Sighting] = {}
    for name in {job.spec.engine for job in jobs}:
        engine = place.engine_here(session, name, only_looks=True)
        if isinstance(engine, Glances):
            own = [job for job in jobs if job.spec.engine == name]
            sights = engine.glance(own, now)
            for job in own:
                if (sighting := of_sight(job, sights[job.id, len(job.attempts)], now)) is not None:
                    sightings[job.id] = sighting
        engine.close()
    return sightings


# By what their controller said last.


@dataclass(frozen=True, slots=True)
class _Known:
    """Of a place."""

    seen: float | None  # when somebody last looked
    trouble: str  # why nobody knows what became of its jobs since
    silence: str  # of its controller, where that is on this machine
    lives: bool = True  # a controller of it, on this machine


def _by_controller(session: Session, record: Record, site: str, now: float) -> _Known:
    silent, lease = controlling.unanswered(session, site), record.leader(site)
    led = lease.until - LEASE_S if lease is not None else None
    last_look, lives = _last_look(session, site), controlling.lives(session, site)
    seen = (
        last_look
        if lives and last_look is not None
        else max((one for one in (led, last_look) if one is not None), default=None)
    )
    if silent is not None:
        return _Known(seen, silent.sentence, silent.sentence)
    if lives and last_look is not None:
        return _Known(seen, "its engine does not answer" if now - last_look > UNSEEN_S else "", "")
    if lease is None:
        return _Known(seen, "it has no controller now", "", lives)
    return _Known(seen, "its controller does not answer" if now > lease.until else "", "", lives)


def _last_look(session: Session, site: str) -> float | None:
    with suppress(OSError):
        return os.stat(place.home_of(session, site) / place.LOOKED).st_mtime
    return None


def _worded(known: _Known, phase: Phase, starts: bool, now: float, submitted: float) -> Sighting:
    """One that waits does so whether somebody looks or not. `starts`: whoever asks starts a controller where none is; who has
    just submitted a job did so a moment ago."""
    if not phase.placed:
        nobody = starts and not known.lives and now - submitted > controlling.STARTS_WITHIN_S
        return Sighting(str(phase), note=NOBODY if nobody else known.silence if starts else known.trouble)
    seen = "" if known.seen is None else f"seen {span(max(now - known.seen, 0.0))} ago; "
    return Sighting(str(phase), known.seen, f"{seen}{known.trouble}" if known.trouble else "", not known.trouble)
