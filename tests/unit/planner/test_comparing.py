"""Cells against the plan they come from, and against the plain minimum on made-up columns."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import compare
from chipwise.money.cost import Cost, Line
from chipwise.planner.defaults import NEARLY
from chipwise.planner.explain.compare import Comparison
from chipwise.planner.explain.comparing import _cells, leaders
from chipwise.planner.ranking import TIE, Values, order
from chipwise.planner.reasons.goals import MissesDeadline, OverBudget
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Rows
from chipwise.planner.values.split import UNSPLIT

SESSION = open_session()
ROOT = Path(__file__).resolve().parents[3]
KINDS = ("train", "finetune", "serve", "batch")
WAYS = ("provider", "region", "generation")


@cache
def compared(kind: str, by: str) -> Comparison:
    return compare(SESSION, f"{ROOT}/examples/{kind}/workload.yaml", by)


@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_cell_beats_the_winner_by_more_than_a_tie_and_one_is_the_winner(kind: str, by: str) -> None:
    found = compared(kind, by)
    winner = found.plan.winner
    assert winner is not None
    good = [one.choice for one in found.cells if one.fits and one.choice is not None]
    assert min(one.usd for one in good) >= winner.usd / (1 + NEARLY) * (1 - 2 * TIE)
    assert any(one.where == winner.where and one.usd == pytest.approx(winner.usd) for one in good)


@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_costs_the_sum_of_its_lines_and_stands_once(kind: str, by: str) -> None:
    cells = compared(kind, by).cells
    assert len({one.key for one in cells}) == len(cells)
    for one in cells:
        if one.choice is not None:
            assert one.choice.usd == pytest.approx(sum(line.usd for line in one.choice.cost.lines))
            assert one.kwh is None or one.kwh > 0
        else:
            assert one.why is not None


@pytest.mark.parametrize("by", WAYS)
def test_devices_on_site_stand_beside_each_other_though_no_cloud_has_their_place(by: str) -> None:
    found = compare(SESSION, f"{ROOT}/tests/cases/camera-edge.yaml", by)
    assert found.plan.winner is not None
    winner = next(one for one in found.cells if one.choice is not None and one.choice.where == found.plan.winner.where)
    assert winner.kwh is not None
    assert winner.kwh > 0


def test_a_cell_is_of_what_its_key_says() -> None:
    for one in compared("train", "provider").cells:
        assert one.choice is not None
        assert (one.choice.provider, one.choice.purchase) == one.key
    for one in compared("train", "region").cells:
        assert one.choice is not None
        assert (one.choice.provider, one.choice.region) == one.key[:2]


def test_a_cell_that_misses_a_goal_says_which() -> None:
    missed = [one for one in compared("train", "generation").cells if one.choice is not None and not one.fits]
    assert missed
    assert all(isinstance(one.why, MissesDeadline | OverBudget) for one in missed)


def test_generations_of_a_vendor_go_along_time() -> None:
    found = compare(SESSION, f"{ROOT}/examples/batch/workload.yaml", "generation", "nvidia")
    assert {one.key[0] for one in found.cells} == {"NVIDIA"}
    years = [one.year for one in found.cells if one.year is not None]
    assert years == sorted(years)


def test_providers_and_regions_together_find_the_same_cheapest() -> None:
    for kind in KINDS:
        least = [min(one.choice.usd for one in compared(kind, by).cells if one.fits and one.choice) for by in WAYS]
        assert max(least) <= min(least) * (1 + 2 * TIE)


def _rows(usd: list[float], kept: list[bool]) -> Rows:
    """Made-up candidates that differ in price alone."""
    some, ones = np.array(usd), np.ones(len(usd))
    ranked = order(Values(some, ones, ones, ones, ones, ones), "cost")
    fine = np.array(kept)[ranked]

    def choice(place: int) -> Choice:
        return Choice(
            provider="p",
            machine=str(place),
            region="r",
            country=None,
            chip="c",
            family="f",
            chips=1,
            machines=1,
            purchase="spot",
            precision="bf16",
            split=UNSPLIT,
            seconds=1.0,
            low_s=1.0,
            high_s=1.0,
            p90_s=1.0,
            cost=Cost.of((Line("compute", usd[place]),)),
            usd_per_unit=usd[place],
            unit="u",
            kg=1.0,
            rate=None,
            replicas=None,
            memory_share=None,
            provenance="formula",
            price_of="2026-01-01",
        )

    real = compared("train", "provider").plan.rows
    assert real is not None
    return replace(real, ranked=np.concatenate([ranked[fine], ranked[~fine]]), kept=int(fine.sum()), choice=choice)


@given(st.lists(st.tuples(st.floats(1.0, 1e6), st.booleans(), st.integers(0, 4)), min_size=1, max_size=40))
def test_the_leader_of_a_group_is_its_cheapest_and_goals_go_first(found: list[tuple[float, bool, int]]) -> None:
    usd, kept, group = [one[0] for one in found], [one[1] for one in found], np.array([one[2] for one in found], dtype=np.intp)
    led = leaders(_rows(usd, kept), group)
    assert set(led) == set(group.tolist())
    for code, (at, choice) in led.items():
        mine = [place for place in range(len(usd)) if group[place] == code]
        good = [place for place in mine if kept[place]]
        assert at in (good or mine)
        assert choice.usd == usd[at]
        assert usd[at] <= min(usd[place] for place in (good or mine)) * (1 + 2 * TIE)


def test_a_doubtful_price_stands_behind_surer_ones_that_the_plan_would_lead_with() -> None:
    rows = _rows([100.0, 120.0, 130.0], [True, True, True])
    plain = rows.choice
    rows = replace(
        rows,
        choice=lambda place: replace(
            plain(place), doubt="currency not stated" if place == 0 else "", doubt_share=0.25 if place == 0 else 0.0
        ),
    )
    cells = _cells(rows, np.zeros(3), np.arange(3), lambda code: (str(code),))
    assert [one.key for one in cells] == [("1",), ("0",), ("2",)]
