"""An attempt with fewer machines than its job wants is asked for, told and seen as what it is, where an engine finds them."""

from __future__ import annotations

from typing import Any

from chipwise.adapters.engines.ec2 import machine_choice
from chipwise.adapters.engines.ec2.config import Config
from chipwise.adapters.engines.ec2.seeing import Instance, sight
from chipwise.adapters.engines.ec2.user_data import user_data
from chipwise.adapters.engines.kubernetes.objects import attempt_objects
from chipwise.catalog.offer import Purchase
from chipwise.runner.engine import State
from chipwise.runner.events import Placed
from chipwise.runner.job import Job, MachinePlace, Needs
from engines.kubernetes import job_object
from run_jobs import added, queued, spec

SPOT = MachinePlace(Purchase.SPOT, "aws", "eu-west-1", "eu-west-1a", "g6.xlarge", 0.5)
NEEDS = Needs(gpus=2, machines=8, machines_least=2)


def placed(machines: int, needs: Needs = NEEDS, **asked: Any) -> Job:
    return added(queued("j1", spec(needs=needs, places=(SPOT,), **asked)), Placed(1, SPOT, machines=machines))


def rendered(**env: str) -> dict[str, Any]:
    made = job_object({}, completions=8, parallelism=8)
    [container] = made["spec"]["template"]["spec"]["containers"]
    container["command"] = ["/bin/sh", "-c", "exec torchrun --nnodes=8 --nproc-per-node=2 --rdzv-id=8 train.py --nnodes=80"]
    container["env"] = [{"name": name, "value": value} for name, value in env.items()]
    return made


def test_a_cluster_is_asked_for_as_many_pods_as_were_given_and_they_are_told() -> None:
    [main] = [attempt_objects(placed(4, objects=(rendered(WORLD_SIZE="16"),)), "here", "r").main]
    body = main[1]["spec"]
    [container] = body["template"]["spec"]["containers"]
    assert (body["completions"], body["parallelism"]) == (4, 4)
    assert "--nnodes=4 --nproc-per-node=2 --rdzv-id=8 train.py --nnodes=80" in container["command"][2]
    assert {one["name"]: one.get("value") for one in container["env"]}["WORLD_SIZE"] == "8"


def test_of_pods_that_each_do_a_part_fewer_run_at_a_time_and_all_parts_are_done() -> None:
    for machines, at_once in ((4, 8), (2, 4), (1, 2)):
        made = rendered()
        made["spec"] |= {"completions": 100, "parallelism": 16, "backoffLimitPerIndex": 3}
        body = attempt_objects(placed(machines, objects=(made,)), "here", "r").main[1]["spec"]
        assert (body["completions"], body["parallelism"]) == (100, at_once)
        assert "--nnodes=8 " in body["template"]["spec"]["containers"][0]["command"][2]


def test_the_full_number_of_pods_is_what_was_rendered() -> None:
    for needs in (NEEDS, Needs(gpus=2, machines=8)):
        body = attempt_objects(placed(8, needs, objects=(rendered(WORLD_SIZE="16"),)), "here", "r").main[1]["spec"]
        assert (body["completions"], body["parallelism"]) == (8, 8)
        assert "--nnodes=8 " in body["template"]["spec"]["containers"][0]["command"][2]


def test_a_fleet_is_asked_for_as_many_machines_as_were_given() -> None:
    config = Config("eu-west-1", "s3://kept/team")
    asked = machine_choice.fleet(placed(4), config, (SPOT,), (("eu-west-1a", "subnet-1"),))
    assert asked is not None
    assert asked["TargetCapacitySpecification"]["TotalTargetCapacity"] == 4
    assert "MACHINES=4\n" in user_data(placed(4), config, 0)
    assert "MACHINES=8\n" in user_data(placed(1, Needs(machines=8)), config, 0)


def test_it_runs_when_as_many_began_as_were_given() -> None:
    machines = [Instance(f"i-{at}", "running", "g6.xlarge", "eu-west-1a", True, 10.0) for at in range(4)]
    marks = {f"begun-{at}": "v" for at in range(4)}
    assert sight(placed(4), machines, marks, lambda mark: {"at": 20.0}, 30.0).state is State.RUNNING
    assert sight(placed(8), machines, marks, lambda mark: {"at": 20.0}, 30.0).state is State.PENDING
