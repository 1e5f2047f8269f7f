"""How many replicas a service should have: a target on outstanding work, up at once and down after a while."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from chipwise.text import duration


@dataclass(frozen=True, slots=True)
class ScalingRule:
    fewest_replicas: int
    most_replicas: int
    at_once: float  # requests that a replica works on together
    filled: float = 0.7  # of these, what is aimed at
    down_after_s: float = 60.0  # for so long fewer would have been enough


class ScalingSignals(NamedTuple):
    now: float
    replicas: int  # that take requests, or start
    requests: int  # at replicas and in the queue


class ScalingDecision(NamedTuple):
    replicas: int
    reason: str  # with its numbers; empty: nothing changes
    fewer_since: float | None  # since when fewer would be enough: the state for the next decision


def decide(signals: ScalingSignals, rule: ScalingRule, fewer_since: float | None = None) -> ScalingDecision:
    target = rule.filled * rule.at_once
    needed = min(max(math.ceil(signals.requests / target), rule.fewest_replicas), rule.most_replicas)
    work = f"{signals.requests} requests at once, and one replica takes {target:.3g}"
    if needed > signals.replicas:
        return ScalingDecision(needed, f"from {signals.replicas} to {needed} replicas: {work}", None)
    if needed == signals.replicas:
        return ScalingDecision(needed, "", None)
    since = signals.now if fewer_since is None else fewer_since
    waited_s = signals.now - since
    if waited_s < rule.down_after_s:
        return ScalingDecision(signals.replicas, "", since)
    fewer = signals.replicas - 1  # one at a time: what comes back soon finds the others
    reason = f"from {signals.replicas} to {fewer} replicas: {work}, for {duration(waited_s)}"
    return ScalingDecision(fewer, reason, None if fewer == needed else since)
