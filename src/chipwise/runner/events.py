"""What happens to a job, and how it changes it. The record keeps events and never changes one; a job is what they add up to.

`after(job, event)` is the only way in which a job changes, so that the state beside the events can always be made from them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from chipwise.runner.job import Attempt, Job, Lack, LeaveReason, MachinePlace, Outcome, Phase, Spec, Wish


@dataclass(frozen=True, slots=True)
class Submitted:
    """The first event of every job."""

    spec: Spec


@dataclass(frozen=True, slots=True)
class Wished:
    """Its owner wants something else of it. RUN of a job that is over starts it again with a clean slate."""

    wish: Wish
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why it does not run yet; written when the reason changes."""

    reason: str
    lack: Lack | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """An attempt is decided on. It is recorded before the engine is asked, so that a start is never forgotten."""

    number: int
    where: MachinePlace
    devices: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    machines: int = 1
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Begun:
    number: int
    handle: str = ""
    at: float | None = None  # when it really began; None: when the event was written
    held: float | None = None  # when its machines came, where it waited for them
    where: MachinePlace | None = None  # the machine that it really got


@dataclass(frozen=True, slots=True)
class Told:
    """Something for its story that decides nothing: what an engine saw, what a policy thought."""

    number: int
    text: str
    resumed: int | None = None  # the step of the checkpoint that its program loaded, where that is what is told


@dataclass(frozen=True, slots=True)
class Leaving:
    """It was asked to save and go, until `by`."""

    number: int
    by: float
    why: LeaveReason
    reason: str = ""
    came: int | None = None  # of its machines, where it waited for the others in vain


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt is over, and nothing of it is left."""

    number: int
    outcome: Outcome
    code: int | None = None
    reason: str = ""
    step: int | None = None
    at: float | None = None  # when it really ended; None: when the event was written
    saved: int | None = None
    held: float | None = None  # when its machines came, where it was lost before it began


@dataclass(frozen=True, slots=True)
class Again:
    """It goes back to the queue."""

    not_before: float
    reason: str


@dataclass(frozen=True, slots=True)
class Over:
    phase: Phase
    reason: str
    at: float | None = None  # when its last attempt ended, where that ends the job; None: when the event was written


@dataclass(frozen=True, slots=True)
class Measured:
    """What was predicted and what happened, for calibrating and for the ledger."""

    predicted: dict[str, object]
    measured: dict[str, object]
    whole: bool = True  # its work was done to the end; else its time and cost are those of a part


Event = Submitted | Wished | Waiting | Placed | Begun | Told | Leaving | Ended | Again | Over | Measured


class Impossible(ValueError):
    """An event that cannot follow: a mistake of ours, or of somebody who writes with an old view."""


def first(id: str, event: Submitted, at: float) -> Job:
    return Job(id, event.spec, at, version=1)


def after(job: Job, event: Event, at: float) -> Job:
    changed = _changed(job, event, at)
    return replace(changed, version=job.version + 1)


def _changed(job: Job, event: Event, moment: float) -> Job:
    match event:
        case Submitted():
            raise Impossible(f"{job.id} was submitted already")
        case Wished(wish, _, _):
            if wish is Wish.RUN and job.phase.over:
                return replace(
                    job,
                    wish=wish,
                    phase=Phase.QUEUED,
                    not_before=moment,
                    ended=None,
                    reason="",
                    waiting="",
                    lack=None,
                    forgiven=len(job.attempts),
                )
            return replace(job, wish=wish)
        case Waiting(reason, lack):
            if job.phase.over:
                raise Impossible(f"{job.id} is {job.phase}, and waits for nothing")
            return replace(job, waiting=reason, lack=lack)
        case Placed(number, place, devices, cpus, machines, _):
            if job.phase is not Phase.QUEUED or number != len(job.attempts) + 1:
                raise Impossible(f"{job.id} is {job.phase} with {len(job.attempts)} attempts; number {number} cannot start")
            attempt = Attempt(number=number, where=place, devices=devices, cpus=cpus, machines=machines, placed=moment)
            return replace(job, phase=Phase.STARTING, attempts=(*job.attempts, attempt), waiting="", lack=None)
        case Begun(number, handle, begun, held_since, place):
            phase = Phase.RUNNING if job.phase is Phase.STARTING else job.phase
            fields: dict[str, object] = {"begun": moment if begun is None else begun, "held": held_since, "handle": handle}
            if place is not None:
                fields["where"] = place
            return replace(_with_attempt(job, number, **fields), phase=phase, waiting="", lack=None)
        case Told(number, _, int(resumed)):
            return _with_attempt(job, number, resumed=resumed)
        case Told() | Measured():
            return job
        case Leaving(number, deadline, cause, _, arrived):
            return replace(_with_attempt(job, number, came=arrived), phase=Phase.LEAVING, leave_by=deadline, leaving=cause)
        case Ended(number, outcome, code, reason, step, ended, saved, held_since):
            fields = {"ended": moment if ended is None else ended, "outcome": outcome, "code": code, "reason": reason}
            fields |= {"step": step, "saved": saved}
            if held_since is not None:
                fields["held"] = held_since
            return replace(_with_attempt(job, number, **fields), phase=Phase.QUEUED, lack=None, leave_by=None, leaving=None)
        case Again(not_before, reason):
            if job.phase is not Phase.QUEUED:
                raise Impossible(f"{job.id} is {job.phase}; only one without an attempt under way goes back to the queue")
            return replace(job, not_before=not_before, waiting=reason, lack=None)
        case Over(phase, reason, ended):
            if job.phase is not Phase.QUEUED or not phase.over:
                raise Impossible(f"{job.id} is {job.phase}; it cannot be over as {phase}")
            at = moment if ended is None else ended
            return replace(job, phase=phase, ended=at, reason=reason, waiting="", lack=None)


def _with_attempt(job: Job, number: int, **change: object) -> Job:
    """The job with its current attempt changed. Any other attempt is over, and what is told of it comes too late."""
    attempt = job.attempt
    if attempt is None or attempt.number != number or not job.phase.placed:
        raise Impossible(f"{job.id} has no attempt {number} under way")
    return replace(job, attempts=(*job.attempts[:-1], replace(attempt, **change)))  # type: ignore[arg-type]
