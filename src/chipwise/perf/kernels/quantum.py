"""Quantum circuits: on a processor by shots and gate times, in a simulator by bytes moved; priced; in hybrid turns.

    processor:  task = overhead + shots x (depth x layer + readout + reset);  a queue before each batch of tasks
    trapped ions drive two-qubit gates one at a time:  depth x layer becomes two-qubit gates x gate (+ depth x one-qubit layer)
    simulator:  gate = 2 x 2^n x b / (e B c),  b = 16 or 8 bytes, over c chips;  for the log2 c qubits that tell chips apart
                half of each chip's share crosses the link;  one pass more per circuit to draw the shots
    price:      tasks x usd_per_task + shots x usd_per_shot + minutes x usd_per_minute      (`data/tables/quantum.csv`)
Times of gates, readout, reset, task overhead and queues are orders of magnitude by technology: rules of thumb, public
figures of several makers rounded; the provider's calibration page is better, and `Timing` takes it. e is `state_vector`
in `data/perf/kernels.csv`. Limits: no error mitigation, no compilation to a lattice (depth and gates are those of the
compiled circuit), tensor networks and density matrices are not modelled, queues vary from minutes to days.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chipwise.catalog.price_tables import QuantumPrice
from chipwise.errors import UnknownName
from chipwise.perf.arrays import Array, column
from chipwise.perf.kernels.chips import Chips
from chipwise.perf.kernels.hpc import USABLE_MEMORY
from chipwise.perf.kernels.work import Flags, Numbers, Terms, allowed_name, at_least, positive
from chipwise.spelling import fold, nearest
from chipwise.workload.kinds import Hybrid, Quantum

STATE_BYTES = {"complex64": 8.0, "complex128": 16.0}
FUSED = 1.0  # gates applied in one pass over the state; simulators that fuse reach 2 to 5
QUEUE_SPREAD, GATE_SPREAD, CLASSICAL_SPREAD = 1.5, 0.7, 0.4


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds, of one technology or one machine."""

    layer: float  # one layer of gates
    two_qubit: float  # one two-qubit gate, where they go one at a time; 0: they run within layers
    readout: float
    reset: float  # back to the start state before the next shot
    task: float  # compiling, loading and returning one circuit
    queue: float  # waiting for the machine, once per batch of tasks


# Rules of thumb, rounded to one digit.
TIMINGS = {
    "superconducting": Timing(layer=6e-8, two_qubit=0.0, readout=1e-6, reset=2e-4, task=2.0, queue=600.0),
    "trapped ion": Timing(layer=1e-4, two_qubit=6e-4, readout=3e-4, reset=5e-3, task=5.0, queue=3600.0),
    "neutral atoms": Timing(layer=4e-6, two_qubit=0.0, readout=1e-2, reset=3e-1, task=5.0, queue=3600.0),
    "simulator": Timing(layer=0.0, two_qubit=0.0, readout=0.0, reset=0.0, task=3.0, queue=10.0),
}


def technology(row: QuantumPrice) -> str:
    """As `TIMINGS` names it."""
    return "simulator" if row.kind == "simulator" else row.technology


def device(name: str, rows: Sequence[QuantumPrice]) -> QuantumPrice:
    """The row of a device that can be bought by name; the first provider's where several sell it."""
    for row in rows:
        if fold(row.device) == fold(name) and row.kind != "note":
            return row
    raise UnknownName("quantum device", name, nearest(name, [row.device for row in rows if row.kind != "note"]))


@dataclass(frozen=True, slots=True)
class Circuits:
    """Columns: what is run."""

    qubits: Array
    shots: Array
    circuits: Array
    depth: Array
    two_qubit_gates: Array

    @classmethod
    def of(
        cls,
        qubits: Numbers,
        shots: Numbers,
        circuits: Numbers = 1.0,
        depth: Numbers | None = None,
        two_qubit_gates: Numbers | None = None,
    ) -> Circuits:
        """Depth, where unknown: as many layers as qubits; two-qubit gates: a quarter of qubits x depth (rules of thumb)."""
        n = at_least("qubits", qubits, 1.0)
        layers = n if depth is None else at_least("depth", depth, 1.0)
        gates = n * layers / 4 if two_qubit_gates is None else at_least("two_qubit_gates", two_qubit_gates, 0.0)
        return cls(
            qubits=n,
            shots=at_least("shots", shots, 1.0),
            circuits=at_least("circuits", circuits, 1.0),
            depth=layers,
            two_qubit_gates=gates,
        )

    @classmethod
    def from_quantum(cls, work: Quantum) -> Circuits:
        return cls.of(work.qubits, work.shots, work.circuits, work.depth, work.two_qubit_gates)

    @property
    def gates(self) -> Array:
        """All gates of one circuit: half of the places that two-qubit gates leave free hold one-qubit gates."""
        return self.two_qubit_gates + np.maximum(self.qubits * self.depth - 2 * self.two_qubit_gates, 0.0) / 2


def run(work: Circuits, timing: Timing, batches: Numbers = 1.0) -> Terms:
    """Seconds on a quantum processor. Circuits sent together wait in the queue once: `batches` counts how often."""
    shots = work.circuits * work.shots
    gates = work.depth * timing.layer + work.two_qubit_gates * timing.two_qubit
    return Terms.of(
        {
            "queue": (at_least("batches", batches, 0.0) * timing.queue, QUEUE_SPREAD),
            "task": (work.circuits * timing.task, GATE_SPREAD),
            "gates": (shots * gates, GATE_SPREAD),
            "readout": (shots * timing.readout, GATE_SPREAD),
            "reset": (shots * timing.reset, GATE_SPREAD),
        }
    )


def state_bytes(qubits: Numbers, kind: str = "complex128") -> Array:
    return STATE_BYTES[allowed_name("kind", kind, STATE_BYTES)] * _states(at_least("qubits", qubits, 1.0))


def _states(qubits: Array) -> Array:
    """Amplitudes; beyond a thousand qubits the number outgrows what a float holds, and no machine holds them anyway."""
    return 2.0 ** np.minimum(qubits, 1000.0)


def fits(chips: Chips, qubits: Numbers, count: Numbers = 1.0, kind: str = "complex128") -> Flags:
    """Where `count` chips (a power of two of them is used) hold the state."""
    used = 2.0 ** np.floor(np.log2(at_least("chips", count, 1.0)))
    return state_bytes(qubits, kind) <= USABLE_MEMORY * chips.memory_bytes * used


def simulate(chips: Chips, work: Circuits, count: Numbers = 1.0, kind: str = "complex128", fused: Numbers = FUSED) -> Terms:
    """Seconds of a state-vector simulation on `count` chips, of which the largest power of two is used."""
    state = state_bytes(work.qubits, kind)
    used = np.minimum(2.0 ** np.floor(np.log2(at_least("chips", count, 1.0))), _states(work.qubits - 1))
    reached = chips.achieved("state_vector")
    share = state / used
    passes = work.gates / at_least("fused", fused, 1.0)
    pass_s = 2 * share / (reached.bandwidth * chips.bandwidth)
    outside = np.log2(used) / work.qubits
    exchange_s = np.where(used > 1, chips.network.send(share / 2, np.where(used > chips.network.domain, np.inf, 0.0)), 0.0)
    return Terms.of(
        {
            "gates": (work.circuits * passes * pass_s, reached.spread),
            "exchange": (work.circuits * passes * outside * exchange_s, 0.4),
            "sampling": (work.circuits * pass_s / 2, 0.3),
            "launch": (work.circuits * passes * chips.launch, 0.3),
        }
    )


@dataclass(frozen=True, slots=True)
class Price:
    """USD in named lines that add up."""

    names: tuple[str, ...]
    usd: tuple[Array, ...]

    @property
    def total(self) -> Array:
        return sum(self.usd, np.zeros_like(self.usd[0]))


def price(row: QuantumPrice, work: Circuits, iterations: Numbers = 1.0, seconds: Numbers = 0.0) -> Price | None:
    """What running `work` so many times costs; `seconds` is the metered time of a simulator. None: no price is known."""
    if row.usd_per_task is None and row.usd_per_shot is None and row.usd_per_minute is None:
        return None
    times = at_least("iterations", iterations, 1.0)
    tasks = times * work.circuits
    lines = np.broadcast_arrays(
        tasks * (row.usd_per_task or 0.0),
        tasks * work.shots * (row.usd_per_shot or 0.0),
        at_least("seconds", seconds, 0.0) / 60 * (row.usd_per_minute or 0.0),
    )
    return Price(("tasks", "shots", "minutes"), tuple(np.array(line) for line in lines))


def hybrid(work: Hybrid, quantum: Terms, chips: Chips, known_rate: float | None = None, round_trip: float = 0.2) -> Terms:
    """All iterations of a hybrid workload: `quantum` is one iteration's circuits (`run` or `simulate`), the rest is here.

    Classical work by FLOP at the `generic` share of `chips`, or its measured time scaled by the peak rates of the known chip
    (`known_rate`) and of these. `round_trip` is the time to send circuits and fetch results, each iteration.
    """
    reached = chips.achieved("generic")
    measured = work.classical.measured
    if measured is not None and known_rate is not None:
        classical_s = measured.takes * positive("known_rate", known_rate) / chips.rate
    else:
        classical_s = column(work.classical.flop or 0.0) / (reached.compute * chips.rate)
    parts: dict[str, tuple[Array, Array | float]] = {
        name: (seconds, quantum.relative) for name, seconds in zip(quantum.names, quantum.seconds, strict=True)
    }
    parts["classical"] = (classical_s, np.hypot(CLASSICAL_SPREAD, chips.spread))
    parts["round trip"] = (np.full_like(classical_s, at_least("round_trip", round_trip, 0.0)[0]), 0.5)
    return Terms.of(parts).times(work.iterations)
