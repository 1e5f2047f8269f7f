"""Forecasts of a load a few minutes ahead, made at every tick from what came so far."""

from __future__ import annotations

from collections import deque

import numpy as np

from chipwise.scale.load import Floats

_DAY_S = 86_400.0
_SHORT_S, _LONG_S, _TREND_S = 30.0, 120.0, 240.0
_MEMORY_S = 3600.0  # of errors
_FIRST_ERROR, _FIRST_WEIGHT = 0.1, 20.0  # typical error before any is known, as a share of the level, in ticks of evidence
_MOST_SEASON = 3.0
COUNT = 5


class Forecasts:
    """The level of the last half minute; of the last two minutes; that with its trend; that moved as the load moved at this
    time of the day before; and a mixture of the four by their past errors."""

    def __init__(self, tick_s: float, ahead: int) -> None:
        self.ahead, self.day, self.back = ahead, round(_DAY_S / tick_s), max(round(_TREND_S / tick_s), 1)
        self.fade = 1.0 - min(tick_s / _MEMORY_S, 1.0)
        self.short: deque[float] = deque(maxlen=max(round(_SHORT_S / tick_s), 1))
        self.long: deque[float] = deque(maxlen=max(round(_LONG_S / tick_s), 1))
        self.levels: list[float] = []
        self.outstanding: deque[Floats] = deque()
        self.squares = np.zeros(COUNT)  # of errors, faded
        self.weight = 0.0

    def after(self, amount: float) -> tuple[Floats, float]:
        """The forecasts, and the typical error of the mixture."""
        self.short.append(amount)
        self.long.append(amount)
        level = sum(self.long) / len(self.long)
        self.levels.append(level)
        if len(self.outstanding) == self.ahead:
            self.squares = self.squares * self.fade + (self.outstanding.popleft() - amount) ** 2
            self.weight = self.weight * self.fade + 1.0
        forecasts = np.array([sum(self.short) / len(self.short), level, self._with_trend(level), self._with_season(level), 0.0])
        shares = 1.0 / (self.squares[:-1] + 1e-9) ** 2
        forecasts[-1] = shares @ forecasts[:-1] / shares.sum()
        self.outstanding.append(forecasts)
        prior = _FIRST_WEIGHT * (_FIRST_ERROR * level) ** 2
        return forecasts, float(np.sqrt((self.squares[-1] + prior) / (self.weight + _FIRST_WEIGHT)))

    def _with_trend(self, level: float) -> float:
        before = self.levels[max(len(self.levels) - 1 - self.back, 0)]
        return max(level + (level - before) * self.ahead / self.back, 0.0)

    def _with_season(self, level: float) -> float:
        then = len(self.levels) - 1 - self.day
        if then < 0 or self.levels[then] <= 0.0:
            return level
        return level * min(self.levels[then + self.ahead] / self.levels[then], _MOST_SEASON)
