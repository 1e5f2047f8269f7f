"""Whether data arrives as fast as the chips take it: read, preprocess, copy, compute, all per step and node.

    read        max(bytes / node bandwidth, samples * (objects * first byte + bytes / stream bandwidth) / streams)
    preprocess  samples / (workers * samples per second and worker)
    copy        bytes to the device / (chips * link), pinned memory; pageable memory at 0.4 of that
    step        the largest of these and of compute when loading overlaps, their sum when it does not

From the second epoch on data comes from the nearest place that holds all of it: the device, the file cache, the local disk.
Storage figures are rows of `data/perf/storage.csv`. A copy over PCIe 5 ran at 55.4 GB/s from pinned memory (H200 host, measured
2026-11-15). Rates per worker are for one vCPU (half a core) and rules of thumb; sizes and codecs move them by a factor of two.
Left out: contention between reading and preprocessing for the same processors, decoding on the device, uneven samples.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache, partial

import numpy as np

from chipwise.errors import BadInput, Problem
from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.tables import rows
from chipwise.spelling import nearest
from chipwise.units import GB

# Samples per second and vCPU: sequences of 4,096 stored tokens; documents of 4 kB; 500 x 375 pictures cut to 224; 15 s of
# FLAC to mel frames; 10 s clips at 224 lines; rows of a table.
RATES = {"tokens": 20_000.0, "text": 300.0, "jpeg": 120.0, "audio": 80.0, "video": 5.0, "table": 200_000.0}
PINNED = 55e9  # bytes/s, PCIe 5 x16
PAGEABLE = 0.4  # of pinned: staged by one thread of the host
MEMORY_SHARE, DISK_SHARE = 0.7, 0.9  # of host memory that the file cache may take, and of the disk
TERMS = ("compute", "read", "preprocess", "copy")


@dataclass(frozen=True, slots=True)
class Tier:
    name: str
    node: float  # bytes/s that one machine gets
    stream: float  # bytes/s of one request or file
    first_byte_s: float
    basis: str


@cache
def tiers() -> dict[str, Tier]:
    return {
        row["tier"]: Tier(
            name=row["tier"],
            node=float(row["node_gb_per_s"]) * GB,
            stream=float(row["stream_gb_per_s"]) * GB,
            first_byte_s=float(row["first_byte_ms"]) / 1e3,
            basis=row["basis"],
        )
        for row in rows("storage.csv")
    }


@dataclass(frozen=True, slots=True)
class Feeding:
    """One node's appetite and what it is fed from; columns."""

    compute_s: Array  # of a step, when data is there
    samples: Array  # per step and node
    sample_bytes: Array  # as stored
    device_bytes: Array  # of a sample when it is copied
    kind: Coded = field(default_factory=partial(Coded.of, "tokens"))
    tier: Coded = field(default_factory=partial(Coded.of, "local-nvme"))
    workers: Array = field(default_factory=partial(column, 8.0))  # vCPUs that preprocess
    streams: Array = field(default_factory=partial(column, 8.0))  # reads under way at once
    objects: Array = field(default_factory=partial(column, 0.0))  # files opened per sample; 0: large shards
    chips: Array = field(default_factory=partial(column, 1.0))
    link: Array = field(default_factory=partial(column, PINNED))  # bytes/s to one device from pinned memory
    pinned: Array = field(default_factory=partial(column, 1.0))
    overlapped: Array = field(default_factory=partial(column, 1.0))
    dataset_bytes: Array = field(default_factory=partial(column, np.inf))
    device_memory: Array = field(default_factory=partial(column, 0.0))  # spare, of one device
    host_memory: Array = field(default_factory=partial(column, 0.0))
    local_disk: Array = field(default_factory=partial(column, 0.0))

    def check(self) -> None:
        """Raises BadInput that names the column and what is allowed."""
        problems = [
            Problem(
                field=name, message=f"{text!r} is not known", line=None, allowed=", ".join(known), nearest=nearest(text, known)
            )
            for name, values, known in (("kind", self.kind, RATES), ("tier", self.tier, tiers()))
            for text in values.names
            if text not in known
        ]
        for attribute in fields(self):
            values = getattr(self, attribute.name)
            if isinstance(values, Coded):
                continue
            bound = "above 0" if attribute.name in ("samples", "workers", "streams", "chips", "link") else "0 or more"
            if not np.all(values > 0 if bound == "above 0" else values >= 0):
                problems.append(Problem(attribute.name, f"{float(np.min(values)):g} is not possible", None, bound))
        if problems:
            raise BadInput("\n".join(str(problem) for problem in problems))


@dataclass(frozen=True, slots=True)
class Fed:
    """Seconds per step by term, and what would remove the bottleneck."""

    terms: dict[str, Array]
    step_s: Array
    place: Coded  # where data is read from
    workers_needed: Array  # for preprocessing to take no longer than computing
    bandwidth_needed: Array  # bytes/s that a node must read for the same

    @property
    def bottleneck(self) -> Coded:
        """The name of every row's longest term."""
        stacked = np.vstack(np.broadcast_arrays(*(self.terms[name] for name in TERMS)))
        return Coded(TERMS, np.argmax(stacked, axis=0).astype(np.intp))

    @property
    def waiting_share(self) -> Array:
        """Of a step, how long chips wait for data."""
        return 1.0 - self.terms["compute"] / self.step_s


def places(feeding: Feeding) -> Coded:
    """Where data is read from after the first epoch: the nearest place that holds all of it."""
    size = feeding.dataset_bytes
    count = max(len(getattr(feeding, one.name)) for one in fields(feeding))
    names = ("device", "memory", "local-nvme", *feeding.tier.names)
    place: Array = np.broadcast_to(feeding.tier.index + 3, (count,))
    place = np.where(size <= DISK_SHARE * feeding.local_disk, 2, place)
    place = np.where(size <= MEMORY_SHARE * feeding.host_memory, 1, place)
    small = feeding.kind.look_up(lambda name: float(name == "tokens")) > 0  # what needs preprocessing stays with the host
    place = np.where(small & (size <= feeding.device_memory), 0, place)
    return Coded(names, np.broadcast_to(place, (count,)).astype(np.intp))


def feed(feeding: Feeding, later: bool = False) -> Fed:
    """Terms of a step in the first epoch, or in those after it (`later`)."""
    feeding.check()
    place = places(feeding) if later else feeding.tier
    resident = place.look_up(lambda name: float(name == "device"))

    def tier_of(name: str) -> Tier:
        return tiers()["memory" if name == "device" else name]

    stored, moved = feeding.samples * feeding.sample_bytes, feeding.samples * feeding.device_bytes
    sample_s = feeding.objects * place.look_up(lambda name: tier_of(name).first_byte_s)
    sample_s = sample_s + feeding.sample_bytes / place.look_up(lambda name: tier_of(name).stream)
    shared = stored / place.look_up(lambda name: tier_of(name).node)
    read = (1.0 - resident) * np.maximum(shared, feeding.samples * sample_s / feeding.streams)
    rate = feeding.kind.look_up(lambda name: RATES[name])
    preprocess = (1.0 - resident) * feeding.samples / (feeding.workers * rate)
    link = feeding.link * np.where(feeding.pinned > 0, 1.0, PAGEABLE)
    copy = (1.0 - resident) * moved / (feeding.chips * link)
    compute = np.broadcast_to(feeding.compute_s, read.shape)
    longest = np.maximum(np.maximum(compute, read), np.maximum(preprocess, copy))
    step = np.where(feeding.overlapped > 0, longest, compute + read + preprocess + copy)
    safe = np.maximum(feeding.compute_s, 1e-12)
    return Fed(
        terms={"compute": compute, "read": read, "preprocess": preprocess, "copy": copy},
        step_s=step,
        place=place,
        workers_needed=np.ceil((1.0 - resident) * feeding.samples / (rate * safe)),
        bandwidth_needed=(1.0 - resident) * stored / safe,
    )
