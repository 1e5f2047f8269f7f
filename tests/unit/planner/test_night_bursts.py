"""At night fewer replicas share the load, and one of them gets more of each burst: they are counted for that."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import yaml

from chipwise.api.catalog.check import check
from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.perf.arrays import Coded
from chipwise.perf.predict_serving import service
from chipwise.perf.queueing import waits
from chipwise.planner.fleet import fleet_of
from chipwise.planner.generation.job import ask_of
from chipwise.planner.generation.plan import generation_job
from chipwise.planner.load.curve import Answering
from chipwise.planner.values.choice import Choice
from chipwise.workload.kinds import Serve

LOW, HEADROOM, LIMIT_S = 1.0, 1.25, 0.8
BURSTS = 6.0


def office(burstiness: float) -> str:
    return yaml.safe_dump(
        {
            "kind": "serve",
            "name": "office",
            "model": "llama-3.1-8b",
            "arrival": {"peak": "30 req/s", "low": f"{LOW} req/s", "shape": "office-hours", "burstiness": burstiness},
            "input_tokens": {"mean": 1100},
            "output_tokens": {"mean": 240},
            "goals": {"ttft": {"p95": f"{LIMIT_S}s"}, "tpot": {"p95": "40ms"}},
        }
    )


@cache
def session() -> Session:
    return open_session()


@cache
def winner(burstiness: float) -> Choice:
    found = plan(session(), "office.yaml", text=office(burstiness)).winner
    assert found is not None
    return found


def first_token_s(choice: Choice, replicas: int) -> float:
    """p95 at the lowest load with its headroom, of a replica that sees its share of the bursts."""
    work = check(session(), "office.yaml", text=office(BURSTS)).workload
    assert isinstance(work, Serve)
    known, job = generation_job(session().known, "office.yaml", work)
    fleet = fleet_of(known.catalog, known.parts, wide=True)
    shape = int(fleet.shape_of[known.catalog.machine_index[choice.provider, choice.machine]])
    one = np.ones(1)
    ask = ask_of(job, fleet, np.array([shape]), Coded.of(choice.precision), one * choice.split.tp, one)  # type: ignore[union-attr]
    serving = service(replace(ask, scenario=Coded.of("open")), known.model)
    shared = replace(serving, traffic=serving.traffic.of_one(one * replicas))
    return float(waits(shared, one * LOW * HEADROOM / replicas).seconds("ttft", 0.95)[0])


def test_replicas_at_the_lowest_hours_keep_the_goals_under_their_share_of_a_burst() -> None:
    choice = winner(BURSTS)
    assert choice.over_time is not None
    assert choice.replicas is not None
    fewest = choice.over_time.fewest * choice.replicas // choice.machines
    assert fewest > 1
    assert first_token_s(choice, fewest) <= LIMIT_S
    assert first_token_s(choice, 1) > LIMIT_S  # as many as the rate alone would need


def test_without_bursts_one_replica_is_planned_for_as_much_at_any_load() -> None:
    assert winner(1.0).at_less == ()
    rates = [rate for _, rate in winner(BURSTS).at_less]
    assert rates == sorted(rates)
    assert rates[0] < rates[-1]


def test_replicas_follow_what_one_is_planned_for() -> None:
    able = Answering(10.0, 1, 1, at_less=((1.0, 0.5), (10.0, 5.0), (100.0, 10.0)))
    assert able.replicas(np.array([1.0, 10.0, 100.0, 200.0])) == pytest.approx([2, 2, 10, 20])
    assert Answering(10.0, 1, 1).replicas(np.array([1.0, 10.0, 100.0])) == pytest.approx([1, 1, 10])
