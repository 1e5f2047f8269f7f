"""Where users are counts: machines stand near them, and the way to them is part of the latency."""

from __future__ import annotations

from typing import Any

import pytest

import chipwise as cw
from chipwise.countries import GROUPS

pytestmark = pytest.mark.real_catalog

CHAT: dict[str, Any] = {
    "kind": "serve",
    "name": "chat",
    "model": "llama-3.1-8b",
    "arrival": {"rate": 3},
    "input_tokens": 500,
    "output_tokens": 200,
}
GERMAN = {"traffic": {"DE": "100%"}}


def answers(plan: cw.Plan | cw.NoPlan) -> str:
    return " ".join(one["text"] for one in plan.to_dict()["answers"])


def test_german_traffic_is_not_placed_in_oregon(session: cw.Session) -> None:
    plan = session.plan({**CHAT, **GERMAN}, top=40, on_demand=True)
    for choice in plan.choices:
        assert choice.network_s is not None
        assert choice.network_s <= 0.06
        assert choice.country in GROUPS["EUROPE"] or choice.provider == "runpod" or choice.country in ("ISR", "TUR")
    assert plan.best.network_s is not None
    assert f"Network to Germany {plan.best.network_s * 1e3:.0f} ms." in answers(plan)


def test_without_traffic_nothing_is_said_of_the_network(session: cw.Session) -> None:
    plan = session.plan(CHAT, on_demand=True)
    assert plan.best.network_s is None
    assert "Network" not in answers(plan)
    assert not any("farther" in turn["what"] for turn in plan.to_dict()["turns"])


def test_what_standing_farther_away_would_save_is_told_and_can_be_had(session: cw.Session) -> None:
    limits = {"clouds": ["aws"], "chips": ["l4", "a10g"], "purchase": ["on-demand"]}
    near = session.plan({**CHAT, **GERMAN}, limits=limits)
    (told,) = [turn["text"] for turn in near.to_dict()["turns"] if turn["what"] == "farther away"]
    trip = told.partition("limits.round_trip: ")[2].partition(" ")[0]
    far = session.plan({**CHAT, **GERMAN}, limits={**limits, "round_trip": trip})
    assert far.best.usd < near.best.usd
    assert far.best.network_s is not None
    assert far.best.network_s > 0.06


def test_the_round_trip_is_part_of_the_time_to_the_first_token(session: cw.Session) -> None:
    goals = {"goals": {"ttft": "800ms", "confidence": 0.5}}
    limits = {"regions": ["aws:eu-central-1"], "chips": ["a10g"], "purchase": ["on-demand"]}
    room = {"headroom": 0}  # a machine more or less would change the time, too
    here = session.plan({**CHAT, **GERMAN, **goals, **room}, limits=limits)
    plain = session.plan({**CHAT, **goals, **room}, limits=limits)
    added = here.best.latency_s["ttft p90"] - plain.best.latency_s["ttft p90"]
    assert here.best.machines == plain.best.machines
    assert added == pytest.approx(here.best.network_s)
    assert 0.005 < added < 0.02


def test_a_goal_that_the_way_alone_breaks_is_not_kept_from_afar(session: cw.Session) -> None:
    work = {**CHAT, **GERMAN, "goals": {"ttft": "200ms"}}
    limits = {"regions": ["aws:us-west-2"], "round_trip": "40ms"}
    plan = session.plan(work, limits=limits)
    assert isinstance(plan, cw.NoPlan)
    (missing,) = plan.missing
    assert missing.what == "distance to the users"
    assert "network to Germany 12" in missing.how_much
    assert "limits.round_trip: 12" in missing.remedy


def test_far_regions_are_taken_with_the_reason_where_nothing_is_near(session: cw.Session) -> None:
    plan = session.plan({**CHAT, **GERMAN}, region="aws:us-east-1")
    assert plan.best.region == "us-east-1"
    assert any(note.startswith("Nothing nearer fits: the network to Germany takes 9") for note in plan.notes)


def test_users_far_from_each_other_have_one_region_between_them_while_the_goals_are_kept(session: cw.Session) -> None:
    spread = {**CHAT, "traffic": {"DE": "50%", "US": "50%"}}
    kept = session.plan({**spread, "goals": {"ttft": "400ms"}}, cloud="aws", on_demand=True)
    assert kept.best.network_s is not None
    assert 0.06 < kept.best.network_s < 0.13
    assert kept.best.latency_s["ttft p90"] <= 0.4
    missed = session.plan({**spread, "goals": {"ttft": "120ms"}}, cloud="aws", on_demand=True)
    assert missed.best.network_s is not None
    assert missed.best.network_s < 0.13
    assert any(note.startswith("Nothing fits near enough") and "some users wait longer" in note for note in missed.notes)


def test_how_far_a_listing_is_whose_country_nobody_states_is_not_known(session: cw.Session) -> None:
    far = session.plan({**CHAT, **GERMAN}, cloud="runpod")
    assert far.best.network_s is None
    assert any(note.startswith("How far this is from Germany is not known") for note in far.notes)


def test_models_of_images_count_the_way_too(session: cw.Session) -> None:
    work = {"kind": "serve", "name": "tags", "model": "resnet-50", "arrival": {"rate": 100}, "goals": {"latency": "200ms"}}
    plan = session.plan({**work, **GERMAN}, cloud="aws", chip="t4", on_demand=True)
    assert plan.best.network_s is not None
    assert plan.best.network_s <= 0.04


def test_a_round_trip_that_leaves_nothing_of_a_goal_is_refused(session: cw.Session) -> None:
    with pytest.raises(cw.InvalidSettings, match=r"leave nothing of goals\.ttft"):
        session.plan({**CHAT, **GERMAN, "goals": {"ttft": "100ms"}}, limits={"round_trip": "100ms"})
    with pytest.raises(cw.InvalidSettings, match="80ms or 80s"):
        session.plan({**CHAT, **GERMAN}, limits={"round_trip": 80})
