"""Joint plans against every combination tried one by one, in plain loops that share nothing with the search."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache, cached_property

import numpy as np
import pytest

from chipwise.planner.pipeline import joint as joint_plan
from chipwise.planner.pipeline.beside import SharedQuota, crowds
from chipwise.planner.pipeline.joint import Joint, Stage, StageHandOff, Wanted, beyond, reckon, single_region, solve, swapped
from effort import seeds

OBJECTIVES = ("cost", "time", "carbon", "balanced")
Totals = tuple[float, float, float, float]  # usd, seconds, kg, charged
NOTHING: tuple[Totals, tuple[float, ...]] = ((0.0, 0.0, 0.0, 0.0), ())


class Case:
    """Random stages and hand-offs, as lists. Small whole numbers make ties; others do not."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        whole = seed % 3 == 0

        def number() -> float:
            return float(draw.randint(1, 4)) if whole else draw.lognormvariate(1.0, 1.2)

        self.regions = draw.randint(1, 4)
        many = draw.randint(1, 5)
        self.stages = [
            [
                (draw.randrange(self.regions), number(), number(), number(), draw.choice((1.0, 0.25)))
                for _ in range(draw.randint(1, 7 if many < 5 else 5))
            ]
            for _ in range(many)
        ]
        shape = seed % 4
        pairs = [(giver, taker) for taker in range(many) for giver in range(taker)]
        if shape == 0:  # a chain
            pairs = [(at, at + 1) for at in range(many - 1)]
        elif shape == 1 and many == 5:  # a fork and a join, and one to the side
            pairs = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 4)]
        else:
            pairs = [pair for pair in pairs if draw.random() < 0.55]
        self.edges = [
            (giver, taker, self._table(number, draw.choice((0.0, 0.2, 2.0))), self._table(number, draw.choice((0.0, 0.3, 1.5))))
            for giver, taker in pairs
        ]

        draw = random.Random(
            7000 + seed
        )  # what stages need of quotas, in whole chips; one quota holds in each region by itself
        self.lasting = [draw.random() < 0.3 for _ in range(many)]
        self.draws = [[(float(draw.randint(0, 4)), float(draw.choice((0, 0, 1, 2)))) for _ in rows] for rows in self.stages]
        self.granted = (float(draw.randint(3, 7)), float(draw.randint(1, 3)))  # in all; in each region

    def _table(self, number: Callable[[], float], scale: float) -> list[list[float]]:
        return [[0.0 if here == there else scale * number() for there in range(self.regions)] for here in range(self.regions)]

    def as_columns(self) -> tuple[list[Stage], list[StageHandOff]]:
        stages = []
        for at, rows in enumerate(self.stages):
            region, usd, seconds, kg, share = (np.array(one) for one in zip(*rows, strict=True))
            draws = np.array(self.draws[at])
            stages.append(Stage(f"s{at}", region.astype(np.intp), usd, seconds, kg, usd * share, draws))
        edges = [
            StageHandOff(giver, taker, np.array(usd), np.array(seconds), np.array(usd))
            for giver, taker, usd, seconds in self.edges
        ]
        return stages, edges

    def totals(self, picks: tuple[int, ...]) -> Totals:
        totals, done = NOTHING
        for at in range(len(picks)):
            totals, done = self._followed(totals, done, picks[: at + 1])
        return totals

    def _followed(self, totals: Totals, done: tuple[float, ...], picks: tuple[int, ...]) -> tuple[Totals, tuple[float, ...]]:
        """The totals, and when each stage is done, after one stage more: the last of `picks`."""
        at = len(picks) - 1
        region, dollars, takes, carbon, share = self.stages[at][picks[at]]
        usd, kg, charged = totals[0] + dollars, totals[2] + carbon, totals[3] + dollars * share
        start = 0.0
        for giver, taker, price, way in self.edges:
            if taker == at:
                before = self.stages[giver][picks[giver]][0]
                usd, charged = usd + price[before][region], charged + price[before][region]
                start = max(start, done[giver] + way[before][region])
        return (usd, max(totals[1], start + takes), kg, charged), (*done, start + takes)

    def quotas(self) -> tuple[SharedQuota, ...]:
        together = crowds(len(self.stages), [edge[:2] for edge in self.edges], self.lasting)
        everywhere, each = self.granted
        return (
            SharedQuota("h100", "chips", everywhere, True, False, together),
            SharedQuota("G", "vCPU", each, False, True, together),
        )

    def leads(self, one: int, other: int) -> bool:
        return any(giver == one and (taker == other or self.leads(taker, other)) for giver, taker, _, _ in self.edges)

    def may_overlap(self, one: int, other: int) -> bool:
        """`one` comes first in the order of stages."""
        return self.lasting[one] or not self.leads(one, other)

    def crowded(self) -> list[tuple[int, ...]]:
        """Every set of stages, however small, that may run at one time."""
        many = range(len(self.stages))
        sets = itertools.chain.from_iterable(itertools.combinations(many, size) for size in range(1, len(self.stages) + 1))
        return [one for one in sets if all(self.may_overlap(*pair) for pair in itertools.combinations(one, 2))]

    def within_quotas(self, picks: tuple[int, ...], crowded: list[tuple[int, ...]]) -> bool:
        everywhere, each = self.granted
        for some in crowded:
            if sum(self.draws[at][picks[at]][0] for at in some) > everywhere:
                return False
            for region in range(self.regions):
                here = [at for at in some if self.stages[at][picks[at]][0] == region]
                if sum(self.draws[at][picks[at]][1] for at in here) > each:
                    return False
        return True

    @cached_property
    def every(self) -> list[tuple[tuple[int, ...], Totals]]:
        """All combinations, stage after stage: what they begin with is added up once."""
        begun: list[tuple[tuple[int, ...], Totals, tuple[float, ...]]] = [((), *NOTHING)]
        for rows in self.stages:
            longer = [((*picks, pick), totals, done) for picks, totals, done in begun for pick in range(len(rows))]
            begun = [(picks, *self._followed(totals, done, picks)) for picks, totals, done in longer]
        return [(picks, totals) for picks, totals, _ in begun]


@cache
def case_of(seed: int) -> Case:
    """Nobody changes one: several laws are held against the same combinations."""
    return Case(seed)


def score_of(totals: Totals, objective: str) -> float:
    usd, seconds, kg, _ = totals
    if objective == "balanced":
        return float((usd * seconds * kg) ** (1 / 3))
    return {"cost": usd, "time": seconds, "carbon": kg}[objective]


def goals_of(case: Case, every: list[tuple[tuple[int, ...], Totals]], seed: int) -> Wanted:
    """Goals between the best and the worst that there is, now and then beyond the best."""
    draw = random.Random(1000 + seed)
    times, costs = sorted(one[1][1] for one in every), sorted(one[1][3] for one in every)

    def between(values: list[float]) -> float:
        return values[0] * 0.99 if draw.random() < 0.1 else values[int(draw.random() ** 2 * (len(values) - 1))]

    deadline = between(times) if seed % 2 else None
    budget = between(costs) if draw.random() < 0.5 else None
    return Wanted(OBJECTIVES[seed % len(OBJECTIVES)], deadline, budget)


def best_by_trying(every: list[tuple[tuple[int, ...], Totals]], wanted: Wanted) -> Totals | None:
    best: Totals | None = None
    for _, totals in every:
        if wanted.deadline_s is not None and totals[1] > wanted.deadline_s * (1 + 1e-12):
            continue
        if wanted.budget_usd is not None and totals[3] > wanted.budget_usd * (1 + 1e-12):
            continue
        if best is None:
            best = totals
            continue
        mine, other = score_of(totals, wanted.objective), score_of(best, wanted.objective)
        money = 0 if wanted.budget_usd is None else 3
        if mine < other * (1 - 1e-9) or (mine <= other * (1 + 1e-9) and totals[money] < best[money]):
            best = totals
    return best


@pytest.mark.parametrize("beams", [joint_plan.BEAMS, (1,)])
@pytest.mark.parametrize("seed", seeds(240))
def test_the_joint_plan_is_the_best_of_all_combinations(
    monkeypatch: pytest.MonkeyPatch, seed: int, beams: tuple[int, ...]
) -> None:
    """With a beam of one the first answer is rarely the best, so that the proof behind it has something to find."""
    monkeypatch.setattr(joint_plan, "BEAMS", beams)
    case = case_of(seed)
    every = case.every
    stages, hand_offs = case.as_columns()
    for wanted in (goals_of(case, every, seed), Wanted(OBJECTIVES[(seed // 4) % 4])):
        expected, found = best_by_trying(every, wanted), solve(stages, hand_offs, wanted)
        if expected is None:
            assert found is None
            continue
        assert found is not None
        assert (found.usd, found.seconds, found.kg, found.charged) == pytest.approx(case.totals(found.picks), rel=1e-12)
        assert found.score(wanted.objective) == pytest.approx(score_of(expected, wanted.objective), rel=2e-9)
        cheapest = expected[0] if wanted.budget_usd is None else expected[3]
        assert wanted.money(found) == pytest.approx(cheapest, rel=1e-9)  # of those that tie
        assert found.keeps(wanted)


@pytest.mark.parametrize("seed", seeds(240))
def test_the_joint_plan_is_the_best_of_all_combinations_within_quotas(seed: int) -> None:
    case = case_of(seed)
    every, crowded = case.every, case.crowded()
    within = [one for one in every if case.within_quotas(one[0], crowded)]
    stages, hand_offs = case.as_columns()
    for goals in (goals_of(case, every, seed), Wanted(OBJECTIVES[(seed // 4) % 4])):
        wanted = replace(goals, quotas=case.quotas())
        expected, found = best_by_trying(within, wanted), solve(stages, hand_offs, wanted)
        assert (found is None) == (expected is None)
        if found is None or expected is None:
            continue
        assert case.within_quotas(found.picks, crowded)
        assert found.keeps(wanted)
        assert found.score(wanted.objective) == pytest.approx(score_of(expected, wanted.objective), rel=2e-9)
        assert wanted.money(found) == pytest.approx(expected[0] if wanted.budget_usd is None else expected[3], rel=1e-9)


@pytest.mark.parametrize("seed", seeds(100))
def test_one_region_within_quotas_is_the_best_of_such_combinations(seed: int) -> None:
    case = case_of(seed)
    crowded = case.crowded()
    within = [
        one
        for one in case.every
        if case.within_quotas(one[0], crowded) and len({case.stages[at][pick][0] for at, pick in enumerate(one[0])}) == 1
    ]
    wanted = Wanted(OBJECTIVES[seed % 4], quotas=case.quotas())
    expected, found = best_by_trying(within, wanted), single_region(*case.as_columns(), wanted)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.score(wanted.objective) == pytest.approx(score_of(expected, wanted.objective), rel=2e-9)


def test_quotas_bind_in_many_of_the_cases_and_leave_nothing_in_some() -> None:
    bound = none = 0
    for seed in seeds(240):
        case, wanted = case_of(seed), Wanted(OBJECTIVES[(seed // 4) % 4])
        every, crowded = case.every, case.crowded()
        free = best_by_trying(every, wanted)
        kept = best_by_trying([one for one in every if case.within_quotas(one[0], crowded)], wanted)
        none += kept is None
        bound += kept is not None and kept != free
    assert bound > len(seeds(240)) / 4
    assert none > len(seeds(240)) / 48


def test_an_excess_tells_who_needs_how_much() -> None:
    stages, _ = case_of(5).as_columns()
    one = replace(stages[0], draws=np.full((len(stages[0]), 1), 6.0))
    quota = SharedQuota("h100", "chips", 8.0, True, False, ((0, 1),))
    wanted = Wanted(quotas=(quota,))
    found = beyond([one, one], wanted, reckon([one, one], [], [0, 0]))
    assert [(each.needed, each.by_stage) for each in found] == [(12.0, ((0, 6.0), (1, 6.0)))]
    assert solve([one, one], [], wanted) is None
    assert solve([one, one], [], replace(wanted, quotas=(replace(quota, crowds=((0,), (1,))),))) is not None


def test_the_cases_cover_what_they_are_meant_to() -> None:
    cases = [case_of(seed) for seed in seeds(240)]
    joins = sum(any(sum(edge[1] == at for edge in case.edges) > 1 for at in range(len(case.stages))) for case in cases)
    forks = sum(any(sum(edge[0] == at for edge in case.edges) > 1 for at in range(len(case.stages))) for case in cases)
    wanted = [goals_of(case, case.every, seed) for seed, case in enumerate(cases)]
    none = sum(best_by_trying(case.every, one) is None for case, one in zip(cases, wanted, strict=True))
    assert joins > len(cases) / 6
    assert forks > len(cases) / 6
    assert sum(one.deadline_s is not None and one.budget_usd is not None for one in wanted) > len(cases) / 6
    assert none > len(cases) / 24


@pytest.mark.parametrize("seed", seeds(100))
def test_one_region_for_all_is_the_best_of_such_combinations(seed: int) -> None:
    case = case_of(seed)
    stages, hand_offs = case.as_columns()
    every = case.every
    wanted = goals_of(case, every, seed)
    same = [one for one in every if len({case.stages[at][pick][0] for at, pick in enumerate(one[0])}) == 1]
    expected, found = best_by_trying(same, wanted), single_region(stages, hand_offs, wanted)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.score(wanted.objective) == pytest.approx(score_of(expected, wanted.objective), rel=2e-9)


@pytest.mark.parametrize("seed", seeds(20))
def test_a_swap_is_scored_as_the_combination_it_makes(seed: int) -> None:
    case = case_of(seed)
    stages, hand_offs = case.as_columns()
    wanted = Wanted(OBJECTIVES[seed % 4])
    joint = reckon(stages, hand_offs, [0] * len(stages))
    for at, rows in enumerate(case.stages):
        scores = swapped(stages, hand_offs, wanted, joint, at)
        for row in range(len(rows)):
            picks = tuple(row if here == at else 0 for here in range(len(stages)))
            assert scores[row] == pytest.approx(score_of(case.totals(picks), wanted.objective))


def test_dear_egress_keeps_stages_together_and_cheap_egress_lets_them_part() -> None:
    def stage(name: str, usd: list[float]) -> Stage:
        return Stage(name, np.array([0, 1]), np.array(usd), np.ones(2), np.ones(2), np.array(usd), np.zeros((2, 0)))

    stages = [stage("first", [10.0, 12.0]), stage("second", [9.0, 5.0])]

    def moved(usd: float) -> list[StageHandOff]:
        table = np.array([[0.0, usd], [usd, 0.0]])
        return [StageHandOff(0, 1, table, np.zeros((2, 2)), table)]

    parted, together = solve(stages, moved(1.0), Wanted()), solve(stages, moved(3.0), Wanted())
    assert parted is not None
    assert together is not None
    assert parted.picks == (0, 1)
    assert together.picks == (1, 1)


def test_a_looser_goal_never_makes_the_plan_worse() -> None:
    case = case_of(11)
    stages, hand_offs = case.as_columns()
    fastest = solve(stages, hand_offs, Wanted("time"))
    assert fastest is not None
    found: list[Joint] = []
    for factor in (1.0, 1.2, 1.5, 2.0, 5.0):
        one = solve(stages, hand_offs, Wanted("cost", fastest.seconds * factor))
        assert one is not None
        found.append(one)
    costs = [one.usd for one in found]
    assert costs == sorted(costs, reverse=True)


def test_a_stage_without_candidates_leaves_no_plan() -> None:
    empty = np.zeros(0)
    stages, _ = case_of(4).as_columns()
    nothing = Stage("nothing", np.zeros(0, np.intp), empty, empty, empty, empty, np.zeros((0, 2)))
    assert solve([*stages, nothing], [], Wanted()) is None
    assert solve([], [], Wanted()) is None


def test_stages_out_of_order_are_our_own_mistake() -> None:
    stages, _ = case_of(8).as_columns()
    table = np.zeros((4, 4))
    with pytest.raises(AssertionError, match="order"):
        solve([stages[0], replace(stages[0], name="other")], [StageHandOff(1, 0, table, table, table)], Wanted())


def test_at_one_price_each_stage_runs_where_it_emits_least() -> None:
    ones, draws = np.ones(3), np.zeros((3, 0))
    region = np.arange(3)
    stage = Stage(
        "answer", region, np.array([5.0, 5.0, 6.0]), ones, np.array([9.0, 2.0, 1.0]), np.array([5.0, 5.0, 6.0]), draws
    )
    best = solve([stage], [], Wanted("cost"))
    assert best is not None
    assert (best.picks, best.kg) == ((1,), 2.0)
