"""A hair of headroom that nobody stated doubles no bill, and the answer says what is missing."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import yaml

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.planner.defaults import SPARED_COST, SPARED_HEADROOM
from chipwise.planner.explain.words import headline
from chipwise.planner.preference import Advantage, Lead, Traits, lead
from chipwise.planner.values.plan import Plan

ASKED = 0.25
SERVICES: dict[str, dict[str, Any]] = {
    "tokens": {"model": "llama-3.1-8b", "input_tokens": 1000, "output_tokens": 300, "limits": {"chips": ["h100-sxm"]}},
    "samples": {"model": "resnet-50", "limits": {"chips": ["l4"]}},
}


@cache
def session() -> Session:
    return open_session()


def planned(name: str, rate: float, **more: Any) -> Plan:
    work: dict[str, Any] = {"kind": "serve", "name": name, "arrival": {"rate": rate}, **SERVICES[name], **more}
    work["limits"] = {**work["limits"], "clouds": ["lambda", "gcp"]}
    return plan(session(), "case.yaml", None, text=yaml.safe_dump(work))


@cache
def edge(name: str) -> float:
    """Requests a second for which the machines of a small load have all of the headroom."""
    winner = planned(name, 1.0).winner
    assert winner is not None
    assert winner.planned is not None
    return winner.planned


@pytest.mark.parametrize("name", SERVICES)
def test_a_hair_of_headroom_takes_no_second_machine_and_is_named(name: str) -> None:
    rate = edge(name) * 1.006
    spared, strict = planned(name, rate), planned(name, rate, headroom=ASKED)
    assert spared.winner is not None
    assert strict.winner is not None
    assert strict.winner.usd > (1.0 + SPARED_COST) * spared.winner.usd
    assert spared.winner.headroom is not None
    assert ASKED - SPARED_HEADROOM <= spared.winner.headroom < ASKED
    assert f"{spared.winner.headroom:.1%}, not {ASKED:.0%}" in headline(spared)


def test_a_stated_headroom_is_kept_and_more_than_a_hair_is_not_spared() -> None:
    for rate, stated in ((edge("tokens") * 1.006, {"headroom": ASKED}), (edge("tokens") * 1.03, {})):
        winner = planned("tokens", rate, **stated).winner
        assert winner is not None
        assert winner.headroom is None
        assert (winner.planned or 0.0) >= rate * (1 - 1e-9)


@pytest.mark.parametrize(("whole_usd", "first"), [(110.0, 1), (130.0, 0)])
def test_all_of_the_headroom_leads_where_it_costs_little_more(whole_usd: float, first: int) -> None:
    none = np.zeros(2)
    rows = Traits(
        usd=np.array([100.0, whole_usd]),
        seconds=np.ones(2),
        days=none,
        machines=np.ones(2),
        porting=none,
        ended=np.zeros(2, dtype=bool),
        doubt=none,
        short=np.array([True, False]),
    )
    assert lead(rows) == (Lead(1, 0, (Advantage.HEADROOM,)) if first else Lead(0))
