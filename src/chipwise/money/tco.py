"""What machines of one's own cost over their life, by the hour and by the useful hour, and against a cloud.

A year has 8,760 hours and a month 730; all is reckoned by the month and paid at its end, the purchase at the start. With
P the purchase of machines and what connects them, R its resale value after n months, i the interest by the month and r
the running costs of a month:

    cost of a month = (P - R / (1+i)^n) i / (1 - (1+i)^-n) + r       (the annuity that pays for P less R, and r)

The part of the annuity above (P - R) / n is the cost of finance. r is energy, space, staff and maintenance. An hour is
useful when somebody's work runs; the machine draws its idle power in the others and nothing else changes. Taxes,
inflation and repairs beyond the maintenance share are left out. A rent may fall or rise by the month (`money.rent`): its
level price is the one that, paid all the years, is worth as much today.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from math import fsum, isfinite
from operator import mul

from chipwise.catalog.offer import Purchase
from chipwise.catalog.owned import DEFAULT_PUE
from chipwise.errors import InvalidSettings, Problem, UnknownName
from chipwise.money.cost import Cost, Line
from chipwise.money.rent import NONE, TERM_YEARS, Decline, factors
from chipwise.spelling import nearest
from chipwise.text import price, usd
from chipwise.units import HOUR, MONTH, YEAR

MONTH_HOURS = MONTH / HOUR
YEAR_HOURS = YEAR / HOUR
BY_USE = frozenset({Purchase.ON_DEMAND, Purchase.SPOT})  # paid in the useful hours only; the others run all the time
_ROUNDING = 1e-12  # of sums of money


@dataclass(frozen=True, slots=True)
class Ownership:
    """Prices are of one machine. `low` and `high` of the purchase are kept for the sensitivity."""

    purchase_usd: float
    power_w: float  # at work
    usd_per_kwh: float
    idle_power_w: float = 0.0
    machines: int = 1
    years: float = 4.0
    utilisation: float = 0.7  # useful hours of all hours
    residual_share: float = 0.1  # of the purchase, when sold at the end
    interest: float = 0.06  # a year; what the money costs or would earn
    pue: float = DEFAULT_PUE
    cooling_share: float = 0.0  # energy for cooling over that of the machines where the PUE leaves it out
    space_usd_per_kw_month: float = 0.0  # by the power at work
    staff_usd_per_machine_year: float = 0.0
    maintenance_share: float = 0.05  # of the purchase, a year
    network_storage_share: float = 0.15  # of the purchase, bought and sold with it
    purchase_low_usd: float | None = None
    purchase_high_usd: float | None = None

    def __post_init__(self) -> None:
        problems = [
            Problem(field.name, f"{value:g} is not possible", allowed="a finite number from 0 on")
            for field in fields(self)
            if (value := getattr(self, field.name)) is not None and not (isfinite(value) and value >= 0)
        ]
        for name, fine, allowed in (
            ("machines", self.machines >= 1, "1 or more"),
            ("years", self.months >= 1 if isfinite(self.years) else True, "a month or more"),
            ("utilisation", 0 < self.utilisation <= 1, "more than 0, at most 1"),
            ("residual_share", self.residual_share <= 1, "at most 1"),
            ("pue", self.pue >= 1, "1 or more: the machines' own energy is part of it"),
            ("idle_power_w", self.idle_power_w <= self.power_w, "at most power_w"),
        ):
            if not fine and name not in {problem.field for problem in problems}:
                problems.append(Problem(name, f"{getattr(self, name):g} is not possible", allowed=allowed))
        if problems:
            raise InvalidSettings(*problems)

    @property
    def months(self) -> int:
        return round(self.years * 12)

    @property
    def bought_usd(self) -> float:
        """All that is paid at the start."""
        return self.machines * self.purchase_usd * (1 + self.network_storage_share)

    @property
    def resale_usd(self) -> float:
        return self.bought_usd * self.residual_share

    @property
    def monthly_interest(self) -> float:
        return float((1 + self.interest) ** (1 / 12) - 1)


@dataclass(frozen=True, slots=True)
class OwnCost:
    """Of all machines together, by the hour of the clock."""

    cost: Cost
    machines: int
    utilisation: float

    @property
    def usd_per_machine_hour(self) -> float:
        return self.cost.usd / self.machines

    @property
    def usd_per_useful_hour(self) -> float:
        """Of one machine: what an hour of work on it costs, its idle hours included."""
        return self.usd_per_machine_hour / self.utilisation


def own_cost(own: Ownership) -> OwnCost:
    """The hourly cost in lines that sum: depreciation, finance, power, cooling and losses, space, staff, maintenance."""
    months, rate = own.months, own.monthly_interest
    depreciation = (own.bought_usd - own.resale_usd) / months
    finance = _annuity(own.bought_usd - own.resale_usd * _discount(rate, months), rate, months) - depreciation
    lines = [
        Line("depreciation", depreciation, f"({usd(own.bought_usd)} - {usd(own.resale_usd)}) over {months} months"),
        Line("finance", finance, f"{own.interest:.3g} a year on what is tied up"),
        *_running(own),
    ]
    return OwnCost(Cost.of(Line(line.name, line.usd / MONTH_HOURS, line.how) for line in lines), own.machines, own.utilisation)


def _running(own: Ownership) -> tuple[Line, ...]:
    """Of a month."""
    kwh = own.machines * MONTH_HOURS / 1e3 * _mean_power(own)
    overhead = own.pue - 1 + own.cooling_share
    kw = own.machines * own.power_w / 1e3
    staff = own.machines * own.staff_usd_per_machine_year / 12
    return (
        Line("power", kwh * own.usd_per_kwh, f"{kwh:,.0f} kWh a month x {price(own.usd_per_kwh)}"),
        Line("cooling and losses", kwh * overhead * own.usd_per_kwh, f"{overhead:.3g} of the power"),
        Line("space", kw * own.space_usd_per_kw_month, f"{kw:.3g} kW x {price(own.space_usd_per_kw_month)} a month"),
        Line("staff", staff, f"{own.machines} x {usd(own.staff_usd_per_machine_year)} a year"),
        Line(
            "maintenance",
            own.machines * own.purchase_usd * own.maintenance_share / 12,
            f"{own.maintenance_share:.3g} of the purchase a year",
        ),
    )


def _mean_power(own: Ownership) -> float:
    return own.power_w * own.utilisation + own.idle_power_w * (1 - own.utilisation)


def running_usd_per_month(own: Ownership) -> float:
    return Cost(_running(own)).usd


def cash_flow(own: Ownership) -> tuple[float, ...]:
    """USD by the year, what is paid being negative: the purchase in year 0, the resale in the last one."""
    month = running_usd_per_month(own)
    years, rest = divmod(own.months, 12)
    flows = [-own.bought_usd, *([-12 * month] * years), *([-rest * month] if rest else [])]
    flows[-1] += own.resale_usd
    return tuple(flows)


@dataclass(frozen=True, slots=True)
class Comparison:
    own: OwnCost
    cloud_usd_per_useful_hour: float  # of one machine, level over the years
    own_npv_usd: float  # of all that is paid over the years, as of today
    cloud_npv_usd: float
    break_even_utilisation: float | None  # owning costs no more from here on
    break_even_month: int | None  # by cash: what was paid for owning is no more than what the cloud would have cost
    break_even_month_discounted: int | None
    why: str

    @property
    def saving_usd(self) -> float:
        """Of owning over its life, as of today; negative where the cloud is cheaper."""
        return self.cloud_npv_usd - self.own_npv_usd


def compare(
    own: Ownership, cloud_usd_per_hour: float, purchase: Purchase | str = Purchase.ON_DEMAND, decline: float = 0.0
) -> Comparison:
    """Owning against renting as many machines of the same kind, each `cloud_usd_per_hour` today, for the same useful hours.
    The rent falls by `decline` a year, in steps of whole terms where it is reserved."""
    option = _option(purchase)
    for name, value, fine, allowed in (
        ("cloud_usd_per_hour", cloud_usd_per_hour, cloud_usd_per_hour >= 0, "a finite number from 0 on"),
        ("decline", decline, decline < 1, "a share below 1"),
    ):
        if not (isfinite(value) and fine):
            raise InvalidSettings(Problem(name, f"{value:g} is not possible", allowed=allowed))
    by_use = option in BY_USE
    rented_h, course = _rent(own, option, decline)
    running = running_usd_per_month(own)
    rate, months = own.monthly_interest, own.months
    worth = _annuity_factor(rate, months)
    values = [_discount(rate, month) for month in range(1, months + 1)]
    level = cloud_usd_per_hour * fsum(map(mul, course, values)) / fsum(values)
    cost = own_cost(own)
    utilisation = _even_utilisation(own, level, by_use)
    saved = [rented_h * cloud_usd_per_hour * factor - running for factor in course]
    cash = _even_month(own, saved, 0.0)
    return Comparison(
        own=cost,
        cloud_usd_per_useful_hour=level if by_use else level / own.utilisation,
        own_npv_usd=own.bought_usd + running * worth - own.resale_usd * _discount(rate, months),
        cloud_npv_usd=rented_h * level * worth,
        break_even_utilisation=utilisation,
        break_even_month=cash,
        break_even_month_discounted=_even_month(own, saved, rate),
        why=_explanation(own, cost, level, option, utilisation, cash),
    )


def _option(purchase: Purchase | str) -> Purchase:
    options = [option.value for option in Purchase if option is not Purchase.OWNED]
    if purchase not in options:
        raise UnknownName(
            "purchase option", str(purchase), nearest(str(purchase), options), remedy=f"Use {', '.join(options)}."
        )
    return Purchase(purchase)


def _rent(own: Ownership, option: Purchase, decline: float) -> tuple[float, tuple[float, ...]]:
    """Machine-hours paid in a month, and the rent of every month as a share of today's."""
    hours = own.machines * (own.utilisation if option in BY_USE else 1.0) * MONTH_HOURS
    return hours, factors(own.months, decline, round(12 * TERM_YEARS.get(option, 0.0)))


def _even_utilisation(own: Ownership, cloud_usd_per_hour: float, by_use: bool) -> float | None:
    """Closed form: the hourly cost of owning is a straight line in the utilisation, and so is a bill by use.

    Where the cloud is paid all the time, a busier machine of one's own only draws more: owning must win when it is full.
    """
    full = own_cost(replace(own, utilisation=1.0)).usd_per_machine_hour
    if not by_use:
        return 0.0 if full <= cloud_usd_per_hour else None
    kwh_price = own.usd_per_kwh * (own.pue + own.cooling_share) / 1e3
    by_hour_of_use = (own.power_w - own.idle_power_w) * kwh_price  # what an hour of work adds to an idle one
    if full > cloud_usd_per_hour:
        return None
    always = full - by_hour_of_use  # what an hour costs before any work is done
    return min(1.0, always / (cloud_usd_per_hour - by_hour_of_use)) if always > 0 else 0.0


def _even_month(own: Ownership, saved: list[float], rate: float) -> int | None:
    """The first month at whose end the savings so far have paid for the purchase; the resale helps in the last one."""
    if own.bought_usd == 0 and not (saved and saved[0] < 0):
        return 0
    paid_back = 0.0
    for month, usd_saved in enumerate(saved, start=1):
        resale = own.resale_usd if month == len(saved) else 0.0
        paid_back += (usd_saved + resale) * _discount(rate, month)
        if paid_back >= own.bought_usd * (1 - _ROUNDING):
            return month
    return None


def _explanation(
    own: Ownership, cost: OwnCost, cloud: float, option: Purchase, utilisation: float | None, month: int | None
) -> str:
    sentence = f"owning costs {price(cost.usd_per_machine_hour)} an hour ({price(cost.usd_per_useful_hour)} a useful one)"
    sentence += f", {option.value} {price(cloud)}"
    if utilisation is None:
        full = own_cost(replace(own, utilisation=1.0)).usd_per_machine_hour
        return f"{sentence}; even always in use owning costs {price(full)} an hour"
    sentence += f"; owning is cheaper from {utilisation:.0%} of the hours on"
    return (
        f"{sentence}, and has paid for itself after {month} months" if month is not None else f"{sentence}, not within its life"
    )


def owned_cash(own: Ownership) -> tuple[float, ...]:
    """What was paid for owning by the end of each month, from the purchase on; the resale is in the last."""
    month = running_usd_per_month(own)
    paid = [own.bought_usd + month * at for at in range(own.months + 1)]
    return (*paid[:-1], paid[-1] - own.resale_usd)


def rented_cash(own: Ownership, cloud_usd_per_hour: float, purchase: Purchase | str, decline: float) -> tuple[float, ...]:
    """What was paid for renting instead by the end of each month, from nothing on."""
    hours, course = _rent(own, _option(purchase), decline)
    return (0.0, *accumulate(hours * cloud_usd_per_hour * factor for factor in course))


@dataclass(frozen=True, slots=True)
class Swing:
    """One bar of the picture: what owning saves with one setting at its low and its high end."""

    name: str
    low: float
    high: float
    saving_at_low_usd: float
    saving_at_high_usd: float
    month_at_low: int | None
    month_at_high: int | None

    @property
    def width_usd(self) -> float:
        return abs(self.saving_at_high_usd - self.saving_at_low_usd)


CLOUD, DECLINE = "cloud_usd_per_hour", "rent_decline"
_ENDS = frozenset({"purchase_low_usd", "purchase_high_usd"})  # of the purchase, not settings of their own


def sensitivity(
    own: Ownership,
    cloud_usd_per_hour: float,
    vary: Mapping[str, tuple[float, float]] | None = None,
    purchase: Purchase | str = Purchase.ON_DEMAND,
    decline: Decline = NONE,
) -> tuple[Swing, ...]:
    """One setting at a time between its ends, all others as they are; the widest bar first.

    Without `vary` the usual doubts are taken: see `doubts`.
    """
    names = [field.name for field in fields(own) if field.name not in _ENDS]
    swings: list[Swing] = []
    known = (*names, CLOUD, DECLINE)
    for name, ends in (doubts(own, cloud_usd_per_hour, decline) if vary is None else vary).items():
        if name not in known:
            raise UnknownName("setting", name, nearest(name, known), remedy=f"Settings are {', '.join(known)}.")
        at_low, at_high = (_varied(own, cloud_usd_per_hour, name, value, purchase, decline.value) for value in ends)
        savings, months = (at_low.saving_usd, at_high.saving_usd), (at_low.break_even_month, at_high.break_even_month)
        swings.append(
            Swing(
                name=name,
                low=ends[0],
                high=ends[1],
                saving_at_low_usd=savings[0],
                saving_at_high_usd=savings[1],
                month_at_low=months[0],
                month_at_high=months[1],
            )
        )
    return tuple(sorted(swings, key=lambda swing: -swing.width_usd))


def _varied(own: Ownership, cloud: float, name: str, value: float, purchase: Purchase | str, decline: float) -> Comparison:
    if name == CLOUD:
        return compare(own, value, purchase, decline)
    if name == DECLINE:
        return compare(own, cloud, purchase, value)
    changed: Ownership = replace(own, **{name: int(value) if name == "machines" else value})  # type: ignore[arg-type]
    return compare(changed, cloud, purchase, decline)


def doubts(own: Ownership, cloud_usd_per_hour: float, decline: Decline = NONE) -> dict[str, tuple[float, float]]:
    """What is usually not known, and how far it may be off: the purchase as its prices spread, the rest by habit."""
    low, high = own.purchase_low_usd, own.purchase_high_usd
    return {
        "purchase_usd": (own.purchase_usd * 0.8 if low is None else low, own.purchase_usd * 1.2 if high is None else high),
        "utilisation": (own.utilisation * 0.6, min(1.0, own.utilisation * 1.4)),
        "years": (max(1 / 12, own.years - 1), own.years + 1),
        "residual_share": (0.0, min(1.0, own.residual_share + 0.2)),
        "interest": (own.interest * 0.5, own.interest * 1.5),
        "usd_per_kwh": (own.usd_per_kwh * 0.6, own.usd_per_kwh * 1.6),
        "pue": (1 + (own.pue - 1) * 0.5, 1 + (own.pue - 1) * 1.5),
        "staff_usd_per_machine_year": (own.staff_usd_per_machine_year * 0.5, own.staff_usd_per_machine_year * 2),
        CLOUD: (cloud_usd_per_hour * 0.6, cloud_usd_per_hour * 1.1),  # lists are bargained down, seldom up
        **({DECLINE: (decline.low, decline.high)} if decline.is_wide else {}),
    }


def _discount(rate: float, months: int) -> float:
    return float((1 + rate) ** -months)


def _annuity_factor(rate: float, months: int) -> float:
    """What a dollar a month is worth today."""
    return (1 - _discount(rate, months)) / rate if rate else float(months)


def _annuity(present: float, rate: float, months: int) -> float:
    return present / _annuity_factor(rate, months)
