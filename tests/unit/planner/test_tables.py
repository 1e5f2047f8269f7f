"""Embedding tables that no chip holds alone: memory and exchange by hand, and the plans that come of it."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.perf import family_vision
from chipwise.perf.arrays import column
from chipwise.perf.collective import LINK_EFFICIENCY, LINK_HALF_BYTES, LINK_LATENCY_S
from chipwise.perf.networks import net_of
from chipwise.perf.vision import bases, compose, exchanged_bytes
from chipwise.planner.explain.reason_words import missing_words, words
from chipwise.planner.explain.row_words import brief
from chipwise.planner.fleet import Shape
from chipwise.planner.kinds.tables import fitted_copy, trained, training_cases
from chipwise.planner.kinds.ways import COUNT, MEMORY, Cannot
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import width
from chipwise.predictor.sampled import Sampled
from chipwise.predictor.samples import predict_samples, resolve
from chipwise.units import GIB
from chipwise.workload.model import registry
from effort import cases

ROWS = (
    5 * 40_000_000
    + 3_067_956
    + 590_152
    + 405_282
    + 39_060
    + 20_265
    + 17_295
    + 12_973
    + 11_938
    + 7_424
    + 7_122
    + (2_209 + 1_543 + 976 + 155 + 108 + 63 + 36 + 14 + 10 + 4 + 3)
)
# 13 > 512 > 256 > 128; three crossings of 27 x 128 = 3456 in rank 512 with a bias; 3456 > 1024 > 1024 > 512 > 256 > 1.
DENSE = (
    (13 * 512 + 512 + 512 * 256 + 256 + 256 * 128 + 128)
    + 3 * (2 * 3456 * 512 + 3456)
    + (3456 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 512 + 512 + 512 * 256 + 256 + 256 + 1)
)


@cache
def opened() -> Session:
    return open_session()


@pytest.fixture
def session() -> Session:
    return opened()


def asked(session: Session, on: str = "a100-80", **other: Any) -> Sampled:
    return resolve(session.known, "dlrm-v2", on, {"task": "serve", "precision": "fp32"} | other)


def planned(session: Session, text: str) -> Plan:
    return plan(session, "workload.yaml", text=f"name: a\nmodel: dlrm-v2\n{text}")


# --- arithmetic


def test_the_tables_of_dlrm_v2_are_105_gb_in_fp32() -> None:
    shape: Any = registry.find("dlrm-v2").shape
    assert shape.embedding_parameters == ROWS * 128
    assert shape.embedding_parameters * 4 / 1e9 == pytest.approx(104.54, abs=0.01)
    assert shape.dense_parameters == DENSE


def test_a_chip_holds_its_share_of_the_tables_and_all_of_the_rest(session: Session) -> None:
    whole = asked(session)
    tables = whole.tables
    assert whole.memory(1.0)["weights"] == 4 * (tables + DENSE)
    shared = whole.split(4).memory(1.0)
    assert shared["tables"] == 4 * tables / 4
    assert shared["weights"] == 4 * DENSE
    assert shared["activations"] == whole.memory(1.0)["activations"]
    learnt = resolve(session.known, "dlrm-v2", "a100-80", {"task": "train", "chips": 16.0}).memory(1.0)
    assert learnt["tables"] == 16 * tables / 16
    assert learnt["weights and states"] == 16 * DENSE


def test_a_sample_names_214_rows_and_takes_26_vectors() -> None:
    names, pooled = exchanged_bytes(net_of(registry.find("dlrm-v2").shape), column(256.0), column(4.0))
    assert names[0] == 256 * 214 * 8
    assert pooled[0] == 256 * 26 * 128 * 4


def test_the_exchange_is_two_all_to_alls_and_in_training_a_third(session: Session) -> None:
    batch, ways = 256.0, 4
    part = session.parts["A100-80"]

    def one_way(size: float) -> float:
        """(k-1)/k of the bytes in k-1 messages, each of which also takes the time of half a megabyte or so of ramp."""
        return (ways - 1) * (size / ways + LINK_HALF_BYTES) / (LINK_EFFICIENCY * part.link) + LINK_LATENCY_S * math.log2(ways)

    names, pooled = batch * 214 * 8, batch * 26 * 128 * 4
    served = family_vision.pass_of([replace(asked(session).split(ways), chips=4.0).case(batch, "latency_ms")])
    made = bases(served)
    assert made["exchange"][0] == pytest.approx(one_way(names) + one_way(pooled), rel=1e-9)
    assert compose(served, made)["communication"][0] == pytest.approx(made["exchange"][0])
    learning = replace(
        resolve(session.known, "dlrm-v2", "a100-80", {"task": "train", "chips": 4.0, "precision": "fp32"}), node=8.0
    )
    step = bases(family_vision.pass_of([learning.case(batch, "latency_ms")]))
    assert step["exchange"][0] == pytest.approx(one_way(names) + 2 * one_way(pooled), rel=1e-9)


def test_nothing_is_exchanged_where_each_chip_has_all(session: Session) -> None:
    for model in ("dlrm-v2", "resnet-50"):
        ask = resolve(session.known, model, "h200", {"task": "serve"})
        assert ask.table_ways == 1
        assert bases(family_vision.pass_of([ask.case(64.0, "latency_ms")]))["exchange"][0] == 0


def test_an_exchange_between_machines_takes_longer_than_inside_one(session: Session) -> None:
    ask = resolve(session.known, "dlrm-v2", "a100-80", {"task": "train", "chips": 8.0})
    near, far = (
        bases(family_vision.pass_of([replace(ask, node=node).case(512.0, "latency_ms")]))["exchange"][0] for node in (8.0, 1.0)
    )
    assert near < far


# --- laws


@given(ways=st.integers(1, 255), batch=st.integers(1, 4096).map(float), task=st.sampled_from(["serve", "train"]))
@settings(max_examples=cases(50), deadline=None)
def test_more_chips_never_need_more_memory_each(ways: int, batch: float, task: str) -> None:
    ask = replace(asked(opened(), task=task), table_ways=1.0)
    few, more = (sum(ask.split(many).memory(batch).values()) for many in (ways, ways + 1))
    assert more < few
    if ways > 1:
        assert few < sum(ask.memory(batch).values())  # each chip with all tables


@given(ways=st.sampled_from([2.0, 4.0, 8.0]), batch=st.integers(1, 4096).map(float))
@settings(max_examples=cases(30), deadline=None)
def test_what_is_exchanged_only_adds_to_the_time(ways: float, batch: float) -> None:
    ask = asked(opened(), on="h200")
    alone, shared = (one.passes([batch]).seconds[0] for one in (ask, replace(ask.split(ways), chips=ways)))
    assert shared > alone


# --- which chips hold it


def test_the_fewest_chips_of_a_machine_that_hold_it_are_one_copy(session: Session) -> None:
    ask = asked(session)
    assert isinstance(found := fitted_copy(ask, 8), Sampled)
    assert (found.table_ways, found.chips, found.together) == (2, 2, 2)
    small = asked(session, on="l4")
    assert isinstance(found := fitted_copy(small, 8), Sampled)
    assert found.table_ways == 8  # 13.1 GB each of 24
    assert isinstance(lacks := fitted_copy(small, 4), Cannot)
    assert lacks.passed == MEMORY
    assert "over 4" in words(lacks.why)
    assert isinstance(lacks := fitted_copy(small, 1), Cannot)
    assert "over" not in words(lacks.why)


def test_a_chip_that_holds_all_is_left_alone(session: Session) -> None:
    ask = asked(session, on="h200")
    assert fitted_copy(ask, 8) == ask


def test_training_over_machines_needs_a_network_that_is_stated(session: Session) -> None:
    ask = replace(
        resolve(session.known, "dlrm-v2", "a100-80", {"task": "train"}), part=replace(session.parts["A100-80"], domain=8)
    )
    stated = Shape("A100-80", 8, 25e9, 80 * GIB)
    found = trained(ask, stated, [1.0, 2.0, 4.0])
    assert not isinstance(found, Cannot)
    assert [one.table_ways for one in found] == [8, 16, 32]
    silent = trained(ask, replace(stated, fabric=0.0), [1.0, 2.0])
    assert not isinstance(silent, Cannot)
    assert [one.chips for one in silent] == [8]
    never = trained(ask, replace(stated, fabric=0.0), [2.0])
    assert isinstance(never, Cannot)
    assert never.passed == COUNT
    few = trained(ask, replace(stated, chips=2), [1.0, 2.0])
    assert isinstance(few, Cannot)
    assert "over 4" in words(few.why)


def test_chips_that_share_tables_answer_together(session: Session) -> None:
    predicted = predict_samples(
        session.known, "dlrm-v2", "a100-80", {"task": "serve", "precision": "fp32", "chips": 4.0, "batch": 512.0}
    )
    assert predicted.fit.fits
    assert predicted.copies == 2
    assert predicted.memory.lines_bytes["tables"] == pytest.approx(4 * asked(session).tables / 2)
    assert predicted.samples_per_s.value == pytest.approx(2 * 512 / (predicted.latency_ms.value / 1e3))
    assert any("split evenly over 2 chips" in note for note in predicted.notes)


# --- plans


def test_a_recommender_that_no_chip_holds_is_served_by_two(session: Session) -> None:
    found = planned(
        session,
        "kind: serve\narrival: {rate: 1000 req/s}\nprecision: fp32\ngoals: {latency: {p99: 60ms}}\n"
        "limits: {chips: a100-80, interruptible: false}\n",
    )
    best = found.winner
    assert best is not None
    assert best.chips * best.machines == 2
    assert width(best.split) == 2
    assert best.replicas == 1
    assert best.memory_share == pytest.approx((4 * asked(session).tables / 2 + 4 * DENSE) / (80 * GIB), rel=0.001)
    assert best.provenance == "formula"
    assert "tables/2" in brief(best, "month")
    assert any("exchange is by formula" in note for note in found.notes)


def test_where_one_chip_holds_all_nothing_is_split(session: Session) -> None:
    found = planned(session, "kind: batch\nitems: 1e9\nprecision: fp32\nlimits: {chips: h200}\n")
    assert found.winner is not None
    assert all(width(one.split) == 1 for one in found.choices)
    assert not any("exchange is by formula" in note for note in found.notes)


def test_a_pile_is_worked_through_by_groups_of_chips(session: Session) -> None:
    found = planned(session, "kind: batch\nitems: 1e10\nprecision: fp32\nlimits: {chips: a100-80}\n")
    best = found.winner
    assert best is not None
    assert width(best.split) == 2
    assert best.replicas == best.chips * best.machines // 2


def test_training_splits_tables_over_all_chips_of_the_job(session: Session) -> None:
    found = planned(session, "kind: train\nsamples: 4e9\nbatch_samples: 65536\nlimits: {chips: a100-80}\n")
    assert found.choices
    assert all(one.split.as_dict()["tables"] == one.chips * one.machines == one.split.as_dict()["dp"] for one in found.choices)
    assert any("16 bytes" in note for note in found.notes)


def test_fewer_chips_than_the_tables_need_are_refused_with_both_numbers(session: Session) -> None:
    found = planned(
        session, "kind: serve\narrival: {rate: 10 req/s}\nprecision: fp32\nlimits: {chips: a100-80, chip_count: 1}\n"
    )
    assert found.winner is None
    assert "needs 2 chips, 1 are allowed" in missing_words(found.missing[0])


def test_rows_are_as_one_at_a_time(session: Session) -> None:
    cases = [asked(session).split(ways).case(64.0, "latency_ms") for ways in (1.0, 2.0, 8.0)]
    together = bases(family_vision.pass_of(cases))["exchange"]
    assert np.allclose(together, [bases(family_vision.pass_of([one]))["exchange"][0] for one in cases])


# --- all passes of a search at once


@pytest.mark.parametrize("model", ["dlrm-v2", "resnet-50"])
def test_passes_made_together_are_those_made_one_by_one(session: Session, model: str) -> None:
    passes = [
        (replace(ask, chips=chips, node=node, table_ways=chips if ask.tables else 1.0), batch)
        for chip in ("a100-80", "trainium1", "h100")
        for ask in [resolve(session.known, model, chip, {"task": "train"})]
        for node, chips, batch in (
            (1.0, 1.0, 0.4),
            (1.0, 3.0, 256.0),
            (8.0, 8.0, 64.0),
            (8.0, 1_234_568.0, 33.333333),
            (16.0, 64.0, 1.0),
        )
    ]
    assert training_cases(passes) == [ask.case(batch, "samples_per_s") for ask, batch in passes]
