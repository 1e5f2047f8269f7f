"""Video: what flows in must flow out, so machines are counted by it: by their engines, and by their network, which live
streams leave for the internet."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from chipwise.perf.kernels import paths, transcode
from chipwise.perf.kernels.processor import Processors
from chipwise.perf.kernels.work import Terms
from chipwise.perf.part import Part
from chipwise.perf.power import Utilisation
from chipwise.planner.chances import carried as carried_with
from chipwise.planner.chances import sure_factor
from chipwise.planner.fleet import Shape, split_by
from chipwise.planner.ground import ground_for
from chipwise.planner.kinds.network import lasting, outward
from chipwise.planner.kinds.planning import plan_ways
from chipwise.planner.kinds.ways import (
    COUNT,
    FORMAT,
    Cannot,
    Ground,
    Question,
    Table,
    Way,
    Ways,
    ground_on,
    machine_counts,
    machines_within,
    no_count,
    worthwhile,
)
from chipwise.planner.limits import allowed
from chipwise.planner.reasons.abilities import NoCodec, Unpredicted
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import Streams
from chipwise.text import number
from chipwise.units import HOUR
from chipwise.workload.kinds import Transcode
from chipwise.workload.volume import bitrate

ENGINES = 0.1  # of a chip's peaks, while its video engines are busy: cards with nothing else to do draw about half their limit


def plan_transcode(question: Question, work: Transcode) -> Plan:
    known, live = question.known, work.duration is None
    wide = ground_for(known, wide=True)
    fleet, networks = split_by(wide.fleet, [outward(one) if live else lasting(one) for one in wide.fleet.catalog.machines])
    ground = ground_on(known, fleet, allowed(fleet, question.rules, wide.market.prices))
    carried = [paths.LINE_SHARE * one / _stream_bytes(work) for one in networks]  # seconds of a stream in a second
    busy = _Busy(ground, work)
    if work.duration is not None:
        table = Table("transcode", "job", work.duration / HOUR, "hour of video")
        return plan_ways(question, ground, table, lambda at: _archive(question, busy, at, carried[at]))
    streams = float(work.streams or 1)
    notes = [f"Live: engines are kept below {transcode.HEADROOM:.0%} busy, at the balanced preset."]
    if work.goals.latency is not None:
        notes.append("goals.latency is ignored: the delay of an encoder depends on its settings.")
    table = Table(
        kind="transcode",
        per="month",
        units=streams * question.month_s / HOUR,
        unit="stream hour",
        notes=tuple(notes),
        peak=streams,
    )
    plan = plan_ways(question, ground, table, lambda at: _live(question, busy, at, carried[at]))
    winner = plan.winner
    if winner is None:
        return plan
    machine = fleet.catalog.machines[fleet.catalog.machine_index[winner.provider, winner.machine]]
    most = math.floor(paths.LINE_SHARE * outward(machine) / _stream_bytes(work))
    if (winner.rate or 0.0) / winner.machines < 0.999 * most:
        return plan
    speed = f"{number(8 * outward(machine) / 1e9, 3)} Gbit/s to the internet all day"
    return replace(plan, notes=(*plan.notes, f"The network decides the number: a machine has {speed}, {most} streams."))


def _stream_bytes(work: Transcode) -> float:
    """A second of one stream, in the direction in which more goes."""
    return max(bitrate(work.source)[0], sum(bitrate(one)[0] for one in work.outputs), 1e-9)


class _Busy:
    """How long chips are busy with the video, each asked once: machines differ in numbers and networks more than in chips."""

    def __init__(self, ground: Ground, work: Transcode) -> None:
        self.ground, self.work = ground, work
        self.ladder = transcode.ladder_of(work)
        self.made: dict[tuple[str, str, float], Terms | Cannot] = {}

    def of(self, index: int) -> Terms | Cannot:
        """Seconds of one chip of the shape for a second of one stream."""
        shape = self.ground.fleet.shapes[index]
        key = (shape.chip, shape.part, shape.share)
        if key not in self.made:
            self.made[key] = self._of(shape, self.ground.fleet.part(index))
        return self.made[key]

    def _of(self, shape: Shape, part: Part) -> Terms | Cannot:
        catalog, (source, outputs) = self.ground.fleet.catalog, self.ladder
        chip = catalog.chips[shape.chip]
        cores = 1.0
        if part.kind == "cpu":
            processors = Processors.of([self.ground.known.parts[shape.chip]], "fp32", catalog.rows("cpus"))
            cores = max(shape.share * float(processors.cores[0]), 1.0)
        media = transcode.Media.of([chip], [part], cores)
        terms = transcode.busy(media, source, outputs)
        if not np.isfinite(terms.total[0]):
            formats = f"{source.codec} to {', '.join(dict.fromkeys(out.codec for out in outputs))}"
            have = f"encoders: {media.encoders[0]:g}, decoders: {media.decoders[0]:g}"
            return Cannot(NoCodec(chip.name, formats, have), passed=FORMAT)
        return terms if part.kind == "cpu" else terms.times(1.0 / shape.share)  # a slice has its share of the engines' time


def _live(question: Question, times: _Busy, index: int, network: float) -> Ways:
    """`network`: streams that the network of a machine carries."""
    busy, ground, work = times.of(index), times.ground, times.work
    if isinstance(busy, Cannot):
        return busy
    shape, streams = ground.fleet.shapes[index], float(work.streams or 1)
    if network < 1:
        gbits = 8 * _stream_bytes(work) / 1e9
        narrow = f"one stream takes {number(gbits, 3)} Gbit/s, and its network has {number(network * gbits, 3)} for it"
        return Cannot(Unpredicted(narrow), 1.0 / network, COUNT)
    spread = float(busy.high[0] / busy.total[0])
    slower = sure_factor(spread, work.goals.sure_share)  # what falls behind is lost: there is no queue, and no other headroom
    chips = max(
        float(transcode.chips_needed(busy, streams)[0]),
        float(transcode.chips_needed(busy.times(slower), streams, headroom=1.0)[0]) if slower > 1.0 else 0.0,
    )
    needed = max(math.ceil(chips / shape.chips), math.ceil(streams / math.floor(network)))
    machines = machines_within(question, shape.chips, needed)
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
            rate=max(min(float(int(carried) * shape.chips), math.floor(network)), streams / machines),
            replicas=machines,
            rate_spread=spread,
            load_chance=carried_with(streams, machines * shape.chips / float(busy.total[0]), spread),
            use=_use(ground, index, float(busy.total[0]) * streams / (machines * shape.chips)),
        )
    ]


def _use(ground: Ground, index: int, busy: float) -> Utilisation:
    """Processors encode with their cores; elsewhere engines beside the others do, for which the rest of the chip rests."""
    part = ground.fleet.part(index)
    return Utilisation(busy if part.kind == "cpu" else ENGINES * busy, ENGINES * busy)


def _archive(question: Question, times: _Busy, index: int, network: float) -> Ways:
    """`network`: seconds of video that come and go in a second over the network of a machine."""
    busy, ground, work = times.of(index), times.ground, times.work
    if isinstance(busy, Cannot):
        return busy
    chips = ground.fleet.shapes[index].chips
    counts = machine_counts(question, chips)
    if not len(counts):
        return no_count(question, chips)
    terms = transcode.archive(busy, work.duration or 1.0, counts * chips)
    moved = (work.duration or 1.0) / (network * counts)
    seconds, low, high = (np.maximum(one, moved) for one in (terms.total, terms.low, terms.high))
    return [
        Way(
            shape=index,
            machines=int(counts[row]),
            seconds=float(seconds[row]),
            low=float(low[row]),
            high=float(high[row]),
            use=_use(ground, index, 1.0),
        )
        for row in worthwhile(question, seconds)
    ]
