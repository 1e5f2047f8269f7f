"""The policies that are written down are those that the code makes; `tests/e2e/test_engine_ec2_rights.py` runs under them."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from chipwise.adapters.engines.ec2 import policies
from chipwise.adapters.engines.ec2.config import Config
from chipwise.adapters.engines.ec2.policies import AccountNames, Policy, partition_of
from chipwise.adapters.engines.ec2.user_data import _SUPERVISE

WRITTEN = Path(__file__).resolve().parents[5] / "docs" / "running"


def actions(policy: Policy) -> set[str]:
    return {one for statement in policy["Statement"] for one in statement["Action"]}


def statement(policy: Policy, action: str) -> dict[str, Any]:
    [found] = [one for one in policy["Statement"] if action in one["Action"]]
    return dict(found)


@pytest.mark.parametrize(("file", "policy"), [("ec2-policy", policies.controller), ("ec2-machine-policy", policies.machine)])
def test_what_is_written_down_is_what_the_code_makes(file: str, policy: Any) -> None:
    assert (WRITTEN / f"{file}.json").read_text() == json.dumps(policy(AccountNames()), indent=2) + "\n"


def test_ending_is_allowed_only_by_our_tag_and_tagging_only_what_is_being_made() -> None:
    made = policies.controller(AccountNames())
    for action in ("ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"):
        conditions = {"StringEquals": {"aws:ResourceTag/chipwise:place": "ec2:REGION:BUCKET/PREFIX"}}
        assert statement(made, action)["Condition"] == conditions
    assert "ec2:CreateAction" in statement(made, "ec2:CreateTags")["Condition"]["StringEquals"]
    for action in ("ec2:CreateTags", "ec2:CreateLaunchTemplate"):
        conditions = statement(made, action)["Condition"]
        assert conditions["StringEquals"]["aws:RequestTag/chipwise:place"] == "ec2:REGION:BUCKET/PREFIX"
    assert statement(made, "iam:PassRole")["Resource"] == "arn:aws:iam::ACCOUNT:role/MACHINE_ROLE"


@pytest.mark.parametrize("keep", ["s3://kept", "s3://kept/team", "s3://kept/team a/b"])
def test_what_is_tagged_and_ended_is_that_of_exactly_this_place(keep: str) -> None:
    """Another prefix of the bucket, or a bucket whose name begins alike, is another place."""
    config = Config("eu-west-1", keep)
    names = AccountNames(region="eu-west-1", bucket=config.bucket, prefix=config.prefix)
    ended = statement(policies.controller(names), "ec2:TerminateInstances")["Condition"]
    assert ended == {"StringEquals": {"aws:ResourceTag/chipwise:place": config.place}}


def test_a_machine_uses_its_place_and_starts_no_other() -> None:
    made = policies.machine(AccountNames())
    assert not any(one.startswith(("ec2:", "iam:", "sqs:")) for one in actions(made))
    [kept] = [one for one in made["Statement"] if one["Sid"] == "Kept"]
    assert kept["Resource"] == "arn:aws:s3:::BUCKET/PREFIX/*"
    assert statement(made, "s3:ListBucket")["Condition"]["StringLike"] == {"s3:prefix": "PREFIX/*"}


@pytest.mark.parametrize("policy", [policies.controller, policies.machine])
def test_a_bucket_of_somebody_else_by_the_same_name_is_not_used(policy: Any) -> None:
    """Names of buckets are everybody's: one that was deleted may be made again by anybody, who then reads and changes code."""
    allowed = [one for one in policy(AccountNames())["Statement"] if one["Effect"] == "Allow" and "s3:" in str(one["Action"])]
    assert allowed
    assert all(one["Condition"]["StringEquals"] == {"aws:ResourceAccount": "ACCOUNT"} for one in allowed)


def test_no_right_is_a_wildcard_of_actions_and_few_are_of_resources() -> None:
    """What knows no narrower resource: lists, starting (which a condition on tags cannot limit), tags of what is being made,
    ending by tag, and signing in to the registry."""
    for policy, everywhere in ((policies.controller, {"Look", "Start", "Tag", "End"}), (policies.machine, {"Registry"})):
        made = policy(AccountNames())
        assert not [one for one in actions(made) if "*" in one]
        assert {one["Sid"] for one in made["Statement"] if one["Resource"] == "*"} == everywhere


def test_a_bucket_refuses_requests_without_tls() -> None:
    [refusal] = policies.bucket(AccountNames())["Statement"]
    assert (refusal["Effect"], refusal["Principal"], refusal["Resource"]) == (
        "Deny",
        "*",
        ["arn:aws:s3:::BUCKET", "arn:aws:s3:::BUCKET/*"],
    )
    assert policies.needs_tls(policies.bucket(AccountNames()))
    assert not policies.needs_tls({"Statement": {**refusal, "Effect": "Allow"}})
    assert not policies.needs_tls({})


def _may(policy: Policy, action: str, name: str) -> bool:
    """As IAM decides of an object: somebody allows it, and nobody denies it."""
    effects = {
        one["Effect"]
        for one in policy["Statement"]
        for resource in ([one["Resource"]] if isinstance(one["Resource"], str) else one["Resource"])
        if action in one["Action"] and fnmatchcase(f"arn:aws:s3:::BUCKET/{name}", resource)
    }
    return effects == {"Allow"}


def test_a_machine_writes_what_its_program_tells_and_no_order() -> None:
    """Its job has the rights of the machine: it must not send others away, nor put its own code in place of theirs."""
    written = set(re.findall(r"\| put \"?([a-z]+)", _SUPERVISE.read_text()))
    assert written == {"here", "begun", "progress", "ended", "notice", "broken", "health", "watched"}
    policy = policies.machine(AccountNames())
    for name in written | {"here-i-1", "ended-0-0"}:
        assert _may(policy, "s3:PutObject", f"PREFIX/live/j1/1/{name}")
    for name in ("logs/j1/1/rank-0.log", "checkpoints/j1/7/x", "results/x"):
        assert _may(policy, "s3:PutObject", f"PREFIX/{name}")
    assert _may(policy, "s3:DeleteObject", "PREFIX/checkpoints/j1/7/x")
    orders = ("order", "fleet", "refused", "leave", "end")
    for name in ("code/x.tar.gz", "controller", "over/j2/1", *(f"live/j2/1/{mark}" for mark in orders)):
        assert _may(policy, "s3:GetObject", f"PREFIX/{name}")
        assert not _may(policy, "s3:PutObject", f"PREFIX/{name}")
        assert not _may(policy, "s3:DeleteObject", f"PREFIX/{name}")
    for name in ("live/j2/1/ended-0-0", "logs/j2/1/rank-0.log"):
        assert not _may(policy, "s3:DeleteObject", f"PREFIX/{name}")


@pytest.mark.parametrize(
    ("region", "partition"), [("eu-west-1", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_other_parts_of_the_cloud_have_other_names(region: str, partition: str) -> None:
    assert partition_of(region) == partition
    assert f"arn:{partition}:s3:::BUCKET" in json.dumps(policies.machine(AccountNames(partition)))
