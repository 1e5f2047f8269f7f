"""Spot or not, by the deadline: the question that the controller asks at every tick, and a plain rule that is never late.

The rule: as long as the rest of the work could still be done on machines that stay, with the time that one more move costs to
spare, spot may be used, or waited for. From then on the job stays on demand: each minute of spot after that would be taken from
the deadline. Only where time turns out to be ample, and the rest is worth two moves, it goes back to spot. It needs nothing but
the clock and an estimate of the rest; better rules plug in.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from chipwise.catalog.offer import Purchase
from chipwise.runner.job import Job


class Decision(StrEnum):
    SPOT = "spot"
    ON_DEMAND = "on-demand"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Standing:
    """What a policy may know. Times in seconds; `rest_s` is work that is left on machines that stay."""

    now: float
    rest_s: float | None  # None: nobody knows
    deadline: float | None
    purchase: Purchase | None  # where it runs now
    spot: bool  # whether spot machines can be had, as far as is known
    on_demand: bool
    restart_s: float  # that a move costs: booting, loading, work since the last checkpoint
    usd_per_hour_spot: float | None = None
    usd_per_hour_on_demand: float | None = None
    job: Job | None = None  # for policies that look at its past


class Policy(Protocol):
    def decide(self, state: Standing) -> Decision: ...


@dataclass(frozen=True, slots=True)
class NeverLate:
    """`slack` moves must fit between the end of the work and the deadline: one to leave, and the time that deciding takes."""

    slack: float = 2.0

    def decide(self, state: Standing) -> Decision:
        needed = self.slack * state.restart_s
        if not state.spot and not state.on_demand:
            return Decision.WAIT
        if state.purchase is Purchase.ON_DEMAND and (state.rest_s is None or state.rest_s <= 2.0 * needed):
            return Decision.ON_DEMAND  # the rest is not worth two moves
        if state.deadline is None or not state.on_demand:
            return Decision.SPOT if state.spot else Decision.ON_DEMAND
        if state.rest_s is None:  # a deadline, and nobody knows how long it takes
            return Decision.ON_DEMAND
        spare = state.deadline - state.now - state.rest_s
        if spare <= (2.0 * needed if state.purchase is Purchase.ON_DEMAND else needed):
            return Decision.ON_DEMAND
        return Decision.SPOT if state.spot else Decision.WAIT
