"""From a profile of one device to what predictions for that chip should assume.

A profile says what share of the data sheet's peak large matrix products reach and what share of its bandwidth reading
weights reaches. Predictions assume shares too: those of the packaged profile where there is one of that chip, else the
formula's (`operators.COMPUTE_EFFICIENCY`, `MEMORY_EFFICIENCY`) with the factors fitted to its vendor, architecture and chip.
The rule: terms of arithmetic take exp(o) with

    o = 0.5 log(assumed share / measured share)

longer, terms of moving bytes likewise with theirs, at most by `FARTHEST` in either direction. Half, because fitted factors
also hold what profiles do not see (clocks under long load, other kernels), and a profile of minutes is one machine's.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from chipwise.errors import Problem
from chipwise.perf.arrays import Array, Coded
from chipwise.perf.model import Estimate
from chipwise.perf.operators import COMPUTE_EFFICIENCY, MEMORY_EFFICIENCY
from chipwise.perf.part import Part
from chipwise.perf.pooling import Factors
from chipwise.perf.profile import Profile, ProfileSample

WEIGHT = 0.5
FARTHEST = 0.4
_LARGE = 1 / 8  # of the largest product's arithmetic; smaller ones do not show the peak
_STREAMED = 64e6  # bytes of weights that no cache holds
_SKINNY = 16  # rows; such a product takes as long as its weights take to read
_SHARES = (0.05, 1.0)
_ABOVE_PEAK = 10.0  # times the data sheet: a newer revision, or a neighbour in the catalog, but nothing else
_ABOVE_CACHED = 100.0  # times the memory's bandwidth, for what a cache may hold
_MOST_FLOP_PER_S, _MOST_BYTES_PER_S, _MOST_SECONDS = 1e18, 1e15, 1e6
ARITHMETIC = ("matrix", "attention", "prefill matrix", "prefill attention")
MOVING = ("elementwise", "optimizer", "unpack", "prefill elementwise", "weights", "cache", "memory", "lookup")
_MEASURED_AS = {"fp64": "fp64_tensor"}  # matrix products of a format run on these units where the chip has them


@dataclass(frozen=True, slots=True)
class Shares:
    """Of a part's nominal rates; None where nothing of the kind was measured."""

    compute: Mapping[str, float]  # by precision
    memory: float | None

    @property
    def half(self) -> float | None:
        """Of the 16-bit peak, in which most work is done; of any other where that was not measured."""
        for name in ("bf16", "fp16", *self.compute):
            if name in self.compute:
                return self.compute[name]
        return None


@dataclass(frozen=True, slots=True)
class ChipOffset:
    """Log factors on the seconds of one chip's terms."""

    chip: str
    compute: float
    memory: float


def peak_of(part: Part, precision: str) -> float | None:
    """FLOP/s of the unit that multiplies matrices of this format; None where the sheet states none."""
    for name in (_MEASURED_AS.get(precision, precision), precision):
        if name in part.rates:
            return part.rates[name]
    return None


def impossible(profile: Profile, part: Part | None) -> list[Problem]:
    """Samples that no such device can have run: far above the data sheet, or above any single device."""
    problems = []
    for index, sample in enumerate(profile.samples):
        peak = (peak_of(part, sample.precision) or max(part.rates.values(), default=0.0)) if part else 0.0
        cached = sample.bytes < _STREAMED
        flop = _ABOVE_PEAK * peak if peak else _MOST_FLOP_PER_S
        moved = (_ABOVE_CACHED if cached else _ABOVE_PEAK) * part.bandwidth if part else _MOST_BYTES_PER_S
        origin = f", from the data sheet of {part.name}" if part else ", of any single device"
        if sample.flop_per_s > flop:
            message = f"{sample.flop_per_s:.3g} FLOP/s in {sample.precision} is not possible"
            problems.append(Problem(f"samples[{index}].flop", message, None, f"at most {flop:.3g} FLOP/s{origin}"))
        if sample.bytes_per_s > moved:
            message = f"{sample.bytes_per_s:.3g} bytes/s is not possible"
            problems.append(Problem(f"samples[{index}].bytes", message, None, f"at most {moved:.3g} bytes/s{origin}"))
        if sample.seconds > _MOST_SECONDS:
            message = f"{sample.seconds:.3g} s is not possible"
            problems.append(
                Problem(f"samples[{index}].seconds", message, None, f"at most {_MOST_SECONDS:g} s for one small piece of work")
            )
    return problems


def shares_of(profile: Profile, part: Part) -> Shares:
    compute: dict[str, float] = {}
    for precision, rate in large_rates(profile.samples).items():
        peak = peak_of(part, precision)
        if peak:
            compute[precision] = _clipped(rate / peak)
    streamed = streaming_rate(profile.samples)
    return Shares(compute, None if streamed is None else _clipped(streamed / part.bandwidth))


def large_rates(samples: Iterable[ProfileSample]) -> dict[str, float]:
    """FLOP/s of large products, the median over shapes, by precision."""
    by_precision: dict[str, list[ProfileSample]] = {}
    for sample in samples:
        if sample.kind == "gemm":
            by_precision.setdefault(sample.precision, []).append(sample)
    rates = {}
    for precision, products in by_precision.items():
        largest = max(sample.flop for sample in products)
        rates[precision] = statistics.median(sample.flop_per_s for sample in products if sample.flop >= _LARGE * largest)
    return rates


def streaming_rate(samples: Iterable[ProfileSample]) -> float | None:
    """Bytes/s at which products of few rows read their weights; of large copies where there are none such."""
    streamed = [sample for sample in samples if sample.bytes >= _STREAMED]
    skinny = [
        sample.bytes_per_s for sample in streamed if sample.kind == "gemm" and (sample.size("m") or _SKINNY + 1) <= _SKINNY
    ]
    if skinny:
        return statistics.median(skinny)
    return max((sample.bytes_per_s for sample in streamed if sample.kind == "copy"), default=None)


def assumed(part: Part, factors: Mapping[str, Factors], packaged: Profile | None) -> Shares:
    """What predictions reckon with for this chip; `packaged` is the profile the project carries of it, if any."""
    if packaged is not None:
        return shares_of(packaged, part)
    compute = COMPUTE_EFFICIENCY * math.exp(-_fitted(part, factors.get("training"), "matrix"))
    memory = MEMORY_EFFICIENCY * math.exp(-_fitted(part, factors.get("inference"), "decode_matrix"))
    return Shares({"bf16": _clipped(compute)}, _clipped(memory))


def _fitted(part: Part, factors: Factors | None, base: str) -> float:
    """What the hardware's own levels say of a kind of work."""
    if factors is None:
        return 0.0
    names = {"vendor": f"{part.vendor} {part.kind}", "arch": part.architecture, "chip": part.name}
    return sum(factors.values.get(f"{level}/{base}/1", {}).get(name, (0.0, 0.0))[0] for level, name in names.items())


def _clipped(share: float) -> float:
    return min(max(share, _SHARES[0]), _SHARES[1])


def chip_offset(chip: str, measured: Shares, expected: Shares) -> ChipOffset:
    """Zero where either side is not known."""
    return ChipOffset(chip, _offset(measured.half, expected.half), _offset(measured.memory, expected.memory))


def _offset(measured: float | None, expected: float | None) -> float:
    if measured is None or expected is None:
        return 0.0
    return min(max(WEIGHT * math.log(expected / measured), -FARTHEST), FARTHEST)


def moved(estimate: Estimate, chips: Coded, power: Array, offsets: Mapping[str, ChipOffset]) -> Estimate:
    """The estimate with each chip's terms of arithmetic and of moving bytes scaled; chips without an offset stay."""
    if not any(name in offsets for name in chips.names):
        return estimate
    compute = np.exp(chips.look_up(lambda name: offsets[name].compute if name in offsets else 0.0))
    memory = np.exp(chips.look_up(lambda name: offsets[name].memory if name in offsets else 0.0))
    terms = {
        name: seconds * (compute if name in ARITHMETIC else memory if name in MOVING else 1.0)
        for name, seconds in estimate.terms.items()
    }
    seconds: Array = np.zeros(1)
    for values in terms.values():
        seconds = seconds + values
    factor = (seconds / estimate.seconds) ** power
    return Estimate(
        value=estimate.value * factor,
        low=estimate.low * factor,
        high=estimate.high * factor,
        seconds=seconds,
        terms=terms,
        provenance=estimate.provenance,
        spread=estimate.spread,
        minimum=estimate.minimum,
    )
