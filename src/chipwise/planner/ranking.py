"""Which candidate is best: by cost, time, carbon or all three, ties by certainty, then by simplicity, then by room and carbon.

Where nothing is as sure of the latency goals as asked, what is compared is divided by the probability that they are kept: that
is what a kept goal costs. Near each other in cost the more probable is first, and nobody pays ten times as much for little.

The Pareto front is what no other candidate beats in cost, time and carbon together. A family is what people compare by: a
generation of GPUs, Trainium, TPUs, own machines; of every family the best is kept, so that each loss can be told.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Index

_NEVER = 1e-6  # a probability below it
TIE = 1e-9  # of the value: what differs by less differs by rounding, such as one price in two regions


@dataclass(frozen=True, slots=True)
class Values:
    """What candidates are compared by, one row each."""

    usd: Array
    seconds: Array
    kg: Array
    doubt: Array  # high over low of the estimate: certainty breaks ties
    machines: Array
    room: Array  # what the machines can take, such as requests a second; 0 where there is no such number
    chance: Array | None = None  # that the latency goals are kept, where nothing is as sure as asked

    def rows(self, selected: Index) -> Values:
        columns = {column.name: getattr(self, column.name) for column in fields(self)}
        picked: dict[str, Any] = {name: None if values is None else values[selected] for name, values in columns.items()}
        return Values(**picked)


def score(values: Values, objective: str) -> Array:
    """Smaller is better. Balanced: the geometric mean of cost, time and carbon, so that no unit counts for more."""
    if values.chance is not None:
        return score(replace(values, chance=None), objective) / np.maximum(values.chance, _NEVER)
    match objective:
        case "time":
            return values.seconds
        case "carbon":
            return values.kg
        case "balanced":
            return np.cbrt(values.usd * values.seconds * np.maximum(values.kg, 1e-9))
        case _:
            return values.usd


def order(values: Values, objective: str) -> Index:
    """Positions, the best first. Ties go by doubt, then by machines, then by cost and time: one machine is as fast in all
    regions, and not as dear. What is alike in all of that goes by what it can take, and then by carbon."""
    scores = score(values, objective)
    steps = np.floor(np.log(np.maximum(scores, 1e-12)) / np.log1p(TIE))
    ranked = np.argsort(steps, kind="stable")
    equal = np.diff(steps[ranked]) == 0
    ties = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
    tied = ranked[ties]  # few of many: the other columns are compared for these alone
    columns = (values.kg, -values.room, values.seconds, values.usd, values.machines, np.round(values.doubt, 2), steps)
    ranked[ties] = tied[np.lexsort([column[tied] for column in columns])]
    return ranked


def front(values: Values) -> Index:
    """Positions of the Pareto front, cheapest first: nothing else is at most as dear, slow and dirty, and better in one."""
    left = np.lexsort((values.kg, values.seconds, values.usd))
    seconds, kg = values.seconds[left], values.kg[left]
    chosen: list[int] = []
    while len(left):  # the cheapest of those that nothing cheaper beats is on the front, and takes out whatever it beats
        chosen.append(int(left[0]))
        stays = np.flatnonzero((seconds < seconds[0]) | (kg < kg[0]))
        left, seconds, kg = left[stays], seconds[stays], kg[stays]
    return np.array(chosen, dtype=np.intp)


def first_of(groups: Index, ranked: Index) -> Index:
    """Of every group the best-ranked row, in the order of rank."""
    _, first = np.unique(groups[ranked], return_index=True)
    return ranked[np.sort(first)]
