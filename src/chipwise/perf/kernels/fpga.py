"""FPGA pipelines: clock, initiation interval, depth, lanes; what fits the device; chains of known operations.

    throughput = clock x lanes / II          latency = depth / clock (the fill, paid once per batch)
    batch of N items = fill + max of (N II / (clock lanes), N bytes / memory bandwidth, N bytes / PCIe)
A chain of operations streams: every operation works on another message at one time, so the slowest sets the rate and the
latencies add. Operations that a published design is known for (`data/tables/fpga_throughput.csv`, rows in GB/s) run at its
rate; any other at one beat of 64 bytes per clock and lane (512-bit streams), with a wide interval. A message takes whole beats.
Fit: a design routes up to about 80% of the LUTs and DSPs that the shell leaves; the shell of a cloud card takes about 20%.
Both shares are rules of thumb, as are 120 cycles of depth per operation. How messages come in and go out is `paths`: by the
card's own port, or through the host of a rented card, whose PCIe link then bounds the rate too.
Limits: no clock closure (a full device runs slower), no bank conflicts, no back pressure between operations of uneven rate.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chipwise.catalog.tables import FpgaRates, FpgaThroughput
from chipwise.errors import BadInput
from chipwise.perf.arrays import Array, Index
from chipwise.perf.kernels import paths
from chipwise.perf.kernels.work import Flags, Numbers, Terms, at_least, overlapped, pick, positive
from chipwise.units import GB, MB
from chipwise.workload.kinds import Stream

SHELL_SHARE, ROUTABLE = 0.20, 0.80
CLOCK_HZ = 250e6  # where neither the caller nor the device's row says
BEAT_BYTES = 64.0
OPERATION_DEPTH = 120.0  # cycles
MEMORY_FRACTION = 0.75  # of the nominal DDR or HBM bandwidth under long bursts; rule of thumb
DDR_BYTES_PER_S = 77e9  # four DDR4-2400 channels, where the row has no figure; rule of thumb
PIPELINE_SPREAD, EXACT_SPREAD, NEAR_SPREAD, UNKNOWN_SPREAD = 0.15, 0.2, 0.5, 0.8
LATENCY_SPREAD = 0.5  # depths differ from design to design
FOR_VIDEO = frozenset({"Alveo-U30", "Alveo-MA35D"})  # cards that are rented with the maker's design for video and no other


@dataclass(frozen=True, slots=True)
class Fabric:
    """Columns of devices: totals, from `data/tables/fpgas.csv`."""

    luts: Array
    dsps: Array
    memory_bytes: Array  # on the chip
    bandwidth: Array  # HBM or DDR, nominal
    clock_hz: Array  # the lower end of what designs usually reach

    @classmethod
    def of(cls, rows: Sequence[FpgaRates], index: Index | None = None) -> Fabric:
        return cls(
            luts=pick([row.luts or 0 for row in rows], index),
            dsps=pick([row.dsp_slices or 0 for row in rows], index),
            memory_bytes=pick([(row.onchip_mb or 0) * MB for row in rows], index),
            bandwidth=pick([(row.hbm_gb_per_s or row.ddr_gb_per_s or 0) * GB or DDR_BYTES_PER_S for row in rows], index),
            clock_hz=pick([(row.clock_mhz_low or 0) * 1e6 or CLOCK_HZ for row in rows], index),
        )


@dataclass(frozen=True, slots=True)
class CircuitPipeline:
    """One design in columns; an item is what enters every `interval` cycles and lane."""

    clock_hz: Array
    lanes: Array
    interval: Array  # II, cycles between items of one lane
    depth: Array  # cycles from in to out

    @classmethod
    def of(
        cls, clock_hz: Numbers, lanes: Numbers = 1.0, interval: Numbers = 1.0, depth: Numbers = OPERATION_DEPTH
    ) -> CircuitPipeline:
        return cls(
            positive("clock_hz", clock_hz),
            at_least("lanes", lanes, 1.0),
            at_least("interval", interval, 1.0),
            at_least("depth", depth, 1.0),
        )

    @property
    def items_per_s(self) -> Array:
        return self.clock_hz * self.lanes / self.interval

    @property
    def fill(self) -> Array:
        return self.depth / self.clock_hz


def batch(
    design: CircuitPipeline,
    items: Numbers,
    memory_bytes: Numbers = 0.0,
    bandwidth: Numbers = np.inf,
    host_bytes: Numbers = 0.0,
    pcie: Numbers = 24e9,
) -> Terms:
    """Seconds for `items`, each moving so many bytes of card memory and over PCIe."""
    count = positive("items", items)
    speed = np.atleast_1d(np.asarray(bandwidth, dtype=np.float64))
    if not (speed > 0).all():  # infinity is allowed: nothing is kept in card memory
        positive("bandwidth", speed)
    times = (
        count / design.items_per_s,
        count * at_least("memory_bytes", memory_bytes, 0.0) / (MEMORY_FRACTION * speed),
        count * at_least("host_bytes", host_bytes, 0.0) / positive("pcie", pcie),
    )
    compute, memory, host = overlapped(*times)
    return Terms.of(
        {
            "pipeline": (compute, PIPELINE_SPREAD),
            "memory": (memory, 0.2),
            "pcie": (host, 0.2),
            "fill": (design.fill, PIPELINE_SPREAD),
        }
    )


@dataclass(frozen=True, slots=True)
class Fit:
    """Shares of what a design may use of the device; above 1 it does not fit."""

    luts: Array
    dsps: Array
    memory: Array

    @property
    def ok(self) -> Flags:
        return (self.luts <= 1) & (self.dsps <= 1) & (self.memory <= 1)


def fit(device: Fabric, luts: Numbers = 0.0, dsps: Numbers = 0.0, memory_bytes: Numbers = 0.0) -> Fit:
    usable = (1 - SHELL_SHARE) * ROUTABLE

    def part(field: str, wanted: Numbers, have: Array) -> Array:
        need = at_least(field, wanted, 0.0)
        return np.where(need == 0, 0.0, np.where(have > 0, need / np.where(have > 0, have, 1.0), np.inf))

    return Fit(
        part("luts", luts, usable * device.luts),
        part("dsps", dsps, usable * device.dsps),
        part("memory", memory_bytes, (1 - SHELL_SHARE) * device.memory_bytes),
    )


@dataclass(frozen=True, slots=True)
class Operation:
    """How fast one operation of a chain goes: bytes/s where a published design is known, else None."""

    name: str
    known: FpgaThroughput | None
    exact: bool

    @property
    def bytes_per_s(self) -> float | None:
        return None if self.known is None or self.known.throughput is None else self.known.throughput * GB

    @property
    def spread(self) -> float:
        return UNKNOWN_SPREAD if self.known is None else EXACT_SPREAD if self.exact else NEAR_SPREAD

    @property
    def luts(self) -> float | None:
        found = None if self.known is None else re.match(r"\d+", self.known.luts_used)
        return float(found[0]) if found else None


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", text.lower()))


def match(name: str, known: Sequence[FpgaThroughput]) -> Operation:
    """The published design nearest to an operation's name: the first word must agree, and most of the others.

    aes-256-cbc-encrypt is found exactly; aes-256-gcm takes AES-256-CBC, the slower direction, and is marked as near.
    """
    wanted = _words(name)
    head = re.findall(r"[a-z0-9]+", name.lower())[:1]
    ranked = []
    for row in known:
        words = _words(row.workload)
        common = len(wanted & words) / max(len(wanted), 1)
        if row.unit == "GB/s" and row.throughput and head and head[0] in words and common >= 0.6:
            ranked.append((-common, row.throughput, row))
    if not ranked:
        return Operation(name, None, False)
    best = min(ranked, key=lambda one: one[:2])
    return Operation(name, best[2], best[0] == -1.0)


@dataclass(frozen=True, slots=True)
class Flow:
    """A chain: seconds per message at full rate, seconds that one message takes through it, and the fit."""

    message: Terms
    latency: Terms
    fit: Fit
    operations: tuple[Operation, ...]

    @property
    def messages_per_s(self) -> Array:
        return 1 / self.message.total


def chain(
    device: Fabric, operations: Sequence[Operation], message_bytes: Numbers, lanes: Numbers = 1.0, port: bool = True
) -> Flow:
    """A chain of operations on each device; `port`: messages come straight from the network, else from the host over PCIe.

    The fit counts the LUTs of operations whose published design states them; give a circuit's own figures to `fit`.
    """
    if not operations:
        raise BadInput("operations: there are none.", remedy="Name at least one, such as parse-fix or aes-256-gcm.")
    size = positive("message_bytes", message_bytes)
    copies = at_least("lanes", lanes, 1.0)
    beats = np.ceil(size / BEAT_BYTES)
    names = [
        op.name if op.name not in [o.name for o in operations[:i]] else f"{op.name} ({i})" for i, op in enumerate(operations)
    ]
    seconds = [beats / device.clock_hz if op.bytes_per_s is None else size / op.bytes_per_s for op in operations]
    host = size / (np.inf if port else paths.PCIE_BYTES_PER_S)
    hidden = overlapped(*(t / copies for t in seconds), host + np.zeros_like(device.clock_hz))
    message = Terms.of(
        {name: (t, s) for name, t, s in zip([*names, "pcie"], hidden, [*(op.spread for op in operations), 0.2], strict=True)}
    )
    depth = OPERATION_DEPTH / device.clock_hz
    # A message leaves an operation when its last beat does; lanes carry other messages, they do not hasten this one.
    latency = {name: (depth + t, LATENCY_SPREAD) for name, t in zip(names, seconds, strict=True)}
    latency.update(paths.PORT if port else paths.CARD)
    needed = sum(op.luts or 0.0 for op in operations) * copies
    return Flow(message, Terms.of(latency), fit(device, needed), tuple(operations))


def flow(work: Stream, device: Fabric, known: Sequence[FpgaThroughput], lanes: Numbers = 1.0, port: bool = True) -> Flow:
    """The workload's chain; its own circuit, where it states one, decides what fits. Without a message size: 1 KB."""
    chain_flow = chain(device, [match(name, known) for name in work.operations], work.message_bytes, lanes, port)
    circuit, state = work.circuit, work.state or 0.0
    if circuit is None:
        return Flow(
            chain_flow.message,
            chain_flow.latency,
            Fit(chain_flow.fit.luts, chain_flow.fit.dsps, fit(device, 0, 0, state).memory),
            chain_flow.operations,
        )
    stored = max(circuit.memory or 0.0, state)
    return Flow(
        chain_flow.message, chain_flow.latency, fit(device, circuit.luts or 0, circuit.dsps or 0, stored), chain_flow.operations
    )


def devices_needed(work: Stream, flow: Flow) -> Array:
    """Devices that carry the workload's stream side by side."""
    return np.ceil(work.messages_per_s * flow.message.total)
