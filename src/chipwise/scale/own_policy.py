"""A user's own spot rule: a function of plain numbers, asked for one scenario at a time.

    def decide(state):
        if state.spot:
            return "spot"
        return "wait" if state.time_left_h > 1.3 * state.work_left_h else "on-demand"

Who wants speed defines `begin(job, count)` as the rules of `scale/policies/` do, which decide all scenarios at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chipwise.errors import BadInput
from chipwise.scale.spot import Begin, Choices, Decide, Flags, SpotChoice, SpotJob, SpotState

WORDS = {"wait": SpotChoice.WAIT, "spot": SpotChoice.SPOT, "on-demand": SpotChoice.ON_DEMAND}
_NAMES = {choice: word for word, choice in WORDS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One scenario at one tick. Times in hours."""

    time_left_h: float
    work_left_h: float
    restart_h: float  # that a start costs
    pending_h: float  # of the current machine's start
    now: str  # wait, spot or on-demand
    age_h: float  # of the current spot machine
    spot: bool  # whether spot can be had until the next tick
    seen: Flags  # the same of every tick so far, this one included
    spot_usd: float  # an hour
    on_demand_usd: float
    tick_h: float


def single_scenarios(name: str, rule: Callable[[Moment], object]) -> Begin:
    """The law holds for it as for every rule."""

    def begin(job: SpotJob, count: int) -> Decide:
        def decide(state: SpotState) -> Choices:
            return np.array([_choice(name, rule, state, scenario) for scenario in range(count)], np.int8)

        return decide

    return begin


def _choice(name: str, rule: Callable[[Moment], object], state: SpotState, scenario: int) -> SpotChoice:
    job = state.job
    moment = Moment(
        time_left_h=state.time_left_h,
        work_left_h=float(state.work_left_h[scenario]),
        restart_h=job.restart_h,
        pending_h=float(state.pending_h[scenario]),
        now=_NAMES[SpotChoice(int(state.choice[scenario]))],
        age_h=float(state.age_h[scenario]),
        spot=bool(state.spot[scenario]),
        seen=state.seen[scenario],
        spot_usd=job.spot_usd,
        on_demand_usd=job.on_demand_usd,
        tick_h=job.tick_h,
    )
    try:
        answer = rule(moment)
    except (Exception, SystemExit) as error:
        raise BadInput(f"{name}: decide failed at tick {state.tick + 1}: {type(error).__name__}: {str(error)[:200]}") from error
    choice = WORDS.get(answer) if isinstance(answer, str) else None
    if choice is None:
        raise BadInput(f"{name}: decide answered {str(answer)[:40]!r}.", remedy="Return 'spot', 'on-demand' or 'wait'.")
    return choice
