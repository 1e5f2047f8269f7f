"""A job on machines that may be taken away: how long it takes, how often it is stopped, how often it should save.

Assumptions. Losses come at a constant rate per machine and hour (exponential times; traces show a worse first hour) and
independently (traces show several lost at once: then rate x machines is too high). A job on N machines together stops when
any of them is lost; with `together=False` each works through a common queue by itself. After a loss a new machine is
waited for (`wait_s` on average, exponentially: nothing runs, nothing is lost), booted and loaded (`restart_s`: it can be
lost meanwhile), and all work since the last finished checkpoint is done again. Saving (`save_s`) stops the work, and can be
interrupted. The first start is not counted, nor is a checkpoint at the very end: the result is.

With Lambda = rate x N, mean time M = 1/Lambda, C save, R restart, w wait, and stretches L_i between checkpoints (work and
saving: all but the last end in a C), as in Daly (2006), "A higher order estimate of the optimum checkpoint interval for
restart dumps", Future Generation Computer Systems 22, with w added:

    interruptions  F    = exp(Lambda R) sum(exp(Lambda L_i) - 1)
    expected       E[T] = (M + w) F
    lost           M sum(exp(Lambda L_i) - 1) - sum(L_i)      (on average a little under half a stretch for each loss)
    restarting     M (1 - exp(-Lambda R)) F                   waiting  w F

and expected = work + lost + saved + restarting + waiting.

The best interval. For n stretches the sum is least when all are equal (it is convex), so L = C + (W - C)/n and the last
stretch, which saves nothing, holds C more work. n (exp(Lambda L) - 1) is convex in n: the best n is beside the best real
number, (W - C)/tau with tau the root of (1 - Lambda tau) exp(Lambda (tau + C)) = 1. Young (1974) has tau = sqrt(2 C M), Daly's
higher-order form is `daly_interval_s`; three Newton steps from it give the root itself. Neither R nor w moves it.

How far it varies. A stretch takes a first try of L, then tries of R + L that each fail with 1 - exp(-Lambda (R + L)) after a
truncated exponential time and an exponential wait: mean and variance of that have a closed form, and those of stretches add up.
Where exp(Lambda (R + L)) passes 1e10 a run ends by luck only, and its time is exponential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chipwise.errors import InvalidSettings, Problem

Floats = NDArray[np.float64]

_HOPELESS = 23.0  # exponents beyond exp(23) = 1e10: see above
_SHORTEST_SAVE_S = 1e-6  # nothing is saved faster; below, counts of checkpoints outgrow what numbers can hold
_LARGEST = 700.0  # exp() of more is infinite


@dataclass(frozen=True, slots=True)
class SpotRun:
    """One array element per candidate; seconds of the whole run, so of each machine."""

    expected_s: Floats
    spread_s: Floats  # standard deviation
    needed_s: Floats  # work and saving, where nothing is lost
    interruptions: Floats  # of the run; with together=False of all machines
    lost_s: Floats  # work and saving that was done again
    saved_s: Floats  # writing the checkpoints that were kept
    restarting_s: Floats  # boot and load
    waiting_s: Floats  # for a new machine
    interval_s: Floats  # work between two checkpoints; all of the work where none is written
    checkpoints: Floats


class _Stretches(NamedTuple):
    """`number` equal stretches of `long_s`, and one last of `last_s`."""

    number: Floats
    long_s: Floats
    last_s: Floats


def daly_interval_s(save_s: ArrayLike, mean_time_s: ArrayLike) -> Floats:
    """Daly's higher-order form: sqrt(2CM) (1 + sqrt(C/2M)/3 + (C/2M)/9) - C where C < 2M, and M beyond."""
    save, mean = np.asarray(save_s, dtype=float), np.asarray(mean_time_s, dtype=float)
    half = save / (2 * mean)
    inner = np.sqrt(2 * save * mean) * (1 + np.sqrt(half) / 3 + half / 9) - save
    return np.asarray(np.where(half < 1, inner, mean), dtype=float)


def best_interval_s(save_s: ArrayLike, mean_time_s: ArrayLike) -> Floats:
    """The exact best interval of Daly's model for endless work: the root of (1 - y) exp(y) = exp(-c), y = tau/M, c = C/M."""
    save, mean = np.asarray(save_s, dtype=float), np.asarray(mean_time_s, dtype=float)
    c = save / mean
    y = np.where(c < 2, daly_interval_s(c, 1.0), 1 - np.exp(-1 - c))
    y = np.clip(y, 1e-300, 1 - 1e-16)
    for _ in range(3):
        missing = np.log1p(-y) + y + c
        y = np.minimum(np.clip(y + missing * (1 - y) / y, y / 2, (1 + y) / 2), 1 - 1e-16)
    # Under a hundred-millionth the root is Young's, and the logarithm above is all rounding.
    return np.asarray(np.where(c < 1e-8, np.sqrt(2 * c), y) * mean, dtype=float)


def run(
    work_s: ArrayLike,
    rate_per_s: ArrayLike,
    machines: ArrayLike,
    save_s: ArrayLike,
    restart_s: ArrayLike,
    interval_s: ArrayLike | None = None,
    *,
    wait_s: ArrayLike = 0.0,
    together: bool = True,
    alone: ArrayLike = 1.0,
) -> SpotRun:
    """Candidates as arrays that broadcast. `rate_per_s` is of one machine; without `interval_s` the best is taken.

    With `together=False` the machines draw from one queue: the mean is that of one machine with its share of the work
    (`work_s`), and the spread around it shrinks with the square root of their number to the power of `alone` (`gathering`):
    machines that are lost at the same time do not make up for each other. With a given interval no checkpoint is written when
    no more than an interval and a saving's time of work is left.
    """
    interval = np.nan if interval_s is None else interval_s
    columns = np.broadcast_arrays(
        *(
            np.asarray(column, dtype=float)
            for column in (work_s, rate_per_s, machines, save_s, restart_s, wait_s, interval, alone)
        )
    )
    shape = columns[0].shape
    work, rate, count, save, restart, wait, intervals, exponent = (np.ravel(column) for column in columns)
    _check(work, rate, count, save, restart, wait, None if interval_s is None else intervals)
    save = np.where(save > 0, np.maximum(save, _SHORTEST_SAVE_S), save)
    total = rate * count if together else rate
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        number = _stretches(work, total, save) if interval_s is None else np.ceil((work - save) / intervals - 1e-9)
        number = np.maximum(number, 1.0)
        step = (
            np.where(number > 1, (work - save) / number, work) if interval_s is None else np.where(number > 1, intervals, work)
        )
        checkpoints = number - 1
        last = np.maximum(work - checkpoints * step, 0.0)  # of very many stretches rounding would leave less than nothing
        parts = _Stretches(checkpoints, step + save, last)
        steady = np.isclose(total, 0, atol=1e-300)
        safe = np.where(steady, 1.0, total)
        grown = _times(checkpoints, _grown(safe * parts.long_s)) + _grown(safe * last)
        again = np.exp(np.minimum(safe * restart, _LARGEST))
        losses = np.where(steady, 0.0, again * grown)
        needed = work + checkpoints * save
        lost = np.where(steady, 0.0, np.maximum(grown / safe - needed, 0.0))
        restarting = np.where(steady, 0.0, _times(-np.expm1(-safe * restart) / safe, losses))
        waiting = _times(wait, losses)
        expected = needed + lost + restarting + waiting
    averaged = np.ones_like(count) if together else count**exponent
    results = (
        expected,
        _spread(parts, np.where(steady, 0.0, total), restart, wait, expected, averaged),
        needed,
        losses if together else losses * count,
        lost,
        checkpoints * save,
        restarting,
        waiting,
        step,
        checkpoints,
    )
    return SpotRun(*(column.reshape(shape) for column in results))


def _grown(exponent: Floats) -> Floats:
    grown: Floats = np.expm1(np.minimum(exponent, _LARGEST))
    return np.where(exponent > _LARGEST, np.inf, grown)


def _times(number: Floats, perhaps_endless: Floats) -> Floats:
    """A product in which none of something endless is nothing."""
    return np.asarray(np.where(number > 0, number * perhaps_endless, 0.0), dtype=float)


def _stretches(work: Floats, rate: Floats, save: Floats) -> Floats:
    """How many make n (exp(rate L) - 1) least: the whole number below or above the real one."""
    free = save <= 0
    tau = best_interval_s(np.where(free, 1.0, save), np.where(rate > 0, 1 / np.where(rate > 0, rate, 1.0), 1e300))
    # Checkpoints that cost nothing: so many that what is lost between two no longer matters.
    tau = np.where(free, np.maximum(1e-3 / np.where(rate > 0, rate, 1e-300), work * 1e-6), tau)
    real = np.where(work > save, (work - save) / np.maximum(tau, 1e-300), 1.0)
    below = np.maximum(np.floor(real), 1.0)
    above = below + 1

    def cost(number: Floats) -> Floats:
        grown = _grown(rate * (save + (work - save) / number))
        return number * grown

    return np.asarray(np.where((work > save) & (rate > 0) & (cost(above) < cost(below)), above, below), dtype=float)


class _Moments(NamedTuple):
    mean: Floats
    square: Floats


def _failed_try(rate: Floats, length: Floats) -> _Moments:
    """When a try of `length` fails, given that it does: an exponential time cut off at `length`."""
    small = rate * length < 1e-4  # there the formulas cancel, and the time is uniform
    odds = np.where(small, 0.0, 1 / np.expm1(np.clip(rate * length, 1e-4, _LARGEST)))
    mean = 1 / rate - length * odds
    square = 2 / rate**2 - (length**2 + 2 * length / rate) * odds
    return _Moments(np.where(small, length / 2, mean), np.where(small, length**2 / 3, square))


def _extra_variance(length: Floats, rate: Floats, restart: Floats, wait: Floats) -> Floats:
    """Of the time beyond `length` that a stretch takes."""
    fails = -np.expm1(-rate * length)
    first, later = _failed_try(rate, length), _failed_try(rate, restart + length)
    passes = np.exp(-np.minimum(rate * (restart + length), _LARGEST))
    tries = (1 - passes) / passes  # failed ones after the first
    retry_s = later.mean + wait
    mean_after = first.mean + wait + restart + tries * retry_s
    spread = (first.square - first.mean**2) + tries * (later.square - later.mean**2) + tries / passes * retry_s**2
    spread += (1 + tries) * wait**2  # of exponential waits
    return np.asarray(fails * (spread + mean_after**2) - (fails * mean_after) ** 2, dtype=float)


def _spread(parts: _Stretches, rate: Floats, restart: Floats, wait: Floats, expected: Floats, averaged: Floats) -> Floats:
    spread = np.where(rate > 0, expected, 0.0)
    longest = rate * (restart + np.maximum(parts.long_s, parts.last_s))
    rows = np.flatnonzero((rate > 0) & (longest < _HOPELESS) & np.isfinite(expected))
    chances = rate[rows], restart[rows], wait[rows]
    variance = _extra_variance(parts.last_s[rows], *chances)
    saving = np.flatnonzero(parts.number[rows] > 0)
    longer = _extra_variance(parts.long_s[rows[saving]], *(column[saving] for column in chances))
    variance[saving] += parts.number[rows[saving]] * longer
    spread[rows] = np.sqrt(np.maximum(variance, 0.0))
    return np.asarray(spread / np.sqrt(averaged), dtype=float)


def _check(
    work: Floats, rate: Floats, count: Floats, save: Floats, restart: Floats, wait: Floats, intervals: Floats | None
) -> None:
    problems = [
        Problem(name, "is negative, or no number", allowed="0 or more")
        for name, column in (("work_s", work), ("rate_per_s", rate), ("save_s", save), ("restart_s", restart), ("wait_s", wait))
        if not (np.isfinite(column) & (column >= 0)).all()
    ]
    if not (np.isfinite(count) & (count >= 1)).all():
        problems.append(Problem("machines", "is less than one, or no number", allowed="1 or more"))
    if intervals is not None and not (intervals > 0).all():
        problems.append(Problem("interval_s", "is not positive", allowed="more than 0, or none for the best"))
    if problems:
        raise InvalidSettings(*problems)
