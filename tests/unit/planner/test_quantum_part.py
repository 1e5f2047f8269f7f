"""The quantum part of a hybrid plan: which device, of which kind, what it costs, and why the other kind lost."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.planner.explain.reason_words import words
from chipwise.planner.explain.row_words import brief, running
from chipwise.planner.explain.words import sentence
from chipwise.planner.values.plan import Plan
from chipwise.views.plan import plan_view

OWN = "simulated on the chip"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


def asked(session: Session, quantum: str, more: str = "", iterations: int = 20) -> Plan:
    text = f"kind: hybrid\nname: q\niterations: {iterations}\nquantum: {{{quantum}}}\n"
    text += f"classical: {{flop: 1e11, memory: 1GiB}}\n{more}"
    return plan(session, "workload.yaml", text=text)


def why(found: Plan, family: str) -> str:
    return next(words(one.why) for one in found.losses if one.family == family)


@pytest.fixture(scope="module")
def small(session: Session) -> Plan:
    return asked(session, "qubits: 20, shots: 1000, circuits: 9, depth: 60, two_qubit_gates: 200", iterations=100)


@pytest.fixture(scope="module")
def large(session: Session) -> Plan:
    return asked(session, "qubits: 52, shots: 1000, circuits: 10, depth: 40, two_qubit_gates: 400")


def test_few_qubits_are_simulated_and_the_choice_says_so(small: Plan) -> None:
    one = small.winner
    assert one is not None
    assert one.quantum is not None
    assert (one.quantum.kind, one.quantum.device, one.quantum.managed) == ("simulator", OWN, False)
    assert (one.quantum.tasks, one.quantum.shots, one.quantum.usd) == (900, 1000, 0.0)
    assert f"with circuits {OWN}" in sentence(small)
    assert OWN in brief(one, "job")
    assert dict(running(one))["circuits"].startswith(OWN)


def test_many_qubits_take_a_processor_by_name_with_its_cost(large: Plan) -> None:
    one = large.winner
    assert one is not None
    assert one.quantum is not None
    assert one.quantum.kind == "qpu"
    assert one.quantum.usd == pytest.approx(sum(line.usd for line in one.cost.lines if one.quantum.device in line.name))
    assert one.quantum.usd > 0.9 * one.usd
    assert f"on QPU {one.quantum.device}" in sentence(large)


def test_a_processor_that_lost_tells_its_cost_and_how_many_times_that_is(small: Plan) -> None:
    loss = next(one for one in small.losses if one.family == "aws braket IQM Garnet")
    assert loss.choice is not None
    assert small.winner is not None
    assert loss.choice.quantum is not None
    assert loss.choice.quantum.usd == pytest.approx(900 * 0.3 + 900 * 1000 * 0.00145)
    assert words(loss.why).startswith("QPU: $1,575 a job")
    assert f"{loss.choice.usd / small.winner.usd:,.0f} times as much" in words(loss.why)


def test_a_simulator_that_cannot_hold_the_state_tells_how_much_it_lacks(large: Plan) -> None:
    told = why(large, OWN)
    assert f"cannot hold 52 qubits: the state needs {2**52 * 16 // 2**30:,} GiB" in told
    assert "34 qubits, 52 needed" in why(large, "aws braket SV1")


def test_a_managed_simulator_competes_where_it_is_modelled(small: Plan) -> None:
    loss = next(one for one in small.losses if one.family == "aws braket SV1")
    assert loss.choice is not None
    assert loss.choice.quantum is not None
    assert (loss.choice.quantum.kind, loss.choice.quantum.managed) == ("simulator", True)
    assert loss.choice.quantum.usd == pytest.approx(loss.choice.quantum.seconds / 60 * 0.075)
    assert "not modelled" in why(small, "aws braket TN1")


def test_a_named_simulator_is_the_only_device(session: Session) -> None:
    found = asked(session, "qubits: 20, shots: 1000, device: SV1")
    assert found.winner is not None
    assert found.winner.quantum is not None
    assert (found.winner.quantum.device, found.winner.quantum.kind) == ("aws braket SV1", "simulator")
    assert not any(one.family == OWN for one in found.losses)


def test_a_budget_that_a_processor_breaks_is_told_of_it(session: Session) -> None:
    found = asked(session, "qubits: 20, shots: 1000, circuits: 9", "goals: {budget: $100}\n", iterations=100)
    assert found.winner is not None
    assert "exceeds the budget of $100" in why(found, "aws braket IQM Garnet")


def test_json_has_the_quantum_part_of_every_choice(small: Plan, large: Plan) -> None:
    for found, kind in ((small, "simulator"), (large, "qpu")):
        view = plan_view(found)
        assert {one["quantum"]["kind"] for one in view["choices"]} == {kind}
        assert set(view["winner"]["quantum"]) == {
            "device",
            "kind",
            "managed",
            "qubits",
            "tasks",
            "shots",
            "usd",
            "seconds",
        }


def test_other_work_has_no_quantum_part(session: Session) -> None:
    found = plan(session, "w.yaml", text="kind: interactive\nname: a\npeople: 2\nmemory: 10GiB\n")
    assert found.winner is not None
    assert found.winner.quantum is None
