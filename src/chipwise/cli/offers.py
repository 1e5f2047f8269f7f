"""`chipwise offers`: what it costs, everywhere, with the age of each price."""

from __future__ import annotations

from typing import Annotated

import typer

from chipwise.catalog.query import OfferOrder
from chipwise.cli.options import ChipNames, Csv, Json, Limit, Providers


def offers(
    machine: Annotated[list[str] | None, typer.Argument(metavar="[MACHINE]...", help="Machine or family: p5.48xlarge, a3.", show_default=False)] = None,
    chip: ChipNames = None,
    provider: Providers = None,
    region: Annotated[list[str] | None, typer.Option("--region", "-r", help="Region (us-east-1) or country (DEU).")] = None,
    purchase: Annotated[list[str] | None, typer.Option("--purchase", help="on-demand, spot, reserved, reserved-1y, ...")] = None,
    spot: Annotated[bool, typer.Option("--spot", help="Short for --purchase spot.")] = False,
    memory: Annotated[str | None, typer.Option("--memory", "-m", help="At least this memory on each chip: 80GB.")] = None,
    total_memory: Annotated[str | None, typer.Option("--total-memory", help="At least this memory on all chips.")] = None,
    min_chips: Annotated[float | None, typer.Option("--min-chips", help="At least so many chips.")] = None,
    max_chips: Annotated[float | None, typer.Option("--max-chips", help="At most so many chips.")] = None,
    max_price: Annotated[str | None, typer.Option("--max-price", help="At most this many USD per hour.")] = None,
    max_chip_price: Annotated[str | None, typer.Option("--max-chip-price", help="At most this many USD per chip and hour.")] = None,
    real: Annotated[bool, typer.Option("--real", help="Leave out prices that are not real offers.")] = False,
    sort: Annotated[OfferOrder, typer.Option("--sort", "-s", help="Order of the rows.")] = OfferOrder.PRICE,
    descending: Annotated[bool, typer.Option("--descending", help="Largest first.")] = False,
    json: Json = False,
    csv: Csv = False,
    limit: Limit = 20,
) -> None:
    """List prices by chip, machine, provider, region and purchase option; the cheapest first.

    Examples:  chipwise offers --chip h100 --sort price-per-chip  |  chipwise offers p5 --spot  |
    chipwise offers --memory 80GB --region DEU --max-chip-price 3 --json
    """
    from chipwise.api.selection import machine_query, price, purchases, region_keys
    from chipwise.api.views import offer_views
    from chipwise.api.wiring import open_session
    from chipwise.catalog.query import OfferQuery, find_offers
    from chipwise.cli import text
    from chipwise.errors import NoResult

    session = open_session()
    query = OfferQuery(
        machine_query(
            session.names, machines=machine, chips=chip, providers=provider, chip_memory=memory, total_memory=total_memory,
            min_chips=min_chips, max_chips=max_chips,
        ),
        regions=region_keys(session.names, region),
        purchases=purchases([*(purchase or []), *(["spot"] if spot else [])]),
        max_usd_per_hour=price(max_price, "--max-price"),
        max_usd_per_chip_hour=price(max_chip_price, "--max-chip-price"),
        real_only=real,
        order=sort,
        descending=descending,
    )  # fmt: skip
    found = find_offers(session.catalog, query)
    if json:
        text.show_json(offer_views(session.catalog, found, session.today))
    elif csv:
        text.show_csv(offer_views(session.catalog, found, session.today))
    elif found:
        _table(offer_views(session.catalog, found[: limit or None], session.today), len(found))
    text.say(*session.problems)
    if not found:
        raise NoResult("No offer fits these filters.", remedy="Loosen one of them, or drop --spot or --max-price.")


def _table(views: list[dict[str, object]], total: int) -> None:
    from chipwise.cli import text

    columns = [text.Column("provider", flexible=True), text.Column("machine", flexible=True), text.Column("chips", flexible=True)]
    columns += [text.Column("region", flexible=True), text.Column("purchase"), text.Column("$/h", True), text.Column("$/chip", True)]
    columns += [text.Column("age", True), text.Column("")]
    rows, flags = [], {}
    for view in views:
        verdict = view["verdict"]
        if verdict:
            flags[str(verdict)] = view["why"]
        rows.append(
            [
                str(view["provider"]), str(view["machine"]), text.chips(view["chip"], _float(view["chips"])),
                str(view["region"]), str(view["purchase"]), text.money(_float(view["usd_per_hour"])),
                text.money(_float(view["usd_per_chip_hour"])), text.age(int(_float(view["age_days"]) or 0)),
                ("x" if not view["can_win"] else "!") if verdict else "",
            ]
        )  # fmt: skip
    text.show_table(columns, rows)
    if flags:
        text.show_lines("! doubtful, x not a real offer: " + "; ".join(f"{flag} - {why}" for flag, why in flags.items()))
    if total > len(views):
        text.say(f"{total - len(views)} more of {total}: add filters, or --limit 0.")


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
