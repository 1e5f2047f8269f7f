"""Plans of pipelines made by hand: a fork, a join and a service paid by use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import plans
from chipwise.money.cost import Cost, Line
from chipwise.planner.reasons.abilities import Unpredicted
from chipwise.planner.reasons.goals import MissesDeadline
from chipwise.planner.reasons.limits import OverQuota, StagesOverQuota
from chipwise.planner.reasons.sizes import HoldsTooLittle
from chipwise.planner.remedies import Advice, Ease
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.pipeline import Alternative, Excluded, Lack, Moved, PipelinePlan, Placed, Rival, Totals
from chipwise.planner.values.plan import Missing, Obstacle
from chipwise.units import GIB

HOUR = plans.HOUR


def placed(
    name: str, kind: str, after: tuple[str, ...], choice: Choice, starts_h: float, ready_h: float, **more: Any
) -> Placed:
    other = replace(choice, machine="another")
    rivals = (
        Rival(choice, 500.0, 20 * HOUR, 60.0, None),
        Rival(other, 520.0, 30 * HOUR, 61.0, MissesDeadline(30 * HOUR, 24 * HOUR)),
    )
    made = Placed(name, kind, "job", after, choice, starts_h * HOUR, ready_h * HOUR, other, plans.plan(), rivals=rivals)
    return replace(made, **more)


def pipeline(**changes: Any) -> PipelinePlan:
    """prepare hands to train and to check, both of them to serve."""
    near = plans.choice(provider="aws", machine="g6.xlarge", region="eu-west-1", chip="L4", chips=1, usd=5.0, kg=0.5)
    far = plans.choice()
    service = plans.choice(
        provider="nebius",
        machine="llama-3.1-8b",
        region="an unstated region",
        country=None,
        chip="chip not stated",
        family="per token",
        chips=0,
        purchase="per token",
        precision="",
        usd=250.0,
        kg=0.0,
    )
    stages = (
        placed("prepare", "hpc", (), near, 0, 2),
        placed("train", "train", ("prepare",), far, 2.1, 12.1),
        placed("check", "batch", ("prepare",), near, 2, 3),
        placed(
            "serve",
            "serve",
            ("train", "check", "prepare"),
            service,
            12.2,
            12.2,
            per="month",
            assumed=("its speed is not stated",),
        ),
    )
    moves = (
        Moved("prepare", "train", 120e9, "once", "other cloud", 10.8, 360.0, "in all", ("aws: typical price",)),
        Moved("prepare", "check", 1e9, "once", "in place", 0.0, 0.0, "in all", ()),
        Moved("train", "serve", 16e9, "once", "other cloud", 1.4, 325.0, "in all", ()),
        Moved("check", "serve", 0.0, "once", "other cloud", 0.0, 0.0, "no size is given: nothing moves", ()),
        Moved("prepare", "serve", 3e12, "month", "other cloud", 270.0, 0.0, "30 requests a month x 100 GB", ()),
    )
    once = Cost.of((Line("prepare", 5.0), Line("train", 100.0), Line("check", 5.0), Line("prepare to train", 10.8)))
    totals = Totals(once, Cost.of((Line("serve", 250.0),)), 12.2 * HOUR, 21.0, 0.0, ("serve",))
    where = tuple((one.name, one.choice.where) for one in stages)
    front = (
        ("the answer", Alternative(totals, where, None)),
        (
            "time",
            Alternative(replace(totals, once=Cost.of((Line("all", 900.0),)), seconds=3 * HOUR, kg_once=40.0), where, None),
        ),
        (
            "cost within a time",
            Alternative(replace(totals, once=Cost.of((Line("all", 300.0),)), seconds=6 * HOUR), where, None),
        ),
    )
    other = Alternative(replace(totals, seconds=30 * HOUR), where, MissesDeadline(30 * HOUR, 24 * HOUR))
    made = PipelinePlan(
        "a pipeline",
        "cost",
        stages,
        moves,
        totals,
        other,
        None,
        (),
        1234,
        ("A note.",),
        front=front,
        refused=(
            Excluded(
                "train on 2 x p5",
                StagesOverQuota((("train", 8.0), ("check", 8.0)), OverQuota("h100", "chips", 16.0, 8.0, own=True)),
            ),
        ),
    )
    return replace(made, **changes)


def chain() -> PipelinePlan:
    """One stage after the other, without a front."""
    found = pipeline()
    first, second, *_ = found.stages
    return replace(found, stages=(first, second), hand_offs=found.hand_offs[:1], front=(), refused=())


def nothing() -> PipelinePlan:
    lacks = (
        Lack("train", Missing(Obstacle.MEMORY, HoldsTooLittle("T4", 15 * GIB, 24 * GIB), (Advice("limits.chips: l4"),))),
        Lack("", Missing(Obstacle.QUOTA, OverQuota("h100", "chips", 16.0, 8.0, own=True), (Ease(),))),
    )
    return PipelinePlan("a pipeline", "cost", (), (), None, None, None, lacks, 12, ("A note.",))


def hostile() -> PipelinePlan:
    """Every text that comes from outside is an attack."""
    bad = plans.HOSTILE
    one = plans.hostile().choices[0]
    rival = Rival(one, 5.0, HOUR, 1.0, Unpredicted(bad))
    first = replace(placed("a" + bad, bad, (), one, 0, 1), rivals=(rival,), assumed=(bad,))
    second = replace(placed("b" + bad, bad, ("a" + bad,), one, 1, 2), rivals=(rival,))
    move = Moved("a" + bad, "b" + bad, 1e9, "once", bad, 5.0, 10.0, bad, (bad,))
    totals = Totals(Cost.of((Line(bad, 5.0, bad),)), Cost.of(()), 2 * HOUR, 1.0, 0.0, (bad,))
    other = Alternative(totals, ((bad, bad), (bad, bad)), Unpredicted(bad))
    front = (("the answer", other), (bad, replace(other, totals=replace(totals, seconds=3 * HOUR))))
    return PipelinePlan(
        bad,
        bad,
        (first, second),
        (move,),
        totals,
        other,
        other,
        (),
        1,
        (bad,),
        front=front,
        refused=(Excluded(bad, Unpredicted(bad)),),
    )
