"""Spot policies by name, for jobs that say one: what the record shows of a job, as a policy of `scale` wants it.

A policy is asked anew where something changed, or a tick has passed. It is given all that the job showed so far: spot was there
while an attempt ran on it, and was not after one was lost, or while none came; in between it is taken to be as it was last
known. So a controller that begins anew decides as the one before it did. Every decision passes the law of `scale/spot.py`: on
machines that stay, ordered a tick later at the latest, the job would still end in time. Where a policy lacks what it needs (a
deadline, an estimate, prices), the plain rule decides.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np

from chipwise.catalog.offer import Purchase
from chipwise.errors import ChipwiseError
from chipwise.runner.job import Attempt, Job, Outcome, Spec
from chipwise.runner.policy import Decision, Standing
from chipwise.scale.policies import plain
from chipwise.scale.simulator.spot import play
from chipwise.scale.spot import Begin, Flags, SpotChoice, SpotJob, SpotState, lawful
from chipwise.text import spent

LONGEST_TICK_S = 600.0
SHORTEST_TICK_S = 30.0
RESTART_ERROR = 1.0  # saving, leaving and queueing come with a restart: as for the plain rule, two must fit
_SAME_USD = 0.005  # a smaller difference cannot be printed
TICKS = 200  # of a job that is shorter than as many of the longest ticks

_WORDS = {SpotChoice.SPOT: Decision.SPOT, SpotChoice.ON_DEMAND: Decision.ON_DEMAND, SpotChoice.WAIT: Decision.WAIT}
_MODES = {Purchase.SPOT: SpotChoice.SPOT, Purchase.ON_DEMAND: SpotChoice.ON_DEMAND}


Situation = tuple[object, ...]  # what a decision depends on, beside the time within a tick


def situation(state: Standing) -> Situation | None:
    """None: a policy cannot decide it."""
    job = state.job
    if job is None or not state.on_demand or state.rest_s is None or (spot_job := _spot_job_of(job, state)) is None:
        return None
    tick = _tick(job, spot_job, state.now)
    if tick >= spot_job.ticks:
        return None
    return (tick, state.purchase, state.spot, len(job.attempts), state.usd_per_hour_spot, state.usd_per_hour_on_demand)


def decide(begin: Begin, state: Standing) -> Decision:
    """Where `situation` is not None. The law is asked with what is left now; ticks that are gone only tell what spot did."""
    job = state.job
    assert job is not None
    assert state.rest_s is not None
    spot_job = _spot_job_of(job, state)
    assert spot_job is not None
    tick = _tick(job, spot_job, state.now)
    seen = _seen(job, spot_job.tick_h * 3600.0, tick + 1)
    seen[tick] = state.spot
    attempt = job.attempt if state.purchase is not None else None
    age_s = 0.0 if attempt is None or attempt.begun is None else max(state.now - attempt.begun, 0.0)
    mode = SpotChoice.WAIT if state.purchase is None else _MODES.get(state.purchase, SpotChoice.WAIT)
    present = SpotState(
        job=spot_job,
        tick=tick,
        work_left_h=np.array([state.rest_s / 3600.0]),
        pending_h=np.array([max(state.restart_s - age_s, 0.0) / 3600.0 if mode is not SpotChoice.WAIT else 0.0]),
        choice=np.array([mode], np.int8),
        age_h=np.array([age_s / 3600.0 if mode is SpotChoice.SPOT else 0.0]),
        spot=np.array([state.spot]),
        seen=seen[None, :],
    )
    rule = begin(spot_job, 1)
    for past in range(tick):
        rule(replace(present, tick=past, spot=seen[past : past + 1], seen=seen[None, : past + 1]))
    return _WORDS[SpotChoice(int(lawful(present, rule(present))[0]))]


def _tick(job: Job, spot_job: SpotJob, now: float) -> int:
    """The next one: what is left of the current tick is not counted as time."""
    return max(ceil((now - job.submitted) / (spot_job.tick_h * 3600.0)), 0)


def _spot_job_of(job: Job, state: Standing) -> SpotJob | None:
    return _spot_job(job.spec, job.submitted, state.restart_s, state.usd_per_hour_spot, state.usd_per_hour_on_demand)


def _spot_job(
    spec: Spec, submitted: float, restart_s: float, spot_usd: float | None, on_demand_usd: float | None
) -> SpotJob | None:
    """None: a policy cannot decide it."""
    deadline, expected_s = spec.deadline, spec.expected_s
    if deadline is None or expected_s is None or not spot_usd or not on_demand_usd or deadline <= submitted:
        return None
    span_s = deadline - submitted
    try:
        return SpotJob(
            work_h=max(expected_s, 1.0) / 3600.0,
            deadline_h=span_s / 3600.0,
            restart_h=restart_s / 3600.0,
            spot_usd=spot_usd,
            on_demand_usd=on_demand_usd,
            restart_error=RESTART_ERROR,
            tick_h=min(max(span_s / TICKS, SHORTEST_TICK_S), LONGEST_TICK_S) / 3600.0,
        )
    except ChipwiseError:  # it does not fit before its deadline
        return None


def _seen(job: Job, tick_s: float, count: int) -> Flags:
    """Whether spot was there at each tick; taken to be there until the first sign."""
    flags: Flags = np.ones(count, np.bool_)
    signs = sorted(sign for attempt in job.attempts for sign in _signs(attempt))
    for begin, available in signs:
        flags[min(max(ceil((begin - job.submitted) / tick_s), 0), count) :] = available
    return flags


def _signs(attempt: Attempt) -> list[tuple[float, bool]]:
    """Moments from which on spot was there, or was not."""
    if attempt.where.purchase is not Purchase.SPOT:
        return []
    if attempt.begun is None:
        return [(attempt.placed, False)]
    signs = [(attempt.begun, True)]
    if attempt.ended is not None and attempt.outcome is Outcome.LOST:
        signs.append((attempt.ended, False))
    return signs


def lack(spec: Spec, submitted: float, restart_s: float) -> str:
    """Why its policy decides nothing, and what happens instead; empty where it decides."""
    prices = _prices(spec)
    if Purchase.SPOT not in prices:
        return "it does not run on spot machines"
    if Purchase.ON_DEMAND not in prices:
        return "on-demand machines of the same kind are not among its choices, so it stays on spot machines"
    spot_usd, on_demand_usd = prices[Purchase.SPOT], prices[Purchase.ON_DEMAND]
    lacking = {
        "deadline": spec.deadline is None,
        "estimate of its time": spec.expected_s is None,
        "prices": not spot_usd or not on_demand_usd,
    }
    if any(lacking.values()):
        names = " and no ".join(name for name, is_absent in lacking.items() if is_absent)
        return f"it has no {names}, so the plain rule of run decides"
    if _spot_job(spec, submitted, restart_s, spot_usd, on_demand_usd) is None:
        return "its work does not fit before its deadline, so the plain rule of run decides"
    return ""


def _prices(spec: Spec) -> dict[Purchase, float | None]:
    """Of the first place of each purchase option."""
    return {place.purchase: place.usd_per_hour for place in reversed(spec.places)}


def comparison(job: Job, begin: Begin, now: float, restart_s: float) -> str:
    """What its policy cost beside the plain rule, in words. Both are replayed in the same ticks on the spot machines that the
    job saw, since the job itself ran and paid to the second."""
    spec, title = job.spec, f"policy {job.spec.policy}"
    if reason := lack(spec, job.submitted, restart_s):
        return f"{title} decided nothing: {reason}"
    prices = _prices(spec)
    spot_job = _spot_job(spec, job.submitted, restart_s, prices[Purchase.SPOT], prices[Purchase.ON_DEMAND])
    assert spot_job is not None
    available = _seen(job, spot_job.tick_h * 3600.0, spot_job.ticks)[None, :]
    own_usd, plain_usd = (float(play(available, spot_job, rule).usd[0]) * job.machines for rule in (begin, plain.begin))
    difference = plain_usd - own_usd
    seen = "on the spot machines that were seen"
    if abs(difference) < _SAME_USD:
        return f"{title}: {spent(job.usd(now))}; the plain rule would have spent as much {seen}"
    verb = "saved" if difference > 0 else "cost"
    return f"{title}: {spent(job.usd(now))}; against the plain rule {seen} it {verb} about {spent(abs(difference))}"
