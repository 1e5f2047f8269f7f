"""A replica has one capacity, whoever asks for it."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan, predict
from chipwise.perf.queueing import UTILISATION
from chipwise.perf.under_load import HIGHEST_USED
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.split import width

SERVICE = """kind: serve
name: chat
model: llama-3.1-8b
precision: bf16
arrival: {rate: 12 req/s, burstiness: BURST}
input_tokens: {mean: 1100, p95: 3200}
output_tokens: {mean: 240, p95: 600}
goals: GOALS
limits: {chips: [L40S], chip_count: {max: 16}}
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


def written(folder: Path, burst: str = "1", goals: str = "{}", more: str = "") -> str:
    path = folder / "chat.yaml"
    path.write_text(SERVICE.replace("BURST", burst).replace("GOALS", goals) + more, encoding="utf-8")
    return str(path)


def first(session: Session, path: str) -> Choice:
    return next(one for one in plan(session, path).choices if width(one.split) == 1)


def per_replica(choice: Choice) -> float:
    """What it is planned for."""
    assert choice.planned is not None
    assert choice.replicas is not None
    return choice.planned / choice.replicas


@pytest.mark.parametrize("goals", ["{ttft: {p95: 4s}, tpot: {p95: 90ms}}", "{latency: {p50: 10min}}"])
def test_without_headroom_the_highest_rate_of_predict_is_what_a_plan_counts_with(
    session: Session, tmp_path: Path, goals: str
) -> None:
    path = written(tmp_path, goals=goals, more="headroom: 0\n")
    choice = first(session, path)
    view = predict(session, path, choice.chip, None, {"rate": 1.0})
    assert choice.replicas
    assert view["highest_rate_per_s"] == pytest.approx((choice.rate or 0.0) / choice.replicas)
    assert view["highest_rate_per_s"] <= view["most_requests_per_s"]
    assert per_replica(choice) <= UTILISATION * view["most_requests_per_s"] * (1 + 1e-9)
    assert (choice.planned or 0.0) >= 12


def test_goals_hold_up_to_the_headroom_and_not_far_beyond(session: Session, tmp_path: Path) -> None:
    path = written(tmp_path, goals="{ttft: {p95: 1.5s}}")
    choice = first(session, path)
    planned = per_replica(choice)
    full = predict(session, path, choice.chip, None, {"rate": planned * 1.25})
    beyond = predict(session, path, choice.chip, None, {"rate": planned * 1.25 * 1.03})
    assert full["most_requests_per_s"] * UTILISATION > planned * 1.01  # the goal binds, not the capacity
    assert [one["met"] for one in full["goals"]] == [True]
    assert [one["met"] for one in beyond["goals"]] == [False]


def test_a_goal_that_hinders_nothing_costs_nothing(session: Session, tmp_path: Path) -> None:
    without = per_replica(first(session, written(tmp_path)))
    loose = per_replica(first(session, written(tmp_path, goals="{ttft: {p95: 1000s}}")))
    assert loose == pytest.approx(without, rel=0.012)  # to 99% of the capacity, since at all of it a queue has no end


def test_what_a_plan_says_it_is_for_is_planned_on_the_same_machines(session: Session, tmp_path: Path) -> None:
    goals = "{ttft: {p95: 1.5s}, tpot: {p95: 90ms}}"
    choice = first(session, written(tmp_path, goals=goals))
    path = tmp_path / "again.yaml"
    text = (
        SERVICE.replace("BURST", "1").replace("GOALS", goals).replace("12 req/s", f"{(choice.planned or 0.0) * 0.9999} req/s")
    )
    path.write_text(text, encoding="utf-8")
    again = next(one for one in plan(session, str(path), top=60).choices if one.machine == choice.machine)
    assert (again.machines, again.replicas) == (choice.machines, choice.replicas)


def test_each_of_many_replicas_gets_its_part_of_a_burst(session: Session, tmp_path: Path) -> None:
    """Requests that are dealt out by chance to c replicas come to each with a squared variation of 1 + (B^2 - 1) / c."""
    goals = "{ttft: {p95: 1.5s}}"
    path = written(tmp_path, burst="4", goals=goals)
    choice = first(session, path)
    alone = predict(session, path, choice.chip, None, {"rate": 1.0})["highest_rate_per_s"]
    assert choice.replicas
    assert per_replica(choice) * 1.25 > 1.05 * alone
    part = math.sqrt(1 + (16 - 1) / choice.replicas)
    sized = written(tmp_path, burst=f"{part:.6f}", goals=goals)
    seen = predict(session, sized, choice.chip, None, {"rate": per_replica(choice) * 1.25})
    assert [one["met"] for one in seen["goals"]] == [True]


def test_a_prediction_of_several_replicas_sees_bursts_shared(session: Session, tmp_path: Path) -> None:
    path = written(tmp_path, burst="4", goals="{ttft: {p95: 1.5s}}")
    one = predict(session, path, "l40s", None, {"rate": 1.0})
    four = predict(session, path, "l40s", None, {"rate": 4.0, "replicas": 4})
    assert four["goals"][0]["predicted_s"] < one["goals"][0]["predicted_s"]


def test_without_a_latency_that_hinders_the_rate_is_that_part_of_the_capacity(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text(SERVICE.replace("BURST", "1").replace("GOALS", "{latency: {p50: 10min}}"), encoding="utf-8")
    view = predict(session, str(path), "l40s", None, {"rate": 1.0})
    assert view["highest_rate_per_s"] == pytest.approx(HIGHEST_USED * view["most_requests_per_s"])
