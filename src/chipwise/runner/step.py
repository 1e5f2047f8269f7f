"""The decision: what is wanted, compared with what is seen. Pure, so that any moment can be played through in a test.

Each `Act` is carried out in this order: its events are recorded, then its orders are given. A controller that dies in between
loses nothing, since every order follows again from the record and from what is seen. Nothing is taken for gone until the
engine says so: an attempt that may still run is never started a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from chipwise.catalog.offer import Purchase
from chipwise.runner import next_machine, recovery
from chipwise.runner.engine import Clear, End, Leave, Order, Seen, Sight, Start, State
from chipwise.runner.events import Again, Begun, Event, Leaving, Over, Placed, Told, Waiting, after
from chipwise.runner.job import Job, Lack, LeaveReason, MachinePlace, Move, Phase, Wish
from chipwise.runner.named_policies import NamedPolicies
from chipwise.runner.policy import Decision, NeverLate, Policy
from chipwise.runner.queue import Rules, admit, grown
from chipwise.runner.reservation import Seat
from chipwise.text import spent

ABSENT = Sight(State.ABSENT)
UNREAD = "which comes before, cannot be read in the database"
NO_PLACE = "none of its places has a suitable machine now"


@dataclass(frozen=True, slots=True)
class Act:
    job: Job | None
    events: tuple[Event, ...] = ()
    orders: tuple[Order, ...] = ()


def step(
    jobs: Mapping[str, Job],
    seen: Seen,
    now: float,
    rules: Rules | None = None,
    policy: Policy | None = None,
    elsewhere: Mapping[str, Job] | None = None,
) -> list[Act]:
    """`jobs`: all of one place that are not over. `elsewhere`: those of other places, or over, that some of them wait for."""
    policy, elsewhere = policy or NeverLate(), elsewhere or {}
    acts: list[Act] = []
    placed: list[Job] = []
    queued: list[Job] = []
    for job in jobs.values():
        if job.phase is not Phase.QUEUED:
            if job.phase.placed:
                if not _is_free(job, seen):
                    placed.append(job)
                if (act := _placed(job, seen, now, policy)) is not None:
                    acts.append(act)
        else:  # of most, where there are many
            before = [jobs.get(name) or elsewhere.get(name) for name in job.spec.after]
            if (act := _not_now(job, before)) is not None:
                acts.append(act)
            elif all(one is not None and one.phase is Phase.DONE for one in before):
                queued.append(job)
            elif (act := _unread(job, before)) is not None:
                acts.append(act)
    starts = list(_starts(queued, placed, seen, now, rules or Rules(), policy))
    if not starts and not any(act.events or act.orders for act in acts):  # growing is for quiet moments
        acts += _grows(placed, queued, seen, now, rules or Rules())
    acts += starts
    acts += [Act(None, orders=(Clear(handle),)) for handle in seen.strays]
    acts += [Act(None, orders=(cordon,)) for cordon in seen.cordons]
    return [act for act in acts if act.events or act.orders]


# Of one that holds devices.


def _is_free(job: Job, seen: Seen) -> bool:
    """Whether its program has ended, and only what it made is still looked for: its devices are for others, however long a
    store takes to answer."""
    sight = seen.attempts.get((job.id, job.attempts[-1].number))
    return sight is not None and sight.ended


def _placed(job: Job, seen: Seen, now: float, policy: Policy) -> Act | None:
    attempt = job.attempts[-1]
    sight = seen.attempts.get((job.id, attempt.number), ABSENT)
    match sight.state:
        case State.EXITED | State.LOST:
            events = recovery.after_end(job, sight, now)
            return Act(job, (*_compared(job, events, now, policy), *events), _clearing(sight, events))
        case State.ABSENT:
            if job.phase is not Phase.STARTING:
                return Act(job, recovery.after_end(job, sight, now))
            if job.wish.stops:  # decided on, and never begun
                return Act(job, recovery.after_end(job, sight, now), (End(job),))
            return Act(job, orders=(Start(job),))
        case State.PENDING | State.RUNNING:
            return _under_way(job, sight, seen.offers, now, policy)


def _under_way(job: Job, sight: Sight, offers: Sequence[MachinePlace] | None, now: float, policy: Policy) -> Act | None:
    """One that waits for its machines has nothing to save: it is ended at once where another is asked to leave."""
    attempt, pending = job.attempts[-1], sight.state is State.PENDING
    begun = Begun(number=attempt.number, handle=sight.handle, at=sight.since, held=sight.held_since, where=sight.place)
    events: tuple[Event, ...] = (begun,) if job.phase is Phase.STARTING and not pending else ()
    events = (*events, *(() if pending else recovery.resumed(job, sight)))
    if job.wish is Wish.END and job.leaving is not LeaveReason.END:  # whatever grace it had until now
        return Act(job, (*events, Leaving(attempt.number, now, LeaveReason.END, "requested by its owner")), (End(job),))
    if job.phase is Phase.LEAVING:
        assert job.leave_by is not None
        overstays = now >= job.leave_by if sight.overstays is None else sight.overstays
        late = pending or overstays or job.leaving is LeaveReason.END
        deadline = now + job.spec.grace_s
        if (
            not late and job.leave_by > deadline and job.leaving not in (None, LeaveReason.NOTICE)
        ):  # no grace is longer than its own
            anew = Leaving(attempt.number, deadline, job.leaving, "the clock was set back")
            return Act(job, (anew,), (Leave(job, deadline, str(job.leaving)),))
        return Act(job, orders=(End(job) if late else Leave(job, job.leave_by, str(job.leaving)),))
    unpaid = job.spec.budget_usd is not None and attempt.begun is None and (not pending or sight.held_since is not None)
    paid = after(job, begun, now) if unpaid else job  # machines cost before they work
    departure = None if sight.ended else _leaves(paid, sight, now) or _moves(job, sight, offers, now, policy)
    if departure is not None:
        cause, deadline, reason = departure
        leaving = Leaving(
            number=attempt.number, by=now if pending else deadline, why=cause, reason=reason, came=sight.machines_arrived
        )
        return Act(job, (*events, leaving), (End(job) if pending else Leave(job, deadline, reason),))
    # A service may serve with some of its replicas, and say why not with all.
    lacks = (job.spec.service or sight.ended) and not events
    waiting = sight.reason if pending or lacks else ""
    if events or waiting == job.waiting:
        return Act(job, events)
    well = (
        "it passes its health check" if job.lack is Lack.CHECK else "the trouble is over: its replicas serve, or are starting"
    )
    again = () if waiting or pending or not job.spec.service else (Told(attempt.number, well),)
    return Act(job, (Waiting(waiting, sight.lack if waiting else None), *again))


def _leaves(job: Job, sight: Sight, now: float) -> tuple[LeaveReason, float, str] | None:
    """Whether it must go, until when, and the reason in words."""
    spec, attempt, grace = job.spec, job.attempts[-1], now + job.spec.grace_s
    pending = sight.state is State.PENDING
    if job.wish.stops:
        return LeaveReason.WISH, grace, "requested by its owner"
    if sight.leave_by is not None:
        return LeaveReason.NOTICE, sight.leave_by, sight.reason or "its machine is being removed"
    lasted_s = now - attempt.begun if sight.lasted_s is None and attempt.begun is not None else sight.lasted_s
    if spec.longest_s is not None and not pending and lasted_s is not None and lasted_s > spec.longest_s:
        return LeaveReason.OVERDUE, grace, f"one attempt may take {spec.longest_s:g} s"
    if spec.budget_usd is not None and job.usd(grace) >= spec.budget_usd:  # leaving costs too
        return (
            LeaveReason.BUDGET,
            grace,
            f"{spent(job.usd(now))} of {spent(spec.budget_usd)} are spent, and exiting takes a while",
        )
    fewer = spec.needs.fewest_machines < job.machines and Move.FEWER in spec.recover
    elsewhere = len(spec.places) > 1 or fewer
    in_vain = sight.held_since is None or (fewer and sight.machines_arrived is not None)
    if pending and in_vain and elsewhere and now - attempt.placed > spec.retry.no_machine_s:
        count = f"{sight.machines_arrived} of {job.machines} machines" if sight.machines_arrived else "no machine"
        return LeaveReason.MOVE, grace, f"{count} came in {now - attempt.placed:.0f} s"
    return None


def _moves(
    job: Job, sight: Sight, offers: Sequence[MachinePlace] | None, now: float, policy: Policy
) -> tuple[LeaveReason, float, str] | None:
    """Whether the policy wants it on machines of the other kind. It is asked at every look."""
    purchase, grace = job.attempts[-1].where.purchase, now + job.spec.grace_s
    if purchase not in (Purchase.SPOT, Purchase.ON_DEMAND):
        return None
    decided = next_machine.decision(job, policy, now, offers, sight.saved if sight.saved is not None else sight.step)
    if purchase is Purchase.SPOT and decided is Decision.ON_DEMAND:
        return LeaveReason.MOVE, grace, "the deadline needs non-spot machines"
    known = offers is not None or job.spec.deadline is not None  # else it is here because there was no spot machine
    if purchase is Purchase.ON_DEMAND and decided is Decision.SPOT and sight.state is State.RUNNING and known:
        spot = [one for one in next_machine.to_be_had(job, offers) if one.purchase is Purchase.SPOT]
        if next_machine.barren(job, spot, now):  # on offer, and yet none came
            return None
        return LeaveReason.MOVE, grace, "there is enough time for spot machines"
    return None


def _compared(job: Job, events: Sequence[Event], now: float, policy: Policy) -> tuple[Event, ...]:
    """At the end of a job with a policy of its own: what that policy saved or cost."""
    if not job.spec.policy or not isinstance(policy, NamedPolicies):
        return ()
    if not any(isinstance(event, Over) and event.phase is Phase.DONE for event in events):
        return ()
    from chipwise.runner.spot_choices import comparison  # few jobs have one, and it computes with arrays

    sentence = comparison(job, policy.lookup(job.spec.policy), now, next_machine.restart_s(job.spec))
    return (Told(len(job.attempts), sentence),)


def _clearing(sight: Sight, events: Iterable[Event]) -> tuple[Order, ...]:
    goes_on = any(isinstance(event, Again) for event in events)
    return (Clear(sight.handle, goes_on),) if sight.handle else ()


# Of one that waits.


def _not_now(job: Job, before: Iterable[Job | None]) -> Act | None:
    """What ends a job before it runs."""
    if job.wish.stops:
        return Act(job, (Over(Phase.STOPPED, "on request"),))
    if fault := job.spec.needs.fault:  # an older chipwise let it in
        return Act(job, (Over(Phase.FAILED, fault),))
    for predecessor in before:
        if predecessor is not None and predecessor.phase in (Phase.FAILED, Phase.STOPPED):
            ending = "failed" if predecessor.phase is Phase.FAILED else "was stopped"
            return Act(job, (Over(Phase.FAILED, f"{predecessor.spec.name} {ending} before it ({predecessor.id})"),))
    if job.spec.budget_usd is not None and job.attempts and job.usd(0.0) >= job.spec.budget_usd:
        return Act(job, (Over(Phase.FAILED, f"{spent(job.usd(0.0))} of {spent(job.spec.budget_usd)} are spent"),))
    return None


def _unread(job: Job, before: Sequence[Job | None]) -> Act | None:
    """Why it waits on, where what it waits for is damaged or gone; nobody can say that it was done."""
    missing = [name for name, one in zip(job.spec.after, before, strict=True) if one is None]
    reason = f"{', '.join(missing)}, {UNREAD}" if missing else ""
    if reason == job.waiting or not (reason or job.lack is Lack.PREDECESSOR):
        return None
    return Act(job, (Waiting(reason, Lack.PREDECESSOR if reason else None),))


def _starts(
    queued: Sequence[Job], placed: Sequence[Job], seen: Seen, now: float, rules: Rules, policy: Policy
) -> Iterable[Act]:
    """Where devices are ours the queue gives them out; elsewhere the engine's own queue does."""
    own = seen.room.gpus is not None or seen.room.cpus is not None
    if own:
        seats = admit([*placed, *queued], seen.room, rules, now)
    else:
        seats = [Seat(job, (), ()) for job in queued if job.ready_at(now) <= now]
    for seat in seats:
        job = seat.job
        if (choice := next_machine.choose(job, policy, now, seen.offers)) is not None:
            reason = "; ".join(filter(None, (seat.short, choice.reason)))
            event = Placed(
                number=len(job.attempts) + 1,
                where=choice.place,
                devices=seat.gpus,
                cpus=seat.cpus,
                machines=choice.machines,
                reason=reason,
            )
            yield Act(job, (event,), (Start(after(job, event, now)),))
        elif job.waiting != NO_PLACE:
            yield Act(job, (Waiting(NO_PLACE),))


# Of one that could have more.


def _grows(placed: Sequence[Job], queued: Sequence[Job], seen: Seen, now: float, rules: Rules) -> Iterable[Act]:
    """Only one that told of a checkpoint is moved for more GPUs: another would begin anew."""

    def worth(job: Job, gpus: int) -> bool:
        sight = seen.attempts.get((job.id, len(job.attempts)), ABSENT)
        if sight.state is not State.RUNNING or sight.saved is None:
            return False
        rest, has = next_machine.rest_s(job, sight.saved), len(job.attempts[-1].devices)
        if rest is None or not has:
            return True
        return rest * job.spec.needs.gpus * (1.0 / has - 1.0 / gpus) > next_machine.restart_s(job.spec)

    if seen.room.gpus is None or (growth := grown(placed, queued, seen.room, rules, now, worth)) is None:
        return
    job, gpus = growth
    extra, deadline = gpus - len(job.attempts[-1].devices), now + job.spec.grace_s
    are = "1 more GPU is" if extra == 1 else f"{extra} more GPUs are"
    reason = f"{are} free: it continues with {gpus} of {job.spec.needs.gpus}"
    yield Act(job, (Leaving(len(job.attempts), deadline, LeaveReason.MOVE, reason),), (Leave(job, deadline, reason),))
