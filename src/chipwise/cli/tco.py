"""`chipwise tco`: own machines against a cloud: yearly cost, break-even, and what changes the result."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from chipwise.cli.options import CatalogName, HtmlReport, csv_option, json_option, listed, reporting
from chipwise.cli.parameter_types import AboveZero, WholeNumber
from chipwise.text import plural, spent, usd_short

if TYPE_CHECKING:
    from chipwise.cli.text import Column
    from chipwise.money.tco_values import Alternative, Tco
    from chipwise.views.tco import Swing


class Quantity(click.ParamType[float]):
    """A quantity as people write it, within its bounds; what is wrong is told with the flag and what is allowed."""

    def __init__(self, name: str, allowed: str, least: float, most: float) -> None:
        self.name = name
        self.allowed, self.least, self.most = allowed, least, most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from chipwise import units
        from chipwise.errors import BadInput

        readers: dict[str, Callable[[str], float]] = {
            "share": units.parse_share,
            "usd": units.parse_usd,
            "watts": units.parse_watts,
            "number": units.parse_count,
        }
        flag = param.opts[0] if param is not None else "value"
        quoted = str(value).strip()[:40] or repr(str(value))
        refusal = BadInput(f"{flag}: {quoted} is not possible.", remedy=f"Allowed: {self.allowed}.")
        try:
            number = readers[self.name](str(value))
        except BadInput as error:
            raise refusal from error
        if not self.least <= number <= self.most:
            raise refusal
        return number


class Read(click.ParamType[Any]):
    """What a function of `planner/owning/rents.py` reads, which says itself what is wrong and what is allowed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from chipwise.api import parse_decline, parse_rent

        return {"rent": parse_rent, "decline": parse_decline}[self.name](str(value))


_ABOVE_ZERO = 1e-6
_BRIEF_ROWS, _BRIEF_SWINGS = 6, 3  # on one screen
_HINT = "--full shows the cost by line, what changes the result, and the assumptions."


def _usd(allowed: str, most: float = 1e9) -> Quantity:
    return Quantity("usd", allowed, 0.0, most)


def _share(allowed: str = "shares from 0% to 100%, such as 5% or 0.05", least: float = 0.0) -> Quantity:
    return Quantity("share", allowed, least, 1.0)


@click.command()
@click.argument("chip", type=CatalogName("chip"))
@click.option("--machines", type=WholeNumber(1, 10**6), default=1, show_default=True, help="Machines to own.")
@click.option("--chips", type=WholeNumber(1, 10**4), default=8, show_default=True, help="Chips of one machine.")
@click.option("--years", type=AboveZero(30), default=4.0, show_default=True, help="Years until they are sold.")
@click.option(
    "--utilisation",
    type=_share("shares above 0% up to 100%, such as 60% or 0.6", _ABOVE_ZERO),
    default="70%",
    show_default=True,
    help="Hours in which work runs, of all hours.",
)
@click.option("--country", metavar="PLACE", help="Country (DEU), US state or continent: for the price of power.")
@click.option("--purchase", type=_usd("USD of one machine, such as 300000 or $300k"), help="Price of one machine.")
@click.option(
    "--power", type=Quantity("watts", "watts of one machine above 0, such as 10.2kW", _ABOVE_ZERO, 1e7), help="At work."
)
@click.option("--power-price", type=_usd("USD per kWh from 0 to 10, such as 0.20", 10.0), help="USD per kWh.")
@click.option(
    "--pue",
    type=Quantity("number", "numbers from 1 to 10, such as 1.3", 1.0, 10.0),
    help="Power of the building over that of the machines, from 1 on.",
)
@click.option("--staff", type=_usd("USD per machine per year, such as 5000 or 0"), help="USD per machine per year.")
@click.option("--space", type=_usd("USD a kW and month, such as 150 or 0"), help="USD per kW and month; 0 in your own room.")
@click.option("--interest", type=_share(), help="A year; what the money costs or would earn.")
@click.option("--residual", type=_share(), help="Resale value, as a share of the purchase.")
@click.option("--maintenance", type=_share(), help="A year, as a share of the purchase.")
@click.option("--network", type=_share(), help="Network and storage bought along, as a share of the purchase.")
@listed("--against", complete="machine", help="Rented machine to compare with, or several.")
@listed("--provider", "-p", complete="provider", help="Compare with this cloud only, or several.")
@listed("--region", "-r", complete="region", help="Compare with this region or country only, or several.")
@click.option(
    "--rent",
    type=Read("rent"),
    metavar="USD",
    help="Rent that you were offered, an hour: of a chip (1.85/h) or 14.80/machine-h.",
)
@click.option(
    "--term",
    type=click.Choice(["none", "1y", "3y"]),
    default="none",
    show_default=True,
    help="Commitment behind --rent: a term is paid for all hours, at a fixed price.",
)
@click.option(
    "--decline",
    type=Read("decline"),
    metavar="SHARE",
    help="Yearly price decline of rents: 20%, or -5% for a rise; 0 for none. Default: as observed, with an interval.",
)
@click.option(
    "--full", is_flag=True, help="Also each part of the cost of owning, everything that changes it, and the assumptions."
)
@csv_option("CSV of what is rented instead, with a header line.")
@json_option("JSON; its keys are on the page docs/models/tco.md.")
@reporting()
def tco(chip: str, full: bool, as_json: bool, as_csv: bool, report: HtmlReport, **options: Any) -> None:
    """Compare owning machines with CHIP and renting them: yearly cost, break-even by use and month, what changes the result.

    Purchase price, power, power price, PUE and rent come from the catalog unless given; the output says from where. Without
    --against, the chip's real offers are compared: for each purchase option the cheapest, the cheapest durable one (still there
    next month) and the median of the providers. The result is against the cheapest durable offer that is not spot, or --rent.

    \b
    Examples:
      chipwise tco h100 --machines 4 --years 3 --utilisation 60% --country DEU
      chipwise tco h100 --against p5.48xlarge --country Texas --staff 8000
      chipwise tco h100 --rent 1.85/h --term 1y --decline 10%
      chipwise tco l40s --chips 4 --power-price 0.20 --pue 1.3 --json
    """
    from chipwise.api.session.wiring import open_session
    from chipwise.api.verbs import tco as ask
    from chipwise.cli import text
    from chipwise.money.tco_values import OPTION_FIELDS, TcoRequest

    report.check()
    session = open_session()
    result = ask(session, TcoRequest(chip, **{OPTION_FIELDS.get(name, name): value for name, value in options.items()}))
    if report.path is not None:
        from chipwise.api.report import write_tco

        write_tco(result, report.path, session.today, report.force)
    if as_json:
        from chipwise.views.tco import tco_view

        text.show_json(tco_view(result))
    elif as_csv:
        from chipwise.views.tco import tco_rows

        text.show_csv(tco_rows(result))
    elif full:
        _show(result)
    else:
        _show_brief(result)
    report.say_written()


def _show_brief(result: Tco) -> None:
    """The answer on one screen: 30 lines of 80 columns."""
    from chipwise.cli import text
    from chipwise.views.tco import answer_words, contract_words

    reference = result.reference
    rents = result.cloud[:_BRIEF_ROWS]
    text.show_title(_title(result))
    bound = [contract_words(reference)] if reference is not None and reference.contract_usd is not None else []
    text.show_lines(answer_words(result), *bound, "")
    text.show_pairs([("bought for", _bought(result)), *_hours(result)[1:]])
    if rents:
        text.show_lines("")
        text.show_table(_columns(fold=False), [[_rented(one), *_row(one)[1:]] for one in rents])
        text.show_lines("Break-even: the utilisation from which owning is cheaper. Month: when it is paid off.")
    _show_swings(result, _BRIEF_SWINGS)
    notes = result.notes[:1] if rents and len(result.notes) > 1 else result.notes
    text.show_lines("", *notes, _HINT)


def _show(result: Tco) -> None:
    from chipwise.cli import text
    from chipwise.views.tco import SETTINGS, answer_words, decline_words, setting_words

    text.show_title(_title(result))
    text.show_lines(answer_words(result), f"Bought for {_bought(result)}.", "")
    _show_own(result)
    _show_cloud(result)
    _show_swings(result)
    text.show_lines("")
    text.show_title("Assumptions")
    declines = list(dict.fromkeys(one.decline for one in result.cloud))
    text.show_pairs(
        [
            *((SETTINGS[one.name], setting_words(one)) for one in result.settings),
            *(("rent" if at == 0 else "", decline_words(one)) for at, one in enumerate(declines)),
        ]
    )
    text.show_lines("", *result.notes)


def _title(result: Tco) -> str:
    own, request = result.own, result.request
    site = f", in {request.country}" if request.country else ""
    machines = f"{plural(own.machines, 'machine')} of {request.chips}x {result.chip}"
    return f"{machines}, owned for {plural(own.years, 'year')}, in use {own.utilisation:.0%}{site}"


def _bought(result: Tco) -> str:
    return f"{usd_short(result.own.bought_usd)}, sold for {usd_short(result.own.resale_usd)}"


def _show_own(result: Tco) -> None:
    from chipwise.cli import text
    from chipwise.cli.text import Column
    from chipwise.views.tco import YEAR_HOURS

    cost, total = result.cost, result.cost.cost.usd
    rows = [[one.name, f"{one.usd * YEAR_HOURS:,.0f}", f"{one.usd / total:.0%}", one.how] for one in cost.cost.lines]
    columns = [Column("cost"), Column("$/year", True), Column("share", True), Column("how", flexible=True, fold=True)]
    text.show_table(columns, [*rows, ["total", f"{total * YEAR_HOURS:,.0f}", "", ""]])
    text.show_lines("")
    text.show_pairs(_hours(result))


def _hours(result: Tco) -> list[tuple[str, str]]:
    """What hours of an own machine cost, with their spread."""
    cost = result.cost

    def ends(name: str) -> str:
        low, high = getattr(result.low, name), getattr(result.high, name)
        price = spent(getattr(cost, name))
        return f"{price}  ({low:,.2f} to {high:,.2f} as purchase prices spread)" if low < high else price

    return [
        ("per machine-hour", ends("usd_per_machine_hour")),
        ("per hour in use", ends("usd_per_useful_hour")),
        ("per chip-hour in use", spent(cost.usd_per_useful_hour / result.request.chips)),
    ]


def _show_cloud(result: Tco) -> None:
    from chipwise.cli import text
    from chipwise.views.tco import contract_words

    if result.cloud:
        text.show_lines("")
        text.show_table(_columns(fold=True), [_row(one) for one in result.cloud])
        level = ", on average over the years" if any(one.decline.value or one.decline.is_wide for one in result.cloud) else ""
        text.show_lines(
            f"$/h: today. In use: per hour in use{level}. Break-even: the utilisation from which owning is cheaper. Month: "
            f"when it has paid for itself at this use. Saved: by owning over {result.own.years:g} years, as of today."
        )
        text.show_lines(*(contract_words(one) for one in result.cloud if one.contract_usd is not None))
    for option, reason in result.left_out:
        text.show_lines(f"{option} {reason}: left out.")


def _columns(fold: bool) -> list[Column]:
    from chipwise.cli.text import Column

    numbers = (Column(name, True) for name in ("$/h", "in use", "break-even", "month", "saved"))
    return [Column("rented instead", flexible=True, fold=fold), *numbers]


def _rented(alternative: Alternative) -> str:
    offer = alternative.offer
    return f"{offer.purchase} {offer.provider}, {alternative.place.split(' of ')[0].removeprefix('cheapest ')}"


def _row(alternative: Alternative) -> list[str]:
    from chipwise.views.tco import month_words, saving_words, use_words

    comparison, slow, fast, offer = alternative.compared, alternative.slow, alternative.fast, alternative.offer
    return [
        f"{offer.purchase} {offer.provider} {offer.machine} ({alternative.place.removesuffix(' providers')})",
        f"{alternative.usd_per_hour:,.2f}",
        f"{comparison.cloud_usd_per_useful_hour:,.2f}",
        use_words(slow.break_even_utilisation, fast.break_even_utilisation),
        month_words(slow.break_even_month, fast.break_even_month),
        saving_words(fast.saving_usd, slow.saving_usd),
    ]


def _show_swings(result: Tco, limit: int | None = None) -> None:
    from chipwise.cli import text
    from chipwise.views.tco import balance_words

    if result.reference is None or not result.swings:
        return
    base = result.reference.compared.saving_usd
    text.show_lines("")
    text.show_title(f"{balance_words(result.reference)}; what changes it most")
    sys.stdout.write("\n".join(tornado(result.swings[:limit], base, text.width())) + "\n")


def tornado(swings: tuple[Swing, ...], base: float, width: int) -> list[str]:
    """One bar a setting on a common axis of USD saved: - towards its low end, + towards its high end, | as it is."""
    from chipwise.views.tco import SETTINGS, value_words

    ends = [f"{value_words(one.name, one.low)} to {value_words(one.name, one.high)}" for one in swings]
    names = [SETTINGS[one.name] for one in swings]
    left, middle = max(map(len, names)), max(map(len, ends))
    room = max(width - left - middle - 4, 10)
    savings = [base, *(value for one in swings for value in (one.saving_at_low_usd, one.saving_at_high_usd))]
    lowest, highest = min(savings), max(savings)

    def position(value: float) -> int:
        return round((value - lowest) / ((highest - lowest) or 1.0) * (room - 1))

    lines = []
    for swing, name, label in zip(swings, names, ends, strict=True):
        bar = [" "] * room
        for value, mark in ((swing.saving_at_low_usd, "-"), (swing.saving_at_high_usd, "+")):
            for place in range(min(position(base), position(value)), max(position(base), position(value)) + 1):
                bar[place] = mark if bar[place] == " " else "="
        bar[position(base)] = "|"
        lines.append(f"{name:<{left}}  {label:<{middle}}  {''.join(bar)}".rstrip())
    axis = [" "] * room
    if lowest < 0 < highest:
        axis[position(0.0)] = "0"
    for value, start in ((lowest, 0), (highest, room - len(usd_short(highest)))):
        for place, letter in enumerate(usd_short(value), start):
            if 0 <= place < room and axis[place] == " ":
                axis[place] = letter
    legend = "- low end, + high end"[: left + middle + 2]
    return [*lines, f"{legend:<{left + middle + 2}}  {''.join(axis)}".rstrip()]
