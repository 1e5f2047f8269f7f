"""What people read of a plan: no powers of ten, no verb or number that does not fit, and one sum for one thing."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import plans
from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.planner.explain.asking import PARALLEL, SCALING
from chipwise.planner.explain.row_words import brief, running
from chipwise.planner.explain.words import sentence
from chipwise.planner.values.plan import Plan
from chipwise.text import amount, gib
from small_catalog import few_offers

TEMPLATES = Path(__file__).resolve().parents[3] / "src" / "chipwise" / "data" / "templates"


@cache
def session() -> Session:
    with few_offers():
        return open_session()


@cache
def planned(kind: str) -> Plan:
    return plan(session(), str(TEMPLATES / f"{kind}.yaml"))


@pytest.mark.parametrize("kind", ["stream", "transcode", "serve", "train"])
def test_no_number_is_a_power_of_ten(kind: str) -> None:
    found = planned(kind)
    assert found.winner is not None
    texts = [
        sentence(found),
        brief(found.winner, found.per),
        *(one.told for one in found.answers),
        *(one.told for one in found.turns),
    ]
    texts += [value for _, value in running(found.winner)]
    texts += [line.how for line in found.emitted.lines] if found.emitted is not None else []
    assert not [text for text in texts if re.search(r"\de[+-]\d", text)]


def test_room_for_streams_is_what_the_plan_says_it_can_take() -> None:
    found = planned("transcode")
    assert found.winner is not None
    told = {one.question: one.told for one in found.answers}
    assert found.winner.rate is not None
    assert found.winner.rate >= 50
    assert f"up to {amount(found.winner.rate)} streams" in sentence(found)
    assert f"capacity {amount(found.winner.rate)} streams" in told[SCALING]


def test_scaling_is_told_as_the_ranking_has_it() -> None:
    found = planned("train")
    assert found.winner is not None
    total = found.winner.chips * found.winner.machines
    told = {one.question: one.told for one in found.answers}
    for times in (2, 4):
        rows = [one for one in found.choices if one.chip == found.winner.chip and one.chips * one.machines == times * total]
        alike = [one for one in rows if (one.provider, one.purchase) == (found.winner.provider, found.winner.purchase)]
        cost = re.search(rf"{times}x the chips: [\d.]+ \w+ for \$([\d.,]+)", told[SCALING])
        if alike and cost:
            assert float(cost[1].replace(",", "")) <= min(one.usd for one in alike) * 1.01


def test_a_month_costs_the_same_as_its_layers() -> None:
    found = planned("serve")
    assert found.winner is not None
    assert found.winner.seconds == pytest.approx(730 * 3600, rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "begins"),
    [
        ({"purchase": "owned"}, "Use gcp a3-highgpu-8g (8 H100-SXM, bf16) in europe-west4, owned"),
        ({"purchase": "owned", "region": "on site"}, "Use gcp a3-highgpu-8g (8 H100-SXM, bf16) on site, owned"),
        ({"region": "*", "country": None}, "Rent gcp a3-highgpu-8g (8 H100-SXM, bf16) (region not stated), spot"),
        ({"region": "*"}, "Rent gcp a3-highgpu-8g (8 H100-SXM, bf16) in Netherlands, spot"),
    ],
)
def test_what_is_owned_is_used_and_a_place_reads_as_one(changes: dict[str, str], begins: str) -> None:
    found = plans.plan(per="month", kind="serve", choices=(plans.choice(**changes),))
    assert sentence(found).startswith(begins)


def test_one_copy_has_no_each() -> None:
    told = {one.question: one.told for one in planned("serve").answers}[PARALLEL]
    assert "1 copy" not in told or "each" not in told


@pytest.mark.parametrize(("value", "shown"), [(0.0045, "0.0045"), (12.13, "12.1"), (4763.0, "4,763"), (1.9e8, "190M")])
def test_amounts_are_readable(value: float, shown: str) -> None:
    assert amount(value) == shown


def test_memory_of_a_chip_has_one_unit() -> None:
    assert gib(80 * 2.0**30) == "80.0 GiB"
