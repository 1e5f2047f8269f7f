"""Looking, deciding and doing, over and over. The record, the engine and the clock come in as arguments.

One `turn` is one look. It may be cut off anywhere: what was recorded stands, and what was not done is found again at the next
turn, by this controller or by another. Without the lease of the place a controller only watches.

A job whose record is damaged is looked at with the others, so that its machines do not pass for left over, and keeps the
devices that its engine says it holds. Nothing is ordered or recorded about it; each turn tells of it. What runs of a job that
somebody else called over is ended (`left_running`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from chipwise.errors import BadInput, ChipwiseError, NotAllowed, NotFound, OutsideFailed, TryLater
from chipwise.runner import recovery
from chipwise.runner.clock_steps import ClockSteps
from chipwise.runner.engine import End, Engine, Leave, Order, Seen, Sight, Start, State
from chipwise.runner.events import Ended, Event, Told, Waiting, after
from chipwise.runner.job import Job, Lack, Phase
from chipwise.runner.left_running import LeftRunning, unacted, without
from chipwise.runner.permits import refusals
from chipwise.runner.policy import NeverLate, Policy
from chipwise.runner.queue import Rules, why_each_waits
from chipwise.runner.record import Change, Damaged, Deposed, Held, Lease, Mark, MarkLost, Record, Stale, Unread
from chipwise.runner.recovery import salvage
from chipwise.runner.step import NO_PLACE, Act, step

LEASE_S = 15.0
DOING_S = 5.0  # of orders in one turn; much less than the lease, which is renewed at the beginning of each
RENEWS_S = 5.0  # after which the lease is renewed within a turn, before the next order
AT_ONCE = 2_000  # changed jobs that one turn reads, so that none takes long
SAYS_EVERY_S = 5.0  # why jobs wait, in a record of several people
SAYS_PLACES = 20  # in the line, each of which is said; behind that, only that it is
NEVER_STARTED = 127
ASIDE_S = 60.0  # after which it is tried again with a job of which nothing could be recorded


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn did."""

    leads: bool
    written: int = 0
    ordered: int = 0
    live: int = 0  # jobs that are not over
    behind: bool = False  # there is more to read at once
    looked: bool = False  # its engine could see
    next_at: float | None = None  # when a waiting job may be tried again
    trouble: tuple[str, ...] = ()


@dataclass(slots=True)
class Controller:
    record: Record
    engine: Engine
    holder: str
    rules: Rules = field(default_factory=Rules)
    policy: Policy = field(default_factory=NeverLate)
    checked: Callable[[Sequence[Job], Seen], Seen] = lambda jobs, seen: seen  # what jobs that ended well were to leave behind
    elapsed: Callable[[], float] = lambda: 0.0  # seconds on a clock that never goes back; without one a turn does all it has to
    _jobs: dict[str, Job] = field(default_factory=dict)  # of the place, not over
    _awaited: dict[str, Job] = field(default_factory=dict)  # of elsewhere, or over, for which some of them wait
    _damaged: dict[str, Damaged] = field(default_factory=dict)  # of the place, not over
    _left: LeftRunning = field(default_factory=LeftRunning)  # of jobs that are over
    _is_new: bool = True  # it has not read all jobs since it leads
    _mark: Mark = 0
    _lease: Lease | None = None
    _renewed: float = 0.0  # when, by `elapsed`
    _rival_lease: Lease | None = None  # of somebody else, as it was seen first
    _other_since: float = 0.0
    _reported: dict[tuple[str, int], str] = field(default_factory=dict)
    _unrecorded: list[str] = field(default_factory=list)  # what the record would not take in this turn
    _served: dict[tuple[str, str], float] = field(default_factory=dict)  # by team and owner: when one of theirs was last placed
    _aside: dict[str, tuple[int, float, str]] = field(
        default_factory=dict
    )  # by id: what version could not be changed, when, why
    _said_at: float = float("-inf")  # why jobs wait
    _clock: ClockSteps = field(default_factory=ClockSteps)

    def turn(self, now: float) -> Turn:
        renewed = self.elapsed()
        self._clock.hear(now, renewed, self._jobs)
        lease = self.record.lead(self.engine.place, self.holder, now, LEASE_S) or self._after_silence(now)
        if lease is None:
            self._lease = None
            return Turn(False)
        if self._lease is None or lease.epoch != self._lease.epoch:
            self._begin_anew()  # somebody else may have written
        self._lease, self._renewed = lease, renewed
        if self._read():  # deciding on half of the jobs would give out devices that the other half holds
            return Turn(True, live=len(self._jobs), behind=True)
        if self._is_new:
            self._left.find(self.record, self.engine)
            self._is_new = False
        now += self.elapsed() - renewed  # the record may have kept us waiting, and what is seen is of this moment
        damaged = tuple(str(one) for one in self._damaged.values())
        placed = [job for job in self._jobs.values() if job.phase is not Phase.QUEUED and job.phase.placed]
        unread = unacted(one.job for one in self._damaged.values() if one.job.phase.placed) + self._left.jobs
        try:
            seen = self.checked(placed, self.engine.look([*placed, *unread], now))
        except OutsideFailed as error:
            return Turn(True, live=len(self._jobs) + len(unread), trouble=(*damaged, str(error)))
        seen, lives = without(seen, unread)
        self._unrecorded = []
        try:
            acts = self._decided(seen, now)
            standing, written = self._write(acts, now)
            orders = [*self._left.ends(seen), *(order for act in standing for order in act.orders)]
            trouble, completed = self._carry_out(orders, now)
        except Deposed:
            self._lease = None
            return Turn(False)
        waits = [ready for job in self._clock.today(self._jobs).values() if (ready := job.ready_at(now)) > now]
        messages = (*damaged, *trouble, *self._unrecorded)
        return Turn(
            leads=True,
            written=written,
            ordered=completed,
            live=len(self._jobs) + lives,
            behind=completed < len(orders),
            looked=True,
            next_at=min(waits, default=None),
            trouble=messages,
        )

    def _decided(self, seen: Seen, now: float) -> list[Act]:
        """A job whose owner may not run it here stays where it is, and says so; what others wait for is said too, since each of
        them sees only a part of the queue."""
        owners = {job.spec.owner for job in self._jobs.values() if job.phase is Phase.QUEUED}
        permits = self.record.permits(self.engine.place, owners) if owners else None
        refused = refusals(self._jobs, permits) if permits is not None else {}
        aside = {id for id in list(self._aside) if id in self._jobs and self._is_aside(self._jobs[id], now)}
        jobs = self._clock.today(self._jobs)
        if permits is None and not aside:
            return self._as_recorded(step(jobs, seen, now, self._rules(), self.policy, self._awaited))
        kept = {id: self._jobs[id] for id in {*refused, *aside}}
        allowed = {id: job for id, job in jobs.items() if id not in kept}
        acts = step(allowed, seen, now, self._rules(), self.policy, {**self._awaited, **kept})
        acts += [
            Act(job, (Waiting(refused[id], Lack.PERMIT),))
            for id, job in kept.items()
            if id not in aside and job.waiting != refused[id]
        ]
        return self._as_recorded(acts if permits is None else acts + self._turns(allowed, seen, now, acts))

    def _turns(self, jobs: Mapping[str, Job], seen: Seen, now: float, acts: Sequence[Act]) -> list[Act]:
        """Now and then, why each that waits for devices does, where that has changed; at once where a right was missing and is
        there again."""
        due = abs(now - self._said_at) >= SAYS_EVERY_S
        busy = {act.job.id for act in acts if act.job is not None}
        waiting = [job for job in jobs.values() if job.phase is Phase.QUEUED and job.id not in busy]
        reasons: dict[str, str] = {}
        if due and seen.room.gpus is not None:
            self._said_at = now
            ready = [job for job in waiting if job.waiting != NO_PLACE and self._is_after_done(job)]
            changed = {act.job.id: _after_all(act.job, act.events, now) for act in acts if act.job is not None}
            placed = [one for job in jobs.values() if (one := changed.get(job.id, job)).phase.placed]
            reasons = why_each_waits([*placed, *ready], seen.room, self._rules(), now, SAYS_PLACES)
        changes: list[Act] = []
        for job in waiting:
            if (reason := reasons.get(job.id)) is not None and reason != job.waiting:
                changes.append(Act(job, (Waiting(reason, Lack.TURN),)))
            elif reason is None and job.lack is Lack.PERMIT:
                changes.append(Act(job, (Waiting(""),)))
        return changes

    def _rules(self) -> Rules:
        return replace(self.rules, served=self._served)

    def _is_after_done(self, job: Job) -> bool:
        before = (self._awaited.get(name) for name in job.spec.after)
        return all(one is not None and one.phase is Phase.DONE for one in before)

    def _as_recorded(self, acts: list[Act]) -> list[Act]:
        """Decided on times in the clock of today; what is written stands on the job as it is in the record."""
        return [act if act.job is None else replace(act, job=self._jobs[act.job.id]) for act in acts]

    def _after_silence(self, now: float) -> Lease | None:
        """Whoever leads renews the lease at every turn. One that nobody renewed for as long as a lease lasts, by a clock that
        never goes back, is a dead one's, whatever time a clock that was set back since wrote into it."""
        lease, elapsed = self.record.leader(self.engine.place), self.elapsed()
        if lease is None or lease != self._rival_lease:
            self._rival_lease, self._other_since = lease, elapsed
            return None
        if elapsed - self._other_since <= LEASE_S:
            return None
        self.record.resign(lease)
        return self.record.lead(self.engine.place, self.holder, now, LEASE_S)

    def resign(self) -> None:
        if self._lease is not None:
            self.record.resign(self._lease)
            self._lease = None

    def _begin_anew(self) -> None:
        self._jobs, self._awaited, self._damaged, self._mark = {}, {}, {}, 0
        self._is_new = True

    def _read(self) -> bool:
        """Takes over what others wrote; whether there is more."""
        try:
            changed, self._mark = self.record.changed(self._mark, self.engine.place, AT_ONCE)
        except MarkLost:
            self._begin_anew()
            return True
        for job in changed:
            self._take_over(job)
        if len(changed) >= AT_ONCE:
            return True
        awaited = {name for job in self._jobs.values() for name in job.spec.after} - self._jobs.keys()
        # Those that are not done are looked up each time: nobody tells us of them, and one that failed may be tried again.
        self._awaited = {name: job for name, job in self._awaited.items() if name in awaited and job.phase is Phase.DONE}
        if unknown := awaited - self._awaited.keys():  # who waits for one that cannot be read waits on
            self._awaited |= self.record.named(unknown)
        return False

    def _take_over(self, job: Job | Damaged) -> None:
        if isinstance(job, Damaged):
            self._keep_unread(job)
            return
        damaged = self._damaged.get(job.id)
        self._left.hear(damaged.job if damaged is not None else self._jobs.get(job.id), job)
        self._keep(job)

    def _read_again(self, id: str) -> None:
        """One that was changed and is not shown as such: its row may hold an old mark."""
        try:
            job: Job | Damaged | None = self.record.job(id)
        except Unread as error:
            job = error.damaged
        if job is not None:
            self._take_over(job)

    def _keep_unread(self, damaged: Damaged) -> None:
        self._jobs.pop(damaged.id, None)
        if damaged.job.phase.over:
            self._damaged.pop(damaged.id, None)
        else:
            self._damaged[damaged.id] = damaged

    def _keep(self, job: Job) -> None:
        self._damaged.pop(job.id, None)
        if job.attempts:
            owner, placed = (job.spec.team, job.spec.owner), job.attempts[-1].placed
            self._served[owner] = max(self._served.get(owner, placed), placed)
        if not job.phase.over:
            self._jobs[job.id] = job
            return
        self._jobs.pop(job.id, None)
        self._aside.pop(job.id, None)
        self._awaited[job.id] = job
        if (number := len(job.attempts)) and self._reported:
            self._reported.pop((job.id, number), None)

    def _write(self, acts: Sequence[Act], now: float) -> tuple[list[Act], int]:
        """Acts whose events stand. One that was decided on an old view is left for the next turn."""
        with_events = [act for act in acts if act.events and act.job is not None]
        changes = [Change(act.job, act.events) for act in with_events if act.job is not None]
        answers = self._recorded(changes, now) if changes else []
        stale: set[int] = set()
        for act, answer in zip(with_events, answers, strict=True):
            if isinstance(answer, Stale):
                stale.add(id(act))
                if act.job is not None:
                    self._read_again(act.job.id)
                    if isinstance(answer, Held):
                        self._unrecorded.append(str(answer))
                        self._set_aside(Change(act.job, act.events), now, str(answer))
            else:
                self._keep(answer)
        return [act for act in acts if id(act) not in stale], len(changes) - len(stale)

    def _recorded(self, changes: Sequence[Change], now: float) -> list[Job | Stale]:
        """What the record does not take of one job must not keep it from the others: a value that it cannot hold, or a row that
        is older than its events, which are never overwritten."""
        try:
            return self.record.write(changes, now, self._lease)
        except (TryLater, Deposed):
            raise
        except (BadInput, NotAllowed, Stale) as error:
            if len(changes) == 1:
                return [self._salvaged(changes[0], error, now)]
            return [answer for change in changes for answer in self._recorded([change], now)]
        except OutsideFailed as error:
            if len(changes) > 1:
                return [answer for change in changes for answer in self._recorded([change], now)]
            if self.record.lead(self.engine.place, self.holder, now, LEASE_S) is None:  # it fails, too, where the record does
                raise
            message = f"{changes[0].job.id}: {error}"
            self._unrecorded.append(message)
            self._set_aside(changes[0], now, message)
            return [Stale(message)]

    def _set_aside(self, change: Change, now: float, message: str) -> None:
        """One that waits or has ended, and of which nothing can be recorded, is left out for a while, so that it takes nobody's
        turn and keeps no devices."""
        if change.job.phase is Phase.QUEUED or any(isinstance(event, Ended) for event in change.events):
            self._aside[change.job.id] = (change.job.version, now, message)

    def _is_aside(self, job: Job, now: float) -> bool:
        version, since, message = self._aside[job.id]
        if version == job.version and abs(now - since) < ASIDE_S:
            self._unrecorded.append(message)
            return True
        del self._aside[job.id]
        return False

    def _salvaged(self, change: Change, error: ChipwiseError, now: float) -> Job | Stale:
        """What can be recorded of a change that the record does not take. A job that has ended gives back its devices whatever
        cannot be said of it; one that runs is ended, since nobody could follow it."""
        job = change.job
        message = f"{job.id}: {error}"
        self._unrecorded.append(message)
        if isinstance(error, Stale):
            return Stale(message)
        for events in salvage(job, change.events, str(error)):
            with suppress(BadInput, NotAllowed):
                [answer] = self.record.write([Change(job, events)], now, self._lease)
                return answer
        if job.phase.placed and isinstance(error, BadInput):
            with suppress(ChipwiseError):
                self.engine.do(End(job))
        self._set_aside(change, now, message)
        return Stale(message)

    def _carry_out(self, orders: Sequence[Order], now: float) -> tuple[list[str], int]:
        """As many as there is time for: the rest follows again from the record, after another look and a renewed lease."""
        begun, trouble = self.elapsed(), list[str]()
        for number, order in enumerate(orders):
            if number and self.elapsed() - begun > DOING_S:
                return trouble, number
            self._renew()
            if (message := self._do(order, now)) is not None:
                trouble.append(message)
        return trouble, len(orders)

    def _renew(self) -> None:
        """Before an order that is given long after the lease was renewed: whoever was stopped or slow meanwhile may have been
        replaced, and orders nothing more."""
        begun, lease = self.elapsed(), self._lease
        late_s = begun - self._renewed
        if late_s <= RENEWS_S or lease is None:
            return
        renewed = self.record.lead(self.engine.place, self.holder, lease.until - LEASE_S + late_s, LEASE_S)
        if renewed is None or renewed.epoch != lease.epoch:
            raise Deposed(f"{lease.holder} (epoch {lease.epoch}) does not lead {lease.place} any more.")
        self._lease, self._renewed = renewed, begun

    def _do(self, order: Order, now: float) -> str | None:
        try:
            self.engine.do(order)
        except TryLater as error:
            return self._note(order, now, str(error))
        except (BadInput, NotFound, NotAllowed) as error:  # it will not get better by itself
            if isinstance(order, Start):
                return self._refused(order.job, now, str(error))
            return str(error)
        except ChipwiseError as error:
            return self._note(order, now, str(error))
        return None

    def _note(self, order: Order, now: float, text: str) -> str:
        """Once for each reason, in the job's story."""
        job = order.job if isinstance(order, Start | Leave) else None
        if job is not None and self._reported.get((job.id, len(job.attempts))) != text:
            self._reported[(job.id, len(job.attempts))] = text
            self._change(job.id, lambda held: (Told(len(held.attempts), text),), now)
        return text

    def _refused(self, job: Job, now: float, reason: str) -> str:
        """A start that its engine cannot do, whoever asks."""
        sight = Sight(State.EXITED, NEVER_STARTED, reason)
        self._change(job.id, lambda held: recovery.after_end(held, sight, now), now)
        return reason

    def _change(self, id: str, events: Callable[[Job], tuple[Event, ...]], now: float) -> None:
        job = self._jobs.get(id)
        if job is None:
            return
        [answer] = self._recorded([Change(job, events(job))], now)
        if isinstance(answer, Job):
            self._keep(answer)


def _after_all(job: Job, events: Sequence[Event], now: float) -> Job:
    for event in events:
        job = after(job, event, now)
    return job
