"""Video: what flows in must flow out, so machines are counted by it."""

from __future__ import annotations

import math

import numpy as np

from chipwise.perf.kernels import transcode
from chipwise.perf.kernels.processor import Processors
from chipwise.perf.kernels.work import Terms
from chipwise.perf.power import Utilisation
from chipwise.planner.kinds.planning import plan_ways
from chipwise.planner.kinds.ways import (
    FORMAT,
    Cannot,
    Ground,
    Question,
    Table,
    Way,
    Ways,
    ground_of,
    machine_counts,
    machines_within,
    no_count,
    worthwhile,
)
from chipwise.planner.reasons.abilities import NoCodec
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import Streams
from chipwise.units import HOUR
from chipwise.workload.kinds import Transcode

ENGINES = 0.1  # of a chip's peaks, while its video engines are busy: cards with nothing else to do draw about half their limit


def plan_transcode(question: Question, work: Transcode) -> Plan:
    ground = ground_of(question.known, question.rules)
    if work.duration is not None:
        table = Table("transcode", "job", work.duration / HOUR, "hour of video")
        return plan_ways(question, ground, table, lambda at: _archive(question, ground, work, at))
    streams = float(work.streams or 1)
    notes = [f"Live: engines are kept below {transcode.HEADROOM:.0%} busy, at the balanced preset."]
    if work.goals.latency is not None:
        notes.append("goals.latency is ignored: the delay of an encoder depends on its settings.")
    table = Table(
        kind="transcode", per="month", units=streams * question.month_s / HOUR, unit="stream hour", notes=tuple(notes)
    )
    return plan_ways(question, ground, table, lambda at: _live(question, ground, work, at))


def _busy(ground: Ground, work: Transcode, index: int) -> Terms | Cannot:
    """Seconds of one chip of the shape for a second of one stream."""
    shape, part = ground.fleet.shapes[index], ground.fleet.part(index)
    chip = ground.fleet.catalog.chips[shape.chip]
    source, outputs = transcode.ladder_of(work)
    cores = 1.0
    if part.kind == "cpu":
        processors = Processors.of([ground.known.parts[shape.chip]], "fp32", ground.fleet.catalog.rows("cpus"))
        cores = max(shape.share * float(processors.cores[0]), 1.0)
    media = transcode.Media.of([chip], [part], cores)
    terms = transcode.busy(media, source, outputs)
    if not np.isfinite(terms.total[0]):
        formats = f"{source.codec} to {', '.join(dict.fromkeys(out.codec for out in outputs))}"
        have = f"encoders: {media.encoders[0]:g}, decoders: {media.decoders[0]:g}"
        return Cannot(NoCodec(chip.name, formats, have), passed=FORMAT)
    return terms if part.kind == "cpu" else terms.times(1.0 / shape.share)  # a slice has its share of the engines' time


def _live(question: Question, ground: Ground, work: Transcode, index: int) -> Ways:
    busy = _busy(ground, work, index)
    if isinstance(busy, Cannot):
        return busy
    shape, streams = ground.fleet.shapes[index], float(work.streams or 1)
    chips = float(transcode.chips_needed(busy, streams)[0])
    machines = machines_within(question, shape.chips, math.ceil(chips / shape.chips))
    if isinstance(machines, Cannot):
        return machines
    month = question.month_s
    carried = float(transcode.streams_per_chip(busy)[0])
    return [
        Way(
            shape=index,
            machines=machines,
            seconds=month,
            low=month,
            high=month,
            precision="",
            split=Streams(int(carried)),
            rate=max(float(int(carried) * shape.chips), streams / machines),
            replicas=machines,
            use=_use(ground, index, float(busy.total[0]) * streams / (machines * shape.chips)),
        )
    ]


def _use(ground: Ground, index: int, busy: float) -> Utilisation:
    """Processors encode with their cores; elsewhere engines beside the others do, for which the rest of the chip rests."""
    part = ground.fleet.part(index)
    return Utilisation(busy if part.kind == "cpu" else ENGINES * busy, ENGINES * busy)


def _archive(question: Question, ground: Ground, work: Transcode, index: int) -> Ways:
    busy = _busy(ground, work, index)
    if isinstance(busy, Cannot):
        return busy
    chips = ground.fleet.shapes[index].chips
    counts = machine_counts(question, chips)
    if not len(counts):
        return no_count(question, chips)
    terms = transcode.archive(busy, work.duration or 1.0, counts * chips)
    return [
        Way(
            shape=index,
            machines=int(counts[row]),
            seconds=float(terms.total[row]),
            low=float(terms.low[row]),
            high=float(terms.high[row]),
            use=_use(ground, index, 1.0),
        )
        for row in worthwhile(question, terms.total)
    ]
