"""What a workload asks of its plan, as plain numbers: deadline, budget, latency goals, load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.planner.defaults import most_machines
from chipwise.planner.explain.asking_latency import Asked
from chipwise.planner.ground import PERIODS, budget_usd, running_s
from chipwise.workload.common import Common
from chipwise.workload.kinds import Hpc, Interactive, Serve, Stream, Transcode

if TYPE_CHECKING:
    from chipwise.predictor.known import Known


def asked_of(known: Known, work: Common, per: str) -> Asked:
    """`per` is what the plan's money is of. Of a job, a budget per hour, day, month or year limits how fast money is spent."""
    goals = {
        f"{kind} p{percentile:g}": seconds
        for kind in ("ttft", "tpot", "latency")
        if (stated := getattr(work.goals, kind)) is not None
        for percentile, seconds in stated.limits
    }
    rate, at_once = _load(work)
    budget = work.goals.budget
    period = PERIODS.get(budget.per) if budget is not None and per == "job" else None
    return Asked(
        deadline_s=running_s(known, work),
        budget_usd=budget.usd if budget is not None and period else budget_usd(work, per == "month"),
        budget_per=str(budget.per) if budget is not None and period else "",
        period_s=period or 0.0,
        goals=goals,
        rate=rate,
        at_once=at_once,
        confidence=work.goals.sure_share,
        sure_enough=work.goals.sure_enough,
        stated=work.goals.confidence is not None,
        headroom=work.headroom if isinstance(work, Serve) else 0.0,
        most_chips=work.limits.chip_count.max,
        splits=work.parallel if isinstance(work, Hpc) else 1.0,
        most_machines=most_machines(work, per == "month"),
    )


def _load(work: Common) -> tuple[float | None, float | None]:
    """(a rate, callers or people at once)."""
    match work:
        case Serve():
            rate = work.arrival.rate
            return (None if rate is None else rate * (work.devices or 1)), work.arrival.concurrency
        case Interactive():
            return None, work.at_once or work.people
        case Transcode() if work.streams is not None:
            return float(work.streams), None
        case Stream():
            return work.messages_per_s, None
    return None, None
