"""Options in place of a file, and over one: what says nothing is refused, and what was said last holds."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from chipwise.errors import BadInput
from chipwise.planner.options import text_of, with_limits
from chipwise.workload.parse import parse

MODEL = "llama-3.1-8b"
HPC = {"kind": "hpc", "name": "a", "flop_per_step": 1e15, "precision": "fp64"}


@pytest.mark.parametrize(
    ("stated", "limit", "chip_count"),
    [
        ({"max": 512}, "chip_count.max=8", (None, 8)),
        ({"min": 4, "max": 512}, "chip_count.max=8", (4, 8)),
        (512, "chip_count.max=8", (None, 8)),
        ({"min": 4, "max": 512}, "chip_count={max: 8}", (None, 8)),
    ],
)
def test_a_limit_of_the_command_line_holds_in_every_environment(
    stated: Any, limit: str, chip_count: tuple[int | None, int]
) -> None:
    text = yaml.safe_dump({**HPC, "environments": {"big": {"limits": {"chip_count": stated}}}})
    for environment in ("big", None):
        limits = parse(with_limits(text, "a.yaml", [limit]), "a.yaml", environment).limits
        assert (limits.chip_count.min, limits.chip_count.max) == (chip_count if environment else (None, 8))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"train": True, "tokens": "2B", "rps": 5, "input": 100}, "--rps, --input do not go with --train."),
        ({"train": True, "tokens": "2B", "ttft": "1ms"}, "--ttft does not go with --train."),
        ({"finetune": "lora", "tokens": "2B", "output": 10}, "--output does not go with --finetune."),
        (
            {"serve": True, "rps": 5, "input": 100, "output": 10, "tokens": "2B", "seq": 4096},
            "--tokens, --seq do not go with --serve.",
        ),
        ({"serve": True, "rps": 5, "input": 100, "output": 10, "deadline": "1h"}, "--deadline does not go with --serve."),
        ({"batch": True, "samples": "1M", "seq": 4096}, "--seq does not go with --batch."),
        ({"batch": True, "tokens": "1M"}, "--tokens does not go with --batch."),
    ],
)
def test_an_option_that_says_nothing_of_the_work_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(BadInput) as refused:
        text_of(MODEL, options)
    assert refused.value.message == told
    assert refused.value.remedy
