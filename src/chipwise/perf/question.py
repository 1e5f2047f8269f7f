"""A question is rows of one family, ready to be answered: kinds of work, how they join, what each row has in common with
others. An answer is its terms, their sum, the value in the asked unit, and how wide the fitted factors leave it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from chipwise.perf.arrays import Array, Coded
from chipwise.perf.fitting import Problem
from chipwise.perf.pooling import WHOLE, Factors

Compose = Callable[[dict[str, Array]], dict[str, Array]]


@dataclass(frozen=True, slots=True)
class Question:
    bases: Mapping[str, Array]  # seconds of each kind of work, before any factor
    compose: Compose  # scaled bases -> terms that sum to the time
    scale: Array
    power: Array  # the asked value is scale * time ** power; -1 for rates
    levels: Mapping[str, Coded]
    features: Mapping[str, Array]
    term_of: Mapping[str, str]  # where a base goes
    given: tuple[str, ...] = ()  # terms that no factor touches: the time between arrivals is the user's
    floors: Mapping[str, float] = field(default_factory=dict)  # share of a term, before any factor, that it cannot go below

    def __len__(self) -> int:
        return max(len(values) for values in self.bases.values())

    def terms(self, exponents: Mapping[str, Array]) -> dict[str, Array]:
        scaled = {
            name: values * np.exp(exponents[name]) if name in exponents else values for name, values in self.bases.items()
        }
        terms = self.compose(scaled)
        if WHOLE not in exponents:
            return terms
        whole = np.exp(exponents[WHOLE])
        return {name: values if name in self.given else values * whole for name, values in terms.items()}

    def log_time(self, exponents: Mapping[str, Array]) -> Array:
        return np.log(_sum(self.terms(exponents)))

    def time_of(self, value: Array) -> Array:
        """Seconds that a measured value stands for."""
        return np.asarray((value / self.scale) ** self.power)

    def problem(self, measured: Array, weight: Array) -> Problem:
        return Problem(self.log_time, tuple(self.bases), self.levels, self.features, np.log(self.time_of(measured)), weight)


@dataclass(frozen=True, slots=True)
class Answer:
    terms: Mapping[str, Array]  # seconds, factors applied
    seconds: Array
    value: Array  # in the asked unit
    spread: Array  # standard deviation of log(seconds) that the factors leave open
    least: Array  # seconds that the hardware needs at the very least


def answer(question: Question, factors: Factors) -> Answer:
    pooled = factors.pool(question.levels, question.features)
    terms = question.terms(pooled.exponents)
    floors = _floors(question, terms, pooled.exponents)
    terms = _above_floors(terms, floors, question.given)
    seconds = _sum(terms)
    # A base that shares its term with others counts with all of the term: an upper bound on what hangs on it.
    variance = pooled.variances.get(WHOLE, np.zeros(1))
    for base, term in question.term_of.items():
        if base in pooled.variances:
            variance = variance + pooled.variances[base] * (terms[term] / seconds) ** 2
    spread = np.broadcast_to(np.sqrt(variance), seconds.shape)
    least = np.minimum(np.broadcast_to(_sum(floors), seconds.shape), seconds)
    return Answer(terms, seconds, question.scale * seconds**question.power, spread, least)


def _floors(question: Question, scaled: Mapping[str, Array], exponents: Mapping[str, Array]) -> dict[str, Array]:
    """Seconds that each floored term cannot go below: a share of what it was before its base's factor."""
    nothing = np.zeros(1)
    base_of = {term: base for base, term in question.term_of.items() if term in question.floors}
    return {
        name: share * scaled[name] * np.exp(-exponents.get(base_of[name], nothing) - exponents.get(WHOLE, nothing))
        for name, share in question.floors.items()
    }


def _above_floors(terms: dict[str, Array], floors: Mapping[str, Array], given: tuple[str, ...]) -> dict[str, Array]:
    """Factors must not make a term faster than the hardware: what a term lacks is taken from those that can give.

    The sum stays as fitted unless all that can be given is too little; then it rises to what the hardware allows.
    """
    if not floors:
        return terms
    lack: Array = np.zeros(1)
    spare: Array = np.zeros(1)
    for name, values in terms.items():
        if name in given:
            continue
        over = values - floors[name] if name in floors else values
        spare = spare + np.maximum(over, 0.0)
        if name in floors:
            lack = lack + np.maximum(-over, 0.0)
    kept = 1.0 - np.minimum(lack, spare) / np.maximum(spare, 1e-300)
    return {
        name: floors[name] + np.maximum(values - floors[name], 0.0) * kept
        if name in floors
        else values
        if name in given
        else values * kept
        for name, values in terms.items()
    }


def _sum(terms: Mapping[str, Array]) -> Array:
    total: Array = np.zeros(1)
    for values in terms.values():
        total = total + values
    return total
