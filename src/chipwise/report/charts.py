"""Charts as plain values, which `svg` draws: `data` and `layout`, by the names that plotting libraries use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from chipwise.planner.explain.words import many_words
from chipwise.planner.values.plan import Choice, Plan
from chipwise.report.markup import label
from chipwise.report.words import chips, full, listed, rated, short
from chipwise.text import usd
from chipwise.units import DAY, HOUR

TOP = 10  # choices that get a bar
_COLOURS = (  # Okabe and Ito's, which most colour-blind readers tell apart; bars have a thin dark rim besides
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#8c564b",
    "#5f6b6d",
)
_INK, _QUIET, _GRID = "#1f2328", "#57606a", "#d8dee4"
_SYMBOLS = {
    "spot": "circle",
    "on-demand": "square",
    "reserved-1y": "triangle-up",
    "reserved-3y": "triangle-down",
    "owned": "hexagon",
}
_BAR = 46  # pixels a bar takes
_WIDE = 8.0  # a span from here on is shown on a logarithmic scale

Trace = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chart:
    name: str
    data: tuple[Trace, ...]
    layout: dict[str, Any]

    @property
    def height(self) -> int:
        return int(self.layout["height"])


def pareto(plan: Plan) -> Chart | None:
    """Cost against time (of a job) or rate (of a service), carbon as colour, a symbol for each way to buy."""
    points = _points(plan)
    if plan.per != "job":
        points = [one for one in points if one.rate]
    if not points or plan.winner is None:
        return None
    axis = _x_axis(plan, points)
    front = {_key(one) for one in plan.front}
    bought = list(dict.fromkeys(one.purchase for one in points))
    traces = [_dots(name, [one for one in points if one.purchase == name], front, axis, plan) for name in bought]
    traces += map(_sign, bought)
    edge = _edge(points, axis)
    if len(edge) > 1:
        line = {"color": _QUIET, "width": 1.5, "dash": "dot", "shape": "hv" if plan.per == "job" else "vh"}
        traces.insert(
            0,
            {
                "type": "scatter",
                "mode": "lines",
                "x": [x for x, _ in edge],
                "y": [y for _, y in edge],
                "line": line,
                "name": axis.edge,
                "hoverinfo": "skip",
            },
        )
    traces.append(_star(plan.winner, axis, plan))
    layout = _layout(
        480,
        xaxis=_axis(axis.title, [axis.of(one) for one in points]),
        yaxis=_axis(f"USD a {plan.per}", [one.usd for one in points], prefix="$"),
        coloraxis=_carbon([one.kg for one in points]),
        margin={"l": 64, "r": 20, "t": 64, "b": 116},
        legend={"orientation": "h", "y": -0.24, "yanchor": "top", "x": 0},
    )
    return Chart("pareto", tuple(traces), layout)


def costs(plan: Plan) -> Chart | None:
    """The cost lines of the best choices, stacked."""
    top = plan.choices[:TOP]
    if not top:
        return None
    places = _places(top)
    names = list(dict.fromkeys(line.name for one in top for line in one.cost.lines))
    traces = []
    for index, name in enumerate(names):
        lines = [next((line for line in one.cost.lines if line.name == name), None) for one in top]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": label(short(name)),
                "y": places,
                "x": [line.usd if line else 0.0 for line in lines],
                "marker": {"color": _COLOURS[index % len(_COLOURS)], "line": {"color": _INK, "width": 0.5}},
                "hoverinfo": "text",
                "textposition": "none",
                "hovertext": [
                    _hover_text(f"{line.name} {usd(line.usd)} of {usd(choice.usd)}", line.how, *full(choice, plan))
                    if line
                    else ""
                    for choice, line in zip(top, lines, strict=True)
                ],
            }
        )
    highest = max(one.usd for one in top)
    layout = _bars(len(top), f"USD a {plan.per}", [0, highest * 1.36], prefix="$")
    layout["barmode"] = "stack"
    layout["annotations"] = [
        _annotation(one.usd, place, usd(one.usd)) for one, place in zip(top, places, strict=True) if math.isfinite(one.usd)
    ]
    layout["legend"] = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"}
    layout["margin"]["t"] = 62
    layout["height"] += 34
    return Chart("costs", tuple(traces), layout)


def memory(plan: Plan) -> Chart | None:
    """How full a chip's memory is, of the best choices that tell it."""
    known = [(at, one) for at, one in enumerate(plan.choices[:TOP]) if one.memory_share is not None]
    if not known:
        return None
    places = [_place(at + 1, one) for at, one in known]
    shares = [100 * (one.memory_share or 0.0) for _, one in known]
    trace = {
        "type": "bar",
        "orientation": "h",
        "y": places,
        "x": shares,
        "hoverinfo": "text",
        "textposition": "none",
        "hovertext": [
            _hover_text(f"{share:.0f}% of a chip's memory", *full(choice, plan))
            for (_, choice), share in zip(known, shares, strict=True)
        ],
        "marker": {"color": ["#a64900" if one > 90 else "#0072b2" for one in shares], "line": {"color": _INK, "width": 0.5}},
        "showlegend": False,
    }
    layout = _bars(len(known), "% of a chip's usable memory", [0, max(104.0, 1.04 * max(shares))])
    layout["annotations"] = [_bar_annotation(share, place) for share, place in zip(shares, places, strict=True)]
    full_at = {"type": "line", "x0": 100, "x1": 100, "yref": "paper", "y0": 0, "y1": 1}
    layout["shapes"] = [{**full_at, "line": {"color": _INK, "width": 1, "dash": "dash"}}]
    return Chart("memory", (trace,), layout)


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
    usual = median(one.seconds for one in points)
    unit, name = (DAY, "days") if usual >= 3 * DAY else (HOUR, "hours") if usual >= 2 * HOUR else (60.0, "minutes")
    return _XAxis(f"{name} until done", unit, "cheapest within this time")


def _points(plan: Plan) -> list[Choice]:
    unique: dict[object, Choice] = {}
    for choice in (*plan.choices, *plan.front):
        if choice.usd > 0 and math.isfinite(choice.usd) and math.isfinite(choice.seconds):
            unique.setdefault(_key(choice), choice)
    return list(unique.values())


def _key(one: Choice) -> object:
    return (one.provider, one.machine, one.region, one.purchase, one.machines, one.precision, one.seconds, one.usd)


def _dots(purchase: str, choices: Sequence[Choice], front: set[object], axis: _XAxis, plan: Plan) -> Trace:
    best = [_key(one) in front for one in choices]
    tips = [
        _hover_text(*full(choice, plan), choice.family, "on the front: nothing is better in every respect" if top else "")
        for choice, top in zip(choices, best, strict=True)
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "legendgroup": label(purchase),
        "showlegend": False,
        "x": [axis.of(one) for one in choices],
        "y": [one.usd for one in choices],
        "hoverinfo": "text",
        "hovertext": tips,
        "marker": {
            "symbol": _SYMBOLS.get(purchase, "diamond"),
            "size": [11 if one else 7 for one in best],
            "color": [_tone(one.kg) for one in choices],
            "coloraxis": "coloraxis",
            "line": {"color": _INK, "width": [1.6 if one else 0.5 for one in best]},
        },
    }


def _sign(purchase: str) -> Trace:
    """For the legend alone: points coloured by a scale have no colour there. A click on it acts on the whole group."""
    marker = {
        "symbol": _SYMBOLS.get(purchase, "diamond"),
        "size": 9,
        "color": "#ffffff",
        "line": {"color": _INK, "width": 1.5},
    }
    return {
        "type": "scatter",
        "mode": "markers",
        "legendgroup": label(purchase),
        "name": label(short(purchase)),
        "x": [None],
        "y": [None],
        "marker": marker,
    }


def _star(winner: Choice, axis: _XAxis, plan: Plan) -> Trace:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "the answer",
        "x": [axis.of(winner)],
        "y": [winner.usd],
        "cliponaxis": False,
        "hoverinfo": "text",
        "hovertext": [_hover_text("The answer", *full(winner, plan))],
        "marker": {"symbol": "circle-open", "size": 22, "color": "#d1242f", "line": {"width": 3}},
    }


def _edge(points: Sequence[Choice], axis: _XAxis) -> list[tuple[float, float]]:
    """The steps of the lowest cost: from the fastest on, or from the highest rate down."""
    ordered = sorted(points, key=lambda one: (axis.of(one) if axis.unit_s else -axis.of(one), one.usd))
    steps: list[tuple[float, float]] = []
    for choice in ordered:
        if not steps or choice.usd < steps[-1][1]:
            steps.append((axis.of(choice), choice.usd))
    return steps if axis.unit_s else steps[::-1]


def _tone(kg: float) -> float | None:
    """Carbon spans orders of magnitude: colour follows its logarithm."""
    return math.log10(kg) if kg > 0 and math.isfinite(kg) else None


def _carbon(kgs: Iterable[float]) -> dict[str, Any]:
    tones = [tone for tone in map(_tone, kgs) if tone is not None] or [0.0]
    low, high = min(tones), max(tones)
    if high - low < 0.01:
        low, high = low - 0.1, high + 0.1
    marks = [low, (low + high) / 2, high]
    return {
        "colorscale": "Viridis",
        "reversescale": True,
        "cmin": low,
        "cmax": high,
        "colorbar": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.02,
            "yanchor": "bottom",
            "len": 1.0,
            "thickness": 10,
            "title": {"text": "kg CO2e (darker is more)", "side": "top"},
            "tickvals": marks,
            "ticktext": [f"{10**mark:.2g}" if 10**mark < 100 else f"{10**mark:,.0f}" for mark in marks],
        },
    }


def _axis(title: str, values: Sequence[float], prefix: str = "") -> dict[str, Any]:
    low, high = min(values), max(values)
    axis: dict[str, Any] = {
        "title": {"text": title},
        "gridcolor": _GRID,
        "linecolor": _QUIET,
        "zeroline": False,
        "automargin": True,
    }
    if low <= 0 or high / low < _WIDE:
        return {**axis, "rangemode": "tozero", "tickprefix": prefix, "tickformat": ",", "nticks": 8}
    marks = _marks(low, high)
    span = [math.log10(low) - 0.06, math.log10(high) + 0.06]
    return {**axis, "type": "log", "range": span, "tickvals": marks, "ticktext": [f"{prefix}{_brief(mark)}" for mark in marks]}


def _brief(mark: float) -> str:
    for factor, letter in ((1e9, "G"), (1e6, "M")):
        if mark >= factor:
            return f"{mark / factor:,.0f}{letter}"
    return f"{mark:,.0f}" if mark >= 1 else f"{mark:g}"


def _marks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of every power of ten; the powers alone where that is too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    candidates = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    inside = [mark for mark in candidates if 0.87 * low <= mark <= 1.15 * high]
    return inside if len(inside) <= 8 else [10.0**power for power in powers if low <= 10.0**power <= high]


def _places(top: Sequence[Choice]) -> list[str]:
    return [_place(at, one) for at, one in enumerate(top, start=1)]


def _place(rank: int, choice: Choice) -> str:
    """Two lines on the axis; the rank makes it one of a kind."""
    machine = label(short(f"{many_words(choice)}{choice.machine}"))
    return f"{rank}. {machine}<br>{label(short(listed(chips(choice), choice.purchase), 26))}"


def _bars(count: int, title: str, span: Sequence[float], prefix: str = "") -> dict[str, Any]:
    return _layout(
        _BAR * count + 76,
        xaxis={
            "title": {"text": title},
            "gridcolor": _GRID,
            "range": list(span),
            "tickprefix": prefix,
            "tickformat": ",",
            "nticks": 4,
            "tickangle": 0,
            "fixedrange": True,
        },
        yaxis={"autorange": "reversed", "automargin": True, "ticks": "", "tickfont": {"size": 11}, "fixedrange": True},
        margin={"l": 10, "r": 12, "t": 16, "b": 48},
        bargap=0.35,
        showlegend=True,
    )


def _annotation(x: float, y: str, told: str) -> dict[str, Any]:
    return {"x": x, "y": y, "text": told, "xanchor": "left", "showarrow": False, "xshift": 4, "font": {"size": 12}}


def _bar_annotation(share: float, y: str) -> dict[str, Any]:
    """In the bar's end, clear of the line at 100%; beside a bar that is too short for it."""
    if share < 20:
        return _annotation(share, y, f"{share:.0f}%")
    return {
        **_annotation(share, y, f"{share:.0f}%"),
        "xanchor": "right",
        "xshift": -4,
        "font": {"size": 12, "color": "#ffffff"},
    }


def _layout(height: int, **settings: Any) -> dict[str, Any]:
    return {
        "height": height,
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "hovermode": "closest",
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": _INK},
        "hoverlabel": {"align": "left", "bgcolor": "#ffffff", "bordercolor": _QUIET, "font": {"color": _INK, "size": 12}},
        **settings,
    }


def _hover_text(*lines: str) -> str:
    return "<br>".join(label(line) for line in lines if line)
