"""Kinds of spot markets, and which of them a series is, as learned from what it showed so far.

Spot that has been there long is likely to stay, and spot that has been gone long is likely to stay away: the rate of change
falls with the time since the last change, here as (age + 5 min)^-0.7. A kind is a pair of rates at the age of zero, one of
losses and one of returns; the kinds are a grid of such pairs, and their likelihoods follow Bayes' rule. Old evidence fades
with a half-life, since markets change. A series is taken for the market at the power mean of the rates that the evidence
leaves open: of these it leans to the fastest changes, since slack that was spent too early on a market that seemed calm is
what costs most. The exponent, the half-life, the age at the begin and the power were chosen on two series (docs/policies.md
names them).
"""

from __future__ import annotations

from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from chipwise.scale.spot import Flags, Hours

FIRST_AGE_H = 1.0 / 6.0  # of the youngest of the age classes; each class after the second is twice as long as the one before
CLASSES = 8
EXPONENT = 0.7
RATES_PER_HOUR = (0.06, 0.25, 1.0, 4.0)
HALF_LIFE_H = 8.0
CAUTION = 4.0  # the power of the mean; 1 would be the plain mean
AGE_AT_BEGIN_H = 1.5  # of what is seen first, whose true age nobody knows

AGE_EDGES_H = FIRST_AGE_H * np.concatenate([[0.0], 2.0 ** np.arange(CLASSES - 1)])
_UPPER_H = np.append(AGE_EDGES_H[1:], 2.0 * AGE_EDGES_H[-1])
_MIDDLE_H = np.where(AGE_EDGES_H == 0.0, FIRST_AGE_H / 2.0, np.sqrt(AGE_EDGES_H * _UPPER_H))
_SHAPE = ((_MIDDLE_H + FIRST_AGE_H / 2.0) / FIRST_AGE_H) ** -EXPONENT
_PAIRS = np.array(list(product(RATES_PER_HOUR, RATES_PER_HOUR)))

LOSSES_PER_HOUR: Hours = _SHAPE[:, None] * _PAIRS[:, 0]  # age class x kind
RETURNS_PER_HOUR: Hours = _SHAPE[:, None] * _PAIRS[:, 1]
KINDS = len(_PAIRS)


def change_probability(rates_per_hour: Hours, hours: float) -> Hours:
    probability: Hours = -np.expm1(-rates_per_hour * hours)
    return probability


class Learner:
    """Of many series at once: the age of what each shows, and the weight of each kind."""

    def __init__(self, count: int, tick_h: float) -> None:
        self._tick_h = tick_h
        self._fading = 0.5 ** (tick_h / HALF_LIFE_H)
        self._last: Flags | None = None
        self._evidence = np.zeros((count, KINDS))
        self._age_h = np.full(count, AGE_AT_BEGIN_H)

    @cached_property
    def _logarithms(self) -> NDArray[np.float64]:
        """Of the probability of what a tick shows: available before x changed x age class x kind."""
        losses, returns = (change_probability(rates, self._tick_h) for rates in (LOSSES_PER_HOUR, RETURNS_PER_HOUR))
        logarithms: Hours = np.log(np.array([[1.0 - returns, returns], [1.0 - losses, losses]]))
        return logarithms

    def see(self, available: Flags) -> None:
        if self._last is not None:
            changed = available != self._last
            evidence = self._logarithms[self._last.astype(np.intp), changed.astype(np.intp), self.age_class]
            self._evidence = self._evidence * self._fading + evidence
            self._age_h = np.where(changed, 0.0, self._age_h + self._tick_h)
        self._last = available

    @property
    def age_class(self) -> NDArray[np.intp]:
        return np.searchsorted(AGE_EDGES_H, self._age_h + 1e-9, side="right") - 1

    @property
    def weights(self) -> Hours:
        """Series x kind: the market that each series is taken for, as shares of the kinds around it; a row sums to one."""
        likelihood = np.exp(self._evidence - self._evidence.max(axis=1, keepdims=True))
        likelihood = likelihood.reshape(-1, len(RATES_PER_HOUR), len(RATES_PER_HOUR))
        losses, returns = (_neighbour_shares(_cautious_mean(likelihood.sum(axis=axis))) for axis in (2, 1))
        shares: Hours = (losses[:, :, None] * returns[:, None, :]).reshape(-1, KINDS)
        return shares


def _cautious_mean(weights: Hours) -> Hours:
    """Of the rates, each series, as a position on their logarithmic scale."""
    powers = np.array(RATES_PER_HOUR) ** CAUTION
    rates = (weights @ powers / weights.sum(axis=1)) ** (1.0 / CAUTION)
    positions: Hours = np.interp(np.log(rates), np.log(RATES_PER_HOUR), np.arange(len(RATES_PER_HOUR)))
    return positions


def _neighbour_shares(positions: Hours) -> Hours:
    """The shares of the two neighbours of each position."""
    shares: Hours = np.maximum(1.0 - np.abs(positions[:, None] - np.arange(len(RATES_PER_HOUR))), 0.0)
    return shares
