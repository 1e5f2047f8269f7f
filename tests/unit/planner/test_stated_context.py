"""A plan refuses what a prediction refuses: sequences that are longer than the model is stated for, with the same reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import plan, predict
from chipwise.errors import InvalidSettings

READS = {"input_tokens": {"mean": 4000}, "output_tokens": {"mean": 500}}
LONG: list[tuple[str, dict[str, Any]]] = [
    ("input_tokens", {"kind": "serve", "arrival": {"rate": "1 req/s"}, **READS}),
    ("input_tokens", {"kind": "batch", "items": 1000, **READS}),
    ("sequence_length", {"kind": "train", "tokens": "1B tokens", "sequence_length": 4500}),
    ("sequence_length", {"kind": "finetune", "method": "lora", "samples": 1000, "sequence_length": 4500}),
]


@pytest.mark.parametrize(("field", "work"), LONG)
def test_a_plan_refuses_a_context_beyond_the_models_own(field: str, work: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    path.write_text(yaml.safe_dump({"name": "long", "model": "llama-2-7b", **work}))
    with pytest.raises(InvalidSettings) as planned:
        plan(open_session(), str(path))
    with pytest.raises(InvalidSettings) as predicted:
        predict(open_session(), str(path), "h100", None, {})
    assert planned.value.problems == predicted.value.problems
    assert planned.value.problems[0].field == field
    assert "4,500 tokens are more than the 4,096 that llama-2-7b is stated for" in str(planned.value)


def test_the_longest_sequence_counts_too() -> None:
    work = {"kind": "serve", "name": "long", "model": "llama-2-7b", "arrival": {"rate": "1 req/s"}}
    reads = {"input_tokens": {"mean": 500, "max": 8000}, "output_tokens": {"mean": 100}}
    with pytest.raises(InvalidSettings, match="8,100 tokens are more than the 4,096"):
        plan(open_session(), "long.yaml", text=yaml.safe_dump({**work, **reads}))


def test_a_sequence_that_nobody_states_is_no_longer_than_the_model_reads() -> None:
    work = {"kind": "train", "name": "short", "model": "bert-base", "tokens": "1B tokens"}
    assert plan(open_session(), "short.yaml", text=yaml.safe_dump(work)).winner is not None
