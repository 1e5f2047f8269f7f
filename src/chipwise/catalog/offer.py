"""An offer: one machine in one region under one purchase option at a price of a date.

There are tens of thousands, so they are kept as columns (`Offers`) and become `Offer` values when looked at. The
columns are `array` objects: a planner can view them with numpy without copying, and a listing need not import numpy.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import overload


class Purchase(StrEnum):
    ON_DEMAND = "on-demand"
    SPOT = "spot"
    RESERVED_1Y = "reserved-1y"  # paid monthly
    RESERVED_3Y = "reserved-3y"
    RESERVED_1Y_UPFRONT = "reserved-1y-upfront"  # paid at the start, shown per hour
    OWNED = "owned"  # the owner's full cost per hour


class Verdict(StrEnum):
    """What is odd about a price. Those in NEVER_WIN are kept to be seen and never ranked."""

    FINE = ""
    EXCLUDE = "exclude"  # not an offer: an auction floor or a placeholder
    WRONG_SIZE = "wrong_size"  # a slice sold under a whole chip's name
    RETIRED = "retired"
    NOT_ON_DEMAND = "not_on_demand"  # a list price for something sold only as spot or by reservation
    MARKETPLACE = "marketplace"  # real once, far below the market, stale
    VERIFY = "verify"
    CURRENCY_UNKNOWN = "currency_unknown"
    STALE = "stale"
    NO_SAVING = "no_saving"  # spot that is not below on-demand
    FLOOR = "floor"  # spot at the largest discount the provider gives: expect a rise
    OUTLIER = "outlier"  # far from the same machine's prices elsewhere


MEANINGS = {
    Verdict.EXCLUDE: "not an offer: an auction floor or a placeholder",
    Verdict.WRONG_SIZE: "a slice under a whole chip's name",
    Verdict.RETIRED: "no longer sold",
    Verdict.NOT_ON_DEMAND: "sold only as spot or by reservation",
    Verdict.MARKETPLACE: "far below the market, and stale",
    Verdict.VERIFY: "from one source only",
    Verdict.CURRENCY_UNKNOWN: "currency not stated, taken as USD",
    Verdict.STALE: "older than 2024",
    Verdict.NO_SAVING: "spot that is not below on-demand",
    Verdict.FLOOR: "spot at a tenth of on-demand: expect a rise",
    Verdict.OUTLIER: "more than 3x off the same machine elsewhere",
}
NEVER_WIN = frozenset({Verdict.EXCLUDE, Verdict.WRONG_SIZE, Verdict.RETIRED, Verdict.NOT_ON_DEMAND, Verdict.MARKETPLACE})
PURCHASES = tuple(Purchase)
VERDICTS = tuple(Verdict)


@dataclass(frozen=True, slots=True)
class Offer:
    provider: str
    machine: str
    region: str
    purchase: Purchase
    usd_per_hour: float  # of the whole machine
    as_of: str  # ISO date
    usd_per_hour_max: float | None = None  # spot: the dearest zone; usd_per_hour is the cheapest
    verdict: Verdict = Verdict.FINE
    why: str = ""  # the reason for the verdict
    source: str = ""
    notes: str = ""
    usual_usd_per_hour: float | None = None  # what the machine's chips usually cost, where the verdict compares with it

    @property
    def key(self) -> tuple[str, str, str, Purchase]:
        return (self.provider, self.machine, self.region, self.purchase)

    @property
    def can_win(self) -> bool:
        return self.verdict not in NEVER_WIN


def date_of(day: int) -> date:
    """20261115: a day as the columns hold it."""
    return date(day // 10000, day // 100 % 100, day % 100)


def iso_day(day: int) -> str:
    """20261115 -> 2026-11-15: a day as the columns hold it, as people write it."""
    return f"{day // 10000:04d}-{day // 100 % 100:02d}-{day % 100:02d}"


def year_before(today: date) -> int:
    """The day (yyyymmdd) from which on a price counts as fresh where the cheapest is named."""
    return day_number(today - timedelta(days=365))


def day_number(when: date) -> int:
    """The other way round."""
    return when.year * 10000 + when.month * 100 + when.day


class Offers(Sequence[Offer]):
    """All offers as columns. `machine` and `region` are positions in the catalog's own tuples."""

    __slots__ = (
        "as_of",
        "machine",
        "machine_keys",
        "price",
        "price_max",
        "purchase",
        "region",
        "region_keys",
        "text",
        "texts",
        "verdict",
    )

    def __init__(self, machine_keys: Sequence[tuple[str, str]], region_keys: Sequence[tuple[str, str]]) -> None:
        self.machine_keys = machine_keys
        self.region_keys = region_keys
        self.machine = array("i")
        self.region = array("i")
        self.purchase = array("b")
        self.price = array("d")
        self.price_max = array("d")  # nan where there is none
        self.as_of = array("i")  # yyyymmdd
        self.verdict = array("b")
        self.text = array("i")  # position in texts
        # (why, source, notes, usual price), each combination once
        self.texts: list[tuple[str, str, str, str]] = [("", "", "", "")]

    def __len__(self) -> int:
        return len(self.price)

    @overload
    def __getitem__(self, index: int) -> Offer: ...
    @overload
    def __getitem__(self, index: slice) -> list[Offer]: ...
    def __getitem__(self, index: int | slice) -> Offer | list[Offer]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        provider, machine = self.machine_keys[self.machine[index]]
        top = self.price_max[index]
        reason, source, notes, usual = self.texts[self.text[index]]
        return Offer(
            provider=provider,
            machine=machine,
            region=self.region_keys[self.region[index]][1],
            purchase=PURCHASES[self.purchase[index]],
            usd_per_hour=self.price[index],
            as_of=iso_day(self.as_of[index]),
            usd_per_hour_max=None if top != top else top,
            verdict=VERDICTS[self.verdict[index]],
            why=reason,
            source=source,
            notes=notes,
            usual_usd_per_hour=float(usual) if usual else None,
        )

    def __iter__(self) -> Iterator[Offer]:
        return (self[i] for i in range(len(self)))
