"""As many machines as a plan says, or fewer where whoever asks says that fewer do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chipwise.adapters.engines.kubernetes.settings import Settings
from chipwise.api.running import elsewhere
from chipwise.api.running.engines import Reach
from chipwise.errors import BadInput
from chipwise.runner.job import Needs, Spec
from chipwise.runner.submission import ranges
from deployments import session

CLUSTER = Reach("kubernetes", Settings())
PROGRAM = 'program: {image: "registry.example.com/team/train:1.4", command: [python, train.py]}\n'
BIG = f"""
kind: train
name: big
model: llama-3.1-8b
tokens: 2B
goals: {{deadline: 20d}}
limits: {{clouds: [aws], regions: [us-east-1], chips: [a100-40gb-sxm], chip_count: {{min: 16, max: 16}}}}
{PROGRAM}"""
CHAT = """
kind: serve
name: chat
model: llama-3.1-8b
arrival: {rate: 1 req/s}
input_tokens: 500
output_tokens: 200
limits: {clouds: [aws], regions: [eu-west-1], chips: [a10g]}
"""


def _planned(path: Path, text: str, least: int | None) -> Spec:
    path.write_text(text)
    spec = Spec((), "big", "kubernetes", needs=Needs(machines_least=least))
    return elsewhere.planned(session(), str(path), None, None, spec, CLUSTER, lambda team, asked: asked, "")


@pytest.mark.parametrize(("least", "fewest"), [(None, 2), (1, 1), (2, 2)])
def test_the_plan_says_the_most_and_who_asks_the_least(tmp_path: Path, least: int | None, fewest: int) -> None:
    needs = _planned(tmp_path / "big.yaml", BIG, least).needs
    assert (needs.machines, needs.gpus, needs.fewest_machines, needs.elastic) == (2, 8, fewest, fewest < 2)


def test_more_than_the_plan_takes_cannot_be_the_least(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"has 2 machines, fewer than the minimum of 3\. Write --machines 1-"):
        _planned(tmp_path / "big.yaml", BIG, 3)


def test_replicas_of_a_service_come_and_go_by_themselves(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a service"):
        _planned(tmp_path / "chat.yaml", CHAT, 1)


@pytest.mark.parametrize(("text", "least"), [("2-", 2), (" 16 - ", 16)])
def test_the_least_is_written_with_an_open_end(text: str, least: int) -> None:
    assert ranges.minimum_workers(text, "--machines") == least


@pytest.mark.parametrize("text", ["2", "2-4", "-", "-2", "", "two-", "2--", "٢-"])
def test_of_a_workload_nothing_else_is_taken(text: Any) -> None:
    with pytest.raises(BadInput, match=r"but the plan sets the number for a workload\. Leave it out, or give a minimum"):
        ranges.minimum_workers(text, "--machines")


@pytest.mark.parametrize("text", ["1025-", "99999999999-"])
def test_more_than_can_be_asked_for_is_told_as_such(text: str) -> None:
    with pytest.raises(BadInput, match=r"--machines is .*, and at most 1,024 can be asked for\. Ask for fewer"):
        ranges.minimum_workers(text, "--machines")
    with pytest.raises(BadInput, match=r"--machines is .*, and at most 1,024 can be asked for\. Ask for fewer"):
        ranges.workers(text.removesuffix("-"), "--machines")
