"""Plans whose speed follows from a run that was measured, and plans of work that only a run tells of."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.planner.values.plan import Plan

PHOTOS = (
    "kind: train\nname: a\nmodel: resnet-50\nsamples: 1.28M\nepochs: 4\nlimits: {chips: [h100], clouds: [aws], chip_count: 8}\n"
)
SCRIPT = "kind: train\nname: a\nepochs: 30\n"
SERVICE = "kind: serve\nname: a\narrival: {rate: 40 req/s}\ngoals: {latency: {p95: 900ms}}\n"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


def planned(session: Session, text: str, measured: str = "") -> Plan:
    return plan(session, "a.yaml", text=text + (f"measured: {measured}\n" if measured else ""))


def test_a_slower_run_makes_the_same_plan_as_much_slower(session: Session) -> None:
    slow, fast = (planned(session, PHOTOS, f"{{on: rtx-4090, takes: {minutes}min, per: epoch}}") for minutes in (60, 30))
    assert slow.winner is not None
    assert fast.winner is not None
    assert slow.winner.machine == fast.winner.machine
    assert slow.winner.work_s == pytest.approx(2 * fast.winner.work_s)
    assert slow.notes[0] == "Speed from your 1 h per epoch on one RTX-4090."


def test_work_that_only_a_run_tells_of_is_planned_on_chips_like_its_own(session: Session) -> None:
    answer = planned(session, SCRIPT, "{on: rtx-4090, takes: 6h, per: epoch}")
    assert answer.winner is not None
    assert answer.kind == "train"
    chips = {session.known.parts[choice.catalog_chip or ""] for choice in answer.choices}
    assert {(chip.vendor, chip.kind) for chip in chips} == {("NVIDIA", "gpu")}
    assert all(chip.memory_bytes >= 0.95 * session.known.parts["RTX-4090"].memory_bytes for chip in chips)


def test_a_training_that_only_a_run_tells_of_keeps_to_as_many_chips_as_it_ran_on(session: Session) -> None:
    run = "{on: rtx-4090, takes: 6h, per: epoch}"
    assert {choice.machines * choice.chips for choice in planned(session, SCRIPT, run).choices} == {1}
    eight = planned(session, SCRIPT, run.replace("4090,", "4090, chips: 8,"))
    assert max(choice.machines * choice.chips for choice in eight.choices) == 8
    stated = planned(session, SCRIPT + "limits: {chip_count: {min: 4, max: 8}}\n", run)
    assert {choice.machines * choice.chips for choice in stated.choices} == {4}
    assert any(note.startswith("How it scales past 1 chip was not measured") for note in stated.notes)


def test_stated_memory_allows_smaller_chips(session: Session) -> None:
    limits = "limits: {chips: [t4], chip_count: 1, clouds: [aws]}\n"
    assert planned(session, SCRIPT + limits, "{on: rtx-4090, takes: 6h, per: epoch}").winner is None
    assert planned(session, SCRIPT + limits, "{on: rtx-4090, takes: 6h, per: epoch, memory: 9GB}").winner is not None


def test_a_service_that_only_a_run_tells_of_keeps_its_goals(session: Session) -> None:
    answer = planned(session, SERVICE, "{on: l4, takes: 120ms, memory: 9GB}")
    assert answer.winner is not None
    assert (answer.kind, answer.per) == ("serve", "month")
    assert (answer.winner.rate or 0.0) * (answer.winner.replicas or 0) >= 40
    late = planned(session, SERVICE.replace("900ms", "2ms"), "{on: l4, takes: 120ms, memory: 9GB}")
    assert late.winner is None


def test_a_pile_and_numerical_work_are_planned_alike(session: Session) -> None:
    pile = planned(session, "kind: batch\nname: a\nitems: 2M\n", "{on: l40s, rate: 300 items/s}")
    solver = planned(session, "kind: hpc\nname: a\nsteps: 10\n", "{on: a100, takes: 30h, bound: memory}")
    for answer in (pile, solver):
        assert answer.winner is not None
        assert answer.notes[0].startswith("Speed from your ")
