"""Loads made up: a day's swing, a wandering level, bursts that come and go, and clients that send in bunches.

The rate is mean x swing of the day x a wandering factor (its logarithm returns to zero within an hour) x `burst` while a burst
lasts (a Markov chain of two states). In cells of a second requests are as many as a Poisson law with a gamma-distributed mean
says, so that their variance is `bunching` times the mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.errors import BadInput
from chipwise.scale.load import Floats, RequestLoad, load_of

_DAY_S, _HOUR_S, _STEP_S = 86_400.0, 3600.0, 60.0
MOST_HOURS = 24.0 * 366


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticLoad:
    hours: float = 24.0
    rate: float = 50.0  # requests per second, on average
    swing: float = 0.5  # of the day: from 1 - swing to 1 + swing
    wander: float = 0.1  # standard deviation of the wandering factor's logarithm
    bursts: float = 6.0  # a day
    burst: float = 1.5  # how many times as much comes in one
    burst_minutes: float = 10.0
    bunching: float = 4.0  # variance of the requests of a second, over their mean

    def __post_init__(self) -> None:
        if not (0.0 < self.hours <= MOST_HOURS and self.rate > 0.0 and 0.0 <= self.swing <= 1.0 and self.wander >= 0.0):
            raise BadInput(
                f"A synthetic load has at most {MOST_HOURS:,.0f} hours, a rate above 0, a swing from 0 to 1, a wander from 0."
            )
        if min(self.bursts, self.burst, self.burst_minutes) < 0.0 or self.burst_minutes == 0.0 or self.bunching < 1.0:
            raise BadInput(
                "A synthetic load has bursts of more than 0 minutes, none of them negative, and a bunching of at least 1."
            )


def synthetic_load(shape: SyntheticLoad, seed: int) -> RequestLoad:
    """The same seed gives the same load."""
    chance = np.random.default_rng(seed)
    steps = max(int(np.ceil(shape.hours * _HOUR_S / _STEP_S)), 1)
    at_s = np.arange(steps + 1, dtype=np.float64) * _STEP_S
    day = 1.0 - shape.swing * np.cos(2.0 * np.pi * at_s / _DAY_S)
    rates = shape.rate * day * np.exp(_wandering(shape, steps + 1, chance)) * _bursts(shape, steps + 1, chance)
    return of_rates("synthetic", at_s, rates, np.full(steps + 1, shape.bunching), chance, duration_s=shape.hours * _HOUR_S)


def _wandering(shape: SyntheticLoad, steps: int, chance: np.random.Generator) -> Floats:
    stays = np.exp(-_STEP_S / _HOUR_S)
    moves = chance.normal(0.0, shape.wander * np.sqrt(1.0 - stays**2), steps)
    levels = np.empty(steps)
    level = 0.0
    for step in range(steps):
        level = level * stays + moves[step]
        levels[step] = level
    return levels


def _bursts(shape: SyntheticLoad, steps: int, chance: np.random.Generator) -> Floats:
    begins, ends = shape.bursts * _STEP_S / _DAY_S, min(_STEP_S / (shape.burst_minutes * 60.0), 1.0)
    factors, bursting = np.ones(steps), False
    draws = chance.random(steps)
    for step in range(steps):
        bursting = draws[step] >= ends if bursting else draws[step] < begins
        factors[step] = shape.burst if bursting else 1.0
    return factors


def of_rates(
    name: str,
    at_s: Floats,
    rates: Floats,
    bunching: Floats,
    chance: np.random.Generator,
    *,
    duration_s: float,
    clock_s: float = 0.0,
) -> RequestLoad:
    """Requests in cells of a second, from rates that move in straight lines between the given instants."""
    cells = np.arange(0.0, duration_s)
    means, variances = np.interp(cells, at_s, rates), np.interp(cells, at_s, rates * bunching)
    extra = np.maximum(variances - means, 0.0)
    scale = np.divide(extra, means, out=np.zeros_like(means), where=means > 0.0)
    shapes = np.divide(means, scale, out=np.zeros_like(means), where=scale > 0.0)
    drawn = np.where(scale > 0.0, chance.gamma(np.maximum(shapes, 1e-12), scale), means)
    counts = chance.poisson(drawn).astype(np.float64)
    busy = counts > 0.0
    return load_of(name, cells[busy], counts=counts[busy], duration_s=duration_s, clock_s=clock_s)
