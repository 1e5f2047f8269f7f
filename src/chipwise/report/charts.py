"""The charts of a plan: cost against time or rate, where the money goes, and how full the memory is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from chipwise.planner.explain.words import many_words
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan
from chipwise.report.chart import ANSWER, COLOURS, Axis, Bar, Bars, Chart, ColourScale, Dot, Note, Points
from chipwise.report.chart_parts import (
    BAR_HEIGHT,
    BAR_ROOM,
    bar_axis,
    carbon_scale,
    carbon_tone,
    front_edge,
    hover_text,
    spread_axis,
    time_unit,
)
from chipwise.report.markup import label
from chipwise.report.words import chips, full, listed, rated, short
from chipwise.text import usd

TOP = 10  # choices that get a bar
_SYMBOLS = {
    "spot": "circle",
    "on-demand": "square",
    "reserved-1y": "triangle-up",
    "reserved-3y": "triangle-down",
    "owned": "hexagon",
}
_FULL = "#a64900"  # memory that is nearly used up


def pareto(plan: Plan) -> Chart | None:
    """Cost against time (of a job) or rate (of a service), carbon as colour, a symbol for each way to buy."""
    points = _points(plan)
    if plan.per != "job":
        points = [one for one in points if one.rate]
    if not points or plan.winner is None:
        return None
    axis = _x_axis(plan, points)
    scale = carbon_scale([one.kg for one in points])
    front = {_key(one) for one in plan.front}
    bought = dict.fromkeys(one.purchase for one in points)
    groups = [(name, [one for one in points if one.purchase == name]) for name in bought]
    return Chart(
        "pareto",
        (
            *front_edge(_edge(points, axis), axis.edge, "hv" if plan.per == "job" else "vh"),
            *(_dots(name, choices, front, axis, plan, scale) for name, choices in groups),
            _ring(plan.winner, axis, plan),
        ),
        x=spread_axis(axis.title, [axis.of(one) for one in points]),
        y=spread_axis(f"USD a {plan.per}", [one.usd for one in points], prefix="$"),
        height=300,
        scale=scale,
    )


def costs(plan: Plan) -> Chart | None:
    """The cost lines of the best choices, stacked."""
    top = plan.choices[:TOP]
    if not top:
        return None
    places = [_place(rank, one) for rank, one in enumerate(top, start=1)]
    names = list(dict.fromkeys(line.name for one in top for line in one.cost.lines))
    return Chart(
        "costs",
        tuple(_cost_bars(name, COLOURS[at % len(COLOURS)], top, places, plan) for at, name in enumerate(names)),
        x=bar_axis(f"USD a {plan.per}", 0.0, max(one.usd for one in top) * 1.36, "$"),
        y=Axis(),
        height=BAR_HEIGHT * len(top),
        stacked=True,
        legend_above=True,
        notes=tuple(
            Note(one.usd, place, usd(one.usd)) for one, place in zip(top, places, strict=True) if math.isfinite(one.usd)
        ),
    )


def _cost_bars(name: str, colour: str, top: Sequence[Choice], places: Sequence[str], plan: Plan) -> Bars:
    bars = []
    for choice, place in zip(top, places, strict=True):
        line = next((line for line in choice.cost.lines if line.name == name), None)
        if line is None:
            bars.append(Bar(place, 0.0, colour))
            continue
        tip = hover_text(f"{line.name} {usd(line.usd)} of {usd(choice.usd)}", line.how, *full(choice, plan))
        bars.append(Bar(place, line.usd, colour, tip))
    return Bars(tuple(bars), label(short(name)))


def memory(plan: Plan) -> Chart | None:
    """How full a chip's memory is, of the best choices that tell it."""
    known = [
        (_place(rank, choice), 100 * choice.memory_share, choice)
        for rank, choice in enumerate(plan.choices[:TOP], start=1)
        if choice.memory_share is not None
    ]
    if not known:
        return None
    bars = tuple(
        Bar(
            place,
            share,
            _FULL if share > 90 else COLOURS[0],
            hover_text(f"{share:.0f}% of a chip's memory", *full(choice, plan)),
        )
        for place, share, choice in known
    )
    return Chart(
        "memory",
        (Bars(bars),),
        x=bar_axis("% of a chip's usable memory", 0.0, max(104.0, 1.04 * max(share for _, share, _ in known))),
        y=Axis(),
        height=BAR_HEIGHT * len(known) + BAR_ROOM,
        # In the bar's end, clear of the line at 100%; beside a bar that is too short for it.
        notes=tuple(Note(share, place, f"{share:.0f}%", inside=share >= 20) for place, share, _ in known),
        limit=100.0,
    )


@dataclass(frozen=True, slots=True)
class _XAxis:
    title: str
    unit_s: float | None  # seconds of one step; None: the rate
    edge: str  # what the dotted line joins

    def of(self, one: Choice) -> float:
        return (one.rate or 0.0) if self.unit_s is None else one.seconds / self.unit_s


def _x_axis(plan: Plan, points: Sequence[Choice]) -> _XAxis:
    if plan.per != "job":
        return _XAxis(f"{rated(plan)} that it can do", None, "cheapest for at least this rate")
    unit, name = time_unit(median(one.seconds for one in points))
    return _XAxis(f"{name} until done", unit, "cheapest within this time")


def _points(plan: Plan) -> list[Choice]:
    unique: dict[object, Choice] = {}
    for choice in (*plan.choices, *plan.front):
        if choice.usd > 0 and math.isfinite(choice.usd) and math.isfinite(choice.seconds):
            unique.setdefault(_key(choice), choice)
    return list(unique.values())


def _key(one: Choice) -> object:
    return (one.provider, one.machine, one.region, one.purchase, one.machines, one.precision, one.seconds, one.usd)


def _dots(purchase: str, choices: Sequence[Choice], front: set[object], axis: _XAxis, plan: Plan, scale: ColourScale) -> Points:
    dots = []
    for choice in choices:
        best = _key(choice) in front
        praise = "on the front: nothing is better in every respect" if best else ""
        tip = hover_text(*full(choice, plan), choice.family, praise)
        size, rim = (11, 1.6) if best else (7, 0.5)
        colour = scale.colour(carbon_tone(choice.kg))
        dots.append(Dot(x=axis.of(choice), y=choice.usd, size=size, colour=colour, rim=rim, tip=tip))
    return Points(_SYMBOLS.get(purchase, "diamond"), tuple(dots), label(short(purchase)), shaded=True)


def _ring(winner: Choice, axis: _XAxis, plan: Plan) -> Points:
    tip = hover_text("The answer", *full(winner, plan))
    return Points("circle-open", (Dot(x=axis.of(winner), y=winner.usd, size=22, colour=ANSWER, rim=3, tip=tip),), "the answer")


def _edge(points: Sequence[Choice], axis: _XAxis) -> list[tuple[float, float]]:
    """The steps of the lowest cost: from the fastest on, or from the highest rate down."""
    ordered = sorted(points, key=lambda one: (axis.of(one) if axis.unit_s else -axis.of(one), one.usd))
    steps: list[tuple[float, float]] = []
    for choice in ordered:
        if not steps or choice.usd < steps[-1][1]:
            steps.append((axis.of(choice), choice.usd))
    return steps if axis.unit_s else steps[::-1]


def _place(rank: int, choice: Choice) -> str:
    """Two lines on the axis; the rank makes it one of a kind."""
    machine = label(short(f"{many_words(choice)}{choice.machine}"))
    return f"{rank}. {machine}<br>{label(short(listed(chips(choice), choice.purchase), 26))}"
