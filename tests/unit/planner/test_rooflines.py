"""The winner's roofline against what the plan and the data sheet say."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from chipwise.api.catalog.check import check
from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import plan
from chipwise.planner.explain.roofline import Roofline, roofline_of
from chipwise.planner.values.plan import Plan

ROOT = Path(__file__).resolve().parents[3]
SESSION = open_session()


@cache
def found(name: str) -> tuple[Plan, Roofline | None]:
    path = str(ROOT / name)
    made = plan(SESSION, path, top=1)
    return made, roofline_of(SESSION.known, check(SESSION, path).workload, made)


DRAWN = (
    "examples/train/workload.yaml",
    "examples/serve/workload.yaml",
    "examples/batch/workload.yaml",
    "examples/hpc/workload.yaml",
    "tests/cases/qlora-7b-24gb.yaml",
    "tests/cases/long-context-8b.yaml",
)


@pytest.mark.parametrize("name", DRAWN)
def test_no_point_is_above_what_can_be_reached_nor_that_above_the_sheet(name: str) -> None:
    made, roof = found(name)
    assert roof is not None
    assert made.winner is not None
    part = SESSION.parts[made.winner.chip]
    assert roof.chip == part.name
    assert roof.nominal.bytes_per_s == part.bandwidth
    assert roof.reached.flop_per_s <= roof.nominal.flop_per_s
    assert roof.reached.bytes_per_s <= roof.nominal.bytes_per_s
    for one in roof.points:
        assert 0 < one.flop_per_s <= roof.reached.at(one.intensity) * 1.02


def test_a_training_step_takes_as_long_as_the_plan_says() -> None:
    made, roof = found("examples/train/workload.yaml")
    assert roof is not None
    assert made.winner is not None
    step = next(one for one in roof.points if one.name == "whole step")
    steps = 20e9 / (488 * 8192)
    assert step.seconds * steps <= made.winner.seconds  # spot machines wait besides
    assert step.seconds * steps >= 0.7 * made.winner.seconds


def test_decode_waits_for_memory_and_prefill_for_arithmetic() -> None:
    _, roof = found("examples/serve/workload.yaml")
    assert roof is not None
    prefill, decode = roof.points
    assert prefill.intensity > 5 * decode.intensity
    assert decode.intensity < roof.nominal.ridge


def test_an_hpc_step_has_the_files_own_intensity() -> None:
    _, roof = found("examples/hpc/workload.yaml")
    assert roof is not None
    assert roof.points[0].intensity == pytest.approx(5.4e11 / 346e9)


@pytest.mark.parametrize("kind", ["render", "transcode", "stream", "interactive"])
def test_work_without_a_roofline_has_none(kind: str) -> None:
    assert found(f"examples/{kind}/workload.yaml")[1] is None


def test_nothing_that_fits_has_no_roofline() -> None:
    assert found("tests/cases/full-7b-24gb.yaml")[1] is None
