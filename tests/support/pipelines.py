"""Pipelines as text, planned, and what holds for every plan of one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan_any
from chipwise.catalog.region import UNSTATED, readable
from chipwise.planner.defaults import CARRIED_COST, NEARLY
from chipwise.planner.pipeline import plan as planning_pipelines
from chipwise.planner.preference import Advantage
from chipwise.planner.services import offers as planning_services
from chipwise.planner.services.demand import Dedicated
from chipwise.planner.services.offer import ServiceOffer
from chipwise.planner.single import plan_work
from chipwise.planner.values.pipeline import PipelinePlan
from chipwise.planner.values.plan import Plan
from chipwise.predictor.known import Known
from chipwise.workload.common import Common
from chipwise.workload.kinds import Serve

FIRST = "{kind: hpc, name: first, steps: 10, flop_per_step: 1e17, precision: fp32}"
SECOND = "{kind: batch, name: second, model: llama-3.1-8b, items: 1000, input_tokens: 100, output_tokens: 10}"
SERVICE = "{kind: serve, name: service, model: resnet-50, arrival: {rate: 40 req/s}, goals: {latency: {p99: 100ms}}}"
EU = "limits: {residency: EU, clouds: [aws, gcp]}\n"


@contextmanager
def stages_planned_once() -> Iterator[None]:
    """What a stage can run on depends on the stage alone, and neither on other stages nor on the objective of the whole: the
    same stage in another pipeline has the same plan."""
    plans: list[tuple[Common, Plan]] = []
    services: list[tuple[Serve, tuple[ServiceOffer, ...]]] = []
    offer = planning_services.services_for

    def planned_once(known: Known, path: str, stage: Common, objective: str, top: int, per_use: bool) -> Plan:
        assert (objective, top, per_use) == ("balanced", 1, False)
        if not any(one == stage for one, _ in plans):
            plans.append((stage, plan_work(known, path, stage, objective, top, per_use=per_use)))
        return next(found for one, found in plans if one == stage)

    def offered_once(known: Known, work: Serve, dedicated: Dedicated, path: str) -> tuple[ServiceOffer, ...]:
        if dedicated:  # as a plan of one workload asks
            return offer(known, work, dedicated, path)
        if not any(one == work for one, _ in services):
            services.append((work, offer(known, work, dedicated, path)))
        return next(found for one, found in services if one == work)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning_pipelines, "plan_work", planned_once)
        patch.setattr(planning_services, "services_for", offered_once)
        yield


def pipeline(*stages: str, rest: str = EU) -> str:
    listed = "".join(f"- {one}\n" for one in stages)
    return f"kind: pipeline\nname: p\nstages:\n{listed}{rest}"


def planned(session: Session, text: str, objective: str | None = None) -> PipelinePlan:
    found = plan_any(session, "workload.yaml", objective, text=text)
    assert isinstance(found, PipelinePlan)
    return checked(found)


def checked(found: PipelinePlan) -> PipelinePlan:
    """What holds for every plan of a pipeline."""
    assert found.fits or found.lacks
    if found.totals is None:
        return found
    jobs = [one.choice.usd for one in found.stages if one.per == "job"]
    services = [one.choice.usd for one in found.stages if one.per == "month"]
    assert found.totals.once.usd == pytest.approx(sum(jobs) + sum(one.usd for one in found.hand_offs if one.per == "once"))
    assert found.totals.monthly.usd == pytest.approx(
        sum(services) + sum(one.usd for one in found.hand_offs if one.per == "month")
    )
    assert found.totals.seconds == pytest.approx(max(one.ready_s for one in found.stages))
    by_name = {one.name: one for one in found.stages}
    for move in found.hand_offs:
        giver, taker = by_name[move.source], by_name[move.to]
        assert taker.starts_s >= giver.ready_s + move.seconds - 1e-6
        same = (giver.choice.provider, giver.choice.region) == (taker.choice.provider, taker.choice.region)
        same = same and readable(giver.choice.region) != UNSTATED
        assert (move.path == "in place") == same
        assert move.usd == 0 or not same
    for one in found.stages:
        if one.per == "job":
            assert one.ready_s - one.starts_s == pytest.approx(one.choice.seconds)
    for other in (found.alone, found.one_region):
        if other is not None and not other.misses:
            mine = {"cost": found.totals.usd, "time": found.totals.seconds, "carbon": found.totals.kg}
            its = {"cost": other.totals.usd, "time": other.totals.seconds, "carbon": other.totals.kg}
            score = mine.get(found.objective, found.totals.balanced)
            nearly = _nearly(found)
            assert score <= its.get(found.objective, other.totals.balanced) * (1 + nearly)
    return found


def _nearly(found: PipelinePlan) -> float:
    """How much more than the cheapest an answer may cost."""
    if found.objective != "cost":
        return 1e-6
    return CARRIED_COST if any(Advantage.CARRIES in tie.advantages for tie in found.near_ties) else NEARLY
