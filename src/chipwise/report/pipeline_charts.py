"""A pipeline's charts: cost lines of every stage, when each runs, and answers to other questions beside this one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from chipwise.planner.explain.pipeline_words import without
from chipwise.planner.values.pipeline import PipelinePlan, Placed, Totals
from chipwise.report.chart import ANSWER, COLOURS, Axis, Bar, Bars, Chart, Dot, Note, Points
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
from chipwise.report.words import mass, short
from chipwise.text import duration, usd

_SIGNS = {"time": "triangle-up", "cost": "square", "carbon": "diamond", "balanced": "hexagon"}


def stage_costs(plan: PipelinePlan) -> Chart | None:
    """Cost lines of every stage, stacked; what it hands on counts as its own."""
    if not plan.stages:
        return None
    rows = [(stage, _place(rank, stage), _lines(plan, stage)) for rank, stage in enumerate(plan.stages, start=1)]
    names = list(dict.fromkeys(name for _, _, lines in rows for name, _, _ in lines))
    sums = [sum(value for _, value, _ in lines) for _, _, lines in rows]
    return Chart(
        "stage-costs",
        tuple(
            Bars(tuple(_cost_bar(name, COLOURS[index % len(COLOURS)], *row) for row in rows), label(short(name)))
            for index, name in enumerate(names)
        ),
        x=bar_axis("USD of a job, or of a month", 0.0, max(max(sums), 0.01) * 1.36, "$"),
        y=Axis(),
        height=BAR_HEIGHT * len(rows),
        stacked=True,
        legend_above=True,
        notes=tuple(
            Note(value, place, f"{usd(value)}{'/mo' if stage.per == 'month' else ''}")
            for (stage, place, _), value in zip(rows, sums, strict=True)
            if math.isfinite(value)
        ),
    )


def _cost_bar(name: str, colour: str, stage: Placed, place: str, lines: Sequence[tuple[str, float, str]]) -> Bar:
    line = next((line for line in lines if line[0] == name), None)
    if line is None:
        return Bar(place, 0.0, colour)
    return Bar(place, line[1], colour, hover_text(f"{stage.name}: {name} {usd(line[1])}{_per(stage)}", line[2]))


def _lines(plan: PipelinePlan, stage: Placed) -> list[tuple[str, float, str]]:
    """Of its cost: name, USD, how it comes about."""
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
    unit, name = time_unit(total_s)
    ready = {one.name: one.ready_s for one in plan.stages}
    waiting, running, notes = [], [], []
    for rank, stage in enumerate(plan.stages, start=1):
        place, starts, run = _place(rank, stage), stage.starts_s, stage.ready_s - stage.starts_s
        wait = starts - max((ready[giver] for giver in stage.after), default=starts)  # for the hand-off that comes last
        waits_for = label(f"{stage.name} waits {duration(wait)} for what it takes")
        waiting.append(Bar(place, wait / unit, "#e69f00", waits_for, start=(starts - wait) / unit))
        keeps = ", then keeps running" if stage.per == "month" else ""
        runs = label(f"{stage.name}: {duration(starts)} to {duration(stage.ready_s)}{keeps}")
        running.append(Bar(place, run / unit, "#0072b2", runs, start=starts / unit))
        notes.append(Note(stage.ready_s / unit, place, duration(run) if run >= 90 else f"{run:.0f} s"))
    waited = [Bars(tuple(waiting), "hand-off")] if any(bar.length for bar in waiting) else []
    return Chart(
        "stage-times",
        (*waited, Bars(tuple(running), "runs, or starts up")),
        x=bar_axis(f"{name} from the start", 0.0, total_s / unit * 1.25),
        y=Axis(),
        height=BAR_HEIGHT * len(running) + BAR_ROOM,
        legend_above=True,
        notes=tuple(notes),
    )


def _numbers(totals: Totals) -> str:
    return f"{usd(totals.usd)}, {duration(totals.seconds)}, {mass(totals.kg)} kg CO2e{without(totals)}"


def stage_front(plan: PipelinePlan) -> Chart | None:
    """Cost against time of the whole: this answer, and others of which none is beaten by another."""
    if len(plan.front) < 2:
        return None
    totals = [one.totals for _, one in plan.front]
    unit, name = time_unit(max(one.seconds for one in totals))
    scale = carbon_scale([one.kg for one in totals])
    steps = sorted((one.seconds / unit, one.usd) for one in totals)
    edge = [step for at, step in enumerate(steps) if all(step[1] < before[1] for before in steps[:at])]
    groups = []
    for kind in dict.fromkeys(kind for kind, _ in plan.front):
        title = f"best by {kind}" if kind in _SIGNS else kind
        dots = []
        for alternative in (one for known, one in plan.front if known == kind):
            sums = alternative.totals
            tip = hover_text(title, _numbers(sums), *(f"{stage}: {where}" for stage, where in alternative.where))
            dots.append(Dot(sums.seconds / unit, sums.usd, 12, scale.colour(carbon_tone(sums.kg)), tip=tip))
        groups.append(Points(_SIGNS.get(kind, "circle"), tuple(dots), label(short(title)), shaded=True))
    answer = next((one.totals for kind, one in plan.front if kind == "the answer"), None)
    ring = (
        []
        if answer is None
        else [Points("circle-open", (Dot(x=answer.seconds / unit, y=answer.usd, size=24, colour=ANSWER, rim=3),))]
    )
    return Chart(
        "stage-front",
        (*front_edge(edge, "cheapest found within this time"), *groups, *ring),
        x=spread_axis(f"{name} until all is done and up", [one.seconds / unit for one in totals]),
        y=spread_axis("USD, with one month of services", [one.usd for one in totals], prefix="$"),
        height=280,
        scale=scale,
    )
