"""An account for tests of the ec2 engine: jobs that may run in it, and what is there when nobody asks the engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aws_stand_in import AMI, Aws
from chipwise.adapters.engines.ec2.engine import Config, Ec2
from chipwise.catalog.offer import Purchase
from chipwise.runner.engine import Sight
from chipwise.runner.events import Placed, Submitted, after, first
from chipwise.runner.job import Job, MachinePlace, Needs, Spec
from engines.ec2 import REGION
from faulty_aws import Fault, Faulty, no_machines

SPOT_A = MachinePlace(Purchase.SPOT, "aws", REGION, "eu-west-1a", "g6.xlarge", 0.3)
SPOT_B = MachinePlace(Purchase.SPOT, "aws", REGION, "eu-west-1b", "g6.2xlarge", 0.4)
STAYS = MachinePlace(Purchase.ON_DEMAND, "aws", REGION, "eu-west-1a", "g6.xlarge", 1.0)
NOW = 1_800_000_000.0
NO_SPOT = Fault(
    "CreateFleet", body=no_machines("InsufficientInstanceCapacity", "g6.xlarge", "spot"), holds="DefaultTargetCapacityType=spot"
)
NO_MACHINES = (
    '<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><reservationSet/></DescribeInstancesResponse>'
)
NO_QUOTA = no_machines("VcpuLimitExceeded", "g6.xlarge", "on-demand", "your current vCPU limit of 0 allows")


def config(aws: Aws, between: Faulty, tries: int = 1) -> Config:
    queue = aws.client("sqs", REGION).get_queue_url(QueueName="events")["QueueUrl"]
    return Config(
        REGION,
        "s3://kept/team",
        endpoint_url=between.url,
        image=AMI,
        queue_url=queue,
        instance_profile="worker",
        tries=tries,
        timeout_s=20.0,
        clock=lambda: NOW,
    )


def placed(where: MachinePlace = SPOT_A, id: str = "j1", machines: int = 1, **asked: Any) -> Job:
    spec = Spec(
        ("python", "train.py"), "train", "ec2", places=(SPOT_A, SPOT_B, STAYS), owner="mia", team="vision", project="cats"
    )
    job = first(id, Submitted(replace(spec, needs=Needs(gpus=1, machines=machines), **asked)), NOW)
    return after(job, Placed(1, where, machines=machines), NOW)


def see(engine: Ec2, job: Job, now: float = NOW) -> Sight:
    return engine.look([job], now).attempts[job.id, len(job.attempts)]


def machines(aws: Aws, *states: str) -> list[dict[str, Any]]:
    found = aws.client("ec2", REGION).describe_instances()["Reservations"]
    wanted = states or ("pending", "running")
    return [one for group in found for one in group["Instances"] if one["State"]["Name"] in wanted]


def templates(aws: Aws) -> list[str]:
    return [one["LaunchTemplateName"] for one in aws.client("ec2", REGION).describe_launch_templates()["LaunchTemplates"]]


def kept(aws: Aws, begin: str = "") -> list[str]:
    found = aws.client("s3", REGION).list_objects_v2(Bucket="kept", Prefix=f"team/{begin}").get("Contents", [])
    return [one["Key"].removeprefix("team/") for one in found]


def content(aws: Aws, name: str) -> str:
    body: bytes = aws.client("s3", REGION).get_object(Bucket="kept", Key=f"team/{name}")["Body"].read()
    return body.decode()
