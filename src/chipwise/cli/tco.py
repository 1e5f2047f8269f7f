"""`chipwise tco`: machines of one's own against a cloud: yearly cost, break-even, and what would turn the answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from chipwise.cli.options import AboveZero, CatalogName, WholeNumber, multiple_option
from chipwise.text import usd_short

if TYPE_CHECKING:
    from chipwise.api.tco import Alternative, Swing, Tco, TcoSetting

_NAMES = {
    "purchase_usd": "purchase",
    "power_w": "power",
    "idle_power_w": "idle power",
    "usd_per_kwh": "power price",
    "pue": "PUE",
    "space_usd_per_kw_month": "space",
    "staff_usd_per_machine_year": "staff",
    "interest": "interest",
    "residual_share": "resale",
    "maintenance_share": "maintenance",
    "network_storage_share": "network, disks",
    "utilisation": "utilisation",
    "years": "years",
    "cloud_usd_per_hour": "cloud price",
}
_SHARES = ("interest", "residual_share", "maintenance_share", "network_storage_share", "utilisation")


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


_ABOVE_ZERO = 1e-6


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
@click.option("--staff", type=_usd("USD a machine and year, such as 5000 or 0"), help="USD a machine and year.")
@click.option("--space", type=_usd("USD a kW and month, such as 150 or 0"), help="USD per kW and month; 0 in your own room.")
@click.option("--interest", type=_share(), help="A year; what the money costs or would earn.")
@click.option("--residual", type=_share(), help="Resale value, as a share of the purchase.")
@click.option("--maintenance", type=_share(), help="A year, as a share of the purchase.")
@click.option("--network", type=_share(), help="Network and storage bought along, as a share of the purchase.")
@multiple_option("--against", complete="machine", help="Rented machine to compare with; repeat for several.")
@multiple_option("--provider", "-p", complete="provider", help="Compare with this cloud only; repeat for several.")
@multiple_option("--region", "-r", complete="region", help="Compare with this region or country only; repeat for several.")
@click.option("--json", "as_json", is_flag=True, help="JSON; its keys are on the page docs/models/tco.md.")
def tco(chip: str, as_json: bool, **options: Any) -> None:
    """Compare owning machines with CHIP and renting them: yearly cost, break-even by use and by month, what turns it.

    Purchase price, power, power price, PUE and rent come from the catalog unless given; the output says from where. Without
    --against the chip's real offers are taken: by purchase option the cheapest and the middle of the providers.

    \b
    Examples:
      chipwise tco h100 --machines 4 --years 3 --utilisation 60% --country DEU
      chipwise tco h100 --against p5.48xlarge --country Texas --staff 8000
      chipwise tco l40s --chips 4 --power-price 0.20 --pue 1.3 --json
    """
    from chipwise.api.session.wiring import open_session
    from chipwise.api.tco import TcoRequest
    from chipwise.api.tco import tco as ask
    from chipwise.cli import text

    names = {
        "purchase": "purchase_usd",
        "power": "power_w",
        "power_price": "usd_per_kwh",
        "staff": "staff_usd_per_machine_year",
        "space": "space_usd_per_kw_month",
        "residual": "residual_share",
        "maintenance": "maintenance_share",
        "network": "network_storage_share",
        "provider": "providers",
        "region": "regions",
    }
    result = ask(open_session(), TcoRequest(chip, **{names.get(name, name): value for name, value in options.items()}))
    if as_json:
        from chipwise.api.views.tco import tco_view

        text.show_json(tco_view(result))
        return
    _show_own(result)
    _show_cloud(result)
    _show_swings(result)
    text.show_lines("")
    text.show_title("Assumptions")
    text.show_pairs((_NAMES[one.name], _setting(one)) for one in result.settings)
    text.show_lines("", *result.notes)


def _show_own(result: Tco) -> None:
    from chipwise.api.tco import YEAR_HOURS
    from chipwise.cli import text
    from chipwise.cli.text import Column

    own, cost, request = result.own, result.cost, result.request
    site = f", in {request.country}" if request.country else ""
    machines = text.plural(own.machines, "machine")
    text.show_title(
        f"{machines} of {request.chips}x {result.chip}, owned for {own.years:g} years, in use {own.utilisation:.0%}{site}"
    )
    text.show_lines(f"Bought for {usd_short(own.bought_usd)}, sold for {usd_short(own.resale_usd)}.", "")
    total = cost.cost.usd
    rows = [[one.name, f"{one.usd * YEAR_HOURS:,.0f}", f"{one.usd / total:.0%}", one.how] for one in cost.cost.lines]
    columns = [Column("cost"), Column("$/year", True), Column("share", True), Column("how", flexible=True, fold=True)]
    text.show_table(columns, [*rows, ["total", f"{total * YEAR_HOURS:,.0f}", "", ""]])
    text.show_lines("")

    def ends(name: str) -> str:
        low, high = getattr(result.low, name), getattr(result.high, name)
        price = f"${getattr(cost, name):,.2f}"
        return f"{price}  ({low:,.2f} to {high:,.2f} as purchase prices spread)" if low < high else price

    text.show_pairs(
        [
            ("an hour of a machine", ends("usd_per_machine_hour")),
            ("a useful hour", ends("usd_per_useful_hour")),
            ("a useful hour of a chip", f"${cost.usd_per_useful_hour / result.request.chips:,.2f}"),
        ]
    )


def _show_cloud(result: Tco) -> None:
    from chipwise.cli import text
    from chipwise.cli.text import Column

    if result.cloud:
        text.show_lines("")
        columns = [
            Column("rented instead", flexible=True, fold=True),
            Column("place", flexible=True, fold=True),
            Column("$/h", True),
            Column("useful", True),
            Column("even at", True),
            Column("month", True),
            Column("saved", True),
        ]
        text.show_table(columns, [_row(one) for one in result.cloud])
        text.show_lines(
            "Even at: hours in use from which on owning is cheaper. Month: when it has paid for itself at this use. Saved: by "
            f"owning over {result.own.years:g} years, as of today."
        )
    for option, reason in result.left_out:
        text.show_lines(f"{option} {reason}: left out.")


def _row(alternative: Alternative) -> list[str]:
    comparison, offer = alternative.compared, alternative.offer
    use = comparison.break_even_utilisation
    return [
        f"{offer.purchase} {offer.provider} {offer.machine}",
        alternative.place.removesuffix(" providers"),
        f"{alternative.usd_per_hour:,.2f}",
        f"{comparison.cloud_usd_per_useful_hour:,.2f}",
        "never" if use is None else "any" if use == 0 else f"{use:.0%}",
        "-" if comparison.break_even_month is None else str(comparison.break_even_month),
        usd_short(comparison.saving_usd),
    ]


def _show_swings(result: Tco) -> None:
    from chipwise.cli import text

    if result.reference is None or not result.swings:
        return
    offer = result.reference.offer
    base = result.reference.compared.saving_usd
    text.show_lines("")
    text.show_title(f"Owning saves {usd_short(base)} against {offer.provider} {offer.purchase}; what moves it, one at a time")
    sys.stdout.write("\n".join(tornado(result.swings, base, text.width())) + "\n")


def tornado(swings: tuple[Swing, ...], base: float, width: int) -> list[str]:
    """One bar a setting on a common axis of USD saved: - towards its low end, + towards its high end, | as it is."""
    ends = [f"{_value(one.name, one.low)} to {_value(one.name, one.high)}" for one in swings]
    names = [_NAMES[one.name] for one in swings]
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


def _value(name: str, value: float) -> str:
    if name in _SHARES:
        return f"{value:.0%}"
    if name == "usd_per_kwh":
        return f"${value:.3g}"
    if name.endswith(("_usd", "_usd_per_hour")) or "_usd_" in name:
        return usd_short(value)
    return f"{value:.3g}"


def _setting(setting: TcoSetting) -> str:
    if setting.name.endswith("power_w"):
        value = f"{setting.value / 1e3:.3g} kW"
    elif setting.name == "usd_per_kwh":
        value = f"${setting.value:.4g}/kWh"
    else:
        value = f"{setting.value:.3g}" if setting.name == "pue" else _value(setting.name, setting.value)
    spread = (
        f" ({_value(setting.name, setting.low)} to {_value(setting.name, setting.high)})"
        if setting.low is not None and setting.high is not None
        else ""
    )
    return f"{value}{spread}: {setting.basis}" + (" (given)" if setting.is_given else "")
