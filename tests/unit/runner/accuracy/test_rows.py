"""Finished runs as measurements: what becomes a row, and what does not and why."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

from chipwise.runner.accuracy.rows import rows
from chipwise.runner.accuracy.runs import MeasuredRun
from chipwise.runner.job import Needs
from finished_runs import PREDICTED, SPEC, finished, watched

CELLS = {"model": "llama-3.1-8b", "task": "lora", "precision": "bf16", "metric_name": "tokens_per_s_per_chip"}
ROWED = {**PREDICTED, "row": CELLS, "as_run": {"micro_batch": 4, "seq": 2048, "zero_stage": 3}}
NAMES = {"NVIDIA H200": "H200", "NVIDIA H100 80GB HBM3": "H100-SXM"}


def table(*runs: MeasuredRun) -> tuple[list[dict[str, str]], dict[str, int]]:
    text, left_out = rows(runs, NAMES.get)
    return list(csv.DictReader(io.StringIO(text))), dict(left_out)


def test_a_run_of_a_workload_is_a_row_with_its_settings_and_the_chip_that_was_watched() -> None:
    device = {"nvidia:0": {"name": "NVIDIA H100 80GB HBM3"}, "nvidia:1": {"name": "NVIDIA H100 80GB HBM3"}}
    spec = replace(SPEC, predicted={**ROWED, "chips": 2.0}, needs=Needs(2, 4))
    [row], left_out = table(finished(3, 240.0, watched(devices=device), spec=spec))
    assert not left_out
    assert (row["model"], row["chip"], row["chips"], row["metric_value"]) == ("llama-3.1-8b", "H100-SXM", "2", "120")
    assert (row["micro_batch"], row["seq_len"], row["dp_or_fsdp"]) == ("4", "2048", "FSDP")
    assert row["notes"] == "chipwise run train-3, 1970-01-04"


def test_what_cannot_be_compared_is_left_out_with_its_reason() -> None:
    spec = replace(SPEC, predicted=ROWED)
    other = watched(devices={"nvidia:0": {"name": "NVIDIA X"}})
    _, left_out = table(
        finished(0, 100.0, spec=replace(spec, workload="")),
        finished(1, 100.0, spec=replace(spec, predicted=PREDICTED)),
        finished(2, 100.0, other, spec=spec),
        finished(3, 100.0, spec=replace(spec, predicted={**ROWED, "share": 0.5})),
        finished(4, 100.0, spec=replace(spec, predicted={**ROWED, "chip": ""}, needs=Needs(0, 4))),
    )
    assert left_out == {
        "it was run as a command, without a workload file": 1,
        "calibrate has no model for this kind of work": 1,
        "its devices (NVIDIA X) are not one chip of the catalog": 1,
        "it held 50.0% of a H200, and a row is about whole chips": 1,
        "its chip is not known": 1,
    }


def test_a_device_that_nobody_could_read_leaves_the_chip_of_the_prediction() -> None:
    silent = watched(devices={"device:0": {"name": "unknown device", "missing": "no driver reads it"}})
    [row], _ = table(finished(0, 100.0, silent, spec=replace(SPEC, predicted=ROWED)))
    assert row["chip"] == "H200"
