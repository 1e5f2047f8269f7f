"""The rendered `launch.py` while machines run, against a moto server: what it does about a machine lost behind its back.

moto never takes or shuts down a machine by itself. A machine taken by AWS, or one that shut itself down, is made by ending it
in moto's own backend (`moto.backends.get_backend`) with moto's `StateReason` patched to the reason that EC2 gives. Want of
capacity is answered by the small server before moto (`Aws.refuse`).
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from aws_stand_in import Aws, started
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.named_targets import target
from deployments import deployment
from patience import deadline

pytest.importorskip("moto")
pytestmark = pytest.mark.e2e

ON_AWS = "clouds=[aws]"
TRAIN = replace(deployment("train", ON_AWS), machines=2)  # one program over two spot machines
PARTS = replace(deployment("batch", ON_AWS), machines=2, purchase="spot")
SERVE = replace(deployment("serve", ON_AWS), machines=2)
REASONS = {
    "taken": ("Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Spot instance termination"),
    "by itself": ("Client.InstanceInitiatedShutdown", "Client.InstanceInitiatedShutdown: Instance initiated shutdown"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Aws]:
    with started() as running:
        yield running


@pytest.fixture
def aws(server: Aws) -> Aws:
    server.reset()
    return server


Start = Callable[..., "Launch"]


@pytest.fixture
def launched(aws: Aws, tmp_path: Path) -> Iterator[Start]:
    made: list[Launch] = []

    def launch(planned: Deployment, *words: str, **changes: str) -> Launch:
        made.append(Launch(aws, planned, tmp_path, *words, **changes))
        return made[-1]

    yield launch
    for process in (process for one in made for process in one.processes):
        if process.poll() is None:
            process.kill()
            process.wait()


class Launch:
    """A launcher that runs, and the region that it starts machines in."""

    def __init__(self, aws: Aws, planned: Deployment, folder: Path, *words: str, **changes: str) -> None:
        self.aws, self.planned, self.region = aws, planned, planned.node.region
        self.ec2 = aws.client("ec2", self.region)
        self.script = folder / "launch.py"
        for file in target("ec2").render(planned):
            text = file.text
            for name, value in changes.items() if file.path == "launch.py" else ():
                text, many = re.subn(rf"^{name} = .*$", f"{name} = {value}", text, flags=re.MULTILINE)
                assert many == 1, name
            (folder / file.path).write_text(text)
        self.words = self.options() if planned.volumes and planned.software.port is None else ["--open-to", "10.0.0.0/8"]
        self.log, self.processes = folder / "told.txt", list[subprocess.Popen[bytes]]()
        self.again(*words)

    @property
    def told(self) -> list[str]:
        return self.log.read_text().splitlines()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        return self.processes[-1]

    def options(self) -> list[str]:
        self.aws.client("iam", self.region).create_instance_profile(InstanceProfileName="worker")
        subnets = [one["SubnetId"] for one in self.ec2.describe_subnets()["Subnets"][:2]]
        self.aws.client("s3", "us-east-1").create_bucket(Bucket="kept")
        zones = [word for one in subnets for word in ("--subnet", one)]
        return ["--image", "example.com/trainer:1", "--keep", "s3://kept/run", "--instance-profile", "worker", *zones]

    def again(self, *words: str) -> None:
        command = [sys.executable, "-u", str(self.script), *words, "--every", "1", *self.words]
        with self.log.open("a") as told:
            self.processes.append(subprocess.Popen(command, env=self.aws.environment(), stdout=told, stderr=told))

    def until(self, what: Callable[[], bool]) -> None:
        late = deadline(30)
        while not what():
            assert time.monotonic() < late, self.log.read_text()
            time.sleep(0.05)

    def says(self, text: str) -> None:
        self.until(lambda: any(text in line for line in self.told))

    def all(self) -> list[dict[str, Any]]:
        return [one for group in self.ec2.describe_instances()["Reservations"] for one in group["Instances"]]

    def alive(self) -> list[dict[str, Any]]:
        return sorted((one for one in self.all() if one["State"]["Name"] == "running"), key=lambda one: rank(one))

    def running(self, many: int) -> list[dict[str, Any]]:
        self.until(lambda: len(self.alive()) == many)
        return self.alive()

    def lose(self, identity: str, how: str) -> None:
        from moto.backends import get_backend
        from moto.ec2.models.instances import StateReason

        backend: Any = get_backend("ec2")["123456789012"][self.region]
        code, message = REASONS[how]
        with mock.patch("moto.ec2.models.instances.StateReason", return_value=StateReason(message, code)):
            backend.terminate_instances([identity])

    def finish(self, one: Mapping[str, Any], status: int) -> None:
        """What start.sh leaves, and then a shutdown from within."""
        s3, key = self.aws.client("s3", "us-east-1"), f"run/logs/machine-{rank(one)}/status"
        s3.put_object(Bucket="kept", Key=key, Body=f"{one['InstanceId']} {status}\n".encode())
        self.lose(one["InstanceId"], "by itself")

    def ends(self) -> int:
        return self.process.wait(timeout=300)


def rank(one: Mapping[str, Any]) -> int:
    return int(tags(one)["chipwise-first-rank"]) + int(one["AmiLaunchIndex"])


def tags(one: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in one["Tags"]}


def pool(one: Mapping[str, Any]) -> tuple[str, str, str]:
    return one["InstanceType"], one.get("InstanceLifecycle", "on-demand"), one["SubnetId"]


def test_a_machine_taken_behind_its_back_is_replaced_with_the_same_tags(launched: Start) -> None:
    launch = launched(PARTS, "--up")
    launch.says("running:")
    first, second = launch.running(2)
    launch.ec2.terminate_instances(InstanceIds=[second["InstanceId"]])
    launch.says("lost: machine 1")
    launch.until(lambda: len(launch.alive()) == 2)
    stayed, new = launch.alive()
    assert stayed["InstanceId"] == first["InstanceId"]
    assert new["InstanceId"] != second["InstanceId"]
    assert (tags(new) | {"chipwise-first-rank": ""}) == (tags(second) | {"chipwise-first-rank": ""})
    assert rank(new) == 1
    assert pool(new)[1] == "spot"
    assert pool(new) != pool(second)  # where one was taken there is little to be had
    for one in launch.alive():
        launch.finish(one, 0)
    assert launch.ends() == 0, launch.told
    assert "finished: all 2 machines ended by themselves" in launch.told
    groups = launch.ec2.describe_security_groups()["SecurityGroups"]
    assert not [one for one in groups if one["GroupName"].startswith("chipwise-")]


def test_machines_that_work_together_begin_again_together(launched: Start) -> None:
    launch = launched(TRAIN, "--up")
    launch.says("running:")
    before = launch.running(2)
    launch.lose(before[0]["InstanceId"], "taken")
    launch.says("ended 1 machines")
    launch.until(lambda: len(launch.alive()) == 2 and all("chipwise-head" in tags(one) for one in launch.alive()))
    after = launch.alive()
    assert not {one["InstanceId"] for one in after} & {one["InstanceId"] for one in before}
    assert [rank(one) for one in after] == [0, 1]
    assert {tags(one)["chipwise-head"] for one in after} == {after[0]["PrivateIpAddress"]}
    launch.finish(after[0], 0)
    launch.finish(after[1], 7)
    assert launch.ends() == 1
    assert any("machine 1: status 7" in line and "s3://kept/run/logs/" in line for line in launch.told), launch.told


def test_one_that_is_lost_again_and_again_is_bought_at_the_full_price_if_told(launched: Start) -> None:
    one_machine = replace(PARTS, machines=1)
    launch = launched(one_machine, "--up", "--or-on-demand", LOSSES="2  #")
    launch.says("running:")
    seen = []
    for _ in range(3):
        (one,) = launch.running(1)
        seen.append(pool(one))
        launch.lose(one["InstanceId"], "taken")
        launch.until(lambda gone=one: [it for it in launch.alive() if it["InstanceId"] != gone["InstanceId"]] != [])  # type: ignore[misc]
    assert [purchase for _, purchase, _ in seen] == ["spot", "spot", "on-demand"]
    assert len(set(seen)) == 3
    launch.finish(launch.running(1)[0], 0)
    assert launch.ends() == 0


def test_it_waits_where_there_is_no_capacity_and_takes_the_next_machine_type(aws: Aws, launched: Start) -> None:
    launch = launched(replace(PARTS, machines=1), "--up")
    launch.says("running:")
    aws.refuse = lambda action, form: "InsufficientInstanceCapacity" if action == "RunInstances" else None
    launch.lose(launch.running(1)[0]["InstanceId"], "taken")
    launch.says("Only 0 of 1 machines were available")
    own = PARTS.node.machine
    aws.refuse = lambda action, form: (
        "InsufficientInstanceCapacity" if action == "RunInstances" and form["InstanceType"] == own else None
    )
    (one,) = launch.running(1)
    assert one["InstanceType"] != own
    launch.finish(one, 0)
    assert launch.ends() == 0


def test_it_gives_up_after_a_time_without_machines(aws: Aws, launched: Start) -> None:
    launch = launched(replace(PARTS, machines=1), "--up", PATIENCE_S="1")
    launch.says("running:")
    aws.refuse = lambda action, form: "InsufficientInstanceCapacity" if action == "RunInstances" else None
    launch.lose(launch.running(1)[0]["InstanceId"], "taken")
    assert launch.ends() == 1
    assert any(line.startswith("0 machines run on") for line in launch.told), launch.told


def test_a_network_that_is_away_for_a_moment_is_forgiven(aws: Aws, launched: Start) -> None:
    launch = launched(replace(PARTS, machines=1), "--up")
    launch.says("running:")
    aws.refuse = lambda action, form: "RequestLimitExceeded" if action == "DescribeInstances" else None
    launch.says("looking again")
    aws.refuse = lambda action, form: None
    launch.finish(launch.alive()[0], 0)
    assert launch.ends() == 0


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_the_machines_and_watch_takes_them_up_again(launched: Start, sent: signal.Signals) -> None:
    launch = launched(PARTS, "--up")
    launch.says("running:")
    time.sleep(1)
    launch.process.send_signal(sent)
    assert launch.ends() == 130
    assert any(line.startswith("2 machines run on and nobody replaces") for line in launch.told), launch.told
    first, second = launch.running(2)
    launch.lose(second["InstanceId"], "taken")  # while nobody watches
    launch.again("--watch")
    launch.says("watching 1 of 2 machines")
    assert [rank(one) for one in launch.running(2)] == [0, 1]
    for one in launch.alive():
        launch.finish(one, 0)
    assert launch.ends() == 0
    assert first["InstanceId"] in {one["InstanceId"] for one in launch.all()}


def test_ctrl_c_ends_the_machines_where_it_was_asked_to(launched: Start) -> None:
    launch = launched(PARTS, "--up", "--down-on-stop")
    launch.says("running:")
    time.sleep(1)
    launch.process.send_signal(signal.SIGINT)
    assert launch.ends() == 130
    assert any("stopped: ending the machines" in line for line in launch.told), launch.told
    assert launch.alive() == []


def test_what_another_desk_ends_is_no_loss(aws: Aws, launched: Start) -> None:
    launch = launched(PARTS, "--up")
    launch.says("running:")
    watching = launch.process
    assert aws.run(launch.script, "--down").returncode == 0
    assert watching.wait(timeout=300) == 0
    launch.says("ended by --down")
    assert launch.alive() == []


def test_a_service_keeps_its_number_of_machines(launched: Start) -> None:
    launch = launched(SERVE, "--up", "--watch")
    launch.says("running:")
    (_, second) = launch.running(2)
    launch.lose(second["InstanceId"], "by itself")  # nobody wanted that: a service has no end of its own
    launch.says("lost: machine 1")
    assert [rank(one) for one in launch.running(2)] == [0, 1]
    launch.process.send_signal(signal.SIGINT)
    assert launch.ends() == 130


def test_up_leaves_machines_at_the_full_price_to_themselves(launched: Start) -> None:
    launch = launched(SERVE, "--up")
    assert launch.ends() == 0, launch.told
    assert len(launch.running(2)) == 2


def test_a_machine_that_ec2_has_forgotten_is_known_by_what_it_kept(launched: Start) -> None:
    from moto.backends import get_backend

    launch = launched(PARTS, "--up", "--no-watch")
    assert launch.ends() == 0, launch.told
    first, second = launch.running(2)
    launch.finish(second, 0)
    for reservation in get_backend("ec2")["123456789012"][launch.region].reservations.values():
        reservation.instances = [one for one in reservation.instances if one.id != second["InstanceId"]]
    launch.again("--watch")
    launch.says("watching 1 of 2 machines")
    launch.finish(first, 0)
    assert launch.ends() == 0, launch.told
    assert len(launch.all()) == 1  # nothing was started for it


def test_there_must_be_something_to_watch(launched: Start) -> None:
    launch = launched(PARTS, "--watch")
    assert launch.ends() == 1
    assert any("Start it with --up" in line for line in launch.told), launch.told
