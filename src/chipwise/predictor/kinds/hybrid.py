"""Quantum circuits with classical work between them: on a quantum device, or simulated on the chip."""

from __future__ import annotations

import math

from chipwise.catalog.price_tables import QuantumPrice
from chipwise.errors import BadInput, UnknownName
from chipwise.perf.kernels import hpc, quantum
from chipwise.perf.kernels.chips import Chips
from chipwise.perf.part import Part
from chipwise.predictor.ability import able_chip
from chipwise.predictor.kinds.ask import Ask
from chipwise.predictor.kinds.kernels import kernel
from chipwise.predictor.values import HybridPrediction, WholeJob
from chipwise.spelling import fold, nearest
from chipwise.workload.kinds import Hybrid


def predict_hybrid(ask: Ask, work: Hybrid) -> HybridPrediction:
    part = ask.known.parts[able_chip(ask.known, ask.hardware, "hybrid").name]
    chips, circuits = Chips.of([part], work.classical.precision.value), quantum.Circuits.from_quantum(work.quantum)
    row, count, measured = quantum_device(ask, work), ask.chips or 1.0, work.classical.measured
    rate = None
    if measured is not None:
        timed_on = ask.known.parts[able_chip(ask.known, measured.on, "hybrid").name]
        rate = float(Chips.of([timed_on], work.classical.precision.value).rate[0])
    notes: list[str] = []
    needs: dict[str, float | None] = {}
    metered = 0.0
    if row is None or row.kind == "simulator":
        state_chips = _chips_for_state(work.quantum.qubits, part)
        needs = {"chips_for_state": state_chips}
        circuit = quantum.simulate(chips, circuits, count)
        metered = float(circuit.total[0]) * work.iterations
        if count < state_chips:
            notes.append(f"It does not fit: the state needs {state_chips:g} chips.")
        notes.append("The circuits are simulated on the chip, state vector in double precision.")
    else:
        circuit = quantum.run(circuits, quantum.TIMINGS[quantum.technology(row)], batches=1.0 / work.iterations)
        notes.append("The queue counts once, as in a hybrid job with the device reserved; it lasts minutes to days.")
    shared = kernel(ask, count, quantum.hybrid(work, circuit, chips, rate), "the whole job")
    price = None if row is None else quantum.price(row, circuits, work.iterations, metered)
    lines = {} if price is None else {name: float(usd[0]) for name, usd in zip(price.names, price.usd, strict=True) if usd[0]}
    return HybridPrediction(
        **shared,
        device=None if row is None else row.device,
        technology="simulator" if row is None else quantum.technology(row),
        iterations=float(work.iterations),
        circuits=float(work.quantum.circuits),
        shots=float(work.quantum.shots),
        price_usd=None if price is None else float(price.total[0]),
        price_lines_usd=lines,
        needs=needs,
        job=WholeJob(shared["time"]),
        notes=tuple(notes),
    )


def quantum_device(ask: Ask, work: Hybrid) -> QuantumPrice | None:
    """The row of the quantum device by part of its name; None where the file names none."""
    name = work.quantum.device
    if name is None:
        return None
    rows: list[QuantumPrice] = [row for row in ask.known.catalog.rows("quantum") if row.kind != "note"]
    exact = [row for row in rows if fold(row.device) == fold(name)]
    near = exact or [row for row in rows if fold(name) in fold(row.device)]
    if not near:
        raise UnknownName("quantum device", name, nearest(name, [row.device for row in rows]))
    if near[0].qubits is not None and work.quantum.qubits > near[0].qubits:
        problem = f"quantum.qubits: {near[0].device} has {near[0].qubits:g}, and {work.quantum.qubits} are asked for."
        raise BadInput(problem, remedy="Name a larger device.")
    return near[0]


def _chips_for_state(qubits: int, part: Part) -> float:
    if qubits > 60:
        raise BadInput(f"quantum.qubits: the state of {qubits} qubits fits no machine.", remedy="Name a quantum device.")
    chips = float(quantum.state_bytes(qubits)[0]) / (hpc.USABLE_MEMORY * part.memory_bytes)
    return 2.0 ** math.ceil(max(math.log2(chips), 0.0))
