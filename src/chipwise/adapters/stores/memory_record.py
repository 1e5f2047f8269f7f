"""The record in memory, by the laws of every record: for playing through what would happen, and for tests.

It lives as long as the process, and one thread uses it. Nothing is written down, so what is read is what was put in, and what
no database could hold (a NUL character, a time that is no number) is not refused.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import islice

from chipwise.errors import BadInput
from chipwise.runner.events import Event, Submitted, after, first
from chipwise.runner.job import Job, Spec
from chipwise.runner.record import Change, Damaged, Deposed, Happened, Lease, Mark, Row, Stale, Use, Wanted

_FAR = 1 << 40  # more than there are events


@dataclass(slots=True)
class MemoryRecord:
    login: str = ""
    _jobs: dict[str, Job] = field(default_factory=dict)
    _stories: dict[str, list[Happened]] = field(default_factory=dict)
    _latest: dict[str, int] = field(default_factory=dict)  # the number of each job's latest event, in order of the numbers
    _leases: dict[str, Lease] = field(default_factory=dict)
    _number: int = 0

    def submit(self, specs: Sequence[tuple[str, Spec]], moment: float) -> list[Job]:
        ids = {id for id, _ in specs}
        if len(ids) < len(specs):
            raise Stale("One id was given to two jobs that were submitted together.")
        if duplicates := ids & self._jobs.keys():
            raise Stale(f"Job {min(duplicates)} is in the database already.", remedy="Submit it under another id.")
        jobs = []
        for id, spec in specs:
            event = Submitted(spec)
            self._put(first(id, event, moment), (event,), moment)
            jobs.append(self._jobs[id])
        return jobs

    def write(self, changes: Sequence[Change], moment: float, lease: Lease | None = None) -> list[Job | Stale]:
        if lease is not None:
            self._check(lease)
        drafts: dict[str, Job] = {}
        answers: list[Job | Stale] = []
        accepted: list[tuple[Job, tuple[Event, ...]]] = []
        for change in changes:  # an impossible event raises before anything is kept
            answer = self._changed(change, drafts.get(change.job.id) or self._jobs.get(change.job.id), moment)
            answers.append(answer)
            if isinstance(answer, Job):
                drafts[answer.id] = answer
                accepted.append((answer, change.events))
        for job, events in accepted:
            self._put(job, events, moment)
        return answers

    def _check(self, lease: Lease) -> None:
        current = self._leases.get(lease.place)
        if current is None or (current.epoch, current.holder) != (lease.epoch, lease.holder):
            now = f"{current.holder} does (epoch {current.epoch})" if current is not None and current.holder else "nobody does"
            raise Deposed(f"{lease.holder} (epoch {lease.epoch}) does not lead {lease.place} any more: {now}.")

    @staticmethod
    def _changed(change: Change, now: Job | None, moment: float) -> Job | Stale:
        id, version = change.job.id, change.job.version
        if now is None:
            return Stale(f"Job {id} is not in the record.")
        if now.version != version:
            return Stale(f"Job {id} was changed by another program: it has version {now.version}, not {version}.")
        for event in change.events:
            now = after(now, event, moment)
        return now

    def _put(self, job: Job, events: Sequence[Event], moment: float) -> None:
        story = self._stories.setdefault(job.id, [])
        for event in events:
            self._number += 1
            story.append(Happened(self._number, job.id, moment, event))
        self._jobs[job.id] = job
        self._latest.pop(job.id, None)
        self._latest[job.id] = self._number

    # Reading

    def job(self, id: str) -> Job | None:
        return self._jobs.get(id)

    def named(self, ids: Collection[str]) -> dict[str, Job]:
        return {id: self._jobs[id] for id in ids if id in self._jobs}

    def jobs(self, wanted: Wanted) -> list[Job]:
        """The newest first."""
        matches = (job for job in reversed(self._jobs.values()) if _is_wanted(job, wanted))
        return list(islice(sorted(matches, key=lambda job: job.submitted, reverse=True), wanted.newest))

    def damaged(self, wanted: Wanted) -> list[Damaged]:
        return []

    def give_up(self, damaged: Damaged, reason: str, moment: float) -> Job:
        raise Stale(f"Job {damaged.job.id} can be read.")

    def rows(self, wanted: Wanted) -> list[Row]:
        return [_row(job) for job in self.jobs(wanted)]

    def changed(self, after: Mark, place: str, limit: int) -> tuple[list[Job | Damaged], Mark]:
        """A mark below 0 belongs to a first reading that is not at its end: when it began, and how far it is."""
        assert isinstance(after, int)
        began, position = divmod(-after, _FAR) if after < 0 else (self._number, 0)
        changes: list[Job | Damaged] = []
        if after <= 0:
            for id, number in self._since(position):
                job = self._jobs[id]
                if number <= began and job.spec.place == place and not job.phase.over:
                    if len(changes) == limit:
                        return changes, -(began * _FAR + position)
                    changes.append(job)
                    position = number
            after = began
        for id, number in self._since(after):
            if self._jobs[id].spec.place == place:
                if len(changes) == limit:
                    break
                changes.append(self._jobs[id])
            after = number
        return changes, after

    def _since(self, after: int) -> list[tuple[str, int]]:
        """From the newest back, since a controller asks for little at the end of a long record."""
        late: list[tuple[str, int]] = []
        for id, number in reversed(self._latest.items()):
            if number <= after:
                break
            late.append((id, number))
        return late[::-1]

    def teams(self) -> None:
        return None

    def permits(self, place: str, owners: Collection[str]) -> None:
        return None

    def events(self, id: str, after: int = 0) -> list[Happened]:
        return [one for one in self._stories.get(id, ()) if one.number > after]

    def uses(self, since: float, until: float) -> list[Use]:
        uses = []
        for job in self._jobs.values():
            spec = job.spec
            for attempt in job.attempts:
                began = attempt.since
                if began is None or began >= until or (attempt.ended is not None and attempt.ended <= since):
                    continue
                place = attempt.where
                uses.append(
                    Use(
                        job=job.id,
                        owner=spec.owner,
                        team=spec.team,
                        project=spec.project,
                        engine=spec.engine,
                        purchase=str(place.purchase),
                        provider=place.provider,
                        region=place.region,
                        machine=place.machine,
                        machines=attempt.machines,
                        gpus=job.gpus_of(attempt),
                        placed=began,
                        ended=attempt.ended,
                        usd_per_hour=place.usd_per_hour,
                    )
                )
        return uses

    # Leading

    def lead(self, place: str, holder: str, now: float, seconds: float) -> Lease | None:
        if not holder:
            raise BadInput("The name of the leader is missing.")
        current = self._leases.get(place)
        if current is not None and current.holder and current.holder != holder and current.until > now:
            return None
        renewed = current is not None and current.holder == holder
        epoch = (current.epoch if current is not None else 0) + (0 if renewed else 1)
        self._leases[place] = Lease(place, holder, epoch, now + seconds)
        return self._leases[place]

    def leader(self, place: str) -> Lease | None:
        held = self._leases.get(place)
        return held if held is not None and held.holder else None

    def resign(self, lease: Lease) -> None:
        """The number stays, so that the next holder has a higher one."""
        current = self._leases.get(lease.place)
        if current is not None and (current.epoch, current.holder) == (lease.epoch, lease.holder):
            self._leases[lease.place] = Lease(lease.place, "", current.epoch, 0.0)

    def close(self) -> None:
        """Nothing is open."""


def _is_wanted(job: Job, wanted: Wanted) -> bool:
    spec = job.spec
    if wanted.phases and job.phase not in wanted.phases:
        return False
    if wanted.name and spec.name != wanted.name and not job.id.startswith(wanted.name):
        return False
    return all(
        not value or value == has
        for value, has in (
            (wanted.owner, spec.owner),
            (wanted.team, spec.team),
            (wanted.project, spec.project),
            (wanted.engine, spec.engine),
            (wanted.place, spec.place),
        )
    )


def _row(job: Job) -> Row:
    spec, attempt = job.spec, job.attempt
    gpus, machines = spec.needs.gpus, spec.needs.machines
    if attempt is not None and job.phase.placed:
        gpus, machines = job.gpus_of(attempt), attempt.machines
    return Row(
        id=job.id,
        name=spec.name,
        phase=job.phase,
        engine=spec.engine,
        place=spec.place,
        owner=spec.owner,
        team=spec.team,
        project=spec.project,
        priority=spec.priority,
        gpus=gpus,
        cpus=spec.needs.cpus,
        machines=machines,
        attempts=len(job.attempts),
        submitted=job.submitted,
        begun=attempt.begun if attempt is not None else None,
        ended=job.ended,
        reason=job.reason or job.waiting,
    )
