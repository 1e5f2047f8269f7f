"""How `chipwise plan` shows a pipeline: a row per stage, what moves between them, totals, and what joint planning changed."""

from __future__ import annotations

from chipwise.cli import text
from chipwise.cli.plan_brief import LINE_LIMIT
from chipwise.planner.values.pipeline import Moved, PipelinePlan, Placed, Totals
from chipwise.text import decimal_size, duration, usd, usd_cell
from chipwise.views.words import (
    missing_words,
    nothing_words,
    objective_words,
    pipeline_headline,
    pipeline_risk_line,
    remedy_words,
    together_words,
    without,
    words,
)

HINT = "--full shows what each part costs and what was assumed."
_PATHS = {"in place": "stays in place", "other region": "to another region", "other cloud": "to another cloud"}
_PATHS |= {"to own site": "to your own site", "own site": "from your own site", "web": "over the web"}


def show_pipeline(plan: PipelinePlan, as_json: bool, full: bool) -> None:
    if as_json:
        from chipwise.views.pipeline import pipeline_view

        text.show_json(pipeline_view(plan))
        return
    head = text.title_lines(f"{plan.workload}: pipeline, {objective_words(plan.objective)}")
    if plan.totals is None:
        text.show_laid(head)
        text.show_lines(f"{nothing_words([lack.missing for lack in plan.lacks])}.", "")
        text.show_pairs(
            [
                (
                    f"stage {lack.stage}" if lack.stage else "the whole",
                    f"{lack.missing.what}: {missing_words(lack.missing)}. Would help: {remedy_words(lack.missing)}.",
                )
                for lack in plan.lacks
            ]
        )
        text.show_lines("", *plan.notes)
        return
    head += text.sentence_lines(pipeline_headline(plan), *filter(None, [pipeline_risk_line(plan)]), "")
    head += text.table_lines(
        [
            text.Column("stage"),
            text.Column("where", flexible=True, fold=True),
            text.Column("chips", flexible=True, fold=True),
            text.Column("buy"),
            text.Column("time", right=True),
            text.Column("USD", right=True),
            text.Column("kg", right=True),
        ],
        [_row(one) for one in plan.stages],
    )
    hand_offs = plan.hand_offs if full else [one for one in plan.hand_offs if one.path != "in place"]
    if hand_offs:
        head += ["", "Data moved between stages:"]
        head += text.pair_lines([(f"{one.source} to {one.to}", _moved(one, full)) for one in hand_offs])
    if full:
        head += ["", "In all:", *text.pair_lines(_totals(plan.totals))]
    left_out = [f"Left out: {one.combination}: {words(one.why)}." for one in plan.refused]
    if not full:
        used = len(head) + len(text.sentence_lines(*left_out)) + 2
        whole = text.sentence_lines(together_words(plan))
        lines = whole if used + len(whole) <= LINE_LIMIT else text.sentence_lines(together_words(plan, brief=True))
        text.show_laid([*head, "", *lines, *text.sentence_lines(*left_out, HINT)])
    else:
        text.show_laid(head)
        text.show_lines("", together_words(plan), *left_out)
        text.show_lines("", f"{plan.considered:,} candidates of {text.plural(len(plan.stages), 'stage')}.", *plan.notes)


def _row(stage: Placed) -> list[str]:
    choice, monthly = stage.choice, stage.per == "month"
    prefix = f"{choice.machines}x " if choice.machines > 1 else ""
    return [
        stage.name,
        f"{prefix}{choice.provider} {choice.machine}, {choice.place}",
        f"{f'{choice.chips * choice.machines:g} ' if choice.chips else ''}{choice.chip} {choice.precision}".rstrip(),
        choice.purchase,
        "month" if monthly else duration(choice.seconds),
        f"{usd_cell(choice.usd)}{'/mo' if monthly else ''}",
        "not known" if stage.per_use else usd_cell(choice.kg),
    ]


def _money(value: float) -> str:
    return usd(value) if value >= 0.005 else "under a cent" if value else "free"


def _moved(hand_off: Moved, full: bool) -> str:
    if not hand_off.size_bytes:
        return hand_off.how
    size = f"{decimal_size(hand_off.size_bytes)}{' a month' if hand_off.per == 'month' else ''}"
    size += f" ({hand_off.how})" if hand_off.how != "in all" else ""
    if hand_off.path == "in place":
        return f"{size} {_PATHS[hand_off.path]}"
    waits = (
        "continuously"
        if hand_off.per == "month"
        else duration(hand_off.seconds)
        if hand_off.seconds >= 120
        else f"{hand_off.seconds:.0f} s"
    )
    assumed = f" ({'; '.join(hand_off.assumed)})" if hand_off.assumed and full else ""
    price = f"{_money(hand_off.usd)}{'/month' if hand_off.per == 'month' else ''}"
    return f"{size} {_PATHS.get(hand_off.path, hand_off.path)}, {waits}, {price}{assumed}"


def _totals(totals: Totals) -> list[tuple[str, str]]:
    pairs = []
    for name, cost in (("once", totals.once), ("a month", totals.monthly)):
        if cost.lines:
            parts = ", ".join(f"{line.name} {_money(line.usd)}" for line in cost.lines)
            pairs.append((name, f"{usd(cost.usd)}: {parts}"))
    pairs.append(("time", f"{duration(totals.seconds)} until all jobs are done and all services are up"))
    known = totals.monthly.lines and (totals.kg_monthly or not totals.unknown_kg)
    monthly = f" and {usd_cell(totals.kg_monthly)} kg a month" if known else ""
    return [*pairs, ("CO2e", f"{usd_cell(totals.kg_once)} kg{monthly}{without(totals)}")]
