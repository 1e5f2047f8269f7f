"""Stars for every hardware family that can do a workload, each with the number behind it.

    performance  work per chip, the best of the family's candidates
    cost         USD per unit of work of the family's cheapest plan that keeps the goals; none: no stars
    energy       kWh per unit of work, the least of the family's candidates: chips and hosts, without cooling; no stars where
                 nobody states the power of a chip
    frameworks   share of the frameworks and engines for this kind of workload that run on the chip of the cheapest plan
    ease         how many of five questions are answered with yes (`_ease`)

Two rules make stars of numbers, and nothing is set by hand:
- `halvings`, for performance, cost and energy: five for the best family, and one less for every halving against it, to the
  nearest; at least one. 71% of the best still has five, 36% four, 18% three, 9% two.
- `fifths`, for shares: one star for every fifth that is begun; at least one.

A framework counts in full where its rules state that it runs, half where nothing we read speaks for or against it, and not at
all where a rule refuses. Limits of the workload hold: a family that is not on offer within them has no stars.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.chip import Chip
from chipwise.catalog.compatibility import CompatibilityAnswer, check, rules
from chipwise.catalog.offer import PURCHASES, Purchase
from chipwise.perf.arrays import Array
from chipwise.perf.seen import FORMULA
from chipwise.planner.explain.comparing import leaders
from chipwise.planner.explain.reason_words import words
from chipwise.planner.explain.words import PORTING
from chipwise.planner.fleet import Index
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.goals import MissesGoals
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Rows
from chipwise.planner.values.split import width
from chipwise.text import duration, number, spent
from chipwise.units import HOUR

MOST_STARS = 5
COLUMNS = ("performance", "cost", "energy", "frameworks", "ease")
_LEARNING = ("pytorch", "jax", "tensorflow", "flash-attention", "transformer-engine")
_ANSWERING = ("vllm", "sglang", "tensorrt-llm", "tgi", "pytorch", "jax")
_GENERAL_FRAMEWORKS = ("pytorch", "jax", "tensorflow")
FRAMEWORKS = {"train": _LEARNING, "finetune": _LEARNING, "serve": _ANSWERING, "batch": _ANSWERING}
_LESS = {"performance": False, "cost": True, "energy": True}  # whether less is better
_COUNTED = {1.0: "runs", 0.5: "not stated", 0.0: "refused"}
PROVIDERS = 2  # from so many on, leaving one is possible


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, what it is of, and its stars; None where nobody can tell."""

    value: float | None
    unit: str
    how: str
    stars: int | None = None


@dataclass(frozen=True, slots=True)
class Support:
    component: str
    counts: float  # 1 stated, 1/2 nothing said, 0 refused
    reason: str


@dataclass(frozen=True, slots=True)
class Question:
    asked: str
    yes: bool
    told: str


@dataclass(frozen=True, slots=True)
class Rating:
    family: str
    best: Choice  # the cheapest plan of the family
    missed: Reason | None  # the goal that it misses; None: none
    figures: Mapping[str, Figure]  # by `COLUMNS`
    support: tuple[Support, ...]
    questions: tuple[Question, ...]

    @property
    def stars(self) -> int:
        return sum(one.stars or 0 for one in self.figures.values())


def halvings(value: float, best: float) -> int:
    """`best` is at least `value`, both above zero."""
    return max(MOST_STARS - round(math.log2(best / value)), 1)


def fifths(share: float) -> int:
    return min(max(math.ceil(share * MOST_STARS - 1e-9), 1), MOST_STARS)


def rate(rows: Rows, kwh: Array, kind: str, per: str) -> list[Rating]:
    """Families that keep the goals first, then those with most stars; of as many, the cheaper."""
    group, names = _families(rows)
    keeps = np.zeros(len(rows.priced), dtype=bool)
    keeps[rows.ranked[: rows.kept]] = True
    ratings = []
    for code, (row, choice) in leaders(rows, group).items():
        members = np.flatnonzero(group == code)
        missed = None if keeps[row] else rows.verdict(choice) or MissesGoals()
        chip = rows.fleet.catalog.chips[str(rows.fleet.catalog.machines[rows.priced.machine[row]].chip)]
        support = framework_support(chip, FRAMEWORKS.get(kind, _GENERAL_FRAMEWORKS), rows.fleet.catalog.data)
        questions = _ease(rows, members, keeps, choice, support)
        figures = {
            "performance": _performance(rows, members, per),
            "cost": _cost(choice, per, missed),
            "energy": _energy(rows, members, kwh, per, choice.unit),
            "frameworks": _frameworks(chip, support),
            "ease": _questions(questions),
        }
        ratings.append(
            Rating(family=names[code], best=choice, missed=missed, figures=figures, support=support, questions=questions)
        )
    return sorted(starred(ratings), key=lambda one: (one.missed is not None, -one.stars, one.best.usd))


def starred(ratings: Sequence[Rating]) -> list[Rating]:
    """With stars for the numbers that are compared with the best family's."""
    best: dict[str, float] = {}
    for name, less in _LESS.items():
        values = [value for one in ratings if (value := one.figures[name].value)]
        if values:
            best[name] = min(values) if less else max(values)

    def with_stars(name: str, figure: Figure) -> Figure:
        if name not in best or not figure.value:
            return figure
        pair = (best[name], figure.value) if _LESS[name] else (figure.value, best[name])
        return replace(figure, stars=halvings(*pair))

    return [replace(one, figures={name: with_stars(name, each) for name, each in one.figures.items()}) for one in ratings]


def _families(rows: Rows) -> tuple[Index, list[str]]:
    """The family of every candidate as a position in the names."""
    labels = rows.fleet.families
    codes = {name: at for at, name in enumerate(dict.fromkeys(labels))}
    by_shape = np.array([codes[name] for name in labels], dtype=np.intp)
    return by_shape[rows.fleet.shape_of[rows.priced.machine]], list(codes)


def _performance(rows: Rows, members: Index, per: str) -> Figure:
    """Requests per second and chip where a rate is known; else work per hour of a chip, starting and waiting included."""
    priced, fleet = rows.priced, rows.fleet
    if per == "month":
        _, first = np.unique(priced.way[members], return_index=True)
        shown = [rows.choice(int(members[at])) for at in first]
        rated = [(choice.rate / _working(choice), choice.rate, choice) for choice in shown if choice.rate]
        if rated:
            value, rate, choice = max(rated, key=lambda row: row[0])
            return Figure(
                value,
                "requests/s per chip",
                f"{_working(choice)} {choice.chip} in {choice.precision} do {number(rate, 4)}",
            )
    chips = np.array([shape.chips for shape in fleet.shapes], dtype=np.float64)[fleet.shape_of[priced.machine[members]]]
    hourly = rows.units / np.maximum(priced.seconds[members] * chips * priced.machines[members], 1e-9) * HOUR
    position = int(np.argmax(hourly))
    choice = rows.choice(int(members[position]))
    text = f"{choice.chips * choice.machines} {choice.chip} in {choice.precision} take {duration(choice.seconds)}"
    return Figure(float(hourly[position]), f"{choice.unit} per chip-hour", text)


def _working(one: Choice) -> int:
    """Chips that answer: of a machine that is larger than its replicas, some do nothing."""
    return max(width(one.split) * one.replicas if one.replicas else one.chips * one.machines, 1)


def _cost(choice: Choice, per: str, missed: Reason | None) -> Figure:
    """A plan that misses the goals has no price to compare: it has no stars."""
    if missed is not None:
        return Figure(
            None, f"USD per {choice.unit}", f"{words(missed)} ({choice.machines} x {choice.where}, {choice.purchase})"
        )
    text = f"{spent(choice.usd)} a {per} on {choice.machines} x {choice.where}, {choice.purchase}"
    return Figure(choice.usd_per_unit, f"USD per {choice.unit}", text)


def _energy(rows: Rows, members: Index, kwh: Array, per: str, unit: str) -> Figure:
    known = members[np.isfinite(kwh[members])]
    if not len(known):
        return Figure(None, f"kWh per {unit}", "the power of its chips is not published")
    row = int(known[np.argmin(kwh[known])])
    choice = rows.choice(row)
    text = f"{number(float(kwh[row]), 4)} kWh a {per} on {choice.machines} x {choice.chips} {choice.chip}"
    return Figure(float(kwh[row]) / max(rows.units, 1e-9), f"kWh per {unit}", text)


def framework_support(chip: Chip, frameworks: Sequence[str], data: Path) -> tuple[Support, ...]:
    """The newest version of each on a chip. What a rule states for the chip's kind or vendor is stated."""
    supported = []
    for name in frameworks:
        finding = check(chip, {name: ""}, data)[0]
        properties = {"kind": str(chip.kind), "vendor": chip.vendor}
        stating = [rule for rule in rules(data) if rule.component == name and properties.get(rule.needs) in rule.values.split()]
        if finding.answer is CompatibilityAnswer.UNSTATED and stating and not finding.sources:  # no rule spoke against the chip
            supported.append(Support(name, 1.0, f"{stating[0].reason}."))
        else:
            counts = {CompatibilityAnswer.FINE: 1.0, CompatibilityAnswer.UNSTATED: 0.5, CompatibilityAnswer.REFUSED: 0.0}[
                finding.answer
            ]
            supported.append(Support(name, counts, finding.reason))
    return tuple(supported)


def _frameworks(chip: Chip, support: Sequence[Support]) -> Figure:
    share = sum(one.counts for one in support) / len(support)
    text = ", ".join(f"{one.component} {_COUNTED[one.counts]}" for one in support)
    return Figure(share, "of the frameworks", f"on {chip.name}: {text}", fifths(share))


def _ease(
    rows: Rows, members: Index, keeps: NDArray[np.bool_], choice: Choice, support: Sequence[Support]
) -> tuple[Question, ...]:
    """Five questions, answered from the plan's candidates and the tables."""
    priced = rows.priced
    good = members[keeps[members]]
    words = choice.family.split()
    porting = PORTING.get(words[-1]) or PORTING.get(words[0], "")
    native = any(one.component == "pytorch" and one.counts == 1.0 for one in support)
    alone = good[priced.machines[good] == 1]
    steady = good[priced.purchase[good] != PURCHASES.index(Purchase.SPOT)]
    demand = members[priced.purchase[members] == PURCHASES.index(Purchase.ON_DEMAND)]
    sellers = sorted({rows.fleet.catalog.machines[at].provider for at in set(priced.machine[demand].tolist())})
    measured = choice.provenance != FORMULA
    return (
        Question(
            "PyTorch code runs as it is",
            native and not porting,
            porting or ("PyTorch is stated to run" if native else "no source we read states that PyTorch runs"),
        ),
        Question(
            "one machine is enough",
            len(alone) > 0,
            rows.choice(int(alone[0])).machine if len(alone) else "no single machine keeps the goals",
        ),
        Question(
            "nothing has to survive interruptions",
            len(steady) > 0,
            "goals are kept without spot machines" if len(steady) else "only spot machines keep the goals, or none",
        ),
        Question(
            f"sold on demand by {PROVIDERS} providers or more",
            len(sellers) >= PROVIDERS,
            ", ".join(sellers) if sellers else "by no provider within the limits",
        ),
        Question("its speed rests on measurements", measured, f"the estimate is {choice.provenance}"),
    )


def _questions(questions: Sequence[Question]) -> Figure:
    yes_count = sum(one.yes for one in questions)
    text = "; ".join(f"{'yes' if one.yes else 'no'}: {one.asked}" for one in questions)
    return Figure(yes_count / len(questions), "of the questions", text, fifths(yes_count / len(questions)))
