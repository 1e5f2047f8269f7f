"""How `chipwise plan` shows a pipeline: a row per stage, what moves between them, totals, and what joint planning changed."""

from __future__ import annotations

from chipwise.cli import text
from chipwise.planner.explain.reason_words import missing_words, remedy_words, words
from chipwise.planner.pipeline.value import Moved, PipelinePlan, Placed, Totals, why, without
from chipwise.text import decimal_size, duration, usd, usd_cell

_PATHS = {"in place": "stays in place", "other region": "to another region", "other cloud": "to another cloud"}
_PATHS |= {"to own site": "to your own site", "own site": "from your own site", "web": "over the web"}


def show_pipeline(found: PipelinePlan, as_json: bool, full: bool) -> None:
    if as_json:
        from chipwise.api.views.pipeline import pipeline_view

        text.show_json(pipeline_view(found))
        return
    text.show_title(f"{found.workload}: pipeline, by {found.objective}")
    if found.totals is None:
        text.show_lines("Nothing fits.", "")
        text.show_pairs(
            [
                (
                    f"stage {one.stage}" if one.stage else "the whole",
                    f"{one.missing.what}: {missing_words(one.missing)}. Would help: {remedy_words(one.missing)}.",
                )
                for one in found.lacks
            ]
        )
        text.show_lines("", *found.notes)
        return
    text.show_lines(_sentence(found, found.totals), "")
    text.show_table(
        [
            text.Column("stage"),
            text.Column("where", flexible=True, fold=True),
            text.Column("chips", flexible=True, fold=True),
            text.Column("buy"),
            text.Column("time", right=True),
            text.Column("USD", right=True),
            text.Column("kg", right=True),
        ],
        [_row(one) for one in found.stages],
    )
    hand_offs = found.hand_offs if full else [one for one in found.hand_offs if one.path != "in place"]
    if hand_offs:
        text.show_lines("", "Data moved between stages:")
        text.show_pairs([(f"{one.source} to {one.to}", _moved(one)) for one in hand_offs])
    if full:
        text.show_lines("", "In all:")
        text.show_pairs(_totals(found.totals))
    text.show_lines("", why(found), *(f"Left out: {one.combination}: {words(one.why)}." for one in found.refused))
    if not full:
        text.show_lines("", "--full shows what each part costs and what was assumed.")
    else:
        text.show_lines("", f"{found.considered:,} candidates of {text.plural(len(found.stages), 'stage')}.", *found.notes)


def _sentence(found: PipelinePlan, totals: Totals) -> str:
    parts = [usd(totals.once.usd)] if totals.once.lines else []
    parts += [f"{usd(totals.monthly.usd)} a month"] if totals.monthly.lines else []
    many = text.plural(len(found.stages), "stage")
    carbon = f"{totals.kg:,.1f} kg CO2e{without(totals)}"
    return f"{many} in {duration(totals.seconds)} for {' and then '.join(parts) or 'nothing'}, {carbon}."


def _row(one: Placed) -> list[str]:
    choice, monthly = one.choice, one.per == "month"
    many = f"{choice.machines}x " if choice.machines > 1 else ""
    return [
        one.name,
        f"{many}{choice.provider} {choice.machine}, {choice.place}",
        f"{f'{choice.chips * choice.machines:g} ' if choice.chips else ''}{choice.chip} {choice.precision}".rstrip(),
        choice.purchase,
        "month" if monthly else duration(choice.seconds),
        f"{usd_cell(choice.usd)}{'/mo' if monthly else ''}",
        "not known" if one.per_use else usd_cell(choice.kg),
    ]


def _money(value: float) -> str:
    return usd(value) if value >= 0.005 else "under a cent" if value else "free"


def _moved(one: Moved) -> str:
    if not one.size_bytes:
        return one.how
    size = f"{decimal_size(one.size_bytes)}{' a month' if one.per == 'month' else ''}"
    size += f" ({one.how})" if one.how != "in all" else ""
    if one.path == "in place":
        return f"{size} {_PATHS[one.path]}"
    waits = "continuously" if one.per == "month" else duration(one.seconds) if one.seconds >= 120 else f"{one.seconds:.0f} s"
    assumed = f" ({'; '.join(one.assumed)})" if one.assumed else ""
    return (
        f"{size} {_PATHS.get(one.path, one.path)}, {waits}, {_money(one.usd)}{'/month' if one.per == 'month' else ''}{assumed}"
    )


def _totals(totals: Totals) -> list[tuple[str, str]]:
    found = []
    for name, cost in (("once", totals.once), ("a month", totals.monthly)):
        if cost.lines:
            told = ", ".join(f"{line.name} {_money(line.usd)}" for line in cost.lines)
            found.append((name, f"{usd(cost.usd)}: {told}"))
    found.append(("time", f"{duration(totals.seconds)} until all jobs are done and all services are up"))
    known = totals.monthly.lines and (totals.kg_monthly or not totals.unknown_kg)
    monthly = f" and {usd_cell(totals.kg_monthly)} kg a month" if known else ""
    return [*found, ("CO2e", f"{usd_cell(totals.kg_once)} kg{monthly}{without(totals)}")]
