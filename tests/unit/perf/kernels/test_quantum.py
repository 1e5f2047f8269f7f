"""Laws of circuits on processors and in simulators, and their price."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.fact import UNKNOWN
from chipwise.catalog.price_tables import QuantumPrice
from chipwise.errors import BadInput, UnknownName
from chipwise.perf.kernels import quantum
from chipwise.perf.kernels.chips import Chips
from chipwise.perf.kernels.quantum import TIMINGS, Circuits
from chipwise.perf.part import Part, Parts
from chipwise.workload.kinds import Hybrid
from chipwise.workload.parse import load

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
CHIP = Part(
    name="made up",
    vendor="-",
    kind="gpu",
    architecture="-",
    memory_bytes=80 * 2.0**30,
    bandwidth=2e12,
    rates={"fp64": 1e13, "fp32": 2e13},
    power_w=400,
    link=2e11,
    domain=8,
    fabric=2.5e10,
    pcie=2.4e10,
)
QUBITS, SHOTS, DEPTHS = st.integers(1, 40), st.integers(1, 100_000), st.integers(1, 10_000)


@given(QUBITS, SHOTS, DEPTHS, st.integers(0, 1000), st.sampled_from(sorted(TIMINGS)))
def test_more_shots_depth_or_gates_are_never_faster(qubits: int, shots: int, depth: int, more: int, kind: str) -> None:
    few = quantum.run(Circuits.of(qubits, shots, 1, depth, depth), TIMINGS[kind])
    many = quantum.run(Circuits.of(qubits, shots + more, 1, depth + more, depth + more), TIMINGS[kind])
    assert many.total[0] >= few.total[0]
    assert few.total == pytest.approx(sum(few.seconds))


@given(st.integers(2, 34), DEPTHS, st.floats(1e11, 1e13), st.floats(1, 10))
def test_more_bandwidth_is_never_slower(qubits: int, depth: int, bandwidth: float, wider: float) -> None:
    work = Circuits.of(qubits, 100, 1, depth)
    slow, fast = (
        quantum.simulate(Chips.of([replace(CHIP, bandwidth=b)], "fp64"), work).total[0] for b in (bandwidth, bandwidth * wider)
    )
    assert fast <= slow * (1 + 1e-12)


@given(st.integers(1, 39), DEPTHS)
def test_one_qubit_more_never_takes_less_and_doubles_the_state(qubits: int, depth: int) -> None:
    chips = Chips.of([CHIP], "fp64")
    less, more = (quantum.simulate(chips, Circuits.of(n, 1, 1, depth)).total[0] for n in (qubits, qubits + 1))
    assert more > less
    assert quantum.state_bytes(qubits + 1)[0] == 2 * quantum.state_bytes(qubits)[0]


@given(st.lists(st.tuples(st.integers(2, 34), SHOTS, DEPTHS, st.integers(1, 64)), min_size=1, max_size=5))
def test_the_array_call_equals_the_calls_one_by_one(rows: list[tuple[int, int, int, int]]) -> None:
    qubits, shots, depth, count = (np.array(values, dtype=float) for values in zip(*rows, strict=True))
    chips = Chips.of([CHIP], "fp64")
    together = quantum.simulate(chips, Circuits.of(qubits, shots, 1, depth), count)
    for i, (q, s, d, n) in enumerate(rows):
        assert together.total[i] == pytest.approx(quantum.simulate(chips, Circuits.of(q, s, 1, d), n).total[0])


def test_thirty_two_qubits_fit_80_gib_and_a_doubling_of_chips_gives_one_more() -> None:
    chips = Chips.of([CHIP], "fp64")
    assert quantum.fits(chips, [32, 33]).tolist() == [True, False]
    assert quantum.fits(chips, [33, 34], 3).tolist() == [True, False]  # three chips work as two
    assert quantum.fits(chips, 33, kind="complex64").tolist() == [True]


def test_every_device_of_the_table_has_a_technology_with_times(catalog: Catalog) -> None:
    found = {row.device: quantum.technology(row) for row in catalog.rows("quantum") if row.kind != "note"}
    assert set(found.values()) <= set(TIMINGS)
    assert found["IQM Garnet"] == "superconducting"
    assert found["IonQ Forte-1"] == "trapped ion"
    assert found["QuEra Aquila"] == "neutral atoms"
    assert found["SV1"] == "simulator"


def test_ions_are_slower_than_superconductors_shot_by_shot() -> None:
    work = Circuits.of(20, 1000, 1, 96, 240)
    ions, loops = (quantum.run(work, TIMINGS[kind], batches=0).total[0] for kind in ("trapped ion", "superconducting"))
    assert ions > 20 * loops


def test_price_is_tasks_and_shots_or_minutes(catalog: Catalog) -> None:
    rows, work = catalog.rows("quantum"), Circuits.of(20, 1000, 9)
    cost = quantum.price(quantum.device("iqm garnet", rows), work, iterations=150)
    assert cost is not None
    assert cost.total[0] == pytest.approx(150 * 9 * 0.3 + 150 * 9 * 1000 * 0.00145)
    metered = quantum.price(quantum.device("SV1", rows), work, seconds=120)
    assert metered is not None
    assert metered.total[0] == pytest.approx(0.15)
    assert quantum.price(quantum.device("Open Plan", rows), work) is None


def test_an_unknown_device_is_answered_with_the_nearest(catalog: Catalog) -> None:
    with pytest.raises(UnknownName, match="IQM Garnet"):
        quantum.device("IQM Garnett", catalog.rows("quantum"))


def test_the_example_workload_adds_classical_work_to_every_iteration(catalog: Catalog, parts: Parts) -> None:
    work = load(EXAMPLES / "hybrid" / "workload.yaml")
    assert isinstance(work, Hybrid)
    row = quantum.device(work.quantum.device or "", catalog.rows("quantum"))
    once = quantum.run(Circuits.from_quantum(work.quantum), TIMINGS[quantum.technology(row)], batches=1 / 150)
    terms = quantum.hybrid(work, once, Chips.of([parts["A100-80"], parts["L4"]], "fp64"))
    assert terms.names[-2:] == ("classical", "round trip")
    assert terms["classical"][0] < terms["classical"][1]
    assert terms.total == pytest.approx(sum(terms.seconds))
    assert terms["queue"][0] == pytest.approx(600)


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("qubits", lambda: Circuits.of(0, 1)),
        ("shots", lambda: Circuits.of(1, 0)),
        ("depth", lambda: Circuits.of(1, 1, 1, 0)),
        ("chips", lambda: quantum.simulate(Chips.of([CHIP], "fp64"), Circuits.of(4, 1), 0)),
        ("kind", lambda: quantum.state_bytes(4, "complex32")),
        ("iterations", lambda: quantum.price(_row(), Circuits.of(1, 1), 0)),
    ],
)
def test_bad_input_names_the_field_and_what_is_allowed(field: str, call: object) -> None:
    assert callable(call)
    with pytest.raises(BadInput, match=f"^{field}: .*Allowed: "):
        call()


def _row() -> QuantumPrice:
    return QuantumPrice("p", "d", "qpu", "", 10, 0.3, 0.01, None, None, "superconducting", "gates", UNKNOWN)
