"""Edge devices: one frame or one token on a small chip that shares its memory, in a power mode, in the heat.

    clock share   x = sqrt((P - P0) / (Pmax - P0)),  P0 = 0.25 Pmax, between 0.3 and 1
    bandwidth share   sqrt(x): memory clocks fall less than compute clocks
    heat   h = 1 while the junction, 20 C above ambient, is 25 C or more below its limit of 97 C; then linearly to 0.5 there
    frame = max of (FLOP / (e_c R x h), bytes / (e_m B sqrt(x) h)) + streaming + calls
    token = max of (2 weights / ..., (weights + cache) bytes / ...) + calls
R and B are the device's peaks in its largest mode, e the shares of `data/perf/kernels.csv` (vision, decode). The square root
stands between a linear fall (voltage at its floor) and a cube root (voltage falling with the clock); both are met, so the
interval widens as the mode shrinks. A mode below the device's smallest does not exist: the caller checks that. Streaming:
accelerators without memory of their own (Coral, Hailo) hold the weights on the chip, and what does not fit comes over the
host link for every frame. They reach less of their peak, on grouped and depthwise convolutions far less (`ON_CHIP`, from
published runs), and language models are not for them. Where a sheet states INT8 only or FP16 without matrix units, FP16 is
taken as a third of INT8 (it is a half where one GPU does all, a quarter where DLAs count in).
Rules of thumb throughout: measure on the device before buying a thousand of them.
Limits: cameras, decoding and the rest of the program share the memory (`busy`); DLAs and GPU are one pool; batch 1 by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chipwise.errors import BadInput
from chipwise.perf.arrays import Array, Index
from chipwise.perf.kernels.chips import BYTES, SAME_NAME, fractions
from chipwise.perf.kernels.work import Flags, Numbers, Terms, allowed_name, at_least, overlapped, pick, positive
from chipwise.perf.part import Part

PRECISIONS = ("int4", "int8", "fp16", "bf16", "fp32")
IDLE_SHARE, LOWEST_CLOCK = 0.25, 0.3
LIMIT_C, ABOVE_AMBIENT_C, KNEE_C, HOTTEST = 97.0, 20.0, 25.0, 0.5
CALL_S = 0.5e-3  # a frame's pre- and post-processing and the start of the compiled graph
GPU_CALL_S = 1.8e-3  # on a module's GPU: some hundred kernels, started one by one by a small processor
GPU_CALL_SPREAD = 0.8  # between 0.8 and 3.5 ms in 39 published runs of two sources
TF32_ARCHITECTURES = ("Ampere", "Blackwell")  # of modules: engines multiply FP32 in TF32 there
TOKEN_CALL_S = 1.5e-3  # a token's kernels and sampling
USABLE_MEMORY = 0.7  # the system, the camera and the program live in the same memory
FP16_OVER_INT8 = 1 / 3
ON_CHIP_SPREAD = 0.6  # of the compute of the accelerators below: published runs of one chip differ by so much

_BOARD_BANDWIDTH = {"Raspberry-Pi-5": 17e9}  # 32-bit LPDDR4X-4267


@dataclass(frozen=True, slots=True)
class OnChip:
    """An accelerator without memory of its own."""

    bytes: float  # of weights that it holds
    host: float  # bytes/s of the link to its host
    compute_share: float  # of the int8 peak that dense networks reach
    grouped_share: float  # and grouped and depthwise ones
    call_s: float = CALL_S  # a frame's way to it and back


# Bytes and links: public notes rounded. Shares: Coral, 22 published runs of MobileNets and SSDs, a Raspberry Pi as the host (at
# the share of other devices they would be 5 to 8 times faster); Hailo, the middle of 30 runs of each in the vendor's model zoo.
ON_CHIP = {
    "Coral-Edge-TPU": OnChip(bytes=8e6, host=0.3e9, compute_share=0.06, grouped_share=0.06, call_s=1.5e-3),
    "Hailo-8": OnChip(bytes=32e6, host=0.8e9, compute_share=0.3, grouped_share=0.03),
    "Hailo-8L": OnChip(bytes=16e6, host=0.8e9, compute_share=0.3, grouped_share=0.03),
}


@dataclass(frozen=True, slots=True)
class Devices:
    """Columns of candidates in one number format."""

    precision: str
    rate: Array
    bandwidth: Array
    memory_bytes: Array
    power_w: Array  # of the largest mode
    on_chip: Array  # bytes of weights held on the chip; infinity: the device has memory
    host: Array  # bytes/s to the host
    call_s: Array  # of a frame
    on_chip_share: Array  # of the rate that dense networks reach on a chip without memory; 1 elsewhere
    on_chip_grouped: Array
    spread: Array

    @classmethod
    def of(cls, parts: Sequence[Part], precision: str = "int8", index: Index | None = None) -> Devices:
        name = allowed_name("precision", precision, PRECISIONS, SAME_NAME)
        if not parts:
            raise BadInput("parts: there are none.", remedy="Give at least one part.")
        share = fractions()[("vision", "edge")][0]
        chips = [ON_CHIP.get(part.name) or OnChip(np.inf, part.pcie, share, share, GPU_CALL_S) for part in parts]
        return cls(
            precision=name,
            rate=pick([_rate(part, name) for part in parts], index),
            bandwidth=pick([_BOARD_BANDWIDTH.get(part.name, part.bandwidth) for part in parts], index),
            memory_bytes=pick([part.memory_bytes for part in parts], index),
            power_w=pick([part.power_w for part in parts], index),
            on_chip=pick([chip.bytes for chip in chips], index),
            host=pick([chip.host for chip in chips], index),
            call_s=pick([chip.call_s for chip in chips], index),
            on_chip_share=pick([chip.compute_share for chip in chips], index),
            on_chip_grouped=pick([chip.grouped_share for chip in chips], index),
            spread=pick([0.0 if part.stated else 0.3 for part in parts], index),
        )


def _rate(part: Part, precision: str) -> float:
    int8_rate = part.rates.get("int8")
    if precision == "fp32" and int8_rate is not None and part.architecture in TF32_ARCHITECTURES:
        return max(part.rate("fp32"), _rate(part, "fp16") / 2)
    if precision == "fp32" or int8_rate is None:
        return part.rate(precision)
    if precision == "int8":
        return int8_rate
    if "fp32" not in part.rates:  # integers are all it has
        return int8_rate * (1.0 if precision == "int4" else FP16_OVER_INT8 / 8)
    return max(part.rate("fp16"), int8_rate * FP16_OVER_INT8)  # int4 weights are multiplied in 16 bits


@dataclass(frozen=True, slots=True)
class Mode:
    """How fast a device runs under a power budget and in the heat, as shares of its best."""

    clock: Array
    memory: Array
    spread: Array


def mode(devices: Devices, watts: Numbers | None = None, ambient_c: Numbers = 25.0, busy: Numbers = 0.0) -> Mode:
    """`watts` None: the largest mode. `busy` is the share of the memory bandwidth that the rest of the program takes."""
    budget = devices.power_w if watts is None else np.minimum(positive("watts", watts), devices.power_w)
    idle = IDLE_SHARE * devices.power_w
    clock = np.clip(np.sqrt(np.maximum(budget - idle, 0.0) / (devices.power_w - idle)), LOWEST_CLOCK, 1.0)
    room = LIMIT_C - (at_least("ambient_c", ambient_c, -60.0, 95.0) + ABOVE_AMBIENT_C)
    heat = np.clip(HOTTEST + (1 - HOTTEST) * room / KNEE_C, HOTTEST, 1.0)
    free = 1 - at_least("busy", busy, 0.0, 0.95)
    return Mode(clock * heat, np.sqrt(clock) * heat * free, 0.3 * (1 - clock) + 0.3 * (1 - heat))


@dataclass(frozen=True, slots=True)
class _Kernel:
    """What a pass reaches of the peaks, and what starting it takes."""

    compute_share: Array
    bandwidth_share: float
    spread: Array
    call_s: Array


def _kernel(devices: Devices, name: str, compute_share: Array | None = None, call_s: Array | None = None) -> _Kernel:
    compute, bandwidth, spread = fractions()[(name, "edge")]
    return _Kernel(
        compute_share=compute_share if compute_share is not None else np.full_like(devices.rate, compute),
        bandwidth_share=bandwidth,
        spread=np.where(np.isfinite(devices.on_chip), max(ON_CHIP_SPREAD, spread), spread),
        call_s=call_s if call_s is not None else np.full_like(devices.rate, TOKEN_CALL_S),
    )


def _pass(devices: Devices, now: Mode, kernel: _Kernel, flop: Array, moved: Array, stored: Array) -> Terms:
    """One pass over a model; a device with memory on the chip streams what of `stored` does not fit there from its host."""
    has_on_chip = np.isfinite(devices.on_chip)
    compute, memory = overlapped(
        flop / (kernel.compute_share * devices.rate * now.clock),
        np.where(has_on_chip, 0.0, moved) / (kernel.bandwidth_share * devices.bandwidth * now.memory),
    )
    streamed = np.where(has_on_chip, np.maximum(stored - np.where(has_on_chip, devices.on_chip, 0.0), 0.0) / devices.host, 0.0)
    return Terms.of(
        {
            "compute": (compute, kernel.spread),
            "memory": (memory, kernel.spread),
            "streaming": (streamed, 0.5),
            "call": (kernel.call_s / now.clock, np.where(has_on_chip, 0.5, GPU_CALL_SPREAD)),
        },
        shared_spread=np.hypot(devices.spread, now.spread),
    )


def frame(
    devices: Devices,
    flop: Numbers,
    weights: Numbers,
    activations: Numbers = 0.0,
    batch: Numbers = 1.0,
    power_mode: Mode | None = None,
    grouped: bool = False,
) -> Terms:
    """Seconds of one forward pass: `flop` and `activations` (values moved) of one picture, `weights` of the model; `grouped`:
    its convolutions are grouped or depthwise."""
    size, values = at_least("batch", batch, 1.0), positive("weights", weights)
    now = power_mode if power_mode is not None else mode(devices)
    stored = values * BYTES[devices.precision]
    moved = stored + size * at_least("activations", activations, 0.0) * BYTES[devices.precision]
    kernel = _kernel(devices, "vision", devices.on_chip_grouped if grouped else devices.on_chip_share, devices.call_s)
    return _pass(devices, now, kernel, size * positive("flop", flop), moved, stored)


def token(devices: Devices, weights: Numbers, cache_bytes: Numbers = 0.0, power_mode: Mode | None = None) -> Terms:
    """Seconds of one token of a small language model at batch 1: bandwidth decides."""
    values = positive("weights", weights)
    now = power_mode if power_mode is not None else mode(devices)
    moved = values * BYTES[devices.precision] + at_least("cache_bytes", cache_bytes, 0.0)
    return _pass(devices, now, _kernel(devices, "decode"), 2 * values, moved, moved)


def fits(devices: Devices, weights: Numbers, other_bytes: Numbers = 0.0) -> Flags:
    """Where the model and what it needs beside have room next to the rest of the program."""
    needed = positive("weights", weights) * BYTES[devices.precision] + at_least("other_bytes", other_bytes, 0.0)
    return np.isfinite(devices.on_chip) | (needed <= USABLE_MEMORY * devices.memory_bytes)


def per_second(each: Terms, batch: Numbers = 1.0) -> Array:
    """Frames or tokens per second."""
    return at_least("batch", batch, 1.0) / each.total
