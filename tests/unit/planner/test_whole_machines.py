"""What is rented works: all chips of a machine hold replicas, so a plan says what it can do, whatever rate was asked."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import yaml

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.planner.fleet import machines_for, replicas_in
from chipwise.planner.ranking import Values, order
from chipwise.planner.values.choice import Choice
from small_catalog import few_offers

CHAT: dict[str, Any] = {
    "kind": "serve",
    "name": "chat",
    "model": "llama-3.1-70b",
    "input_tokens": 1000,
    "output_tokens": 300,
    "goals": {"ttft": {"p90": "800ms"}, "tpot": {"p90": "50ms"}},
    "limits": {"chips": ["h100-sxm"], "clouds": ["gcp"], "interruptible": False},
}


@cache
def session() -> Session:
    with few_offers():
        return open_session()


@cache
def winner(rate: float, most: int | None = None) -> Choice:
    limits: dict[str, Any] = {} if most is None else {"replicas": {"max": most}}
    found = plan(session(), "chat.yaml", text=yaml.safe_dump({**CHAT, "arrival": {"rate": rate}, **limits})).winner
    assert found is not None
    return found


def test_one_machine_answers_as_many_whatever_is_asked_of_it() -> None:
    few, many = winner(1.0), winner(5.0)
    assert (few.machine, few.machines) == (many.machine, many.machines)
    assert few.rate == pytest.approx(many.rate)
    assert few.split == many.split


@pytest.mark.parametrize("rate", [1.0, 8.0])
def test_no_chip_that_is_paid_for_is_idle(rate: float) -> None:
    found = winner(rate)
    split = found.split.as_dict()
    assert split["tp"] * split.get("pp", 1) * split["replicas"] == found.chips * found.machines


def test_no_more_replicas_than_are_allowed() -> None:
    assert winner(1.0, most=1).replicas == 1


def test_replicas_are_counted_as_machines_for_them_are() -> None:
    chips, width, machines = np.array([8.0, 8.0, 8.0, 1.0]), np.array([2.0, 3.0, 16.0, 1.0]), np.array([2.0, 1.0, 4.0, 7.0])
    held = replicas_in(chips, width, machines)
    assert held.tolist() == [8.0, 2.0, 2.0, 7.0]
    assert machines_for(chips, width, held).tolist() == machines.tolist()


def test_at_one_price_more_room_comes_first_and_then_less_carbon() -> None:
    ones = np.ones(3)
    values = Values(
        usd=ones, seconds=ones, kg=np.array([1.0, 9.0, 5.0]), doubt=ones, machines=ones, room=np.array([1.0, 2.0, 2.0])
    )
    assert order(values, "cost").tolist() == [2, 1, 0]
