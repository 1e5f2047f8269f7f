"""What will not get better by itself: one sentence, what to do, and nothing left behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aws_stand_in import Aws
from chipwise.adapters.engines.ec2.engine import Ec2, connect
from chipwise.errors import ChipwiseError, NotAllowed, NotFound
from chipwise.runner.engine import Start
from ec2_account import NO_QUOTA, NOW, config, kept, machines, placed, templates
from faulty_aws import Fault, Faulty, no_machines

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (Fault("CreateFleet", 403, "UnauthorizedOperation"), NotAllowed, "ec2:CreateFleet"),
        (Fault("CreateLaunchTemplate", 403, "UnauthorizedOperation"), NotAllowed, "ec2:CreateLaunchTemplate"),
        (Fault("PUT /kept/team/live", 403, "AccessDenied"), NotAllowed, "s3:PutObject"),
        (Fault("CreateFleet", 401, "AuthFailure"), NotAllowed, "aws sts get-caller-identity"),
        (Fault("DescribeImages", 400, "InvalidAMIID.NotFound"), NotFound, "image"),
        (Fault("DescribeSubnets", 400, "InvalidSubnetID.NotFound"), NotFound, "subnet"),
        (Fault("CreateFleet", body=NO_QUOTA), NotAllowed, "'Running On-Demand G and VT instances' is 0 vCPUs"),
        (Fault("CreateFleet", body=no_machines("UnauthorizedOperation", "g6.xlarge", "spot")), NotAllowed, "RunInstances"),
        (Fault("CreateFleet", body=no_machines("InvalidAMIID.NotFound", "g6.xlarge", "spot")), NotFound, "image"),
    ],
)
def test_what_will_not_get_better_is_one_sentence_and_leaves_nothing(
    aws: Aws, between: Faulty, engine: Ec2, fault: Fault, kind: type[ChipwiseError], words: str
) -> None:
    engine.regions.first._images.clear()
    between.faults.append(replace(fault))
    with pytest.raises(kind, match=words):
        engine.do(Start(placed()))
    between.faults.clear()
    assert (machines(aws), templates(aws), kept(aws, "live")) == ([], [], [])


def test_a_missing_bucket_is_named(aws: Aws, between: Faulty) -> None:
    with pytest.raises(NotFound, match="bucket"):
        connect(replace(config(aws, between), keep="s3://no-such-bucket/x")).look([], NOW)


def test_without_credentials_it_says_what_to_check(aws: Aws, between: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    with pytest.raises(NotAllowed, match=r"credentials were found.*sts"):
        connect(config(aws, between)).look([], NOW)


def test_an_unknown_profile_is_named(aws: Aws, between: Faulty) -> None:
    with pytest.raises(NotAllowed, match=r"nobody.*~/.aws/config"):
        connect(replace(config(aws, between), profile="nobody")).look([], NOW)


@pytest.mark.parametrize("missing", ["keys", "profile"])
def test_a_start_without_rights_leaves_nothing(
    aws: Aws, between: Faulty, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    told = config(aws, between)
    if missing == "keys":
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    else:
        told = replace(told, profile="nobody")
    with pytest.raises(NotAllowed) as found:
        connect(told).do(Start(placed()))
    assert len(str(found.value).splitlines()) == 1
    assert found.value.remedy
    assert (machines(aws), templates(aws), kept(aws)) == ([], [], [])
