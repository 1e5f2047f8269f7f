"""Import of a SkyPilot catalog: one `vms.csv` per cloud, with prices per zone.

Zones become one offer per region: the cheapest zone, and the dearest beside it for spot. GCP's file prices hosts and
accelerators apart (a row `a2-highgpu-1g` is the host alone; a row without a machine is the GPU alone), so there the
machines the catalog knows are put together from both, and a host without its accelerator is never taken for a machine.

Options: `path` (a directory with `CLOUD/vms.csv`, `CLOUD.csv` or `catalogs/v*/CLOUD/vms.csv`), `cloud`, `as_of`
(the prices' date; otherwise the file's own).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from chipwise.adapters.wire.chips import find_chip
from chipwise.adapters.wire.options import check_options
from chipwise.adapters.wire.prices import spot_verdict, usable_price
from chipwise.adapters.wire.skipped import Skipped
from chipwise.adapters.wire.tables import need_columns, read_table, user_path
from chipwise.catalog.fact import Fact
from chipwise.catalog.feed import FeedSettings, Report, Snapshot
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Offer, Purchase, Verdict
from chipwise.errors import BadInput, NoResult, UnknownName
from chipwise.spelling import nearest
from chipwise.units import GIB

OPTIONS = ("path", "cloud", "as_of")
COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price", "Region")

_SOLD_WITH_GPU = re.compile(r"(a2|a3|a4|a4x|g2|g4)-")  # GCP families whose rows are hosts only


@dataclass(frozen=True, slots=True)
class PriceRow:
    machine: str
    part: str  # accelerator
    count: float | None
    vcpus: float | None
    memory_gib: float | None
    region: str
    price: float | None
    spot: float | None


@dataclass(frozen=True, slots=True)
class Zones:
    """Prices of one thing in one region."""

    price: tuple[float, ...] = ()
    spot: tuple[float, ...] = ()

    def with_row(self, row: PriceRow) -> Zones:
        return Zones(
            self.price + (() if row.price is None else (row.price,)), self.spot + (() if row.spot is None else (row.spot,))
        )


def fetch(settings: FeedSettings, report: Report) -> Snapshot:
    check_options("skypilot", settings.options, OPTIONS)
    location = settings.options.get("path", "").strip()
    if not location:
        raise BadInput("The skypilot feed needs the directory of a SkyPilot catalog.", remedy="Give path=DIR.")
    files = _files(user_path(location))
    cloud = settings.options.get("cloud", "").strip().lower()
    if not cloud and len(files) == 1:
        cloud = next(iter(files))
    if not cloud:
        raise BadInput(f"{location} holds {', '.join(files)}.", remedy=f"Say which with cloud={next(iter(files))}.")
    if cloud not in files:
        raise UnknownName("cloud", cloud, nearest(cloud, files), remedy=f"{location} holds {', '.join(files)}.")
    report(0, 1, f"{cloud}: reading {files[cloud]}")
    snapshot = _read(files[cloud], cloud, settings)
    report(1, 1, f"{cloud}: {len(snapshot.offers)} offers")
    return snapshot


def takes(path: Path) -> bool:
    return path.is_dir()


def parts(options: Mapping[str, str]) -> list[tuple[str, Mapping[str, str]]]:
    """The clouds whose prices a catalog directory holds, or the one that is asked for."""
    wanted = [options["cloud"]] if options.get("cloud") else list(_files(user_path(options["path"])))
    return [(cloud, {**options, "cloud": cloud}) for cloud in wanted]


def _files(root: Path) -> dict[str, Path]:
    """vms.csv by cloud. Of several schema versions the highest that has the cloud is taken."""
    if not root.is_dir():
        raise BadInput(f"{root} is not a directory.", remedy="Give the directory of a SkyPilot catalog, such as a clone of it.")
    files: dict[str, Path] = {}
    versions = sorted(root.glob("catalogs/v*"), key=_version) or sorted(root.glob("v*"), key=_version)
    for base in (*versions, root):
        files |= {file.stem: file for file in sorted(base.glob("*.csv")) if file.stem not in ("vms", "images")}
        files |= {file.parent.name: file for file in sorted(base.glob("*/vms.csv"))}
    if not files:
        raise BadInput(f"{root} has no CLOUD/vms.csv and no CLOUD.csv.", remedy="Give the directory of a SkyPilot catalog.")
    return dict(sorted(files.items()))


def _version(path: Path) -> int:
    digits = path.name.removeprefix("v")
    return int(digits) if digits.isdecimal() and len(digits) < 6 else -1


def _as_of(text: str, file: Path, today: date) -> str:
    if not text:
        return min(datetime.fromtimestamp(file.stat().st_mtime, UTC).date(), today).isoformat()
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise BadInput(f"as_of={text[:40]!r} is not a date.", remedy="Write it like 2026-08-22.") from error


def _read(file: Path, cloud: str, settings: FeedSettings) -> Snapshot:
    day = _as_of(settings.options.get("as_of", "").strip(), file, settings.today)
    skipped = Skipped()
    rows = [row for row in _rows(file, skipped) if not settings.regions or row.region in settings.regions]
    if not rows:
        raise NoResult(
            f"{file} has no row for {', '.join(settings.regions) or 'any region'}.", remedy="Check the region names."
        )
    if cloud == "gcp":
        machines, prices = _put_together(rows, settings, skipped)
    else:
        machines, prices = _as_listed(rows, cloud, day, settings, skipped)
    offers = tuple(_offers(cloud, prices, day))
    if not offers:
        raise NoResult(f"{file} has no machine with a price.", remedy="Check that it is a SkyPilot catalog.")
    return Snapshot(
        provider=cloud, day=settings.today, machines=tuple(machines.values()), offers=offers, skipped=skipped.lines()
    )


def _rows(file: Path, skipped: Skipped) -> Iterator[PriceRow]:
    first = True
    for line, cells in read_table(file):
        if first:
            need_columns(file, cells, COLUMNS)
            first = False
        price, spot = usable_price(cells.get("price", "")), usable_price(cells.get("spotprice", ""))
        region = cells.get("region", "")
        if not region or (price is None and spot is None):
            skipped.note("no region" if not region else "no usable price", f"line {line}")
            continue
        # A usable count is what a usable price is: finite, above zero, not absurd.
        count, vcpus, memory = (usable_price(cells.get(name, "")) for name in ("acceleratorcount", "vcpus", "memorygib"))
        yield PriceRow(
            machine=cells.get("instancetype", ""),
            part=cells.get("acceleratorname", ""),
            count=count,
            vcpus=vcpus,
            memory_gib=memory,
            region=region,
            price=price,
            spot=spot,
        )


def _as_listed(
    rows: Iterable[PriceRow], cloud: str, day: str, settings: FeedSettings, skipped: Skipped
) -> tuple[dict[str, Machine], dict[tuple[str, str], Zones]]:
    machines: dict[str, Machine] = {}
    prices: dict[tuple[str, str], Zones] = {}
    for row in rows:
        if not row.machine:
            skipped.note("a row without a machine", row.part or row.region)
            continue
        key = (row.machine, row.region)
        prices[key] = prices.get(key, Zones()).with_row(row)
        if row.machine not in machines:
            chip = find_chip(settings.chip_of, row.part) if row.part else None
            if row.part and chip is None:
                skipped.note(f"the catalog has no chip for {row.part}", row.machine)
            memory = None if row.memory_gib is None else row.memory_gib * GIB
            fact = Fact((f"SkyPilot catalog {cloud}/vms.csv",), day)
            machines[row.machine] = Machine(
                provider=cloud,
                name=row.machine,
                chip=chip,
                chips=row.count if row.part else None,
                chip_memory_bytes=None,
                vcpus=row.vcpus,
                memory_bytes=memory,
                fact=fact,
            )
    return machines, prices


def _put_together(
    rows: Iterable[PriceRow], settings: FeedSettings, skipped: Skipped
) -> tuple[dict[str, Machine], dict[tuple[str, str], Zones]]:
    """GCP: hosts and accelerators are added up to the machines the catalog knows, region by region."""
    hosts: dict[tuple[str, str], Zones] = {}
    parts: dict[tuple[str, float, str], Zones] = {}
    for row in rows:
        if row.part and row.machine in ("", "TPU-VM"):
            part_name = row.part if row.part.startswith("tpu-") else find_chip(settings.chip_of, row.part)
            if part_name is None:
                skipped.note("the catalog has no chip for an accelerator", row.part)
                continue
            key = (part_name, 0.0 if row.part.startswith("tpu-") else row.count or 1.0, row.region)
            parts[key] = parts.get(key, Zones()).with_row(row)
        else:
            hosts[row.machine, row.region] = hosts.get((row.machine, row.region), Zones()).with_row(row)
    regions = sorted({region for _, region in hosts} | {region for _, _, region in parts})
    prices: dict[tuple[str, str], Zones] = {}
    machines: dict[str, Machine] = {}
    used: set[str] = set()
    for machine in (machine for machine in settings.known if machine.provider == "gcp"):
        host_name = machine.name.split("+")[0]
        for region in regions:
            host = hosts.get((host_name, region))
            part = parts.get((machine.chip or "", machine.chips or 0.0, region))
            total = parts.get((machine.name, 0.0, region)) if machine.name.startswith("tpu-") else None
            if total is None and host is not None and machine.chips:
                total = _sum(host, part) if part is not None else None
            elif total is None and not machine.chips:
                total = host
            if total is not None:
                prices[machine.name, region] = total
                machines[machine.name] = machine
                used.add(host_name)
    for name in sorted({name for name, _ in hosts} - used):
        reason = (
            "a host whose accelerator is priced apart, and no known machine"
            if _SOLD_WITH_GPU.match(name)
            else "no known machine"
        )
        skipped.note(reason, name)
    return machines, prices


def _sum(host: Zones, part: Zones) -> Zones:
    """Cheapest with cheapest, dearest with dearest: the file does not say which zones pair."""
    price = (min(host.price) + min(part.price),) if host.price and part.price else ()
    paired = host.spot and part.spot
    return Zones(price, (min(host.spot) + min(part.spot), max(host.spot) + max(part.spot)) if paired else ())


def _offers(cloud: str, prices: Mapping[tuple[str, str], Zones], day: str) -> Iterator[Offer]:
    source = f"SkyPilot catalog {cloud}/vms.csv"
    for (machine, region), zones in sorted(prices.items()):
        on_demand = min(zones.price) if zones.price else None
        if on_demand is not None:
            yield Offer(
                provider=cloud,
                machine=machine,
                region=region,
                purchase=Purchase.ON_DEMAND,
                usd_per_hour=on_demand,
                as_of=day,
                source=source,
            )
        if zones.spot:
            verdict, reason = spot_verdict(min(zones.spot), on_demand)
            reason = reason if verdict is not Verdict.FINE else ""
            yield Offer(
                provider=cloud,
                machine=machine,
                region=region,
                purchase=Purchase.SPOT,
                usd_per_hour=min(zones.spot),
                as_of=day,
                usd_per_hour_max=max(zones.spot),
                verdict=verdict,
                why=reason,
                source=source,
            )
