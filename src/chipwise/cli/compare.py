"""`chipwise compare`: the cheapest plan of every provider and purchase option, region or generation, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from chipwise.cli.options import HtmlReport, constraining, csv_option, json_option, reporting
from chipwise.cli.parameter_types import WholeNumber

if TYPE_CHECKING:
    from chipwise.api import Constraints
    from chipwise.planner.values.choice import Choice
    from chipwise.planner.values.plan import Plan
    from chipwise.views.compare import Cell, Comparison

_BUY = {"reserved-1y": "1 year", "reserved-3y": "3 years", "reserved-1y-upfront": "1y upfront"}


@click.command()
@click.argument("workload", metavar="WORKLOAD.yaml")
@click.option(
    "--by",
    type=click.Choice(["provider", "region", "generation"]),
    default="provider",
    show_default=True,
    help="What rows are grouped by.",
)
@click.option("--vendor", default=None, help="With --by generation: of this vendor only, as nvidia.")
@click.option("--environment", "-e", default=None, help="Use this environment of the file: prod.")
@constraining()
@click.option("--top", type=WholeNumber(1, 10000), default=20, show_default=True, help="How many regions to show.")
@csv_option("CSV of all rows, with a header line.")
@json_option("JSON, everything.")
@reporting()
@click.pass_context
def compare(
    ctx: click.Context,
    /,
    workload: str,
    by: str,
    vendor: str | None,
    environment: str | None,
    within: Constraints,
    top: int,
    as_csv: bool,
    as_json: bool,
    report: HtmlReport,
) -> None:
    """Compare providers, regions or generations for a workload: what the cheapest plan of each costs.

    Goals and limits of the file apply; services that are paid per use are listed below. Exits with 1 when nothing fits.

    \b
    Examples:
      chipwise compare workload.yaml
      chipwise compare workload.yaml --by region --cloud aws,gcp
      chipwise compare workload.yaml --by generation --vendor nvidia
      chipwise compare workload.yaml --by region --csv > regions.csv
    """
    from chipwise.api import over_file
    from chipwise.api.session.wiring import open_session
    from chipwise.api.verbs import compare as ask
    from chipwise.cli import text
    from chipwise.cli.plan_brief import show_nothing
    from chipwise.errors import BadInput
    from chipwise.views.compare import comparison_rows, comparison_view

    if vendor and by != "generation":
        raise BadInput(f"--vendor does not go with --by {by}.", remedy="Use --by generation, or --chip NAME.")
    report.check(workload)
    session = open_session()
    comparison = ask(session, workload, by, vendor, environment, over_file(session.names, workload, within))
    if report.path is not None:
        from chipwise.api.report import write_comparison

        write_comparison(comparison, report.path, session.today, report.force)
    if as_json:
        text.show_json(comparison_view(comparison))
    elif as_csv:
        text.show_csv(comparison_rows(comparison))
    elif comparison.plan.winner is None:
        show_nothing(comparison.plan, full=True)
        _show_services(comparison.plan)
    else:
        _show(comparison, top)
    report.say_written()
    if comparison.plan.winner is None:
        ctx.exit(0 if comparison.plan.service is not None else 1)


def _show(comparison: Comparison, top: int) -> None:
    from chipwise.cli import text

    plan = comparison.plan
    text.show_title(f"{plan.workload}: {plan.kind}, the cheapest plan by {comparison.by}, USD per {plan.per}")
    text.show_lines("")
    match comparison.by:
        case "region":
            _show_regions(comparison.cells, plan, top)
        case "generation":
            _show_generations(comparison.cells, plan)
        case _:
            _show_matrix(comparison.cells)
    _show_services(plan)
    if plan.notes:
        text.show_lines("", *plan.notes)


def _show_services(plan: Plan) -> None:
    from chipwise.cli.plan import show_services

    if plan.services:
        show_services(plan)


def _show_matrix(cells: tuple[Cell, ...]) -> None:
    from chipwise.catalog.offer import PURCHASES
    from chipwise.cli import text

    by_key = {one.key: one for one in cells}
    providers = list(dict.fromkeys(one.key[0] for one in cells))  # the cheapest first
    options = [name for name in map(str, PURCHASES) if any(one.key[1] == name for one in cells)]
    first = {provider: next(one for one in cells if one.key[0] == provider) for provider in providers}

    def cell_text(cell: Cell | None) -> str:
        return "-" if cell is None or cell.choice is None else _price(cell.choice) if cell.fits else "x"

    text.show_table(
        [
            text.Column("provider"),
            *(text.Column(_BUY.get(name, name), right=True) for name in options),
            text.Column("its cheapest", flexible=True),
        ],
        [
            [provider, *(cell_text(by_key.get((provider, name))) for name in options), _cheapest(first[provider])]
            for provider in providers
        ],
    )
    missed = [one for one in cells if not one.fits]
    if missed:
        text.show_lines("", "x: can do it, and misses a goal:")
        text.show_pairs([(f"{one.key[0]} {one.key[1]}", _reason(one)) for one in missed])
    _show_doubts(cells)
    if len(by_key) < len(providers) * len(options):
        text.show_lines("", "-: no offer within the limits can do it.")


def _price(choice: Choice) -> str:
    from chipwise.cli import text

    return f"{text.number(choice.usd)}{'?' if choice.doubt else ''}"


def _show_doubts(cells: Iterable[Cell]) -> None:
    """Of prices that the plan does not lead with where a surer one is near."""
    from chipwise.cli import text

    doubted = [(cell.key, cell.choice.doubt) for cell in cells if cell.fits and cell.choice is not None]
    doubts = [(key[1] if key[1].startswith(key[0]) else " ".join(key[:2]), doubt) for key, doubt in doubted if doubt]
    if doubts:
        text.show_lines("", "?: the price is doubtful, check it:")
        text.show_pairs(doubts)


def _reason(cell: Cell) -> str:
    from chipwise.views.words import words

    return "" if cell.why is None else words(cell.why)


def _cheapest(cell: Cell) -> str:
    one = cell.choice
    return f"{one.chips * one.machines} {one.chip}, {one.place}" if one is not None and cell.fits else ""


def _show_regions(cells: tuple[Cell, ...], plan: Plan, top: int) -> None:
    from chipwise.cli import text
    from chipwise.views.catalog import readable

    good = [one for one in cells if one.fits]
    text.show_table(
        [
            text.Column("provider"),
            text.Column("region", flexible=True),
            text.Column("in"),
            text.Column("chips", flexible=True),
            text.Column("buy", flexible=True),
            text.Column(f"USD/{plan.per}", right=True),
            text.Column("kg CO2e", right=True),
        ],
        [
            [
                cell.key[0],
                readable(cell.key[1]),
                cell.key[2] or "?",
                f"{cell.choice.chips * cell.choice.machines} {cell.choice.chip}",
                _BUY.get(cell.choice.purchase, cell.choice.purchase),
                _price(cell.choice),
                text.number(cell.choice.kg, 3),
            ]
            for cell in good[:top]
            if cell.choice is not None
        ],
    )
    _show_doubts(good[:top])
    if len(good) > top:
        text.show_lines(f"{len(good) - top:,} more of {len(good):,}: --top {len(good)}.")
    missed = [one for one in cells if not one.fits]
    if missed:
        text.show_lines(
            "",
            f"{text.plural(len(missed), 'region')} can do it and miss a goal, such as {missed[0].key[1]}:",
            _reason(missed[0]),
        )


def _show_generations(cells: tuple[Cell, ...], plan: Plan) -> None:
    from chipwise.cli import text
    from chipwise.cli.plan import RATED
    from chipwise.text import duration

    monthly = plan.per == "month"
    rows = []
    for cell in cells:
        if cell.choice is not None:
            time = text.number(cell.choice.seats or cell.choice.rate, 3) if monthly else duration(cell.choice.seconds)
            rows.append(
                [
                    str(cell.year or "?"),
                    cell.key[1],
                    f"{cell.choice.chips * cell.choice.machines} {cell.choice.chip}",
                    _price(cell.choice),
                    time,
                    text.number(cell.kwh, 3),
                    "" if cell.fits else "x",
                ]
            )
    text.show_table(
        [
            text.Column("since", right=True),
            text.Column("generation"),
            text.Column("chips", flexible=True),
            text.Column(f"USD/{plan.per}", right=True),
            text.Column(RATED[plan.kind] if monthly else "time", right=True),
            text.Column("kWh", right=True),
            text.Column(""),
        ],
        rows,
    )
    _show_doubts(cells)
    missed = [(one.key[1], _reason(one)) for one in cells if one.choice is not None and not one.fits]
    if missed:
        text.show_lines("", "x: misses a goal:")
        text.show_pairs(missed)
    if any(one.choice is not None and one.kwh is None for one in cells):
        text.show_lines("", "kWh -: the power of the chip is not published.")
    show_unable([(one.key[1], _reason(one)) for one in cells if one.choice is None])


def show_unable(pairs: list[tuple[str, str]]) -> None:
    """Names by why they have no number."""
    from chipwise.cli import text

    if pairs:
        text.show_lines("", "No candidate:")
        for reason in dict.fromkeys(reason for _, reason in pairs):
            text.show_lines(f"{', '.join(name for name, other in pairs if other == reason)}: {reason}.")
