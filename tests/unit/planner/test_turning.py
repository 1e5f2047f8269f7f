"""What would change the answer: every turn that names a load, deadline or price is tried, and the answer does change."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
import yaml

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.planner.values.plan import Plan

pytestmark = pytest.mark.real_catalog

SERVE: dict[str, Any] = {
    "kind": "serve",
    "name": "chat",
    "model": "llama-3.1-8b",
    "arrival": {"rate": 12},
    "input_tokens": 1100,
    "output_tokens": 240,
    "goals": {"ttft": {"p95": "800ms"}, "tpot": {"p95": "40ms"}},
    "limits": {"clouds": ["aws", "gcp"]},
}
TRAIN: dict[str, Any] = {
    "kind": "train",
    "name": "small",
    "model": "llama-3.2-1b",
    "tokens": 5e9,
    "sequence_length": 2048,
    "batch_tokens": 524288,
    "goals": {"deadline": "30h"},
    "limits": {"clouds": ["aws"], "interruptible": False},
}


@cache
def session() -> Session:
    return open_session()


def planned(work: dict[str, Any], objective: str | None = None) -> Plan:
    return plan(session(), "case.yaml", objective, text=yaml.safe_dump(work))


def told(found: Plan) -> dict[str, str]:
    return {one.what: one.told for one in found.turns}


@pytest.mark.parametrize(("what", "beyond"), [("less load", 0.999), ("more load", 1.001)])
def test_at_the_load_of_a_turn_something_else_costs_what_it_says(what: str, beyond: float) -> None:
    found = planned(SERVE)
    if what not in told(found):
        pytest.skip(f"this catalog has no turn for {what}")
    text = told(found)[what]
    rate, machine, usd = re.findall(r"([\d.,]+) requests a second \w+ (\S+),.*: \$([\d,]+) a month", text)[0]
    other = planned({**SERVE, "arrival": {"rate": float(rate.replace(",", "")) * beyond}})
    assert found.winner is not None
    assert other.winner is not None
    assert other.winner.machine != found.winner.machine
    assert other.winner.usd <= float(usd.replace(",", "")) * 1.001
    assert machine in {one.machine for one in other.choices}


def test_with_a_later_deadline_the_named_machine_does_it_for_the_named_price() -> None:
    found = planned(TRAIN)
    text = told(found)["later deadline"]
    usd = float(re.findall(r"for \$([\d,.]+) \(", text)[0].replace(",", ""))
    free = planned({**TRAIN, "goals": {}})
    assert free.winner is not None
    assert free.winner.usd == pytest.approx(usd, rel=0.01)
    assert free.winner.machine in text


def test_the_price_turn_names_another_chip_and_the_fall_that_makes_it_equal() -> None:
    found = planned(TRAIN)
    assert found.winner is not None
    text = told(found)["price"]
    assert not found.winner.needs_porting  # another chip that does would have to be far cheaper
    other = next(one for one in found.choices if one.chip != found.winner.chip and not one.needs_porting)
    assert text.startswith(f"{other.chip} (")
    assert f"{1 - found.winner.usd / other.usd:.0%} cheaper" in text


def test_another_precision_is_told_where_the_plan_may_choose() -> None:
    found = planned({**SERVE, "limits": {**SERVE["limits"], "precision": ["bf16", "fp8"]}})
    assert found.winner is not None
    other = planned({**SERVE, "precision": "bf16" if found.winner.precision == "fp8" else "fp8"})
    assert other.winner is not None
    assert f"{other.winner.usd / found.winner.usd - 1:+.0%}" in told(found)["precision"]


def test_a_narrower_precision_never_wins_unasked_and_is_told_with_what_it_saves_and_costs() -> None:
    on_gpus = {**SERVE, "limits": {"clouds": ["aws"]}}
    found, narrow = planned(on_gpus), planned({**on_gpus, "precision": "fp8"})
    assert found.winner is not None
    assert narrow.winner is not None
    assert found.winner.precision == "bf16"
    assert {one.precision for one in found.choices} <= {"bf16", "fp16"}
    assert f"{1 - narrow.winner.usd / found.winner.usd:.0%} less" in told(found)["precision"]
    assert "published results" in told(found)["precision"]


def test_nothing_to_turn_where_time_is_what_counts_but_risks_remain() -> None:
    found = planned(TRAIN, "time")
    assert not {"price", "deadline", "later deadline"} & set(told(found))


def test_a_lower_load_still_has_its_replicas() -> None:
    """At the named rate one machine of another type would do, and two are asked for."""
    text = (
        "kind: serve\nname: chat\nmodel: llama-3.1-8b\narrival: {rate: 12}\ninput_tokens: 500\noutput_tokens: 200\n"
        "goals: {ttft: {p90: 800ms}, tpot: {p90: 50ms}}\n"
    )
    free, bound = (plan(session(), "case.yaml", text=f"{text}replicas: {{min: {least}}}\n") for least in (1, 40))
    for found, least in ((free, 1), (bound, 40)):
        for turn in found.turns:
            if turn.what == "less load":
                costs = [float(one.replace(",", "")) for one in re.findall(r"\$([\d,.]+\d)", turn.told)]
                each = [
                    one.usd / one.machines * -(-least // max((one.replicas or 1) // one.machines, 1)) for one in found.choices
                ]
                assert min(costs) >= 0.999 * min(each)
    assert not any(turn.what == "less load" for turn in bound.turns), "forty copies cost what they cost at any lower rate"
