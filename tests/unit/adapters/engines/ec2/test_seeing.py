"""What is seen of an attempt on EC2, from any mixture of what EC2 and S3 say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.adapters.engines.ec2.seeing import Instance, handle, key_of_handle, machine, sight
from chipwise.catalog.offer import Purchase
from chipwise.runner.engine import Sight, State
from chipwise.runner.events import Placed, Submitted, after, first
from chipwise.runner.job import Job, MachinePlace, Needs, Spec

NOW = 10_000.0
SPOT = MachinePlace(Purchase.SPOT, "aws", "eu-west-1", "eu-west-1a", "g6.xlarge", 0.3)
STAYS = MachinePlace(Purchase.ON_DEMAND, "aws", "eu-west-1", "", "g6.xlarge", 1.0)
RUNS = Instance("i-1", "running", "g6.xlarge", "eu-west-1a", True, 9_000.0)
OVER = (State.EXITED, State.LOST)
STATES = ("pending", "running", "shutting-down", "terminated", "stopping", "stopped")
MARKS = (
    "order",
    "fleet",
    "refused",
    "leave",
    "notice-i-1",
    "here-i-1",
    "begun-0",
    "begun-1",
    "progress",
    "ended-0-0",
    "ended-1-3",
)


def job(machines: int = 1) -> Job:
    spec = Spec(("a",), "train", needs=Needs(machines=machines), places=(SPOT, STAYS))
    return after(first("j1", Submitted(spec), 0.0), Placed(1, SPOT, machines=machines), 0.0)


def seen(wanted: Job, machines: list[Instance], **said: Any) -> Sight:
    """Marks by name, with _ for -."""
    marks: Mapping[str, Any] = {name.replace("_", "-"): what for name, what in said.items()}
    return sight(wanted, machines, dict.fromkeys(marks, "v1"), lambda mark: marks[mark] or {}, NOW)


@given(st.lists(st.sampled_from(STATES), max_size=3), st.sets(st.sampled_from(MARKS)), st.integers(1, 2))
def test_an_attempt_is_over_only_when_each_machine_said_so_or_is_gone(states: list[str], marks: set[str], many: int) -> None:
    machines = [replace(RUNS, id=f"i-{at}", state=state) for at, state in enumerate(states)]
    found = sight(job(many), machines, dict.fromkeys(marks, "v1"), lambda mark: {"by": 1.0, "at": 1.0}, NOW)
    told = sum(mark.startswith("ended-") for mark in marks) >= many
    alive = any(state not in ("terminated", "stopped") for state in states)
    if found.state is State.EXITED:
        assert told
    if found.state is State.LOST:
        assert not alive
    if found.state is State.ABSENT:
        assert not machines
        assert not marks & {"fleet", "refused"}
    if told:
        assert found.state is State.EXITED


def test_the_code_is_that_of_the_machine_that_failed_first() -> None:
    ends = {"ended_0_75": {"at": 20.0, "reason": "machine 1 of 2 ended with 3"}, "ended_1_3": {"at": 10.0, "reason": "bad"}}
    found = seen(job(2), [], **ends)
    assert (found.state, found.code, found.reason, found.until) == (State.EXITED, 3, "bad", 20.0)


def test_one_that_ended_after_a_notice_says_until_when_it_had_time() -> None:
    found = seen(job(), [RUNS], begun_0={"value": 9_100}, ended_0_0={"at": 9_500, "noticed": {"by": 9_600, "reason": "taken"}})
    assert (found.code, found.leave_by, found.since, found.until, found.held_since) == (0, 9_600.0, 9_100.0, 9_500.0, 9_000.0)


def test_where_one_of_several_machines_is_lost_the_others_are_to_leave() -> None:
    lost = replace(RUNS, id="i-2", state="terminated", reason="AWS reclaimed the spot machine")
    found = seen(job(2), [RUNS, lost], begun_0={"value": 1}, begun_1={"value": 2})
    assert (found.state, found.leave_by, found.reason) == (State.RUNNING, NOW + 30.0, "AWS reclaimed the spot machine")


def test_a_machine_that_could_not_work_is_lost_with_its_own_words() -> None:
    gone = replace(RUNS, state="terminated", reason="its machine shut itself down without a message")
    found = seen(job(), [gone], broken_i_1={"reason": "a machine does not hear its own metadata"})
    assert (found.state, found.reason) == (State.LOST, "a machine does not hear its own metadata")


def test_a_machine_that_shuts_down_still_counts() -> None:
    found = seen(job(), [replace(RUNS, state="shutting-down")], begun_0={"value": 1})
    assert (found.state, found.leave_by) == (State.RUNNING, None)


def test_progress_is_told_and_nonsense_is_not() -> None:
    assert seen(job(), [RUNS], progress={"step": 7, "saved_step": 5}).saved == 5
    assert seen(job(), [RUNS], progress={"step": "many", "saved_step": True}).step is None
    assert seen(job(), [RUNS], progress={"step": 7, "steady": 2.5}).rate == 2.5


def test_an_unknown_price_counts_as_the_highest_of_its_purchase() -> None:
    other = seen(job(), [replace(RUNS, type="g6.48xlarge", spot=False)]).place
    assert other is not None
    assert (other.machine, other.purchase, other.usd_per_hour) == ("g6.48xlarge", Purchase.ON_DEMAND, 1.0)
    assert seen(job(), [RUNS]).place == SPOT


@pytest.mark.parametrize("word", ["GMT", "UTC"])
def test_the_time_at_which_a_machine_ended_is_read(word: str) -> None:
    told = {
        "InstanceId": "i-1",
        "State": {"Name": "terminated"},
        "LaunchTime": datetime.fromtimestamp(0, UTC),
        "StateReason": {"Code": "Server.SpotInstanceTermination", "Message": "long"},
        "InstanceLifecycle": "spot",
        "StateTransitionReason": f"Service initiated (1970-01-01 01:00:00 {word})",
    }
    found = machine(told)
    assert (found.until, found.reason, found.spot) == (3600.0, "AWS reclaimed the spot machine", True)
    assert seen(job(), [found]).until == 3600.0


@given(st.from_regex(r"[a-z0-9][a-z0-9.-]{0,20}", fullmatch=True), st.integers(1, 10**6))
def test_a_handle_leads_back_to_its_attempt(id: str, number: int) -> None:
    assert key_of_handle(handle((id, number))) == (id, number)
    assert key_of_handle(id) is None
