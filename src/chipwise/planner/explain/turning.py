"""What would change the answer, and what the answer rests on: price, load, deadline, precision; then the risks.

Every turn names the number at which another candidate becomes the best. Prices and loads are moved one at a time, everything
else as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from chipwise.catalog.offer import MEANINGS, PURCHASES, VERDICTS, Purchase, Verdict, iso_day
from chipwise.planner.explain.words import PORTING, RATES
from chipwise.planner.fleet import Index
from chipwise.planner.reasons import MissesDeadline
from chipwise.planner.values.plan import Choice, Plan, Rows, Turn
from chipwise.planner.values.split import DevicesPerPlace, width
from chipwise.text import duration, usd

LOOKED_AT = 400  # rows among which another precision is looked for: they are ranked, so it is near the top or far off
FARTHEST = 10.0  # times the asked load, up and down
NEAREST = 2000  # loads above and below the asked one that are looked at
OLD_DAYS = 180
TIE = 0.005  # of the price: below it two choices cost the same
UNMEASURED = {  # kinds without a model: what nobody measured
    "hpc": "program",
    "render": "scene",
    "transcode": "conversion",
    "stream": "design",
    "hybrid": "work",
}
SCARCE = 256  # chips of one kind in one region above which somebody must be asked


def turns(plan: Plan) -> tuple[Turn, ...]:
    one, rows = plan.winner, plan.rows
    if one is None or rows is None:
        return ()
    found: list[Turn] = []
    if plan.objective == "cost":
        found += _price(one, rows)
        found += _load(one, plan.choices, RATES.get(plan.kind, "")) if plan.per == "month" else _time(one, rows)
        found += _precision(one, rows)
    return (*found, *_risks(plan.kind, one, rows))


def _chips(rows: Rows, at: Index) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    machines = rows.fleet.catalog.machines
    return np.array([machines[machine].chip for machine in rows.priced.machine[at].tolist()], dtype=object)


def _price(one: Choice, rows: Rows) -> Iterator[Turn]:
    kept = rows.ranked[1 : rows.kept]
    for start in range(0, len(kept), LOOKED_AT):
        some = kept[start : start + LOOKED_AT]
        others = np.flatnonzero(_chips(rows, some) != one.chip)
        if len(others):
            other = rows.choice(int(some[others[0]]))
            fall = 1.0 - one.usd / max(other.usd, 1e-9)
            name = f"{other.chip} ({other.where}, {other.purchase})"
            rise = other.usd / max(one.usd, 1e-9) - 1
            if rise < 0.005:
                yield Turn("price", f"{name} ties with this one")
            else:
                yield Turn("price", f"{name} wins when it gets {fall:.0%} cheaper, or this one {rise:.0%} more expensive")
            return


def _time(one: Choice, rows: Rows) -> Iterator[Turn]:
    """A deadline before the winner's end, and one after that of something cheaper."""
    priced, kept, rest = rows.priced, rows.ranked[: rows.kept], rows.ranked[rows.kept :]
    faster = kept[priced.seconds[kept] < 0.95 * one.seconds]
    if len(faster):
        other = rows.choice(int(faster[np.argmin(priced.usd[faster])]))
        told = f"in less than {duration(one.seconds)}: {_named(other)} takes {duration(other.seconds)} for {usd(other.usd)}"
        yield Turn("deadline", f"{told} ({other.usd / max(one.usd, 1e-9) - 1:+.0%})")
    cheaper = rest[(priced.usd[rest] < 0.98 * one.usd) & (priced.seconds[rest] > one.seconds)]
    if len(cheaper):
        other = rows.choice(int(cheaper[np.argmin(priced.usd[cheaper])]))
        if isinstance(rows.verdict(other), MissesDeadline) and other.usd < one.usd:
            told = f"given {duration(other.seconds)}, {_named(other)} does it for {usd(other.usd)}"
            yield Turn("later deadline", f"{told} ({other.usd / max(one.usd, 1e-9) - 1:+.0%})")


@dataclass(frozen=True, slots=True)
class _Steps:
    """What so many requests a second cost on one machine type: whole groups of machines, each with its rate."""

    choice: Choice
    usd: float  # of one group
    rate: float

    @classmethod
    def of(cls, one: Choice) -> _Steps:
        across = max(math.ceil(width(one.split) / max(one.chips, 1)), 1)
        groups = max(one.machines / across, 1.0)
        return cls(one, one.usd / groups, (one.rate or 0.0) / groups)

    def cost(self, rate: float) -> float:
        return math.ceil(rate / self.rate - 1e-9) * self.usd


def _load(one: Choice, choices: Sequence[Choice], unit: str) -> Iterator[Turn]:
    """The nearest higher and lower rates at which another of the best machine types is cheaper, both in whole machines."""
    if not one.rate or one.machines < 1 or isinstance(one.split, DevicesPerPlace):  # a place has its load, and its device
        return
    mine = _Steps.of(one)
    others = [_Steps.of(other) for other in choices[1:] if other.rate and other.machine != one.machine]
    if not others:
        return
    now = mine.rate * max(round(one.usd / mine.usd), 1)
    bends = sorted({step.rate * count for step in (mine, *others) for count in _near(now, step.rate)})
    above, below = [bend * 1.0001 for bend in bends if bend >= now], [bend for bend in reversed(bends) if bend < now]
    for what, since, rates in (("more load", "from", above), ("less load", "up to", below)):
        for rate in rates[:NEAREST]:
            best = min(others, key=lambda step: step.cost(rate))
            if best.cost(rate) < 0.99 * mine.cost(rate):
                less = f"{usd(best.cost(rate))} a month against {usd(mine.cost(rate))}"
                yield Turn(what, f"{since} {rate:,.3g} {unit} {_named(best.choice, False)} costs less: {less}")
                break


def _near(now: float, rate: float) -> range:
    """Counts of groups whose rates lie nearest to `now`: more than `NEAREST` of them on one side are not looked at."""
    here = int(now / rate)
    return range(max(here - NEAREST, 1), min(here + 2 + NEAREST, 1 + int(FARTHEST * now / rate)))


def _precision(one: Choice, rows: Rows) -> Iterator[Turn]:
    if not one.precision:  # nothing is computed in a format of ours; others may be called by the slice they are
        return
    for at in rows.ranked[1 : min(rows.kept, LOOKED_AT)].tolist():
        if rows.precision(at) not in (one.precision, ""):
            other = rows.choice(at)
            told = f"in {other.precision} instead of {one.precision}: {_named(other)} for {usd(other.usd)}"
            yield Turn("precision", f"{told} ({other.usd / max(one.usd, 1e-9) - 1:+.0%})")
            return


def _risks(kind: str, one: Choice, rows: Rows) -> Iterator[Turn]:
    width = one.high_s / max(one.low_s, 1e-9) - 1
    if one.seats is not None:
        yield Turn(
            "certainty", "seats are counted by memory: how fast people's work runs there was not estimated; try it first"
        )
    elif one.provenance == "formula":
        what = UNMEASURED.get(kind, "model")
        told = f"no measurement of this {what} on this chip: the estimate is from a formula; try it before you commit"
        yield Turn("certainty", told)
    elif width > 0.5:
        yield Turn("certainty", f"the estimate's interval is {width:.0%} wide")
    offers, offer = rows.fleet.catalog.offers, int(rows.priced.offer[rows.ranked[0]])
    verdict = VERDICTS[offers.verdict[offer]]
    if verdict is not Verdict.FINE:
        yield Turn("doubtful price", f"{MEANINGS[verdict]}: check it with the provider")
    newest = int(np.frombuffer(offers.as_of, dtype=np.int32).max())
    age = (date.fromisoformat(iso_day(newest)) - date.fromisoformat(one.price_of)).days
    if age > OLD_DAYS:
        yield Turn("old price", f"of {one.price_of}, {age:,.0f} days before the newest of the catalog ({iso_day(newest)})")
    many = one.machines * one.chips
    if many > SCARCE and one.purchase != "owned":
        told = f"{many:,} {one.catalog_chip or one.chip} in one region at once are more than most accounts are given"
        yield Turn("capacity", f"{told}: ask the provider first, or set limits.chip_count")
    if one.purchase.startswith("reserved"):
        yield from _commitment(one, rows)
    if one.purchase == "spot":
        yield Turn("spot", "the price moves and machines are taken away: without checkpoints this plan does not hold")
    moving = PORTING.get(one.family.split()[-1]) or PORTING.get(one.family.split()[0], "")
    if moving:
        yield Turn("moving there", moving)


def _commitment(one: Choice, rows: Rows) -> Iterator[Turn]:
    """From which share of the hours on a commitment costs less than paying for those alone, at this place."""
    priced, offers = rows.priced, rows.fleet.catalog.offers
    at = int(rows.ranked[0])
    machine, region = (np.frombuffer(column, dtype=np.int32) for column in (offers.machine, offers.region))
    same = (machine == priced.machine[at]) & (region == priced.region[at])
    same &= np.frombuffer(offers.purchase, dtype=np.int8) == PURCHASES.index(Purchase.ON_DEMAND)
    hourly = np.frombuffer(offers.price, dtype=np.float64)
    if same.any():
        share = float(hourly[priced.offer[at]] / hourly[same].min())
        yield Turn(
            "commitment",
            f"{one.purchase} is paid for every hour of its term: on-demand costs less below {share:.0%} of the hours",
        )


def _named(one: Choice, count: bool = True) -> str:
    many = f"{one.machines} x " if one.machines > 1 and count else ""
    return f"{many}{one.provider} {one.machine}, {one.purchase}"
