"""A comparison as one page: the cheapest plan of every provider, region or generation, with its interval, and what misses."""

from __future__ import annotations

from datetime import date

from chipwise.catalog.region import readable
from chipwise.planner.explain.compare import Comparison
from chipwise.planner.explain.comparing import Cell
from chipwise.planner.explain.reason_words import nothing_words, words
from chipwise.planner.explain.words import headline
from chipwise.planner.values.plan import Plan
from chipwise.report.answer import answer_tiles
from chipwise.report.chart import Chart
from chipwise.report.interval_chart import Bar, interval_chart
from chipwise.report.markup import tag, text
from chipwise.report.page import document, drawn, missing_section, per_use, section
from chipwise.report.tables import simple, stacked
from chipwise.report.tiles import tiles
from chipwise.report.words import chips, full, mass, speed
from chipwise.text import usd, usd_interval

BARS = 12  # that are drawn, the cheapest
_KEYS = {
    "provider": ("provider", "bought"),
    "region": ("provider", "region", "country"),
    "generation": ("vendor", "generation"),
}


def compare_page(comparison: Comparison, today: date) -> str:
    plan = comparison.plan
    good = sorted((one for one in comparison.cells if one.fits and one.choice is not None), key=_usd)
    chart = _chart(good, plan)
    charts = [] if chart is None else [chart]
    inside = [
        tiles(answer_tiles(plan)) if plan.winner is not None else missing_section(plan),
        drawn(charts, "sides", f"The cheapest by {comparison.by}", "Lines: the range that holds the cost 8 times out of 10."),
        section(
            "cells",
            f"By {comparison.by}",
            _table(comparison, good),
            told=f"{len(good):,} that keep all goals, the cheapest first.",
        )
        if good
        else "",
        per_use(plan),
        _missed(comparison),
        section("notes", "Notes", tag("ul", *(tag("li", text(one)) for one in plan.notes))) if plan.notes else "",
    ]
    return document(plan.workload, _header(comparison), inside, today, "compare")


def _usd(cell: Cell) -> float:
    return cell.choice.usd if cell.choice is not None else 0.0


def _header(comparison: Comparison) -> str:
    plan = comparison.plan
    about = f"{plan.kind}, the cheapest plan by {comparison.by}; times and money are of a {plan.per}"
    fits = plan.winner is not None
    summary = headline(plan) if fits else f"{nothing_words(plan.missing)}."
    answer = tag("p", text(summary), class_="answer" if fits else "answer none")
    return tag("header", tag("h1", text(plan.workload)), tag("p", text(about), class_="about"), answer)


def _name(cell: Cell) -> str:
    return ", ".join(readable(part) for part in cell.key if part)


def _chart(good: list[Cell], plan: Plan) -> Chart | None:
    bars = [
        Bar(
            title=_name(cell),
            note=chips(cell.choice),
            usd=cell.choice.usd,
            low=cell.choice.low_usd,
            high=cell.choice.high_usd,
            story=tuple(full(cell.choice, plan)),
            is_answer=rank == 0,
        )
        for rank, cell in enumerate(good[:BARS])
        if cell.choice is not None
    ]
    return interval_chart("sides", bars, f"USD a {plan.per}")


def _table(comparison: Comparison, good: list[Cell]) -> str:
    plan, keys = comparison.plan, _KEYS[comparison.by]
    heads = (*keys, f"USD/{plan.per}", "chips", "time" if plan.per == "job" else "capacity", "where", "kg CO2e", "price of")
    rows = [
        [
            *(text(readable(part) if part else "?") for part in cell.key),
            stacked(usd(cell.choice.usd), usd_interval(cell.choice.low_usd, cell.choice.high_usd, cell.choice.usd)),
            text(chips(cell.choice)),
            text(speed(cell.choice, plan)),
            text(cell.choice.where),
            mass(cell.choice.kg),
            text(cell.choice.price_of),
        ]
        for cell in good
        if cell.choice is not None
    ]
    first = len(keys)  # on a phone what stands behind it must be scrolled to
    return simple(heads, rows, numbers=(first, first + 2, first + 4, first + 5))


def _missed(comparison: Comparison) -> str:
    """Those that miss a goal or cannot do it, joined by their reason."""
    bad = [(one, "" if one.why is None else words(one.why)) for one in comparison.cells if not one.fits]
    rows = [
        [text("; ".join(_name(one) for one, other in bad if other == reason)), text(reason)]
        for reason in dict.fromkeys(reason for _, reason in bad)
    ]
    return section("missed", "Out", simple(("which", "why"), rows, stacks=True)) if rows else ""
