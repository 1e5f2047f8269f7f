"""How numbers become stars, and that what is starred comes from the plan and the tables."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import rate
from chipwise.planner.defaults import NEARLY
from chipwise.planner.explain.rate import Rated
from chipwise.planner.explain.rating import COLUMNS, MOST_STARS, fifths, framework_support, halvings

SESSION = open_session()
ROOT = Path(__file__).resolve().parents[3]
KINDS = ("train", "finetune", "serve", "batch")
positive = st.floats(1e-9, 1e9)


@cache
def rated(kind: str) -> Rated:
    return rate(SESSION, f"{ROOT}/examples/{kind}/workload.yaml")


@given(positive, positive)
def test_halvings_give_one_to_five_and_never_more_for_less(one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert 1 <= halvings(less, more) <= halvings(more, more) == MOST_STARS
    assert halvings(less / 2, more) <= halvings(less, more)


@pytest.mark.parametrize(
    ("share", "stars"), [(1.0, 5), (0.72, 5), (0.7, 4), (0.5, 4), (0.25, 3), (0.125, 2), (1 / 16, 1), (1e-6, 1)]
)
def test_a_halving_takes_one_star(share: float, stars: int) -> None:
    assert halvings(share, 1.0) == stars


@pytest.mark.parametrize(("share", "stars"), [(0.0, 1), (0.2, 1), (0.21, 2), (0.4, 2), (0.6, 3), (0.8, 4), (0.81, 5), (1.0, 5)])
def test_a_fifth_that_is_begun_gives_a_star(share: float, stars: int) -> None:
    assert fifths(share) == stars


@pytest.mark.parametrize("kind", KINDS)
def test_every_star_has_its_number_and_the_best_has_five(kind: str) -> None:
    ratings = rated(kind).ratings
    assert ratings
    for name in COLUMNS:
        figures = [one.figures[name] for one in ratings]
        assert all((one.stars is None) == (one.value is None) for one in figures)
        assert all(one.how and one.unit for one in figures)
    for name in ("performance", "cost", "energy"):
        known = [one.figures[name] for one in ratings if one.figures[name].value is not None]
        best = (max if name == "performance" else min)(known, key=lambda one: one.value or 0.0)
        assert best.stars == MOST_STARS
        ordered = sorted(known, key=lambda one: one.value or 0.0, reverse=name == "performance")
        stars = [one.stars or 0 for one in ordered]
        assert stars == sorted(stars, reverse=True)


@pytest.mark.parametrize("kind", KINDS)
def test_the_cheapest_family_is_the_winners(kind: str) -> None:
    found = rated(kind)
    assert found.plan.winner is not None
    fine = [one for one in found.ratings if not one.missed]
    cheapest = min(fine, key=lambda one: one.best.usd)
    assert found.plan.winner.usd / (1 + NEARLY) <= cheapest.best.usd <= found.plan.winner.usd * 1.005
    assert all(one.figures["cost"].stars is None for one in found.ratings if one.missed)


@pytest.mark.parametrize("kind", KINDS)
def test_a_family_is_rated_or_told_why_not(kind: str) -> None:
    found = rated(kind)
    names = [one.family for one in found.ratings] + [name for name, _ in found.unrated]
    assert len(names) == len(set(names))
    assert all(why for _, why in found.unrated)


def test_software_counts_what_is_stated_in_full_and_what_is_refused_not_at_all() -> None:
    catalog = SESSION.catalog
    counted = {
        chip: {
            one.component: one.counts
            for one in framework_support(catalog.chips[chip], ("vllm", "tensorrt-llm", "tgi"), catalog.data)
        }
        for chip in ("H100-SXM", "TPU-v6e", "MI300X")
    }
    assert counted["H100-SXM"] == {"vllm": 1.0, "tensorrt-llm": 1.0, "tgi": 1.0}
    assert counted["TPU-v6e"] == {"vllm": 1.0, "tensorrt-llm": 0.0, "tgi": 0.5}
    assert counted["MI300X"] == {"vllm": 1.0, "tensorrt-llm": 0.0, "tgi": 0.5}


def test_ease_is_the_share_of_questions_answered_with_yes() -> None:
    for one in rated("serve").ratings:
        assert one.figures["ease"].value == pytest.approx(sum(each.yes for each in one.questions) / 5)


def test_energy_of_chips_without_a_stated_power_is_not_told() -> None:
    chips = SESSION.catalog.chips
    assert chips["Inferentia2"].power_w is None
    found = {one.family: one for one in rated("serve").ratings}
    assert found["AWS Inferentia"].figures["energy"].stars is None


def test_families_of_small_devices_are_rated_too() -> None:
    found = rate(SESSION, f"{ROOT}/tests/cases/camera-edge.yaml")
    assert found.ratings
    assert any(one.figures["energy"].stars is not None for one in found.ratings)
