"""`chipwise catalog`: refresh from providers, import files, see how old everything is, look into every table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chipwise.cli.options import CatalogName, Listing, file_options, files, listed
from chipwise.cli.progress import progress

if TYPE_CHECKING:
    from chipwise.api.catalog.feeds import RefreshResult


@click.group()
def catalog() -> None:
    """Refresh, import and inspect the catalog's data."""


def _options(pairs: tuple[str, ...]) -> dict[str, str]:
    from chipwise.errors import BadInput

    options = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise BadInput(f"--option {pair} is not KEY=VALUE.", remedy="Write it like --option profile=work.")
        options[key.strip().replace("-", "_")] = value
    return options


def _summary(result: RefreshResult) -> dict[str, Any]:
    return {
        "provider": result.snapshot.provider,
        "taken": result.snapshot.day.isoformat(),
        "machines": len(result.snapshot.machines),
        "offers": len(result.snapshot.offers),
        "skipped": list(result.snapshot.skipped),
        "refused": [str(complaint) for complaint in result.refused],
        "path": str(result.path),
    }


def _show(results: list[dict[str, Any]], as_json: bool) -> None:
    from chipwise.cli import text

    if as_json:
        text.show_json(results)
        return
    for result in results:
        counts = f"{text.plural(result['machines'], 'machine')}, {text.plural(result['offers'], 'offer')}"
        text.show_lines(f"{result['provider']}: {counts} as of {result['taken']}")
        left = [*result["skipped"], *result["refused"]]
        for line in left[:8]:
            text.show_lines(f"  left out: {line}")
        if len(left) > 8:
            text.show_lines(f"  and {len(left) - 8} more; --json lists all")
        text.show_lines(f"  stored in {result['path']}")


class _Refresh(click.Command):
    """Says in its help which feeds there are."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from chipwise.api.catalog.feeds import refreshed

        self.help = (self.help or "").replace("{feeds}", ", ".join(refreshed()))
        super().format_help_text(ctx, formatter)


@catalog.command(cls=_Refresh)
@click.argument("provider", type=CatalogName("feed"))
@listed("--region", "-r", help="Only this region, or several.")
@click.option(
    "--option",
    "-o",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="Feed option: profile, endpoint, families, minutes, ...",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was brought as JSON.")
def refresh(provider: str, region: tuple[str, ...], options: tuple[str, ...], as_json: bool) -> None:
    """Fetch fresh machines and prices from PROVIDER.

    Feeds: {feeds}. Each reads the provider's own API. A refresh that fails or is cut off leaves the
    catalog as it was.

    \b
    Examples:
      chipwise catalog refresh aws --region us-east-1 --option profile=work
      chipwise catalog refresh azure
      GOOGLE_API_KEY=... chipwise catalog refresh gcp
    """
    from chipwise.api.catalog.feeds import refresh as bring
    from chipwise.api.session.wiring import open_session

    with progress(f"refreshing {provider}") as report:
        result = bring(open_session(), provider, region, _options(options), report)
    _show([_summary(result)], as_json)


@catalog.command("import", short_help="Import own machines or a SkyPilot catalog.")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--as",
    "kind",
    cls=Listing,
    names=files,
    type=CatalogName("file"),
    metavar="NAME",
    help="What PATH is: {names}; guessed when not given.",
)
@click.option(
    "--option",
    "-o",
    "options",
    cls=Listing,
    names=file_options,
    multiple=True,
    metavar="KEY=VALUE",
    help="{names}.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was brought as JSON.")
def import_(path: Path, kind: str | None, options: tuple[str, ...], as_json: bool) -> None:
    """Import a SkyPilot catalog directory (vms.csv per cloud) or a CSV of own machines.

    Columns of an inventory: name, chip, chips, vcpus, memory, disk, network, region, count, purchase price, power, hourly
    cost, lifetime years, usd per kwh, pue, paid. Only name is needed; quantities take units (2TiB, 400Gbps, $280k).

    \b
    Examples:
      chipwise catalog import ~/.sky/catalogs/v8
      chipwise catalog import servers.csv --option usd_per_kwh=0.19 --option lifetime_years=4
    """
    from chipwise.api.catalog.feeds import import_file
    from chipwise.api.session.wiring import open_session

    with progress(f"importing {path.name}") as report:
        results = import_file(open_session(), kind, path, _options(options), report)
    _show([_summary(one) for one in results], as_json)


@catalog.command(short_help="Remove what a refresh or an import brought.")
@click.argument("provider", type=CatalogName("provider"))
def forget(provider: str) -> None:
    """Remove what a refresh or an import of PROVIDER brought; the packaged facts count again."""
    from chipwise.api.catalog.feeds import forget as remove
    from chipwise.api.session.wiring import open_session
    from chipwise.cli.text import show_lines

    remove(open_session(), provider)
    show_lines(f"Forgotten: what was fetched or imported of {provider}.")


@catalog.command(short_help="Show what the catalog holds and how old it is.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def status(as_json: bool) -> None:
    """Show what the catalog holds and how old it is, provider by provider."""
    from chipwise.api.catalog.status import status as find
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text

    session = open_session()
    holdings = find(session)
    if as_json:
        text.show_json(holdings)
        return
    columns = [
        text.Column("provider", flexible=True),
        text.Column("machines", True),
        text.Column("regions", True),
        text.Column("offers", True),
    ]
    columns += [text.Column("oldest", True), text.Column("newest", True), text.Column("age", True), text.Column("from")]
    text.show_table(
        columns,
        [
            [
                row["provider"],
                str(row["machines"]),
                str(row["regions"]),
                str(row["offers"]),
                row["oldest"] or "-",
                row["newest"] or "-",
                "-" if row["age_days"] is None else text.age(row["age_days"]),
                row["from"],
            ]
            for row in holdings["providers"]
        ],
    )
    counts = ", ".join(f"{count:,} {what}" for what, count in holdings["totals"].items())
    text.show_lines(f"Holds {counts}.", f"Your files: {holdings['config_dir']}  Your data: {holdings['data_dir']}")


@catalog.command(short_help="Show the rows of a table, or list the tables.")
@click.argument("table", required=False, type=CatalogName("table"))
@click.argument("words", nargs=-1)
@click.option("--limit", "-n", type=click.IntRange(min=0), default=20, show_default=True, help="Rows to show; 0 for all.")
@click.option("--json", "as_json", is_flag=True, help="One JSON array of all matches.")
def show(table: str | None, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Show the rows of TABLE that contain all WORDS; without TABLE list the tables.

    \b
    Examples:
      chipwise catalog show
      chipwise catalog show tokens llama bedrock
      chipwise catalog show interruptions p4d us-east-1 --json
    """
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.errors import NoResult
    from chipwise.views.holdings import table_names, table_rows

    session = open_session()
    if table is None:
        listed = table_names(session.catalog)
        if as_json:
            text.show_json([{"table": name, "rows": count, "holds": holds} for name, count, holds in listed])
            return
        text.show_table(
            [text.Column("table"), text.Column("rows", True), text.Column("holds", fold=True, flexible=True)],
            [[n, str(c), h] for n, c, h in listed],
        )
        return
    rows = table_rows(session.catalog, table, words)
    if as_json:
        text.show_json(rows)
    else:
        for row in rows[: limit or None]:
            text.show_pairs(
                [(key.replace("_", " "), _cell(value)) for key, value in row.items() if value not in (None, "", [])]
            )
            text.show_lines("")
        text.say_more(min(limit or len(rows), len(rows)), len(rows), "add words")
    if not rows:
        raise NoResult(f"No row of {table} holds {' '.join(words)!r}.", remedy="Try fewer words.")


def _cell(value: Any) -> str:
    from chipwise.cli.text import number

    match value:
        case bool():
            return "yes" if value else "no"
        case float() | int():
            return number(value, 12)
        case list() | tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)
