"""Warnings and recommendations of AWS, by way of EventBridge and a queue."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from aws_stand_in import Aws
from chipwise.adapters.engines.ec2.engine import Ec2, connect
from chipwise.runner.engine import Start
from ec2_account import machines, placed, see
from engines.ec2 import REGION, warning
from faulty_aws import Fault, Faulty

pytestmark = pytest.mark.e2e


def test_a_warning_is_told_once_and_kept_over_a_restart(aws: Aws, between: Faulty, engine: Ec2) -> None:
    engine.do(Start(placed()))
    sqs, url = aws.client("sqs", REGION), engine.config.queue_url
    for one in (
        warning(machines(aws)[0]["InstanceId"]),
        warning("i-of-nobody"),
        "no json",
        json.dumps({"detail-type": "other"}),
    ):
        sqs.send_message(QueueUrl=url, MessageBody=one)
    sight = see(engine, placed())
    assert sight.leave_by is not None
    assert "is reclaiming the spot machine" in sight.reason
    assert sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]["ApproximateNumberOfMessages"] == "0"
    assert see(connect(engine.config), placed()).leave_by == sight.leave_by


def test_a_warning_that_could_not_be_kept_stays_in_the_queue(aws: Aws, between: Faulty, engine: Ec2) -> None:
    engine.do(Start(placed()))
    url = engine.config.queue_url
    aws.client("sqs", REGION).send_message(QueueUrl=url, MessageBody=warning(machines(aws)[0]["InstanceId"]))
    between.faults.append(Fault("PUT /kept/team/live/j1/1/notice", 503, "SlowDown"))
    assert see(engine, placed()).leave_by is None
    assert between.count("DeleteMessageBatch") == 0


def test_a_recommendation_is_heeded_only_where_the_engine_is_told_to(aws: Aws, engine: Ec2) -> None:
    engine.do(Start(placed()))
    body = warning(machines(aws)[0]["InstanceId"], "EC2 Instance Rebalance Recommendation")
    calm = connect(replace(engine.config, heeds_rebalance=False))
    aws.client("sqs", REGION).send_message(QueueUrl=engine.config.queue_url, MessageBody=body)
    assert see(calm, placed()).leave_by is None
    aws.client("sqs", REGION).send_message(QueueUrl=engine.config.queue_url, MessageBody=body)
    assert "rebalance" in see(engine, placed()).reason
