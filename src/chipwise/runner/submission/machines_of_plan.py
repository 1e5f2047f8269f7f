"""A plan as what a job may ask for: places in their order, how long it is thought to take, what that is thought to cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chipwise.catalog.offer import Purchase
from chipwise.errors import BadInput, NoResult
from chipwise.planner.explain.reason_words import nothing_words
from chipwise.planner.tails import BOOT_S
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.pipeline import PipelinePlan, Placed, by_use
from chipwise.planner.values.plan import Plan
from chipwise.runner.comparing import steps_of
from chipwise.runner.job import MachinePlace, Needs, Spec
from chipwise.text import elapsed, spent

PLACES = 6
MONTH_S = 30 * 86400.0
_SHORT_WAIT_S = 60.0  # of which nothing is said


@dataclass(frozen=True, slots=True)
class Planned:
    """Jobs on the machines of their plan, by id."""

    specs: tuple[tuple[str, Spec], ...]
    served_s: float | None = None  # after which services beside jobs are stopped, since they have no end; None: there are none
    asides: tuple[str, ...] = ()  # of what the plan counts and no machine does


def jobs_placed(plan: Plan, path: str, specs: Sequence[tuple[str, Spec]], deadline: float | None) -> Planned:
    """Each on the first choice of the plan, then on others that do the same, spot and not."""
    best = plan.winner
    if best is None:
        raise NoResult(
            f"{plan.workload}: {nothing_words(plan.missing)}.", remedy=f"chipwise plan {path} says how much is missing."
        )
    placed = tuple((id, _placed(replace(spec, deadline=deadline), plan.choices, best)) for id, spec in specs)
    return Planned(placed, asides=_waits([best]))


def stages_placed(plan: PipelinePlan, path: str, specs: Sequence[tuple[str, Spec]]) -> Planned:
    if plan.totals is None:
        lacks = [lack.missing for lack in plan.lacks]
        raise NoResult(f"{plan.workload}: {nothing_words(lacks)}.", remedy=f"chipwise plan {path} says how much is missing.")
    stages = {one.name: one for one in plan.stages}
    placed = [(id, _stage(stages[spec.name.removeprefix(f"{spec.pipeline}-")], spec, path)) for id, spec in specs]
    serves = any(one.per == "month" for one in plan.stages)
    seconds, cost = sum(one.seconds for one in plan.hand_offs), sum(one.usd for one in plan.hand_offs if one.per == "once")
    asides = list(_waits([stage.choice for stage in plan.stages]))
    if seconds or cost:
        by_plan = f"the plan estimates {elapsed(seconds)} and {spent(cost)}"
        asides.append(f"Data transfers between stages are not simulated; {by_plan}.")
    if serves:
        asides.append(f"Services run until they are stopped: here {elapsed(MONTH_S)} after all else should be done.")
    return Planned(tuple(placed), plan.totals.seconds + MONTH_S if serves else None, tuple(asides))


def _stage(stage: Placed, spec: Spec, path: str) -> Spec:
    """A service that is paid by use has no machines that could be lost: the best that has some is played instead."""
    best = stage.choice
    if by_use(best):
        machines = [one for one in stage.plan.choices if not by_use(one)]
        if not machines:
            raise NoResult(f"{path}: {stage.name} is paid per use and runs on no machine.", remedy="Simulate only the others.")
        best = machines[0]
    return _placed(spec, [best, *stage.plan.choices], best)


def _placed(spec: Spec, choices: Sequence[Choice], best: Choice) -> Spec:
    alternatives = same_choices(choices, best)
    return replace(
        spec,
        needs=replace(with_minimum(spec, best.machines, spec.name, spec.service), gpus=best.chips),
        places=tuple(dict.fromkeys(map(place_of, alternatives)))[:PLACES],
        expected_s=min(map(_paid_s, alternatives)),  # what restarts take, a run finds out by itself
        interruptions_per_hour=rate_of(alternatives),
        predicted={**_figures(best), **_steps(spec), "start_s": BOOT_S},
    )


def with_minimum(spec: Spec, machines: int, title: str, serves: bool) -> Needs:
    """As planned; where the least was told, fewer may do. What holds for all stages of a pipeline is as much as each can do."""
    minimum = spec.needs.machines_least
    exact = replace(spec.needs, machines=machines, machines_least=None)
    if minimum is None or (spec.pipeline and minimum >= machines):
        return exact
    if serves:
        raise BadInput(f"{title} is a service, whose number of replicas changes automatically.", remedy="Leave --machines out.")
    if minimum > machines:
        raise BadInput(
            f"The plan of {title} has {machines} machine{'' if machines == 1 else 's'}, fewer than the minimum of {minimum}.",
            remedy=f"Write --machines {max(machines // 2, 1)}-, or leave it out.",
        )
    return replace(exact, machines_least=minimum)


def _steps(spec: Spec) -> dict[str, object]:
    told = steps_of(spec)
    return {} if told is None else {"steps": told}


def same_as(plan: Plan) -> list[Choice]:
    """Choices that do the same as the first, each elsewhere or bought another way."""
    best = plan.winner
    assert best is not None
    return same_choices(plan.choices, best)


def same_choices(choices: Sequence[Choice], best: Choice) -> list[Choice]:
    return [
        choice
        for choice in choices
        if not by_use(choice) and (choice.chip, choice.chips, choice.machines) == (best.chip, best.chips, best.machines)
    ]


def predicted_of(plan: Plan) -> dict[str, object]:
    best = plan.winner
    assert best is not None
    return _figures(best)


def _figures(best: Choice) -> dict[str, object]:
    return {"seconds": best.seconds, "usd": best.usd, "kg": best.kg, "interruptions": best.interruptions}


def place_of(choice: Choice) -> MachinePlace:
    return MachinePlace(
        purchase=Purchase(choice.purchase),
        provider=choice.provider,
        region=choice.region,
        zone="",
        machine=choice.machine,
        usd_per_hour=_usd_per_hour(choice),
    )


def _usd_per_hour(choice: Choice) -> float | None:
    """Of one machine: the price of its offer. Of machines that follow a load what all cost on average, for all that time."""
    if choice.over_time is None and choice.hourly_usd:
        return choice.hourly_usd
    hours = _paid_s(choice) / 3600.0
    compute = sum(line.usd for line in choice.cost.lines if line.name == "compute")
    return compute / (hours * choice.machines) if hours else None


def _wait_s(choice: Choice) -> float:
    return choice.first_wait_s + choice.later_wait_s


def _paid_s(choice: Choice) -> float:
    """Of its time, that in which it has machines."""
    return choice.seconds - _wait_s(choice)


def _waits(choices: Sequence[Choice]) -> tuple[str, ...]:
    wait_s = sum(map(_wait_s, choices))
    if wait_s < _SHORT_WAIT_S:
        return ()
    return (f"Spot machines come at once here; the plan expects {elapsed(wait_s)} of waiting for them, which costs nothing.",)


def rate_of(alternatives: Sequence[Choice]) -> float | None:
    """Interruptions an hour of one spot machine, where one is among them."""
    spot = next((one for one in alternatives if one.purchase == Purchase.SPOT), None)
    if spot is None or not spot.seconds:
        return None
    return spot.interruptions / ((spot.seconds - spot.first_wait_s) / 3600.0) / max(spot.machines, 1)
