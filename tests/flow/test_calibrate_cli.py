"""`chipwise calibrate` as a user has it: learn from runs, use it in later predictions, forget it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from chipwise.calibration.crossvalidate import group_key
from chipwise.calibration.measurements import packaged
from chipwise.calibration.score import predict
from chipwise.catalog.load import load
from chipwise.perf.model import packaged as packaged_model
from chipwise.perf.part import Parts
from command import Chipwise


def runs(path: Path, slower: list[float], groups: int = 14) -> Path:
    """MPT runs of so many groups, each as many times slower than predicted as asked for."""
    kept = [row for row in packaged() if row.text("source_repo") == "mosaicml/llm-foundry"]
    names = list(dict.fromkeys(map(group_key, kept)))[: min(groups, len(slower))]
    each = len(slower) // len(names)
    rows = [row for name in names for row in [row for row in kept if group_key(row) == name][:each]]
    answers = predict(rows, Parts(load().chips.values()), packaged_model())
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0].cells))
        writer.writeheader()
        for row, answer, factor in zip(rows, answers, slower, strict=True):
            assert answer.predicted is not None
            power = 1.0 if row.text("metric_name") == "step_time_s" else -1.0
            writer.writerow({**row.cells, "row_id": "", "metric_value": f"{answer.predicted * factor**power:.8g}"})
    return path


def test_a_calibration_is_stored_used_shown_and_forgotten(chipwise: Chipwise, tmp_path: Path) -> None:
    path = runs(tmp_path / "runs.csv", [1.2] * 14)
    done = chipwise("calibrate", str(path))
    assert done.code == 0, done.err
    assert "held-out median error 20.0% -> " in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    store = json.loads((chipwise.data_dir / "calibration.json").read_text())
    assert (store["date"], store["rows"], store["file"]) == ("2026-11-15", 14, "runs.csv")
    assert set(store["versions"]) == {"chipwise", "factors"}
    own, plain = chipwise("score", str(path), "--json"), chipwise("score", str(path), "--json", "--no-own")
    assert own.json["median_ape"] < 0.02 < 0.15 < plain.json["median_ape"]
    assert any("your own calibration" in note for note in own.json["notes"])
    assert "14 runs of runs.csv" in chipwise("calibrate").out
    assert chipwise("calibrate", "--forget").code == 0
    assert chipwise("calibrate", "--forget").code == 1
    assert chipwise("calibrate").code == 1
    assert chipwise("score", str(path), "--json").json["median_ape"] == plain.json["median_ape"]


def test_what_makes_held_out_runs_worse_is_not_stored_unless_forced(chipwise: Chipwise, tmp_path: Path) -> None:
    path = runs(tmp_path / "runs.csv", [1.4] * 4 + [0.7] * 4, groups=2)
    done = chipwise("calibrate", str(path), "--json")
    assert done.code == 1
    assert done.json["held_out"]["worse"]
    assert not done.json["stored"]
    assert "not stored" in chipwise("calibrate", str(path)).out.replace("\n", " ")
    assert not (chipwise.data_dir / "calibration.json").exists()
    forced = chipwise("calibrate", str(path), "--force")
    assert forced.code == 0
    assert "although held-out runs come out worse" in forced.out.replace("\n", " ")
    assert (chipwise.data_dir / "calibration.json").exists()


def test_a_dry_run_stores_nothing(chipwise: Chipwise, tmp_path: Path) -> None:
    done = chipwise("calibrate", str(runs(tmp_path / "runs.csv", [1.2] * 8)), "--dry-run", "--json")
    assert done.code == 0
    assert (done.json["stored"], done.json["why_not"]) == (False, "a dry run")
    assert not chipwise.data_dir.exists()


def test_two_runs_are_stored_with_caution_and_it_is_said(chipwise: Chipwise, tmp_path: Path) -> None:
    done = chipwise("calibrate", str(runs(tmp_path / "runs.csv", [1.4, 1.4])))
    assert done.code == 0
    assert "too few runs" in done.out
    assert json.loads((chipwise.data_dir / "calibration.json").read_text())["cautious"]


@pytest.mark.parametrize("damage", ["", '{"format": 9}', '{"format": 1, "cells": 3}'])
def test_a_damaged_store_is_told_with_the_remedy(chipwise: Chipwise, damage: str) -> None:
    chipwise.data_dir.mkdir()
    (chipwise.data_dir / "calibration.json").write_text(damage)
    done = chipwise("score", "-", typed="model,task,chip,metric_name\nllama-3.1-8b,llm-decode,H200,tpot_ms\n")
    assert done.code == 2
    assert "chipwise calibrate --forget" in done.err


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("", 2, "empty"),
        ("model,task,chip,metric_name,metric_value\nm,paint,H200,mfu,1\n", 1, "paint"),
        ("model,task,chip,metric_name,metric_value\nm,pretrain,H200,mfu,\n", 1, "no metric_value"),
        ("model,task,chip,metric_name,metric_value\nm,pretrain,H200,mfu,x\n", 2, "metric_value"),
    ],
)
def test_a_file_without_a_usable_run_is_told(chipwise: Chipwise, text: str, code: int, said: str) -> None:
    done = chipwise("calibrate", "-", typed=text)
    assert done.code == code, done.err
    assert said in done.err
