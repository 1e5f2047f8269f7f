"""The Horizontal Pod Autoscaler on utilisation, as Kubernetes documents it: replicas in proportion to utilisation over
target, not moved within a tolerance of 10%, pods that are not ready counted as idle on the way up, at most twice as many or
four more per 15 s, and on the way down the highest recommendation of the last five minutes.
"""

from __future__ import annotations

from chipwise.scale.serving import Scale, ScaledService, ServeSignals
from chipwise.scale.steadying import Recommended, step_up

KIND = "serve"
SUMMARY = "Kubernetes HPA on utilisation; hpa:50 to hpa:90 sets its target in percent (70)."
NEEDS = "utilisation"
RENDERS = "HPA: metrics[].resource.target.averageUtilization; the defaults of behavior."
SETTING = 70.0
_TOLERANCE = 0.1
_STABLE_S = 300.0


def begin(service: ScaledService, target: float = SETTING) -> Scale:
    recommended = Recommended(_STABLE_S)

    def decide(signals: ServeSignals) -> float:
        return recommended.after(signals, step_up(signals, proportional(signals, signals.utilisation / (target / 100.0))))

    return decide


def proportional(signals: ServeSignals, ratio: float) -> float:
    """`ratio`: of the metric of ready pods to its target."""
    if abs(ratio - 1.0) <= _TOLERANCE:
        return float(signals.replicas)
    if ratio < 1.0 or not signals.starting:
        return ratio * (signals.ready or 1)
    with_idle = ratio * signals.ready / signals.replicas
    if with_idle < 1.0 or abs(with_idle - 1.0) <= _TOLERANCE:
        return float(signals.replicas)
    return with_idle * signals.replicas
