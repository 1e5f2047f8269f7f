"""What a machine costs an hour with a commitment: reserved instances, savings plans, committed use, capacity blocks.

These come from the table `commitments`, besides the reserved prices that offers carry themselves. A row names a machine, a
family or everything; a region, several or none; and says one of

    discount_fraction          price = on-demand x (1 - fraction); a family's sizes share it, so other regions are
                               priced with it too, marked uncertain
    usd_hour_instance          the price; in other regions, where the row gives the on-demand price it stood
                               beside, the same fraction off, marked uncertain, else nothing
    usd_hour_per_accelerator   the same for one chip, times the machine's chips
    max_discount_fraction      an advertised "up to" over all machines: always uncertain, a bound and not a price
    note                       no figure (see `notes`)

Prices are certain only where a list price was read or derived from one, for this region, with a stated term: what
third parties wrote, what is `doubtful` or `superseded`, or a stretched region are not.
The on-demand price decides the fraction rows. Negotiated discounts (`catalog.discount`) change offers: who passes a
discounted on-demand price assumes that the discount holds under the commitment too; absolute prices stay list prices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

from chipwise.catalog.price_tables import Commitment
from chipwise.errors import InvalidSettings, Problem

HOURS_PER_YEAR = 8760.0
PARTIAL_UPFRONT = 0.5  # AWS asks for about half of the term's price at the start

_PRICED = ("discount_fraction", "usd_hour_instance", "usd_hour_per_accelerator", "max_discount_fraction")
_TERM = re.compile(r"(\d+)y")
_EVERYTHING = frozenset({"all EC2 families, Lambda, Fargate", "one family in one region", "any VM"})
_ANYWHERE = re.compile(r"\d+ regions|all|all regions where sold|one|")  # not GovCloud: it has rows of its own


@dataclass(frozen=True, slots=True)
class Committed:
    instrument: str
    term: str  # as the provider words it
    term_years: float | None  # None: days, either of two, or not stated
    payment: str
    usd_per_hour: float  # of the whole machine, upfront part spread over the term
    upfront_usd: float | None  # None: not stated, or by a length that the buyer chooses
    basis: str
    as_of: str
    certain: bool
    bound: bool = False  # an advertised "up to": shown beside the others, never planned with


class Commitments:
    """The table by machine and family; an answer looks at a handful of rows."""

    __slots__ = ("_everything", "_named")

    def __init__(self, rows: Iterable[Commitment]) -> None:
        self._named: dict[tuple[str, str], list[Commitment]] = {}
        self._everything: dict[str, list[Commitment]] = {}
        for row in rows:
            if row.machine_or_family in _EVERYTHING:
                self._everything.setdefault(row.provider, []).append(row)
            else:
                for name in row.machine_or_family.split(", "):
                    self._named.setdefault((row.provider, name), []).append(row)

    def of(
        self, provider: str, machine: str, region: str, on_demand_usd_per_hour: float | None, chips: float | None = None
    ) -> tuple[Committed, ...]:
        """Each instrument once per term and payment, the certain ones first, bounds last, each by price."""
        if on_demand_usd_per_hour is not None and not (isfinite(on_demand_usd_per_hour) and on_demand_usd_per_hour > 0):
            raise InvalidSettings(
                Problem("on_demand_usd_per_hour", f"{on_demand_usd_per_hour} is no price", allowed="more than 0, or none")
            )
        best: dict[tuple[str, str, str], tuple[tuple[bool, bool, bool, str], Committed]] = {}
        for row, exact in self._rows(provider, machine):
            in_region = _covers(row, region)
            priced = _priced(row, in_region, on_demand_usd_per_hour, chips)
            if priced is None:
                continue
            # Of several rows for one promise: the one still in force, for this region, for this machine, the newest.
            rank = (not row.superseded, in_region, exact, row.fact.as_of)
            key = (row.instrument, row.term, row.payment)
            if key not in best or best[key][0] < rank:
                best[key] = (rank, priced)
        return tuple(sorted((one for _, one in best.values()), key=lambda one: (one.bound, not one.certain, one.usd_per_hour)))

    def notes(self, provider: str, machine: str) -> tuple[str, ...]:
        """What is said of a machine without a figure: "by negotiation; ..."."""
        return tuple(row.fact.notes for row, _ in self._rows(provider, machine) if row.measure == "note")

    def _rows(self, provider: str, machine: str) -> Iterable[tuple[Commitment, bool]]:
        # p5.48xlarge is of p5, a2-highgpu-1g of a2-highgpu, a4x-highgpu-4g of a4x.
        names = dict.fromkeys((machine, machine.partition(".")[0], machine.rpartition("-")[0], machine.partition("-")[0]))
        for name in names:
            for row in self._named.get((provider, name), ()):
                yield row, name == machine
        for row in self._everything.get(provider, ()):
            yield row, False


def _covers(row: Commitment, region: str) -> bool:
    """Whether the row's figure was read for this region."""
    if row.region == "GovCloud":
        return "-gov-" in region
    if _ANYWHERE.fullmatch(row.region):
        return "-gov-" not in region
    return region in row.region.split()


def _priced(row: Commitment, in_region: bool, on_demand: float | None, chips: float | None) -> Committed | None:
    if row.measure not in _PRICED or row.value is None:
        return None
    basis, bound = row.basis, row.measure == "max_discount_fraction"
    if row.measure in ("discount_fraction", "max_discount_fraction"):
        if on_demand is None:
            return None
        price = on_demand * (1 - row.value)
        basis += f"; {'up to ' if bound else ''}{row.value:.3g} off on-demand"
        if not in_region:
            basis += f", as in {row.region}"
    else:
        count = 1.0 if row.measure == "usd_hour_instance" else chips
        if count is None:
            return None
        price = row.value * count
        if not in_region and row.region != "not stated":
            stated = row.on_demand_usd_hour
            if stated is None or on_demand is None:
                return None
            share = row.value / stated
            price = on_demand * share
            basis += f"; {1 - share:.3g} off on-demand, as in {row.region}"
    years = _TERM.fullmatch(row.term)
    term_years = float(years[1]) if years else None
    certain = in_region and not bound and row.term != "not stated" and not row.doubtful and not row.superseded
    upfront = _upfront(row, price, term_years)
    return Committed(
        instrument=row.instrument,
        term=row.term,
        term_years=term_years,
        payment=row.payment,
        usd_per_hour=price,
        upfront_usd=upfront,
        basis=basis,
        as_of=row.fact.as_of,
        certain=certain,
        bound=bound,
    )


def _upfront(row: Commitment, usd_per_hour: float, term_years: float | None) -> float | None:
    if row.upfront == "none":
        return 0.0
    if term_years is None:
        return None
    total = usd_per_hour * HOURS_PER_YEAR * term_years
    return {"all": total, "partial": total * PARTIAL_UPFRONT}.get(row.upfront)
