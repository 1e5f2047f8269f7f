"""Scaling policies on a load as one page: what each costs against who waits, and replicas against load over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from chipwise.report.chart import COLOURS, INK, Axis, Chart, Dot, Lines, Points, Stroke
from chipwise.report.markup import label, tag, text
from chipwise.report.page import document, drawn, section
from chipwise.report.tables import simple
from chipwise.scale.simulator.compared import MixedAnswer, ReplicaTimeline, ServeAnswer
from chipwise.text import spent

_MOST_CHARTS = 12  # of replicas over time


@dataclass(frozen=True, slots=True)
class _Entry:
    """A policy on this page, whatever its cost is counted in."""

    name: str
    within_goal: float | None
    cost: float
    written: str  # the cost
    ratio: float


def scaling_page(answers: Sequence[ServeAnswer], timelines: Sequence[ReplicaTimeline], share: float, today: date) -> str:
    entries = [
        _Entry(
            name=answer.policy,
            within_goal=answer.within_goal,
            cost=answer.replica_hours,
            written=f"{answer.replica_hours:,.1f} replica-hours",
            ratio=answer.ratio_to_bound,
        )
        for answer in answers
    ]
    return _page(entries, answers[0].requests, timelines, share, today)


def mixed_page(answers: Sequence[MixedAnswer], timelines: Sequence[ReplicaTimeline], share: float, today: date) -> str:
    """In dollars, on machines of several types."""
    entries = [
        _Entry(
            name=f"{answer.policy}, {answer.purchase}",
            within_goal=answer.within_goal,
            cost=answer.usd,
            written=spent(answer.usd),
            ratio=answer.ratio_to_bound,
        )
        for answer in answers
    ]
    return _page(entries, answers[0].requests, timelines, share, today)


def _page(entries: Sequence[_Entry], requests: int, timelines: Sequence[ReplicaTimeline], share: float, today: date) -> str:
    charts = [_against(entries), *(_over_time(place, line) for place, line in enumerate(timelines[:_MOST_CHARTS]))]
    title = "Scaling policies compared"
    about = f"{requests:,} requests; the goal is that {share:.2%} of them wait no longer than allowed"
    header = tag("header", tag("h1", text(title)), tag("p", text(about), class_="about"), _answer(entries, share))
    inside = [
        drawn(charts, "cost", "Cost against waiting", "Right is more punctual, down is cheaper; 1 is the bound."),
        section("policies", "Policies", _table(entries)),
        *(
            drawn(
                charts, f"replicas-{place}", f"{line.policy} on {line.load}", "Replicas paid for, and what the load keeps busy."
            )
            for place, line in enumerate(timelines[:_MOST_CHARTS])
        ),
    ]
    return document(title, header, inside, today, "simulate serve")


def _answer(entries: Sequence[_Entry], share: float) -> str:
    punctual = [entry for entry in entries if entry.within_goal is not None and entry.within_goal >= share]
    if not punctual:
        return tag("p", text("No policy reaches the goal."), class_="answer none")
    best = min(punctual, key=lambda entry: entry.cost)
    return tag("p", text(f"Cheapest that reaches the goal: {best.name}, {best.written}."), class_="answer")


def _against(entries: Sequence[_Entry]) -> Chart:
    series = tuple(
        Points(
            "circle",
            (
                Dot(
                    entry.within_goal * 100.0,
                    entry.ratio,
                    9,
                    COLOURS[place % len(COLOURS)],
                    tip=label(entry.name),
                ),
            ),
            label(entry.name),
        )
        for place, entry in enumerate(entries)
        if entry.within_goal is not None
    )
    return Chart("cost", series, x=Axis("requests within the goal, %"), y=Axis("cost, to the bound"), height=260)


def _over_time(place: int, line: ReplicaTimeline) -> Chart:
    series = (
        Lines(line.hours, line.busy, Stroke(INK, 0.5), "busy with the load", fill=COLOURS[4]),
        Lines(line.hours, line.replicas, Stroke(COLOURS[5], 2, shape="hv"), "replicas"),
    )
    return Chart(f"replicas-{place}", series, x=Axis("hours"), y=Axis("replicas", from_zero=True), height=200)


def _table(entries: Sequence[_Entry]) -> str:
    rows = [
        [
            text(entry.name),
            "" if entry.within_goal is None else f"{entry.within_goal:.2%}",
            text(entry.written),
            f"{entry.ratio:.3f}",
        ]
        for entry in entries
    ]
    return simple(("policy", "within the goal", "cost", "to the bound"), rows)
