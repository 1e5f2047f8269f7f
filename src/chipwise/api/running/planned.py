"""A plan as what a job may ask for: places in their order, how long it is thought to take, what that is thought to cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.api.planning_any import plan_any_checked
from chipwise.api.workloads import check
from chipwise.catalog.offer import Purchase
from chipwise.errors import BadInput, NoResult
from chipwise.plan.decision import Choice, Plan
from chipwise.plan.pricing import BOOT_S
from chipwise.run.comparing import steps_of
from chipwise.run.job import Spec, Where

if TYPE_CHECKING:
    from chipwise.api.wiring import Session

LOOKED_AT = 50
PLACES = 6


def with_plan(session: Session, path: str, environment: str | None, spec: Spec, now: float) -> Spec:
    """The job on the machines of the plan: the first choice, then others that do the same, spot and not."""
    checked = check(session, path, environment)
    found = plan_any_checked(session, path, checked, None, LOOKED_AT)
    if not isinstance(found, Plan):
        raise BadInput(f"{path} is a pipeline, of which stages are planned together.", remedy="Give one stage as a workload.")
    best = found.winner
    if best is None:
        raise NoResult(f"Nothing fits {found.workload}.", remedy=f"chipwise plan {path} says how much is missing.")
    same = same_as(found)
    goals = checked.workload.goals
    deadline = now + goals.deadline if goals.deadline is not None else None
    return replace(
        spec,
        needs=replace(spec.needs, gpus=best.chips, machines=best.machines),
        places=tuple(dict.fromkeys(map(place_of, same)))[:PLACES],
        expected_s=min(one.seconds for one in same),  # what restarts take, a run finds out by itself
        interruptions_per_hour=rate_of(same),
        deadline=goals.finish_by.timestamp() if goals.finish_by is not None else deadline,
        predicted={**predicted_of(found), **_steps(spec), "start_s": BOOT_S},
    )


def _steps(spec: Spec) -> dict[str, object]:
    told = steps_of(spec)
    return {} if told is None else {"steps": told}


def same_as(plan: Plan) -> list[Choice]:
    """Choices that do the same as the first, each elsewhere or bought another way."""
    best = plan.winner
    assert best is not None
    return [one for one in plan.choices if (one.chip, one.chips, one.machines) == (best.chip, best.chips, best.machines)]


def predicted_of(plan: Plan) -> dict[str, object]:
    best = plan.winner
    assert best is not None
    return {"seconds": best.seconds, "usd": best.usd, "kg": best.kg, "interruptions": best.interruptions}


def place_of(choice: Choice) -> Where:
    hours = choice.seconds / 3600.0
    compute = sum(line.usd for line in choice.cost.lines if line.name == "compute")
    each = compute / (hours * choice.machines) if hours else None
    return Where(Purchase(choice.purchase), choice.provider, choice.region, "", choice.machine, each)


def rate_of(same: Sequence[Choice]) -> float | None:
    """Interruptions an hour of one spot machine, where one is among them."""
    spot = next((one for one in same if one.purchase == Purchase.SPOT), None)
    if spot is None or not spot.seconds:
        return None
    return spot.interruptions / (spot.seconds / 3600.0) / max(spot.machines, 1)
