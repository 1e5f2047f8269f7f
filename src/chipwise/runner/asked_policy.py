"""A scaling policy over a service that runs: what its gateway counts becomes signals, and the answer a number of replicas."""

from __future__ import annotations

from typing import Any

from chipwise.scale.questions.scaling import scaling_policy
from chipwise.scale.serving import Scale, ScaledService, ServeSignals
from chipwise.serving.scaling import GatewayCounts, PolicyAnswer, RateMeter, ServiceRates, rate_words
from chipwise.serving.service import ReplicaRecord, ServiceRecord


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
        at_once = at_once_of(records)
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


def at_once_of(records: list[ReplicaRecord]) -> float:
    return float(min((record.at_once for record in records), default=1))
