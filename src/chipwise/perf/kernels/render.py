"""Rendering: pixels x samples x cost per sample, from a frame that was timed on a known chip or from a usual cost.

    frame = pixels x samples x s / v + paging,   v = FP32 rate x useful share
    measured:  frame' = frame on the known chip x v known / v here x (pixels x samples over those of the timed frame)
    paging = (scene - memory) x samples / 64 / PCIe       where the scene does not fit and the engine can page
    job = ceil(frames / chips) x (frame + upload of the scene and start)
`s` is in FLOP of nominal FP32 peak per sample. The useful share of that peak: 1 with ray-tracing cores on chips that count
dual-issued FP32 (Ampere's graphics chips and later), 0.65 without ray-tracing cores, 1.3 times either on chips that do not
dual-issue; 0.7 and 0.45 with and without such cores on other vendors' chips, 0.8 on processors. These are rules of thumb
by us, from how public render scores compare between generations; so are the costs per sample.
Limits: one chip per frame; no denoiser; light transport depends on the scene more than on anything here, hence the width
without a measured frame. Frames of one film differ: give a typical one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chipwise.catalog.chip import Chip
from chipwise.perf.arrays import Array, Coded, Index, column
from chipwise.perf.kernels.work import Flags, Names, Numbers, Terms, at_least, names_of, pick, pick_names, positive
from chipwise.perf.part import Part
from chipwise.spelling import fold
from chipwise.workload.kinds import Render

# FLOP of nominal FP32 peak per pixel sample. Rules of thumb: path tracers with hardware rays near 1e6, production
# renderers with long shading networks more, rasterisers less.
SAMPLE_FLOP = {
    "cycles": 1.2e6,
    "redshift": 8e5,
    "octane": 8e5,
    "arnold": 3e6,
    "vray": 1e6,
    "renderman": 3e6,
    "karma": 2e6,
    "moonray": 3e6,
    "luxcore": 2e6,
    "unreal": 3e5,
    "eevee": 1e5,
    "other": 1.5e6,
}
_ALSO = {"blender": "cycles", "blender-cycles": "cycles", "v-ray": "vray", "prman": "renderman", "unknown": "other"}
NO_PAGING = frozenset({"cycles", "luxcore", "eevee", "unreal"})  # rule of thumb; versions differ
USABLE_MEMORY = 0.85  # rule of thumb: frame buffers, acceleration structures and the driver take the rest
SAMPLES_PER_SWEEP = 64.0  # rule of thumb: what is paged out is met again every so many samples
START_S = 5.0  # rule of thumb: reading the scene from disk and building acceleration structures, per frame
KNOWN_SPREAD, OTHER_KIND_SPREAD, USUAL_SPREAD, PAGING_SPREAD = 0.15, 0.35, 0.9, 0.8
_DUAL_ISSUE = ("Ampere", "Ada Lovelace", "Hopper", "Blackwell")


def useful_share(chip: Chip, part: Part) -> float:
    """Of the nominal FP32 rate, relative to a chip with ray-tracing cores and dual-issued FP32."""
    rays = bool(chip.silicon.rt_cores)
    large_ampere = chip.architecture == "Ampere" and not rays  # A100 and A30 count each FP32 unit once
    dual = chip.architecture.startswith(_DUAL_ISSUE) and not large_ampere
    if part.kind == "cpu":
        return 0.8
    if chip.vendor != "NVIDIA":
        return 0.7 if rays else 0.45
    return (1.0 if rays else 0.65) * (1.0 if dual else 1.3)


@dataclass(frozen=True, slots=True)
class Renderers:
    """Columns of candidates."""

    speed: Array  # useful FLOP/s
    style: Coded  # architecture: two of one style compare well
    memory_bytes: Array
    pcie: Array

    @classmethod
    def of(cls, chips: Sequence[Chip], parts: Sequence[Part], index: Index | None = None) -> Renderers:
        """`chips` and `parts` are the same things in the same order; `index` picks one per candidate."""
        pairs = list(zip(chips, parts, strict=True))

        return cls(
            pick([part.rate("fp32") * useful_share(chip, part) for chip, part in pairs], index),
            pick_names([chip.architecture for chip, _ in pairs], index),
            pick([part.memory_bytes for _, part in pairs], index),
            pick([part.pcie for _, part in pairs], index),
        )


@dataclass(frozen=True, slots=True)
class Timed:
    """One frame on a known chip (`renderer` has one row), of the workload's own pixels and samples."""

    renderer: Renderers
    seconds: Array


def frame(
    renderers: Renderers,
    pixels: Numbers,
    samples: Numbers,
    scene: Numbers = 0.0,
    engine: Names = "other",
    timed: Timed | None = None,
) -> Terms:
    """Seconds for one frame on one chip."""
    engines = names_of("engine", engine, SAMPLE_FLOP, _ALSO)
    count = positive("pixels", pixels) * positive("samples", samples)
    if timed is None:
        tracing, spread = count * engines.look_up(SAMPLE_FLOP.__getitem__) / renderers.speed, column(USUAL_SPREAD)
    else:
        known = positive("measured.takes", timed.seconds) * timed.renderer.speed
        tracing = known / renderers.speed + np.zeros_like(count)
        style = timed.renderer.style.texts()[0]
        spread = renderers.style.look_up(lambda name: KNOWN_SPREAD if name == style else OTHER_KIND_SPREAD)
    stored = at_least("scene", scene, 0.0)
    outside = np.maximum(stored - USABLE_MEMORY * renderers.memory_bytes, 0.0)
    sweeps = np.maximum(at_least("samples", samples, 0.0) / SAMPLES_PER_SWEEP, 1.0)
    return Terms.of(
        {
            "tracing": (tracing, spread),
            "paging": (outside * sweeps / renderers.pcie, PAGING_SPREAD),
            "start": (START_S + stored / renderers.pcie, 0.5),
        }
    )


def fits(renderers: Renderers, scene: Numbers, engine: Names = "other") -> Flags:
    """Where the scene has room, or the engine reads the rest from the host as it goes."""
    engines = names_of("engine", engine, SAMPLE_FLOP, _ALSO)
    pages = engines.look_up(lambda name: 0.0 if name in NO_PAGING else 1.0) > 0
    return pages | (at_least("scene", scene, 0.0) <= USABLE_MEMORY * renderers.memory_bytes)


def film(each: Terms, frames: Numbers, chips: Numbers) -> Terms:
    """Independent frames over `chips`: as many rounds as the busiest chip has frames."""
    return each.times(np.ceil(positive("frames", frames) / at_least("chips", chips, 1.0)))


def job(work: Render, renderers: Renderers, chips: Numbers, timed: Timed | None = None) -> Terms:
    """Seconds for the whole workload. `timed` is its `measured` frame, with the known chip resolved by the caller."""
    frame_terms = frame(renderers, work.resolution.pixels, work.samples_per_pixel, work.scene or 0.0, engine_of(work), timed)
    return film(frame_terms, work.frames, chips)


def engine_of(work: Render) -> str:
    """The engine we have a cost for, `other` for one we have not: a workload may name any."""
    known = {fold(name): name for name in SAMPLE_FLOP} | {fold(name): meant for name, meant in _ALSO.items()}
    return known.get(fold(work.engine or ""), "other")
