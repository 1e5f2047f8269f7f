"""`chipwise tco`: machines of one's own against a cloud: yearly cost, break-even, and what would turn the answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from chipwise.cli.options import AboveZero, CatalogName, Whole, several
from chipwise.text import usd_short

if TYPE_CHECKING:
    from chipwise.api.tco import Alternative, Setting, Tco
    from chipwise.money.tco import Swing

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
        from chipwise.workload.quantity import parse_share

        readers: dict[str, Callable[[str], float]] = {
            "share": parse_share,
            "usd": units.parse_usd,
            "watts": units.parse_watts,
            "number": units.parse_count,
        }
        flag = param.opts[0] if param is not None else "value"
        shown = str(value).strip()[:40] or repr(str(value))
        refusal = BadInput(f"{flag}: {shown} is not possible.", remedy=f"Allowed: {self.allowed}.")
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
@click.option("--machines", type=Whole(1, 10**6), default=1, show_default=True, help="Machines to own.")
@click.option("--chips", type=Whole(1, 10**4), default=8, show_default=True, help="Chips of one machine.")
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
@several("--against", complete="machine", help="Rented machine to compare with; repeat for several.")
@several("--provider", "-p", complete="provider", help="Compare with this cloud only; repeat for several.")
@several("--region", "-r", complete="region", help="Compare with this region or country only; repeat for several.")
@click.option("--json", "as_json", is_flag=True, help="JSON; its keys are on the page docs/models/tco.md.")
def tco(chip: str, as_json: bool, **given: Any) -> None:
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
    from chipwise.api.tco import Asked
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
    found = ask(open_session(), Asked(chip, **{names.get(name, name): value for name, value in given.items()}))
    if as_json:
        from chipwise.api.views.tco import tco_view

        text.show_json(tco_view(found))
        return
    _show_own(found)
    _show_cloud(found)
    _show_swings(found)
    text.show_lines("")
    text.show_title("Assumptions")
    text.show_pairs((_NAMES[one.name], _setting(one)) for one in found.settings)
    text.show_lines("", *found.notes)


def _show_own(found: Tco) -> None:
    from chipwise.api.tco import YEAR_HOURS
    from chipwise.cli import text
    from chipwise.cli.text import Column

    own, cost = found.own, found.cost
    where = f", in {found.asked.country}" if found.asked.country else ""
    machines = text.plural(own.machines, "machine")
    text.show_title(
        f"{machines} of {found.asked.chips}x {found.chip}, owned for {own.years:g} years, in use {own.utilisation:.0%}{where}"
    )
    text.show_lines(f"Bought for {usd_short(own.bought_usd)}, sold for {usd_short(own.resale_usd)}.", "")
    total = cost.cost.usd
    rows = [[one.name, f"{one.usd * YEAR_HOURS:,.0f}", f"{one.usd / total:.0%}", one.how] for one in cost.cost.lines]
    columns = [Column("cost"), Column("$/year", True), Column("share", True), Column("how", flexible=True, fold=True)]
    text.show_table(columns, [*rows, ["total", f"{total * YEAR_HOURS:,.0f}", "", ""]])
    text.show_lines("")

    def ends(name: str) -> str:
        low, high = getattr(found.low, name), getattr(found.high, name)
        told = f"${getattr(cost, name):,.2f}"
        return f"{told}  ({low:,.2f} to {high:,.2f} as purchase prices spread)" if low < high else told

    text.show_pairs(
        [
            ("an hour of a machine", ends("usd_per_machine_hour")),
            ("a useful hour", ends("usd_per_useful_hour")),
            ("a useful hour of a chip", f"${cost.usd_per_useful_hour / found.asked.chips:,.2f}"),
        ]
    )


def _show_cloud(found: Tco) -> None:
    from chipwise.cli import text
    from chipwise.cli.text import Column

    if found.cloud:
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
        text.show_table(columns, [_row(one) for one in found.cloud])
        text.show_lines(
            "Even at: hours in use from which on owning is cheaper. Month: when it has paid for itself at this use. Saved: by "
            f"owning over {found.own.years:g} years, as of today."
        )
    for option, why in found.left_out:
        text.show_lines(f"{option} {why}: left out.")


def _row(one: Alternative) -> list[str]:
    held, offer = one.compared, one.offer
    use = held.break_even_utilisation
    return [
        f"{offer.purchase} {offer.provider} {offer.machine}",
        one.place.removesuffix(" providers"),
        f"{one.usd_per_hour:,.2f}",
        f"{held.cloud_usd_per_useful_hour:,.2f}",
        "never" if use is None else "any" if use == 0 else f"{use:.0%}",
        "-" if held.break_even_month is None else str(held.break_even_month),
        usd_short(held.saving_usd),
    ]


def _show_swings(found: Tco) -> None:
    from chipwise.cli import text

    if found.reference is None or not found.swings:
        return
    offer = found.reference.offer
    base = found.reference.compared.saving_usd
    text.show_lines("")
    text.show_title(f"Owning saves {usd_short(base)} against {offer.provider} {offer.purchase}; what moves it, one at a time")
    sys.stdout.write("\n".join(tornado(found.swings, base, text.width())) + "\n")


def tornado(swings: tuple[Swing, ...], base: float, width: int) -> list[str]:
    """One bar a setting on a common axis of USD saved: - towards its low end, + towards its high end, | as it is."""
    ends = [f"{_value(one.name, one.low)} to {_value(one.name, one.high)}" for one in swings]
    names = [_NAMES[one.name] for one in swings]
    left, middle = max(map(len, names)), max(map(len, ends))
    room = max(width - left - middle - 4, 10)
    savings = [base, *(value for one in swings for value in (one.saving_at_low_usd, one.saving_at_high_usd))]
    least, most = min(savings), max(savings)

    def at(value: float) -> int:
        return round((value - least) / ((most - least) or 1.0) * (room - 1))

    lines = []
    for one, name, told in zip(swings, names, ends, strict=True):
        bar = [" "] * room
        for value, mark in ((one.saving_at_low_usd, "-"), (one.saving_at_high_usd, "+")):
            for place in range(min(at(base), at(value)), max(at(base), at(value)) + 1):
                bar[place] = mark if bar[place] == " " else "="
        bar[at(base)] = "|"
        lines.append(f"{name:<{left}}  {told:<{middle}}  {''.join(bar)}".rstrip())
    axis = [" "] * room
    if least < 0 < most:
        axis[at(0.0)] = "0"
    for value, start in ((least, 0), (most, room - len(usd_short(most)))):
        for place, letter in enumerate(usd_short(value), start):
            if 0 <= place < room and axis[place] == " ":
                axis[place] = letter
    told = "- low end, + high end"[: left + middle + 2]
    return [*lines, f"{told:<{left + middle + 2}}  {''.join(axis)}".rstrip()]


def _value(name: str, value: float) -> str:
    if name in _SHARES:
        return f"{value:.0%}"
    if name == "usd_per_kwh":
        return f"${value:.3g}"
    if name.endswith(("_usd", "_usd_per_hour")) or "_usd_" in name:
        return usd_short(value)
    return f"{value:.3g}"


def _setting(one: Setting) -> str:
    if one.name.endswith("power_w"):
        shown = f"{one.value / 1e3:.3g} kW"
    elif one.name == "usd_per_kwh":
        shown = f"${one.value:.4g}/kWh"
    else:
        shown = f"{one.value:.3g}" if one.name == "pue" else _value(one.name, one.value)
    spread = (
        f" ({_value(one.name, one.low)} to {_value(one.name, one.high)})"
        if one.low is not None and one.high is not None
        else ""
    )
    return f"{shown}{spread}: {one.how}" + (" (given)" if one.given else "")
