"""What scoring guesses and a calibration leaves out."""

from __future__ import annotations

import pytest

from chipwise.calibration.guesses import guesses
from chipwise.calibration.measurements import packaged
from chipwise.perf.rows import Row


@pytest.mark.parametrize(
    "cells",
    [
        {"model": "llama-3.1-8b", "precision": "bf16 amp"},
        {"model": "Meta-Llama-3.1-8B-Instruct", "precision_weights": "int4-g128 (AWQ)", "precision_kv": "fp8"},
        {"model": "ours", "params_b": "7"},
        {"model": "ours", "layers": "32", "hidden": "4096", "precision": "bfloat16"},
        {"model": "resnet-50"},
    ],
)
def test_what_is_known_or_described_is_no_guess(cells: dict[str, str]) -> None:
    assert guesses(Row(cells)) == ()


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"model": "ours-7b"}, "model: 'ours-7b' is not known; give params_b, or layers and hidden"),
        ({"model": "ours", "layers": "32"}, "model: 'ours'"),
        ({"model": "llama-3.1-8b", "precision_weights": "e5m11"}, "precision_weights: 'e5m11' is not known"),
        ({"model": "llama-3.1-8b", "precision": "mixed"}, "precision: 'mixed' is not known"),
    ],
)
def test_what_nobody_knows_is_named_with_what_would_tell(cells: dict[str, str], said: str) -> None:
    assert said in guesses(Row(cells))[0]


def test_hardly_any_packaged_row_is_a_guess() -> None:
    rows = packaged()
    assert sum(bool(guesses(row)) for row in rows) < 0.02 * len(rows)
