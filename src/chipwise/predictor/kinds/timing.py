"""Runs of numerical work and frames of a film that a user timed: checked, and in the unit that the formulas take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from chipwise.errors import BadInput
from chipwise.perf.arrays import column
from chipwise.perf.kernels import hpc, render, timed
from chipwise.perf.kernels.chips import Chips
from chipwise.perf.kernels.processor import Processors
from chipwise.perf.kernels.timed import TimedRun
from chipwise.perf.part import Part, scaled
from chipwise.predictor.ability import able_chip
from chipwise.predictor.measured_words import CONTRADICTS, SLOW, contradiction, slow_words, source_words, too_fast
from chipwise.text import number
from chipwise.workload.kinds import Batch, Hpc, Learning, Render, Serve
from chipwise.workload.measured import Measured, Per

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

IN_CACHE = 256e6  # bytes: a working set that is smaller, or not stated, may never meet the memory
FRAMES_AGREE = 3.0  # times what renders of two architectures differ by


def timed_runs(known: Known, work: Hpc) -> tuple[TimedRun, ...]:
    """Each line as the time of the whole workload on its chips."""
    units = {Per.JOB: 1.0, Per.RUN: float(work.runs), Per.STEP: work.steps * work.runs}
    runs = _runs(known, work.measured or (), units, Per.JOB, "hpc")
    for index, (line, run) in enumerate(zip(work.measured or (), runs, strict=True)):
        whole = known.parts[able_chip(known, line.on, "hpc").name]
        floor_s = _least_s(work, whole, most_share(known, line)) / run.chips
        if run.seconds < 0.98 * floor_s:
            field = f"measured[{index}]" if len(runs) > 1 else "measured"
            raise too_fast(field, line, Per.JOB, run.part.name, floor_s / units[line.per or Per.JOB])
    for left, right in combinations(range(len(runs)), 2):
        if timed.contrast(runs[left], runs[right], work) > CONTRADICTS:
            assert work.measured is not None
            raise contradiction(work.measured[left], work.measured[right])
    return runs


def timed_units(known: Known, work: Learning | Serve | Batch, units: dict[Per, float]) -> tuple[TimedRun, ...]:
    """Lines of work of which nothing else is known, as the time of what `units` counts one of."""
    task = "train" if isinstance(work, Learning) else "serve"
    return _runs(known, work.measured or (), units, work.measured_per[0], task)


def _runs(known: Known, lines: Sequence[Measured], units: dict[Per, float], usual: Per, task: str) -> tuple[TimedRun, ...]:
    runs = []
    for line in lines:
        per = line.per or usual
        if per not in units:
            raise BadInput(
                f"measured: how many {per}s there are is not stated.", remedy="State it, or give the time of the job."
            )
        part = known.parts[able_chip(known, line.on, task).name]
        if line.vcpus is not None:
            share = processor_share(known, line)
            part = scaled(part, f"{part.name} ({line.vcpus:,} vCPU)", share, part.memory_bytes)
        runs.append(TimedRun(part, float(line.chips), line.seconds * units[per], str(line.bound), vcpus=float(line.vcpus or 0)))
    return tuple(runs)


def processor_share(known: Known, line: Measured) -> float:
    """Of the processor that a line names, what its vCPUs are; 1 where it ran on the whole chip."""
    if line.vcpus is None:
        return 1.0
    return min(line.vcpus / float(_sockets(known, line).threads[0]), 1.0)


def most_share(known: Known, line: Measured) -> float:
    """The same where each vCPU is a core of its own, as some machines have it: no run can have had more."""
    if line.vcpus is None:
        return 1.0
    return min(line.vcpus / float(_sockets(known, line).cores[0]), 1.0)


def _sockets(known: Known, line: Measured) -> Processors:
    part = known.parts[known.names.one_chip(line.on).chip.name]
    if part.kind != "cpu":
        raise BadInput(f"measured.vcpus: {part.name} is no processor.", remedy="Leave vcpus out, or name the processor.")
    return Processors.of([part], "fp32", known.catalog.rows("cpus"))


def _least_s(work: Hpc, part: Part, share: float) -> float:
    """What a share of one chip takes at its peaks; 0 where nothing tells. A few cores may draw all of the bandwidth."""
    if work.is_unknown:
        return 0.0
    chips, step = Chips.of([part], work.precision.value), hpc.step_of(work)
    rate = float((chips.matrix_rate if step.matrix else chips.rate)[0])
    flop, moved = (float(np.sum(each * step.repeats)) * work.runs for each in (step.flop, step.moved))
    return max(flop / (rate * share), moved / part.bandwidth if (work.working_set or 0.0) > IN_CACHE else 0.0)


def run_notes(known: Known, work: Hpc, runs: Sequence[TimedRun]) -> tuple[str, ...]:
    """What to say of them."""
    if not runs or not work.measured:
        return ()
    notes = [source_words(known, work.measured, Per.JOB)]
    if work.is_unknown:
        return (*notes, sheet_words(runs))
    factors = [(math.exp(timed.anchor(work, run).log_factor), run.part.name) for run in runs]
    return (*notes, *(slow_words(factor, chip) for factor, chip in factors if factor > SLOW))


def sheet_words(runs: Sequence[TimedRun]) -> str:
    bounds = list(dict.fromkeys(run.bound for run in runs))
    if bounds == ["unknown"]:
        return "What holds it up is unknown: measured.bound (compute, memory or transfer) may narrow it."
    means = {"compute": "their arithmetic", "memory": "their memory's bandwidth", "transfer": "their link to the host"}
    return f"Chips compare by {' and '.join(means.get(one, 'both') for one in bounds)} alone."


def timed_frame(known: Known, work: Render) -> render.Timed | None:
    """One frame on one chip of the first line; further lines count as much, each by how the chips compare."""
    frames = []
    for line in work.measured or ():
        chip = able_chip(known, line.on, "render")
        renderer = render.Renderers.of([chip], [known.parts[chip.name]])
        rounds = math.ceil(work.frames / line.chips) if line.per is Per.JOB else 1.0
        shared = float(line.chips) if line.rate is not None else 1.0  # chips that work on frames of their own
        frames.append((renderer, line.seconds / rounds * shared))
    if not frames:
        return None
    first = frames[0][0]
    logs = [math.log(seconds * float(renderer.speed[0] / first.speed[0])) for renderer, seconds in frames]
    for left, right in combinations(range(len(frames)), 2):
        if abs(logs[left] - logs[right]) > FRAMES_AGREE * render.OTHER_KIND_SPREAD:
            assert work.measured is not None
            raise contradiction(work.measured[left], work.measured[right])
    return render.Timed(first, column(math.exp(sum(logs) / len(logs))))


def frame_notes(known: Known, work: Render, frame: render.Timed | None) -> tuple[str, ...]:
    """What to say of it: the usual cost of a sample is a guess, so only what is far off is told."""
    if frame is None or not work.measured:
        return ()
    usual = render.frame(frame.renderer, work.resolution.pixels, work.samples_per_pixel, 0.0, render.engine_of(work))
    factor = float(frame.seconds[0]) / float(usual["tracing"][0])
    notes = [source_words(known, work.measured, Per.FRAME)]
    if not 1 / SLOW <= factor <= SLOW:
        chip = able_chip(known, work.measured[0].on, "render").name
        notes.append(
            f"That is {number(factor)} times the usual cost of such a frame on {chip}: check its unit and its samples."
        )
    return tuple(notes)
