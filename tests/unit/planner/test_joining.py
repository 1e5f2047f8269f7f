"""Which machines can work on one job: over a network that is stated, within a rack of fast links, and else each alone."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.planner.explain.reason_words import missing_words, words
from chipwise.planner.explain.remedy_words import remedy_words
from chipwise.planner.fleet import Fleet, fleet_of, linked, placed
from chipwise.planner.training.search import hardware_of
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import width

TRAIN = """kind: train
name: t
model: llama-3.1-8b
tokens: 1e9
sequence_length: 2048
batch_tokens: 1000000
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


@pytest.fixture(scope="module")
def fleet(session: Session) -> Fleet:
    return fleet_of(session.catalog, session.parts)


def reach(fleet: Fleet, provider: str, machine: str) -> float:
    return float(fleet.reach[fleet.catalog.machine_index[provider, machine]])


def shape(fleet: Fleet, provider: str, machine: str) -> int:
    return int(fleet.shape_of[fleet.catalog.machine_index[provider, machine]])


def asked(session: Session, limits: str, text: str = TRAIN) -> Plan:
    return plan(session, "workload.yaml", text=f"{text}limits: {{{limits}}}\n", top=1000)


def test_a_stated_network_or_one_with_a_name_joins(fleet: Fleet) -> None:
    assert reach(fleet, "aws", "p5.48xlarge") == np.inf
    assert reach(fleet, "gcp", "a3-ultragpu-8g") == np.inf  # RoCE, of a speed that nobody states
    assert reach(fleet, "gcp", "ct5lp-hightpu-8t") == np.inf


def test_a_network_that_nobody_states_joins_nothing(fleet: Fleet) -> None:
    for at, machine in enumerate(fleet.catalog.machines):
        stated = machine.fabric_bytes_per_s or machine.network_bytes_per_s or machine.fabric
        part = fleet.parts.find(machine.chip) if machine.chip else None
        if not stated and part is not None and part.kind == "gpu" and part.domain <= 8:
            assert fleet.reach[at] == 1


def test_a_rack_joins_as_many_as_its_links_do(fleet: Fleet) -> None:
    assert reach(fleet, "oci", "BM.GPU.GB200.4") == 72 // 4
    assert reach(fleet, "lambda", "gpu_1x_gh200") == 1


def test_a_single_gh200_is_linked_to_no_other(session: Session, fleet: Fleet) -> None:
    part = session.parts["GH200"]
    assert part.domain > 1
    assert linked(part, 1) == 1
    at = shape(fleet, "lambda", "gpu_1x_gh200")
    assert float(hardware_of(fleet, np.array([at])).domain[0]) == 1
    assert placed(fleet, at).domain == 1


def test_the_performance_model_and_the_fleet_agree_on_what_links_join(fleet: Fleet) -> None:
    domain = hardware_of(fleet, np.arange(len(fleet.shapes))).domain
    assert domain.tolist() == [float(linked(fleet.part(at), one.chips)) for at, one in enumerate(fleet.shapes)]


def test_a_machine_of_six_inferentia_chips_ends_the_links(session: Session) -> None:
    assert linked(session.parts["Inferentia2"], 6) == 6
    assert linked(session.parts["Trainium1"], 16) == 16


def test_no_plan_trains_over_machines_without_a_stated_network(session: Session) -> None:
    found = asked(session, "clouds: [lambda, vast, runpod], chip_count: {max: 64}")
    assert found.winner is not None
    assert {one.machines for one in (*found.choices, *found.front)} == {1}
    assert any("how fast several of them are connected is not published" in note for note in found.notes)
    over_aws = asked(session, "clouds: aws, chip_count: {max: 64}, chips: [h100]")
    assert {one.machines for one in over_aws.front} - {1}


def test_copies_of_a_service_need_no_network(session: Session) -> None:
    text = "kind: serve\nname: s\nmodel: llama-3.1-8b\narrival: 60 req/s\ninput_tokens: 1000\noutput_tokens: 300\n"
    found = asked(session, "clouds: [vast]", text)
    assert found.winner is not None
    assert found.winner.machines > 1
    assert width(found.winner.split) <= found.winner.chips


def test_a_copy_over_several_machines_needs_one(session: Session) -> None:
    text = "kind: serve\nname: s\nmodel: llama-3.1-405b\narrival: 1 req/s\ninput_tokens: 1000\noutput_tokens: 300\n"
    text += "precision: bf16\n"
    found = asked(session, "clouds: [lambda], chips: [h100]", text)
    assert found.winner is None
    assert [one.what for one in found.missing] == ["memory"]
    assert "once the network between these machines is stated" in remedy_words(found.missing[0])
    over_aws = asked(session, "clouds: [aws], chips: [h100]", text)
    assert over_aws.winner is not None
    assert over_aws.winner.machines >= 2


def test_training_that_one_machine_cannot_hold_says_that_the_network_is_not_stated(session: Session) -> None:
    text = TRAIN.replace("8b", "70b")
    found = asked(session, "clouds: [lambda], chips: [a100-40]", text)
    assert found.winner is None
    assert "once the network between these machines is stated" in remedy_words(found.missing[0])


def test_numerical_work_over_several_machines_needs_a_network(session: Session) -> None:
    text = "kind: hpc\nname: h\nflop_per_step: 1e15\nsteps: 1000\nworking_set: 3TB\nprecision: fp64\n"
    found = asked(session, "clouds: [vast, lambda]", text)
    assert found.winner is None
    assert found.missing[0].what == "network"
    assert "several machines at once" in missing_words(found.missing[0])
    assert any("the network between them is not stated" in words(one.why) for one in found.losses)
