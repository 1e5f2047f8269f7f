"""The engine under its own policy and no other: moto checks each signature, and looks each action up in the policy.

moto does not check what EC2 does in the caller's name when a fleet is made (start machines, tag them, hand the role on), nor
conditions, nor resources other than S3's; those are read in `tests/unit/adapters/engines/ec2/test_rights.py`.
"""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from aws_stand_in import Aws
from chipwise.adapters.engines.ec2 import policies
from chipwise.adapters.engines.ec2.engine import Config, connect
from chipwise.adapters.engines.ec2.policies import AccountNames, Policy
from chipwise.adapters.engines.ec2.user_data import machine_program
from chipwise.errors import NotAllowed
from chipwise.runner.engine import Clear, End, Leave, Start
from chipwise.runner.job import Needs
from ec2_account import machines, placed, templates
from engines.ec2 import REGION, warning

pytestmark = pytest.mark.e2e

NAMES = AccountNames("aws", "123456789012", REGION, "kept", "team/", "worker", "events")
IN_ITS_NAME = {"ec2:RunInstances", "ec2:CreateTags", "iam:PassRole"}


def actions(policy: Policy) -> set[str]:
    return {one for statement in policy["Statement"] for one in statement["Action"]}


@dataclass(frozen=True)
class Someone:
    aws: Aws
    config: Config

    def may(self, policy: Policy, but: str = "") -> None:
        """The same as moto can read it: any resource where it knows none, the bucket for objects that are deleted in a batch,
        and a right of its own for messages in a batch. `but`: an action that is taken out.
        """
        left = [
            {**one, "Action": kept, "Resource": [one["Resource"], "arn:aws:s3:::kept"] if kept[0].startswith("s3:") else "*"}
            for one in policy["Statement"]
            if (kept := [action for action in one["Action"] if action != but])
        ]
        text = json.dumps({**policy, "Statement": left}).replace('"sqs:DeleteMessage"', '"sqs:DeleteMessageBatch"')
        self.aws.client("iam", REGION).put_user_policy(UserName="mia", PolicyName="p", PolicyDocument=text)


@contextmanager
def checked(aws: Aws) -> Iterator[None]:
    """Meanwhile each request needs a right."""
    _checks(aws, "0")
    try:
        yield
    finally:
        _checks(aws, "inf")


def _checks(aws: Aws, after: str) -> None:
    request = urllib.request.Request(f"{aws.moto}/moto-api/reset-auth", after.encode(), {"Content-Type": "text/plain"})
    urllib.request.urlopen(request, timeout=20).read()


@pytest.fixture
def mia(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Someone:
    iam = aws.client("iam", REGION)
    iam.create_user(UserName="mia")
    key = iam.create_access_key(UserName="mia")["AccessKey"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    queue = aws.client("sqs", REGION).get_queue_url(QueueName="events")["QueueUrl"]
    return Someone(aws, Config(REGION, "s3://kept/team", endpoint_url=aws.moto, queue_url=queue, tries=1, timeout_s=20.0))


def whole_life(mia: Someone) -> None:
    """All that a controller ever does: start, hear of a notice, ask to leave, read a log, end, clear, reap."""
    engine, now = connect(mia.config), time.time()
    job = placed()
    job = replace(job, spec=replace(job.spec, needs=Needs()))
    engine.do(Start(job))
    engine.look([job], now + 300.0)  # by when a message of a machine that nobody knows is useless, and taken away
    engine.do(Leave(job, now + 60, "a test"))
    list(engine.logs(job, 1))
    engine.do(End(job))
    engine.do(Clear("j1/1"))
    engine.reap(list)


@pytest.fixture
def message(aws: Aws, mia: Someone) -> None:
    aws.client("sqs", REGION).send_message(QueueUrl=mia.config.queue_url, MessageBody=warning("i-of-nobody"))


@pytest.mark.usefixtures("message")
def test_the_policy_is_enough_for_all_that_a_controller_does(mia: Someone, aws: Aws) -> None:
    mia.may(policies.controller(NAMES))
    with checked(aws):
        whole_life(mia)
    assert (machines(aws), templates(aws)) == ([], [])


@pytest.mark.usefixtures("message")
@pytest.mark.parametrize("action", sorted(actions(policies.controller(NAMES)) - IN_ITS_NAME))
def test_each_right_of_the_policy_is_needed_and_named_where_it_is_missing(mia: Someone, aws: Aws, action: str) -> None:
    mia.may(policies.controller(NAMES), but=action)
    with checked(aws), pytest.raises(NotAllowed, match=rf"does not allow {action}[: ].*ec2-policy.json"):
        whole_life(mia)


def test_what_others_keep_in_the_bucket_is_not_the_controllers(mia: Someone, aws: Aws) -> None:
    mia.may(policies.controller(NAMES))
    with checked(aws), pytest.raises(NotAllowed, match="s3:PutObject"):
        connect(replace(mia.config, keep="s3://kept/others")).store.mark_over(("j1", 1))


def test_a_job_gives_no_orders_and_replaces_no_code(mia: Someone, aws: Aws) -> None:
    """It has the rights of its machine."""
    text = json.dumps(policies.machine(NAMES))
    aws.client("iam", REGION).put_user_policy(UserName="mia", PolicyName="p", PolicyDocument=text)
    store = connect(mia.config).store
    with checked(aws):
        store.put(("j1", 1), "ended-0-0", at=1)
        for mark in ("order", "end", "leave"):
            with pytest.raises(NotAllowed, match="s3:PutObject"):
                store.put(("j2", 1), mark)
        with pytest.raises(NotAllowed, match="s3:PutObject"):
            store.bring("code/x.tar.gz", b"theirs")
        with pytest.raises(NotAllowed, match="s3:PutObject"):
            store.mark_over(("j2", 1))
        with pytest.raises(NotAllowed, match="s3:PutObject"):
            store.lead(1.0)


def test_a_machine_may_do_what_its_program_does(mia: Someone, aws: Aws) -> None:
    """By the calls of the AWS CLI in its text; what each needs is AWS's documentation."""
    needs = {
        "s3 cp": {"s3:GetObject", "s3:PutObject"},
        "s3 ls": {"s3:ListBucket"},
        "s3 sync": {"s3:GetObject", "s3:ListBucket"},
        "ssm get-parameter": {"ssm:GetParameter"},
        "secretsmanager get-secret-value": {"secretsmanager:GetSecretValue"},
        "ecr get-login-password": {"ecr:GetAuthorizationToken"},
    }
    calls = set(re.findall(r"aws ((?:s3|ssm|secretsmanager|ecr|ec2|sts|sqs)[a-z0-9-]* [a-z-]+)", machine_program()))
    of_terraform = {"ec2 describe-instances"}  # how machines of a module find the first: those of the engine meet in S3
    assert calls == needs.keys() | of_terraform
    pulls = {"ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"}  # by docker
    by_jobs = {"s3:DeleteObject"}  # a checkpoint that is no longer kept
    assert actions(policies.machine(NAMES)) == set().union(*needs.values()) | pulls | by_jobs
