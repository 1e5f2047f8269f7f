"""Quantum circuits and classical work in turns: a machine by the hour, and a quantum processor by tasks and shots.

A file that names a device gets that one; else every device with enough qubits and a price competes, and so does simulating
the circuits on the machine's own chip, or by a managed state-vector simulator, which is taken to be as fast as that machine.
What a device costs is a line of each candidate's cost; which one it is and what it costs is its `QuantumPart`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from chipwise.catalog.price_tables import QuantumPrice
from chipwise.money.cost import Line
from chipwise.perf.kernels import hpc, quantum
from chipwise.perf.kernels.chips import Chips
from chipwise.perf.kernels.work import Terms
from chipwise.perf.power import Utilisation
from chipwise.planner.kinds.planning import plan_ways
from chipwise.planner.kinds.ways import MEMORY, Cannot, Ground, Question, Table, Way, Ways, ground_of, machines_within, unable
from chipwise.planner.ranking import first_of
from chipwise.planner.reasons import Beaten, Reason
from chipwise.planner.reasons.quantum import (
    Analogue,
    CountryLeftOut,
    FewQubits,
    NoDevice,
    NoQuantumPrice,
    SellerLeftOut,
    StateTooLarge,
    TimeNotModelled,
)
from chipwise.planner.reasons.sizes import HoldsTooLittle
from chipwise.planner.values.choice import Choice, QuantumPart
from chipwise.planner.values.plan import Loss, Plan
from chipwise.planner.why_lost import beaten
from chipwise.predictor.ability import able_chip
from chipwise.predictor.kinds.ask import Ask
from chipwise.predictor.kinds.hybrid import quantum_device
from chipwise.text import price
from chipwise.workload.kinds import Hybrid

OWN = "simulated on the chip"
QUEUE = "The queue counts once, as in a hybrid job with the device reserved; it lasts minutes to days."
READING = 0.8  # of the bandwidth, while gates pass over the state
STATE_VECTOR = "state vector"  # what a managed simulator computes whose work is modelled


@dataclass(frozen=True, slots=True)
class Device:
    """What can run the circuits: what all iterations cost there, and seconds of one."""

    name: str
    lines: tuple[Line, ...]
    terms: Terms | None  # None: simulated, by the speed of the classical chip
    usd_per_minute: float = 0.0  # of a simulator that is rented
    managed: bool = True


@dataclass(slots=True)
class _Trials:
    """Which device each way has, in the order of ways; and the largest state that a machine holds."""

    devices: list[Device] = field(default_factory=list)
    largest_bytes: float = 0.0


def plan_hybrid(question: Question, work: Hybrid) -> Plan:
    ground = ground_of(question.known, question.rules)
    devices, losses = _devices(question, ground, work)
    table = Table(
        kind="hybrid",
        per="job",
        units=float(work.iterations),
        unit="iteration",
    )
    trials = _Trials()
    plan = plan_ways(question, ground, table, lambda at: _turns(question, ground, work, devices, at, trials))
    part = plan.winner.quantum if plan.winner is not None else None
    if part is not None and part.kind == "qpu":  # a simulator has no queue
        plan = replace(plan, notes=(*plan.notes, QUEUE))
    return replace(plan, losses=(*plan.losses, *_device_losses(plan, work, devices, trials), *losses))


def _device_losses(plan: Plan, work: Hybrid, devices: Sequence[Device], trials: _Trials) -> list[Loss]:
    """The best choice with every other device, and why it lost; a simulator that no machine holds tells how much it lacks."""
    winner, rows = plan.winner, plan.rows
    if winner is None or winner.quantum is None or rows is None:
        return []
    place = {device.name: at for at, device in enumerate(devices)}
    of_way = np.array([place[device.name] for device in trials.devices], dtype=np.intp)
    losses = []
    for row in first_of(of_way[rows.priced.way], rows.ranked).tolist():
        choice = rows.choice(row)
        assert choice.quantum is not None
        if choice.quantum.device != winner.quantum.device:
            losses.append(Loss(choice.quantum.device, choice, rows.verdict(choice) or _against(winner, choice)))
    seen = {winner.quantum.device, *(loss.family for loss in losses)}
    state = float(quantum.state_bytes(work.quantum.qubits)[0])
    large = StateTooLarge(work.quantum.qubits, state, trials.largest_bytes)
    return losses + [Loss(one.name, None, large) for one in devices if one.name not in seen]


def _against(winner: Choice, choice: Choice) -> Beaten:
    assert choice.quantum is not None
    kind = "QPU" if choice.quantum.kind == "qpu" else "simulator"
    return replace(beaten(winner, choice, "cost", "job"), device=kind, circuits_usd=choice.quantum.usd)


def _devices(question: Question, ground: Ground, work: Hybrid) -> tuple[list[Device], list[Loss]]:
    """Those that can, and why the others cannot."""
    chosen = quantum_device(Ask(question.known, question.path, "", {}), work)
    rows: Sequence[QuantumPrice] = [chosen] if chosen is not None else ground.fleet.catalog.rows("quantum")
    able, losses = [], []
    circuits = quantum.Circuits.from_quantum(work.quantum)
    for row in rows:
        name = f"{row.provider} {row.device}"
        if row.kind == "note" or (chosen is None and row.kind == "simulator" and row.usd_per_minute is None):
            continue  # a simulator that costs nothing runs on the machine: that is `OWN`
        reason = _refused(question, ground, row, work) or (_unmodelled(row) if chosen is None else None)
        price = quantum.price(row, circuits, work.iterations)
        if row.kind == "simulator" and (chosen is not None or not reason):
            able.append(Device(name, (), None, row.usd_per_minute or 0.0))
        elif reason or price is None:
            losses.append(Loss(name, None, reason or NoQuantumPrice()))
        else:
            terms = quantum.run(circuits, quantum.TIMINGS[quantum.technology(row)], batches=1.0 / work.iterations)
            lines = tuple(
                Line(f"{name} {item}", float(dollars[0]), _formula(item, row, work))
                for item, dollars in zip(price.names, price.usd, strict=True)
                if dollars[0]
            )
            able.append(Device(name, lines, terms))
    if chosen is None:
        able.append(Device(OWN, (), None, managed=False))
    return able, losses


def _unmodelled(row: QuantumPrice) -> Reason | None:
    """Why nothing is known of a managed simulator's time, by which it is paid; None where there is a model."""
    if row.kind != "simulator" or row.technology == STATE_VECTOR:
        return None
    return TimeNotModelled(row.technology)


def _formula(name: str, row: QuantumPrice, work: Hybrid) -> str:
    tasks = work.iterations * work.quantum.circuits
    if name == "tasks":
        return f"{tasks:,} x {price(row.usd_per_task or 0.0)}"
    return f"{tasks * work.quantum.shots:,} x {price(row.usd_per_shot or 0.0)}" if name == "shots" else ""


def _refused(question: Question, ground: Ground, row: QuantumPrice, work: Hybrid) -> Reason | None:
    """Why a device may not be used; None where it may."""
    rules = question.rules
    provider = row.provider.split()[0]
    country = next((one.country for one in ground.fleet.catalog.regions if one.key == (provider, row.region)), None)
    if row.programs == "analogue":
        return Analogue()
    if row.qubits is None or row.qubits < work.quantum.qubits:
        return FewQubits(row.qubits, work.quantum.qubits, row.kind == "simulator")
    if (rules.providers is not None and provider not in rules.providers) or provider in rules.avoided_providers:
        return SellerLeftOut(row.provider)
    forbidden = country in rules.avoided_countries or (rules.countries is not None and country not in rules.countries)
    if forbidden or (country is None and rules.on_countries):
        return CountryLeftOut(country)
    return None


def _use(reached: float, terms: Terms, simulated: bool, machines: int) -> Utilisation:
    """One of the machines computes between circuits, at the share `reached` of its rate, and reads the state once a gate
    where it simulates them; else it waits. The others, which only a limit asks for, rest: their mean."""
    total = float(terms.total[0])
    waits = float(terms["round trip"][0])
    classical = float(terms["classical"][0]) / total
    return Utilisation(
        classical * reached / machines,
        (1.0 - classical - waits / total) * READING / machines if simulated else 0.0,
    )


def _turns(question: Question, ground: Ground, work: Hybrid, devices: Sequence[Device], index: int, trials: _Trials) -> Ways:
    """One machine works: the classical part is one chip's work, and circuits wait for each other."""
    shape, part = ground.fleet.shapes[index], ground.fleet.part(index)
    if (cannot := unable(part, "hybrid")) is not None:
        return cannot
    needed = work.classical.memory or 0.0
    if needed > part.memory_bytes:
        return Cannot(HoldsTooLittle(part.name, part.memory_bytes, needed), needed / part.memory_bytes, MEMORY)
    machines = machines_within(question, shape.chips, 1)
    if isinstance(machines, Cannot):
        return machines
    precision = work.classical.precision.value
    chips, rate = Chips.of([part], precision), None
    reached = float(chips.achieved("generic").compute[0])
    if work.classical.measured is not None:
        measured_on = able_chip(question.known, work.classical.measured.on, "hybrid")
        rate = float(Chips.of([question.known.parts[measured_on.name]], precision).rate[0])
    circuits = quantum.Circuits.from_quantum(work.quantum)
    room = hpc.USABLE_MEMORY * part.memory_bytes * 2 ** int(math.log2(shape.chips))
    trials.largest_bytes = max(trials.largest_bytes, room)
    ways, too_large = [], None
    for device in devices:
        run, lines = device.terms, device.lines
        if run is None:
            if not quantum.fits(chips, work.quantum.qubits, shape.chips)[0]:
                state = float(quantum.state_bytes(work.quantum.qubits)[0])
                memory = part.memory_bytes * shape.chips
                need = f"the state of {work.quantum.qubits} qubits"
                too_large = Cannot(HoldsTooLittle(f"{shape.chips} {part.name}", memory, state, need), state / memory, MEMORY)
                continue
            run = quantum.simulate(chips, circuits, float(shape.chips))
            minutes = float(run.total[0]) * work.iterations / 60
            if device.usd_per_minute:
                formula = f"{minutes:,.1f} min x {price(device.usd_per_minute)}, as fast as this machine would be"
                lines = (Line(f"{device.name} minutes", minutes * device.usd_per_minute, formula),)
        terms = quantum.hybrid(work, run, chips, rate)
        part_of_it = QuantumPart(
            device=device.name,
            kind="qpu" if device.terms is not None else "simulator",
            managed=device.managed,
            qubits=work.quantum.qubits,
            tasks=work.iterations * work.quantum.circuits,
            shots=work.quantum.shots,
            usd=math.fsum(line.usd for line in lines),
            seconds=float(run.total[0]) * work.iterations,
        )
        ways.append(
            Way(
                shape=index,
                machines=machines,
                seconds=float(terms.total[0]),
                low=float(terms.low[0]),
                high=float(terms.high[0]),
                precision=precision,
                lines=lines,
                quantum=part_of_it,
                use=_use(reached, terms, device.terms is None and not device.managed, machines),
            )
        )
        trials.devices.append(device)
    return ways or too_large or Cannot(NoDevice())
