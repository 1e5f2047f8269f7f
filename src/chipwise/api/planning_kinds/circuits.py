"""Quantum circuits and classical work in turns: a machine by the hour, and a quantum processor by tasks and shots.

A file that names a device gets that one; else every device with enough qubits and a price competes, and so does simulating
the circuits on the machine's own chip. What a device costs is a line of each candidate's cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chipwise.api.planning_kinds.ways import MEMORY, Cannot, Ground, Question, Table, Way, Ways, ground_of, plan_ways, unable
from chipwise.api.predicting_kinds.ask import Ask
from chipwise.api.predicting_kinds.hybrid import quantum_device
from chipwise.api.predicting_samples import able_chip
from chipwise.catalog.tables import QuantumPrice
from chipwise.money.cost import Line
from chipwise.perf.kernels import quantum
from chipwise.perf.kernels.chips import Chips
from chipwise.perf.kernels.work import Terms
from chipwise.plan.decision import Loss, Plan
from chipwise.plan.explaining import duration, usd
from chipwise.units import GIB
from chipwise.workload.kinds import Hybrid

OWN = "simulated on the chip"


@dataclass(frozen=True, slots=True)
class Device:
    """A quantum device that can do it: what all iterations cost, and seconds of one."""

    name: str
    lines: tuple[Line, ...]
    each: Terms | None  # None: simulated, by the speed of the classical chip
    usd_per_minute: float = 0.0  # of a simulator that is rented

    @property
    def usd(self) -> float:
        return sum(line.usd for line in self.lines)


def plan_hybrid(question: Question, work: Hybrid) -> Plan:
    ground = ground_of(question.session, question.rules)
    devices, losses = _devices(question, ground, work)
    table = Table("hybrid", "job", float(work.iterations), "iteration", notes=(
        "The queue counts once, as in a hybrid job with the device reserved; it lasts minutes to days.",))  # fmt: skip
    made = plan_ways(question, ground, table, lambda at: _turns(question, ground, work, devices, at))
    if made.winner is None:
        return replace(made, losses=(*made.losses, *losses))
    used = next((one for one in devices if any(line.name.startswith(one.name) for line in made.winner.cost.lines)), None)
    others = [
        Loss(one.name, None, f"{usd(one.usd)} for circuits against {usd(used.usd if used else 0.0)}"
             + (f", {duration(float(one.each.total[0]) * work.iterations)} of circuits" if one.each is not None else ""))
        for one in devices if one is not used and one.each is not None
    ]  # fmt: skip
    told = used.name if used is not None else OWN
    return replace(made, losses=(*made.losses, *others, *losses), notes=(*made.notes, f"Circuits: {told}."))


def _devices(question: Question, ground: Ground, work: Hybrid) -> tuple[list[Device], list[Loss]]:
    """Those that can, and why the others cannot."""
    named = quantum_device(Ask(question.session, question.path, "", {}), work)
    rows: Sequence[QuantumPrice] = [named] if named is not None else ground.fleet.catalog.rows("quantum")
    able, losses = [], []
    circuits = quantum.Circuits.from_quantum(work.quantum)
    for row in rows:
        if row.kind == "note" or (row.kind == "simulator" and named is None):
            continue
        why = _refused(question, ground, row, work)
        price = quantum.price(row, circuits, work.iterations)
        if row.kind == "simulator":
            able.append(Device(f"{row.provider} {row.device}", (), None, row.usd_per_minute or 0.0))
        elif why or price is None:
            losses.append(Loss(f"{row.provider} {row.device}", None, why or "no price by task, shot or minute is known"))
        else:
            each = quantum.run(circuits, quantum.TIMINGS[quantum.technology(row)], batches=1.0 / work.iterations)
            lines = tuple(
                Line(f"{row.provider} {row.device} {name}", float(dollars[0]), _how(name, row, work))
                for name, dollars in zip(price.names, price.usd, strict=True) if dollars[0]
            )  # fmt: skip
            able.append(Device(f"{row.provider} {row.device}", lines, each))
    if named is None:
        able.append(Device(OWN, (), None))
    return able, losses


def _how(name: str, row: QuantumPrice, work: Hybrid) -> str:
    tasks = work.iterations * work.quantum.circuits
    if name == "tasks":
        return f"{tasks:,} x ${row.usd_per_task:g}"
    return f"{tasks * work.quantum.shots:,} x ${row.usd_per_shot:g}" if name == "shots" else ""


def _refused(question: Question, ground: Ground, row: QuantumPrice, work: Hybrid) -> str:
    """Why a device may not be used; empty where it may."""
    rules = question.rules
    provider = row.provider.split()[0]
    country = next((one.country for one in ground.fleet.catalog.regions if one.key == (provider, row.region)), None)
    if "analog" in row.fact.notes.lower():
        return "analogue only: it runs no circuits of gates"
    if row.qubits is None or row.qubits < work.quantum.qubits:
        return f"{row.qubits or 0:g} qubits known, {work.quantum.qubits} needed"
    if (rules.providers is not None and provider not in rules.providers) or provider in rules.avoided_providers:
        return f"sold by {row.provider}, which the limits leave out"
    if (rules.countries is not None and country not in rules.countries) or (country and country in rules.avoided_countries):
        return f"stands in {country or 'an unknown country'}, which the limits leave out"
    return ""


def _turns(question: Question, ground: Ground, work: Hybrid, devices: Sequence[Device], at: int) -> Ways:
    """One machine: the classical part is one chip's work, and circuits wait for each other."""
    shape, part = ground.fleet.shapes[at], ground.fleet.part(at)
    if (cannot := unable(part, "hybrid")) is not None:
        return cannot
    needed = work.classical.memory or 0.0
    if needed > part.memory_bytes:
        return Cannot(
            f"{part.name} has {part.memory_bytes / GIB:.0f} GiB of the {needed / GIB:.0f} needed",
            needed / part.memory_bytes,
            MEMORY,
        )
    precision = work.classical.precision.value
    chips, rate = Chips.of([part], precision), None
    if work.classical.measured is not None:
        known = able_chip(question.session, work.classical.measured.on, "hybrid")
        rate = float(Chips.of([question.session.parts[known.name]], precision).rate[0])
    circuits = quantum.Circuits.from_quantum(work.quantum)
    found, too_large = [], None
    for device in devices:
        each, lines = device.each, device.lines
        if each is None:
            if not quantum.fits(chips, work.quantum.qubits, shape.chips)[0]:
                state = float(quantum.state_bytes(work.quantum.qubits)[0])
                told = f"the state of {work.quantum.qubits} qubits takes {state / GIB:,.3g} GiB"
                too_large = Cannot(
                    f"{told}, more than {shape.chips} {part.name} hold", state / (part.memory_bytes * shape.chips), MEMORY
                )
                continue
            each = quantum.simulate(chips, circuits, float(shape.chips))
            minutes = float(each.total[0]) * work.iterations / 60
            if device.usd_per_minute:
                how = f"{minutes:,.1f} min x ${device.usd_per_minute:g}, as fast as this machine would be"
                lines = (Line(f"{device.name} minutes", minutes * device.usd_per_minute, how),)
        terms = quantum.hybrid(work, each, chips, rate)
        found.append(Way(at, 1, float(terms.total[0]), float(terms.low[0]), float(terms.high[0]), precision, lines=lines))
    return found or too_large or Cannot("no quantum device is left, and the circuits cannot be simulated on it")
