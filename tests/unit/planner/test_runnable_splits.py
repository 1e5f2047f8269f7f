"""A fine-tuning without a program of its own is planned as the program that we write can run it."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import TrainingSplit

pytestmark = pytest.mark.real_catalog
OWN = "program: {command: [python, mine.py]}\n"


@cache
def session() -> Session:
    return open_session()


def planned(method: str, model: str, limits: str, more: str = "") -> Plan:
    text = (
        f"kind: finetune\nname: tune\nmodel: {model}\nmethod: {method}\ntokens: 100M\nsequence_length: 2048\n"
        f"batch_samples: 64\nlimits: {{{limits}}}\n{more}"
    )
    return plan(session(), "workload.yaml", text=text, top=20)


def cut(split: Any) -> bool:
    assert isinstance(split, TrainingSplit)
    return (split.tp, split.pp, split.cp, split.ep) != (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("method", "model", "limits"),
    [
        ("full", "llama-3.1-8b", "chips: [L40S], clouds: [aws]"),
        ("full", "llama-3.1-70b", "chips: [H200], clouds: [aws]"),
        ("lora", "mixtral-8x7b", "chips: [H200, L40S], clouds: [aws]"),
        ("qlora", "llama-3.1-70b", "chips: [L40S, A100-80GB-SXM]"),
    ],
)
def test_only_a_program_of_the_users_own_cuts_a_model_that_shards_could_hold(method: str, model: str, limits: str) -> None:
    choices, own = planned(method, model, limits).choices, planned(method, model, limits, OWN).choices
    assert choices
    assert not [one for one in choices if cut(one.split)]
    assert [one for one in own if cut(one.split)]


def test_what_fits_no_other_way_is_planned_all_the_same() -> None:
    """Weights of four bits are read whole by each GPU before they are divided: 405 billion are too many for 80 GB."""
    assert planned("qlora", "llama-3.1-405b", "chips: [A100-80GB-SXM], chip_count: {max: 8}").choices
