"""An engine with two regions: a job goes where its attempt's place is, and what one region lacks is looked for in the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aws_stand_in import Aws
from chipwise.adapters.engines.ec2.config import RegionConfig
from chipwise.adapters.engines.ec2.engine import Ec2, connect
from chipwise.adapters.engines.ec2.regions import RESTS_S
from chipwise.adapters.engines.ec2.setup import prepare
from chipwise.errors import InvalidSettings, NotAllowed, TryLater
from chipwise.runner.engine import Clear, End, Start, State
from chipwise.runner.events import Ended, Placed, after
from chipwise.runner.job import Job, MachinePlace, Move, Outcome
from ec2_account import NO_QUOTA, NO_SPOT, NOW, SPOT_A, STAYS, content, kept, machines, placed, see
from ec2_machines import unpacked
from engines.ec2 import OTHER, REGION, warning
from faulty_aws import Fault, Faulty

pytestmark = pytest.mark.e2e
NORTH = replace(SPOT_A, region=OTHER, zone="", usd_per_hour=0.25)
STAYS_NORTH = replace(STAYS, region=OTHER, zone="", usd_per_hour=0.9)
PLACES = (SPOT_A, NORTH, STAYS, STAYS_NORTH)
HERE, THERE = f"/{REGION}/ec2/", f"/{OTHER}/ec2/"  # as a request's signature names them


@pytest.fixture
def both(engine: Ec2, clients_north: dict[str, Any]) -> Ec2:
    return _both(engine, clients_north)


def _both(engine: Ec2, clients_north: dict[str, Any], **there: Any) -> Ec2:
    made = connect(replace(engine.config, other_regions=(RegionConfig(OTHER, image=engine.config.image, **there),)))
    made.regions.first._clients = engine.regions.first._clients
    made.regions.clouds[OTHER]._clients = clients_north
    return made


def job(where: MachinePlace = SPOT_A, **asked: Any) -> Job:
    return placed(where, **{"places": PLACES, **asked})


def again(before: Job, where: MachinePlace, at: float = NOW) -> Job:
    """After an attempt that found no machine."""
    number = len(before.attempts)
    return after(after(before, Ended(number, Outcome.LOST), at), Placed(number + 1, where), at)


def north(aws: Aws, *states: str) -> list[dict[str, Any]]:
    found = aws.client("ec2", OTHER).describe_instances()["Reservations"]
    wanted = states or ("pending", "running")
    return [one for group in found for one in group["Instances"] if one["State"]["Name"] in wanted]


def test_an_attempt_starts_in_the_region_of_its_place_and_is_seen_and_ended_there(aws: Aws, both: Ec2) -> None:
    both.do(Start(job(NORTH)))
    [one] = north(aws)
    assert {tag["Key"]: tag["Value"] for tag in one["Tags"]}["chipwise:place"] == both.place
    assert machines(aws) == []
    found = see(both, job(NORTH)).place
    assert found is not None
    assert (found.region, found.usd_per_hour) == (OTHER, 0.25)
    assert f"AWS_DEFAULT_REGION={REGION}\n" in user_data_of(aws, one)  # S3 and secrets are in the first
    assert both.look([], NOW).strays == ("j1/1",)
    both.do(Clear("j1/1"))
    assert (north(aws), aws.client("ec2", OTHER).describe_launch_templates()["LaunchTemplates"]) == ([], [])


def user_data_of(aws: Aws, machine: dict[str, Any]) -> str:
    told = aws.client("ec2", OTHER).describe_instance_attribute(InstanceId=machine["InstanceId"], Attribute="userData")
    return unpacked(told["UserData"]["Value"].encode())


def test_spot_elsewhere_comes_before_a_machine_that_stays_here(aws: Aws, between: Faulty, both: Ec2) -> None:
    between.faults.append(replace(NO_SPOT))
    with pytest.raises(TryLater, match="InsufficientInstanceCapacity"):
        both.do(Start(job()))
    assert (machines(aws), see(both, job()).state) == ([], State.LOST)
    second = again(job(), NORTH)
    both.do(Start(second))  # both regions were asked for spot machines now
    [one] = north(aws)
    assert one.get("InstanceLifecycle") is None
    assert see(both, second).place == replace(STAYS_NORTH, zone=one["Placement"]["AvailabilityZone"])


def test_a_job_that_may_not_move_gets_one_that_stays_at_once(aws: Aws, between: Faulty, both: Ec2) -> None:
    between.faults.append(replace(NO_SPOT))
    both.do(Start(job(recover=(Move.SAME, Move.ZONE))))
    assert len(machines(aws)) == 1


def test_what_one_region_does_not_allow_is_looked_for_in_the_other(aws: Aws, between: Faulty, both: Ec2) -> None:
    between.faults.append(Fault("CreateFleet", body=NO_QUOTA))
    with pytest.raises(TryLater, match=f"{REGION}: The quota .* is 0 vCPUs"):
        both.do(Start(job(STAYS)))
    assert "0 vCPUs" in see(both, job(STAYS)).reason
    with pytest.raises(NotAllowed, match="0 vCPUs"):  # nowhere else is left
        both.do(Start(again(job(STAYS), STAYS_NORTH)))
    assert (machines(aws), north(aws)) == ([], [])


def test_a_region_that_is_not_the_engines_is_refused_with_a_reason(both: Ec2) -> None:
    far = replace(SPOT_A, region="us-east-1")
    with pytest.raises(TryLater, match="us-east-1 is not a region of the engine"):
        both.do(Start(job(far)))
    assert see(both, job(far)).state is State.LOST


def test_a_region_that_does_not_answer_hides_only_its_own(aws: Aws, between: Faulty, both: Ec2) -> None:
    here, there, waits = job(id="here"), job(NORTH, id="there"), job(NORTH, id="waits")
    for one in (here, there, waits):
        both.do(Start(one))
    both.store.put(("there", 1), "begun-0", value=int(NOW))
    between.faults.append(Fault("DescribeInstances", 503, "Unavailable", holds=THERE))
    seen = both.look([here, there, waits], NOW).attempts
    assert seen["here", 1].state is State.PENDING
    assert (seen["there", 1].state, seen["there", 1].leave_by) == (State.RUNNING, None)  # by what it wrote itself
    assert (seen["waits", 1].state, OTHER in seen["waits", 1].reason) == (State.PENDING, True)
    assert both.look([here], NOW).strays == ()  # what cannot be seen is not taken for left over
    asked = between.count("DescribeInstances")
    both.look([here], NOW + RESTS_S / 2)
    assert between.count("DescribeInstances") == asked + 1  # it is left alone for a while
    both.store.put(("there", 1), "ended-0-0", at=int(NOW), reason="")
    assert both.look([here, there], NOW).attempts["there", 1].state is State.EXITED
    with pytest.raises(TryLater):  # it may run until the region says that it does not
        both.do(End(waits))
    assert both.look([waits], NOW).attempts["waits", 1].state is State.PENDING
    between.faults.clear()
    both.do(End(waits))
    assert both.look([waits], NOW + RESTS_S).attempts["waits", 1].state is State.LOST
    assert both.look([here], NOW + 2 * RESTS_S).strays == ("there/1", "waits/1")
    assert len(north(aws)) == 1


def test_a_region_that_is_not_enabled_for_the_account_hides_no_other(aws: Aws, between: Faulty, both: Ec2) -> None:
    between.faults.append(Fault("", 401, "AuthFailure", holds=THERE))
    both.do(Start(job()))
    assert see(both, job()).state is State.PENDING
    with pytest.raises(TryLater, match=f"{OTHER} does not answer: AWS refuses the credentials"):
        both.do(Start(job(NORTH, id="j2")))
    assert both.look([job(NORTH, id="j2")], NOW).attempts["j2", 1].state is State.LOST


def test_where_no_region_answers_nothing_is_seen(between: Faulty, both: Ec2) -> None:
    between.faults.append(Fault("DescribeInstances", 503, "Unavailable"))
    for _ in range(2):
        with pytest.raises(TryLater):
            both.look([job()], NOW)


def test_a_start_where_nobody_answers_goes_elsewhere_unless_machines_may_have_come(
    aws: Aws, between: Faulty, both: Ec2
) -> None:
    between.faults.append(Fault("CreateLaunchTemplate", 503, "Unavailable", holds=HERE))
    with pytest.raises(TryLater, match=f"{REGION} does not answer"):
        both.do(Start(job()))
    assert see(both, job()).state is State.LOST
    between.faults[:] = [Fault("CreateFleet", heard=True, holds=HERE)]
    with pytest.raises(TryLater):
        both.do(Start(job(id="j2")))
    assert "refused" not in str(kept(aws, "live/j2/1"))
    between.faults.clear()
    both.do(Start(job(id="j2")))
    assert len(machines(aws)) == 1


def test_a_region_that_is_left_alone_is_not_asked_for_a_first_machine(aws: Aws, between: Faulty, both: Ec2) -> None:
    between.faults.append(Fault("", 503, "Unavailable", holds=THERE))
    both.look([], NOW)
    asked = len(between.asked)
    with pytest.raises(TryLater, match=f"{OTHER} does not answer"):
        both.do(Start(job(NORTH)))
    assert [one for one in between.asked[asked:] if not one.startswith(("GET /kept", "PUT /kept"))] == [
        "DescribeLaunchTemplates"
    ]
    assert OTHER in content(aws, "live/j1/1/refused")


def test_each_region_has_a_queue_of_its_own(aws: Aws, engine: Ec2, clients_north: dict[str, Any]) -> None:
    sqs = aws.client("sqs", OTHER)
    url = sqs.create_queue(QueueName="events")["QueueUrl"]
    both = _both(engine, clients_north, queue_url=url)
    both.do(Start(job(NORTH)))
    [one] = north(aws)
    sqs.send_message(QueueUrl=url, MessageBody=warning(one["InstanceId"]))
    assert see(both, job(NORTH)).reason == "AWS is reclaiming the spot machine"


def test_what_is_left_over_is_found_in_all_regions(aws: Aws, both: Ec2) -> None:
    both.do(Start(job(id="here")))
    both.do(Start(job(NORTH, id="there")))
    found = both.reap(list, dry_run=True)
    assert [(one.kind, one.job, one.region) for one in found] == [
        ("machine", "here", REGION),
        ("launch template", "here", REGION),
        ("machine", "there", OTHER),
        ("launch template", "there", OTHER),
    ]
    assert [one.job for one in both.reap(lambda: [("here", 1)])] == ["there", "there"]
    assert (len(machines(aws)), north(aws)) == (1, [])


def test_an_account_is_prepared_in_each_of_its_regions(aws: Aws, between: Faulty) -> None:
    from chipwise.adapters.engines.ec2.engine import Config

    asked = Config(
        REGION,
        "s3://fresh-bucket/chipwise",
        endpoint_url=between.url,
        tries=1,
        timeout_s=20.0,
        other_regions=(RegionConfig(OTHER),),
    )
    done = prepare(asked)
    own = [(one.kind, one.region) for one in done.parts if one.region]
    assert own == [("security group", OTHER), ("queue", OTHER), ("rule", OTHER)]
    [there] = done.config.other_regions
    assert there.public_address is True
    assert aws.client("sqs", OTHER).get_queue_url(QueueName=there.queue_url.rpartition("/")[2])["QueueUrl"] == there.queue_url
    [group] = aws.client("ec2", OTHER).describe_security_groups(GroupIds=list(there.security_groups))["SecurityGroups"]
    assert group["GroupName"].startswith("chipwise-")
    assert {str(one.state) for one in prepare(done.config).parts} == {"there"}
    said = {one["Sid"]: one["Resource"] for one in done.policy["Statement"]}
    assert [one.split(":")[3] for one in said["Template"]] == [REGION, OTHER]
    assert [one.split(":")[3] for one in said["Events"]] == [REGION, OTHER]


def test_a_region_named_twice_is_refused(engine: Ec2) -> None:
    with pytest.raises(InvalidSettings, match="eu-west-1 is named twice"):
        connect(replace(engine.config, other_regions=(RegionConfig(REGION),)))
