"""What programs that write down speech take beside the formula.

The formula is the work of an encoder and of a decoder that writes one token after the other. Programs do more: they look for
the language, decode several guesses (a beam of 5), let sequences that are done wait for the longest, cut sound with overlaps
and join the text on the host. How much is measured as a whole only: published transcriptions of Whisper
(`data/perf/transcription.csv`) took 1 to 26 times as long as the formula. The answer takes the median of the programs' medians;
its interval goes from the fastest of these runs, or the formula where that is faster, to the slowest. No chip or model is told
apart: there are too few rows for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist, median

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.perf.model import Estimate
from chipwise.perf.seen import FORMULA
from chipwise.perf.tables import rows

CLIP_S = 30.0  # that Whisper reads at once
_TERM = "software"


@dataclass(frozen=True, slots=True)
class Transcription:
    """A published run."""

    program: str
    model: str
    chip: str
    chips: float
    batch: float  # clips at once
    audio_s: float
    seconds: float

    @property
    def passes(self) -> float:
        return math.ceil(self.clips / self.at_once)

    @property
    def clips(self) -> float:
        return math.ceil(self.audio_s / CLIP_S)

    @property
    def at_once(self) -> float:
        return min(self.batch, self.clips)


@dataclass(frozen=True, slots=True)
class Programs:
    """Times by which programs take longer than the formula."""

    usual: float
    fastest: float
    slowest: float
    runs: int
    names: tuple[str, ...]
    measured_on: frozenset[tuple[str, str]] = frozenset()  # makers and kinds of the chips

    def slow(self, estimate: Estimate, rate: bool) -> Estimate:
        """`rate`: the value is one, not a time. What a user measured says how sure it is, and keeps its interval."""
        seconds = estimate.seconds * self.usual
        turned = -1.0 if rate else 1.0
        value, low, high = (one * self.usual**turned for one in (estimate.value, estimate.low, estimate.high))
        spread = estimate.spread
        if set(estimate.provenance.names) <= {FORMULA}:
            ends = (estimate.value * times**turned for times in (self.fastest, self.slowest))
            low, high = _sorted(*ends)
            spread = np.full_like(np.broadcast_to(spread, value.shape), math.log(self.slowest / self.fastest) / _TENTHS)
        terms = {**estimate.terms, _TERM: seconds - estimate.seconds}
        return replace(estimate, value=value, low=low, high=high, seconds=seconds, terms=terms, spread=spread)

    @property
    def words(self) -> str:
        return (
            f"It rests on {self.runs} published transcriptions of Whisper by {', '.join(self.names)}: they took "
            f"{self.fastest:.2g} to {self.slowest:.2g} times as long as the formula; the middle, {self.usual:.2g}, counts."
        )


_TENTHS = 2.0 * NormalDist().inv_cdf(0.9)  # standard deviations between the ends of an interval


@cache
def published() -> tuple[Transcription, ...]:
    def number(row: dict[str, str], name: str) -> float:
        return float(row[name])

    return tuple(
        Transcription(
            program=row["program"],
            model=row["model"],
            chip=row["chip"],
            chips=number(row, "chips"),
            batch=number(row, "batch"),
            audio_s=number(row, "audio_s"),
            seconds=number(row, "seconds"),
        )
        for row in rows("transcription.csv")
    )


def programs(pass_s: Callable[[Transcription], float]) -> Programs:
    """`pass_s`: seconds of one pass by the formula."""
    by_program: dict[str, list[float]] = {}
    for run in published():
        by_program.setdefault(run.program, []).append(run.seconds / (run.passes * pass_s(run)))
    ratios = [times for one in by_program.values() for times in one]
    return Programs(
        usual=median(median(one) for one in by_program.values()),
        fastest=min(1.0, *ratios),
        slowest=max(ratios),
        runs=len(ratios),
        names=tuple(by_program),
    )


def _sorted(first: Array, second: Array) -> tuple[Array, Array]:
    return np.minimum(first, second), np.maximum(first, second)
