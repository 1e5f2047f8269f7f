"""Our rule: a forecast of the load a cold start ahead, headroom for bursts that it learns, and what clears the queue.

No target is set. Beside the real fleet, the rule leads a few dozen imaginary ones on the same arrivals: each follows one
forecast (`scale/forecasts.py`) with one headroom, a factor or a number of typical errors. The real fleet follows the one that
would have been cheapest so far with a price on work that is late; the price rises when requests are really late, and falls
while few enough are (dual ascent), until as many are late as may be. A replica is given up when nothing in the last cold start
asked for it: until then it costs no more than a new one.

Newest replicas are given up first, so that of an imaginary fleet those are ready that it wanted throughout the last cold
start.
"""

from __future__ import annotations

from math import ceil, exp

import numpy as np

from chipwise.scale.forecasts import COUNT, Forecasts
from chipwise.scale.load import Floats
from chipwise.scale.serving import Scale, ScaledService, ServeSignals

KIND = "serve"
SUMMARY = "Forecast a cold start ahead, plus the backlog, plus headroom learned on imaginary fleets."
NEEDS = "arrivals, queue, speed of a replica, cold start"
RENDERS = "The scale subresource, set by a controller; no autoscaler has such a setting."

_FACTORS = (0.95, 1.0, 1.05, 1.1, 1.17, 1.25, 1.35, 1.5, 1.75, 2.1)
_FACTORED = (0, 1, 4)  # forecasts that they are applied to
_ERRORS = (-0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5)  # beside the mixture
_TYPICAL = 0.1  # what an error is taken for, as a share, before any is known
_LATE_SHARE = 0.9  # of the share that may be late
_DRAIN_S = 120.0  # in which the backlog is to be cleared
_PRIOR_S = 14_400.0  # of evidence that what follows is worth
_PRIOR_LATE, _PRIOR_MARGIN = 0.05, 0.1  # late work without headroom, and the headroom that makes it e times less
_LATE_PRICE, _LATE_PRICES = 30.0, (1.0, 1000.0)  # of late work, in its own; at first, and within which bounds
_LEARNING = 0.05  # of the price, per tick in which all are late
_CHOOSE_EVERY = 4  # ticks


class Candidates:
    """Imaginary fleets, as columns: what each wants, who waits, what it cost and how much work was late."""

    def __init__(self, service: ScaledService, ahead: int) -> None:
        self.service, self.ahead = service, ahead
        ways = [(forecast, factor, 0.0) for forecast in _FACTORED for factor in _FACTORS]
        ways += [(COUNT - 1, 1.0, errors) for errors in _ERRORS]
        self.forecast = np.array([forecast for forecast, _, _ in ways])
        self.factor = np.array([factor for _, factor, _ in ways])
        self.errors = np.array([errors for _, _, errors in ways])
        margins = self.factor - 1.0 + _TYPICAL * self.errors
        self.prior_late, self.prior_cost = _PRIOR_LATE * np.exp(-margins / _PRIOR_MARGIN), 1.0 + margins
        self.asked = np.zeros((max(ahead - 1, 1), len(ways)))  # of the last cold start
        self.wanted = np.zeros((ahead, len(ways)))
        self.backlog, self.waited_s, self.cost, self.late = (np.zeros(len(ways)) for _ in range(4))
        self.came, self.tick = 0.0, 0

    def after(self, busy: float, forecasts: Floats, typical: float) -> Floats:
        """What each asks for, without its backlog; `busy`: replicas that the arrivals of this tick keep busy."""
        service, tick = self.service, self.tick
        ready = np.maximum(self.wanted.min(axis=0), 1e-9)
        self.backlog = np.maximum(self.backlog + busy - ready, 0.0)  # replicas x ticks
        waits_s = self.backlog / ready * service.tick_s
        self.late += busy * late_shares(self.waited_s, waits_s, service.goal_wait_s)
        self.waited_s = waits_s
        self.cost += self.wanted[(tick - 1) % self.ahead]
        self.came += busy
        self.asked[tick % len(self.asked)] = forecasts[self.forecast] * self.factor + self.errors * typical
        asks = self.asked.max(axis=0)
        wants = np.ceil(asks + self.backlog * (service.tick_s / _DRAIN_S) - 1e-9)
        self.wanted[tick % self.ahead] = np.clip(wants, service.least_replicas, service.most_replicas)
        self.tick += 1
        return np.asarray(asks)

    def best(self, late_price: float) -> int:
        """The cheapest, when work that is late costs so many times its own."""
        prior = _PRIOR_S / self.service.tick_s * self.came / max(self.tick, 1)
        late = self.late + self.prior_late * prior
        return int(np.argmin(self.cost + self.prior_cost * prior + late_price * late))


def begin(service: ScaledService) -> Scale:
    ahead = ceil(service.cold_start_s / service.tick_s) + 1
    forecasts, candidates = Forecasts(service.tick_s, ahead), Candidates(service, ahead)
    may_be_late = _LATE_SHARE * (1.0 - service.goal_share)
    chosen, late_price, waited_s = -1, _LATE_PRICE, 0.0

    def decide(signals: ServeSignals) -> float:
        nonlocal chosen, late_price, waited_s
        if not candidates.tick:
            candidates.asked[:] = candidates.wanted[:] = signals.replicas
        busy = signals.arrived / service.tick_s / service.replica_per_s
        asks = candidates.after(busy, *forecasts.after(busy))
        late = float(late_shares(np.array(waited_s), np.array(signals.wait_s), service.goal_wait_s))
        waited_s = signals.wait_s
        weight = busy * candidates.tick / candidates.came if busy else 0.0
        late_price = min(max(late_price * exp(_LEARNING * weight * (late - may_be_late)), _LATE_PRICES[0]), _LATE_PRICES[1])
        if candidates.tick % _CHOOSE_EVERY == 1 or chosen < 0:
            chosen = candidates.best(late_price)
        return float(asks[chosen]) + signals.waiting / service.replica_per_s / _DRAIN_S

    return decide


def late_shares(before_s: Floats, now_s: Floats, goal_s: float) -> Floats:
    """Of those who came while the wait went from one to the other, evenly."""
    low, high = np.minimum(before_s, now_s), np.maximum(before_s, now_s)
    return np.asarray(np.clip((high - goal_s) / np.maximum(high - low, 1e-9), 0.0, 1.0))
