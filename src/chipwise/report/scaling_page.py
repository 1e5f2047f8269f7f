"""Scaling policies on a load as one page: what each costs against who waits, and replicas against load over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from chipwise.report.chart import COLOURS, INK, Axis, Chart, Dot, Lines, Points, Stroke
from chipwise.report.markup import label, tag, text
from chipwise.report.page import document, drawn, section
from chipwise.report.tables import simple
from chipwise.scale.simulator.compared import ReplicaTimeline, ServeAnswer

_MOST_CHARTS = 12  # of replicas over time


def scaling_page(answers: Sequence[ServeAnswer], timelines: Sequence[ReplicaTimeline], share: float, today: date) -> str:
    charts = [_against(answers), *(_over_time(place, line) for place, line in enumerate(timelines[:_MOST_CHARTS]))]
    title = "Scaling policies compared"
    about = f"{answers[0].requests:,} requests; the goal is that {share:.2%} of them wait no longer than allowed"
    header = tag("header", tag("h1", text(title)), tag("p", text(about), class_="about"), _answer(answers, share))
    inside = [
        drawn(charts, "cost", "Cost against waiting", "Right is more punctual, down is cheaper; 1 is the bound."),
        section("policies", "Policies", _table(answers)),
        *(
            drawn(
                charts, f"replicas-{place}", f"{line.policy} on {line.load}", "Replicas paid for, and what the load keeps busy."
            )
            for place, line in enumerate(timelines[:_MOST_CHARTS])
        ),
    ]
    return document(title, header, inside, today, "simulate serve")


def _answer(answers: Sequence[ServeAnswer], share: float) -> str:
    punctual = [answer for answer in answers if answer.within_goal is not None and answer.within_goal >= share]
    if not punctual:
        return tag("p", text("No policy reaches the goal."), class_="answer none")
    best = min(punctual, key=lambda answer: answer.replica_hours)
    return tag(
        "p", text(f"Cheapest that reaches the goal: {best.policy}, {best.replica_hours:,.0f} replica-hours."), class_="answer"
    )


def _against(answers: Sequence[ServeAnswer]) -> Chart:
    series = tuple(
        Points(
            "circle",
            (
                Dot(
                    answer.within_goal * 100.0,
                    answer.ratio_to_bound,
                    9,
                    COLOURS[place % len(COLOURS)],
                    tip=label(answer.policy),
                ),
            ),
            label(answer.policy),
        )
        for place, answer in enumerate(answers)
        if answer.within_goal is not None
    )
    return Chart("cost", series, x=Axis("requests within the goal, %"), y=Axis("replica-hours, to the bound"), height=260)


def _over_time(place: int, line: ReplicaTimeline) -> Chart:
    series = (
        Lines(line.hours, line.busy, Stroke(INK, 0.5), "busy with the load", fill=COLOURS[4]),
        Lines(line.hours, line.replicas, Stroke(COLOURS[5], 2, shape="hv"), "replicas"),
    )
    return Chart(f"replicas-{place}", series, x=Axis("hours"), y=Axis("replicas", from_zero=True), height=200)


def _table(answers: Sequence[ServeAnswer]) -> str:
    rows = [
        [
            text(answer.policy),
            "" if answer.within_goal is None else f"{answer.within_goal:.2%}",
            f"{answer.replica_hours:,.1f}",
            f"{answer.ratio_to_bound:.3f}",
        ]
        for answer in answers
    ]
    return simple(("policy", "within the goal", "replica-hours", "to the bound"), rows)
