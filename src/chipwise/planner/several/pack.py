"""Several small models on few chips, from their workload files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.catalog.offer import PURCHASES
from chipwise.catalog.region import region_phrase
from chipwise.catalog.sharing import mig_profiles, modes_of
from chipwise.errors import BadInput, NoResult
from chipwise.perf.arrays import Array
from chipwise.planner.defaults import PORTING_SAVES, PORTING_USD, ported_kinds
from chipwise.planner.fleet import Index
from chipwise.planner.generation.job import ServingJob
from chipwise.planner.generation.plan import generation_job, generation_shapes, serving_hours
from chipwise.planner.ground import PlanGround, ground_for
from chipwise.planner.load.plan import with_recording
from chipwise.planner.preference import PORTED, effort, pays
from chipwise.planner.pricing import Priced, Work, price
from chipwise.planner.several import packing
from chipwise.planner.several.packing import Bin, Host, Item, Packing, Prices, Profile
from chipwise.planner.several.sharing import Cuts, cuts_of, host_usage, profiles_of
from chipwise.predictor.anchoring import carried_over
from chipwise.text import usd as usd_text
from chipwise.units import GB, HOUR, MONTH, YEAR
from chipwise.workload.kinds import Serve
from chipwise.workload.pipeline import Workload

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

MOST_COPIES = 300  # of all models together: beyond, finding who goes with whom takes minutes
_NOT_HERE = ("cpu", "fpga", "edge")  # kinds that are no accelerators to share; `plan` tells whether a processor is enough


@dataclass(frozen=True, slots=True)
class Resident:
    """A model on a machine."""

    name: str
    path: str
    precision: str  # of the weights
    share: float | None  # of the chip's speed, in turns
    memory_bytes: float | None
    profile: str  # of a slice; empty: none


@dataclass(frozen=True, slots=True)
class Shared:
    """One machine with one chip, and the models on it."""

    provider: str
    machine: str
    region: str
    chip: str
    memory_bytes: float
    purchase: str
    sharing: str  # alone, time sharing, MIG
    residents: tuple[Resident, ...]
    usd: float

    @property
    def title(self) -> str:
        return f"{self.provider} {self.machine} {region_phrase(self.region)}"


@dataclass(frozen=True, slots=True)
class Packed:
    machines: tuple[Shared, ...]
    usd: float
    apart: tuple[Shared, ...]  # one chip each
    apart_usd: float
    proven: bool
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Request:
    path: str
    work: Serve
    known: Known
    job: ServingJob
    offers: Index


def pack(known: Known, services: Sequence[tuple[str, Workload]]) -> Packed:
    """`services` are workloads, each with the path of its file."""
    ground = ground_for(known, wide=True)
    requests = [_request(known, ground, path, work) for path, work in services]
    market = _Market(ground, requests)
    items, owners = _items(market, requests)
    packed, prices, saving = _without_vain_porting(items, market, requests)
    if packed is None:
        raise NoResult("No machine is allowed for some of them.", remedy="chipwise plan FILE shows what is missing for each.")
    machines, apart = (
        tuple(market.shared(one, items, owners, requests) for one in bins)
        for bins in (packed.bins, packing.apart(items, market.hosts, prices))
    )
    limits = f"{packing.MOST_SHARE:.0%} of a chip's speed and {packing.MOST_MEMORY:.0%} of its memory together"
    alone = "each keeps its goals with its share alone. Machines with one chip only."
    notes = [*saving, f"Assumed: models in turns take at most {limits}; {alone}"]
    if any(one.work.goals.budget is not None for one in requests):
        notes.append("goals.budget is ignored here: the cost of a shared machine belongs to all its models.")
    if not packed.proven:
        notes.append(f"More than {packing.EXACT} models and copies: placed largest first, not proven to be the cheapest.")
    return Packed(
        machines=machines,
        usd=packed.usd,
        apart=apart,
        apart_usd=sum(one.usd for one in apart),
        proven=packed.proven,
        notes=tuple(notes),
    )


def _without_vain_porting(
    items: Sequence[Item], market: _Market, requests: Sequence[_Request]
) -> tuple[Packing | None, Prices, list[str]]:
    """The cheapest; chips that need porting only where they save as much as `plan` asks of it. With what they would save."""
    parts, fleet = [shapes[0] for shapes in market.shapes], market.ground.fleet
    native = frozenset.intersection(*(ported_kinds(one.work, lambda _: False) for one in requests))
    moved = np.array([effort(fleet.part(at), native) >= PORTED for at in parts], dtype=bool)
    cheapest = packing.pack(items, market.hosts, market.prices)
    if cheapest is None or not any(moved[one.host] for one in cheapest.bins):
        return cheapest, market.prices, []

    def unmoved_prices(rules: int) -> Array:
        return np.where(moved, np.inf, market.prices(rules))

    unmoved = packing.pack(items, market.hosts, unmoved_prices)
    if unmoved is None or bool(pays(np.array(cheapest.usd), unmoved.usd, YEAR / MONTH)):
        return cheapest, market.prices, []
    chips = " and ".join(dict.fromkeys(market.hosts[one.host].name for one in cheapest.bins if moved[one.host]))
    saved = f"{1 - cheapest.usd / unmoved.usd:.1%} less"
    needed = f"at least {PORTING_SAVES:.0%} and {usd_text(PORTING_USD)} a year"
    return (
        unmoved,
        unmoved_prices,
        [f"With {chips} it would cost {usd_text(cheapest.usd)}, {saved}; porting must save {needed}."],
    )


def _request(known: Known, ground: PlanGround, path: str, workload: Workload) -> _Request:
    work = with_recording(known, workload, path)
    if not isinstance(work, Serve) or work.devices:
        kind = "edge" if isinstance(work, Serve) else getattr(work, "kind", "no serving")
        raise BadInput(
            f"{path} is {kind} work, and only services of language models are packed.", remedy=f"chipwise plan {path} plans it."
        )
    if work.input_tokens is None or work.output_tokens is None:
        raise BadInput(
            f"{path} serves no language model: it has no input_tokens and output_tokens.",
            remedy=f"chipwise plan {path} plans it.",
        )
    if work.arrival.rate is None:
        raise BadInput(f"{path} gives no rate of requests.", remedy="Packing needs one: arrival: {rate: 1 req/s}.")
    context, job = generation_job(carried_over(known, path, work).known, path, work)
    ok, _ = generation_shapes(ground, work, context)
    return _Request(path=path, work=work, known=context, job=job, offers=ok.offers)


class _Market:
    """Hosts (machines with one chip, by part) and what the cheapest allowed offer of each costs a month."""

    def __init__(self, ground: PlanGround, requests: Sequence[_Request]) -> None:
        self.ground = ground
        fleet = ground.fleet
        machine = np.frombuffer(fleet.catalog.offers.machine, dtype=np.int32)
        offered = np.zeros(len(fleet.shapes), dtype=bool)
        for request in requests:
            offered[fleet.shape_of[machine[request.offers]]] = True
        by_part: dict[str, list[int]] = {}
        for index in np.flatnonzero(offered).tolist():
            if fleet.shapes[index].chips == 1 and fleet.part(index).kind not in _NOT_HERE:
                by_part.setdefault(fleet.shapes[index].part, []).append(index)
        self.shapes = list(by_part.values())
        self.hosts = tuple(self._host(found[0]) for found in self.shapes)
        self.host_of = np.full(len(fleet.shapes), -1, dtype=np.intp)
        for host, shapes in enumerate(self.shapes):
            self.host_of[shapes] = host
        kinds = {(one.offers.tobytes(), _hours(one)): None for one in requests}
        self.kinds = [(np.frombuffer(offers, dtype=np.intp), hours) for offers, hours in kinds]
        self.rules_of = [list(kinds).index((one.offers.tobytes(), _hours(one))) for one in requests]
        self.known: dict[int, tuple[Array, Index, Priced]] = {}

    def _host(self, index: int) -> Host:
        shape, part = self.ground.fleet.shapes[index], self.ground.fleet.part(index)
        chip = self.ground.fleet.catalog.chips.get(shape.chip)
        if chip is None or not shape.is_whole:
            return Host(part.name, part.memory_bytes, in_turns=False)
        data = self.ground.fleet.catalog.data
        ways = {one.mode for one in modes_of(chip, data)}
        compute, profiles = profiles_of(mig_profiles(data), chip.name, part.memory_bytes) if "mig" in ways else (0, ())
        return Host(
            name=part.name,
            memory_bytes=part.memory_bytes,
            in_turns=bool(ways & {"mps", "time-slicing"}),
            compute=compute,
            profiles=profiles,
        )

    def cuts(self) -> Cuts:
        slices = {(one.chip, one.profile): (one.memory_gb or 0.0) * GB for one in mig_profiles(self.ground.fleet.catalog.data)}
        return cuts_of(self.ground.fleet, [found[0] for found in self.shapes], self.hosts, slices)

    def prices(self, rules: int) -> Array:
        return self._priced(rules)[0]

    def _priced(self, rules: int) -> tuple[Array, Index, Priced]:
        """Of offers that all of these limits allow: USD by host, and the row of the cheapest."""
        if rules in self.known:
            return self.known[rules]
        kinds = [one for at, one in enumerate(self.kinds) if rules >> at & 1]
        offers = kinds[0][0]
        for allowed, _ in kinds[1:]:
            offers = np.intersect1d(offers, allowed)
        # Hours of different schedules may overlap or not: as long as both together, the whole month at most.
        seconds = min(sum({hours for _, hours in kinds}), MONTH / HOUR) * HOUR
        shapes = np.array(sorted(at for found in self.shapes for at in found), dtype=np.intp)
        work = Work.of_one_machine(shapes, seconds)
        priced = price(work, offers, self.ground.market, None)
        host = self.host_of[shapes[priced.way]]
        usd, row = np.full(len(self.hosts), np.inf), np.full(len(self.hosts), -1, dtype=np.intp)
        for index in np.argsort(-priced.usd, kind="stable").tolist():  # the cheapest last
            usd[host[index]], row[host[index]] = priced.usd[index], index
        self.known[rules] = usd, row, priced
        return self.known[rules]

    def shared(self, bin_: Bin, items: Sequence[Item], owners: Sequence[int], requests: Sequence[_Request]) -> Shared:
        usd, row, priced = self._priced(bin_.rules)
        index = int(row[bin_.host])
        catalog, host = self.ground.fleet.catalog, self.hosts[bin_.host]
        machine, region = catalog.machines[priced.machine[index]], catalog.regions[priced.region[index]]
        residents = tuple(self._resident(bin_, host, items[item], requests[owners[item]]) for item in bin_.items)
        return Shared(
            provider=machine.provider,
            machine=machine.name,
            region=region.name,
            chip=host.name,
            memory_bytes=host.memory_bytes,
            purchase=str(PURCHASES[priced.purchase[index]]),
            sharing=bin_.sharing,
            residents=residents,
            usd=float(usd[bin_.host]),
        )

    def _resident(self, bin_: Bin, host: Host, item: Item, ask: _Request) -> Resident:
        turns = bin_.sharing == packing.IN_TURNS
        profile: Profile | None = host.profiles[item.profile[bin_.host]] if bin_.sharing == packing.IN_SLICES else None
        return Resident(
            name=ask.work.name,
            path=ask.path,
            precision=item.precision[bin_.sharing][bin_.host],
            share=float(item.share[bin_.host]) if turns else None,
            memory_bytes=float(item.memory[bin_.host]) if turns else None,
            profile=profile.name if profile else "",
        )


def _hours(one: _Request) -> float:
    return serving_hours(one.work)


def _items(market: _Market, requests: Sequence[_Request]) -> tuple[list[Item], list[int]]:
    """One for every copy, and whose it is."""
    cuts = market.cuts()
    items: list[Item] = []
    owners: list[int] = []
    if (count := sum(int(one.job.least_replicas) for one in requests)) > MOST_COPIES:
        raise BadInput(
            f"{count:,} models and copies (replicas.min) are too many to pack.",
            remedy=f"Pack at most {MOST_COPIES} at once; chipwise plan FILE plans a model with many copies.",
        )
    for number, request in enumerate(requests):
        copies = int(request.job.least_replicas)
        rate = max(request.job.rate, request.job.least_rate) / copies
        job = replace(request.job, rate=rate, least_rate=0.0, least_replicas=1.0, most_replicas=np.inf)
        usd = market.prices(1 << market.rules_of[number])
        item = host_usage(job, cuts, request.known.model, number, market.rules_of[number], np.isfinite(usd).tolist())
        if not item.alone.any():
            raise NoResult(
                f"{request.path}: no machine with one chip that its limits allow holds {request.work.name} and answers "
                f"{job.rate:,.6g} requests a second within its goals.",
                remedy=f"It needs separate machines: chipwise plan {request.path}",
            )
        items += [item] * copies
        owners += [number] * copies
    return items, owners
