"""AWS that throttles, fails, cuts connections or shows machines late: nothing is taken for gone, nothing starts twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aws_stand_in import Aws
from chipwise.adapters.engines.ec2.engine import Ec2, connect
from chipwise.errors import TryLater
from chipwise.runner.engine import End, Start, State
from ec2_account import NO_MACHINES, NOW, config, machines, placed, see
from faulty_aws import Fault, Faulty

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    "fault",
    [
        Fault("DescribeInstances", 503, "RequestLimitExceeded"),
        Fault("DescribeInstances", 500, "InternalError"),
        Fault("DescribeInstances", 502),
        Fault("DescribeInstances"),
        Fault("GET /kept"),
        Fault("GET /kept", 503, "SlowDown"),
    ],
)
def test_who_cannot_see_says_so_and_nothing_is_absent(between: Faulty, engine: Ec2, fault: Fault) -> None:
    engine.do(Start(placed()))
    between.faults.append(replace(fault))
    with pytest.raises(TryLater):
        engine.look([placed()], NOW)
    between.faults.clear()
    assert see(engine, placed()).state is State.PENDING


@pytest.mark.parametrize("status", [503, 500])
def test_requests_are_tried_again_and_not_for_ever(
    aws: Aws, between: Faulty, clients: dict[int, dict[str, Any]], status: int
) -> None:
    engine = connect(config(aws, between, tries=3))
    engine.regions.first._clients = clients[3]
    code = "RequestLimitExceeded" if status == 503 else "InternalError"
    between.faults.append(Fault("CreateFleet", status, code, times=1))
    engine.do(Start(placed()))
    assert (between.count("CreateFleet"), len(machines(aws))) == (2, 1)
    between.faults[:] = [Fault("DescribeInstances", status, code)]
    with pytest.raises(TryLater):
        engine.look([], NOW)
    assert between.count("DescribeInstances") == 3


def test_a_queue_that_does_not_answer_hides_nothing_else(between: Faulty, engine: Ec2) -> None:
    engine.do(Start(placed()))
    between.faults.append(Fault("ReceiveMessage", 503, "ThrottlingException"))
    assert see(engine, placed()).state is State.PENDING


def test_machines_that_ec2_does_not_show_yet_are_on_their_way(aws: Aws, between: Faulty, engine: Ec2) -> None:
    engine.do(Start(placed()))
    between.faults.append(Fault("DescribeInstances", body=NO_MACHINES))
    assert see(engine, placed()).state is State.PENDING
    assert see(engine, placed(), NOW + 3600.0).state is State.LOST
    engine.do(End(placed()))  # by the ids that were written down
    between.faults.clear()
    assert machines(aws) == []
