"""What an account needs is made once, found again, and enough to start a job and to hear of its end; moto plays the account."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from aws_stand_in import AMI, Aws
from chipwise.adapters.engines.ec2 import policies
from chipwise.adapters.engines.ec2.engine import Config, connect
from chipwise.adapters.engines.ec2.notices import REBALANCE, WARNING
from chipwise.adapters.engines.ec2.setup import Prepared, State, name_of, prepare
from chipwise.errors import NotAllowed, NotFound
from chipwise.runner.engine import Start
from ec2_account import machines, placed, templates
from engines.ec2 import REGION
from faulty_aws import Fault, Faulty

pytestmark = pytest.mark.e2e

INNER = ("endpoint_url", "clock", "tries", "timeout_s", "home", "other_regions")  # of tests and of wiring
KINDS = [
    "bucket",
    "service role",
    "service role",
    "role",
    "policy of the role",
    "instance profile",
    "security group",
    "queue",
    "rule",
]


@pytest.fixture
def asked(aws: Aws, between: Faulty) -> Config:
    return Config(REGION, "s3://fresh-bucket/chipwise", endpoint_url=between.url, image=AMI, tries=1, timeout_s=20.0)


def states(done: Prepared) -> set[State]:
    return {one.state for one in done.parts}


def prepared(asked: Config, aws: Aws) -> Prepared:
    """Without the bucket's policy, of whose refusal moto does not read the condition: it would take no request."""
    done = prepare(asked)
    aws.client("s3", REGION).delete_bucket_policy(Bucket=asked.bucket)
    return done


def test_asking_first_says_what_is_missing_and_makes_nothing(asked: Config, between: Faulty) -> None:
    found = prepare(asked, dry_run=True)
    assert ([one.kind for one in found.parts], states(found), found.complete) == (KINDS, {State.MISSING}, False)
    assert found.config == replace(asked, public_address=True)
    changes = ("Create", "Put", "PUT", "POST", "Add", "Authorize", "Delete")
    assert [one for one in between.asked if one.startswith(changes)] == []


def test_what_was_made_is_found_again_and_made_once(asked: Config, aws: Aws, between: Faulty) -> None:
    first = prepare(asked)
    assert (states(first), first.complete) == ({State.CREATED}, True)
    again = prepare(asked)
    assert (states(again), again.config, again.policy) == ({State.EXISTING}, first.config, first.policy)
    assert states(prepare(first.config)) == {State.EXISTING}  # with what was made as settings
    assert len(aws.client("sqs", REGION).list_queues(QueueNamePrefix="chipwise-")["QueueUrls"]) == 1


def test_a_new_bucket_is_closed_to_the_public_and_refuses_requests_without_tls(asked: Config, aws: Aws) -> None:
    done, s3 = prepare(asked), aws.client("s3", REGION)
    closed = s3.get_public_access_block(Bucket="fresh-bucket")["PublicAccessBlockConfiguration"]
    assert set(closed.values()) == {True}
    written = json.loads(s3.get_bucket_policy(Bucket="fresh-bucket")["Policy"])
    assert written == policies.bucket(policies.AccountNames(bucket="fresh-bucket"))
    assert (done.warnings, prepare(done.config).warnings) == ((), ())


def test_a_job_starts_with_what_was_made(asked: Config, aws: Aws) -> None:
    done = prepared(asked, aws)
    connect(done.config).do(Start(placed()))
    assert len(machines(aws)) == 1
    [made] = aws.client("ec2", REGION).describe_launch_template_versions(LaunchTemplateName=templates(aws)[0])[
        "LaunchTemplateVersions"
    ]
    [group] = aws.client("ec2", REGION).describe_security_groups(GroupIds=list(done.config.security_groups))["SecurityGroups"]
    assert made["LaunchTemplateData"]["NetworkInterfaces"][0]["Groups"] == [group["GroupId"]]
    assert made["LaunchTemplateData"]["IamInstanceProfile"] == {"Name": done.config.instance_profile}
    [comes_in] = group["IpPermissions"]
    assert (comes_in["IpRanges"], [each["GroupId"] for each in comes_in["UserIdGroupPairs"]]) == ([], [group["GroupId"]])
    iam = aws.client("iam", REGION)
    [role] = iam.get_instance_profile(InstanceProfileName=done.config.instance_profile)["InstanceProfile"]["Roles"]
    allowed = iam.get_role_policy(RoleName=role["RoleName"], PolicyName=role["RoleName"])["PolicyDocument"]
    names = policies.AccountNames(
        "aws", "123456789012", REGION, "fresh-bucket", "chipwise/", role["RoleName"], role["RoleName"]
    )
    assert (allowed, done.policy) == (policies.machine(names), policies.controller(names))


def test_a_bucket_that_was_there_is_left_as_it_is_and_its_gaps_are_said(asked: Config, aws: Aws) -> None:
    done = prepare(replace(asked, keep="s3://kept/team"))
    assert [("not closed to the public" in one, "without TLS" in one) for one in done.warnings] == [
        (True, False),
        (False, True),
    ]
    with pytest.raises(Exception, match="NoSuchBucketPolicy"):
        aws.client("s3", REGION).get_bucket_policy(Bucket="kept")


def test_a_bucket_of_another_account_is_refused(asked: Config, between: Faulty) -> None:
    """As S3 answers who names the owner that a bucket should have; moto takes any."""
    between.faults.append(Fault("HEAD /fresh-bucket", 403, holds="x-amz-expected-bucket-owner"))
    with pytest.raises(NotAllowed, match=r"fresh-bucket exists, and belongs to another account.*--keep"):
        prepare(asked)


@pytest.mark.parametrize(("kind", "word"), [(WARNING, "is reclaiming the spot machine"), (REBALANCE, "rebalance")])
def test_an_event_of_ec2_comes_by_the_rule_and_the_queue_to_the_job(asked: Config, aws: Aws, kind: str, word: str) -> None:
    done = prepared(asked, aws)
    engine, job = connect(done.config), placed()
    engine.do(Start(job))
    [one] = machines(aws)
    detail = json.dumps({"instance-id": one["InstanceId"], "instance-action": "terminate"})
    other = {"Source": "aws.ec2", "DetailType": "EC2 Instance State-change Notification", "Detail": detail}
    aws.client("events", REGION).put_events(Entries=[other, {**other, "DetailType": kind}])
    now = time.time()
    messages = aws.client("sqs", REGION).get_queue_attributes(QueueUrl=done.config.queue_url, AttributeNames=["All"])
    assert messages["Attributes"]["ApproximateNumberOfMessages"] == "1"  # the rule lets nothing else through
    sight = engine.look([job], now).attempts["j1", 1]
    assert word in sight.reason
    assert sight.leave_by is not None
    assert now + 100 < sight.leave_by <= now + 121


def _rule_off(aws: Aws, name: str) -> None:
    aws.client("events", REGION).disable_rule(Name=name)


def _policy_changed(aws: Aws, name: str) -> None:
    aws.client("iam", REGION).put_role_policy(
        RoleName=name, PolicyName=name, PolicyDocument=json.dumps(policies.machine(policies.AccountNames()))
    )


def _profile_emptied(aws: Aws, name: str) -> None:
    aws.client("iam", REGION).remove_role_from_instance_profile(InstanceProfileName=name, RoleName=name)


def _group_closed(aws: Aws, name: str) -> None:
    ec2: Any = aws.client("ec2", REGION)
    [group] = ec2.describe_security_groups(Filters=[{"Name": "group-name", "Values": [name]}])["SecurityGroups"]
    each = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group["GroupId"]}]}
    ec2.revoke_security_group_ingress(GroupId=group["GroupId"], IpPermissions=[each])


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (_rule_off, "rule"),
        (_policy_changed, "policy of the role"),
        (_profile_emptied, "instance profile"),
        (_group_closed, "security group"),
    ],
)
def test_what_is_half_there_is_mended(asked: Config, aws: Aws, broken: Callable[[Aws, str], None], kind: str) -> None:
    prepare(asked)
    broken(aws, name_of(asked))
    assert [one.kind for one in prepare(asked, dry_run=True).parts if one.state is State.MISSING] == [kind]
    assert [one.kind for one in prepare(asked).parts if one.state is State.CREATED] == [kind]
    assert states(prepare(asked)) == {State.EXISTING}


def test_who_may_not_make_it_hears_what_is_missing(asked: Config, between: Faulty) -> None:
    between.faults.append(Fault("CreateRole", 403, "AccessDenied"))
    with pytest.raises(NotAllowed, match="iam:CreateRole"):
        prepare(asked)
    between.faults.clear()
    assert [one.kind for one in prepare(asked).parts if one.state is State.EXISTING] == [
        "bucket",
        "service role",
        "service role",
    ]


def test_without_a_network_it_says_what_to_set(asked: Config, aws: Aws, between: Faulty) -> None:
    space = 'xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"'
    between.faults.append(
        Fault("DescribeSubnets", body=f"<DescribeSubnetsResponse {space}><subnetSet/></DescribeSubnetsResponse>")
    )
    with pytest.raises(NotFound, match=r"no default network.*subnets"):
        prepare(asked)
    assert prepare(replace(asked, security_groups=("sg-1",))).config.security_groups == ("sg-1",)


@pytest.mark.parametrize(("way_out", "public"), [("none", True), ("nat", False), ("own subnets", False), ("unknown", True)])
def test_machines_of_the_default_network_get_an_address_unless_there_is_another_way_out(
    asked: Config, aws: Aws, between: Faulty, way_out: str, public: bool
) -> None:
    ec2 = aws.client("ec2", REGION)
    [one, *_] = ec2.describe_subnets(Filters=[{"Name": "default-for-az", "Values": ["true"]}])["Subnets"]
    if way_out == "nat":
        address = ec2.allocate_address(Domain="vpc")["AllocationId"]
        made = ec2.create_nat_gateway(SubnetId=one["SubnetId"], AllocationId=address)["NatGateway"]["NatGatewayId"]
        table = ec2.create_route_table(VpcId=one["VpcId"])["RouteTable"]["RouteTableId"]
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=made)
    elif way_out == "own subnets":
        asked = replace(asked, subnets=(one["SubnetId"],))
    elif way_out == "unknown":
        between.faults.append(Fault("DescribeRouteTables", 403, "UnauthorizedOperation"))
    assert prepare(asked, dry_run=True).config.public_address is public


def test_the_tutorial_makes_what_it_says(aws: Aws, tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "tutorial" / "run-on-ec2.md").read_text()
    [script] = [one for one in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "chipwise prepare" in one]
    environment = aws.environment() | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "AWS_ENDPOINT_URL": aws.moto,
        "HOME": str(tmp_path),
    }

    def asked(words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["sh", "-c", words], capture_output=True, text=True, timeout=120, env=environment, check=False)

    missing = asked(f"{script.strip()} --dry-run")
    assert (missing.returncode, missing.stdout.count("missing")) == (1, len(KINDS))
    for state in ("made", "there"):
        done = asked(script)
        assert done.returncode == 0, done.stderr
        table, _, said = done.stdout.partition("engines.yaml of your config directory should say:")
        assert len(re.findall(rf"^{state} ", table, re.MULTILINE)) == len(KINDS)
    fields = yaml.safe_load(said)["ec2"]
    assert fields.keys() == {"region", "keep", "queue_url", "instance_profile", "security_groups", "public_address"}
    assert "# public_address: the default network has no NAT gateway" in said
    assert fields["public_address"] is True
    connect(Config(**{**fields, "security_groups": tuple(fields["security_groups"])}))
    (tmp_path / ".config" / "chipwise").mkdir(parents=True)
    (tmp_path / ".config" / "chipwise" / "engines.yaml").write_text(said)
    shown = asked("chipwise prepare --policy")
    assert "ec2:CreateFleet" in json.dumps(json.loads(shown.stdout)["Statement"])
    assert all(f"`{one.name}`" in page for one in dataclasses.fields(Config) if one.name not in INNER)
