"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    pass

F = TypeVar("F", bound=Callable[..., Any])


class CatalogName(click.ParamType[str]):
    """Free text that the shell can complete from the catalog: chips, providers, regions, machines."""

    name = "name"

    def __init__(self, *kinds: str) -> None:
        self.kinds = kinds

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from chipwise.api.session.wiring import open_session

        session = open_session()
        catalog = session.catalog
        known: dict[str, None] = {}
        for kind in self.kinds:
            match kind:
                case "purchase":
                    from chipwise.catalog.offer import Purchase

                    known |= dict.fromkeys([*map(str, Purchase), "reserved"])
                case "table":
                    from chipwise.views.holdings import table_names

                    known |= dict.fromkeys(name for name, _, _ in table_names(session.catalog))
                case "feed":
                    from chipwise.api.catalog.feeds import refreshed

                    known |= dict.fromkeys(refreshed())
                case "file":
                    from chipwise.api.catalog.feeds import imported

                    known |= dict.fromkeys(imported())
                case "engine":
                    from chipwise.api.running.installed import choices

                    known |= dict.fromkeys(choices())
                case "ability":
                    from chipwise.api import ability_names

                    known |= dict.fromkeys(ability_names(catalog.data))
                case "chip":
                    known |= dict.fromkeys(word for chip in catalog.chips.values() for word in (chip.family, chip.name))
                case "provider":
                    known |= dict.fromkeys(catalog.providers)
                case "country":
                    known |= dict.fromkeys(sorted({region.country for region in catalog.regions if region.country}))
                case "region":
                    known |= dict.fromkeys(region.name for region in catalog.regions)
                case "machine":
                    known |= dict.fromkeys(machine.name for machine in catalog.machines)
                case _:
                    known |= dict.fromkeys(session.models.names)
        before, comma, last = incomplete.rpartition(",")  # the last of several
        return [CompletionItem(f"{before}{comma}{name}") for name in known if name.casefold().startswith(last.casefold())]


class Listing(click.Option):
    """An option whose help says which names there are: `{names}` in it is filled in when somebody reads it."""

    def __init__(self, *declared: Any, names: Callable[[], Sequence[str]], **more: Any) -> None:
        super().__init__(*declared, **more)
        self.template, self.names = self.help or "", names

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = self.template.format(names=", ".join(self.names()))
        return super().get_help_record(ctx)


def engines() -> Sequence[str]:
    """That a job can be given to."""
    from chipwise.api.running.installed import choices

    return choices()


def reached() -> Sequence[str]:
    """That are not of this machine."""
    from chipwise.api.running.installed import configurable

    return configurable()


def played() -> Sequence[str]:
    """Those, and what only plays."""
    from chipwise.api.running.installed import choices, names

    return tuple(dict.fromkeys((*choices(), *names())))


def files() -> Sequence[str]:
    """Feeds that read a file."""
    from chipwise.api.catalog.feeds import imported

    return imported()


def file_options() -> Sequence[str]:
    """What each of them can be told beside the path."""
    from chipwise.api.catalog.feeds import imported, options_of

    by_feed = {name: [one for one in options_of(name) if one != "path"] for name in imported()}
    return ["; ".join(f"{name}: {', '.join(options)}" for name, options in by_feed.items())]


def refuse_empty(ctx: click.Context) -> None:
    """An option whose text is empty is mostly a shell variable that is not set: leaving it out silently would drop a goal."""
    from chipwise.errors import BadInput

    for option in ctx.command.params:
        value = ctx.params.get(option.name or "")
        if isinstance(option, click.Option) and value == "" and option.multiple is False:
            remedy = "Give it a value, or leave it out. Is a variable of the shell unset?"
            raise BadInput(f"{option.opts[0]} is empty.", remedy=remedy)


measured_option = click.option(
    "--measured",
    multiple=True,
    metavar="CHIP=VALUE",
    help="A run of yours: rtx-4090=6h/epoch, 'l4=1200 images/s'; again for more.",
)


def csv_option(help: str) -> Callable[[F], F]:
    return click.option("--csv", "as_csv", is_flag=True, callback=_one_format, help=help)


def json_option(help: str) -> Callable[[F], F]:
    """Not together with `csv_option`."""
    return click.option("--json", "as_json", is_flag=True, callback=_one_format, help=help)


def _one_format(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    """The second of two formats sees the first among those that were read."""
    from chipwise.errors import BadInput

    if value and any(ctx.params.get(name) for name in ("as_csv", "as_json")):
        raise BadInput("--csv and --json do not go together.", remedy="Give one of them.")
    return value


def listing(limit: int) -> Callable[[F], F]:
    """--json, --csv and --limit, with the command's own default for the last."""

    def add(command: F) -> F:
        for option in (
            click.option(
                "--limit",
                "-n",
                type=click.IntRange(min=0),
                default=limit,
                show_default=True,
                help="Rows in a table; 0 for all.",
            ),
            csv_option("CSV of all matches, with a header line."),
            json_option("One JSON array of all matches."),
        ):
            command = option(command)
        return command

    return add


def kinds() -> Callable[[F], F]:
    from chipwise.catalog.chip import ChipKind

    return click.option(
        "--kind", "-k", multiple=True, type=click.Choice([str(kind) for kind in ChipKind]), help="Only this kind of chip."
    )


def constraining(file: str = "the file's") -> Callable[[F], F]:
    """--cloud, --region, --country, --chip, --on-demand, --spot, --market, --commit, --max-price-age, --large and --limit; the
    command gets them as `within`."""

    def add(command: F) -> F:
        @wraps(command)
        def gathered(*args: Any, **settings: Any) -> Any:
            from chipwise.api import Constraints
            from chipwise.cli.flag_errors import by_flag
            from chipwise.errors import BadInput

            names = (
                "clouds",
                "regions",
                "countries",
                "chips",
                "on_demand",
                "spot",
                "market",
                "commit",
                "max_price_age",
                "large",
                "limits",
            )
            values = {name: value for name in names if (value := settings.pop(name)) is not None}
            constraints = Constraints(**values)
            try:
                return command(*args, within=constraints, **settings)
            except BadInput as error:
                raise by_flag(error, constraints, settings) from error

        options = (
            listed("--cloud", "clouds", complete="provider", help="Use only these clouds: aws,gcp."),
            listed(
                "--region",
                "regions",
                complete="region",
                metavar="NAME,...",
                help="Use only these regions or countries: eu-west-1, DE, EU.",
            ),
            listed(
                "--country",
                "countries",
                complete="country",
                metavar="NAME,...",
                help="Use only these countries: DE, Japan, EU.",
            ),
            listed("--chip", "chips", complete="chip", help="Use only these chips: h100,a100."),
            click.option("--on-demand", is_flag=True, help="Use only on-demand machines, without commitment."),
            click.option("--spot", is_flag=True, help="Use only spot machines: cheaper, but interruptible."),
            click.option(
                "--market",
                default=None,
                type=click.Choice(["durable", "any"]),
                metavar="durable|any",
                help="Add marketplaces and single listings (any), which are often gone within a month.",
            ),
            click.option(
                "--commit",
                default=None,
                type=click.Choice(["none", "1y", "3y", "any"]),
                metavar="none|1y|3y|any",
                help="Allow commitments up to this term; default: none.",
            ),
            click.option("--max-price-age", default=None, metavar="TIME", help="Use only prices at most this old: 90d."),
            click.option("--large", is_flag=True, help="Allow more than 64 machines (of 8 chips), even if no goal needs them."),
            click.option(
                "--limit",
                "limits",
                multiple=True,
                metavar="KEY=VALUE",
                help=f"Set any other limit, in place of {file}: chip_count.max=8.",
            ),
        )
        command_with: Any = gathered
        for option in reversed(options):
            command_with = option(command_with)
        return cast(F, command_with)

    return add


@dataclass(frozen=True, slots=True)
class HtmlReport:
    """The file that --html names, None without it, and whether --force lets it replace one that exists."""

    path: Path | None
    force: bool

    def check(self, workload: str | None = None) -> None:
        """Before the work, not after: raises what writing it would. `workload`: the file that is read, if any."""
        if self.path is not None:
            from chipwise.api.report import check

            check(self.path, workload, self.force)

    def say_written(self) -> None:
        if self.path is not None:
            from chipwise.cli import text

            text.say(f"Written: {self.path}")


def reporting(
    *writers: Callable[[Any], Any], force: str = "Let --html overwrite a file that exists."
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--html and --force, with other options that write between them; the command gets the two as `report`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def gathered(*args: Any, html: Path | None, force: bool, **settings: Any) -> Any:
            return command(*args, report=HtmlReport(html, force), **settings)

        html = click.option(
            "--html", type=click.Path(path_type=Path), metavar="FILE", help="Also write a report: one page that opens offline."
        )
        command_with: Callable[..., Any] = gathered
        for option in (click.option("--force", is_flag=True, help=force), *reversed(writers), html):
            command_with = option(command_with)
        return command_with

    return add


def listed(*names: str, complete: str | None = None, metavar: str = "NAME,...", help: str) -> Callable[[F], F]:
    """An option that takes several names, with commas between them or given again."""
    kind = CatalogName(complete) if complete else click.STRING
    return click.option(*names, multiple=True, type=kind, callback=_at_commas, metavar=metavar, help=help)


def _at_commas(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    parts = [part.strip() for value in values for part in value.split(",")]
    if values and not all(parts):
        raise click.BadParameter("A name is missing between commas.", ctx, param)
    return tuple(parts)


def as_of() -> Callable[[F], F]:
    """--as-of DATE: the day from which ages of prices and deadlines are counted, instead of today."""

    def pin(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is not None:
            from chipwise.api.session.wiring import pin_today

            pin_today(value)

    return click.option(
        "--as-of", callback=pin, expose_value=False, is_eager=True, metavar="DATE", help="Count ages of prices from this day."
    )
