"""Adapters cost more than their arithmetic: casts, sums and dropout pass over every value that meets an adapted matrix."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.catalog.load import load
from chipwise.perf.family_training import question_of
from chipwise.perf.part import Parts
from chipwise.perf.published_training import TrainingCase, case_of
from chipwise.perf.rows import Row

PARTS = Parts(load(prices=False).chips.values())
CELLS = {
    "model": "llama-3.2-1b",
    "task": "lora",
    "chip": "H200",
    "chips": "1",
    "precision": "bf16",
    "framework": "hf-trainer",
    "tp": "1",
    "pp": "1",
    "seq_len": "2048",
    "micro_batch": "8",
    "global_batch_sequences": "16",
    "activation_checkpointing": "none",
    "metric_name": "step_time_s",
}
TOKENS, LAYERS, INTO, OUT_OF = 16384, 16, 20480, 23552  # values per token and layer that adapted matrices take and give


def case(**cells: str) -> TrainingCase:
    row = Row({**CELLS, **cells})
    part = PARTS.find(row.text("chip"))
    assert part is not None
    return case_of(row, PARTS, part)


def adapters(**cells: str) -> float:
    return float(np.ravel(question_of([case(**cells)]).bases["adapters"])[0])


def test_what_adapters_read_and_write_kernel_by_kernel() -> None:
    bandwidth = 4.8e12 * 0.82
    assert adapters() == pytest.approx(LAYERS * TOKENS * (36 * INTO + 20 * OUT_OF) / bandwidth, rel=0.01)
    assert adapters(notes="dropout 0.05") == pytest.approx(LAYERS * TOKENS * (54 * INTO + 20 * OUT_OF) / bandwidth, rel=0.01)
    again = LAYERS * TOKENS * (50 * INTO + 32 * OUT_OF) / bandwidth
    assert adapters(activation_checkpointing="full") == pytest.approx(again, rel=0.01)


def test_fewer_matrices_and_fused_kernels_cost_less_and_no_adapters_nothing() -> None:
    assert adapters(notes="adapters on attention alone") < 0.4 * adapters()
    assert adapters(framework="torchtune") < 0.7 * adapters()
    assert adapters(task="sft") == 0.0


def test_the_software_that_a_row_names_is_taken_rather_than_that_of_its_source() -> None:
    assert case(source_repo="chipwise").stack == "hf-trainer"
    assert case(source_repo="chipwise", framework="").stack == "pytorch"
