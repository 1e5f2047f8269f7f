"""Whole sources are left out: no row of one is in the fit that predicts another of its rows."""

from __future__ import annotations

import numpy as np

from chipwise.calibration.crossvalidate import samples
from chipwise.calibration.sources import source_of
from chipwise.calibration.without import Residuals, calibrated, fold_of, residuals
from chipwise.perf.blocks import fitted
from chipwise.perf.part import Parts
from chipwise.perf.rows import Row
from chipwise.perf.seen import CLASSES


def row(repository: str, notes: str = "", **cells: str) -> Row:
    return Row({"source_repo": repository, "notes": notes, **cells})


def test_a_source_is_who_measured() -> None:
    assert source_of(row("QwenLM/Qwen3")) == source_of(row("QwenLM/Qwen2.5"))
    assert source_of(row("google/maxtext")) == source_of(row("AI-Hypercomputer/tpu-recipes"))
    assert source_of(row("NVIDIA/TensorRT-LLM")) != source_of(row("NVIDIA/FasterTransformer"))
    dell, cisco = (row("mlcommons/inference_results_v5.1", f"submitter {name}; x") for name in ("Dell", "Cisco"))
    assert source_of(dell) != source_of(cisco)
    trained = row("mlcommons/training_results_v5.1", "MLPerf Training v5.1 llama31_8b; Nebius nebius_b200_n4; rate")
    assert source_of(trained) == "MLPerf Nebius"


def test_a_source_is_in_one_fold(mpt: list[Row]) -> None:
    rows = [*mpt, *(row(f"someone/{number % 7}") for number in range(40))]
    fold = fold_of(rows, 4)
    by_source: dict[str, set[int]] = {}
    for one, number in zip(rows, fold, strict=True):
        by_source.setdefault(source_of(one), set()).add(int(number))
    assert all(len(numbers) == 1 for numbers in by_source.values())


def test_values_of_a_source_do_not_reach_its_own_predictions(parts: Parts, mpt: list[Row]) -> None:
    halves = [Row({**one.cells, "source_repo": f"someone/{place % 2}"}) for place, one in enumerate(mpt)]
    wild = [
        Row({**one.cells, "metric_value": str(3 * one.number("metric_value", 1.0))})
        if one.text("source_repo")[-1] == "0"
        else one
        for one in halves
    ]
    plain, changed = (samples(rows, parts)[0] for rows in (halves, wild))
    before, after = (residuals(sample, fitted("training")) for sample in (plain, changed))
    own = np.array([one.text("source_repo")[-1] == "0" for one in plain.rows])
    moved = np.abs(after.residual[own] - before.residual[own])
    assert np.allclose(moved, np.log(3.0))
    assert np.abs(after.residual[~own] - before.residual[~own]).max() > 1e-3


def test_intervals_hold_the_prediction(parts: Parts, mpt: list[Row]) -> None:
    many = [Row({**one.cells, "source_repo": f"someone/{place % 9}"}) for place, one in enumerate(mpt)]
    (sample,) = samples(many, parts)
    random = np.random.default_rng(1)
    count = len(sample.rows)
    near = np.array([CLASSES[0]] * (count - 5) + [CLASSES[3]] * 5)
    errors = Residuals(fold_of(sample.rows), random.normal(0.3, 0.1, count), random.uniform(0.1, 0.3, count), near)
    bands = calibrated(sample, errors, sample.weight > 0)
    assert all(low < 0 < high for band in bands.values() for low, high in zip(band.low, band.high, strict=True))
    assert {f"training|{name}" for name in CLASSES} <= set(bands)
