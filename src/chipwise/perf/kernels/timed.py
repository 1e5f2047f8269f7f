"""Numerical work that was timed on known chips: how chips compare by formula or by their sheets, how long it takes by the run.

    job = formula here x timed seconds / formula on the timed chips                       where operations or bytes are stated
    job = t1 ((1 - p) + p / n) + communication,  t1 = seconds on one timed chip x v / v'   where nothing is
v and v' are what the sheets of the timed chip and of the other say of what holds the work up (`perf.ratios.speed_of`): the
rate of the workload's format, the bandwidth of the memory, that of the link to the host, or the geometric mean of the first
two where nobody knows. The intervals are those of ratios (`perf.ratios`); more chips than were timed widen them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chipwise.perf.arrays import Array, column
from chipwise.perf.kernels import hpc
from chipwise.perf.kernels.chips import Chips
from chipwise.perf.kernels.work import Z80, Numbers, Terms, at_least
from chipwise.perf.part import Part
from chipwise.perf.ratios import AGAIN, ALIKE, SAME_CHIP, Anchor, relation, sheet_ratio
from chipwise.workload.kinds import Hpc

SCALING = 0.08  # of the interval's half-width, for each doubling of the chips that were timed: rule of thumb
USUAL_CONTRAST = 0.3  # of the logarithm, by which formulas err between two chips or two numbers of them: rule of thumb
KINDRED = 0.5  # of what a formula errs by, between two chips of one architecture: rule of thumb


@dataclass(frozen=True, slots=True)
class TimedRun:
    """The whole workload on so many chips."""

    part: Part
    chips: float
    seconds: float
    bound: str
    vcpus: float = 0.0  # of a processor of which it had a part


def job(work: Hpc, part: Part, count: Numbers, runs: Sequence[TimedRun], at_once: Numbers = 1.0) -> Terms:
    """As `hpc.job`, of one part; without runs the same."""
    if not runs:
        return hpc.job(work, [part], count, at_once=at_once)
    if work.is_unknown:
        return _by_sheets(work, part, count, runs, at_once)
    terms = hpc.job(work, [part], count, at_once=at_once)
    sizes = np.array([_half_width(part, run) * terms.relative + (AGAIN if run.part.name == part.name else 0.0) for run in runs])
    logs = np.array([[anchor(work, run).log_factor] for run in runs])
    weights = 1.0 / np.maximum(sizes, 1e-3) ** 2
    factor = np.exp((weights * logs).sum(axis=0) / weights.sum(axis=0))
    return terms.moved(factor, _widened(sizes.min(axis=0), column(count), runs) / Z80)


def _half_width(part: Part, run: TimedRun) -> float:
    """Of a ratio, in standard deviations of what the formula errs by on one chip: kernels reach alike shares of alike chips."""
    return Z80 * {SAME_CHIP: 0.0, ALIKE: KINDRED}.get(relation(part, run.part), 1.0)


def anchor(work: Hpc, run: TimedRun) -> Anchor:
    """The run against the formula; of work that has none, against the sheet of the first chip, which is the run itself."""
    predicted = float(hpc.job(work, [run.part], run.chips).total[0])
    return Anchor(run.part, float(np.log(run.seconds / predicted)), {})


def _by_sheets(work: Hpc, part: Part, count: Numbers, runs: Sequence[TimedRun], at_once: Numbers) -> Terms:
    chips, shared = at_least("chips", count, 1.0), at_least("at_once", at_once, 1.0)
    precision, parallel = work.precision.value, work.parallel
    alone, half = alone_s(part, runs, precision, parallel, float(work.runs))
    if part.kind == "cpu" and all(run.vcpus for run in runs):
        alone, parallel = _inside(part, runs, precision, parallel, float(work.runs))
    network = Chips.of([part], precision).network
    split = hpc.Split.of(chips, work.communication.pattern.value, work.communication.bytes_per_step or 0.0, parallel)
    spread = _widened(half, chips, runs) / Z80
    terms = Terms.of(
        {
            "work": (alone * parallel / chips, spread),
            "serial": (alone * (1.0 - parallel) + np.zeros_like(chips), spread),
            "communication": (work.steps * hpc.communicate(network, split), hpc.COMMUNICATION_SPREAD),
        }
    )
    return terms.times(np.ceil(work.runs / shared))


def _inside(part: Part, runs: Sequence[TimedRun], precision: str, parallel: float, repeats: float) -> tuple[float, float]:
    """Seconds on one processor, and the share of them that more of them divide, where the run had some vCPUs of one.

    Amdahl's share is then one of threads: what one thread does is no faster on a processor with more of them.
    """
    serial, divided = [], []
    for run in runs:
        ratio, _ = sheet_ratio(run.part, part, run.bound, precision)
        thread_s = run.seconds / repeats / ((1.0 - parallel) + parallel / (run.vcpus * run.chips))
        serial.append(thread_s * (1.0 - parallel))
        divided.append(thread_s * parallel / run.vcpus * ratio)
    alone = float(np.mean(serial) + np.mean(divided))
    return alone, float(np.mean(divided)) / alone


def alone_s(
    part: Part, runs: Sequence[TimedRun], precision: str, parallel: float = 1.0, repeats: float = 1.0
) -> tuple[float, float]:
    """Seconds of one of `repeats` on one chip of a part by the sheets, and the half-width of the interval."""
    sizes, logs = [], []
    for run in runs:
        share, half = sheet_ratio(run.part, part, run.bound, precision)
        single = run.seconds / repeats / ((1.0 - parallel) + parallel / run.chips)
        sizes.append(half)
        logs.append(float(np.log(single * share)))
    weights = 1.0 / np.array(sizes) ** 2
    return float(np.exp(weights @ np.array(logs) / weights.sum())), min(sizes)


def shared(part: Part, runs: Sequence[TimedRun], precision: str, chips: Numbers) -> Terms:
    """Work of which nothing else is known, spread evenly over chips of a part."""
    count = at_least("chips", chips, 1.0)
    alone, half = alone_s(part, runs, precision)
    return Terms.of({"work": (alone / count, _widened(half, count, runs) / Z80)})


def _widened(half: float | Array, chips: Array, runs: Sequence[TimedRun]) -> Array:
    nearest = np.min([np.abs(np.log2(chips / run.chips)) for run in runs], axis=0)
    return np.asarray(half + SCALING * nearest)


def contrast(first: TimedRun, second: TimedRun, work: Hpc) -> float:
    """How many times further apart two runs are than is usual between such chips."""
    if not work.is_unknown:
        difference = anchor(work, first).log_factor - anchor(work, second).log_factor
        return abs(difference) / USUAL_CONTRAST
    share, half = sheet_ratio(first.part, second.part, first.bound, work.precision.value)
    expected = first.seconds * first.chips / second.chips * share
    return abs(float(np.log(second.seconds / expected))) / max(half, USUAL_CONTRAST)
