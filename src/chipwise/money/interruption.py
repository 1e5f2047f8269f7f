"""How often a spot machine is taken away, in events per hour that it runs.

The table `interruptions` holds three kinds of evidence. They measure different things, so an answer is drawn from one
kind only, in this order, and its basis says which:

- `advisor`: bands that AWS publishes (measure monthly_interruption_range), the share p of a type's instances that were
  interrupted in the trailing month. An instance that would have lived T hours is lost with p = 1 - exp(-rate T), so
  rate = -ln(1 - p) / T. Nobody publishes T. Two ends are taken as given: all of them wanted the whole month (730 h, the
  lowest rate), or 6 h each (the highest); the middle is their geometric mean, 66 h, at the middle of the band. The short
  end is ours: with it the open band "over 20%" reaches up to 0.5/h, about what the followed V100 and T4 instances of
  2023 lost (0.06 to 0.74/h) where the advisor prints that band. First, because it is recent and knows types and regions.
- `followed`: traces of real instances, losses / running hours (measure loss_rate; or 1 / mean_uptime where only that is
  given). Traces of one zone and chip some months apart differ by 4x, so low and high are half and twice the value.
- `probe`: traces that ask again and again whether one could be had. A running instance may outlive a refused request,
  so they tend to overstate. "Any of 16" and "net falls" rows miss quick replacements, so they understate. Last.

Not used as rates: availability shares, medians (of ended episodes only), counts, and loss rates by age. The last say that
the first hour is the worst (2 to 20 times the rate after six hours); one constant rate is all that `spot` assumes.

The nearest evidence wins: the machine in the region, the machine in other regions, its chip in the region, its chip in
other regions, the provider. On each level the rate is the median, low and high are the 10th and 90th percentile of the rows'
own low and high. A zone counts as its region. Of a provider without any row nothing is known, nor of TPUs, which come in slices
that are lost whole: the highest of the known providers' rates for machines of as many chips is assumed, the longest of their
waits, and the answer says that it is assumed.

Waits. After a loss (`wait_hours`): the mean length of an outage (measure mean_wait_for_capacity). Before the first machine
(`first_wait`): what a request at a random moment waits (mean_wait_of_request), which is longer than a mean outage where
outages differ, since a long one is met more often. It is there at once in a share of the time (availability_share); else the
wait is taken as exponential, which has the published 90th percentiles within a tenth (8 x V100: 5.3 h for 5.7 and 5.8). Traces
of one chip and of eight are known; between them it is interpolated by the logarithm of the number. What several machines at
once are waited for is in `gathering`, and so is how much more often than eight chips a larger machine is lost and absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log, sqrt
from typing import NamedTuple

import numpy as np

from chipwise.catalog.machine import Machine
from chipwise.catalog.price_tables import Interruption
from chipwise.errors import InvalidSettings, Problem
from chipwise.money.gathering import all_at_once, growth, independence

MONTH_HOURS = 730.0
SHORT_LIFE_HOURS = 6.0
MIDDLE_LIFE_HOURS = sqrt(MONTH_HOURS * SHORT_LIFE_HOURS)
MOST_INTERRUPTED = 0.95  # the open band ends at 1, whose rate is infinite
TRACE_SPREAD = 2.0
UNTRACED = "TPU"  # chips of which no row says anything: a slice is given and taken back whole, and GPUs say little of it
LARGEST_TRACED = 8.0  # chips of a machine of which traces are known

_KINDS = ("advisor", "followed", "probe")
_KIND_TITLES = {
    "advisor": "the advisor's monthly band",
    "followed": "losses of followed instances",
    "probe": "availability probes (may overstate)",
}
_SIZED = re.compile(r"(?P<chip>.+?) x(?P<chips>\d+)(?: \(.*\))?")
_WITH_CHIP = re.compile(r".+\((?P<chip>[^()]+)\)")
_ZONE = re.compile(r"(.+\d)(?:[a-f]|-[a-f])")
_PROCESSORS = frozenset({"INTEL", "C3-88"})  # traces of CPU machines say little of accelerators: they are in no pool


@dataclass(frozen=True, slots=True)
class Interruptions:
    per_hour: float  # events per running hour of one machine
    low: float
    high: float
    basis: str  # which evidence, of what, of when
    assumed: bool = False  # nothing is known of the provider

    @property
    def seldom(self) -> float:
        """Times the rate that it is one time in ten at most: bands that begin at nothing say no more below than above."""
        return min(max(self.low / self.per_hour, 1.0 / self.often), 1.0) if self.per_hour else 1.0

    @property
    def often(self) -> float:
        """Times the rate that it is one time in ten at least."""
        return max(self.high / self.per_hour, 1.0) if self.per_hour else 1.0


class FirstWait(NamedTuple):
    """Until a spot machine is had, of a request at a random moment."""

    absent: float  # share of the time in which there is none
    hours: float  # waited on average if there is none

    @property
    def mean(self) -> float:
        return self.absent * self.hours


class _Evidence(NamedTuple):
    kind: str
    per_hour: float
    low: float
    high: float
    chips: float | None
    as_of: str


@lru_cache(maxsize=64)  # there are five bands
def rate_of_share(share: float, life_hours: float) -> float:
    """Events per hour if `share` of the machines that wanted to live for `life_hours` were interrupted."""
    return log(1 / (1 - min(share, MOST_INTERRUPTED))) / life_hours


def region_of(zone: str) -> str:
    """us-east-1a -> us-east-1, us-east1-b -> us-east1; a region stays what it is."""
    match = _ZONE.fullmatch(zone)
    return match[1] if match else zone


def _converted(row: Interruption, chips: float | None) -> _Evidence | None:
    if row.measure == "monthly_interruption_range" and row.low is not None and row.high is not None:
        return _Evidence(
            kind="advisor",
            per_hour=rate_of_share((row.low + row.high) / 2, MIDDLE_LIFE_HOURS),
            low=rate_of_share(row.low, MONTH_HOURS),
            high=rate_of_share(row.high, SHORT_LIFE_HOURS),
            chips=chips,
            as_of=row.fact.as_of,
        )
    if row.value is None:
        return None
    if row.measure == "loss_rate":
        rate = row.value
    elif row.measure == "mean_uptime" and row.value > 0:
        rate = 1 / row.value
    else:
        return None
    return _Evidence(
        kind=row.evidence, per_hour=rate, low=rate / TRACE_SPREAD, high=rate * TRACE_SPREAD, chips=chips, as_of=row.fact.as_of
    )


def _chip_names(chip: str | None) -> Iterator[str]:
    """H100-SXM, then H100: traces name a chip without its form."""
    while chip:
        yield chip
        chip = chip.rpartition("-")[0]


class Rates:
    """The table, converted and indexed once; answers are looked up. `machines` tell which chip a type named by the
    advisor carries: without them its bands do not count as evidence on that chip."""

    __slots__ = ("_again", "_answers", "_first", "_first_answers", "_pools", "_summaries", "_waits", "growth", "independence")

    def __init__(self, rows: Iterable[Interruption], machines: Iterable[Machine] = ()) -> None:
        carries = {(machine.provider, machine.name): (machine.chip, machine.chips) for machine in machines}
        self._pools: dict[tuple[str, ...], list[_Evidence]] = {}
        self._waits: dict[tuple[str, ...], list[float]] = {}
        self._summaries: dict[tuple[tuple[str, ...], float | None], Interruptions] = {}
        self._answers: dict[tuple[str, str, str, str | None, float | None], Interruptions] = {}
        self._first: dict[tuple[str, ...], dict[float, list[FirstWait]]] = {}
        self._first_answers: dict[tuple[str, str, str | None, float | None], FirstWait] = {}
        self._again: dict[tuple[str, str, str | None], float | None] = {}
        rows = tuple(rows)
        self.independence = independence(rows)  # of machines that are asked for together, by their chips
        self.growth = growth(rows)  # of losses with the size of a machine
        present = {_trace(row): row.value for row in rows if row.measure == "availability_share"}
        for row in _latest(rows):
            chip, chips = _chip_of(row, carries)
            if row.measure == "mean_wait_of_request":
                if row.value is not None and (share := present.get(_trace(row))) is not None:
                    wait = FirstWait(1 - share, row.value / max(1 - share, 1e-9))
                    for key in _keys(row, chip):
                        self._first.setdefault(key, {}).setdefault(chips or 1.0, []).append(wait)
                continue
            if row.measure == "mean_wait_for_capacity" and row.value is not None:
                for key in _keys(row, chip):
                    self._waits.setdefault(key, []).append(row.value)
            elif (evidence := _converted(row, chips)) is not None:
                for key in _keys(row, chip):
                    self._pools.setdefault(key, []).append(evidence)
        if ("all",) not in self._pools:
            raise InvalidSettings(
                Problem("interruptions", "no row states how often a machine is lost", allowed="a monthly band or a loss_rate")
            )

    def of(
        self, provider: str, region: str, machine: str, chip: str | None = None, chips: float | None = None
    ) -> Interruptions:
        place = (provider, region, machine, chip, chips)
        known = self._answers.get(place)
        if known is None:
            levels = _levels(provider, region_of(region), machine, chip)
            level = next((key for key in levels if key in self._pools), None)
            # One summary serves all that come to the same level, but sizes of a chip's machines are told apart.
            sized = level is None or level[0].startswith("chip") or (level[0] == "provider" and _hosts(chips) > 1)
            key = (level or ("assumed",), chips if sized else None)
            if key not in self._summaries:
                self._summaries[key] = (
                    self._assumed(chips) if level is None else _summary(level, self._pools[level], key[1], self.growth)
                )
            known = self._answers[place] = self._summaries[key]
        return known

    def _assumed(self, chips: float | None) -> Interruptions:
        """Of a provider of whom nothing is known: the highest of those of whom something is."""
        levels = [level for level in self._pools if level[0] == "provider"]
        worst = max(
            (_summary(level, self._pools[level], chips, self.growth, by_size=True) for level in levels),
            key=lambda one: one.per_hour,
        )
        return replace(worst, basis=f"assumed, as the highest of the known providers: {worst.basis}", assumed=True)

    def wait_hours(self, provider: str, region: str, chip: str | None = None) -> float | None:
        """How long until one could be had again, once there was none: the median of the traces' means, of a provider without
        any the longest of the others'; None without one.

        Of somebody who insists on one zone. Who takes any zone or size waits less, and most losses find another at once.
        """
        place = (provider, region, chip)
        if place not in self._again:
            self._again[place] = self._wait_hours(*place)
        return self._again[place]

    def _wait_hours(self, provider: str, region: str, chip: str | None) -> float | None:
        for key in _levels(provider, region_of(region), "", chip):
            if key in self._waits:
                return _middle(sorted(self._waits[key]))
        return max((_middle(sorted(waits)) for key, waits in self._waits.items() if key[0] == "provider"), default=None)

    def first_wait(self, provider: str, region: str, chip: str | None = None, chips: float | None = None) -> FirstWait:
        """The median of the traces of the chip in the region, at the provider, or of all chips, in machines of that size."""
        place = (provider, region, chip, chips)
        known = self._first_answers.get(place)
        if known is None:
            known = self._first_wait(*place)
            if (hosts := _hosts(chips)) > 1:
                columns = all_at_once(*(np.array([one]) for one in (known.absent, known.hours, hosts**self.growth)))
                known = FirstWait(*(float(column[0]) for column in columns))
            self._first_answers[place] = known
        return known

    def _first_wait(self, provider: str, region: str, chip: str | None, chips: float | None) -> FirstWait:
        size = min(max(chips or 1.0, 1.0), LARGEST_TRACED)
        names = tuple(_chip_names(chip))
        levels: list[tuple[str, ...]] = [("chip in region", provider, region_of(region), name) for name in names]
        levels += [("chip", provider, name) for name in names]
        for level in levels:
            if size in (pool := self._first.get(level, {})):
                return _usual(pool[size])
        pool = self._first.get(("all",), {})
        below = max((one for one in pool if one <= size), default=None)
        above = min((one for one in pool if one >= size), default=None)
        if below is None or above is None:
            return _usual(pool[min(pool, key=lambda one: abs(one - size))]) if pool else FirstWait(0.0, 0.0)
        if below == above:
            return _usual(pool[below])
        share, low, high = log(size / below) / log(above / below), _usual(pool[below]), _usual(pool[above])
        absent = low.absent + share * (high.absent - low.absent)
        return FirstWait(absent, low.mean * (high.mean / low.mean) ** share / absent)


def _trace(row: Interruption) -> tuple[str, str, str, str]:
    return row.provider, row.region_or_zone, row.machine_or_chip, row.period


def _usual(waits: list[FirstWait]) -> FirstWait:
    absent, mean = _middle(sorted(one.absent for one in waits)), _middle(sorted(one.mean for one in waits))
    return FirstWait(absent, mean / max(absent, 1e-9))


def _latest(rows: Iterable[Interruption]) -> Iterator[Interruption]:
    """What says something of rates or waits, each thing once: the last reading of a band, and no trace twice."""
    bands: dict[tuple[str, ...], Interruption] = {}
    uptimes: list[Interruption] = []
    stated = set()
    for row in rows:
        if row.measure == "monthly_interruption_range":
            key = (row.provider, row.region_or_zone, row.machine_or_chip)
            if key not in bands or bands[key].fact.as_of < row.fact.as_of:
                bands[key] = row
        elif row.measure == "loss_rate":
            stated.add(_trace(row))
            yield row
        elif row.measure == "mean_uptime":
            uptimes.append(row)
        elif row.measure in ("mean_wait_for_capacity", "mean_wait_of_request"):
            yield row
    for row in uptimes:
        if _trace(row) not in stated:
            yield row
    yield from bands.values()


def _chip_of(
    row: Interruption, carries: dict[tuple[str, str], tuple[str | None, float | None]]
) -> tuple[str | None, float | None]:
    """What a label names: "V100 x8", "g4dn (T4)", or a machine type."""
    label = row.machine_or_chip
    if (row.provider, label) in carries:
        return carries[row.provider, label]
    if row.measure == "monthly_interruption_range":
        return None, None
    if match := _SIZED.fullmatch(label):
        return match["chip"], float(match["chips"])
    if match := _WITH_CHIP.fullmatch(label):
        return match["chip"], None
    return label, None


def _keys(row: Interruption, chip: str | None) -> Iterator[tuple[str, ...]]:
    """The pools that a row belongs to."""
    provider, region = row.provider, region_of(row.region_or_zone)
    if row.measure == "monthly_interruption_range":
        yield ("machine in region", provider, region, row.machine_or_chip)
        yield ("machine", provider, row.machine_or_chip)
    if chip is not None:
        yield ("chip in region", provider, region, chip)
        yield ("chip", provider, chip)
    if chip not in _PROCESSORS:
        yield ("provider", provider)
        yield ("all",)


def _levels(provider: str, region: str, machine: str, chip: str | None) -> Iterator[tuple[str, ...]]:
    """From the nearest evidence to the farthest."""
    yield ("machine in region", provider, region, machine)
    yield ("machine", provider, machine)
    names = tuple(_chip_names(chip))
    for name in names:
        yield ("chip in region", provider, region, name)
    for name in names:
        yield ("chip", provider, name)
    if not any(name.startswith(UNTRACED) for name in names):
        yield ("provider", provider)


def _hosts(chips: float | None) -> float:
    """As so many of the largest machines that were traced a machine counts."""
    return max((chips or 1.0) / LARGEST_TRACED, 1.0)


def _summary(
    level: tuple[str, ...], pool: list[_Evidence], chips: float | None, growing: float, by_size: bool = False
) -> Interruptions:
    """Of machines larger than all that were seen: as much more often as losses grow with the size."""
    kind = next(kind for kind in _KINDS if any(one.kind == kind for one in pool))
    used = [one for one in pool if one.kind == kind]
    if by_size or level[0].startswith("chip"):
        for size in (chips, min(chips or 1.0, LARGEST_TRACED)):  # losing eight at once is another matter than one
            if alike := [one for one in used if one.chips == size]:
                used = alike
                break
    dates = sorted({one.as_of for one in used})
    period = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    rows = "" if len(used) == 1 else f", median of {len(used)} rows"
    basis = f"{_KIND_TITLES[kind]} of {_place(level)}{rows} ({period})"
    largest = max(LARGEST_TRACED, *(one.chips or 1.0 for one in used))
    times = max((chips or 1.0) / largest, 1.0) ** growing
    if times > 1:
        basis += f", {times:.2g} times as often for the size of {chips:g} chips"
    return Interruptions(
        times * _middle(sorted(one.per_hour for one in used)),
        times * _tenth(sorted(one.low for one in used)),
        times * _tenth(sorted((one.high for one in used), reverse=True)),
        basis,
    )


def _place(level: tuple[str, ...]) -> str:
    match level:
        case ("machine in region" | "chip in region", _, region, name):
            return f"{name} in {region}"
        case ("machine" | "chip", _, name):
            return f"{name} in other regions"
        case _:
            return f"all of {level[-1]}"


def _middle(ordered: list[float]) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _tenth(ordered: list[float]) -> float:
    """The value a tenth of the way in; of ten or fewer the first."""
    return ordered[(len(ordered) - 1) // 10]
