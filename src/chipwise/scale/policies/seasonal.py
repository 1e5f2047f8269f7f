"""A seasonal forecast, as predictive scaling makes it: what came at this time on the day before, at 70% utilisation, ordered
a cold start ahead; never fewer than the last minute's load asks for, which is all there is on the first day.
"""

from __future__ import annotations

from math import ceil

from chipwise.scale.serving import Scale, ScaledService, ServeSignals
from chipwise.scale.steadying import Mean, Recommended

KIND = "serve"
SUMMARY = "Yesterday's load at this time, a cold start ahead, at 70% utilisation; at least the last minute's."
NEEDS = "arrivals, a day of history, cold start"
RENDERS = "Auto Scaling Group: predictive scaling, mode ForecastAndScale; else a CronJob over the scale subresource."
SETTING = 70.0
_DAY_S, _WINDOW_S = 86_400.0, 300.0


def begin(service: ScaledService, target: float = SETTING) -> Scale:
    minute, recommended = Mean(60.0), Recommended(_WINDOW_S)
    day, ahead = round(_DAY_S / service.tick_s), ceil(service.cold_start_s / service.tick_s) + 1
    history: list[float] = []  # busy replicas of every tick, over a minute

    def decide(signals: ServeSignals) -> float:
        history.append(minute.after(signals.now_s, signals.arrived) / service.tick_s / service.replica_per_s)
        place = len(history) - day
        yesterday = max(history[place : place + ahead + 1]) if place >= 0 else 0.0
        return recommended.after(signals, max(history[-1], yesterday) / (target / 100.0))

    return decide
