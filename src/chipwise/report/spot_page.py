"""Policies for spot machines as one page: costs against the time that was left, and ratios to the bound."""

from __future__ import annotations

from datetime import date

import numpy as np

from chipwise.report.chart import COLOURS, Axis, Chart, Dot, Lines, Points, Stroke
from chipwise.report.markup import label, tag, text
from chipwise.report.page import document, drawn, section
from chipwise.report.tables import simple
from chipwise.scale.simulator.spot_compared import SpotComparison
from chipwise.text import percent, plural, spent

_POINTS = 100  # of a line over the scenarios
_DASHES = ("", "dash", "dot")  # beside the colour, as there may be more policies than colours


def spot_page(comparison: SpotComparison, today: date) -> str:
    charts = [_against(comparison), _ratios(comparison)]
    about = f"{plural(comparison.answers[0].scenarios, 'scenario')} of a job with a deadline on spot machines"
    header = tag(
        "header", tag("h1", text("Spot policies compared")), tag("p", text(about), class_="about"), _answer(comparison)
    )
    inside = [
        drawn(
            charts,
            "cost",
            "Cost against lateness",
            "Right ends earlier in the worst scenario, zero is at the deadline; down is cheaper.",
        ),
        drawn(
            charts, "ratios", "To the bound", "Scenarios in the order of the ratio; 1 is a planner that knows the whole trace."
        ),
        section("policies", "Policies", _table(comparison)),
    ]
    return document("Spot policies compared", header, inside, today, "simulate spot")


def _answer(comparison: SpotComparison) -> str:
    punctual = [answer for answer in comparison.answers if not answer.late]
    if not punctual:
        return tag("p", text("Every policy is late."), class_="answer none")
    best = min(punctual, key=lambda answer: answer.mean_usd)
    ratio = f"{best.ratio_to_bound:.3f} times the bound"
    return tag("p", text(f"Cheapest that is never late: {best.policy}, {spent(best.mean_usd)}, {ratio}."), class_="answer")


def _against(comparison: SpotComparison) -> Chart:
    series = tuple(
        Points(
            "circle",
            (
                Dot(
                    float(np.where(np.isfinite(unused), unused, 0.0).min()) * 100.0,
                    answer.mean_usd,
                    9,
                    COLOURS[place % len(COLOURS)],
                    tip=label(answer.policy),
                ),
            ),
            label(answer.policy),
        )
        for place, (answer, unused) in enumerate(zip(comparison.answers, comparison.unused, strict=True))
    )
    x = Axis("least time that was left before the deadline, % of it")
    return Chart("cost", series, x=x, y=Axis("mean cost, USD", prefix="$"), height=260)


def _ratios(comparison: SpotComparison) -> Chart:
    shares = np.linspace(0.0, 1.0, min(_POINTS, len(comparison.bounds_usd)) + 1)
    series = tuple(
        Lines(
            (shares * 100.0).tolist(),
            np.quantile(cost / np.maximum(comparison.bounds_usd, 1e-9), shares).tolist(),
            Stroke(COLOURS[place % len(COLOURS)], 2, dash=_DASHES[place // len(COLOURS) % len(_DASHES)]),
            label(answer.policy),
        )
        for place, (answer, cost) in enumerate(zip(comparison.answers, comparison.costs_usd, strict=True))
    )
    return Chart("ratios", series, x=Axis("scenarios, %"), y=Axis("cost, to the bound"), height=260)


def _table(comparison: SpotComparison) -> str:
    rows = []
    for answer, unused in zip(comparison.answers, comparison.unused, strict=True):
        left = unused[np.isfinite(unused)]
        rows.append(
            [
                text(answer.policy),
                spent(answer.mean_usd),
                f"{answer.late:,}",
                percent(float(left.mean())) if len(left) else "",
                f"{answer.ratio_to_bound:.3f}",
            ]
        )
    return simple(("policy", "mean cost", "late", "time left, mean", "to the bound"), rows)
