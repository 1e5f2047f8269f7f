"""A job for a cluster or an account: with the places of its plan, and with rendered objects where those are applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.api import render as rendering
from chipwise.api.catalog.check import check
from chipwise.api.running.installed import package, traits
from chipwise.api.verbs import plan_any_checked
from chipwise.catalog.offer import Purchase
from chipwise.errors import BadInput, NoResult
from chipwise.files.source import read_text
from chipwise.planner.options import with_limits
from chipwise.planner.values.plan import Plan
from chipwise.renderer.cluster.work import work
from chipwise.renderer.deployment import Form
from chipwise.renderer.layout import meets
from chipwise.runner.abilities import AppliesObjects, Market, Sells
from chipwise.runner.job import MachinePlace, Needs, Spec
from chipwise.runner.submission.machines_by_name import BOUGHT, in_each_region, shared
from chipwise.runner.submission.machines_of_plan import PLACES, place_of, predicted_of, rate_of, same_as, with_minimum
from chipwise.runner.submission.predicted import Allocation, predict
from chipwise.runner.submission.workload import IMAGE
from chipwise.workload.common import Common

if TYPE_CHECKING:
    from chipwise.api.running.engines import Reach
    from chipwise.api.session.wiring import Session
    from chipwise.renderer.deployment import Deployment

_OF_THE_PLAN = ("usd", "why_not")
Queues = Callable[[str, str], str]  # of a cluster: the queue for a team, where one was asked for or not


def planned(
    session: Session,
    path: str,
    environment: str | None,
    stage: str | None,
    spec: Spec,
    reach: Reach,
    queue_for: Queues,
    image: str,
    text: str | None = None,
) -> Spec:
    """The workload of the file, or one stage of it, on what the plan takes within the engine's own limits. `image`: instead of
    the workload's own; `text` stands for the file."""
    engine_limits = limits(session, path, environment, reach, text)
    checked = check(session, path, environment, text=with_limits(text or read_text(path), path, engine_limits))
    plan = plan_any_checked(session, path, checked, None, rendering.SEARCHED_CHOICES)
    if isinstance(plan, Plan) and plan.winner is None:
        raise NoResult(
            f"Nothing that {reach.kind} may take fits {plan.workload}.",
            remedy=f"chipwise plan {path} {_as_options(engine_limits)} says how much is missing.",
        )
    deployment = rendering.deployment_from(session, checked.workload, plan, rendering.RenderRequest(stage=stage))
    spec = replace(
        spec,
        command=spec.command or deployment.software.command,
        needs=_needs(spec, deployment, path),
        predicted=spec.predicted or _predicted(deployment),
        expected_s=spec.expected_s if spec.expected_s is not None else _expected(deployment),
        places=(_place(deployment),),
    )
    rents = traits(reach.kind).rents
    speed = _speed(session, path, checked.workload, plan) if isinstance(plan, Plan) else {}
    if isinstance(plan, Plan) and rents:
        alternatives = same_as(plan)
        spec = replace(
            spec,
            places=tuple(dict.fromkeys(place_of(one) for one in alternatives if Purchase(one.purchase) in BOUGHT))[:PLACES]
            or spec.places,
            predicted=predicted_of(plan),
            interruptions_per_hour=rate_of(alternatives),
        )
    spec = replace(spec, predicted={**speed, **spec.predicted})
    if rents:
        spec = replace(spec, places=in_each_region(session.known, spec.places, market_of(reach)))
        image = image or ("" if deployment.software.built else deployment.software.image)
        return replace(spec, env={**spec.env, **({IMAGE: image} if image else {})})
    kind = package(reach.kind)
    if not isinstance(kind, AppliesObjects):
        return spec
    objects = work(deployment, queue_for(spec.team, reach.setting("queue")), image)
    return replace(spec, objects=objects, needs=replace(spec.needs, cpus=kind.cpus_of(objects)))


def market_of(reach: Reach) -> Market:
    """What of the catalog the engine can reach."""
    kind = package(reach.kind)
    return kind.market(reach.settings) if isinstance(kind, Sells) else Market()


def limits(session: Session, path: str, environment: str | None, reach: Reach, text: str | None = None) -> list[str]:
    """What of the catalog the engine can reach, as options of a plan."""
    market = market_of(reach)
    own = check(session, path, environment, text=text).workload.limits
    clouds = shared(path, market.clouds, own.clouds, {session.names.provider(one) for one in own.clouds})
    matches = (session.names.regions(one.replace(":", "/")) for one in own.regions)
    regions = shared(path, market.regions, own.regions, {region.name for found in matches for region in found})
    return [f"{name}=[{', '.join(values)}]" for name, values in (("clouds", clouds), ("regions", regions)) if values]


def _place(deployment: Deployment) -> MachinePlace:
    node, machine_usd = deployment.node, deployment.predicted.usd_per_hour / max(deployment.machines, 1)
    return MachinePlace(
        purchase=Purchase(deployment.purchase),
        provider=node.provider,
        region=node.region,
        zone="",
        machine=node.machine,
        usd_per_hour=machine_usd,
    )


def _needs(spec: Spec, deployment: Deployment, path: str) -> Needs:
    planned = with_minimum(spec, deployment.machines, path, deployment.form is Form.SERVICE)
    needs = replace(planned, gpus=deployment.node.chips)
    if needs.machines_least is not None and meets(deployment) and deployment.node.hosts > 1:
        raise BadInput(
            f"{path} runs on {deployment.node.chip}, of which a machine is several hosts that work only together.",
            remedy="Leave --machines out.",
        )
    return needs


def _speed(session: Session, path: str, workload: Common, plan: Plan) -> dict[str, object]:
    """How fast it will be on the machines of the plan, so that a run there is a measurement too. How long it takes and what it
    costs, the plan knows better: with starts and interruptions."""
    best = plan.winner
    if best is None or not best.chips:
        return {}
    predicted = predict(
        session.known, path, workload, Allocation(best.catalog_chip or best.chip, float(best.chips * best.machines))
    )
    return {name: value for name, value in predicted.items() if name not in _OF_THE_PLAN and not name.startswith("seconds")}


def _expected(deployment: Deployment) -> float | None:
    return deployment.predicted.seconds if deployment.predicted.per == "job" else None


def _predicted(deployment: Deployment) -> dict[str, object]:
    prediction = deployment.predicted
    return (
        {"seconds": prediction.seconds, "usd": prediction.usd, "kg": prediction.kg}
        if prediction.per == "job"
        else {"usd_per_hour": prediction.usd_per_hour}
    )


def _as_options(limits: Sequence[str]) -> str:
    return " ".join(f"--limit {one!r}" for one in limits)
