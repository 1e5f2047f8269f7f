"""The planner against every candidate tried one by one, on small random workloads; and laws that any planner keeps.

`benchmarks/plan.py` does the same on hundreds of workloads.
"""

from __future__ import annotations

from array import array
from copy import copy
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest

from brute_planner import Brute, Wanted, counted, most_usd, random_generation, random_training
from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.perf.arrays import Array
from chipwise.perf.model import packaged
from chipwise.planner.ranking import Values, front
from chipwise.planner.training import search as learning
from chipwise.planner.training import splits
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import width
from chipwise.workload.goals import Objective
from effort import seeds

SMALL = {
    "kind": "train",
    "name": "small",
    "model": "llama-3.2-1b",
    "tokens": 5e9,
    "sequence_length": 2048,
    "batch_tokens": 262144,
    "precision": "bf16",
    "optimizer": "adamw",
    "limits": {"chips": ["L4", "L40S", "A10G"], "chip_count": {"max": 16}},
}


@cache
def session() -> Session:
    return open_session()


@cache
def brute() -> Brute:
    return Brute(session())


def planned(wanted: Wanted, folder: Path, objective: str | None = None, over: Session | None = None) -> Plan:
    return plan(over or session(), wanted.write(folder / "workload.yaml"), objective)


def agree(found: Plan, wanted: Wanted) -> None:
    all_tried = brute().training(wanted) if wanted.file["kind"] in ("train", "finetune") else brute().generation(wanted)
    counts = found.counts
    assert counts.considered == all_tried.considered
    assert counts.considered == counts.pruned + counts.estimated
    assert 0 <= counts.estimated <= counts.considered
    kept = all_tried.sensible("deadline_s" in wanted.file.get("goals", {}))
    if found.winner is None:
        assert not kept
        return
    one = found.winner
    own = [usd for usd, who in kept if who == (one.provider, one.machine, one.region, one.machines, one.purchase)]
    assert counted(one) == pytest.approx(min(own), rel=1e-9)
    cheapest = min(usd for usd, _ in kept)
    assert counted(one) <= most_usd(found, cheapest) * (1 + 1e-9)
    if len({who for usd, who in kept if usd <= most_usd(found, cheapest)}) == 1:
        assert counted(one) == pytest.approx(cheapest, rel=1e-9)


@pytest.mark.parametrize("seed", seeds(12))
def test_no_training_is_cheaper_than_the_winner(seed: int, tmp_path: Path) -> None:
    wanted = random_training(Random(f"train {seed}"))
    agree(planned(wanted, tmp_path), wanted)


@pytest.mark.parametrize("seed", seeds(8))
def test_no_serving_is_cheaper_than_the_winner(seed: int, tmp_path: Path) -> None:
    wanted = random_generation(Random(f"serve {seed}"), online=True)
    agree(planned(wanted, tmp_path), wanted)


@pytest.mark.parametrize("seed", seeds(8))
def test_no_batch_is_cheaper_than_the_winner(seed: int, tmp_path: Path) -> None:
    wanted = random_generation(Random(f"batch {seed}"), online=False)
    agree(planned(wanted, tmp_path), wanted)


def test_offline_the_split_that_gets_most_out_of_a_machine_wins_not_the_fastest_replica(tmp_path: Path) -> None:
    file = {
        "kind": "batch",
        "name": "b",
        "model": "llama-3.2-1b",
        "items": 1e7,
        "input_tokens": {"mean": 500},
        "output_tokens": {"mean": 100},
        "limits": {"chips": ["A10G"], "chip_count": {"max": 8}, "precision": ["bf16"]},
    }
    wanted = Wanted(file)
    found = planned(wanted, tmp_path)
    agree(found, wanted)
    assert found.winner is not None
    assert width(found.winner.split) == 1


def test_a_factor_that_grows_with_the_micro_batch_keeps_all_of_them() -> None:
    model = packaged()
    assert splits.larger_is_no_slower(model)
    known = model.factors["training"]
    steep = {name: {"all": (0.3, 0.0)} if name == "all/matrix/tokens" else values for name, values in known.values.items()}
    leaning = replace(model, factors={**model.factors, "training": replace(known, values=steep)})
    assert not splits.larger_is_no_slower(leaning)


@pytest.mark.parametrize("seed", seeds(6))
def test_bounds_are_never_above_the_predicted_time(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    least = learning._Candidates.lower_bounds

    def watched(self: learning._Candidates) -> Array:
        bound = least(self)
        took = self.predict(np.arange(len(bound))).step.value
        seen.append(float((bound / took).max()))
        return bound

    monkeypatch.setattr(learning._Candidates, "lower_bounds", watched)
    planned(random_training(Random(f"bound {seed}")), tmp_path)
    assert all(one <= 1 + learning._MARGIN for one in seen)


def scaled(factor: float) -> Session:
    made = replace(session())
    catalog = made.catalog
    offers = copy(catalog.offers)
    for column in ("price", "price_max"):
        object.__setattr__(offers, column, array("d", [one * factor for one in getattr(catalog.offers, column)]))
    made.__dict__["catalog"] = replace(catalog, offers=offers)
    return made


def test_scaling_all_prices_scales_what_machines_cost(tmp_path: Path) -> None:
    once, thrice = planned(Wanted(SMALL), tmp_path), planned(Wanted(SMALL), tmp_path, over=scaled(3.0))
    assert once.winner is not None
    assert thrice.winner is not None
    assert thrice.winner.where == once.winner.where
    for before, after in zip(once.winner.cost.lines, thrice.winner.cost.lines, strict=True):
        assert after.usd == pytest.approx(3.0 * before.usd, rel=1e-12)


def test_more_offers_are_never_worse_and_tighter_limits_never_better(tmp_path: Path) -> None:
    best = [
        planned(Wanted({**SMALL, "limits": {**SMALL["limits"], **limits}}), tmp_path).winner  # type: ignore[dict-item]
        for limits in (
            {"chips": ["L4", "L40S", "A10G", "H100"]},
            {},
            {"chip_count": {"max": 8}},
            {"chip_count": {"max": 8}, "interruptible": False},
            {"chip_count": {"max": 8}, "interruptible": False, "clouds": ["aws", "gcp"]},
        )
    ]
    costs = [one.usd for one in best if one is not None]
    assert len(costs) == len(best)
    assert costs == sorted(costs)


def test_totals_are_sums_of_lines(tmp_path: Path) -> None:
    wanted = Wanted({**SMALL, "data": {"size_bytes": 1e12, "place": "aws:eu-central-1"}})
    found = planned(wanted, tmp_path)
    for one in (*found.choices, *found.front):
        assert one.usd == pytest.approx(sum(line.usd for line in one.cost.lines), rel=1e-12)
    agree(found, wanted)


@pytest.mark.parametrize("data", [None, {"size_bytes": 3e12, "place": "aws:eu-central-1"}])
def test_the_front_beats_itself_nowhere_and_holds_every_winner(data: dict[str, object] | None, tmp_path: Path) -> None:
    wanted = Wanted({**SMALL, **({"data": data} if data else {})})
    found = planned(wanted, tmp_path)
    points = [(one.usd, one.seconds, one.kg) for one in found.front]
    for one in points:
        assert not any(all(a <= b for a, b in zip(other, one, strict=True)) for other in points if other != one)
    for objective in Objective:
        winner = planned(wanted, tmp_path, objective.value).winner
        assert winner is not None
        if data is None or objective is Objective.COST:
            assert any(one == pytest.approx((winner.usd, winner.seconds, winner.kg), rel=1e-8) for one in points), objective


def test_the_front_is_what_nothing_beats() -> None:
    random = np.random.default_rng(3)
    usd, seconds, kg = np.round(random.random((3, 400)) * 20)
    kept = set(front(Values(usd, seconds, kg, usd, usd, usd)).tolist())
    points = list(zip(usd.tolist(), seconds.tolist(), kg.tolist(), strict=True))
    beaten = [any(q != p and all(a <= b for a, b in zip(q, p, strict=True)) for q in points) for p in points]
    assert {points[at] for at in kept} == {p for p, lost in zip(points, beaten, strict=True) if not lost}
