"""How many replicas a service should have now: what its gateway counts, held against `serving/scaling` or a scaling policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.api.serving import folders
from chipwise.api.serving.engines import engine_named
from chipwise.scale.questions.scaling import scaling_policy
from chipwise.scale.serving import Scale, ScaledService, ServeSignals
from chipwise.serving.scaling import (
    GatewayCounts,
    PolicyAnswer,
    RateMeter,
    ScalingDecision,
    ScalingRule,
    ScalingSignals,
    ScalingState,
    ServiceRates,
    decide,
    rate_words,
)
from chipwise.serving.service import ReplicaRecord, ServiceRecord, ServiceVersion

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session


class AskedPolicy:
    """A policy over a service that runs, asked at its own pace. It begins when the speed of a replica is known; later changes
    of that speed count as more or less work in each request."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._begin = scaling_policy(name)
        self._meter = RateMeter()
        self._decide: Scale | None = None
        self._first_per_s = 0.0
        self._begun = self._asked = 0.0

    def answer(self, service: ServiceRecord, seen: dict[str, Any], now: float) -> PolicyAnswer | None:
        """None: it is not asked yet, or not known enough to it, and the built-in rule decides."""
        every_s, records = service.scaling.every_s, [record for record in service.replicas if not record.is_draining]
        counts = GatewayCounts(seen.get("arrived", 0), seen.get("answered", 0), seen.get("slot_s", 0.0))
        if not self._asked:
            self._asked = now
            self._meter.after(counts, every_s, 0, 1.0)
        seconds = now - self._asked
        if seconds < every_s:
            return None
        states = [seen["replicas"].get(record.name, {}) for record in records]
        ready = sum(not state.get("away", True) for state in states)
        at_once = _at_once(records)
        rates = self._meter.after(counts, seconds, ready, at_once)
        self._asked = now
        if rates.per_replica is None or not records:
            return None
        if self._decide is None:
            self._begun, self._first_per_s = now - seconds, rates.per_replica
            self._decide = self._begin(scaled_service(service, rates.per_replica, at_once))
        work = self._first_per_s / rates.per_replica
        signals = signals_of(rates, seen, (ready, len(records) - ready), (now - self._begun, now % 86_400.0), work)
        replicas = float(self._decide(signals))
        words = rate_words(rates, seconds, seen["waiting"])
        return PolicyAnswer(replicas, f"{self.name} wants {replicas:.3g}: {words}")

    @property
    def has_begun(self) -> bool:
        return self._decide is not None


def scaled_service(service: ServiceRecord, per_replica: float, at_once: float) -> ScaledService:
    assert service.most_replicas is not None
    return ScaledService(
        replica_per_s=per_replica,
        concurrency=at_once,
        cold_start_s=service.cold_start_s or 0.0,
        tick_s=service.scaling.every_s,
        least_replicas=service.fewest_replicas,
        most_replicas=service.most_replicas,
    )


def signals_of(
    rates: ServiceRates, seen: dict[str, Any], replicas: tuple[int, int], times: tuple[float, float], work: float
) -> ServeSignals:
    """`replicas`: ready, starting; `times`: since the begin, of the day; `work`: of a request, where one was 1 at the begin."""
    ready, starting = replicas
    waiting, running = seen["waiting"], sum(state["requests"] for state in seen["replicas"].values())
    speed = ready * (rates.per_replica or 0.0)
    return ServeSignals(
        now_s=times[0],
        clock_s=times[1],
        ready=ready,
        starting=starting,
        arrived=rates.arrived * work,
        waiting=waiting * work,
        in_flight=float(waiting + running),
        utilisation=rates.utilisation,
        wait_s=waiting / speed if speed > 0.0 else 0.0,
    )


def _at_once(records: list[ReplicaRecord]) -> float:
    return float(min((record.at_once for record in records), default=1))


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
        at_once=_at_once(live) if live else _at_once_of(service.version(service.stable)),
        idle_s=service.scaling.idle_s,
    )
    if policy is None:
        return decide(signals, rule, state)
    answer = policy.answer(service, seen, now)
    if answer is None and policy.has_begun:  # between two questions, only zero is looked at
        answer = PolicyAnswer(float(len(live)), "")
    return decide(signals, rule, state, answer)
