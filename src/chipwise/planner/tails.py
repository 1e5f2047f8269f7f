"""How long jobs take by chance: rows that may be interrupted, what is expected of them, and one law of the time of every row.

The law. The run takes what it needs, with the probability that nothing is lost; else a time with the mean and the spread of
runs that lose something (`money.spot` has both in closed form), taken as a logarithmic normal law. Either is multiplied by the
error of the estimate of the speed, a logarithmic normal law too. Before it a spot machine is waited for: it is there at once,
or the wait is exponential. How often machines are taken away is known within an interval of eight cases in ten, in which the
logarithm of the rate is normal below and above its middle and ends where the interval does: runs are at five rates of that law
(`_RATES`), and checkpoints are no more frequent for them. Start-up and the way of the data are fixed. What is said to be kept
nine times in ten, what a deadline is held against and how likely it is missed are all of this law.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np

from chipwise.money import spot
from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Index
from chipwise.planner.limits import Mask

# From asking for a machine to the first step. Published: boot of a GPU machine 4 to 30 minutes, a container image that is not
# cached 4 to 8, framework and collectives under one.
BOOT_S = 600.0
NINE_IN_TEN = NormalDist().inv_cdf(0.9)
_NONE = 1e-9  # a probability below it
# Runs by how often machines are taken away: their share, and the place of the rate in its law, as a share of what is below.
_RATES = ((0.5, 0.25), (0.15, 0.575), (0.15, 0.725), (0.1, 0.85), (0.1, 0.9))
_NEVER_S = 1e12  # beyond any time that a run takes
_FAR = 5.0  # standard deviations beyond which nothing is left
_FADED = 12.0  # mean waits after which nothing is left of one
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_HALVINGS = 36


@dataclass(frozen=True)
class Mean:
    """Of every row: seconds until the work is done, how far they vary, and of them those that are not paid; interruptions;
    saving."""

    expected_s: Array
    spread_s: Array
    needed_s: Array  # where nothing is lost
    waiting_s: Array
    interruptions: Array
    interval_s: Array

    def only(self, kept: Mask) -> Mean:
        return Mean(**{one.name: getattr(self, one.name)[kept] for one in fields(self)})


@dataclass(frozen=True)
class Risk:
    """Rows that may be interrupted, in what they differ."""

    work_s: Array  # of all rows
    rows: Index  # that may be interrupted
    rate_per_s: Array  # of each of them
    taken_per_s: Array  # the part of it that is not broken but taken away
    machines: Array
    save_s: Array
    wait_s: Array
    every_s: float | None
    apart: Mask
    alone: Array  # machines**alone of those that work apart are lost independently

    def only(self, mask: Mask) -> Risk:
        selected = mask[self.rows]
        rows = (np.cumsum(mask) - 1)[self.rows[selected]]
        return Risk(
            work_s=self.work_s[mask],
            rows=rows,
            rate_per_s=self.rate_per_s[selected],
            taken_per_s=self.taken_per_s[selected],
            machines=self.machines[selected],
            save_s=self.save_s[selected],
            wait_s=self.wait_s[selected],
            every_s=self.every_s,
            apart=self.apart[selected],
            alone=self.alone[selected],
        )

    def with_rates(self, times: Array) -> Risk:
        """The same rows where machines are taken away so many times as often; `times` is of all rows."""
        return replace(self, rate_per_s=self.rate_per_s + self.taken_per_s * (times[self.rows] - 1.0))

    def mean(self, every_s: Array | None = None) -> Mean:
        """Rows that cannot be interrupted get the run without interruptions. With `every_s`, by row, that is how often they
        save."""
        none = np.zeros_like(self.work_s)
        columns = {one.name: none.copy() for one in fields(Mean)}
        columns["expected_s"], columns["needed_s"] = self.work_s.copy(), self.work_s.copy()
        for together in (True, False):
            places = np.flatnonzero(self.apart != together)
            if not len(places):
                continue
            save = self.save_s[places]
            run = spot.run(
                self.work_s[self.rows[places]],
                self.rate_per_s[places],
                self.machines[places],
                save,
                BOOT_S + save,
                self.every_s if every_s is None else every_s[self.rows[places]],
                wait_s=self.wait_s[places],
                together=together,
                alone=self.alone[places],
            )
            for name, values in columns.items():
                values[self.rows[places]] = getattr(run, name)
        return Mean(**columns)

    def spared(self, needed_s: Array) -> Array:
        """By row: the probability that nothing is lost."""
        chance = np.ones_like(self.work_s)
        counted = np.where(self.apart, self.machines**self.alone, self.machines)
        chance[self.rows] = np.exp(-self.rate_per_s * counted * needed_s[self.rows])
        return chance


@dataclass(frozen=True)
class Tails:
    """The law of the seconds from asking for machines to the end, by row."""

    risk: Risk
    mean: Mean
    stretch: Array  # by which the estimate may be too short, one time in ten
    boot_s: float
    moved: Array  # seconds that data need to come
    absent: Array  # probability that there is no machine at first
    absent_s: Array  # that it is waited for then, on average
    seldom: Array  # times as often that it is taken away, one time in ten at most; 1: nobody takes it away
    often: Array  # one time in ten at least

    def only(self, mask: Mask) -> Tails:
        return Tails(
            risk=self.risk.only(mask),
            mean=self.mean.only(mask),
            stretch=self.stretch[mask],
            boot_s=self.boot_s,
            moved=self.moved[mask],
            absent=self.absent[mask],
            absent_s=self.absent_s[mask],
            seldom=self.seldom[mask],
            often=self.often[mask],
        )

    @cached_property
    def first_wait_s(self) -> Array:
        """Until the first machines are there, on average."""
        return self.absent * self.absent_s

    @cached_property
    def _parts(self) -> tuple[Array, Array, Array]:
        """Share, middle and width of logarithmic normal laws, by row: of runs that lose nothing, and of those that do where
        machines are taken away as often as in the middle of what is known, and more seldom and more often."""
        mean, speed = self.mean, np.log(np.maximum(self.stretch, 1.0)) / NINE_IN_TEN
        needed = np.maximum(mean.needed_s, _NONE)
        struck, middle, width = _struck(self.risk, mean, speed)
        unsure = (self.seldom < 1.0) | (self.often > 1.0)
        shares, middles, widths = [np.where(unsure, 0.0, struck)], [middle], [width]
        rows, risk = np.flatnonzero(unsure), self.risk.only(unsure)
        for part, below in _RATES if len(rows) else ():
            place = NormalDist().inv_cdf(below) / NINE_IN_TEN
            changed = risk.with_rates((self.seldom if place < 0 else self.often)[rows] ** abs(place))
            share, later, wider = np.zeros_like(struck), middle.copy(), width.copy()
            share[rows], later[rows], wider[rows] = _struck(changed, changed.mean(mean.interval_s[rows]), speed[rows])
            shares, middles, widths = [*shares, part * share], [*middles, later], [*widths, wider]
        spared = 1.0 - np.sum(shares, axis=0)
        return np.array([spared, *shares]), np.array([needed, *middles]), np.array([speed, *widths])

    def _law(self, rows: Index) -> _Law:
        share, middle, width = (part[:, rows] for part in self._parts)
        part, owner = np.nonzero(share > 0)
        return _Law(
            row=owner,
            share=share[part, owner],
            middle=middle[part, owner],
            width=width[part, owner],
            boot_s=self.boot_s,
            moved=self.moved[rows],
            absent=self.absent[rows],
            absent_s=self.absent_s[rows],
        )

    def _certain(self, rows: Index) -> Mask:
        share, _, width = self._parts
        sure = (share[0, rows] >= 1.0) & (width[0, rows] <= 0.0)
        return np.asarray(sure & ((self.absent[rows] <= _NONE) | (self.absent_s[rows] <= 0)), dtype=bool)

    def late(self, rows: Index, limit_s: float | Array) -> Array:
        """The probability that it takes longer."""
        return self._law(rows).late(limit_s)

    def quantiles(self, rows: Index, *shares: float) -> Array:
        """Seconds within which so large a share of runs ends: shares x rows."""
        certain = self._certain(rows)
        if certain.any():  # where nothing is left to chance every share ends at once
            ends = np.tile(self.boot_s + self.moved[rows] + self._parts[1][0, rows], (len(shares), 1))
            ends[:, ~certain] = self.quantiles(rows[~certain], *shares) if not certain.all() else 0.0
            return ends
        law, rest = self._law(np.tile(rows, len(shares))), np.repeat(1.0 - np.array(shares), len(rows))
        deviations = np.repeat([NormalDist().inv_cdf(1.0 - (1.0 - share) / 2) for share in shares], len(rows))
        highest = np.zeros(len(rest))
        np.maximum.at(highest, law.row, law.middle * np.exp(law.width * deviations[law.row]))
        wait = law.absent_s * np.log(np.maximum(2 * law.absent / rest, 1.0))
        low = law.boot_s + law.moved
        high = low + highest + wait
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            short = law.late(middle) > rest
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        by_share: Array = high.reshape(len(shares), len(rows))
        return by_share


def _struck(risk: Risk, mean: Mean, speed: Array) -> tuple[Array, Array, Array]:
    """Of runs that lose something, by row: their share, and middle and width of the logarithmic normal law of their time."""
    spared = risk.spared(mean.needed_s)
    struck = 1.0 - spared
    rare = struck < _NONE
    share = np.where(rare, 1.0, struck)
    needed, expected = np.maximum(mean.needed_s, _NONE), np.minimum(mean.expected_s, _NEVER_S)
    unlucky = np.where(rare, needed, np.maximum((expected - spared * needed) / share, needed))
    square = (np.minimum(mean.spread_s, _NEVER_S) ** 2 + expected**2 - spared * needed**2) / share
    varied = np.log1p(np.where(rare, 0.0, np.maximum(square / unlucky**2 - 1.0, 0.0)))
    return np.where(rare, 0.0, struck), unlucky * np.exp(-varied / 2), np.sqrt(varied + speed**2)


@dataclass(frozen=True, slots=True)
class _Law:
    """Of some rows; first what is of every law of a row."""

    row: Index  # that it is of
    share: Array
    middle: Array
    width: Array
    boot_s: float
    moved: Array
    absent: Array
    absent_s: Array

    def late(self, limit_s: float | Array) -> Array:
        left = limit_s - self.boot_s - self.moved
        width = np.maximum(self.width, _NONE)
        reached = np.clip(np.log(np.maximum(left, _NONE)[self.row] / self.middle) / width, -_FAR, _FAR)
        late = 1.0 - _below(reached)
        waiting = ((self.absent > _NONE) & (self.absent_s > 0))[self.row] & (reached > -_FAR)
        if waiting.any():
            rows = self.row[waiting]
            by_wait = _late_by_wait(left[rows], self.absent_s[rows], self.middle[waiting], width[waiting], reached[waiting])
            late[waiting] += self.absent[rows] * by_wait
        return np.where(left > 0, np.bincount(self.row, self.share * late, minlength=len(left)), 1.0)


def _late_by_wait(left: Array, wait_s: Array, middle: Array, width: Array, high: Array) -> Array:
    """The probability that a run which would end in time is late by its wait, summed over what it takes without one."""
    with_wait = np.maximum(left - _FADED * wait_s, 0.0)  # of runs that end before this none is late by its wait
    low = np.log(np.maximum(with_wait, _NONE) / middle) / width
    low = np.minimum(np.maximum(low, -_FAR), high)
    step = (high - low)[:, None] / 2
    deviations = low[:, None] + step * (_NODES + 1.0)
    spare = np.maximum(left[:, None] - middle[:, None] * np.exp(width[:, None] * deviations), 0.0)
    density = np.exp(-(deviations**2) / 2 - spare / wait_s[:, None]) / np.sqrt(2 * np.pi)
    late: Array = (density * step) @ _WEIGHTS
    return late


def _below(deviations: Array) -> Array:
    """The normal distribution function: Abramowitz and Stegun 26.2.17, to 7.5e-8."""
    size = np.abs(deviations)
    t = 1.0 / (1.0 + 0.2316419 * size)
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    above = np.exp(-(size**2) / 2) / np.sqrt(2 * np.pi) * series
    below: Array = np.where(deviations > 0, 1.0 - above, above)
    return below
