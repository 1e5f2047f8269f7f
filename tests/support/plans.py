"""Plans made by hand, with numbers that are easy to check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chipwise.money.cost import Cost, Line
from chipwise.planner.limits import Refused
from chipwise.planner.reasons.abilities import Unpredicted
from chipwise.planner.reasons.goals import MissesDeadline
from chipwise.planner.reasons.limits import DoesNotRun, NotOffered, Rule, RuleKind
from chipwise.planner.reasons.sizes import LacksMemory
from chipwise.planner.remedies import Ease
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Counts, Loss, Missing, Obstacle, Plan, Service, Turn
from chipwise.planner.values.split import TrainingSplit
from chipwise.planner.why_lost import beaten

HOUR = 3600.0
HOSTILE = "<script>window.hurt=1</script><img src=x onerror=window.hurt=1>\"'&%{x}\u202e\x00</title></style>${1}"


def choice(**changes: Any) -> Choice:
    usd = changes.pop("usd", 100.0)
    made = Choice(
        provider="gcp",
        machine="a3-highgpu-8g",
        region="europe-west4",
        country="NLD",
        chip="H100-SXM",
        family="NVIDIA Hopper",
        chips=8,
        machines=1,
        purchase="spot",
        precision="bf16",
        split=TrainingSplit(tp=1, pp=1, cp=1, ep=1, dp=8, shard=0, recompute=0, micro_batch=1),
        seconds=10 * HOUR,
        low_s=8 * HOUR,
        high_s=13 * HOUR,
        p90_s=14 * HOUR,
        cost=Cost.of((Line("compute", 0.9 * usd, "10 h"), Line("storage", 0.1 * usd))),
        usd_per_unit=usd / 1000,
        unit="million tokens",
        kg=20.0,
        rate=None,
        replicas=None,
        memory_share=0.8,
        provenance="formula",
        price_of="2026-08-21",
        interruptions=1.0,
        checkpoint_s=1800.0,
        storage="object-store",
    )
    return replace(made, **changes)


def plan(**changes: Any) -> Plan:
    """Five choices of two providers and three families; a family that misses the deadline, one too small, one not offered."""
    winner = choice()
    slow = choice(machine="a3-highgpu-4g", chips=4, seconds=20 * HOUR, low_s=16 * HOUR, high_s=26 * HOUR, usd=110.0, kg=18.0)
    bought = choice(purchase="on-demand", usd=300.0, seconds=9 * HOUR)
    other = choice(
        provider="aws",
        machine="p4d.24xlarge",
        region="eu-north-1",
        chip="A100-40",
        family="NVIDIA Ampere",
        usd=150.0,
        seconds=30 * HOUR,
        kg=5.0,
        memory_share=0.95,
    )
    dear = choice(
        provider="aws",
        machine="trn1.32xlarge",
        region="eu-north-1",
        chip="Trainium",
        family="AWS Trainium",
        usd=400.0,
        memory_share=None,
    )
    late = choice(chip="T4", family="NVIDIA Turing", seconds=900 * HOUR, usd=90.0)
    made = Plan(
        workload="a job",
        kind="train",
        objective="cost",
        per="job",
        choices=(winner, slow, other, bought, dear),
        front=(winner, other, bought),
        losses=(
            Loss("NVIDIA Ampere", other, beaten(winner, other, "cost", "job")),
            Loss("AWS Trainium", dear, beaten(winner, dear, "cost", "job")),
            Loss("NVIDIA Turing", late, MissesDeadline(37.5 * 24 * HOUR, 5 * 24 * HOUR)),
            Loss("NVIDIA Pascal", None, LacksMemory(1.7e9)),
            Loss("NVIDIA Kepler", None, NotOffered()),
        ),
        refused=(Refused(Rule(RuleKind.UNKNOWN_SPEED), 7396, "aws c6i.12xlarge in af-south-1, on-demand"),),
        missing=(),
        counts=Counts(1000, 900, 100),
        turns=(Turn("price", "A100-40 wins when it gets 33% cheaper"),),
        notes=("A note.",),
    )
    return replace(made, **changes)


def service(**changes: Any) -> Plan:
    """Per month, without intervals or memory; spot was refused."""
    first = choice(purchase="on-demand", rate=15.0, replicas=2, memory_share=None, low_s=1.0, high_s=1.0, checkpoint_s=0.0)
    second = replace(first, machine="a2-highgpu-1g", chip="A100-40", rate=22.0, cost=Cost.of((Line("compute", 200.0),)))
    refused = (Refused(Rule(RuleKind.INTERRUPTIBLE), 438, "aws dl2q.24xlarge in eu-central-1, spot"),)
    made = plan(kind="serve", per="month", choices=(first, second), front=(first, second), losses=(), refused=refused)
    return replace(made, **changes)


def per_use(**changes: Any) -> Service:
    made = Service("per token", "nebius", "llama-3.1-8b", "", 250.0, 0.0, "a machine is cheaper from 3 req/s", (), ())
    return replace(made, **changes)


def nothing(*missing: Missing) -> Plan:
    found = missing or (Missing(Obstacle.DEADLINE, MissesDeadline(144 * HOUR, 120 * HOUR), (Ease(),)),)
    return plan(choices=(), front=(), missing=found, turns=())


def hostile() -> Plan:
    """Every text that comes from outside is an attack."""
    bad = HOSTILE
    one = choice(
        provider=bad,
        machine=bad,
        region=bad,
        country=bad,
        chip=bad,
        family=bad,
        precision=bad,
        purchase=bad,
        unit=bad,
        provenance=bad,
        price_of=bad,
        storage=bad,
        cost=Cost.of((Line(bad, 5.0, bad),)),
    )
    return Plan(
        workload=bad,
        kind=bad,
        objective=bad,
        per="job",
        choices=(one, replace(one, machines=2)),
        front=(one,),
        losses=(Loss(bad, one, Unpredicted(bad), bad), Loss(bad + "2", None, Unpredicted(bad))),
        refused=(Refused(Rule(RuleKind.REQUIRED, bad), 3, bad, DoesNotRun(bad)),),
        missing=(),
        counts=Counts(3, 2, 1),
        turns=(Turn(bad, bad),),
        notes=(bad,),
        services=(
            Service(bad, bad, bad, bad, 1.0, 0.0, bad, (bad,), ()),
            Service(bad, bad, bad, bad, 2.0, 0.0, bad, (), (Unpredicted(bad),)),
        ),
    )
