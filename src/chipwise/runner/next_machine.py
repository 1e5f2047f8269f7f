"""Where the next attempt goes, and on how many machines: by the policy's word, by what was lost before, and by what can be had.

After a loss the moves of `Spec.recover` are tried in their order. A move is passed over while the places that it leads to are
unlucky: lost twice in a row, or without a machine. Where all are, the one that was tried longest ago is next. What was tried
with more machines says nothing of fewer, so that a place that could not give four may give two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf

from chipwise.catalog.offer import Purchase
from chipwise.runner.comparing import number
from chipwise.runner.job import Attempt, Job, MachinePlace, Move, Outcome, Retry, Spec
from chipwise.runner.policy import Decision, Policy, Standing

LOST_IN_A_ROW = 2  # at one place, after which another is tried first
NO_MACHINE_S = Retry().no_machine_s  # unless a job says otherwise
FORGOTTEN_S = 3600.0  # after which more machines, or spot ones, may have come back: waiting for them in vain costs NO_MACHINE_S
RESTART_S = 300.0  # to get a machine, boot, load and redo what was not saved, where nobody measured it


def decision(
    job: Job, policy: Policy, now: float, offers: Sequence[MachinePlace] | None = None, steps: int | None = None
) -> Decision | None:
    """None where the job's places leave nothing to decide. `steps`: those that the attempt under way need not repeat."""
    if not any(one.purchase is Purchase.SPOT for one in job.spec.places):
        return None
    places = to_be_had(job, offers)
    attempt = job.attempt
    purchase = attempt.where.purchase if attempt is not None and attempt.ended is None else None  # what it has it need not find
    prices = {one.purchase: one.usd_per_hour for one in reversed(places)}
    return policy.decide(
        Standing(
            now=now,
            rest_s=rest_s(job, steps),
            deadline=job.spec.deadline,
            purchase=purchase,
            spot=purchase is Purchase.SPOT or any(one.purchase is Purchase.SPOT for one in places),
            on_demand=purchase not in (None, Purchase.SPOT) or any(one.purchase is not Purchase.SPOT for one in places),
            restart_s=restart_s(job.spec),
            usd_per_hour_spot=prices.get(Purchase.SPOT),
            usd_per_hour_on_demand=prices.get(Purchase.ON_DEMAND),
            job=job,
        )
    )


def restart_s(spec: Spec) -> float:
    told = number(spec.predicted.get("restart_s"))
    return RESTART_S if told is None else told


def rest_s(job: Job, steps: int | None = None) -> float | None:
    """What is left of the expected time, by the steps that need not be repeated where a total is known, else all of it.
    On fewer machines than wanted it takes longer in proportion, which is the most that it can."""
    if job.spec.expected_s is None:
        return None
    total = number(job.spec.predicted.get("steps"))
    reached = max((_saved_steps(one) for one in job.attempts), default=0)
    share = max(reached, steps or 0) / total if total else 0.0
    return job.spec.expected_s * max(1.0 - share, 0.0) * max(job.spec.needs.machines, 1) / job.machines


@dataclass(frozen=True, slots=True)
class PlacingChoice:
    place: MachinePlace
    machines: int
    reason: str


def place(
    job: Job, policy: Policy, now: float, offers: Sequence[MachinePlace] | None = None
) -> tuple[MachinePlace, str] | None:
    """Where, and why there; None: wait."""
    choice = choose(job, policy, now, offers)
    return None if choice is None else (choice.place, choice.reason)


def choose(job: Job, policy: Policy, now: float, offers: Sequence[MachinePlace] | None = None) -> PlacingChoice | None:
    """Where, on how many machines, and why so; None: wait."""
    decided = decision(job, policy, now, offers)
    if decided is Decision.WAIT:
        return None
    places = _open(job, decided, to_be_had(job, offers), now) if job.spec.places else [MachinePlace()]
    if not places:
        return None
    count = _wanted(job, now)
    best, fits = _best(job, places, count)
    if not fits and _may_be_fewer(job, count):
        previous = job.attempts[-1]
        # Where nobody says how many could be had, half is found soon. Of those that ran, one is gone as far as is known.
        fewer = (
            previous.machines - 1
            if previous.begun is not None
            else previous.machines // 2
            if previous.came is None
            else previous.came
        )
        count = max(fewer, job.spec.needs.fewest_machines)
        best, _ = _best(job, places, count)
    reasons = (_moved(job, best, places), f"policy: {decided}" if decided is not None else "", _counted(job, count))
    return PlacingChoice(best, count, "; ".join(filter(None, reasons)))


def _open(job: Job, decided: Decision | None, places: list[MachinePlace], now: float) -> list[MachinePlace]:
    """Places of the kind that the policy wants, and of the other where it has none. Where nobody set a deadline, waiting on is
    not the policy's word but want of another: then the other kind is open too, if it may be tried, once no machine came."""
    recover, last = job.spec.recover, job.attempt
    if decided is None:
        return [one for one in places if last is None or _may(relation(last.where, one), recover)]
    wanted = [one for one in places if (one.purchase is Purchase.SPOT) == (decided is Decision.SPOT)]
    if not wanted:
        return places
    near = [
        place
        for place in wanted
        if last is None or relation(last.where, place) is Move.PURCHASE or _may(relation(last.where, place), recover)
    ]
    if Move.PURCHASE not in recover or job.spec.deadline is not None or not barren(job, near, now):
        return near
    return near + [one for one in places if one not in wanted]


def _may(move: Move, recover: Sequence[Move]) -> bool:
    """To stay where it was is never forbidden."""
    return move is Move.SAME or move in recover


def barren(job: Job, places: Sequence[MachinePlace], now: float) -> bool:
    """Whether all of them were tried of late, and no machine came at any."""
    latest = [next(iter(_attempts_in(one, reversed(job.attempts))), None) for one in places]
    return all(
        one is not None and one.begun is None and one.ended is not None and now - one.ended < FORGOTTEN_S for one in latest
    )


def _best(job: Job, places: Sequence[MachinePlace], count: int) -> tuple[MachinePlace, bool]:
    """The best place, and whether it is one that comes before taking fewer machines."""
    attempts = [one for one in job.attempts if one.machines <= count]
    unlucky = {one: moment for one in places if (moment := _unlucky(one, attempts)) is not None}
    recover, last = job.spec.recover, job.attempt

    def rank(one: MachinePlace) -> int:
        move = relation(last.where, one) if last is not None else Move.SAME
        return recover.index(move) if move in recover else len(recover)

    best = min(places, key=lambda one: (unlucky.get(one, -inf), rank(one)))  # the first of equals: in the order asked for
    lost = last is not None and last.outcome in (Outcome.LOST, Outcome.LEFT)
    before = not lost or Move.FEWER not in recover or rank(best) < recover.index(Move.FEWER)
    return best, before and best not in unlucky


def _may_be_fewer(job: Job, count: int) -> bool:
    last = job.attempt
    return (
        last is not None
        and Move.FEWER in job.spec.recover
        and count == last.machines > job.spec.needs.fewest_machines
        and last.outcome in (Outcome.LOST, Outcome.LEFT)
    )


def _wanted(job: Job, now: float) -> int:
    """As many machines as last time; all again when it is long enough since more of them were lost or did not come, or when
    its owner starts it anew."""
    needs, last = job.spec.needs, job.attempt
    if last is None or not job.counted or needs.fewest_machines >= needs.machines or last.machines >= needs.machines:
        return needs.machines
    larger = [one.ended for one in job.attempts if one.machines > last.machines and one.ended is not None]
    again = Move.MORE in job.spec.recover and now - max(larger, default=-inf) >= FORGOTTEN_S
    return needs.machines if again else max(last.machines, needs.fewest_machines)


def relation(last: MachinePlace, place: MachinePlace) -> Move:
    """How far it is from one place to another. What a place leaves open is the same."""
    if last.purchase is not place.purchase:
        return Move.PURCHASE
    pairs = (last.provider, place.provider), (last.region, place.region), (last.zone, place.zone), (last.machine, place.machine)
    equal = [not one or not two or one == two for one, two in pairs]
    return Move.SAME if all(equal) else Move.ZONE if equal[0] and equal[1] else Move.REGION


_MOVED = {Move.ZONE: "another zone", Move.REGION: "another region", Move.PURCHASE: "another purchase option"}


def _moved(job: Job, best: MachinePlace, places: Sequence[MachinePlace]) -> str:
    """Why not where it was."""
    last = job.attempt
    if last is None or (move := relation(last.where, best)) not in _MOVED:
        return ""
    was, name = _site(last.where), last.where.zone or last.where.region or last.where.machine or "its place"
    if move is Move.ZONE and last.where.zone == best.zone:
        return f"another machine, since {last.where.machine} was lost or did not come"
    if last.outcome not in (Outcome.LOST, Outcome.LEFT):
        cause = ""
    elif last.begun is None:
        cause = f"no machine came in {name}"
    elif _unlucky(was, job.attempts) is not None:
        cause = f"{name} was lost {LOST_IN_A_ROW} times in a row"
    elif all(relation(one, was) is not Move.SAME for one in places):
        cause = "" if move is Move.PURCHASE else f"{name} has none now"
    else:
        cause = f"{name} was lost"
    return f"{_MOVED[move]}, since {cause}" if cause else ""


def _counted(job: Job, count: int) -> str:
    wanted, last = job.spec.needs.machines, job.attempt
    if count >= wanted:
        return f"all {wanted} machines again" if last is not None and last.machines < wanted and job.spec.needs.elastic else ""
    if last is None or count >= last.machines:
        return f"continues with {count} of {wanted} machines"
    cause = "no more came" if last.begun is None else "of them some were lost"
    return f"continues with {count} of {wanted} machines, since {cause}"


def to_be_had(job: Job, offers: Sequence[MachinePlace] | None) -> list[MachinePlace]:
    """The job's places that are on offer, at today's price."""
    if offers is None:
        return list(job.spec.places)
    prices = {_site(one): one.usd_per_hour for one in offers}
    return [
        place if prices[_site(place)] is None else replace(place, usd_per_hour=prices[_site(place)])
        for place in job.spec.places
        if _site(place) in prices
    ]


def _site(where: MachinePlace) -> MachinePlace:
    """A place whatever it costs today."""
    return replace(where, usd_per_hour=None)


def _attempts_in(place: MachinePlace, attempts: Iterable[Attempt]) -> list[Attempt]:
    """Those that were there. An attempt knows the zone that it got, where its place left that open."""
    return [one for one in attempts if relation(one.where, place) is Move.SAME]


def _unlucky(place: MachinePlace, attempts: Sequence[Attempt]) -> float | None:
    """Of a place whose latest attempts were all lost, or found no machine: when it was tried last; the longest ago is next."""
    earlier = _attempts_in(place, attempts)
    lost = [one.outcome in (Outcome.LOST, Outcome.LEFT) for one in earlier[-LOST_IN_A_ROW:]]
    if lost and lost[-1] and (earlier[-1].begun is None or (len(lost) == LOST_IN_A_ROW and all(lost))):
        return earlier[-1].placed
    return None


def _saved_steps(attempt: Attempt) -> int:
    return (attempt.saved if attempt.saved is not None else attempt.step) or 0
