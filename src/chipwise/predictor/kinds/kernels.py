"""Work that is no network: numerical simulation, rendering and video."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypedDict

import numpy as np

from chipwise.catalog.chip import Chip
from chipwise.errors import BadInput
from chipwise.perf.kernels import hpc, render, timed, transcode
from chipwise.perf.kernels.work import Terms
from chipwise.perf.model import CARRIED
from chipwise.perf.seen import FORMULA
from chipwise.predictor.ability import able_chip
from chipwise.predictor.kinds.ask import Ask
from chipwise.predictor.kinds.goals import fewest_chips
from chipwise.predictor.kinds.timing import frame_notes, run_notes, timed_frame, timed_runs
from chipwise.predictor.values import (
    ArchivePrediction,
    HpcPrediction,
    Interval,
    LivePrediction,
    RenderPrediction,
    WholeJob,
)
from chipwise.units import GIB
from chipwise.workload.kinds import Hpc, Render, Transcode


class Kernel(TypedDict):
    """The fields of `KernelPrediction` that follow from terms."""

    chip: str
    chips: float
    time: Interval
    time_of: str
    terms_s: Mapping[str, float]
    bottleneck: str


def kernel(ask: Ask, chips: float, terms: Terms, subject: str, bottleneck: str | None = None) -> Kernel:
    seconds = {name: float(values[0]) for name, values in zip(terms.names, terms.seconds, strict=True)}
    total = sum(seconds.values())
    return Kernel(
        chip=ask.known.names.one_chip(ask.hardware).chip.name,
        chips=chips,
        time=Interval(float(terms.total[0]), float(terms.low[0]), float(terms.high[0])),
        time_of=subject,
        terms_s={name: value for name, value in seconds.items() if value > 1e-6 * total},
        bottleneck=bottleneck or terms.bottleneck().texts()[0],
    )


def predict_hpc(ask: Ask, work: Hpc) -> HpcPrediction:
    part = ask.known.parts[able_chip(ask.known, ask.hardware, "hpc").name]
    needed = float(math.ceil((work.working_set or 0.0) / (hpc.USABLE_MEMORY * part.memory_bytes))) or 1.0
    chips = ask.chips or max(needed, float(work.limits.chip_count.min or 1))
    runs = timed_runs(ask.known, work)
    shared = kernel(ask, chips, timed.job(work, part, chips, runs), "the whole job")
    in_time = fewest_chips(ask, work, lambda many: timed.job(work, part, many, runs))
    notes = [*run_notes(ask.known, work, runs)]
    if chips < needed:
        notes.append(f"It does not fit: the working set needs {needed:g} chips.")
    elif ask.chips is None and chips > 1:
        notes.append(f"Chips: {chips:g}, the fewest that the memory and the file's limits allow; --chips for others.")
    if work.communication.bytes_per_step:
        notes.append("Each chip sends as much per step as the file says, whatever the number of chips.")
    return HpcPrediction(
        **shared,
        provenance=CARRIED if runs else FORMULA,
        precision=work.precision.value,
        steps=work.steps,
        runs=float(work.runs),
        working_set_bytes=work.working_set,
        fits=chips >= needed,
        job=WholeJob(shared["time"]),
        needs={"chips_for_memory": needed, "chips_for_deadline": None if in_time is None else max(in_time, needed)},
        notes=tuple(notes),
    )


def predict_render(ask: Ask, work: Render) -> RenderPrediction:
    chip, parts = able_chip(ask.known, ask.hardware, "render"), ask.known.parts
    renderer = render.Renderers.of([chip], [parts[chip.name]])
    timing = timed_frame(ask.known, work)
    chips = ask.chips or 1.0
    shared = kernel(ask, chips, render.job(work, renderer, chips, timing), "the whole job")
    frame = render.film(render.job(work, renderer, work.frames, timing), 1, 1)
    fits = bool(render.fits(renderer, work.scene or 0.0, render.engine_of(work))[0])
    notes = [*frame_notes(ask.known, work, timing)]
    if not fits:
        needed_gib = (work.scene or 0.0) / render.USABLE_MEMORY / GIB
        notes.append(f"It does not fit: this engine does not page, and the scene needs a chip of {needed_gib:.0f} GiB.")
    if timing is None:
        notes.append("No frame was timed: the cost of a sample is a guess; give measured: {on: CHIP, takes: SECONDS}.")
    return RenderPrediction(
        **shared,
        frames=work.frames,
        engine=render.engine_of(work),
        frame_s=float(frame.total[0]),
        scene_bytes=work.scene,
        measured_on=None if not work.measured else work.measured[0].on,
        job=WholeJob(shared["time"]),
        fits=fits,
        needs={"chips_for_deadline": fewest_chips(ask, work, lambda many: render.job(work, renderer, many, timing))},
        notes=tuple(notes),
    )


def predict_transcode(ask: Ask, work: Transcode) -> ArchivePrediction | LivePrediction:
    known = ask.known
    chip = known.names.one_chip(ask.hardware).chip
    source, outputs = transcode.ladder_of(work)

    def media(chips: list[Chip]) -> transcode.Media:
        cores = {row.name: float(row.cores) for row in known.catalog.rows("cpus") if row.cores}
        parts = [known.parts[one.name] for one in chips]
        return transcode.Media.of(chips, parts, np.array([cores.get(one.name, 48.0) for one in chips]))

    load = transcode.busy(media([chip]), source, outputs)
    if not np.isfinite(load.total[0]):
        all_chips = list(known.catalog.chips.values())
        able = np.isfinite(transcode.busy(media(all_chips), source, outputs).total)
        names = [one.name for one, fine in zip(all_chips, able, strict=True) if fine]
        formats = f"{source.codec} to {', '.join(dict.fromkeys(out.codec for out in outputs))}"
        remedy = f"These have: {', '.join(names[:12])}{' and others' if len(names) > 12 else ''}."
        raise BadInput(f"{chip.name} has no engines for {formats}.", remedy=remedy if names else "No chip that we know has.")
    if work.duration is not None:
        chips = ask.chips or 1.0
        shared = kernel(ask, chips, transcode.job(work, media([chip]), chips), "the whole archive")
        needs = fewest_chips(ask, work, lambda many: transcode.archive(load, work.duration or 1.0, many))
        return ArchivePrediction(
            **shared,
            job=WholeJob(shared["time"]),
            duration_s=work.duration,
            needs={"chips_for_deadline": needs},
            notes=(),
        )
    streams = float(work.streams or 1)
    needed = float(transcode.chips_needed(load, streams)[0])
    chips = ask.chips or needed
    warnings = (f"{chips:g} chips are too few for {streams:g} live streams.",) if chips < needed else ()
    return LivePrediction(
        **kernel(ask, chips, load, "a second of one stream"),
        streams=streams,
        streams_per_chip=float(transcode.streams_per_chip(load)[0]),
        busy_share=float(load.total[0]) * streams / chips,
        needs={"chips": needed, "encoders": float(transcode.encoders_needed(media([chip]), outputs, streams)[0])},
        notes=(*warnings, f"Live: engines are kept below {transcode.HEADROOM:.0%} busy, at the balanced preset."),
    )
