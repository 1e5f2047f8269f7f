"""KEDA on the length of a queue, those in work included, as its scalers count it: replicas are messages over what a replica
can handle at once, through the HPA that KEDA makes (its tolerance, its limits of a step, five minutes on the way down); the
queue is read every 30 s.
"""

from __future__ import annotations

from chipwise.scale.serving import Scale, ScaledService, ServeSignals
from chipwise.scale.steadying import Recommended, step_up

KIND = "serve"
SUMMARY = "KEDA on queue length: requests in flight over what a replica handles at once; keda:5 sets it."
NEEDS = "requests in flight, concurrency of a replica"
RENDERS = "KEDA: a ScaledObject with queueLength (or the threshold of a Prometheus trigger), pollingInterval 30."
SETTING = 0.0  # as many as a replica works on at once
_TOLERANCE, _STABLE_S, _POLL_S = 0.1, 300.0, 30.0


def begin(service: ScaledService, target: float = SETTING) -> Scale:
    recommended, per_replica = Recommended(_STABLE_S), target or service.concurrency
    length, read_s = 0.0, -_POLL_S

    def decide(signals: ServeSignals) -> float:
        nonlocal length, read_s
        if signals.now_s - read_s >= _POLL_S:
            length, read_s = signals.in_flight, signals.now_s
        wanted = length / per_replica
        if abs(wanted / max(signals.replicas, 1) - 1.0) <= _TOLERANCE:
            wanted = float(signals.replicas)
        return recommended.after(signals, step_up(signals, wanted))

    return decide
