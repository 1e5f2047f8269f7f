"""Streams: messages through a chain of operations, on an FPGA or on the cores of a processor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.chip import Chip
from chipwise.catalog.offer import PURCHASES, Purchase
from chipwise.catalog.tables import FpgaRates, FpgaThroughput
from chipwise.errors import BadInput
from chipwise.perf.kernels import fpga, paths, software
from chipwise.perf.kernels.processor import Processors
from chipwise.perf.kernels.work import Terms
from chipwise.predictor.kinds.ask import Ask
from chipwise.predictor.kinds.kernels import kernel
from chipwise.predictor.values import CircuitOperation, Goal, Interval, StreamPrediction
from chipwise.text import duration, number, size
from chipwise.workload.kinds import Stream

WIRE_TO_WIRE = "one message, from wire to wire"


def fabrics(catalog: Catalog) -> Mapping[str, FpgaRates]:
    """FPGAs that take a design of one's own, by name."""
    return {row.name: row for row in catalog.rows("fpgas") if row.name not in fpga.FOR_VIDEO}


def owned_machines(catalog: Catalog) -> list[bool]:
    """By machine: whether somebody owns it."""
    offers, owned = catalog.offers, np.zeros(len(catalog.machines), dtype=bool)
    purchase = np.frombuffer(offers.purchase, dtype=np.int8)
    owned[np.frombuffer(offers.machine, dtype=np.int32)[purchase == PURCHASES.index(Purchase.OWNED)]] = True
    return [bool(one) for one in owned]


def path_notes(owned: bool) -> list[str]:
    if owned:
        return [
            "The card is taken to have a network port of its own.",
            "A pipeline below its full rate has no queue: all percentiles are the same.",
        ]
    lacks = "A rented FPGA has no network port: packets pass the network card of its host and PCIe"
    relay = "The host must pass on every message: bypass its kernel, or send many at once."
    return [f"{lacks}, {_time_words(Terms.of(paths.CARD))}.", relay]


def _time_words(way: Terms) -> str:
    low, middle, high = (duration(float(one[0])) for one in (way.low, way.total, way.high))
    interval = f"a rule of thumb: 80% between {low} and {high}"
    return f"about {middle} in and out ({interval}; p99 is taken as {paths.TAIL:g} times the median)"


def guess_notes(work: Stream, designs: Sequence[FpgaThroughput]) -> list[str]:
    guessed = [name for name in work.operations if fpga.match(name, designs).known is None]
    return [f"No published design for {', '.join(guessed)}: one beat of 64 bytes per clock is assumed."] if guessed else []


def software_notes(work: Stream, flow: software.SoftwareFlow) -> list[str]:
    cores = number(software.cores_needed(work, flow), 2)
    notes = [
        f"Software on {cores} cores, at most {software.BUSY:.0%} busy, by our own measurements of every operation on one core.",
        f"Packets pass the network card and the kernel of the host, {_time_words(Terms.of(paths.HOST))}.",
    ]
    if work.message_size is None:
        notes.append(f"No message_size: software reads {size(software.PIECE_BYTES)} at a time.")
    return notes


def predict_stream(ask: Ask, work: Stream) -> StreamPrediction:
    known = ask.known
    chip, rows = known.names.one_chip(ask.hardware).chip, fabrics(known.catalog)
    if chip.kind.value == "cpu":
        return _on_cores(ask, work, chip)
    if chip.name not in rows:
        able = f"FPGAs do: {', '.join(rows)}; and processors, for operations that were measured there."
        raise BadInput(f"{chip.name} holds no chain of circuits.", remedy=able)
    owners = zip(known.catalog.machines, owned_machines(known.catalog), strict=True)
    owned = any(owned for machine, owned in owners if machine.chip == chip.name)
    designs = known.catalog.rows("fpga_throughput")
    flow = fpga.flow(work, fpga.Fabric.of([rows[chip.name]]), designs, port=owned)
    needed = max(float(fpga.devices_needed(work, flow)[0]), 1.0)
    fit = {name: float(getattr(flow.fit, name)[0]) for name in ("luts", "dsps", "memory")}
    shared = kernel(ask, ask.chips or needed, flow.latency, WIRE_TO_WIRE, flow.message.bottleneck().texts()[0])
    notes = [*path_notes(owned), *guess_notes(work, designs)]
    if not flow.fit.ok[0]:
        notes.append("It does not fit: the design needs more than the shell leaves of the device.")
    return StreamPrediction(
        **shared,
        messages_per_s=_rate(flow.message),
        fits=bool(flow.fit.ok[0]),
        share_of_device={name: share if math.isfinite(share) else None for name, share in fit.items()},
        operations=tuple(CircuitOperation(one.name, one.known.workload if one.known else None) for one in flow.operations),
        needs={"devices": needed},
        goals=_goals(work, shared["time"].value, hosted=not owned),
        notes=tuple(notes),
    )


def _on_cores(ask: Ask, work: Stream, chip: Chip) -> StreamPrediction:
    flow = software.flow(work)
    cores = float(Processors.of([ask.known.parts[chip.name]], "fp32", ask.known.catalog.rows("cpus")).cores[0])
    wanted = software.cores_needed(work, flow)
    needed = float(max(math.ceil(wanted / cores - 1e-9), 1))
    shared = kernel(ask, ask.chips or needed, flow.latency, WIRE_TO_WIRE, flow.message.bottleneck().texts()[0])
    return StreamPrediction(
        **shared,
        messages_per_s=_rate(flow.message.times(1.0 / (cores * software.BUSY))),
        fits=True,
        share_of_device={"cores": wanted / cores},
        operations=tuple(CircuitOperation(name, one.name) for name, one in zip(work.operations, flow.operations, strict=True)),
        needs={"devices": needed, "cores": wanted},
        goals=_goals(work, shared["time"].value, hosted=True),
        notes=tuple(software_notes(work, flow)),
    )


def _rate(message: Terms) -> Interval:
    return Interval(1.0 / float(message.total[0]), 1.0 / float(message.high[0]), 1.0 / float(message.low[0]))


def _goals(work: Stream, median_s: float, hosted: bool) -> tuple[Goal, ...] | None:
    if work.goals.latency is None:
        return None
    return tuple(
        Goal("latency", limit, paths.at_percentile(median_s, percentile, hosted), percentile)
        for percentile, limit in work.goals.latency.limits
    )
