"""`chipwise offers`: what it costs, everywhere, with the age of each price."""

from __future__ import annotations

from typing import Any

import click

from chipwise.api import OfferOrder
from chipwise.cli.options import CatalogName, kinds, listed, listing
from chipwise.cli.parameter_types import Amount


@click.command()
@click.argument("machine", nargs=-1, metavar="[MACHINE]...", type=CatalogName("machine"))
@listed("--chip", "-c", complete="chip", help="Chip or family (h100), or several.")
@listed("--provider", "-p", complete="provider", help="Cloud or provider, or several.")
@kinds()
@listed("--region", "-r", complete="region", help="Region (us-east-1) or ISO country (DEU), or several.")
@listed("--purchase", complete="purchase", help="on-demand, spot, reserved, reserved-1y, ..., or several.")
@click.option("--spot", is_flag=True, help="Short for --purchase spot.")
@click.option("--on-demand", is_flag=True, help="Short for --purchase on-demand.")
@click.option("--memory", "-m", metavar="SIZE", help="At least this memory on each chip: 80GB.")
@click.option("--total-memory", metavar="SIZE", help="At least this memory on all chips.")
@click.option("--min-chips", type=Amount(), help="At least so many chips.")
@click.option("--max-chips", type=Amount(), help="At most so many chips.")
@click.option("--max-price", metavar="USD", help="At most this much per hour.")
@click.option("--max-chip-price", metavar="USD", help="At most this much per chip and hour.")
@click.option("--max-age", metavar="TIME", help="No price older than this: 90d.")
@click.option("--real", is_flag=True, help="Leave out prices that are not real offers.")
@click.option(
    "--sort",
    "-s",
    type=click.Choice([str(order) for order in OfferOrder]),
    default="price",
    show_default=True,
    help="Order of the rows.",
)
@click.option("--descending", is_flag=True, help="Largest first.")
@listing(limit=20)
def offers(
    machine: tuple[str, ...],
    chip: tuple[str, ...],
    provider: tuple[str, ...],
    kind: tuple[str, ...],
    region: tuple[str, ...],
    purchase: tuple[str, ...],
    spot: bool,
    on_demand: bool,
    memory: str | None,
    total_memory: str | None,
    min_chips: float | None,
    max_chips: float | None,
    max_price: str | None,
    max_chip_price: str | None,
    max_age: str | None,
    real: bool,
    sort: str,
    descending: bool,
    as_json: bool,
    as_csv: bool,
    limit: int,
) -> None:
    """List prices by chip, machine, provider, region and purchase option; the cheapest first.

    Every price shows its age. Prices that are not real offers come last, marked x.

    \b
    Examples:
      chipwise offers --chip h100 --sort price-per-chip
      chipwise offers p5 --spot --region us-east-1
      chipwise offers --memory 80GB --region DEU --max-chip-price 3 --json
    """
    from chipwise.api import OfferQuery, age_limit, find_offers, machine_query, price_limit, purchases, region_keys
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.errors import NoResult
    from chipwise.views.catalog import offer_views

    session = open_session()
    query = OfferQuery(
        machines=machine_query(
            session.names,
            machines=machine,
            chips=chip,
            providers=provider,
            kinds=kind,
            chip_memory=memory,
            total_memory=total_memory,
            min_chips=min_chips,
            max_chips=max_chips,
        ),
        regions=region_keys(session.names, region),
        purchases=purchases([*purchase, *["spot"] * spot, *["on-demand"] * on_demand]),
        max_usd_per_hour=price_limit(max_price, "--max-price"),
        max_usd_per_chip_hour=price_limit(max_chip_price, "--max-chip-price"),
        oldest=age_limit(max_age, session.today),
        real_only=real,
        order=OfferOrder(sort),
        descending=descending,
    )
    selected = find_offers(session.catalog, query)
    is_printed = text.show_views(lambda: offer_views(session.catalog, selected, session.today), as_json, as_csv)
    if selected and not is_printed:
        _table(offer_views(session.catalog, selected[: limit or None], session.today), len(selected), sort)
    if not selected:
        raise NoResult("No offer fits these filters.", remedy="Loosen or drop one of them.")


def _table(views: list[dict[str, Any]], total: int, sort: str) -> None:
    from chipwise.catalog.offer import MEANINGS, Verdict
    from chipwise.cli import text
    from chipwise.cli.text import Column
    from chipwise.views.catalog import readable

    def mark(view: dict[str, Any]) -> str:
        return "" if not view["verdict"] else "!" if view["can_win"] else "x"

    table = {
        Column("provider", flexible=True): [view["provider"] for view in views],
        Column("machine", flexible=True, fold=True): [view["machine"] for view in views],
        Column("chips", flexible=True, fold=True): [text.chips(view["chip"], view["chips"]) for view in views],
        Column("region", flexible=True, fold=True): [readable(view["region"]) for view in views],
        Column("purchase"): [view["purchase"] for view in views],
        Column("$/h", True): [text.money(view["usd_per_hour"]) for view in views],
        Column("$/chip", True): [text.money(view["usd_per_chip_hour"]) for view in views],
        Column("g/kWh", True): [text.number(view["grid_g_per_kwh"], 3) for view in views] if sort == "carbon" else [],
        Column("age", True): [text.age(view["age_days"]) for view in views],
        Column(""): [mark(view) for view in views] if any(map(mark, views)) else [],
    }
    # What is the same in every row is said once below, which leaves room for the names.
    constant = {
        c.title: v[0]
        for c, v in table.items()
        if len(v) > 1 and len(set(v)) == 1 and c.title in ("provider", "region", "purchase")
    }
    columns = [column for column, values in table.items() if values and column.title not in constant]
    text.show_table(columns, list(zip(*(table[column] for column in columns), strict=True)))
    if constant:
        text.show_lines("All rows: " + ", ".join(f"{title} {value}" for title, value in constant.items()) + ".")
    verdicts = dict.fromkeys(view["verdict"] for view in views if view["verdict"])
    if verdicts:
        meanings = "; ".join(f"{verdict}: {MEANINGS[Verdict(verdict)]}" for verdict in verdicts)
        text.show_lines(f"! doubtful, x not a real offer. {meanings}. --json gives the reason of each.")
    text.say_more(len(views), total)
