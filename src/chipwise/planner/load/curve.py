"""Load over time: how many machines in each hour, and the cheapest layering of ways to pay for them.

A `LoadCurve` is a week: the mean rate of each step while the schedule is on, and the hours without any load. Within a step
arrivals come by chance, and where latencies are limited the rate that a machine answers counts it. Where they are not, arrivals
that vary more than by chance (burstiness c above 1, the coefficient of variation of the times between them) have c^2 times the
variance of counts, so the rate that machines are counted for is, of a step with the rate r,

    r + z sqrt((c^2 - 1) r / w)      z = 2.33: 99 of 100 windows stay below; w = 60 s, which queues can bridge

Machines follow the rate where an autoscaler can. A machine that is added takes a start-up time s until it answers, and is paid
for from its boot on: it is ordered s before the load is there, so that what is paid for at the time t is the most that is
needed from t to t + s. Where s is longer than a step, that is the most of several; a dip that is shorter than s is not worth
stopping for. After steps shorter than `SHORT_S` machines stop a step late. Bursts shorter than `REACT_S` cannot be followed:
machines for the peak stay on.

People at notebooks (`sessions`): each works in stretches of about an hour (assumed) and is idle in between, for a share 1 - b
of the time; stretches of idle time g are exponential, and a session that was idle for T is stopped, so it is up for the share
b + (1 - b) (1 - exp(-T / g)). Of n people the number of sessions up is binomial.

The load is carried by machines of one kind, or by owned ones as the base and rented ones above it, tried for every number of
owned ones. `money.layering` finds the cheapest layers exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, lgamma, log

import numpy as np
from numpy.typing import ArrayLike

from chipwise.money.layering import Layer, Layering, Load, Option, layer
from chipwise.planner.fleet import machines_for
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.load import AtLess, MachineHours
from chipwise.units import HOUR, MONTH, WEEK
from chipwise.workload.day import open_hours
from chipwise.workload.schedule import HOURS_PER_WEEK, Always, Bursts, BusinessHours, Cron, Market, MarketHours
from chipwise.workload.trace import WINDOW_S, Floats

Z = 2.33
REACT_S = 300.0
SHORT_S = 900.0
STRETCH_S = HOUR  # that somebody works at a notebook without a break: assumed
BEGINS = 10  # of a schedule that a recording is repeated for: it passes in between, and rarely a whole number of times
BURSTY = 1.5  # peak over mean from which a load is no longer continuous
MOST_OWNED = 64  # numbers of owned machines that are tried
WEEKS = MONTH / WEEK
_LOADS = 5  # from the lowest to the highest, between which what a replica is planned for is taken straight

Timetable = Always | BusinessHours | MarketHours | Cron | Bursts


@dataclass(frozen=True, slots=True, eq=False)
class LoadCurve:
    """Steps of a week while the schedule is on. `rate` is in `unit`: requests/s, callers, people."""

    rate: Floats
    hours: Floats
    off_hours: float = 0.0
    burstiness: float = 1.0
    followed: bool = True  # False: bursts come faster than machines
    short: bool = False  # steps that an autoscaler cannot follow one by one, in order of time
    unit: str = "requests/s"
    cycles: float = 0.0  # times that the steps come round in a week, in order of time; 0: their order is not known
    opens: tuple[int, ...] = ()  # steps before which the schedule is off, each for an equal part of the off hours

    @property
    def on_hours(self) -> float:
        return float(self.hours.sum())

    @property
    def mean(self) -> float:
        """While the schedule is on."""
        return float(self.rate @ self.hours / self.hours.sum())

    @property
    def busiest(self) -> float:
        """The highest mean of a step."""
        return float(self.rate.max())

    @property
    def planned(self) -> Floats:
        """Of each step the rate that machines are counted for."""
        extra = max(self.burstiness**2 - 1.0, 0.0)
        return np.asarray(self.rate + Z * np.sqrt(extra * self.rate / WINDOW_S), dtype=np.float64)

    @property
    def peak(self) -> float:
        return float(self.planned.max())

    @property
    def flat(self) -> bool:
        """Machines never change while the schedule is on."""
        return not self.followed or float(self.rate.min()) == float(self.rate.max())


def steady(rate: float, schedule: Timetable, burstiness: float = 1.0, unit: str = "requests/s") -> LoadCurve:
    """A mean rate while the schedule is on; with bursts, `rate` is the mean over them and the time between."""
    on_hours = _on_hours(schedule)
    if not isinstance(schedule, Bursts):
        starts = _starts(schedule)
        return LoadCurve(
            rate=np.array([rate]),
            hours=np.array([on_hours]),
            off_hours=HOURS_PER_WEEK - on_hours,
            burstiness=burstiness,
            unit=unit,
            cycles=starts or 1.0,
            opens=(0,) if starts else (),
        )
    share = schedule.lasts / schedule.every
    usual = rate / (1.0 + (schedule.times - 1.0) * share)
    return LoadCurve(
        rate=np.array([usual, usual * schedule.times]),
        hours=np.array([(1.0 - share) * on_hours, share * on_hours]),
        off_hours=HOURS_PER_WEEK - on_hours,
        burstiness=burstiness,
        followed=min(schedule.lasts, schedule.every - schedule.lasts) >= REACT_S,
        unit=unit,
        cycles=WEEK / schedule.every,
    )


def recorded(rates: ArrayLike, step_s: float, schedule: Timetable, burstiness: float) -> LoadCurve:
    """Recorded rates of equal steps stand for all the time that the schedule is on, one after the other."""
    rate = np.asarray(rates, dtype=np.float64)
    on_hours, starts = _on_hours(schedule), _starts(schedule)
    if starts:  # repeated until whole numbers of begins are near enough
        rate = np.tile(rate, max(ceil(BEGINS * on_hours * HOUR / (starts * len(rate) * step_s)), 1))
    cycles = on_hours * HOUR / (len(rate) * step_s)
    begins = (
        np.linspace(0, len(rate), max(round(starts / cycles), 1), endpoint=False).astype(int) if starts else np.array([], int)
    )
    return LoadCurve(
        rate=rate,
        hours=np.full(len(rate), on_hours / len(rate)),
        off_hours=HOURS_PER_WEEK - on_hours,
        burstiness=burstiness,
        short=step_s < SHORT_S,
        cycles=cycles,
        opens=tuple(np.unique(begins).tolist()),
    )


def by_the_hour(rates: Floats, open_share: Floats, burstiness: float) -> LoadCurve:
    """Rates of the hours of a week, and the part of each hour in which the schedule is on."""
    up = np.flatnonzero(open_share > 0)
    opens = np.flatnonzero(np.roll(open_share, 1)[up] <= 0)
    return LoadCurve(
        rate=rates[up],
        hours=open_share[up],
        off_hours=max(HOURS_PER_WEEK - float(open_share.sum()), 0.0),
        burstiness=burstiness,
        cycles=1.0,
        opens=tuple(opens.tolist()),
    )


def sessions(people: int, busy: float, idle_after_s: float | None, schedule: Timetable) -> LoadCurve:
    """Sessions that are up at once; without a time after which idle ones stop, all of them."""
    on_hours = _on_hours(schedule)
    up = up_share(busy, idle_after_s)
    counts = np.arange(people + 1, dtype=np.float64)
    if up >= 1:
        return LoadCurve(np.array([float(people)]), np.array([on_hours]), HOURS_PER_WEEK - on_hours, unit="people")
    total = lgamma(people + 1)
    chance = np.array(
        [
            exp(total - lgamma(k + 1) - lgamma(people - k + 1) + k * log(up) + (people - k) * log(1 - up))
            for k in range(people + 1)
        ]
    )
    likely = (chance > 1e-9) | (counts == people)  # nobody pays for a hundred-thousandth of a second; but all may come
    hours = np.maximum(chance[likely], 1e-12)
    return LoadCurve(counts[likely], hours / hours.sum() * on_hours, HOURS_PER_WEEK - on_hours, unit="people")


def up_share(busy: float, idle_after_s: float | None) -> float:
    """Of the time in which somebody might work, the share that the session is up."""
    if idle_after_s is None or busy >= 1:
        return 1.0
    gap = STRETCH_S * (1.0 - busy) / busy
    return float(busy + (1.0 - busy) * (1.0 - exp(-idle_after_s / gap)))


def _on_hours(schedule: Timetable) -> float:
    return float(schedule.hours_per_week or HOURS_PER_WEEK)


def _starts(schedule: Timetable) -> float:
    """How often in a week it begins after a time off."""
    if _on_hours(schedule) >= HOURS_PER_WEEK - 1e-9:
        return 0.0
    match schedule:
        case BusinessHours():
            is_open = open_hours(schedule) > 0
            return float(max(int(np.count_nonzero(is_open & ~np.roll(is_open, 1))), 1))
        case MarketHours():
            return 1.0 if schedule.market is Market.FX else 5.0
        case Cron():
            return schedule.starts_per_week
    return 0.0


@dataclass(frozen=True, slots=True)
class Answering:
    """What one machine does: replicas of `width` chips, each answering `per_replica` of the curve's unit within the goals."""

    per_replica: float
    chips: int
    width: int
    least_replicas: int = 1
    at_less: AtLess = ()  # what a replica answers at lower loads of all of them

    def replicas(self, rates: Floats) -> Floats:
        capacity = np.full_like(rates, self.per_replica)
        if self.at_less:
            loads, counts = zip(*self.at_less, strict=True)
            capacity = np.minimum(np.interp(rates, loads, counts), self.per_replica)
        return np.maximum(np.ceil(rates / np.maximum(capacity, 1e-12) - 1e-9), float(self.least_replicas))

    def machines(self, rates: Floats) -> Floats:
        return machines_for(np.array(float(self.chips)), np.array(float(self.width)), self.replicas(rates))

    @property
    def per_machine(self) -> float:
        inside = max(self.chips // self.width, 1)
        return self.per_replica * inside / max(ceil(self.width / self.chips), 1)


def lower_loads(curve: LoadCurve) -> tuple[float, ...]:
    """Some loads between the lowest and the highest, at which it is looked at what a replica is planned for."""
    lowest = float(curve.rate[curve.rate > 0].min(initial=curve.peak))
    return () if curve.flat or lowest >= curve.peak else tuple(np.geomspace(lowest, curve.peak, _LOADS)[:-1].tolist())


def machines_of(curve: LoadCurve, answering: Answering) -> Floats:
    """Machines that are needed in each step, under an autoscaler."""
    return _up(curve, answering.machines(curve.planned))


def _up(curve: LoadCurve, needed: Floats) -> Floats:
    if not curve.followed:
        return np.full(len(needed), needed.max())
    if not curve.short or len(needed) < 2:
        return needed
    return np.asarray(np.maximum(needed, np.concatenate([needed[:1], needed[:-1]])), dtype=np.float64)


def paid_of(curve: LoadCurve, needed: Floats, start_s: float) -> tuple[Floats, Floats]:
    """Machines that are paid for, and for how many hours of a week: each from `start_s` before it is needed."""
    if curve.cycles <= 0:
        off = [curve.off_hours] if curve.off_hours > 1e-9 else []
        return np.append(needed, [0.0] * len(off)), np.append(curve.hours, off)
    machines, lengths = needed, curve.hours / curve.cycles
    if curve.opens and curve.off_hours > 1e-9:
        machines = np.insert(machines, curve.opens, 0.0)
        lengths = np.insert(lengths, curve.opens, curve.off_hours / curve.cycles / len(curve.opens))
    return _ahead(machines, lengths, start_s / HOUR, curve.cycles)


def _ahead(machines: Floats, lengths: Floats, ahead: float, cycles: float) -> tuple[Floats, Floats]:
    """Of steps that come round: the most from each moment until `ahead` later, cut wherever that may change."""
    if ahead <= 0 or float(machines.min()) == float(machines.max()):
        return machines, lengths * cycles
    starts, period = np.cumsum(lengths) - lengths, float(lengths.sum())
    if ahead >= period:
        return np.array([machines.max()]), np.array([period * cycles])
    cuts = np.unique(np.concatenate([starts, (starts - ahead) % period]))
    widths = np.diff(cuts, append=period)
    cuts, widths = cuts[widths > 0], widths[widths > 0]
    moments = cuts + widths / 2
    step = np.searchsorted(starts, moments) - 1
    highest, inside = machines[step], np.ones(len(step), dtype=bool)
    while inside.any():
        step = step + 1
        inside = starts[step % len(starts)] + period * (step // len(starts)) < moments + ahead
        highest = np.where(inside, np.maximum(highest, machines[step % len(starts)]), highest)
    return highest, widths * cycles


def load_of(curve: LoadCurve, machines: Floats, start_s: float = 0.0) -> Load:
    """A month of it; hours without load count, for a commitment is paid in them too."""
    paid, hours = paid_of(curve, machines, start_s)
    return Load.of_pairs(zip(paid.tolist(), (hours * WEEKS).tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class MachineKind:
    """Machines of one kind in one place, and what can be paid for them."""

    provider: str
    machine: str
    region: str
    chip: str
    answering: Answering
    options: tuple[Option, ...]
    start_s: float = 0.0  # from ordering one until it answers

    def is_of(self, choice: Choice) -> bool:
        """Whether a choice is of these machines, whatever country they are ordered in."""
        return (self.provider, self.machine, self.region) == (choice.provider, choice.machine, choice.region)


@dataclass(frozen=True, slots=True)
class Base:
    """Machines that somebody owns: paid for every hour, whether they work or not."""

    title: str
    answering: Answering
    usd_per_hour: float
    owned: int | None = None  # how many there are; None: not stated


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """A curve on one kind of machine, with owned ones as the base where there are any."""

    kind: MachineKind
    load: Load  # of rented machines
    layering: Layering
    base: Layer | None = None
    other_usd: float = 0.0  # beside the machines: transfer, storage

    @property
    def usd(self) -> float:
        return self.layering.usd + (self.base.usd if self.base else 0.0) + self.other_usd

    @property
    def has_commitment(self) -> bool:
        """Whether something is promised or owned: a way to buy that the ranking of single purchase options cannot weigh."""
        return self.base is not None or any(layer.committed for layer in self.layering.layers)

    @property
    def layers(self) -> tuple[Layer, ...]:
        return ((self.base,) if self.base else ()) + self.layering.layers


def carry(curve: LoadCurve, kind: MachineKind, base: Base | None = None) -> Carried:
    """The cheapest way; `base` is used only where it makes it cheaper."""
    load = load_of(curve, machines_of(curve, kind.answering), kind.start_s)
    best = Carried(kind, load, layer(load, kind.options))
    if base is None:
        return best
    planned, month = curve.planned, MONTH / HOUR
    above_it = replace(kind.answering, least_replicas=1)
    inside = max(base.answering.chips // base.answering.width, 1)
    fewest = max(ceil(base.answering.least_replicas / inside), 1)
    largest = max(ceil(curve.peak / base.answering.per_machine - 1e-9), fewest)
    for count in range(fewest, min(largest, base.owned or MOST_OWNED, MOST_OWNED) + 1):
        capacity = count * base.answering.per_machine
        rest = np.maximum(planned - capacity, 0.0)
        needed = np.where(rest > 0, above_it.machines(rest), 0.0)
        above = load_of(curve, _up(curve, needed), kind.start_s)
        share = np.minimum(curve.rate / capacity, 1.0)
        used = float(share @ curve.hours) * WEEKS * count
        paid = count * month
        owned = Layer(
            name=f"owned: {base.title}",
            machines=count,
            hours_used=used,
            hours_paid=paid,
            usd=paid * base.usd_per_hour,
            owned=base.title,
        )
        if owned.usd >= best.usd:
            break
        carried = Carried(kind, above, layer(above, kind.options), owned)
        best = min(best, carried, key=lambda one: one.usd)
    return best


def pattern_of(curve: LoadCurve, schedule: Timetable) -> str:
    """What the load looks like, which the advice follows."""
    if curve.unit == "people":
        return "development"
    if isinstance(schedule, Cron):
        return "batch"
    if isinstance(schedule, BusinessHours | MarketHours) and curve.off_hours > 1e-9:
        return "business-hours"
    return "bursty" if curve.peak > BURSTY * curve.mean else "continuous"


def best_of(curve: LoadCurve, kinds: Sequence[MachineKind], bases: Sequence[Base] = ()) -> Carried:
    """The least cost of all; of equals the first."""
    carried = [carry(curve, kind, base) for kind in kinds for base in (bases or (None,))]
    return min(carried, key=lambda one: one.usd)


def hours_of(curve: LoadCurve, answering: Answering, start_s: float = 0.0) -> MachineHours:
    needed = machines_of(curve, answering)
    paid, hours = paid_of(curve, needed, start_s)
    peak, on_hours, autoscaled = float(needed.max()), curve.on_hours * WEEKS, float(paid @ hours) * WEEKS
    return MachineHours(
        static=peak * MONTH / HOUR,
        scheduled=peak * on_hours,
        autoscaled=autoscaled,
        starting=max(autoscaled - float(needed @ curve.hours) * WEEKS, 0.0),
    )
