"""How many replicas a service should have now: what its gateway counts, held against `serving/scaling` or a scaling policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.api.serving import folders
from chipwise.api.serving.engines import engine_named
from chipwise.runner.asked_policy import AskedPolicy, at_once_of
from chipwise.serving.scaling import PolicyAnswer, ScalingDecision, ScalingRule, ScalingSignals, ScalingState, decide
from chipwise.serving.service import ServiceRecord, ServiceVersion

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session


def _at_once_of(version: ServiceVersion) -> float:
    """Of a replica that is to be started."""
    return float(engine_named(version.engine).start(version.request).at_once)


def scaling_decision(
    session: Session, service: ServiceRecord, state: ScalingState, policy: AskedPolicy | None, now: float
) -> ScalingDecision | None:
    """What should be done now; None: it has no limits to scale between, is being replaced, or its gateway is silent."""
    seen = folders.seen(session, service.name)
    if service.most_replicas is None or service.canary is not None or not seen:
        return None
    live = [record for record in service.replicas if not record.is_draining]
    requests = seen["waiting"] + sum(state["requests"] for state in seen["replicas"].values())
    signals = ScalingSignals(now, len(live), requests, seen.get("arrived", 0))
    rule = ScalingRule(
        fewest_replicas=service.fewest_replicas,
        most_replicas=service.most_replicas,
        at_once=at_once_of(live) if live else _at_once_of(service.version(service.stable)),
        idle_s=service.scaling.idle_s,
    )
    if policy is None:
        return decide(signals, rule, state)
    answer = policy.answer(service, seen, now)
    if answer is None and policy.has_begun:  # between two questions, only zero is looked at
        answer = PolicyAnswer(float(len(live)), "")
    return decide(signals, rule, state, answer)
