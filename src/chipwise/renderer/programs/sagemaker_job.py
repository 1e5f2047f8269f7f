#!/usr/bin/env python3
"""Runs the job of the plan on SageMaker.

    python sagemaker_job.py --role ARN --bucket s3://bucket/prefix          shows the request; starts nothing
    python sagemaker_job.py --role ARN --bucket s3://bucket/prefix --up     starts it; --wait waits for its end
    python sagemaker_job.py --down                                          stops what runs of it

Needs boto3 (pip install boto3) and AWS credentials in one of the places where boto3 looks for them. The role is the one that
SageMaker takes to read the bucket and to pull the image.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
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
MACHINE: str = SETTINGS["MACHINE"]
MACHINES: int = SETTINGS["MACHINES"]
SPOT: bool = SETTINGS["SPOT"]  # SageMaker waits for machines, and starts again from the checkpoints
MOST_SECONDS: int = SETTINGS["MOST_SECONDS"]
MOST_WAIT: int = SETTINGS["MOST_WAIT"]  # running and waiting for spot machines together
DISK_GIB: int = SETTINGS["DISK_GIB"]  # for the image and what the program writes
ENTRYPOINT: list[str] = SETTINGS["ENTRYPOINT"]
ARGUMENTS: list[str] = SETTINGS["ARGUMENTS"]
ENVIRONMENT: dict[str, str] = SETTINGS["ENVIRONMENT"]
DATA: str | None = SETTINGS["DATA"]  # empty: data/ in the bucket that --bucket names
CHECKPOINTS: str | None = SETTINGS["CHECKPOINTS"]


def request(options: argparse.Namespace, name: str) -> dict[str, Any]:
    bucket = options.bucket.rstrip("/")
    wanted: dict[str, Any] = {
        "TrainingJobName": name,
        "RoleArn": options.role,
        "AlgorithmSpecification": {
            "TrainingImage": options.image,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ENTRYPOINT,
            "ContainerArguments": ARGUMENTS,
        },
        "ResourceConfig": {"InstanceType": MACHINE, "InstanceCount": MACHINES, "VolumeSizeInGB": DISK_GIB},
        "StoppingCondition": {"MaxRuntimeInSeconds": MOST_SECONDS},
        "OutputDataConfig": {"S3OutputPath": f"{bucket}/output"},
        "Environment": ENVIRONMENT,
        "Tags": tag_list(),
    }
    if DATA is not None:
        place = {"S3DataType": "S3Prefix", "S3Uri": DATA or f"{bucket}/data", "S3DataDistributionType": "FullyReplicated"}
        # Files are read over the network as the program opens them: it starts before all of them are copied.
        channel = {"ChannelName": "data", "DataSource": {"S3DataSource": place}, "InputMode": "FastFile"}
        wanted["InputDataConfig"] = [channel]
    if CHECKPOINTS is not None:
        wanted["CheckpointConfig"] = {"S3Uri": CHECKPOINTS or f"{bucket}/checkpoints", "LocalPath": "/checkpoints"}
    if SPOT:
        wanted["EnableManagedSpotTraining"] = True
        wanted["StoppingCondition"]["MaxWaitTimeInSeconds"] = MOST_WAIT
    if options.subnet:
        wanted["VpcConfig"] = {"Subnets": options.subnet, "SecurityGroupIds": options.security_group}
    return wanted


def up(session: Any, options: argparse.Namespace) -> int:
    if not options.bucket:
        raise JobFailed("Give --bucket s3://bucket/prefix: checkpoints and results go there.")
    name = f"{NAME}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    wanted = request(options, name)
    if not options.up:
        print(json.dumps(wanted, indent=2))
        print("Nothing was started. Start it with --up.")
        return 0
    client = session.client("sagemaker")
    client.create_training_job(**wanted)
    print(f"started {name}: {MACHINES} x {MACHINE}")
    if not options.wait:
        return 0
    try:
        client.get_waiter("training_job_completed_or_stopped").wait(TrainingJobName=name)
    except KeyboardInterrupt:
        client.stop_training_job(TrainingJobName=name)
        print(f"stopped {name}", file=sys.stderr)
        return 130
    state = client.describe_training_job(TrainingJobName=name)
    print(f"{name}: {state['TrainingJobStatus']} {state.get('FailureReason', '')}".strip())
    return 0 if state["TrainingJobStatus"] == "Completed" else 1


def down(session: Any) -> None:
    """Jobs of this deployment that still run. Finished ones stay in SageMaker's list; they cost nothing."""
    client = session.client("sagemaker")
    for page in client.get_paginator("list_training_jobs").paginate(NameContains=NAME, StatusEquals="InProgress"):
        for job in page["TrainingJobSummaries"]:
            tags = client.list_tags(ResourceArn=job["TrainingJobArn"])["Tags"]
            if {"Key": OWNER_TAG, "Value": NAME} in tags:
                client.stop_training_job(TrainingJobName=job["TrainingJobName"])
                print(f"stopped {job['TrainingJobName']}")


class JobFailed(Exception):
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
    parser.add_argument("--bucket", metavar="S3-URL", help="where data, checkpoints and results lie")
    parser.add_argument("--subnet", action="append", default=[], help="may be given several times")
    parser.add_argument("--security-group", action="append", default=[], help="for --subnet")
    parser.add_argument("--wait", action="store_true", help="wait for the end; Ctrl-C stops the job")
    options = parser.parse_args()
    session = boto3.Session(region_name=REGION)
    try:
        if options.down:
            down(session)
        elif not options.role or not options.image:
            raise JobFailed("Give --role, and --image with the full name of the image.")
        else:
            return up(session, options)
    except JobFailed as error:
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
