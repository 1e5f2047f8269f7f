"""The page of a pipeline: its stages as a picture, what each costs and when it runs, who came next, and what planning them
together changed."""

from __future__ import annotations

from datetime import date

from chipwise.planner.explain.pipeline_words import together_words, without
from chipwise.planner.explain.reason_words import missing_words, nothing_words, words
from chipwise.planner.explain.remedy_words import remedy_words
from chipwise.planner.explain.words import many_words, objective_words
from chipwise.planner.reasons import Reason
from chipwise.planner.values.pipeline import Alternative, PipelinePlan, Placed, Totals, by_use, what
from chipwise.report.markup import tag, text
from chipwise.report.page import document, drawn, section
from chipwise.report.pipeline_charts import stage_costs, stage_front, stage_times
from chipwise.report.stage_flow import moved_told, stage_flow, width_of
from chipwise.report.tables import pairs, simple
from chipwise.report.tiles import Tile, tiles
from chipwise.report.words import chips, listed, mass
from chipwise.text import duration, usd


def pipeline_page(plan: PipelinePlan, today: date) -> str:
    if plan.totals is None:
        return document(plan.workload, _header(plan), _nothing(plan), today)
    charts = [one for one in (stage_costs(plan), stage_times(plan), stage_front(plan)) if one is not None]
    picture = section(
        "stages",
        "Stages and hand-offs",
        stage_flow(plan),
        told="Down the page in the order of hand-offs. A blue rim: a service, which keeps running.",
    )
    panels = [
        section("totals", "In all", pairs(_totals(plan.totals))),
        drawn(charts, "stage-costs", "Where the money goes", "Cost lines by stage; services by the month."),
        drawn(charts, "stage-times", "When each stage runs", "A service is drawn until it is up."),
    ]
    chain = width_of(plan) == 1
    inside = [
        tiles(_tiles(plan, plan.totals)),
        tag("div", picture, tag("div", *panels), class_="two") if chain else picture,
        *(() if chain else (panels[0], tag("div", *panels[1:], class_="two"))),
        section("moved", "Data moved between stages", _moves(plan)) if plan.hand_offs else "",
        section("together", "Planned together, and otherwise", _alternatives(plan, plan.totals), told=together_words(plan)),
        drawn(
            charts,
            "stage-front",
            "Cost against time of the whole",
            "Each point is best by something: no other is cheaper, faster and cleaner at once. The red ring is the answer.",
        ),
        *(_ranking(one) for one in plan.stages),
        section(
            "refused", "Left out", tag("ul", *(tag("li", text(f"{one.combination}: {words(one.why)}")) for one in plan.refused))
        )
        if plan.refused
        else "",
        _notes(plan),
    ]
    return document(plan.workload, _header(plan), inside, today)


def _header(plan: PipelinePlan) -> str:
    about = f"pipeline, {objective_words(plan.objective)}; jobs and hand-offs are paid once, services by the month"
    if plan.totals is None:
        return tag(
            "header",
            tag("h1", text(plan.workload)),
            tag("p", text(about), class_="about"),
            tag("p", text(f"{nothing_words([lack.missing for lack in plan.lacks])}."), class_="answer none"),
        )
    parts = [usd(plan.totals.once.usd)] if plan.totals.once.lines else []
    parts += [f"{usd(plan.totals.monthly.usd)} a month"] if plan.totals.monthly.lines else []
    stages = "1 stage" if len(plan.stages) == 1 else f"{len(plan.stages)} stages"
    summary = (
        f"{stages} in {duration(plan.totals.seconds)} for {' and then '.join(parts) or 'nothing'}, {_carbon(plan.totals)}."
    )
    answer = tag("p", text(summary), class_="answer")
    return tag("header", tag("h1", text(plan.workload)), tag("p", text(about), class_="about"), answer)


def _tiles(plan: PipelinePlan, totals: Totals) -> list[Tile]:
    numbers = [Tile("stages", str(len(plan.stages)), ", ".join(stage.name for stage in plan.stages))]
    numbers += [
        Tile(title, usd(cost.usd), "in all")
        for title, cost in (("cost, once", totals.once), ("cost a month", totals.monthly))
        if cost.lines
    ]
    time = Tile("time", duration(totals.seconds), "until all jobs are done and all services are up")
    return [*numbers, time, Tile("carbon", f"{mass(totals.kg)} kg CO2e", without(totals).strip(" ,;"))]


def _carbon(totals: Totals) -> str:
    return f"{mass(totals.kg)} kg CO2e{without(totals)}"


def _moves(plan: PipelinePlan) -> str:
    """The same as the arrows, with how it was reckoned: what is drawn cannot be copied."""
    rows = [
        [text(f"{move.source} to {move.to}"), text(", ".join(moved_told(move))), text("; ".join((move.how, *move.assumed)))]
        for move in plan.hand_offs
    ]
    return simple(("from and to", "data", "computed as"), rows, stacks=True)


def _totals(totals: Totals) -> list[tuple[str, str]]:
    rows = [
        (name, f"{usd(cost.usd)}: {', '.join(f'{line.name} {usd(line.usd)}' for line in cost.lines)}")
        for name, cost in (("once", totals.once), ("a month", totals.monthly))
        if cost.lines
    ]
    rows.append(("time", f"{duration(totals.seconds)} until all jobs are done and all services are up"))
    monthly = f" and {mass(totals.kg_monthly)} kg a month" if totals.kg_monthly else ""
    return [*rows, ("CO2e", f"{mass(totals.kg_once)} kg once{monthly}{without(totals)}")]


def _alternatives(plan: PipelinePlan, totals: Totals) -> str:
    rows = [_way("this plan", totals, None, [(one.name, what(one.choice)) for one in plan.stages], best=True)]
    for name, alternative in (("each stage by itself", plan.alone), ("all in one region", plan.one_region)):
        if alternative is not None:
            rows.append(_alternative_row(name, alternative))
    return simple(("", "USD", "time", "CO2e", "goals", "on"), rows, numbers=(1, 2, 3), stacks=True)


def _alternative_row(name: str, other: Alternative) -> list[str]:
    return _way(name, other.totals, other.misses, list(other.where))


def _way(name: str, totals: Totals, misses: Reason | None, locations: list[tuple[str, str]], best: bool = False) -> list[str]:
    runs = "<br>".join(text(f"{stage}: {what}") for stage, what in locations)
    carbon = f"{mass(totals.kg)} kg{without(totals)}"
    first = tag("b", text(name)) if best else text(name)
    return [
        first,
        text(usd(totals.usd)),
        text(duration(totals.seconds)),
        text(carbon),
        text("keeps all goals" if misses is None else words(misses)),
        runs,
    ]


def _ranking(stage: Placed) -> str:
    """Of a stage the best candidates, by what the whole comes to with each."""
    if not stage.rivals:
        return ""
    per = "month" if stage.per == "month" else "job"
    rows = []
    for rank, rival in enumerate(stage.rivals, start=1):
        choice = rival.choice
        location = f"{tag('b', text(f'{many_words(choice)}{choice.machine}'))}<br>{text(listed(choice.provider, choice.place))}"
        own = "-" if by_use(choice) else mass(choice.kg)
        rows.append(
            [
                str(rank),
                location,
                text(listed(chips(choice), choice.precision)),
                text(choice.purchase),
                text(usd(choice.usd)),
                text(own),
                text(usd(rival.usd)),
                text(duration(rival.seconds)),
                text(mass(rival.kg)),
                text("" if rival.misses is None else words(rival.misses)),
            ]
        )
    titles = ["#", "runs on", "chips", "buy", f"USD/{per}", "kg", "whole: USD", "whole: time", "whole: kg", "misses"]
    if not any(rival.misses for rival in stage.rivals):
        titles, rows = titles[:-1], [row[:-1] for row in rows]
    caption = "The choice first, then the best machine types and ways to buy, all other stages as they are."
    table = simple(titles, rows, numbers=(0, 4, 5, 6, 7, 8))
    return section(f"stage-{stage.name}", f"Stage {stage.name}: who came next", table, told=caption)


def _nothing(plan: PipelinePlan) -> list[str]:
    rows = [
        [
            text(f"stage {lack.stage}" if lack.stage else "the whole"),
            text(lack.missing.what),
            text(missing_words(lack.missing)),
            text(remedy_words(lack.missing)),
        ]
        for lack in plan.lacks
    ]
    return [
        section("missing", "What was missing", simple(("of", "what", "how much", "would help"), rows, stacks=True)),
        _notes(plan),
    ]


def _notes(plan: PipelinePlan) -> str:
    counted = f"{plan.considered:,} candidates of all stages were considered."
    return section("notes", "Notes", tag("ul", *(tag("li", text(one)) for one in (counted, *plan.notes))))
