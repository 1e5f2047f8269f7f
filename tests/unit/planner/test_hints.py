"""Hints beside the answer lead nobody astray: a turn lasts, a rival is another chip, the next best has no idle chips."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import plan
from chipwise.money.cost import Cost, Line
from chipwise.planner.explain.turning import _load, _price
from chipwise.planner.explain.words import has_idle_chips, sentence
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan, Rows

CHAT = "kind: serve\nname: chat\nmodel: llama-3.1-8b\narrival: {rate: 2}\ninput_tokens: 500\noutput_tokens: 200\n"


@cache
def planned() -> tuple[Plan, Choice, Rows]:
    found = plan(open_session(), "case.yaml", text=f"{CHAT}limits: {{clouds: [aws]}}\n")
    assert found.winner is not None
    assert found.rows is not None
    single = replace(found.winner, machines=1, replicas=1, over_time=None)
    return found, single, found.rows


def costing(choice: Choice, usd: float, planned: float) -> Choice:
    return replace(choice, cost=Cost.of((Line("compute", usd),)), planned=planned, rate=planned)


def test_a_crossing_that_does_not_last_is_not_told() -> None:
    _, single, rows = planned()
    own = costing(single, 100.0, 10.0)
    for room, told in ((10.05, False), (12.0, True)):
        rival = replace(costing(single, 150.0, room), machine="other")
        turns = list(_load(own, [own, rival], "requests a second", replace(rows, load=9.0, least_replicas=1)))
        assert any(one.what == "more load" for one in turns) == told, room


def test_a_slice_of_a_chip_does_not_tie_with_itself() -> None:
    found, single, rows = planned()
    sliced = replace(single, chip=f"{single.catalog_chip} (1/8)")
    (turn,) = _price(sliced, rows, found.choices)
    assert not turn.told.startswith(f"{single.catalog_chip} ")


def test_the_next_best_is_no_machine_with_idle_chips() -> None:
    found, single, _ = planned()
    first, third = costing(single, 100.0, 10.0), replace(costing(single, 180.0, 10.0), machine="third")
    idle = replace(costing(single, 150.0, 10.0), chips=single.chips + 1)
    assert has_idle_chips(idle)
    assert not has_idle_chips(third)
    plan_of = replace(found, choices=(first, idle, third), near_tie=None)
    assert "next best $180" in sentence(plan_of)
