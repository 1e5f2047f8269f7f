"""A service that is paid by use, as a plan lists it beside its machines."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.money.break_even import BreakEven
from chipwise.money.cost import Cost
from chipwise.money.serverless_cost import Spread
from chipwise.planner.reasons import Reason
from chipwise.planner.services.ways import Held
from chipwise.text import amount
from chipwise.units import DAY, HOUR, MINUTE

SERVERLESS, PER_TOKEN, PER_HOUR = "serverless", "per token", "per hour"


@dataclass(frozen=True, slots=True)
class ServiceOffer:
    """One service for one workload; money is of a month at the workload's rate and schedule."""

    kind: str  # SERVERLESS, PER_TOKEN, or PER_HOUR: an endpoint on machines that its provider runs
    provider: str  # as the catalog has it, where it knows the provider
    service: str
    hardware: str
    chips: tuple[str, ...]  # of which one comes; none: a processor, or not stated
    model: str  # per token: as a request names it
    precision: str | None  # None: not stated
    cost: Cost | None  # None: it cannot run there
    usd_per_million_tokens: float | None
    goals: tuple[Held, ...]
    unchecked: tuple[str, ...]  # goals that nobody can hold against it, and why
    refused: tuple[Reason, ...]
    assumed: tuple[str, ...]
    certain: bool  # False: the price is second-hand or needs a commitment
    price_of: str  # ISO date
    price_days: int  # since then
    concurrency: int | None = None  # requests at a time on one instance
    seconds_per_request: float | None = None  # warm
    warm_instances: int = 0  # never given up
    instances: float | None = None  # up on average
    cold_share: float = 0.0  # of the requests
    cold_start_s: Spread | None = None
    break_even: BreakEven | None = None  # of a dedicated machine; None: not looked for, or no machine to compare with
    retires: str = ""  # ISO date; empty: not announced
    region: str = ""  # that its price is of; empty: not stated
    format_doubted: bool = False  # its number format is not stated, and may be narrower than what was asked for or published

    @property
    def allowed(self) -> bool:
        return not self.refused

    @property
    def is_sure(self) -> bool:
        """Its price and that it is sold, that it keeps the goals, and its number format."""
        return self.certain and not self.unchecked and not self.format_doubted

    @property
    def usd(self) -> float | None:
        return None if self.cost is None else self.cost.usd

    @property
    def start_s(self) -> tuple[float, float, float] | None:
        """Of a request that meets no instance: low, middle, high."""
        start = self.cold_start_s
        return None if start is None else (start.low, start.middle, start.high)

    @property
    def told_break_even(self) -> str | None:
        if self.break_even is None:
            return None
        first, always = self.break_even.first, self.break_even.always
        if first is None:
            return f"a dedicated machine is not cheaper at any rate: {self.break_even.why}"
        if first == 0:
            return "a dedicated machine is cheaper from the first request on"
        if always is None:
            return f"a dedicated machine is cheaper at some rates only, the lowest of them {_often(first)}"
        if always <= first * 1.01:
            return f"a dedicated machine is cheaper above {_often(first)}"
        return f"a dedicated machine can be cheaper above {_often(first)} and always is above {_often(always)}"


def _often(rate: float) -> str:
    """A rate of requests in the unit in which it is a number of one to a few thousand."""
    for unit, seconds in (("second", 1.0), ("minute", MINUTE), ("hour", HOUR)):
        if rate * seconds >= 1:
            return f"{amount(rate * seconds)} requests a {unit}"
    return f"{amount(rate * DAY)} requests a day"
