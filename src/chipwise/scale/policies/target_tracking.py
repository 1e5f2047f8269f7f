"""Target tracking of Application Auto Scaling on invocations per instance, as SageMaker endpoints have it: a target of half
of what an instance can do, an alarm after 3 minutes above it and one after 15 minutes below 90% of it, each of them setting
replicas in proportion, and cooldowns of 300 s. Metrics are of whole minutes.
"""

from __future__ import annotations

from collections import deque

from chipwise.scale.serving import Scale, ScaledService, ServeSignals

KIND = "serve"
SUMMARY = "SageMaker target tracking on invocations per instance; target-tracking:50 is half of its speed."
NEEDS = "arrivals, speed of a replica"
RENDERS = "Application Auto Scaling: TargetTrackingScaling on SageMakerVariantInvocationsPerInstance."
SETTING = 50.0
_HIGH, _LOW, _LOW_SHARE = 3, 15, 0.9  # data points of a minute
_COOLDOWN_S, _MINUTE_S = 300.0, 60.0


def begin(service: ScaledService, target: float = SETTING) -> Scale:
    minutes: deque[float] = deque(maxlen=_LOW)  # arrivals per second and instance
    rates: deque[float] = deque(maxlen=_LOW)  # arrivals per second
    goal = service.replica_per_s * target / 100.0
    arrived, minute_s, moved_s = 0.0, 0.0, -_COOLDOWN_S

    def decide(signals: ServeSignals) -> float:
        nonlocal arrived, minute_s, moved_s
        arrived += signals.arrived
        if signals.now_s - minute_s < _MINUTE_S:
            return float(signals.replicas)
        rates.append(arrived / (signals.now_s - minute_s))
        minutes.append(rates[-1] / max(signals.ready, 1))
        arrived, minute_s = 0.0, signals.now_s
        if signals.now_s - moved_s < _COOLDOWN_S:
            return float(signals.replicas)
        recent = list(minutes)
        if len(recent) >= _HIGH and min(recent[-_HIGH:]) > goal:
            wanted = max(rates[-1] / goal, float(signals.replicas))
        elif len(recent) == _LOW and max(recent) < _LOW_SHARE * goal:
            wanted = max(list(rates)) / goal
        else:
            return float(signals.replicas)
        moved_s = signals.now_s
        return wanted

    return decide
