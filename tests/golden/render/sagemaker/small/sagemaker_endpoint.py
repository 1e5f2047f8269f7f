#!/usr/bin/env python3
# tag-api: serve on c7i.large (aws eu-central-1, on-demand). Written by chipwise from the plan.
# The plan counts EC2's price; SageMaker asks more for the same machine.
# Expected: $62.00 and 4 kg CO2e a month.
"""Puts the service of the plan behind a SageMaker endpoint.

    python sagemaker_endpoint.py --role ARN --image URL          shows the requests; starts nothing
    python sagemaker_endpoint.py --role ARN --image URL --up     creates model, endpoint and scaling; waits until it answers
    python sagemaker_endpoint.py --down                          removes all of it

Needs boto3 (pip install boto3) and AWS credentials in one of the places where boto3 looks for them. The role is the one that
SageMaker takes to pull the image. SageMaker pulls from ECR only: build the Dockerfile beside this file and push it there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

SETTINGS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
NAME: str = SETTINGS["NAME"]
OWNER_TAG: str = SETTINGS["MINE"]
REGION: str = SETTINGS["REGION"]
IMAGE: str | None = SETTINGS["IMAGE"]  # in ECR, the only place that SageMaker pulls from; without one, --image names it
TAGS: dict[str, str] = SETTINGS["TAGS"]
MODE: str = SETTINGS["MODE"]  # real-time, asynchronous or serverless
MEMORY_MB: int | None = SETTINGS["MEMORY_MB"]
MACHINE: str | None = SETTINGS["MACHINE"]
START: int = SETTINGS["START"]
MIN_MACHINES: int = SETTINGS["LEAST"]
MAX_CAPACITY: int = SETTINGS["MOST"]
SLOTS: int | None = SETTINGS["SLOTS"]
STARTUP_SECONDS: int = SETTINGS["STARTUP_SECONDS"]
METRIC: dict[str, Any] = SETTINGS["METRIC"]
SCHEDULE: dict[str, list[Any]] = SETTINGS["SCHEDULE"]  # name: when, time zone, least, most
ENVIRONMENT: dict[str, str] = SETTINGS["ENVIRONMENT"]

WAIT_SECONDS = 30  # between two questions whether it is up
MACHINE_SECONDS = 1800  # until SageMaker has found a machine and pulled the image

ALARM = f"chipwise-{NAME}-wake"


def requests(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    model = {"Image": options.image, "Environment": ENVIRONMENT}
    variant: dict[str, Any] = {"VariantName": "main", "ModelName": NAME}
    if MODE == "serverless":
        variant["ServerlessConfig"] = {"MemorySizeInMB": MEMORY_MB, "MaxConcurrency": MAX_CAPACITY}
    else:
        variant |= {
            "InstanceType": MACHINE,
            "InitialInstanceCount": START,
            "InitialVariantWeight": 1.0,
            # Weights are fetched before the first answer.
            "ContainerStartupHealthCheckTimeoutInSeconds": STARTUP_SECONDS,
        }
    config: dict[str, Any] = {"EndpointConfigName": NAME, "ProductionVariants": [variant], "Tags": tag_list()}
    if MODE == "asynchronous":
        if not options.bucket:
            raise EndpointFailed("Give --bucket s3://bucket/prefix: answers of an asynchronous endpoint go there.")
        bucket = options.bucket.rstrip("/")
        output = {"S3OutputPath": f"{bucket}/answers", "S3FailurePath": f"{bucket}/failed"}
        client: dict[str, Any] = {"MaxConcurrentInvocationsPerInstance": SLOTS} if SLOTS else {}
        config["AsyncInferenceConfig"] = {"OutputConfig": output, "ClientConfig": client}
    return {
        "create_model": {"ModelName": NAME, "PrimaryContainer": model, "ExecutionRoleArn": options.role, "Tags": tag_list()},
        "create_endpoint_config": config,
        "create_endpoint": {"EndpointName": NAME, "EndpointConfigName": NAME, "Tags": tag_list()},
    }


def up(session: Any, options: argparse.Namespace) -> int:
    wanted = requests(options)
    if not options.up:
        print(json.dumps(wanted, indent=2))
        print("Nothing was started. Start it with --up.")
        return 0
    client = session.client("sagemaker")
    try:
        for call, arguments in wanted.items():
            getattr(client, call)(**arguments)
            print(f"{call}: {NAME}")
        attempts = (STARTUP_SECONDS + MACHINE_SECONDS) // WAIT_SECONDS + 1  # by itself the waiter gives up after half an hour
        patience = {"Delay": WAIT_SECONDS, "MaxAttempts": attempts}
        client.get_waiter("endpoint_in_service").wait(EndpointName=NAME, WaiterConfig=patience)
        if MODE != "serverless":
            scale(session)
    except BaseException:  # Ctrl-C too: an endpoint that did not come up would be paid for all the same
        print("did not succeed: removing what was created", file=sys.stderr)
        down(session)
        raise
    print(f"in service: {NAME} ({MODE})")
    return 0


def scale(session: Any) -> None:
    client = session.client("application-autoscaling")
    target = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"endpoint/{NAME}/variant/main",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    client.register_scalable_target(**target, MinCapacity=MIN_MACHINES, MaxCapacity=MAX_CAPACITY)
    policy: dict[str, Any] = {**METRIC, "ScaleInCooldown": 600, "ScaleOutCooldown": 60}
    client.put_scaling_policy(
        PolicyName="load", PolicyType="TargetTrackingScaling", TargetTrackingScalingPolicyConfiguration=policy, **target
    )
    for name, (schedule, zone, minimum, maximum) in SCHEDULE.items():
        action = {"MinCapacity": minimum, "MaxCapacity": maximum}
        client.put_scheduled_action(
            ScheduledActionName=name, Schedule=schedule, Timezone=zone, ScalableTargetAction=action, **target
        )
    if MODE == "asynchronous":
        wake(session, target)


def wake(session: Any, target: dict[str, str]) -> None:
    """Backlog per machine says nothing while there is no machine: the first comes as soon as anything waits."""
    steps: dict[str, Any] = {
        "AdjustmentType": "ChangeInCapacity",
        "StepAdjustments": [{"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 1}],
        "Cooldown": STARTUP_SECONDS,
    }
    policy = session.client("application-autoscaling").put_scaling_policy(
        PolicyName="wake", PolicyType="StepScaling", StepScalingPolicyConfiguration=steps, **target
    )
    session.client("cloudwatch").put_metric_alarm(
        AlarmName=ALARM,
        AlarmDescription="Requests wait and no machine runs",
        Namespace="AWS/SageMaker",
        MetricName="HasBacklogWithoutCapacity",
        Dimensions=[{"Name": "EndpointName", "Value": NAME}],
        Statistic="Average",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1.0,
        ComparisonOperator="GreaterThanOrEqualToThreshold",
        TreatMissingData="notBreaching",
        AlarmActions=[policy["PolicyARN"]],
        Tags=tag_list(),
    )


def down(session: Any) -> None:
    """Only what carries this deployment's tag: a name alone may be somebody else's."""
    client = session.client("sagemaker")
    for kind in ("endpoint", "endpoint_config", "model"):
        key = "".join(part.capitalize() for part in kind.split("_"))
        try:
            arn = getattr(client, f"describe_{kind}")(**{f"{key}Name": NAME})[f"{key}Arn"]
        except ClientError:
            continue
        if {"Key": OWNER_TAG, "Value": NAME} in client.list_tags(ResourceArn=arn)["Tags"]:
            if kind == "endpoint" and MODE != "serverless":
                forget_scaling(session)
            getattr(client, f"delete_{kind}")(**{f"{key}Name": NAME})
            print(f"removed {kind.replace('_', ' ')} {NAME}")


def forget_scaling(session: Any) -> None:
    if MODE == "asynchronous":
        session.client("cloudwatch").delete_alarms(AlarmNames=[ALARM])
    client = session.client("application-autoscaling")
    with contextlib.suppress(client.exceptions.ObjectNotFoundException):
        client.deregister_scalable_target(
            ServiceNamespace="sagemaker",
            ResourceId=f"endpoint/{NAME}/variant/main",
            ScalableDimension="sagemaker:variant:DesiredInstanceCount",
        )


class EndpointFailed(Exception):
    """Told to the user without a traceback."""


def tag_list() -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in TAGS.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--up", action="store_true", help="start it")
    actions.add_argument("--down", action="store_true", help="end it")
    parser.add_argument("--role", help="IAM role that SageMaker takes")
    parser.add_argument("--image", default=IMAGE, help="container image, with its registry")
    parser.add_argument("--bucket", metavar="S3-URL", help="where an asynchronous endpoint puts its answers")
    options = parser.parse_args()
    session = boto3.Session(region_name=REGION)
    try:
        if options.down:
            down(session)
        elif not options.role or not options.image:
            raise EndpointFailed("Give --role, and --image with the full name of the image.")
        else:
            return up(session, options)
    except EndpointFailed as error:
        print(error, file=sys.stderr)
        return 1
    except (ClientError, BotoCoreError) as error:  # no credentials and no network too
        print(f"AWS: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
