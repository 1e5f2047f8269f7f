"""What one model takes of every chip that it may share: a share of its speed and memory, or the smallest slice.

A model that has a share s of a chip in turns is reckoned as on a chip of s times the rates and bandwidth: that is what is
left to it while the others are busy, so its goals hold then too; mostly they are not, and it does better. The share taken is
the smallest of `STEPS` at which it answers its requests within its goals. Its memory is what is stored, cached and worked with
while as many requests run as come on average, plus two square roots of them (Poisson: more than that run 2% of the time).

A slice has its part of the compute and, by its memory, of the bandwidth; both as the chip's table of profiles states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chipwise.catalog.sharing import Slice
from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.memory_serving import kv_bytes, serving_memory
from chipwise.perf.model import Model
from chipwise.perf.part import Part, scaled
from chipwise.perf.predict_serving import Generation
from chipwise.perf.under_load import running
from chipwise.planner.fleet import Fleet, Index, Shape
from chipwise.planner.generation import search as generation
from chipwise.planner.generation.job import ServingJob, ask_of
from chipwise.planner.several.packing import ALONE, IN_SLICES, IN_TURNS, MOST_MEMORY, MOST_SHARE, Host, Item, Profile
from chipwise.units import GB

STEPS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7)  # all of it: alone
_UNITS = {7: 8}  # memory units of a chip by its compute units, where they differ


@dataclass(frozen=True, slots=True)
class Cut:
    """A part of a host's chip: all of it, a share in turns, or a slice."""

    host: int
    share: float = 1.0
    profile: int = -1


@dataclass(frozen=True)
class Cuts:
    """Every way to use a part of every host, as a fleet of its own."""

    hosts: tuple[Host, ...]
    fleet: Fleet
    cuts: tuple[Cut, ...]  # by shape of the fleet


def profiles_of(slices: Sequence[Slice], chip: str, memory_bytes: float) -> tuple[int, tuple[Profile, ...]]:
    """Compute units of a chip and its profiles, the smallest first; (0, ()): it cannot be cut."""
    profiles = [one for one in slices if one.chip == chip and one.memory_gb and one.instances]
    if not profiles:
        return 0, ()
    compute = max(_compute(one) for one in profiles)
    units = _UNITS.get(compute, compute)
    cuts = []
    for row in profiles:
        assert row.memory_gb is not None
        size = max(round(row.memory_gb * GB / memory_bytes * units), 1)
        size = 1 << (size - 1).bit_length()
        cuts.append(Profile(row.profile, _compute(row), size, tuple(at * size for at in range(row.instances or 1))))
    return compute, tuple(sorted(cuts, key=lambda one: (one.memory, one.compute)))


def _compute(one: Slice) -> int:
    return int(one.profile.split("g", 1)[0])


def cuts_of(fleet: Fleet, shapes: Sequence[int], hosts: Sequence[Host], slices: Mapping[tuple[str, str], float]) -> Cuts:
    """`shapes` are one shape of every host; `slices` the memory in bytes of a chip's profile."""
    parts: dict[str, Part] = {}
    places: list[Shape] = []
    cuts: list[Cut] = []

    def add(part: Part, cut: Cut) -> None:
        parts[part.name] = part
        places.append(Shape(part=part.name, chips=1, fabric=0.0, memory_bytes=part.memory_bytes, base_chip=part.name))
        cuts.append(cut)

    for index, (shape, host) in enumerate(zip(shapes, hosts, strict=True)):
        part = fleet.part(shape)
        add(part, Cut(index))
        if host.in_turns:
            for share in STEPS:
                add(scaled(part, f"{part.name} at {share:g}", share, part.memory_bytes), Cut(index, share))
        units = _UNITS.get(host.compute, host.compute)
        for place, profile in enumerate(host.profiles):
            cut = scaled(part, f"{part.name} {profile.name}", profile.compute / host.compute, slices[part.name, profile.name])
            add(replace(cut, bandwidth=part.bandwidth * profile.memory / units), Cut(index, 1.0, place))
    small = Fleet(
        catalog=fleet.catalog,
        parts=fleet.parts.joined(parts.values()),
        shapes=tuple(places),
        shape_of=np.zeros(0, dtype=np.intp),
        unusable=(),
        reach=np.zeros(0),
    )
    return Cuts(tuple(hosts), small, tuple(cuts))


def host_usage(job: ServingJob, cuts: Cuts, model: Model, number: int, rules: int, allowed: Sequence[bool]) -> Item:
    """What the model takes of every host; `allowed` by host."""
    shapes = [at for at, cut in enumerate(cuts.cuts) if allowed[cut.host]]
    serving = generation.search(job, cuts.fleet, model, shapes, (1, len(cuts.cuts)))
    able = np.flatnonzero((serving.fits > 0) & (serving.rate >= job.rate * (1.0 - 1e-9)) & (serving.rate > 0))
    bytes_needed = _bytes(job, cuts.fleet, model, serving, able)
    count = len(cuts.hosts)
    alone, profile = np.zeros(count, dtype=bool), [-1] * count
    precision = {how: [""] * count for how in (ALONE, IN_TURNS, IN_SLICES)}
    share, memory, fullest = np.full(count, np.inf), np.full(count, np.inf), np.full(count, np.inf)
    for row, needed in zip(able.tolist(), bytes_needed.tolist(), strict=True):
        cut, format_of = cuts.cuts[serving.shape[row]], serving.precision.name_at(row)
        if cut.profile >= 0:
            if profile[cut.host] < 0 or cut.profile < profile[cut.host]:
                profile[cut.host], precision[IN_SLICES][cut.host] = cut.profile, format_of
        elif cut.share == 1.0:
            if not alone[cut.host]:  # of formats that are as cheap the one that was asked for first
                alone[cut.host], precision[ALONE][cut.host] = True, format_of
        else:
            full = max(cut.share / MOST_SHARE, needed / (MOST_MEMORY * cuts.hosts[cut.host].memory_bytes))
            if full < fullest[cut.host]:
                fullest[cut.host], share[cut.host], memory[cut.host] = full, cut.share, needed
                precision[IN_TURNS][cut.host] = format_of
    return Item(model=number, rules=rules, alone=alone, share=share, memory=memory, profile=profile, precision=precision)


def _bytes(job: ServingJob, fleet: Fleet, model: Model, serving: generation.Serving, rows: Index) -> Array:
    """Bytes that are in use while the asked rate runs; at least the longest sequence is held."""
    if not len(rows):
        return np.zeros(0)
    precision = Coded(serving.precision.names, serving.precision.index[rows])
    ask = ask_of(job, fleet, serving.shape[rows], precision, serving.tp[rows], serving.pp[rows])
    flowing: Generation = replace(ask, scenario=Coded.of("open"), rate=column(job.rate))
    mean = running(flowing, model)
    setup = ask.setup.change(batch=np.ceil(mean + 2.0 * np.sqrt(mean)))
    longest = ask.setup.change(input_len=column(max(job.longest - job.output_len, job.input_len, 1.0)))
    used = serving_memory(ask.model, setup)
    return np.asarray(used.total + np.maximum(kv_bytes(ask.model, longest) - used.kv_cache, 0.0))
