"""The policies that are written down are those that the code makes; `tests/e2e/test_engine_ec2_rights.py` runs under them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chipwise.adapters.engines.ec2 import policies
from chipwise.adapters.engines.ec2.policies import AccountNames, Policy, partition_of

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
        assert list(statement(made, action)["Condition"]["StringLike"]) == ["aws:ResourceTag/chipwise:place"]
    assert "ec2:CreateAction" in statement(made, "ec2:CreateTags")["Condition"]["StringEquals"]
    for action in ("ec2:CreateTags", "ec2:CreateLaunchTemplate"):
        assert statement(made, action)["Condition"]["StringLike"] == {"aws:RequestTag/chipwise:place": "ec2:REGION:BUCKET*"}
    assert statement(made, "iam:PassRole")["Resource"] == "arn:aws:iam::ACCOUNT:role/MACHINE_ROLE"


def test_a_machine_uses_its_place_and_starts_no_other() -> None:
    made = policies.machine(AccountNames())
    assert not any(one.startswith(("ec2:", "iam:", "sqs:")) for one in actions(made))
    assert statement(made, "s3:PutObject")["Resource"] == "arn:aws:s3:::BUCKET/PREFIX/*"
    assert statement(made, "s3:ListBucket")["Condition"] == {"StringLike": {"s3:prefix": "PREFIX/*"}}


@pytest.mark.parametrize(
    ("region", "partition"), [("eu-west-1", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_other_parts_of_the_cloud_have_other_names(region: str, partition: str) -> None:
    assert partition_of(region) == partition
    assert f"arn:{partition}:s3:::BUCKET" in json.dumps(policies.machine(AccountNames(partition)))
