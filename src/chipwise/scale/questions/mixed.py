"""A service on machines of several types, on-demand and spot: what scaling policies with rules of purchase cost, in dollars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.errors import BadInput
from chipwise.scale.fleet import BeginFleet, FleetSetup, ReplicaMachine, machine_of, setup_of
from chipwise.scale.policy_files import policy_of
from chipwise.scale.questions.scaling import LEVELS, ServeQuestion, loads_of, scaling_policy, service_of
from chipwise.scale.questions.spot import SpotQuestion, named_policies, spot_series
from chipwise.scale.simulator.compared import MixedAnswer, ReplicaTimeline, timeline

if TYPE_CHECKING:
    from chipwise.catalog.feed import Report
    from chipwise.scale.load import RequestLoad
    from chipwise.scale.serving import ScaledService
    from chipwise.scale.simulator.mixed import SpotZones

DEFAULT_PURCHASES = ("on-demand-fleet", "spot-fleet", "spot-hedge", "spot-spread")
MOST_ZONES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedQuestion:
    serve: ServeQuestion
    machines: tuple[ReplicaMachine, ...]
    spot: str | None = None  # a trace, a folder of them, or settings of invented zones
    purchases: tuple[str, ...] | None = None  # None: all that are possible
    tick_s: float | None = None  # of the traces of spot
    available_is: int | None = None


def mixed_question(
    serve: ServeQuestion,
    machines: Iterable[tuple[str, Sequence[float]]],
    *,
    spot: str | None,
    purchases: tuple[str, ...] | None,
    tick_s: float | None,
    available_is: int | None,
) -> MixedQuestion:
    types = tuple(machine_of(name, figures) for name, figures in machines)
    if not types:
        raise BadInput("--spot and --purchase need the machines.", remedy="Add --machine NAME=RATE,USD,SPOT_USD.")
    if serve.replica_rate is not None:
        raise BadInput("Give either --replica-rate or --machine.", remedy="The rate of a machine stands in --machine.")
    return MixedQuestion(
        serve=replace(serve, replica_rate=types[0].per_s),
        machines=types,
        spot=spot,
        purchases=purchases,
        tick_s=tick_s,
        available_is=available_is,
    )


def fleet_policy(name: str) -> BeginFleet:
    """By its name, with a setting after a colon where it takes one."""
    plain, colon, setting = name.partition(":")
    module = policy_of("fleet", plain)
    begin: BeginFleet = module.begin
    if not colon:
        return begin
    try:
        target = float(setting)
    except ValueError:
        target = -1.0
    if not hasattr(module, "SETTING") or not (isfinite(target) and 0.0 <= target <= 1000.0):
        raise BadInput(f"{name} is not a rule of purchase with a setting.", remedy="Write for example spot-hedge:20.")
    return partial(module.begin, target=target)


def simulate_mixed(question: MixedQuestion, report: Report) -> tuple[list[MixedAnswer], list[ReplicaTimeline]]:
    """One answer per policy and purchase, in the order asked for."""
    from chipwise.scale.simulator.clairvoyant import clairvoyant
    from chipwise.scale.simulator.mixed import least_usd, play_mixed
    from chipwise.scale.simulator.pooled import PooledQueue
    from chipwise.scale.simulator.scaling import play

    serve = question.serve
    if serve.level != LEVELS[0]:
        raise BadInput(f"Machines of several types are simulated on the level {LEVELS[0]} alone.", remedy="Leave out --level.")
    setup, zones = _setup(question)
    begins = {name: scaling_policy(name) for name in named_policies(serve.policies)}
    buys = {name: fleet_policy(name) for name in _purchases(question)}
    report(0, None, "loads")
    services: list[tuple[RequestLoad, ScaledService]] = [(load, service_of(serve, load)) for load in loads_of(serve)]
    bound = 0.0
    for load, service in services:
        report(0, None, f"bound of {load.name}")
        bound += least_usd(play(load, service, clairvoyant(load), PooledQueue), service, setup, zones)
    answers, timelines = [], []
    requests = sum(load.requests for load, _ in services)
    for name, begin in begins.items():
        for purchase, buy in buys.items():
            report(0, None, f"{name}, {purchase}")
            punctual = usd = hours = 0.0
            lost = 0
            for load, service in services:
                outcome = play_mixed(load, service, begin, setup, buy, zones)
                punctual, usd = punctual + outcome.scaling.punctual, usd + outcome.usd
                hours, lost = hours + outcome.scaling.replica_hours, lost + outcome.lost
                timelines.append(timeline(load, service, f"{name}, {purchase}", outcome.scaling))
            answers.append(
                MixedAnswer(
                    policy=name,
                    purchase=purchase,
                    requests=round(requests),
                    within_goal=punctual / requests,
                    replica_hours=hours,
                    usd=usd,
                    lost=lost,
                    ratio_to_bound=usd / bound,
                )
            )
    return answers, timelines


def _purchases(question: MixedQuestion) -> Sequence[str]:
    if question.purchases is not None:
        return question.purchases
    return DEFAULT_PURCHASES if question.spot is not None else DEFAULT_PURCHASES[:1]


def _setup(question: MixedQuestion) -> tuple[FleetSetup, SpotZones]:
    from chipwise.scale.simulator.mixed import SpotZones

    if question.spot is None:
        return setup_of(question.machines, ()), SpotZones({})
    if all(machine.spot_usd is None for machine in question.machines):
        raise BadInput("No machine has a spot price.", remedy="Write --machine NAME=RATE,USD,SPOT_USD.")
    is_file = Path(question.spot).expanduser().exists()
    if not is_file and "=" not in question.spot:
        raise BadInput(f"{question.spot} is not there.", remedy="Give a trace, a folder of traces, or series=3.")
    lookup = SpotQuestion(
        policies=(),
        trace=Path(question.spot) if is_file else None,
        synthetic=None if is_file else question.spot,
        tick_s=question.tick_s,
        available_is=question.available_is,
        deadline_hours=(24.0 * 14.0,),  # how much is invented
        seed=question.serve.seed,
    )
    all_series = spot_series(lookup)
    if len(all_series) > MOST_ZONES:
        raise BadInput(f"{len(all_series):,} zones are too many.", remedy=f"Give at most {MOST_ZONES}.")
    return setup_of(question.machines, [series.name for series in all_series]), SpotZones(
        {series.name: series for series in all_series}
    )
