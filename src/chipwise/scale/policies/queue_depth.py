"""The rule of thumb: one more replica when more than five requests wait, one fewer when utilisation was below 20% for ten
minutes. One step per tick; ten minutes are counted anew after each step down.
"""

from __future__ import annotations

from chipwise.scale.serving import Scale, ScaledService, ServeSignals
from chipwise.scale.steadying import lasting

KIND = "serve"
SUMMARY = "One more replica when over 5 requests wait; one fewer below 20% utilisation for 10 minutes."
NEEDS = "queue depth, utilisation"
RENDERS = "Auto Scaling Group: two step scaling policies with their alarms."
_DEPTH, _IDLE, _IDLE_S = 5.0, 0.2, 600.0


def begin(service: ScaledService) -> Scale:
    idles = lasting(_IDLE_S)

    def decide(signals: ServeSignals) -> float:
        if signals.waiting > _DEPTH:
            idles(signals.now_s, False)
            return signals.replicas + 1.0
        if idles(signals.now_s, signals.utilisation < _IDLE):
            idles(signals.now_s, False)
            return signals.replicas - 1.0
        return float(signals.replicas)

    return decide
