"""A pipeline's charts: cost lines of every stage, when each runs, and answers to other questions beside this one."""

from __future__ import annotations

import math

from chipwise.planner.explain.pipeline_words import without
from chipwise.planner.values.pipeline import PipelinePlan, Placed, Totals
from chipwise.report.charts import (
    _COLOURS,
    _INK,
    _QUIET,
    Chart,
    _annotation,
    _axis,
    _bars,
    _carbon,
    _hover_text,
    _layout,
    _tone,
)
from chipwise.report.markup import label
from chipwise.report.words import mass, short
from chipwise.text import duration, usd
from chipwise.units import DAY, HOUR

_SIGNS = {"time": "triangle-up", "cost": "square", "carbon": "diamond", "balanced": "hexagon"}


def stage_costs(plan: PipelinePlan) -> Chart | None:
    """Cost lines of every stage, stacked; what it hands on counts as its own."""
    if not plan.stages:
        return None
    rows = [(one, _lines(plan, one)) for one in plan.stages]
    places = [_place(at, one) for at, one in enumerate(plan.stages, start=1)]
    names = list(dict.fromkeys(name for _, lines in rows for name, _, _ in lines))
    traces = []
    for index, name in enumerate(names):
        stage_lines = [next((line for line in lines if line[0] == name), None) for _, lines in rows]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": label(short(name)),
                "y": places,
                "x": [line[1] if line else 0.0 for line in stage_lines],
                "marker": {"color": _COLOURS[index % len(_COLOURS)], "line": {"color": _INK, "width": 0.5}},
                "hoverinfo": "text",
                "textposition": "none",
                "hovertext": [
                    _hover_text(f"{stage.name}: {name} {usd(line[1])}{_per(stage)}", line[2]) if line else ""
                    for (stage, _), line in zip(rows, stage_lines, strict=True)
                ],
            }
        )
    sums = [sum(line[1] for line in lines) for _, lines in rows]
    layout = _bars(len(rows), "USD of a job, or of a month", [0, max(max(sums), 0.01) * 1.36], prefix="$")
    layout["barmode"] = "stack"
    layout["annotations"] = [
        _annotation(value, place, f"{usd(value)}{'/mo' if stage.per == 'month' else ''}")
        for (stage, _), value, place in zip(rows, sums, places, strict=True)
        if math.isfinite(value)
    ]
    layout["legend"] = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"}
    layout["margin"]["t"] = 62
    layout["height"] += 34
    return Chart("stage-costs", tuple(traces), layout)


def _lines(plan: PipelinePlan, stage: Placed) -> list[tuple[str, float, str]]:
    lines = [(line.name, line.usd, line.how) for line in stage.choice.cost.lines if line.usd]
    moves = [move for move in plan.hand_offs if move.source == stage.name and move.usd]
    details = "; ".join(f"to {move.to}: {usd(move.usd)}{' a month' if move.per == 'month' else ''}" for move in moves)
    return [*lines, *([("hand-off", sum(move.usd for move in moves), details)] if moves else ())]


def _per(one: Placed) -> str:
    return " a month" if one.per == "month" else ""


def _place(at: int, one: Placed) -> str:
    return f"{at}. {label(short(one.name))}<br>{label(short(one.choice.machine, 26))}"


def stage_times(plan: PipelinePlan) -> Chart | None:
    """From start to end of every job, and until a service is up; what is waited for a hand-off stands before it."""
    if not plan.stages or plan.totals is None or plan.totals.seconds <= 0:
        return None
    total_s = plan.totals.seconds
    unit, name = (DAY, "days") if total_s >= 3 * DAY else (HOUR, "hours") if total_s >= 2 * HOUR else (60.0, "minutes")
    places = [_place(at, one) for at, one in enumerate(plan.stages, start=1)]
    ready = {one.name: one.ready_s for one in plan.stages}
    waits = [
        one.starts_s - max((ready[giver] for giver in one.after), default=one.starts_s) for one in plan.stages
    ]  # of the hand-off that comes last
    runs = [one.ready_s - one.starts_s for one in plan.stages]
    before = [one.starts_s - wait for one, wait in zip(plan.stages, waits, strict=True)]
    waiting = [f"{one.name} waits {duration(wait)} for what it takes" for one, wait in zip(plan.stages, waits, strict=True)]
    traces = [
        _spans("hand-off", "#e69f00", places, before, waits, unit, waiting),
        _spans(
            "runs, or starts up",
            "#0072b2",
            places,
            [one.starts_s for one in plan.stages],
            runs,
            unit,
            [
                f"{stage.name}: {duration(stage.starts_s)} to {duration(stage.ready_s)}"
                + (", then keeps running" if stage.per == "month" else "")
                for stage in plan.stages
            ],
        ),
    ]
    if not any(waits):
        traces = traces[1:]
    layout = _bars(len(places), f"{name} from the start", [0, total_s / unit * 1.25])
    layout["annotations"] = [
        _annotation(stage.ready_s / unit, place, duration(run) if run >= 90 else f"{run:.0f} s")
        for stage, place, run in zip(plan.stages, places, runs, strict=True)
    ]
    layout["legend"] = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}
    layout["barmode"] = "overlay"
    layout["margin"]["t"] = 40
    layout["height"] += 24
    return Chart("stage-times", tuple(traces), layout)


def _spans(
    name: str, colour: str, places: list[str], starts: list[float], spans: list[float], unit: float, tips: list[str]
) -> dict[str, object]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": places,
        "base": [one / unit for one in starts],
        "x": [one / unit for one in spans],
        "marker": {"color": colour, "line": {"color": _INK, "width": 0.5}},
        "hoverinfo": "text",
        "textposition": "none",
        "hovertext": [label(one) for one in tips],
    }


def _numbers(totals: Totals) -> str:
    return f"{usd(totals.usd)}, {duration(totals.seconds)}, {mass(totals.kg)} kg CO2e{without(totals)}"


def stage_front(plan: PipelinePlan) -> Chart | None:
    """Cost against time of the whole: this answer, and others of which none is beaten by another."""
    if len(plan.front) < 2:
        return None
    totals = [one.totals for _, one in plan.front]
    total_s = max(one.seconds for one in totals)
    unit, name = (DAY, "days") if total_s >= 3 * DAY else (HOUR, "hours") if total_s >= 2 * HOUR else (60.0, "minutes")
    traces: list[dict[str, object]] = []
    steps = sorted((one.seconds / unit, one.usd) for one in totals)
    edge = [step for at, step in enumerate(steps) if all(step[1] < before[1] for before in steps[:at])]
    if len(edge) > 1:
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": [x for x, _ in edge],
                "y": [y for _, y in edge],
                "hoverinfo": "skip",
                "line": {"color": _QUIET, "width": 1.5, "dash": "dot", "shape": "hv"},
                "name": "cheapest found within this time",
            }
        )
    for kind in dict.fromkeys(kind for kind, _ in plan.front):
        alternatives = [one for known, one in plan.front if known == kind]
        tips = [
            _hover_text(
                f"best by {kind}" if kind in _SIGNS else kind,
                _numbers(alternative.totals),
                *(f"{stage}: {where}" for stage, where in alternative.where),
            )
            for alternative in alternatives
        ]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "legendgroup": label(kind),
                "showlegend": False,
                "x": [one.totals.seconds / unit for one in alternatives],
                "y": [one.totals.usd for one in alternatives],
                "hoverinfo": "text",
                "hovertext": tips,
                "cliponaxis": False,
                "marker": {
                    "symbol": _SIGNS.get(kind, "circle"),
                    "size": 12,
                    "color": [_tone(one.totals.kg) for one in alternatives],
                    "coloraxis": "coloraxis",
                    "line": {"color": _INK, "width": 1},
                },
            }
        )
        sign = {"symbol": _SIGNS.get(kind, "circle"), "size": 9, "color": "#ffffff", "line": {"color": _INK, "width": 1.5}}
        titled = label(short(f"best by {kind}" if kind in _SIGNS else kind))
        traces.append(
            {  # for the legend alone: points coloured by a scale have no colour there
                "type": "scatter",
                "mode": "markers",
                "legendgroup": label(kind),
                "name": titled,
                "x": [None],
                "y": [None],
                "marker": sign,
            }
        )
    answer = next((one for kind, one in plan.front if kind == "the answer"), None)
    if answer is not None:
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "the answer",
                "x": [answer.totals.seconds / unit],
                "y": [answer.totals.usd],
                "hoverinfo": "skip",
                "showlegend": False,
                "cliponaxis": False,
                "marker": {"symbol": "circle-open", "size": 24, "color": "#d1242f", "line": {"width": 3}},
            }
        )
    layout = _layout(
        460,
        xaxis=_axis(f"{name} until all is done and up", [one.seconds / unit for one in totals]),
        yaxis=_axis("USD, with one month of services", [one.usd for one in totals], prefix="$"),
        coloraxis=_carbon([one.kg for one in totals]),
        margin={"l": 64, "r": 20, "t": 64, "b": 116},
        legend={"orientation": "h", "y": -0.24, "yanchor": "top", "x": 0},
    )
    return Chart("stage-front", tuple(traces), layout)
