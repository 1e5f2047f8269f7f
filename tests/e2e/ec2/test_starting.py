"""What the ec2 engine asks EC2 for when a job starts, what it falls back to, and that it asks once."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace

import pytest

from aws_stand_in import Aws
from chipwise.adapters.engines.ec2.engine import Ec2, connect
from chipwise.errors import TryLater
from chipwise.runner.engine import Clear, End, Start, State
from chipwise.runner.job import Needs
from ec2_account import NO_MACHINES, NO_QUOTA, NO_SPOT, NOW, SPOT_A, SPOT_B, STAYS, content, machines, placed, see, templates
from engines.ec2 import REGION
from faulty_aws import Fault, Faulty, no_machines

pytestmark = pytest.mark.e2e


def test_the_place_of_the_attempt_comes_first_and_others_of_its_purchase_behind(aws: Aws, between: Faulty, engine: Ec2) -> None:
    engine.do(Start(placed(SPOT_B)))
    [form] = [form for action, form in zip(between.asked, between.forms, strict=True) if action == "CreateFleet"]
    begin = "LaunchTemplateConfigs.1.Overrides."
    assert [form[f"{begin}{at}.InstanceType"] for at in (1, 2)] == ["g6.2xlarge", "g6.xlarge"]
    assert f"{begin}3.InstanceType" not in form  # the on-demand place is another purchase
    assert (form["Type"], form["TargetCapacitySpecification.DefaultTargetCapacityType"]) == ("instant", "spot")
    assert len(form["ClientToken"]) <= 64
    [one] = machines(aws)
    assert (one["InstanceType"], one["Placement"]["AvailabilityZone"]) == ("g6.2xlarge", "eu-west-1b")
    sight = see(engine, placed(SPOT_B))
    assert (sight.state, sight.place) == (State.PENDING, SPOT_B)
    assert sight.held_since is not None


@pytest.mark.parametrize(
    ("machine", "gpus", "wanted"),
    [
        ("g6.xlarge", 1, "/aws/service/deeplearning/ami/x86_64/"),
        ("g5g.xlarge", 1, "/aws/service/deeplearning/ami/arm64/"),
        ("trn1.2xlarge", 1, "/aws/service/neuron/dlami/base/"),
        ("inf2.xlarge", 1, "/aws/service/neuron/dlami/base/"),
        ("c8g.large", 0, "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64"),
    ],
)
def test_the_image_is_for_the_architecture_of_the_machine(aws: Aws, engine: Ec2, machine: str, gpus: int, wanted: str) -> None:
    where = replace(STAYS, machine=machine)
    job = placed(where, places=(where,))
    job = replace(job, spec=replace(job.spec, needs=Needs(gpus=gpus)))
    plain = connect(replace(engine.config, image=""))
    plain.check(job)
    [name] = [form["Name"] for action, form in aws.asked if action == "GetParameter"]
    assert name.startswith(wanted)
    named = connect(replace(engine.config, image="", image_parameter="/aws/service/own"))
    named.check(job)
    assert [form["Name"] for action, form in aws.asked if action == "GetParameter"][1:] == ["/aws/service/own"]


def test_a_job_of_another_place_with_the_same_id_has_machines_and_a_template_of_its_own(aws: Aws, engine: Ec2) -> None:
    """Else it would start what the other's template says, with the other's rights."""
    other = connect(replace(engine.config, keep="s3://kept/others", instance_profile="others"))
    engine.do(Start(placed()))
    other.do(Start(placed()))
    versions = [
        aws.client("ec2", REGION).describe_launch_template_versions(LaunchTemplateName=name)["LaunchTemplateVersions"][0]
        for name in templates(aws)
    ]
    texts = [gzip.decompress(base64.b64decode(one["LaunchTemplateData"]["UserData"])).decode() for one in versions]
    assert sorted(re.findall(r"^KEEP=(.*)", text, re.MULTILINE)[0] for text in texts) == ["s3://kept/others", "s3://kept/team"]
    other.do(End(placed()))
    assert len(machines(aws)) == 1
    assert len(templates(aws)) == 1


def test_machines_are_closed_encrypted_tagged_and_end_when_they_shut_down(aws: Aws, engine: Ec2) -> None:
    engine.do(Start(placed(labels={"cost center": "42"}, budget_usd=3.0)))
    [made] = aws.client("ec2", REGION).describe_launch_template_versions(LaunchTemplateName=templates(aws)[0])[
        "LaunchTemplateVersions"
    ]
    data = made["LaunchTemplateData"]
    assert data["MetadataOptions"]["HttpTokens"] == "required"
    disk = data["BlockDeviceMappings"][0]["Ebs"]
    assert (disk["Encrypted"], disk["VolumeType"], disk["DeleteOnTermination"]) == (True, "gp3", True)
    assert data["NetworkInterfaces"][0]["AssociatePublicIpAddress"] is False
    assert data["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert data["IamInstanceProfile"] == {"Name": "worker"}
    assert "KeyName" not in data
    tags = {one["Key"]: one["Value"] for one in machines(aws)[0]["Tags"]}
    wanted = {"chipwise:job": "j1", "chipwise:attempt": "1", "chipwise:place": engine.place, "owner": "mia"}
    assert tags.items() >= (wanted | {"team": "vision", "project": "cats", "cost-center": "42"}).items()
    assert tags["chipwise:expiry"] > "2027-01-15"


def test_a_start_is_one_launch_however_often_it_is_ordered(aws: Aws, between: Faulty, engine: Ec2) -> None:
    for _ in range(3):
        engine.do(Start(placed()))
    connect(engine.config).do(Start(placed()))
    assert (between.count("CreateFleet"), len(machines(aws))) == (1, 1)


@pytest.mark.parametrize(
    "lost", ["CreateFleet", "CreateLaunchTemplate", "PUT /kept/team/live/j1/1/fleet", "PUT /kept/team/live/j1/1/order"]
)
def test_an_answer_that_never_came_starts_nothing_twice(aws: Aws, between: Faulty, engine: Ec2, lost: str) -> None:
    between.faults.append(Fault(lost, heard=True, times=1))
    with pytest.raises(TryLater):
        engine.do(Start(placed()))
    engine.do(Start(placed()))
    assert see(engine, placed()).state is State.PENDING
    assert len(machines(aws)) == 1


def test_without_spot_machines_a_job_without_deadline_gets_one_that_stays(aws: Aws, between: Faulty, engine: Ec2) -> None:
    between.faults.append(replace(NO_SPOT))
    engine.do(Start(placed()))
    [one] = machines(aws)
    assert one.get("InstanceLifecycle") is None
    assert see(engine, placed()).place == STAYS


def test_without_spot_machines_and_without_a_quota_for_others_it_waits(between: Faulty, engine: Ec2) -> None:
    between.faults += [replace(NO_SPOT), Fault("CreateFleet", body=NO_QUOTA)]
    with pytest.raises(TryLater, match=r"InsufficientInstanceCapacity.*0 vCPUs"):
        engine.do(Start(placed()))
    assert see(engine, placed()).state is State.LOST


def test_with_a_deadline_the_policy_decides_and_the_attempt_is_over(aws: Aws, between: Faulty, engine: Ec2) -> None:
    between.faults.append(replace(NO_SPOT))
    job = placed(deadline=NOW + 1e6)
    with pytest.raises(TryLater, match=r"InsufficientInstanceCapacity for g6.xlarge \(spot\) in eu-west-1a"):
        engine.do(Start(job))
    sight = see(engine, job)
    assert (sight.state, sight.since, sight.held_since) == (State.LOST, None, None)
    assert "InsufficientInstanceCapacity" in sight.reason
    engine.do(Start(job))  # it is over: the next attempt has another number
    assert (machines(aws), templates(aws), between.count("CreateFleet")) == ([], [], 1)


def test_machines_that_work_together_come_all_or_none(aws: Aws, between: Faulty, engine: Ec2) -> None:
    engine.do(Start(placed(id="whole", machines=2)))
    form = between.forms[between.asked.index("CreateFleet")]
    assert (form["SpotOptions.MinTargetCapacity"], form["SpotOptions.SingleAvailabilityZone"]) == ("2", "true")
    assert len(machines(aws)) == 2
    one = machines(aws)[0]["InstanceId"]
    half = f"<fleetInstanceSet><item><instanceIds><item>{one}</item></instanceIds></item></fleetInstanceSet>"
    body = no_machines("InsufficientInstanceCapacity", "g6.xlarge", "spot").replace("<fleetInstanceSet/>", half)
    between.faults.append(Fault("CreateFleet", body=body))
    with pytest.raises(TryLater):
        engine.do(Start(placed(id="half", machines=2)))
    assert [each["InstanceId"] for each in machines(aws, "terminated")] == [one]


def test_a_place_without_a_zone_may_be_in_any_of_them_and_one_without_a_subnet_in_none(
    aws: Aws, between: Faulty, engine: Ec2
) -> None:
    anywhere = replace(SPOT_A, zone="")
    engine.do(Start(placed(anywhere, places=(anywhere,))))
    form = between.forms[between.asked.index("CreateFleet")]
    found = aws.client("ec2", REGION).describe_subnets(Filters=[{"Name": "default-for-az", "Values": ["true"]}])["Subnets"]
    named = {value for key, value in form.items() if key.startswith("LaunchTemplateConfigs.1.Overrides.") and "Subnet" in key}
    assert named == {one["SubnetId"] for one in found}
    nowhere = replace(SPOT_A, zone="eu-west-1z")
    with pytest.raises(TryLater, match="no subnet of the engine is in eu-west-1z"):
        engine.do(Start(placed(nowhere, "j2", places=(nowhere,))))
    assert see(engine, placed(nowhere, "j2", places=(nowhere,))).state is State.LOST


def test_a_fleet_whose_answer_was_lost_and_that_ec2_does_not_show_yet_is_asked_for_by_the_same_token(
    aws: Aws, between: Faulty, engine: Ec2
) -> None:
    between.faults += [Fault("CreateFleet", heard=True, times=1), Fault("DescribeInstances", body=NO_MACHINES)]
    with pytest.raises(TryLater):
        engine.do(Start(placed()))
    connect(engine.config).do(Start(placed()))  # another controller, a while later
    asked = [form for action, form in zip(between.asked, between.forms, strict=True) if action == "CreateFleet"]
    assert (len(asked), asked[0] == asked[1]) == (2, True)
    between.faults.clear()
    [one] = machines(aws)
    assert json.loads(content(aws, "live/j1/1/fleet"))["ids"] == [one["InstanceId"]]


def test_where_settings_changed_in_between_the_attempt_is_over_and_what_it_got_is_ended(
    aws: Aws, between: Faulty, engine: Ec2
) -> None:
    """EC2 refuses the token with other settings. What the first request gave carries the tags of an attempt that is over."""
    between.faults += [Fault("CreateFleet", heard=True, times=1), Fault("DescribeInstances", body=NO_MACHINES)]
    with pytest.raises(TryLater):
        engine.do(Start(placed()))
    [other, *_] = [id for zone, id in engine.regions.first.subnets() if zone == "eu-west-1a"]
    changed = connect(replace(engine.config, subnets=(other,)))
    with pytest.raises(TryLater, match="settings changed"):
        changed.do(Start(placed()))
    between.faults.clear()
    sight = see(changed, placed())
    assert (sight.state, len(machines(aws))) == (State.PENDING, 1)  # it is there now, and counts
    changed.do(Clear(sight.handle))
    assert machines(aws) == []


def test_the_machine_is_told_what_the_money_is_enough_for(aws: Aws, engine: Ec2) -> None:
    engine.do(Start(placed(budget_usd=3.0)))  # at the price of the one that stays, which may come instead
    [made] = aws.client("ec2", REGION).describe_launch_template_versions(LaunchTemplateName=templates(aws)[0])[
        "LaunchTemplateVersions"
    ]
    assert "\nHARD_MINUTES=180\n" in gzip.decompress(base64.b64decode(made["LaunchTemplateData"]["UserData"])).decode()
