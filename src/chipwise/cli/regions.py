"""`chipwise regions`: where machines stand, and how clean the grid there is."""

from __future__ import annotations

import click

from chipwise.cli.options import CatalogName, listed, listing
from chipwise.cli.parameter_types import Amount


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", type=CatalogName("region"))
@listed("--provider", "-p", complete="provider", help="Cloud or provider, or several.")
@listed("--country", complete="country", help="ISO country code: DEU, or several.")
@click.option("--max-carbon", type=Amount(), help="At most so many gCO2e per kWh.")
@click.option(
    "--sort", "-s", type=click.Choice(("name", "carbon", "country")), default="name", show_default=True, help="Order."
)
@listing(limit=40)
def regions(
    names: tuple[str, ...],
    provider: tuple[str, ...],
    country: tuple[str, ...],
    max_carbon: float | None,
    sort: str,
    as_json: bool,
    as_csv: bool,
    limit: int,
) -> None:
    """List regions with place, country, grid carbon and power usage effectiveness.

    NAME is a region (eu-north-1), provider/region, or an ISO country code.

    \b
    Examples:
      chipwise regions --provider aws --sort carbon
      chipwise regions SWE
      chipwise regions --max-carbon 50 --json
    """
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.errors import NoResult
    from chipwise.views.catalog import region_view

    session = open_session()
    selected = list(session.catalog.regions)
    if names:
        keys = {region.key for name in names for region in session.names.regions(name)}
        selected = [region for region in selected if region.key in keys]
    if provider:
        wanted = {session.names.provider(one) for one in provider}
        selected = [region for region in selected if region.provider in wanted]
    if country:
        places = {region.key for code in country for region in session.names.regions(code)}
        selected = [region for region in selected if region.key in places]
    if max_carbon is not None:
        selected = [region for region in selected if region.grid_g_per_kwh is not None and region.grid_g_per_kwh <= max_carbon]
    match sort:
        case "carbon":
            selected.sort(key=lambda r: (r.grid_g_per_kwh is None, r.grid_g_per_kwh or 0.0))
        case "country":
            selected.sort(key=lambda r: (r.country is None, r.country or "", r.provider, r.name))
        case _:
            selected.sort(key=lambda r: (r.provider, r.name))
    is_printed = text.show_views(lambda: [region_view(region) for region in selected], as_json, as_csv)
    if selected and not is_printed:
        page = selected[: limit or None]
        columns = [
            text.Column("provider"),
            text.Column("region", flexible=True),
            text.Column("place", flexible=True),
            text.Column("country"),
        ]
        columns += [text.Column("gCO2e/kWh", True), text.Column("year", True), text.Column("PUE", True)]
        text.show_table(
            columns,
            [
                [
                    r.provider,
                    r.name,
                    r.location or "unknown",
                    r.country or "-",
                    text.number(r.grid_g_per_kwh, 3) + ("*" if "grid_g_per_kwh" in r.fact.inferred else ""),
                    str(r.grid_year or "-"),
                    text.number(r.pue, 3) + ("*" if "pue" in r.fact.inferred else ""),
                ]
                for r in page
            ],
        )
        text.show_lines("* : the country's average grid, or the provider's average PUE. - : unknown.")
        text.say_more(len(page), len(selected))
    if not selected:
        raise NoResult("No region fits these filters.", remedy="Loosen one of them; chipwise regions lists all.")
