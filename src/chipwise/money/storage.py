"""Where a job's data is kept: the cheapest storage that feeds the chips, and what it costs.

    rate of a machine   min(node, streams x part / (first byte + part / stream)), part = min(file, 64 MB)
    capacity            provisioned bytes x USD per byte and month x hours / 730, for every volume
    provisioned         max(data, the least that is sold, rate / (rate that comes with a byte))
    throughput, IOPS    what is above the included amount, x USD per month x hours / 730
    requests            files (in parts of 64 MB) x passes that are read from the object store x USD per request

Prices are rows of the table `storage`. Speeds of tiers come in as an argument: the prediction of feeding reads the same
figures, and two readers of one file would sooner or later disagree about what it says.

Data fits a machine's memory or disk when the whole set does, as the prediction assumes; the first pass then comes from
the storage behind it. Block volumes hold a copy for each machine. Left out: limits of a whole bucket, and uploads (which
`transfer` knows).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, isfinite
from typing import NamedTuple

from chipwise.catalog.price_tables import StoragePrice
from chipwise.errors import InvalidSettings, Problem
from chipwise.money.cost import Cost, Line
from chipwise.money.storage_prices import TIERS, Priced, Shelves, Speed
from chipwise.text import decimal_size, price, usd
from chipwise.units import GB, HOUR, MB, MONTH

MEMORY_SHARE, DISK_SHARE = 0.7, 0.9  # of host memory that the file cache may take, and of the disk; as in feeding
PART = 64 * MB  # large files are asked for in parts: 8 to 64 MB keep a connection busy and requests few
SHARD = 256 * MB  # files of unknown size: what sharded data sets are packed into
MOST_WORKERS, MOST_PREFETCH = 32, 8  # reading processes of a machine, and files each has under way
PATIENCE = 0.05  # share of the job that chips may wait for a first pass, when later ones come from memory or disk
UNPACKED = 1e9  # bytes/s that one core makes of zstd; its authors state 1.1 to 1.7 GB/s
_IO = 256 * 1024  # bytes that block volumes count as one operation
_HOURS = MONTH / HOUR
_CHARGES = ("storage", "storage throughput", "storage IOPS", "storage requests", "local disks")
# How many times smaller zstd makes data that people store plainly. Rules of thumb; pictures, sound, video, Parquet and
# whatever is not named are packed already, or nobody knows.
SHRINKS = {"text": 3.0, "json": 4.0, "jsonl": 4.0, "csv": 3.0, "tsv": 3.0, "xml": 4.0, "tokens": 1.5, "npy": 1.3, "fastq": 4.0}


class _Candidate(NamedTuple):
    feeds: bool
    usd: float
    delivered: float  # stored bytes/s, all machines
    tier: str
    priced: Priced
    resident: bool
    charges: tuple[float, ...]  # USD by `_CHARGES`
    provisioned: float


class _Need(NamedTuple):
    """One job's appetite in stored bytes."""

    size: float
    rate: float  # bytes/s of all machines together
    machines: float
    months: float
    passes: float
    part: float  # bytes of one request
    gets: float  # requests of one pass
    shrink: float  # bytes of data in a stored one
    disk: float  # of one machine
    memory: float
    in_place: bool = False  # an object store there holds it already

    def fits(self, place: str) -> bool:
        """Whether passes after the first can come from a machine's own memory or disk."""
        room = MEMORY_SHARE * self.memory if place == "memory" else DISK_SHARE * self.disk
        return self.passes > 1.0 and self.size <= room


@dataclass(frozen=True, slots=True)
class StorageChoice:
    """The storage that was chosen. What reads as text is made when it is asked for: most choices lose to other machines."""

    tier: str
    product: str  # aws S3 Standard storage
    usd: float
    delivered_bytes_per_s: float  # to all machines together, unpacked
    feeds: bool  # False: storage is the bottleneck, and this is the fastest there is
    resident: bool  # kept in host memory after the first pass
    workers: int  # reading processes of a machine; preprocessing may need more
    prefetch: int  # files that each worker has under way
    compression: str  # zstd | none
    assumed: tuple[str, ...]
    _best: _Candidate
    _candidates: tuple[_Candidate, ...]  # all that were weighed
    _need: _Need

    @property
    def lines(self) -> tuple[Line, ...]:
        named = zip(_CHARGES, self._best.charges, strict=True)
        return tuple(Line(name, usd, _formula(name, self._best, self._need)) for name, usd in named if usd)

    @property
    def cost(self) -> Cost:
        return Cost.of(self.lines)

    @property
    def why(self) -> str:
        return _reason(self._best, sum(one.feeds for one in self._candidates), self._need)


class Tiers:
    """The storage of every provider and region, to choose from."""

    def __init__(self, prices: Iterable[StoragePrice], speeds: Mapping[str, Speed]) -> None:
        self._shelves = Shelves(prices, speeds)
        self._speeds = speeds
        self._rates: dict[float, dict[str, float]] = {}  # by size of a request: the same for all machines of a job

    def choose(
        self,
        provider: str,
        region: str,
        size_bytes: float,
        needed_bytes_per_s: float,
        machines: float,
        hours: float,
        local_disk_bytes: float | None = None,
        host_memory_bytes: float | None = None,
        passes: float = 1.0,
        file_bytes: float | None = None,
        data_format: str | None = None,
        in_place: bool = False,
    ) -> StorageChoice:
        """The cheapest storage that feeds `needed_bytes_per_s`, which all machines take together, for `hours`.

        Disk and memory are of one machine; None is none. `file_bytes` is the mean size of a file; None means large shards.
        `in_place`: the data lies in an object store there already, which is paid with or without the job.
        """
        disk, memory, shrink = local_disk_bytes or 0.0, host_memory_bytes or 0.0, 1.0
        file = SHARD if file_bytes is None else file_bytes
        _check(size_bytes, needed_bytes_per_s, machines, hours, disk, memory, passes, file)
        if data_format:
            shrink = SHRINKS.get(data_format.lower().lstrip("."), 1.0)
        request_bytes = min(file, PART)
        need = _Need(
            size=size_bytes / shrink,
            rate=needed_bytes_per_s / shrink,
            machines=machines,
            months=hours / _HOURS,
            passes=passes,
            part=request_bytes / shrink,
            gets=size_bytes / request_bytes,
            shrink=shrink,
            disk=disk,
            memory=memory,
            in_place=in_place,
        )
        shelf = self._shelves.of(provider, region)
        rates = self._rates.get(need.part)
        if rates is None:
            rates = self._rates[need.part] = {tier: _machine_rate(self._speeds[tier], need.part) for tier in TIERS}
        cache = "memory" if need.fits("memory") else ""
        on_disk = not cache and need.fits("local-nvme")
        candidates = []
        for priced in shelf.products:
            candidates.append(_weigh(priced, need, rates, cache))
            if on_disk and priced.product.tier == "object-store":
                candidates.append(_weigh(priced, need, rates, "local-nvme", shelf.local_usd_per_byte))
        feeding = [one for one in candidates if one.feeds]
        best = min(feeding, key=_cheapest) if feeding else max(candidates, key=_fastest)
        workers, prefetch = _readers(best.priced.speed, need)
        return StorageChoice(
            tier=best.tier,
            product=best.priced.name,
            usd=best.usd,
            delivered_bytes_per_s=best.delivered * shrink,
            feeds=best.feeds,
            resident=best.resident,
            workers=workers,
            prefetch=prefetch,
            compression="zstd" if shrink > 1.0 else "none",
            assumed=best.priced.assumed + (shelf.local_assumed if best.tier == "local-nvme" else ()),
            _best=best,
            _candidates=tuple(candidates),
            _need=need,
        )


def _weigh(priced: Priced, need: _Need, rates: Mapping[str, float], cache: str, kept_usd_per_byte: float = 0.0) -> _Candidate:
    """What a product costs and gives; `cache` is where passes after the first come from, if not from it."""
    product, operation = priced.product, min(need.part, _IO)
    machine = min(rates[product.tier], product.most_iops * operation)
    first = machine * need.machines
    if priced.one_mount:
        first = machine
    wanted = min(need.rate, first)
    volumes = 1.0 if priced.shared else need.machines
    volume_rate = wanted / volumes
    provisioned = max(need.size, product.least_bytes) if need.size else 0.0
    already_paid = need.in_place and product.tier == "object-store"
    if product.per_byte:
        provisioned = max(provisioned, volume_rate / product.per_byte)
        first = min(first, max(wanted, provisioned * product.per_byte * volumes))
    elif product.rate_item:
        first = min(first, max(wanted, product.included * volumes))
    paid = need.months * volumes
    # A machine fetches a file the first time it needs it, so never more often than it is passed.
    reads = min(need.machines, need.passes) if cache else need.passes
    charges = (
        0.0 if already_paid else provisioned * priced.usd_per_byte * paid,
        max(0.0, volume_rate - product.included) * priced.usd_per_rate * paid,
        max(0.0, volume_rate / operation - product.included_iops) * priced.usd_per_iops * paid,
        need.gets * reads * priced.usd_per_get,
        need.size * kept_usd_per_byte * need.months * need.machines,
    )
    later = rates[cache] * need.machines if cache else first
    delivered = _delivered(need, first, later)
    tier = cache if cache == "local-nvme" else product.tier
    return _Candidate(
        feeds=delivered >= need.rate,
        usd=sum(charges),
        delivered=delivered,
        tier=tier,
        priced=priced,
        resident=cache == "memory",
        charges=charges,
        provisioned=provisioned,
    )


def _machine_rate(speed: Speed, part: float) -> float:
    """Bytes/s that a machine reads with all the streams it may have."""
    stream_rate = part / (speed.first_byte_s + part / speed.stream)
    return min(speed.node, MOST_WORKERS * MOST_PREFETCH * stream_rate)


def _delivered(need: _Need, first: float, later: float) -> float:
    """Bytes/s over all passes: what later ones get, unless chips wait too long for some of them."""
    slow = need.rate / first - 1.0 if need.rate > first else 0.0
    if later >= need.rate and slow <= (PATIENCE * need.passes if later > first else 0.0):
        return later
    passes = max(need.passes, 1.0)
    return need.rate * passes / (1.0 + slow + (passes - 1.0) * max(1.0, need.rate / later))


def _readers(speed: Speed, need: _Need) -> tuple[int, int]:
    """(workers, prefetch) of a machine for the pass that comes from storage."""
    rate = need.rate / need.machines
    streams = rate * (speed.first_byte_s / need.part + 1.0 / speed.stream)
    prefetch = min(MOST_PREFETCH, max(2, ceil(streams / MOST_WORKERS)))
    reading = min(MOST_WORKERS, max(1, ceil(streams / prefetch)))
    return reading + (ceil(rate * need.shrink / UNPACKED) if need.shrink > 1.0 else 0), prefetch


def _cheapest(one: _Candidate) -> tuple[float, float]:
    return (one.usd, -one.delivered)


def _fastest(one: _Candidate) -> tuple[float, float]:
    return (one.delivered, -one.usd)


# -- in words


def _formula(name: str, best: _Candidate, need: _Need) -> str:
    hours = f"{need.months * _HOURS:.4g} h"
    volumes = "" if best.priced.shared else f" x {need.machines:g} volumes"
    match name:
        case "storage":
            return (
                f"{decimal_size(best.provisioned)}{volumes} x {price(best.priced.usd_per_byte * GB)} per GB and month x {hours}"
            )
        case "storage requests":
            return f"{need.gets:,.0f} files or parts a pass x {price(best.priced.usd_per_get * 1e3)} per 1,000"
        case "local disks":
            return f"{decimal_size(need.size)} x {need.machines:g} machines x {hours}"
        case _:
            return f"above what is included{volumes} x {hours}"


def _reason(best: _Candidate, feeding: int, need: _Need) -> str:
    delivered, wanted = f"{decimal_size(best.delivered * need.shrink)}/s", f"{decimal_size(need.rate * need.shrink)}/s"
    if best.feeds:
        rank = f"the cheapest of {feeding} that do"
        reason = f"{best.tier} gives {delivered} where {wanted} is needed, at {usd(best.usd)}: {rank}"
    else:
        reason = f"bottleneck: {best.tier}, the fastest here, gives {delivered} of {wanted}"
    if best.resident or best.tier == "local-nvme":
        place = "memory" if best.resident else "the local disk"
        reason += f"; after a first pass from {best.priced.product.tier} it is read from {place}"
    if need.in_place and best.priced.product.tier == "object-store":
        reason += "; it is there already, so keeping it is not counted"
    if not best.feeds and need.part * need.shrink < MB:
        reason += f"; files of {decimal_size(need.part * need.shrink)} are slow to open: "
        reason += f"pack them into shards of {decimal_size(SHARD)}"
    return reason


def _check(
    size: float, rate: float, machines: float, hours: float, disk: float, memory: float, passes: float, file: float
) -> None:
    right = min(size, rate, hours, disk, memory) >= 0.0 and machines >= 1.0 and passes > 0.0 and file > 0.0
    if right and isfinite(size + rate + machines + hours + disk + memory + passes + file):
        return
    rules = (
        ("size_bytes", size, size >= 0.0, "0 or more"),
        ("needed_bytes_per_s", rate, rate >= 0.0, "0 or more"),
        ("machines", machines, machines >= 1.0, "1 or more"),
        ("hours", hours, hours >= 0.0, "0 or more"),
        ("local_disk_bytes", disk, disk >= 0.0, "0 or more, or None"),
        ("host_memory_bytes", memory, memory >= 0.0, "0 or more, or None"),
        ("passes", passes, passes > 0.0, "above 0"),
        ("file_bytes", file, file > 0.0, "above 0, or None where files are large"),
    )
    wrong = (
        Problem(n, f"{v:g} is not possible", None, allowed) for n, v, holds, allowed in rules if not (holds and isfinite(v))
    )
    raise InvalidSettings(*wrong)
