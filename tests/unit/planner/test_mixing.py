"""Mixes of machine types against every count tried one by one, and laws that any mix keeps."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import mix, plan
from chipwise.errors import BadInput, MissingExtra
from chipwise.planner.several.mixing import Needs, Types, bound, cheapest, cheapest_single, single, solve, worthwhile
from effort import seeds

MOST = 6  # machines that a type alone needs at most
TEXT = """kind: serve
name: chat
model: llama-3.1-8b
arrival: {rate: 8 req/s}
input_tokens: {mean: 900, p95: 3500, max: 16000}
output_tokens: {mean: 250, p95: 800, max: 2048}
goals: {tpot: {p95: 80ms}, ttft: {p95: 2s}}
limits: {clouds: [aws], chips: [L4, A10G, A100-80, H100, L40S], precision: [bf16, fp8]}
"""


@pytest.fixture(scope="module")
def session() -> Session:
    return open_session()


def drawn(random: Random, types: int, buckets: int) -> tuple[Types, Needs]:
    """Loads that the largest counts of brute force can carry."""
    rates = np.array([[random.choice((0.0, random.uniform(0.5, 8.0))) for _ in range(buckets)] for _ in range(types)])
    rates[rates.sum(axis=1) == 0, 0] = 1.0  # what answers nothing is no type
    rates[random.randrange(types)] = [random.uniform(0.5, 8.0) for _ in range(buckets)]
    usd = np.array([random.uniform(50, 900) for _ in range(types)])
    replicas = np.array([random.choice((1.0, 2.0, 4.0)) for _ in range(types)])
    full = max(float((1.0 / row).sum()) if (row > 0).all() else 0.0 for row in rates)
    load = np.full(buckets, random.uniform(0.1, 0.9) * MOST / full)
    return Types(usd, rates, replicas, np.ones(types)), Needs(load, random.choice((1.0, 1.0, 2.0, 5.0)))


def carries(types: Types, needs: Needs, counts: tuple[int, ...]) -> bool:
    """Whether so many machines can take all of the load: a linear programme that knows no whole numbers."""
    many, buckets = types.rates.shape
    full = np.zeros((many, many * buckets))
    whole = np.zeros((buckets, many * buckets))
    for t, b in product(range(many), range(buckets)):
        full[t, t * buckets + b] = needs.load[b] / types.rates[t, b] if types.rates[t, b] else 1e9
        whole[b, t * buckets + b] = 1.0
    from scipy.optimize import linprog  # takes a second to import, in every worker

    found = linprog(np.zeros(many * buckets), full, np.array(counts) + 1e-9, whole, np.ones(buckets), (0, 1))
    return bool(found.status == 0)


def brute(types: Types, needs: Needs, most: int = 12) -> float:
    every = sorted(product(range(most + 1), repeat=len(types)), key=lambda counts: float(np.dot(counts, types.usd)))
    for counts in every:
        if np.dot(counts, types.replicas) >= needs.replicas and carries(types, needs, counts):
            return float(np.dot(counts, types.usd))
    return float("inf")


def by_advantage(types: Types, needs: Needs, most: int) -> float:
    """Of two types: what the first is relatively best at goes to it until it is full. No linear programme needed."""
    best = float("inf")
    order = sorted(range(len(needs.load)), key=lambda b: types.rates[1, b] / max(types.rates[0, b], 1e-12))
    for first, second in product(range(most + 1), repeat=2):
        if first * types.replicas[0] + second * types.replicas[1] < needs.replicas:
            continue
        room, left = float(first), 0.0
        for b in order:
            need = needs.load[b] / types.rates[0, b] if types.rates[0, b] else float("inf")
            part = min(room / need, 1.0) if need > 0 else 1.0
            room -= part * need if part else 0.0
            if part < 1.0:
                left += (1.0 - part) * needs.load[b] / types.rates[1, b] if types.rates[1, b] else float("inf")
        if left <= second + 1e-9:
            best = min(best, float(first * types.usd[0] + second * types.usd[1]))
    return best


@pytest.mark.parametrize("seed", seeds(100))
def test_no_counts_of_two_types_are_cheaper(seed: int) -> None:
    random = Random(f"two {seed}")
    types, needs = drawn(random, 2, random.choice((1, 2, 3, 5)))
    found = solve(types, needs)
    assert found is not None
    assert found.proven
    assert found.usd == pytest.approx(by_advantage(types, needs, 12), rel=1e-7)


@pytest.mark.parametrize("seed", seeds(30))
def test_no_counts_of_three_types_are_cheaper(seed: int) -> None:
    random = Random(f"three {seed}")
    types, needs = drawn(random, 3, random.choice((2, 3)))
    found = solve(types, needs)
    assert found is not None
    assert found.counts.max() <= 12  # what brute force tries
    assert found.usd == pytest.approx(brute(types, needs), rel=1e-7)


@pytest.mark.parametrize("seed", seeds(40))
def test_a_mix_carries_the_load_and_is_between_its_bound_and_the_best_single_type(seed: int) -> None:
    random = Random(f"laws {seed}")
    types, needs = drawn(random, 6, 4)
    found, alone = solve(types, needs), single(types, needs)
    assert found is not None
    assert alone is not None
    assert bound(types, needs) <= found.usd * (1 + 1e-9)
    assert found.usd <= alone.usd * (1 + 1e-9)
    assert found.parts.sum(axis=0) == pytest.approx(np.ones(4))
    assert (found.busy(types, needs) <= 1 + 1e-6).all()
    assert not (found.parts[types.rates == 0] > 0).any()
    assert found.counts @ types.replicas >= needs.replicas


@pytest.mark.parametrize("seed", seeds(40))
def test_types_that_others_are_better_than_in_all_change_nothing(seed: int) -> None:
    random = Random(f"worse {seed}")
    types, needs = drawn(random, 4, 3)
    worse = Types(types.usd * 1.1, types.rates * 0.9, types.replicas, types.chips)
    both = Types(
        *(np.concatenate([getattr(one, name) for one in (worse, types)]) for name in ("usd", "rates", "replicas", "chips"))
    )
    assert (worthwhile(both, needs) >= 4).all()
    one, two = solve(both, needs), solve(types, needs)
    assert one is not None
    assert two is not None
    assert one.usd == pytest.approx(two.usd)


def test_chips_may_be_limited() -> None:
    types = Types(np.array([100.0, 900.0]), np.array([[1.0], [20.0]]), np.ones(2), np.array([1.0, 1.0]))
    wide, narrow = solve(types, Needs(np.array([5.0]))), solve(types, Needs(np.array([5.0]), chips=(1.0, 2.0)))
    assert wide is not None
    assert narrow is not None
    assert (wide.counts.tolist(), narrow.counts.tolist()) == ([5, 0], [0, 1])
    assert solve(types, Needs(np.array([50.0]), chips=(1.0, 2.0))) is None


def test_replicas_may_be_limited() -> None:
    types = Types(np.array([100.0, 150.0, 900.0]), np.array([[1.0], [1.5], [20.0]]), np.array([1.0, 2.0, 1.0]), np.ones(3))
    free, most = solve(types, Needs(np.array([6.0]))), solve(types, Needs(np.array([6.0]), most_replicas=2.0))
    assert free is not None
    assert most is not None
    assert free.usd == pytest.approx(600.0)
    assert most.counts.tolist() == [0, 0, 1]


def test_a_size_that_nobody_answers_has_no_mix() -> None:
    types = Types(np.array([100.0]), np.array([[1.0, 0.0]]), np.ones(1), np.ones(1))
    assert solve(types, Needs(np.array([1.0, 0.5]))) is None
    assert single(types, Needs(np.array([1.0, 0.5]))) is None


@pytest.mark.parametrize("seed", seeds(20))
def test_the_cheapest_place_is_found_without_solving_all(seed: int) -> None:
    random = Random(f"places {seed}")
    types, needs = drawn(random, 4, 3)
    usd = np.array([[random.choice((np.inf, random.uniform(50, 900))) for _ in range(4)] for _ in range(6)])
    found = cheapest(usd, types, needs)
    every = [solve(Types(row, types.rates, types.replicas, types.chips), needs) for row in usd]
    least = min((one.usd for one in every if one is not None), default=None)
    assert (found[1].usd if found else None) == (pytest.approx(least) if least is not None else None)
    alone = cheapest_single(usd, types, needs)
    assert alone is None or (found is not None and alone[1].usd >= found[1].usd * (1 - 1e-9))


def test_without_scipy_the_pip_line_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(MissingExtra, match=r"chipwise\[solve\]"):
        solve(Types(np.ones(1), np.ones((1, 1)), np.ones(1), np.ones(1)), Needs(np.ones(1)))


def test_a_real_service_is_cheaper_on_several_types(session: Session) -> None:
    loads = (
        mix(session, "chat.yaml", text=TEXT.replace("rate: 8 ", f"rate: {rate} "))
        for rate in (6, 7, 9, 11, 14, 18, 24, 32, 42, 55, 75)
    )
    found = next(one for one in loads if len(one.members) > 1)
    assert found.single is not None
    assert len(found.members) > 1
    assert found.usd < found.single.usd
    assert found.usd == pytest.approx(sum(one.usd for one in found.members))
    assert len({(one.provider, one.region) for one in found.members}) == 1
    taken = [
        sum(part.part for one in found.members for part in one.takes if part.bucket == at) for at in range(len(found.buckets))
    ]
    assert taken == pytest.approx([1.0] * len(found.buckets), abs=1e-4)
    assert all(one.busy <= 1 + 1e-6 for one in found.members)


def test_requests_of_one_size_cost_what_the_plan_costs(session: Session, tmp_path: Path) -> None:
    text = TEXT.replace(", p95: 3500, max: 16000", "").replace(", p95: 800, max: 2048", "")
    path = tmp_path / "chat.yaml"
    path.write_text(text)
    winner, found = plan(session, str(path)).winner, mix(session, str(path))
    assert winner is not None
    assert found.single is not None
    assert found.single.usd == pytest.approx(winner.usd, rel=1e-6)
    assert found.usd <= winner.usd * (1 + 1e-9)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("arrival: {rate: 8 req/s}", "arrival: {concurrency: 20}"), "rate of requests"),
        (("kind: serve", "kind: batch"), "batch work"),
    ],
)
def test_what_cannot_be_mixed_is_told(session: Session, change: tuple[str, str], told: str) -> None:
    text = TEXT.replace(*change)
    if "batch" in change[1]:
        text = text.replace("arrival: {rate: 8 req/s}", "items: 1000").replace("tpot: {p95: 80ms}, ttft: {p95: 2s}", "")
    with pytest.raises(BadInput, match=told):
        mix(session, "chat.yaml", text=text)


def test_a_goal_that_nobody_keeps_is_told_with_the_size(session: Session) -> None:
    found = mix(session, "chat.yaml", text=TEXT.replace("80ms", "1ms"))
    assert not found.members
    assert "no machine answers prompts of" in found.missing
