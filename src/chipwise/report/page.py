"""The whole page: one text that holds its style, its script, its charts and its data, and asks nobody for more.

The page's own policy forbids every request and every script but those whose digests it names, so a name that slipped through
as markup could neither run nor load anything. What a plan does not hold gets no section.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from datetime import date
from hashlib import sha256
from pathlib import Path

from chipwise.catalog.price_tables import PriceHistory
from chipwise.planner import quotas
from chipwise.planner.explain.reason_words import missing_words, nothing_words
from chipwise.planner.explain.remedy_words import remedy_words
from chipwise.planner.explain.risks import risk_line
from chipwise.planner.explain.roofline import Roofline
from chipwise.planner.explain.row_words import emissions, running
from chipwise.planner.explain.words import headline, objective_words
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan
from chipwise.report.answer import against, answer_tiles
from chipwise.report.chart import Chart
from chipwise.report.charts import TOP, costs, memory, pareto
from chipwise.report.flowchart import flowchart
from chipwise.report.history_chart import price_history
from chipwise.report.load_chart import day_chart, duration, load_table, load_told, regions_table
from chipwise.report.markup import tag, text
from chipwise.report.questions import questions
from chipwise.report.roofline import points_text as roofline_told
from chipwise.report.roofline import roofline
from chipwise.report.svg import drawings
from chipwise.report.tables import cost_lines, losses, matrix, pairs, ranking, refusals, services, simple
from chipwise.report.tiles import tiles
from chipwise.report.words import rated

_CAUTION = "Speeds and carbon are estimates; prices are those of the day that each row names."
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; script-src"
QUOTAS = 10  # first choices whose quotas are told: of all others in the ranking that would be a page of its own
_STATIC = Path(__file__).parent / "static"


def page(plan: Plan, today: date, limits: Roofline | None = None, history: Iterable[PriceHistory] = ()) -> str:
    """`history`: what chips cost by the month."""
    known = (against(plan), day_chart(plan), pareto(plan), costs(plan), memory(plan), roofline(limits), duration(plan))
    charts = [chart for chart in known if chart is not None]
    if plan.winner is not None and (past := price_history(plan.winner, history, today)) is not None:
        charts.append(past)
    inside = _answer(plan, charts, limits) if plan.winner is not None else _nothing(plan)
    return document(plan.workload, _header(plan), inside, today)


def document(title: str, header: str, inside: Iterable[str], today: date, command: str = "plan") -> str:
    """The page around what a plan says."""
    script = (_STATIC / "report.js").read_text(encoding="utf-8")
    style = (_STATIC / "report.css").read_text(encoding="utf-8")
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<link rel="icon" href="data:,">',
        tag("title", text(f"{title}: chipwise {command}")),
        f"<style>{style}</style>",
    ]
    body = [
        header,
        tag("main", *inside),
        tag("footer", text(f"Made by chipwise on {today.isoformat()}. {_CAUTION}")),
        f"<script>{script}</script>",
    ]
    return "\n".join(["<!DOCTYPE html>", '<html lang="en">', tag("head", *head), tag("body", *body), "</html>", ""])


def _policy(script: str) -> str:
    return f"{_POLICY} 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def _header(plan: Plan) -> str:
    summary = headline(plan) if plan.winner is not None else f"{nothing_words(plan.missing)}."
    about = f"{plan.kind}, {objective_words(plan.objective)}; times and money are of a {plan.per}"
    answer = tag("p", text(summary), class_="answer" if plan.winner is not None else "answer none")
    risks = tag("p", text(line)) if (line := risk_line(plan)) else ""
    return tag("header", tag("h1", text(plan.workload)), tag("p", text(about), class_="about"), answer, risks)


def section(name: str, title: str, *inside: str, told: str = "") -> str:
    return tag("section", tag("h2", text(title)), tag("p", text(told)) if told else "", *inside, id=name)


def drawn(charts: Iterable[Chart], name: str, title: str, caption: str) -> str:
    """A section for the chart of that name, if there is one."""
    chart = next((one for one in charts if one.name == name), None)
    if chart is None:
        return ""
    return section(name, title, tag("div", drawings(chart, title), id=f"chart-{name}", class_="plot"), told=caption)


def _answer(plan: Plan, charts: list[Chart], limits: Roofline | None) -> list[str]:
    winner = plan.choices[0]
    count = len(plan.choices)
    against = "time until done" if plan.per == "job" else rated(plan)
    best = f"the best {min(count, TOP)}" if count > 1 else "the answer"
    return [
        tiles(answer_tiles(plan)),
        drawn(
            charts,
            "against",
            "What it costs, against the next best",
            f"USD per {plan.per}. Green: the answer. Lines: the range that holds the cost 8 times out of 10.",
        ),
        drawn(
            charts,
            "day",
            "The load over the day",
            "And the machines that are up for it, by the clock that is named below, with the load over time.",
        ),
        section(
            "choices",
            "Ranking",
            ranking(plan),
            told=f"The best offer of every machine type and purchase option, {count:,} in all. Those that differ only in size, "
            "provider or region are folded under the best of them. Click a heading to sort.",
        ),
        _answered(plan),
        tag("div", _run_section(winner), _money(winner), class_="two"),
        drawn(
            charts,
            "history",
            f"What {winner.catalog_chip or winner.chip} cost by the month",
            "Medians over providers, machines and regions, hosts included, without marketplaces. The star is what the answer "
            "pays.",
        ),
        section(
            "decision", "What decided", flowchart(plan, questions(plan)), told="Only the questions that excluded something."
        ),
        drawn(
            charts,
            "pareto",
            f"Cost against {against}",
            "Large points with a dark rim are on the front: nothing else is better in cost, time and carbon at once.",
        ),
        tag(
            "div",
            drawn(charts, "costs", f"Where the money goes, {best}", "The numbers are those of the ranking."),
            drawn(charts, "memory", f"How full the memory is, {best}", "Brown: above 90%."),
            class_="two",
        ),
        drawn(charts, "roofline", "Roofline of the answer", roofline_told(limits)) if limits is not None else "",
        section(
            "providers",
            "The least cost by provider and chip family",
            matrix(plan),
            told=f"Of the {count:,} choices of the ranking. Empty: none within limits and goals. Darker is more expensive.",
        ),
        _over_time(plan, charts),
        _carbon(plan, winner),
        _losses(plan),
        per_use(plan),
        section("turns", "What would change the answer, and risks", pairs((one.what, one.told) for one in plan.turns))
        if plan.turns
        else "",
        _refusals(plan),
        _notes(plan),
    ]


def _answered(plan: Plan) -> str:
    told = pairs((one.question, one.told) for one in plan.answers)
    return section("answers", "Four questions", told) if plan.answers else ""


def _carbon(plan: Plan, winner: Choice) -> str:
    if plan.emitted is None:
        return ""
    basis = "; ".join(plan.emitted.basis)
    return section("carbon", "What the answer emits", pairs(emissions(plan.emitted, winner.unit)), told=basis)


def _over_time(plan: Plan, charts: list[Chart]) -> str:
    curve = drawn(charts, "load", "The load's duration curve", "Machines up in a month, the busiest hours first, by layer.")
    load_section = section("over-time", "Load over time", load_table(plan), told=load_told(plan)) if plan.load else ""
    region_section = section("regions", "Regions for the traffic", regions_table(plan)) if plan.placement else ""
    return load_section + curve + region_section


def _run_section(winner: Choice) -> str:
    return section("how", "How to run it", pairs(running(winner)))


def _money(winner: Choice) -> str:
    return section("money", "What the answer costs", cost_lines(winner))


def missing_section(plan: Plan) -> str:
    rows = [[text(one.what), text(missing_words(one)), text(remedy_words(one))] for one in plan.missing]
    return section("missing", "What was missing", simple(("what", "how much", "would help"), rows, stacks=True)) if rows else ""


def _nothing(plan: Plan) -> list[str]:
    return [
        missing_section(plan),
        section("decision", "What decided", flowchart(plan, questions(plan))),
        _losses(plan),
        per_use(plan),
        _refusals(plan),
        _notes(plan),
    ]


def _losses(plan: Plan) -> str:
    title = "Why every other family lost" if plan.winner is not None else "Why every family is out"
    return section("losses", title, losses(plan)) if plan.losses else ""


def per_use(plan: Plan) -> str:
    told = f"{len(plan.services):,} services; those that may be used stand first, the cheapest of each."
    return section("services", "Paid per use instead of per machine", services(plan), told=told) if plan.services else ""


def _refusals(plan: Plan) -> str:
    counts = plan.counts
    summary = (
        f"{counts.considered:,} candidates were considered, {counts.estimated:,} estimated, {counts.pruned:,} could not win."
    )
    return section("refused", "Left out before", refusals(plan) if plan.refused else "", told=summary)


def _notes(plan: Plan) -> str:
    told = (*plan.notes, *quotas.notes(plan, QUOTAS))
    return section("notes", "Notes", tag("ul", *(tag("li", text(one)) for one in told))) if told else ""
