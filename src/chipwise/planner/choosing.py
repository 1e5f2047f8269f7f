"""Choices of priced rows, each made once, with the storage, the interval and the parts of its cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from chipwise.catalog.machine import runs_arm
from chipwise.catalog.offer import MEANINGS, PURCHASES, VERDICTS, Purchase, iso_day
from chipwise.money.cost import Cost, Line
from chipwise.perf.arrays import Array
from chipwise.planner.case import Described, PlanningCase
from chipwise.planner.choice_parts import feeding_of, interruption_words, own_costs, transfer_words
from chipwise.planner.cost_range import Spread, machine_spread, short_spread, spread_of, sure_extra
from chipwise.planner.defaults import NEARLY, UNKNOWN_TIMES
from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.limits import Mask
from chipwise.planner.offer_prices import DOUBTFUL
from chipwise.planner.preference import PORTED, Lead, Traits, ended_of, lead, pays, porting_of
from chipwise.planner.pricing import HOURLY, Priced
from chipwise.planner.ranking import TIE, Values, score
from chipwise.planner.row_storage import RowStorage
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.load import Followed, OverTime
from chipwise.planner.values.plan import Grounds, Rows
from chipwise.planner.why_lost import verdict
from chipwise.text import number
from chipwise.text import price as exact_price
from chipwise.units import MONTH, YEAR

NEAR_ROWS = 2000  # among which it is looked for which of the cheapest leads
BEHIND = 200  # rows without porting that are looked at where none of those is without
SAMPLE_ROWS = 20  # rows whose storage is chosen to see how cheap the cheapest is


def values_of(case: PlanningCase, priced: Priced, unsure: bool = False) -> Values:
    """`unsure`: no row that may win is as sure of the latency goals as asked."""
    return Values(
        usd=priced.usd,
        seconds=priced.seconds,
        kg=priced.kg,
        doubt=priced.high_s / np.maximum(priced.low_s, 1e-9),
        machines=priced.machines,
        room=np.zeros(len(priced)) if case.room is None else case.room[priced.way],
        chance=None if case.chance is None or not unsure else case.chance[priced.way],
    )


def _device(told: Described) -> str:
    return told.quantum.device if told.quantum is not None else ""


class ChoiceMaker:
    """Makes choices of rows, each once."""

    def __init__(
        self,
        case: PlanningCase,
        fleet: Fleet,
        priced: Priced,
        describe: Callable[[int], Described],
        grounds: Grounds,
        followed: Mapping[int, Followed],
        efforts: Array,
        layered: Array | None = None,
    ) -> None:
        self.case, self.fleet, self.priced, self.describe, self.grounds = case, fleet, priced, describe, grounds
        self.followed = followed  # by way
        self.tails: dict[int, tuple[float, float]] = {}  # seconds of nine runs in ten, and with the asked confidence
        self.lateness: dict[int, float] = {}  # probability of missing the deadline
        self.unsure = False  # nothing that may win is as sure of the latency goals as asked
        self.layered = layered  # USD by row, where a budget is held against the load's curve
        self.porting = porting_of(fleet, priced, efforts)
        self.made: dict[int, Choice] = {}
        self.ways: dict[int, Described] = {}
        goals = case.goals
        self.extra: Array = sure_extra(priced, goals.confidence) if goals.stated else np.zeros(len(priced))
        self.storage = RowStorage(case, fleet, priced, self.extra)

    def _counted(self, row: int) -> str:
        """Why a price counts that is not the listed one."""
        prices, offer = self.priced.prices, self.priced.offer[row]
        if prices.alone[offer]:
            return "upper end of its range, since it has no peers"
        return "median of its peers" if prices.replaced[offer] else "middle of its zones"

    def _late(self, row: int) -> float | None:
        if self.case.goals.deadline_s is None:
            return None
        if row not in self.lateness:
            self.foresee(np.array([row]))
        return self.lateness[row]

    def _spread(self, row: int, described: Described, machines: int) -> Spread:
        priced, prices, offer = self.priced, self.priced.prices, self.priced.offer[row]
        price = spread_of(float(prices.low[offer]), float(prices.counted[offer]), float(prices.high[offer]))
        if self.case.peak and self.case.goals.stated and described.rate and described.replicas:
            return price * short_spread(self.case.peak, described.rate, described.replicas, machines, described.rate_spread)
        if self.case.peak and described.planned and described.replicas:
            return price * machine_spread(
                self.case.peak, described.planned, described.replicas, machines, described.rate_spread
            )
        unpaid = float(priced.tails.first_wait_s[row])
        spans = (float(column[row]) - unpaid for column in (priced.low_s, priced.seconds, priced.high_s))
        return price * spread_of(*spans)

    def _always_paid(self, row: int, described: Described, followed: Followed | None) -> float:
        """USD of the machines that follow a load and are up at all its hours, however fast they are: those of the fewest
        copies, at the low end of their price."""
        if followed is None:
            return 0.0
        prices, offer, machines = self.priced.prices, self.priced.offer[row], float(self.priced.machines[row])
        by_copy = machines / max(described.replicas or machines, 1.0)
        fewest = min(float(followed.fewest), math.ceil(self.case.goals.least_replicas * by_copy - 1e-9))
        machine_usd = float(self.priced.compute_usd[row]) / (followed.share * machines)
        return fewest * machine_usd * min(float(prices.low[offer] / max(prices.counted[offer], 1e-12)), 1.0)

    def rows(self, ranked: Index, good_count: int) -> Rows:
        case, way = self.case, self.priced.way
        return Rows(
            fleet=self.fleet,
            priced=self.priced,
            ranked=ranked,
            kept=good_count,
            units=case.units,
            choice=self.choice,
            verdict=partial(verdict, case, self.fleet),
            precision=lambda at: self.describe(int(way[at])).precision,
            quantum=lambda at: _device(self.describe(int(way[at]))),
            storage_usd=self.storage.usd_of if case.stored is not None else None,
            foresee=self.foresee,
            grounds=self.grounds,
            needs_porting=self.porting >= PORTED,
            least_replicas=case.goals.least_replicas,
            load=case.peak,
            leader=self._leader,
            able=partial(self.able, ranked[:good_count]),
            doubtful=partial(self.doubtful, ranked[:good_count]),
            load_chance=lambda at: self.load_chance_of(int(way[at])),
        )

    def able(self, good: Index, objective: str) -> Index:
        """Of ranked rows that keep the goals those that may lead: none that new software no longer supports; where money counts
        none whose porting does not pay, nor at a price that is more doubtful than that of the row that leads by cost."""
        if not len(good):
            return good
        moved, ended = self.porting[good] >= PORTED, ended_of(self.fleet, self.priced, good, self.porting)
        able = ~(moved & ended) if not (moved & ended).all() else np.ones(len(good), dtype=bool)
        doubt, first = self.priced.prices.doubt[self.priced.offer[good]], int(np.flatnonzero(able)[0])
        if objective in ("cost", "balanced") and not moved.all():
            usd = score(values_of(self.case, self.priced, self.unsure).rows(good), "cost")
            cheapest = good[np.argsort(usd, kind="stable")]
            first = int(np.flatnonzero(good == self._leader(cheapest))[0])
            native = float(usd[~moved].min())
            able &= ~moved | (bool(moved[first]) & pays(usd, native, self.times))
        return np.asarray(good[able & (doubt <= doubt[first])], dtype=np.intp)

    def doubtful(self, good: Index, first: int) -> int | None:
        """Of rows that keep the goals the cheapest that a surer price was preferred to, where it costs less than `first`."""
        priced, doubt = self.priced, self.priced.prices.doubt[self.priced.offer]
        cheaper = good[(doubt[good] > doubt[first]) & (priced.usd[good] < priced.usd[first])]
        cheaper = cheaper[(self.porting[cheaper] < PORTED) | (self.porting[first] >= PORTED)]
        return int(cheaper[np.argmin(priced.usd[cheaper])]) if len(cheaper) else None

    @property
    def times(self) -> float:
        """That the bill is paid while a port pays for itself."""
        return YEAR / MONTH if self.case.per == "month" else 1.0

    def led(self, ranked: Index, stored: bool = True) -> tuple[Index, Lead]:
        """The cheapest of ranked rows, and which of them leads; `stored`: with storage."""
        priced, porting, values = self.priced, self.porting, values_of(self.case, self.priced, self.unsure)
        heads = ranked[:NEAR_ROWS]
        if (porting[heads] >= PORTED).all():
            behind = ranked[NEAR_ROWS:]
            heads = np.concatenate([heads, behind[porting[behind] < PORTED][:BEHIND]])
        stored = stored and self.case.stored is not None
        heads = self._near(heads, values) if stored else heads
        total = self.storage.in_all(heads, values) if stored else values.rows(heads)
        by_cost = np.argsort(score(total, "cost"), kind="stable")
        heads, total = heads[by_cost], total.rows(by_cost)
        traits = Traits(
            usd=score(total, "cost"),
            seconds=total.seconds,
            days=priced.prices.days[priced.offer[heads]],
            machines=total.machines,
            porting=porting[heads],
            ended=ended_of(self.fleet, priced, heads, porting),
            doubt=priced.prices.doubt[priced.offer[heads]],
            times=self.times,
            deadline_s=self.case.goals.deadline_s or 0.0,
            carries=self._carries(heads) if self.case.per == "month" else None,
            sure_load=self.case.goals.confidence,
            unknown=self._unknown(heads),
            short=self._short(heads) if self.case.kind == "serve" else None,
            enough=2.0 if self.case.kind == "serve" else 1.0,
        )
        return heads, lead(traits)

    def _carries(self, rows: Index) -> Array:
        """How surely rows carry the load; what is as sure as goals must be is no better for being surer."""
        ways, place = np.unique(self.priced.way[rows], return_inverse=True)
        chances = [self.load_chance_of(way) for way in ways.tolist()]
        sure = np.array([1.0 if one is None else one for one in chances], dtype=np.float64)
        return np.asarray(np.minimum(sure, self.case.goals.confidence)[place], dtype=np.float64)

    def _unknown(self, rows: Index) -> Mask:
        ways, first, place = np.unique(self.priced.way[rows], return_index=True, return_inverse=True)
        slow = self.priced.tails.stretch[rows[first]]
        wide = slow**2 > UNKNOWN_TIMES if self.case.per == "job" else np.ones(len(ways), dtype=bool)
        for at in np.flatnonzero(wide).tolist():
            wide[at] = self.described(int(ways[at])).is_unknown(float(slow[at]))
        return np.asarray(wide[place], dtype=bool)

    def _short(self, rows: Index) -> Mask:
        """Whether a hair of the usual headroom is missing."""
        ways, place = np.unique(self.priced.way[rows], return_inverse=True)
        missing = [self.described(way).headroom is not None for way in ways.tolist()]
        return np.asarray(np.array(missing, dtype=bool)[place], dtype=bool)

    def load_chance_of(self, way: int) -> float | None:
        return self.described(way).load_chance

    def described(self, way: int) -> Described:
        if way not in self.ways:
            self.ways[way] = self.describe(way)
        return self.ways[way]

    def _near(self, heads: Index, values: Values) -> Index:
        """Rows that may lead with their storage: of what needs porting, of what does not, and of what is on its way out those
        that cost without it no more than nearly the same as the cheapest that was looked at with it; of each also where
        the price is surer."""
        moved, ended = self.porting[heads] >= PORTED, ended_of(self.fleet, self.priced, heads, self.porting)
        bare, near = score(values.rows(heads), "cost"), np.zeros(len(heads), dtype=bool)
        doubt = self.priced.prices.doubt[self.priced.offer[heads]]
        groups = (~moved, moved & ~ended, moved & ended)
        for group in (one & (doubt <= most) for one in groups for most in np.unique(doubt)):
            places = np.flatnonzero(group)
            if len(places):
                lowest = float(score(self.storage.in_all(heads[places[:SAMPLE_ROWS]], values), "cost").min())
                near[places] |= bare[places] <= (1.0 + NEARLY) * lowest * (1.0 + TIE)
        return heads[near]

    def _leader(self, rows: Index) -> int:
        heads, leading = self.led(rows)
        return int(heads[leading.first])

    def foresee(self, rows: Index) -> None:
        """How bad one run in ten is, and one more than the asked confidence allows, and how likely the deadline is missed, for
        many rows at once."""
        picked = np.array(sorted(set(rows.tolist())), dtype=np.intp)
        confidence = self.case.goals.confidence
        of_shares = self.priced.tails.quantiles(picked, *dict.fromkeys((0.9, confidence)))
        pairs = zip(of_shares[0].tolist(), np.maximum(of_shares[-1], self.priced.seconds[picked]).tolist(), strict=True)
        self.tails.update(zip(picked.tolist(), pairs, strict=True))
        if (deadline := self.case.goals.deadline_s) is not None:
            self.lateness.update(zip(picked.tolist(), self.priced.tails.late(picked, deadline).tolist(), strict=True))

    def _tail(self, row: int) -> tuple[float, float]:
        if row not in self.tails:
            self.foresee(np.array([row]))
        return self.tails[row]

    def _travels_s(self, trip: float | None) -> float:
        """The way of a request and its answer."""
        reach = self.case.reach
        return 0.0 if reach is None else reach.allowance_s if trip is None else trip

    def _answer_s(self, described: Described, trip: float | None) -> dict[str, float]:
        """What is more than a millionth of an answer."""
        added = self._travels_s(trip)
        parts = {**described.answer_s, **({"network": added} if added else {})} if described.answer_s else {}
        threshold = 1e-6 * sum(parts.values())
        return {name: seconds for name, seconds in parts.items() if seconds > threshold}

    def _latency(self, described: Described, trip: float | None) -> dict[str, float]:
        """With the way of a request and its answer; every token after the first follows on it."""
        added, latency = self._travels_s(trip), described.latency or {}
        return {name: seconds + (0.0 if name.startswith("tpot") else added) for name, seconds in latency.items()}

    def choice(self, row: int) -> Choice:
        if row not in self.made:
            self.made[row] = self._choice(row)
        return self.made[row]

    def _choice(self, row: int) -> Choice:
        priced, catalog = self.priced, self.fleet.catalog
        machine, region = catalog.machines[priced.machine[row]], catalog.regions[priced.region[row]]
        shape = self.fleet.shapes[self.fleet.shape_of[priced.machine[row]]]
        hourly, count = float(priced.hourly[row]), int(priced.machines[row])
        storage = self.storage.of(row)
        compute = float(priced.compute_usd[row])
        followed = self.followed.get(int(priced.way[row])) if PURCHASES[priced.purchase[row]] in HOURLY else None
        hours = number(compute / max(hourly * count, 1e-9), 4)
        listed = catalog.offers.price[priced.offer[row]]
        paid = f"{hours} h x {count}" if followed is None else f"{number(followed.hours, 4)} machine-hours"
        formula = f"{paid} x {exact_price(hourly)}/h"
        if abs(hourly / listed - 1) > 0.005:
            formula += f" ({self._counted(row)}; listed at {exact_price(listed)})"
        described = self.describe(int(priced.way[row]))
        moving_s = float(priced.tails.moved[row])
        reach = self.case.reach
        trip = reach.of(int(priced.region[row])) if reach is not None else None
        restarts = float(priced.restart_usd[row])
        other_lines = (
            Line("transfer", float(priced.transfer_usd[row]), transfer_words(self.case.data, moving_s)),
            *(storage.lines if storage else ()),
            *described.lines,
        )
        assumed = bool(priced.assumed[row])
        interrupted = interruption_words(float(priced.interruptions[row]), assumed, f"{machine.provider} {shape.part}")
        nine, surely = self._tail(row)
        cost = Cost.of((Line("compute", compute, formula), Line("restarts", restarts, interrupted), *other_lines))
        kg, over_time = float(priced.kg[row]), None
        if followed is not None:
            share = followed.share
            always = (Line("compute", compute / share), Line("restarts", restarts / share, interrupted), *other_lines)
            over_time = OverTime(followed.fewest, followed.hours, Cost.of(always), kg / share, followed.always_hours / count)
        spread = self._spread(row, described, count)
        by_hour = float(priced.compute_usd[row] + priced.restart_usd[row])
        rest = cost.usd - by_hour
        purchase, copies = PURCHASES[priced.purchase[row]], described.replicas or 1
        choice = Choice(
            provider=machine.provider,
            machine=machine.name,
            region=region.name,
            country=region.country,
            chip=shape.part,
            family=self.fleet.families[self.fleet.shape_of[priced.machine[row]]],
            chips=shape.chips,
            machines=count,
            purchase=str(purchase),
            precision=described.precision,
            split=described.split,
            seconds=float(priced.seconds[row]),
            low_s=float(priced.low_s[row]),
            high_s=float(priced.high_s[row]),
            p90_s=nine,
            cost=cost,
            usd_per_unit=cost.usd / max(self.case.units, 1e-9),
            unit=self.case.unit,
            kg=kg,
            rate=None if described.rate is None else described.rate * copies,
            replicas=described.replicas,
            memory_share=described.memory_share,
            provenance=described.provenance,
            price_of=iso_day(catalog.offers.as_of[priced.offer[row]]),
            interruptions=float(priced.interruptions[row]),
            interruptions_assumed=assumed,
            first_wait_s=float(priced.tails.first_wait_s[row]),
            later_wait_s=float(priced.tails.mean.waiting_s[row]) if purchase is Purchase.SPOT else 0.0,
            checkpoint_s=float(priced.checkpoint_s[row]),
            storage=storage.tier if storage else "",
            feeding=feeding_of(storage) if storage else None,
            latency=self._latency(described, trip),
            answer_s=self._answer_s(described, trip),
            rate_spread=described.rate_spread,
            watts=float(priced.power_w[row]),
            watts_stated=self.fleet.parts[shape.part].power_stated,
            quantum=described.quantum,
            layered_usd=None if self.layered is None else float(self.layered[row]),
            catalog_chip=shape.chip,
            hourly_usd=hourly,
            listed_usd=listed if abs(hourly / listed - 1) > 0.005 else None,
            price_days=int(priced.prices.days[priced.offer[row]]),
            doubt=MEANINGS[quality] if (quality := VERDICTS[catalog.offers.verdict[priced.offer[row]]]) in DOUBTFUL else "",
            doubt_share=float(priced.prices.doubt[priced.offer[row]]),
            by_s=surely,
            late_share=self._late(row),
            request_chance=described.request_chance,
            load_chance=described.load_chance,
            planned=None if described.planned is None else described.planned * copies,
            headroom=described.headroom,
            at_less=described.at_less,
            work_s=float(priced.tails.risk.work_s[row]),
            boot_s=priced.tails.boot_s,
            moving_s=moving_s,
            network_s=trip,
            users=reach.users if reach is not None else "",
            over_time=over_time,
            making_kg=float(priced.making_kg[row]),
            is_arm=runs_arm(machine, shape.part),
            needs_porting=bool(self.porting[row] >= PORTED),
            low_usd=rest + max(by_hour * spread.low, self._always_paid(row, described, followed)),
            high_usd=rest + by_hour * spread.high,
            sure_usd=cost.usd + float(self.extra[row]) if self.case.goals.stated else None,
        )
        own = own_costs(machine, choice, by_hour)
        return choice if own is None else replace(choice, own=own)
