"""How many replicas a service should have, from what its gateway counts.

The built-in rule is a target on outstanding work, up at once and down after a while. A policy (`scale/policies`) may say the
number instead; limits hold for both, and so does zero: the last replica goes when nothing was asked for a while, and the first
comes back as soon as a request is parked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from chipwise.text import duration, percent, plural


@dataclass(frozen=True, slots=True)
class ScalingRule:
    fewest_replicas: int  # 0: the last one goes, too
    most_replicas: int
    at_once: float  # requests that a replica works on together
    filled: float = 0.7  # of these, what is aimed at
    down_after_s: float = 60.0  # for so long fewer would have been enough
    idle_s: float = 300.0  # without a request, before the last one goes


class ScalingSignals(NamedTuple):
    now: float
    replicas: int  # that take requests, or start
    requests: int  # at replicas and in the queue
    arrived: int = 0  # since the gateway began


class ScalingState(NamedTuple):
    """What the next decision has to know of those before."""

    fewer_since: float | None = None  # since when fewer would be enough
    idle_since: float | None = None
    arrived: int = 0


UNKNOWN = ScalingState()


class PolicyAnswer(NamedTuple):
    replicas: float
    reason: str


class ScalingDecision(NamedTuple):
    replicas: int
    reason: str  # with its numbers; empty: nothing changes
    state: ScalingState


def decide(
    signals: ScalingSignals, rule: ScalingRule, state: ScalingState = UNKNOWN, answer: PolicyAnswer | None = None
) -> ScalingDecision:
    """`answer`: of a policy, which has its own patience; None: the built-in rule decides."""
    now, replicas, requests, arrived = signals
    is_idle = not requests and arrived == state.arrived
    idle_since = (now if state.idle_since is None else state.idle_since) if is_idle else None
    state = ScalingState(state.fewer_since, idle_since, arrived)
    if rule.fewest_replicas == 0 and (replicas == 0 or idle_since is not None):
        if replicas == 0 and not requests:
            return ScalingDecision(0, "", state)
        if replicas == 1 and idle_since is not None and now - idle_since >= rule.idle_s:
            return ScalingDecision(0, f"{_change(1, 0)}: no request for {duration(now - idle_since)}", state)
    if replicas and answer is not None:
        return _by_policy(replicas, rule, state, answer)
    return _by_work(signals, rule, state)


def _by_policy(replicas: int, rule: ScalingRule, state: ScalingState, answer: PolicyAnswer) -> ScalingDecision:
    needed = min(max(math.ceil(answer.replicas - 1e-9), rule.fewest_replicas, 1), rule.most_replicas)
    if needed == replicas:
        return ScalingDecision(needed, "", state)
    return ScalingDecision(needed, f"{_change(replicas, needed)}: {answer.reason}", state)


def _by_work(signals: ScalingSignals, rule: ScalingRule, state: ScalingState) -> ScalingDecision:
    replicas, target = signals.replicas, rule.filled * rule.at_once
    needed = min(max(math.ceil(signals.requests / target), rule.fewest_replicas, 1), rule.most_replicas)
    work = f"{plural(signals.requests, 'request')} at once, and one replica takes {target:.3g}"
    if needed > replicas:
        return ScalingDecision(needed, f"{_change(replicas, needed)}: {work}", state._replace(fewer_since=None))
    if needed == replicas:
        return ScalingDecision(needed, "", state._replace(fewer_since=None))
    since = signals.now if state.fewer_since is None else state.fewer_since
    waited_s = signals.now - since
    if waited_s < rule.down_after_s:
        return ScalingDecision(replicas, "", state._replace(fewer_since=since))
    fewer = replicas - 1  # one at a time: what comes back soon finds the others
    after = state._replace(fewer_since=None if fewer == needed else since)
    return ScalingDecision(fewer, f"{_change(replicas, fewer)}: {work}, for {duration(waited_s)}", after)


def _change(replicas: int, needed: int) -> str:
    return f"from {replicas} to {plural(needed, 'replica')}"


class GatewayCounts(NamedTuple):
    """What a gateway has counted so far."""

    arrived: int  # requests with a prompt that were let in
    answered: int
    slot_s: float  # seconds, summed over requests that replicas worked on


class ServiceRates(NamedTuple):
    """Over one tick."""

    arrived: float
    utilisation: float  # of the places that ready replicas have
    per_replica: float | None  # requests a second of a replica whose places are all filled; None: too few were answered


MEASURED_REQUESTS = 20  # before a speed is believed
MEMORY_TICKS = 20.0


class RateMeter:
    """Counts of a gateway at every tick as rates. The speed of a replica is what its filled places answered over the last
    ticks. One that works on few requests at once may answer each faster: it is measured too high while there is little to do.
    """

    def __init__(self) -> None:
        self._before: GatewayCounts | None = None
        self._answered = self._slot_s = 0.0  # of the last ticks
        self._seen = 0

    def after(self, counts: GatewayCounts, seconds: float, ready: int, at_once: float) -> ServiceRates:
        before = self._before
        if before is None or counts.arrived < before.arrived or counts.slot_s < before.slot_s:
            before = GatewayCounts(0, 0, 0.0) if before is not None else counts  # the gateway was restarted, or is new to us
        self._before = counts
        answered, slot_s = counts.answered - before.answered, counts.slot_s - before.slot_s
        fade = 1.0 - 1.0 / MEMORY_TICKS
        self._answered, self._slot_s = self._answered * fade + answered, self._slot_s * fade + slot_s
        self._seen += answered
        places = max(ready, 1) * at_once * seconds
        is_known = self._seen >= MEASURED_REQUESTS and self._slot_s > 0.0 and self._answered > 0.0
        return ServiceRates(
            arrived=float(counts.arrived - before.arrived),
            utilisation=min(slot_s / places, 1.0) if places > 0.0 else 0.0,
            per_replica=self._answered / self._slot_s * at_once if is_known else None,
        )


def rate_words(rates: ServiceRates, seconds: float, waiting: int) -> str:
    parts = [f"{rates.arrived / seconds:.3g} requests/s came", f"utilisation {percent(rates.utilisation)}"]
    return ", ".join([*parts, f"{waiting} waiting"])
