"""`chipwise offers`: what it costs, everywhere, with the age of each price."""

from __future__ import annotations

import click

from chipwise.cli.options import CatalogName, kinds, listing, several

ORDERS = ("price", "price-per-chip", "price-per-memory", "machine", "region", "age", "carbon")


@click.command()
@click.argument("machine", nargs=-1, metavar="[MACHINE]...", type=CatalogName("machine"))
@several("--chip", "-c", complete="chip", help="Chip or family (h100); repeat for several.")
@several("--provider", "-p", complete="provider", help="Cloud or provider; repeat for several.")
@kinds()
@several("--region", "-r", complete="region", help="Region (us-east-1) or ISO country (DEU); repeat for several.")
@click.option("--purchase", multiple=True, help="on-demand, spot, reserved, reserved-1y, ...; repeat for several.")
@click.option("--spot", is_flag=True, help="Short for --purchase spot.")
@click.option("--memory", "-m", metavar="SIZE", help="At least this memory on each chip: 80GB.")
@click.option("--total-memory", metavar="SIZE", help="At least this memory on all chips.")
@click.option("--min-chips", type=float, help="At least so many chips.")
@click.option("--max-chips", type=float, help="At most so many chips.")
@click.option("--max-price", metavar="USD", help="At most this much per hour.")
@click.option("--max-chip-price", metavar="USD", help="At most this much per chip and hour.")
@click.option("--real", is_flag=True, help="Leave out prices that are not real offers.")
@click.option("--sort", "-s", type=click.Choice(ORDERS), default="price", show_default=True, help="Order of the rows.")
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
    memory: str | None,
    total_memory: str | None,
    min_chips: float | None,
    max_chips: float | None,
    max_price: str | None,
    max_chip_price: str | None,
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
    from chipwise.api.selection import machine_query, price, purchases, region_keys
    from chipwise.api.views import offer_views
    from chipwise.api.wiring import open_session
    from chipwise.catalog.query import OfferOrder, OfferQuery, find_offers
    from chipwise.cli import text
    from chipwise.errors import NoResult

    session = open_session()
    query = OfferQuery(
        machine_query(
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
        purchases=purchases([*purchase, *(["spot"] if spot else [])]),
        max_usd_per_hour=price(max_price, "--max-price"),
        max_usd_per_chip_hour=price(max_chip_price, "--max-chip-price"),
        real_only=real,
        order=OfferOrder(sort),
        descending=descending,
    )
    found = find_offers(session.catalog, query)
    if as_json:
        text.show_json(offer_views(session.catalog, found, session.today))
    elif as_csv:
        text.show_csv(offer_views(session.catalog, found, session.today))
    elif found:
        _table(offer_views(session.catalog, found[: limit or None], session.today), len(found))
    text.say(*session.problems)
    if not found:
        raise NoResult("No offer fits these filters.", remedy="Loosen one of them, or drop --spot or --max-price.")


def _table(views: list[dict[str, object]], total: int) -> None:
    from chipwise.cli import text

    columns = [
        text.Column("provider", flexible=True),
        text.Column("machine", flexible=True),
        text.Column("chips", flexible=True),
    ]
    columns += [
        text.Column("region", flexible=True),
        text.Column("purchase"),
        text.Column("$/h", True),
        text.Column("$/chip", True),
    ]
    columns += [text.Column("age", True), text.Column("")]
    rows, flags = [], {}
    for view in views:
        verdict = view["verdict"]
        if verdict:
            flags[str(verdict)] = view["why"]
        rows.append(
            [
                str(view["provider"]),
                str(view["machine"]),
                text.chips(view["chip"], _float(view["chips"])),
                str(view["region"]),
                str(view["purchase"]),
                text.money(_float(view["usd_per_hour"])),
                text.money(_float(view["usd_per_chip_hour"])),
                text.age(int(_float(view["age_days"]) or 0)),
                ("x" if not view["can_win"] else "!") if verdict else "",
            ]
        )
    # What is the same in every row is said once below, which leaves room for the machines' names.
    same = [
        i
        for i, column in enumerate(columns)
        if len(rows) > 1 and column.title in ("provider", "region", "purchase") and len({r[i] for r in rows}) == 1
    ]
    shown = [i for i in range(len(columns)) if i not in same]
    text.show_table([columns[i] for i in shown], [[row[i] for i in shown] for row in rows])
    if same:
        text.show_lines("All rows: " + ", ".join(f"{columns[i].title} {rows[0][i]}" for i in same) + ".")
    if flags:
        text.show_lines("! doubtful, x not a real offer: " + "; ".join(f"{flag} - {why}" for flag, why in flags.items()))
    if total > len(views):
        text.say(f"{total - len(views)} more of {total}: add filters, or --limit 0.")


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
