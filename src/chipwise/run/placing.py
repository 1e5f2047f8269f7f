"""Where the next attempt goes: by the policy's word, by what was lost before, and by what can be had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from chipwise.catalog.offer import Purchase
from chipwise.run.job import Attempt, Job, Outcome, Where
from chipwise.run.policy import Decision, Policy, Standing

LOST_IN_A_ROW = 2  # at one place, after which another is tried first
NO_MACHINE_S = 600.0  # without a machine, after which another place is tried
RESTART_S = 300.0  # to get a machine, boot, load and redo what was not saved, where nobody measured it


def decision(
    job: Job, policy: Policy, now: float, offers: Sequence[Where] | None = None, done: int | None = None
) -> Decision | None:
    """None where the job's places leave nothing to decide. `done`: steps that the attempt under way need not repeat."""
    if not any(one.purchase is Purchase.SPOT for one in job.spec.places):
        return None
    there = to_be_had(job, offers)
    attempt = job.attempt
    on = attempt.where.purchase if attempt is not None and attempt.ended is None else None  # what it has it need not find
    prices = {one.purchase: one.usd_per_hour for one in reversed(there)}
    return policy.decide(
        Standing(
            now=now,
            rest_s=rest_s(job, done),
            deadline=job.spec.deadline,
            on=on,
            spot=on is Purchase.SPOT or any(one.purchase is Purchase.SPOT for one in there),
            on_demand=on not in (None, Purchase.SPOT) or any(one.purchase is not Purchase.SPOT for one in there),
            restart_s=restart_s(job),
            usd_per_hour_spot=prices.get(Purchase.SPOT),
            usd_per_hour_on_demand=prices.get(Purchase.ON_DEMAND),
        )
    )


def restart_s(job: Job) -> float:
    told = _number(job.spec.predicted.get("restart_s"))
    return RESTART_S if told is None else told


def rest_s(job: Job, done: int | None = None) -> float | None:
    """What is left of the expected time, by the steps that need not be repeated where a total is known, else all of it."""
    if job.spec.expected_s is None:
        return None
    total = _number(job.spec.predicted.get("steps"))
    reached = max((_kept(one) for one in job.attempts), default=0)
    share = max(reached, done or 0) / total if total else 0.0
    return job.spec.expected_s * max(1.0 - share, 0.0)


def place(job: Job, policy: Policy, now: float, offers: Sequence[Where] | None = None) -> tuple[Where, str] | None:
    """Where, and why there; None: wait."""
    if not job.spec.places:
        return Where(), ""
    decided = decision(job, policy, now, offers)
    if decided is Decision.WAIT:
        return None
    there = to_be_had(job, offers)
    if decided is not None:
        wanted = [one for one in there if (one.purchase is Purchase.SPOT) == (decided is Decision.SPOT)]
        there = wanted or there
    if not there:
        return None
    unlucky = _unlucky(job.attempts)
    best = min(there, key=lambda one: unlucky.get(_site(one), -inf))  # the first of equals: in the order asked for
    first = there[0].zone or there[0].region or there[0].machine
    moved = f"not {first}, which was lost or had no machine" if best != there[0] else ""
    return best, "; ".join(filter(None, (moved, f"policy: {decided}" if decided is not None else "")))


def to_be_had(job: Job, offers: Sequence[Where] | None) -> list[Where]:
    """The job's places that are on offer, at today's price."""
    if offers is None:
        return list(job.spec.places)
    prices = {_site(one): one.usd_per_hour for one in offers}
    return [
        one if prices[_site(one)] is None else replace(one, usd_per_hour=prices[_site(one)])
        for one in job.spec.places
        if _site(one) in prices
    ]


def _site(where: Where) -> Where:
    """A place whatever it costs today."""
    return replace(where, usd_per_hour=None)


def _unlucky(attempts: Sequence[Attempt]) -> dict[Where, float]:
    """Places whose latest attempts were all lost, or found no machine, with the time: the longest ago is tried first."""
    by: dict[Where, list[Attempt]] = {}
    for one in attempts:
        by.setdefault(_site(one.where), []).append(one)
    found: dict[Where, float] = {}
    for where, tried in by.items():
        lost = [one.outcome in (Outcome.LOST, Outcome.LEFT) for one in tried[-LOST_IN_A_ROW:]]
        if lost[-1] and (tried[-1].begun is None or (len(lost) == LOST_IN_A_ROW and all(lost))):
            found[where] = tried[-1].placed
    return found


def _kept(attempt: Attempt) -> int:
    return (attempt.saved if attempt.saved is not None else attempt.step) or 0


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
