#!/usr/bin/env python3
"""Puts the program of the plan into a Lambda function.

    python lambda_deploy.py                                  shows what it would create
    python lambda_deploy.py --up --image URL --role ARN      creates function, queue and trigger
    python lambda_deploy.py --down                           removes all of it; the bucket stays

Objects that arrive in the bucket send a message to a queue; the queue runs the function, a few at a time. What fails three
times is put aside in a second queue. The role may write logs, read the queue and read the bucket, and nothing else.
Needs boto3 (pip install boto3) and AWS credentials in one of the places where boto3 looks for them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

SETTINGS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
NAME: str = SETTINGS["NAME"]
OWNER_TAG: str = SETTINGS["MINE"]
REGION: str = SETTINGS["REGION"]
ARCHITECTURE: str = SETTINGS["ARCHITECTURE"]
MEMORY_MB: int = SETTINGS["MEMORY_MB"]  # memory buys processors
DISK_MB: int = SETTINGS["DISK_MB"]  # /tmp
SECONDS: int = SETTINGS["SECONDS"]
ENVIRONMENT: dict[str, str] = SETTINGS["ENVIRONMENT"]
BUCKET: str | None = SETTINGS["BUCKET"]
PREFIX: str = SETTINGS["PREFIX"]
CONCURRENCY: int = SETTINGS["MOST"]  # runs at a time
TAGS: dict[str, str] = SETTINGS["TAGS"]


class DeploymentFailed(Exception):
    """Told to the user without a traceback."""


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def function(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "FunctionName": NAME,
        "PackageType": "Image",
        "Code": {"ImageUri": options.image},
        "Role": options.role,
        "Architectures": [ARCHITECTURE],
        "MemorySize": MEMORY_MB,
        "Timeout": SECONDS,
        "EphemeralStorage": {"Size": DISK_MB},
        "Environment": {"Variables": ENVIRONMENT},
        "Tags": TAGS,
    }


def make_queue(sqs: Any, account: str) -> tuple[str, str]:
    """(address, name) of the queue. Only the bucket may write to it."""
    attributes = {"MessageRetentionPeriod": "1209600", "SqsManagedSseEnabled": "true"}
    target = arn_of(sqs, sqs.create_queue(QueueName=f"{NAME}-failed", Attributes=attributes, tags=TAGS)["QueueUrl"])
    settings = {
        # Six times the function's time, so that a slow run is not started twice.
        "VisibilityTimeout": str(6 * SECONDS),
        "SqsManagedSseEnabled": "true",
        "RedrivePolicy": json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": 3}),
    }
    url = sqs.create_queue(QueueName=NAME, Attributes=settings, tags=TAGS)["QueueUrl"]
    arn = arn_of(sqs, url)
    rule = {
        "Effect": "Allow",
        "Principal": {"Service": "s3.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": f"arn:aws:s3:::{BUCKET}"}, "StringEquals": {"aws:SourceAccount": account}},
    }
    policy = {"Version": "2012-10-17", "Statement": [rule]}
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps(policy)})
    return url, arn


def arn_of(sqs: Any, url: str) -> str:
    return str(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"])


def notify(s3: Any, queue: str | None) -> None:
    """Adds our notification to those of the bucket, or takes it away again: others stay as they are."""
    configuration = s3.get_bucket_notification_configuration(Bucket=BUCKET)
    configuration.pop("ResponseMetadata", None)
    notification_id = f"chipwise-{NAME}"
    queue_configurations = [one for one in configuration.get("QueueConfigurations", []) if one.get("Id") != notification_id]
    if queue is not None:
        filters = {"Key": {"FilterRules": [{"Name": "prefix", "Value": PREFIX}]}} if PREFIX else None
        queue_configuration: dict[str, Any] = {"Id": notification_id, "QueueArn": queue, "Events": ["s3:ObjectCreated:*"]}
        queue_configurations.append({**queue_configuration, "Filter": filters} if filters else queue_configuration)
    s3.put_bucket_notification_configuration(
        Bucket=BUCKET, NotificationConfiguration={**configuration, "QueueConfigurations": queue_configurations}
    )


def up(session: Any, options: argparse.Namespace) -> None:
    if not options.up:
        print(json.dumps(function(options), indent=2))
        print(f"started by objects in s3://{BUCKET}/{PREFIX}" if BUCKET else "started by callers with permission")
        print("Nothing was created. Create it with --up.")
        return
    if not options.image or not options.role:
        raise DeploymentFailed("Build the Dockerfile beside this file, push it to ECR, and give --image and --role.")
    client = session.client("lambda")
    try:
        client.create_function(**function(options))
        client.get_waiter("function_active_v2").wait(FunctionName=NAME)
        if BUCKET is not None:
            account = session.client("sts").get_caller_identity()["Account"]
            _, queue = make_queue(session.client("sqs"), account)
            notify(session.client("s3"), queue)
            client.create_event_source_mapping(
                EventSourceArn=queue,
                FunctionName=NAME,
                BatchSize=1,
                ScalingConfig={"MaximumConcurrency": CONCURRENCY},
                FunctionResponseTypes=["ReportBatchItemFailures"],
            )
    except BaseException:  # Ctrl-C too
        print("did not succeed: removing what was created", file=sys.stderr)
        down(session)
        raise
    print(f"function {NAME}" + (f", started by s3://{BUCKET}/{PREFIX}" if BUCKET else ""))


def down(session: Any) -> None:
    client, sqs = session.client("lambda"), session.client("sqs")
    try:
        tags = client.get_function(FunctionName=NAME).get("Tags", {})
    except ClientError as error:
        if code_of(error) != "ResourceNotFoundException":
            raise
        tags = {OWNER_TAG: NAME}
    if tags.get(OWNER_TAG) != NAME:
        raise DeploymentFailed(f"There is a function {NAME} that is not of this deployment: it stays.")
    if BUCKET is not None:
        notify(session.client("s3"), None)
        for mapping in client.list_event_source_mappings(FunctionName=NAME)["EventSourceMappings"]:
            client.delete_event_source_mapping(UUID=mapping["UUID"])
        for name in (NAME, f"{NAME}-failed"):
            try:
                sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"])
            except ClientError as error:
                if "NonExistentQueue" not in code_of(error):
                    raise
    for _ in range(10):
        try:
            client.delete_function(FunctionName=NAME)
            print(f"removed {NAME}")
        except ClientError as error:
            if code_of(error) == "ResourceConflictException":  # still being created
                time.sleep(5)
                continue
            if code_of(error) != "ResourceNotFoundException":
                raise
        break


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--up", action="store_true", help="create it")
    actions.add_argument("--down", action="store_true", help="remove it")
    parser.add_argument("--image", help="image in ECR, built from the Dockerfile beside this file")
    parser.add_argument("--role", help="IAM role of the function")
    options = parser.parse_args()
    session = boto3.Session(region_name=REGION)
    try:
        if options.down:
            down(session)
        else:
            up(session, options)
    except DeploymentFailed as error:
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
