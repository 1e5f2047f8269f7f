"""Streams: messages through a chain of operations, on FPGAs or on the cores of processors.

How messages come in decides the latency (`perf/kernels/paths`): an FPGA of one's own has a network port, a rented one is
reached through its host. So shapes are cut by who owns the machine, and by the network that it has all day, which bounds what
it takes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from chipwise.catalog.offer import Purchase
from chipwise.catalog.tables import FpgaRates
from chipwise.perf.arrays import column
from chipwise.perf.kernels import fpga, paths, software
from chipwise.perf.kernels.processor import Processors
from chipwise.perf.kernels.work import Terms
from chipwise.perf.power import Utilisation
from chipwise.planner.chances import carried, chance_within, sure_factor
from chipwise.planner.fleet import split_by
from chipwise.planner.ground import ground_for
from chipwise.planner.kinds.network import is_bounded, outward
from chipwise.planner.kinds.planning import plan_ways
from chipwise.planner.kinds.ways import (
    FORMAT,
    MEMORY,
    TIME,
    Cannot,
    Ground,
    Question,
    Table,
    Way,
    Ways,
    ground_on,
    machines_within,
)
from chipwise.planner.limits import allowed
from chipwise.planner.reasons.abilities import LacksFabric, NoFabric, NotMeasured
from chipwise.planner.reasons.goals import NoNetworkPort, TooSlow
from chipwise.planner.reasons.sizes import HoldsTooLittle
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import UNSPLIT, CircuitSplit, Split
from chipwise.predictor.kinds.streams import fabrics, guess_notes, owned_machines, path_notes, software_notes
from chipwise.text import number
from chipwise.workload.kinds import Stream

COPIES = 4.0  # of a byte in the memory of a host, from its network card to a program and back; rule of thumb


@dataclass(frozen=True, slots=True)
class _Door:
    """How messages reach a machine."""

    owned: bool
    network: float  # bytes/s to the internet that are there all day


@dataclass(frozen=True, slots=True)
class _Rates:
    """Messages per second of one machine."""

    computed: float
    by_network: float
    spread: float  # of what is computed: the interval ends at this factor above and below it

    @property
    def taken(self) -> float:
        return min(self.computed, self.by_network)

    @property
    def taken_spread(self) -> float:
        """What the network bounds is as sure as the network, down to where the operations are slower than it."""
        return max(self.taken / (self.computed / self.spread), 1.0)


def _above(terms: Terms) -> float:
    return float(terms.high[0] / terms.total[0])


def plan_stream(question: Question, work: Stream) -> Plan:
    known = question.known
    wide = ground_for(known, wide=True)
    catalog = wide.fleet.catalog
    doors = [_Door(owned, outward(one)) for one, owned in zip(catalog.machines, owned_machines(catalog), strict=True)]
    fleet, doors_of = split_by(wide.fleet, doors)
    ground = ground_on(known, fleet, allowed(fleet, question.rules, wide.market.prices))
    planner = _Streams(question, ground, work, doors_of)
    table = Table(
        kind="stream",
        per="month",
        units=work.messages_per_s * question.month_s / 1e6,
        unit="million messages at the peak",
        whole=True,
    )
    plan = plan_ways(question, ground, table, planner.ways)
    return replace(plan, notes=(*planner.notes(plan.winner), *plan.notes)) if plan.winner is not None else plan


class _Streams:
    def __init__(self, question: Question, ground: Ground, work: Stream, doors: Sequence[_Door]) -> None:
        self.question, self.ground, self.work, self.doors = question, ground, work, doors
        self.fabrics: Mapping[str, FpgaRates] = fabrics(ground.fleet.catalog)
        self.designs = ground.fleet.catalog.rows("fpga_throughput")
        self.limits = work.goals.latency.limits if work.goals.latency is not None else ()
        self.unmeasured = software.unknown(work)
        self.cores: dict[str, float] = {}

    def ways(self, index: int) -> Ways:
        part = self.ground.fleet.part(index)
        if part.kind == "cpu":
            return self._on_cores(index)
        if self.ground.fleet.shapes[index].chip not in self.fabrics:
            return Cannot(NoFabric(tuple(self.fabrics)))
        return self._on_fabric(index)

    def _on_fabric(self, index: int) -> Ways:
        work, shape, door = self.work, self.ground.fleet.shapes[index], self.doors[index]
        flow = fpga.flow(work, fpga.Fabric.of([self.fabrics[shape.chip]]), self.designs, port=door.owned)
        shares = {name: float(getattr(flow.fit, name)[0]) for name in ("luts", "dsps", "memory")}
        fullest = max(shares, key=lambda name: shares[name])
        if shares[fullest] > 1:
            return Cannot(LacksFabric(shape.chip, fullest, shares[fullest]), shares[fullest], MEMORY)
        if (late := self._late(flow.latency, not door.owned)) is not None:
            if door.owned:
                return Cannot(TooSlow(*late), late[1] / late[2], TIME)
            remedy = "a looser goal, or a card of your own with a network port (its machine in a catalog file)"
            return Cannot(NoNetworkPort(*late), late[1] / late[2], TIME, remedy)
        slower = self._slower(_above(flow.message))
        devices = max(math.ceil(slower * work.messages_per_s * float(flow.message.total[0]) - 1e-9), 1.0)
        most = math.inf if door.owned else self._by_network(door)
        machines = machines_within(self.question, shape.chips, self._machines(devices / shape.chips, most))
        if isinstance(machines, Cannot):
            return machines
        use = Utilisation(shares["luts"] * devices / (machines * shape.chips), shares["memory"])
        rates = _Rates(float(flow.messages_per_s[0]) * shape.chips, most, _above(flow.message))
        split = CircuitSplit(int(devices), round(float(flow.latency.total[0]) * 1e9))
        way = self._way(index, machines, rates, flow.latency, use, split, hosted=not door.owned)
        return [replace(way, memory_share=shares[fullest])]

    def _on_cores(self, index: int) -> Ways:
        work, fleet, door = self.work, self.ground.fleet, self.doors[index]
        shape, part = fleet.shapes[index], fleet.part(index)
        if self.unmeasured:
            return Cannot(NotMeasured(self.unmeasured, *software.measured_part(work)), passed=FORMAT)
        if (work.state or 0.0) > part.memory_bytes:
            needed = work.state or 0.0
            return Cannot(HoldsTooLittle(part.name, part.memory_bytes, needed, "the state"), needed / part.memory_bytes, MEMORY)
        flow, late = self._in_software
        if late is not None:
            return Cannot(TooSlow(*late), late[1] / late[2], TIME)
        cores, most = shape.share * self._cores(shape.chip), self._by_network(door)
        busy = self._slower(_above(flow.message)) * software.cores_needed(work, flow)
        machines = machines_within(self.question, shape.chips, self._machines(busy / cores, most))
        if isinstance(machines, Cannot):
            return machines
        copied = COPIES * work.messages_per_s * work.message_bytes / (machines * part.bandwidth)
        use = Utilisation(min(busy * software.BUSY / (machines * cores), 1.0), min(copied, 1.0))
        rates = _Rates(cores * software.BUSY / float(flow.message.total[0]), most, _above(flow.message))
        return [self._way(index, machines, rates, flow.latency, use, UNSPLIT, hosted=True)]

    @cached_property
    def _in_software(self) -> tuple[software.SoftwareFlow, tuple[str, float, float] | None]:
        """On any core, and the goal that it misses."""
        flow = software.flow(self.work)
        return flow, self._late(flow.latency, hosted=True)

    def _cores(self, chip: str) -> float:
        """Of one socket."""
        if chip not in self.cores:
            parts, rows = self.ground.known.parts, self.ground.fleet.catalog.rows("cpus")
            self.cores[chip] = float(Processors.of([parts[chip]], "fp32", rows).cores[0])
        return self.cores[chip]

    def _way(
        self, index: int, machines: int, rates: _Rates, latency: Terms, use: Utilisation, split: Split, hosted: bool
    ) -> Way:
        month, reached = self.question.month_s, self._reached(latency, hosted)
        spread = column(_above(latency))
        chances = [
            float(chance_within(column(limit), column(reached[percentile]), spread)[0]) for percentile, limit in self.limits
        ]
        return Way(
            shape=index,
            machines=machines,
            seconds=month,
            low=month,
            high=month,
            split=split,
            rate=rates.taken,
            replicas=machines,
            rate_spread=rates.taken_spread,
            load_chance=carried(self.work.messages_per_s, rates.taken * machines, rates.taken_spread),
            request_chance=min(chances, default=None),
            latency={f"latency p{percentile:g}": seconds for percentile, seconds in reached.items()},
            use=use,
        )

    def _reached(self, latency: Terms, hosted: bool) -> dict[float, float]:
        """Seconds by percentile that a goal is of."""
        return {one: paths.at_percentile(float(latency.total[0]), one, hosted) for one, _ in self.limits}

    def _late(self, latency: Terms, hosted: bool) -> tuple[str, float, float] | None:
        """The goal that is missed most even at the lower end of the interval: its name, seconds at best, limit."""
        best = float(latency.low[0] / latency.total[0])
        reached = self._reached(latency, hosted)
        missed = [
            (f"latency p{one:g}", best * reached[one], limit) for one, limit in self.limits if best * reached[one] > limit
        ]
        return max(missed, key=lambda one: one[1] / one[2], default=None)

    def _by_network(self, door: _Door) -> float:
        """Messages per second that the network card of one machine takes."""
        return paths.LINE_SHARE * door.network / self.work.message_bytes

    def _slower(self, spread: float) -> float:
        """Times that messages may take longer than expected, with the stated confidence."""
        confidence = self.work.goals.confidence
        return 1.0 if confidence is None else sure_factor(spread, confidence)

    def _machines(self, needed: float, most: float) -> int:
        return max(math.ceil(needed - 1e-9), math.ceil(self.work.messages_per_s / most - 1e-9), 1)

    def notes(self, winner: Choice) -> list[str]:
        owned = winner.purchase == Purchase.OWNED
        if winner.family != "CPU":
            return [*path_notes(owned), *guess_notes(self.work, self.designs), *self._network_note(winner, bound=not owned)]
        return [*software_notes(self.work, software.flow(self.work)), *self._network_note(winner)]

    def _network_note(self, winner: Choice, bound: bool = True) -> list[str]:
        """Where the network decides how many and how large the machines are."""
        catalog = self.ground.fleet.catalog
        door = self.doors[self.ground.fleet.shape_of[catalog.machine_index[winner.provider, winner.machine]]]
        if not bound or (winner.rate or 0.0) < winner.machines * self._by_network(door) * (1 - 1e-9):
            return []
        bounded = is_bounded(catalog.machines[catalog.machine_index[winner.provider, winner.machine]])
        speed = f"{number(8 * door.network / 1e9, 3)} Gbit/s{' to the internet' if bounded else ''}"
        return [f"The network decides the size: a machine has {speed} all day, of which {paths.LINE_SHARE:.0%} may be filled."]
