"""A question is rows of one family, ready to be answered: kinds of work, how they join, what each row has in common with
others. An answer is its terms, their sum, the value in the asked unit, and how wide the fitted factors leave it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from chipwise.perf.arrays import Array, Coded
from chipwise.perf.fitting import Problem
from chipwise.perf.pooling import ALL_TERMS, Factors

_UNIT: Array = np.ones(1)
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
    fixed_terms: tuple[str, ...] = ()  # terms that no factor touches: the time between arrivals is the user's
    ratios: tuple[str, ...] = ()  # bases that are numbers, not seconds
    floors: Mapping[str, float] = field(default_factory=dict)  # share of a term, before any factor, that it cannot go below
    settings: Mapping[str, Array] = field(default_factory=dict)  # logarithms of context and chips, by which `seen` knows rows
    nominal: Array = field(
        default_factory=lambda: np.zeros(1)
    )  # seconds of all products at the stated peak; 0: not bound by it

    def __len__(self) -> int:
        return max(len(values) for values in self.bases.values())

    def terms(self, exponents: Mapping[str, Array]) -> dict[str, Array]:
        return self.scaled({base: np.exp(values) for base, values in exponents.items()})

    def scaled(self, scales: Mapping[str, Array]) -> dict[str, Array]:
        """Terms when each kind of work takes `scales` times as long. Where some terms are fixed the rest depends on the true
        seconds of each kind, so that all are scaled before they are joined."""
        bases = {name: values * scales[name] if name in scales else values for name, values in self.bases.items()}
        if ALL_TERMS not in scales:
            return self.compose(bases)
        total_scale = scales[ALL_TERMS]
        if self.fixed_terms:
            return self.compose(
                {name: values if name in self.ratios else values * total_scale for name, values in bases.items()}
            )
        return {name: values * total_scale for name, values in self.compose(bases).items()}

    def value(self, seconds: Array) -> Array:
        """What is asked of a run that takes so long."""
        return self.scale * _raised(seconds, self.power)

    def log_time(self, exponents: Mapping[str, Array]) -> Array:
        return np.log(_sum(self.terms(exponents)))

    def time_of(self, value: Array) -> Array:
        """Seconds that a measured value stands for."""
        return _raised(value / self.scale, self.power)

    def problem(self, measured: Array, weight: Array) -> Problem:
        return Problem(
            formula=self.log_time,
            bases=tuple(self.bases),
            levels=dict(self.levels),  # as they are: what is measured may be beyond what is answered
            features=self.features,
            measured=np.log(self.time_of(measured)),
            weight=weight,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    terms: Mapping[str, Array]  # seconds, factors applied
    seconds: Array
    value: Array  # in the asked unit
    spread: Array  # standard deviation of log(seconds) that the factors leave open
    minimum: Array  # seconds that the hardware needs at the very least


def answer(question: Question, factors: Factors) -> Answer:
    pooled = factors.pool(question.levels, question.features)
    scales = {base: pooled.scale(base) for base in pooled.place}
    terms = question.scaled(scales)
    floors = _floors(question, terms, scales)
    terms = _above_floors(terms, floors, question.fixed_terms)
    seconds = _sum(terms)
    # A base that shares its term with others counts with all of the term: an upper bound on what hangs on it.
    shared: dict[str, Array] = {}
    for base, term in question.term_of.items():
        if base in pooled.place:
            left = pooled.variance(base)
            shared[term] = shared[term] + left if term in shared else left
    squared = np.maximum(seconds * seconds, np.finfo(float).tiny)  # where nothing is done, nothing is uncertain
    hanging = _sum({term: left * terms[term] * terms[term] for term, left in shared.items()}) / squared
    variance = hanging + pooled.variance(ALL_TERMS) if ALL_TERMS in pooled.place else hanging
    spread = _like(np.sqrt(variance), seconds)
    minimum = np.minimum(_sum(floors), seconds)
    terms = {name: _like(values, seconds) for name, values in terms.items()}
    return Answer(terms=terms, seconds=seconds, value=question.value(seconds), spread=spread, minimum=minimum)


def _floors(question: Question, scaled: Mapping[str, Array], scales: Mapping[str, Array]) -> dict[str, Array]:
    """Seconds that each floored term cannot go below: a share of what it was before its base's factor."""
    base_of = {term: base for base, term in question.term_of.items() if term in question.floors}
    floors: dict[str, Array] = {}
    for name, share in question.floors.items():
        factors = [scales[base] for base in (base_of[name], ALL_TERMS) if base in scales]
        floors[name] = share * scaled[name] / reduce(np.multiply, factors, _UNIT)
    return floors


def _above_floors(terms: dict[str, Array], floors: Mapping[str, Array], fixed_terms: tuple[str, ...]) -> dict[str, Array]:
    """Factors must not make a term faster than the hardware: what a term lacks is taken from those that can give.

    The sum stays as fitted unless all that can be given is too little; then it rises to what the hardware allows.
    """
    margins = {name: terms[name] - floor for name, floor in floors.items()}
    lack = -_sum({name: np.minimum(values, 0.0) for name, values in margins.items()})
    if not lack.any():
        return terms
    spared = {name: np.maximum(values, 0.0) for name, values in margins.items()}
    free = {name: values for name, values in terms.items() if name not in floors and name not in fixed_terms}
    spare = _sum(spared | free)
    share = 1.0 - np.minimum(lack, spare) / np.maximum(spare, 1e-300)
    result = dict(terms)
    for name, values in spared.items():
        result[name] = floors[name] + values * share
    for name, values in free.items():
        result[name] = values * share
    return result


def _raised(values: Array, power: Array) -> Array:
    """values ** power: powers are 1 for times and -1 for rates."""
    if len(power) == 1:
        return values if power[0] > 0 else 1.0 / values
    return np.where(power > 0, values, 1.0 / values)


def _like(values: Array, rows: Array) -> Array:
    return values if len(values) == len(rows) else np.broadcast_to(values, rows.shape)


def _sum(terms: Mapping[str, Array]) -> Array:
    return reduce(np.add, terms.values()) if terms else np.zeros(1)
