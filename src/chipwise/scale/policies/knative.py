"""Knative's autoscaler on concurrency: requests in flight, averaged over 60 s, over 70% of what a replica works on at once.
It panics when the average of the last 6 s asks for twice the ready replicas or more, and until 60 s after that it follows
the short average and takes nobody away. At most a thousand times as many, and half as few, per step.
"""

from __future__ import annotations

from math import ceil, floor

from chipwise.scale.serving import Scale, ScaledService, ServeSignals
from chipwise.scale.steadying import Mean

KIND = "serve"
SUMMARY = "Knative's concurrency: requests in flight over 60 s (6 s in panic), 70% of each replica's."
NEEDS = "requests in flight, concurrency of a replica"
RENDERS = "Knative: autoscaling.knative.dev/target, target-utilization-percentage, window."
SETTING = 70.0
_STABLE_S, _PANIC_S, _PANIC = 60.0, 6.0, 2.0
_UP, _DOWN = 1000.0, 2.0


def begin(service: ScaledService, target: float = SETTING) -> Scale:
    per_replica = service.concurrency * target / 100.0
    stable, short = Mean(_STABLE_S), Mean(_PANIC_S)
    panic_until_s, panic_replicas = -1.0, 0.0

    def decide(signals: ServeSignals) -> float:
        nonlocal panic_until_s, panic_replicas
        ready = max(signals.ready, 1)
        highest, lowest = ceil(_UP * ready), floor(ready / _DOWN)
        wanted = _clipped(ceil(stable.after(signals.now_s, signals.in_flight) / per_replica), lowest, highest)
        quickly = _clipped(ceil(short.after(signals.now_s, signals.in_flight) / per_replica), lowest, highest)
        if quickly >= _PANIC * ready:
            if signals.now_s > panic_until_s:
                panic_replicas = 0.0
            panic_until_s = signals.now_s + _STABLE_S
        if signals.now_s <= panic_until_s:
            panic_replicas = max(panic_replicas, quickly, float(ready))
            return panic_replicas
        return wanted

    return decide


def _clipped(value: float, low: float, high: float) -> float:
    return float(min(max(value, low), high))
