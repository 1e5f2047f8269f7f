"""Nothing is left running: what is ended, what comes late, and what belongs to nobody."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aws_stand_in import Aws
from chipwise.adapters.engines.ec2.engine import Ec2, connect
from chipwise.runner.engine import Clear, End, Start, State
from chipwise.runner.events import Ended, Placed, after
from chipwise.runner.job import Outcome
from ec2_account import NOW, SPOT_A, content, kept, machines, placed, see, templates
from engines.ec2 import REGION
from faulty_aws import Fault, Faulty

pytestmark = pytest.mark.e2e


def test_what_is_ended_stays_ended_and_clearing_removes_all_but_the_word(aws: Aws, engine: Ec2) -> None:
    engine.do(Start(placed()))
    for _ in range(2):
        engine.do(End(placed()))
    sight = see(engine, placed())
    assert (sight.state, machines(aws), templates(aws)) == (State.LOST, [], [])
    engine.do(Clear(sight.handle))
    engine.do(Start(placed()))
    assert (machines(aws), kept(aws)) == ([], ["controller", "over/j1/1"])


def test_what_belongs_to_no_live_attempt_is_found_and_ended(aws: Aws, engine: Ec2) -> None:
    for id in ("one", "two"):
        engine.do(Start(placed(id=id)))
    other = connect(replace(engine.config, keep="s3://kept/others"))
    other.do(Start(placed(id="theirs")))
    assert engine.look([placed(id="one")], NOW).strays == ("two/1",)
    would = engine.reap(lambda: {("one", 1)}, dry_run=True)
    assert ([(one.kind, one.job) for one in would], len(machines(aws))) == (
        [("machine", "two"), ("launch template", "two")],
        3,
    )
    assert engine.reap(lambda: {("one", 1)}) == would
    assert engine.reap(lambda: {("one", 1)}) == []
    assert [one.partition("-")[2].partition("-")[2] for one in sorted(templates(aws), key=len)] == ["one-1", "theirs-1"]
    assert len(machines(aws)) == 2


def test_a_start_that_comes_late_ends_what_it_started(aws: Aws, engine: Ec2) -> None:
    """Another controller gave the attempt up while the fleet was being made."""
    job = placed()
    own = engine.regions.first
    whole = own.fleet

    def slow(request: Any) -> Any:
        made = whole(request)
        connect(engine.config).do(End(job))
        return made

    engine.regions.clouds[REGION] = type("Slow", (type(own),), {"fleet": staticmethod(slow), "__slots__": ()})(engine.config)
    engine.do(Start(job))
    assert machines(aws) == []


def test_a_machine_that_writes_of_an_attempt_that_nobody_ordered_bars_no_other(aws: Aws, engine: Ec2) -> None:
    """It could keep any job of its place from ever starting, with one object."""
    for mark in ("begun-0", "ended-0-0"):
        aws.client("s3", REGION).put_object(Bucket="kept", Key=f"team/live/j1/999/{mark}", Body=b"1")
    [stray] = engine.look([placed()], NOW).strays
    engine.do(Clear(stray))
    assert kept(aws) == ["controller"]
    aws.client("s3", REGION).put_object(Bucket="kept", Key="team/live/j1/999/begun-0", Body=b"1")
    engine.do(Start(placed()))
    assert len(machines(aws)) == 1


def test_an_older_attempt_has_no_say(aws: Aws, engine: Ec2) -> None:
    old = placed()
    new = after(after(old, Ended(1, Outcome.LOST), NOW), Placed(2, SPOT_A), NOW)
    engine.do(Start(new))
    engine.do(Start(old))
    assert len(machines(aws)) == 1


def test_a_job_that_starts_while_somebody_reaps_is_not_taken_for_left_over(aws: Aws, engine: Ec2) -> None:
    """It is recorded before its machine is asked for, and the record is read after the machines."""
    recorded: set[tuple[str, int]] = set()
    own = engine.regions.first
    listed = own.machines

    def starts_before_it_is_listed() -> list[Any]:
        recorded.add(("late", 1))
        connect(engine.config).do(Start(placed(id="late")))
        return list(listed())

    busy = type("Busy", (type(own),), {"machines": staticmethod(starts_before_it_is_listed), "__slots__": ()})
    engine.regions.clouds[REGION] = busy(engine.config)
    assert engine.reap(lambda: recorded) == []
    assert len(machines(aws)) == 1


def test_a_machine_of_the_place_whose_tags_do_not_say_whose_it_is_is_ended_too(aws: Aws, engine: Ec2) -> None:
    engine.do(Start(placed()))
    [one] = machines(aws)
    aws.client("ec2", REGION).delete_tags(Resources=[one["InstanceId"]], Tags=[{"Key": "chipwise:job"}])
    engine.do(Clear("j1/1"))  # finds it by what was written down when it came
    assert machines(aws) == []
    engine.do(Start(placed(id="j2")))
    [other] = machines(aws)
    aws.client("ec2", REGION).delete_tags(Resources=[other["InstanceId"]], Tags=[{"Key": "chipwise:attempt"}])
    [found] = engine.reap(lambda: {("j2", 1)}, dry_run=True)
    assert (found.kind, found.name, found.job) == ("machine", other["InstanceId"], "")
    assert engine.reap(lambda: {("j2", 1)}) == [found]
    assert machines(aws) == []


def test_machines_can_tell_that_somebody_leads_them(aws: Aws, between: Faulty, engine: Ec2) -> None:
    engine.look([], NOW)
    assert "controller" not in kept(aws)
    engine.do(Start(placed()))
    for later, told in ((0.0, 0.0), (59.0, 0.0), (60.0, 60.0), (90.0, 60.0)):
        engine.look([placed()], NOW + later)
        assert float(content(aws, "controller")) == NOW + told
    between.faults.append(Fault("PUT /kept/team/controller", 503, "SlowDown"))
    assert see(engine, placed(), NOW + 200.0).state is State.PENDING  # missing it once does no harm
    between.faults.clear()
    engine.look([placed()], NOW + 205.0)
    assert float(content(aws, "controller")) == NOW + 205.0
