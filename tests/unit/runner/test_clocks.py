"""Clocks that are set back: no wait is longer than it could have been from the moment at which that is seen."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from chipwise.adapters.engines.simulated.engine import Simulated
from chipwise.adapters.engines.simulated.world import Program, World
from chipwise.adapters.stores.memory_record import MemoryRecord
from chipwise.runner.engine import End, Leave, Room, Seen, Sight, Start, State
from chipwise.runner.events import Again, Ended, Leaving, Placed, Wished
from chipwise.runner.job import LEAST_WAIT_S, Job, LeaveReason, MachinePlace, Needs, Outcome, Phase, Retry, Wish
from chipwise.runner.loop import LEASE_S, Controller
from chipwise.runner.queue import Rules, why_waiting
from chipwise.runner.step import step
from run_jobs import added, leaving, queued, running, spec

NOW = 1_800_000_000.0
clocks = st.floats(-30 * 86400.0, 0.0)  # how far it is set back
rooms = st.sampled_from([Room(), Room((0,), (0, 1))])


def waiting(wait_s: float, retry: Retry) -> Job:
    job = queued(wanted=spec(retry=retry, needs=Needs(0, 1)), at=NOW - 100.0)
    events = (Placed(1, MachinePlace()), Ended(1, Outcome.FAILED, 1), Again(NOW + wait_s, "failed"))
    return added(job, *events, at=NOW)


def starts(job: Job, now: float, room: Room) -> bool:
    return any(isinstance(order, Start) for act in step({job.id: job}, Seen(now, room=room), now) for order in act.orders)


@given(st.floats(0.0, 600.0), st.floats(0.0, 600.0), clocks, rooms)
def test_a_clock_that_is_set_back_makes_no_wait_longer_than_the_longest(
    wait_s: float, longest_s: float, back: float, room: Room
) -> None:
    job = waiting(min(wait_s, longest_s), Retry(longest_wait_s=longest_s))
    seen, longest_s = NOW + back, max(longest_s, LEAST_WAIT_S)
    assert job.ready_at(seen) <= seen + longest_s
    assert starts(job, seen, room) or starts(job, seen + longest_s, room), "one look at the beginning, one at the end"


@given(st.floats(1.0, 600.0), st.floats(0.0, 0.99), rooms)
def test_a_clock_that_goes_on_as_it_should_is_heeded(wait_s: float, part: float, room: Room) -> None:
    job = waiting(wait_s, Retry())
    assert not starts(job, NOW + part * wait_s, room)
    assert job.ready_at(NOW + part * wait_s) == job.not_before
    assert starts(job, job.not_before, room)
    assert "tried again in" in why_waiting(job, [job], room, Rules(), NOW + part * wait_s)


@given(
    clocks,
    st.floats(0.0, 120.0),
    st.sampled_from([LeaveReason.WISH, LeaveReason.MOVE, LeaveReason.OVERDUE, LeaveReason.BUDGET]),
)
def test_a_grace_is_not_made_longer_either(back: float, grace_s: float, why: LeaveReason) -> None:
    job = leaving(running(queued(wanted=spec(grace_s=grace_s)), at=NOW), why, NOW + grace_s)
    job = added(job, Wished(Wish.STOP)) if why is LeaveReason.WISH else job
    seen, sight = NOW + back, Sight(State.RUNNING)
    for now in (seen, seen + grace_s / 2, seen + grace_s + 1e-3):
        [act] = step({job.id: job}, Seen(now, {(job.id, 1): sight}), now)
        job = added(job, *act.events, at=now)
        assert job.leave_by is not None
        assert job.leave_by <= max(now, seen) + grace_s
        assert all(isinstance(event, Leaving) for event in act.events)
    assert act.orders == (End(job),)


def test_a_notice_keeps_the_time_that_the_machine_was_given() -> None:
    job = leaving(running(queued(wanted=spec(grace_s=30.0)), at=NOW), LeaveReason.NOTICE, NOW + 120.0)
    [act] = step({job.id: job}, Seen(NOW, {(job.id, 1): Sight(State.RUNNING)}), NOW)
    assert act.events == ()
    assert act.orders == (Leave(job, NOW + 120.0, "notice"),)


@given(clocks, st.floats(0.1, 5.0))
def test_a_dead_leader_is_followed_within_the_length_of_a_lease_whatever_the_clock_says(back: float, tick: float) -> None:
    record, engine = MemoryRecord(), Simulated(World(other=Program(6, 10.0, 2), begins=NOW - 40 * 86400.0))
    passed = [0.0]
    first = Controller(record, engine, "first", elapsed=lambda: passed[0])
    assert first.turn(NOW).leads
    second = Controller(record, engine, "second", elapsed=lambda: passed[0])
    led = False
    while not led and passed[0] <= 3 * LEASE_S:
        led = second.turn(NOW + back + passed[0]).leads
        passed[0] += tick
    assert led
    assert passed[0] <= LEASE_S + 3 * tick
    assert not first.turn(NOW + back + passed[0]).leads, "one that was only asleep has no say any more"


@given(clocks, st.integers(20, 60))
def test_a_leader_that_lives_keeps_its_place(back: float, turns: int) -> None:
    record, engine = MemoryRecord(), Simulated(World(begins=NOW - 40 * 86400.0))
    passed = [0.0]
    two = [Controller(record, engine, name, elapsed=lambda: passed[0]) for name in ("first", "second")]
    two[0].turn(NOW)
    for _ in range(turns):
        passed[0] += 5.0
        assert two[0].turn(NOW + back + passed[0]).leads
        assert not two[1].turn(NOW + back + passed[0]).leads


def test_a_time_of_the_usual_clock_is_kept_to_the_last_bit() -> None:
    """The wait may be exactly the longest: rounding must not make it nothing."""
    for number in range(1000):
        now = NOW + number * 0.1
        job = replace(queued(wanted=spec(retry=Retry(longest_wait_s=600.1))), not_before=now + 600.1)
        assert job.phase is Phase.QUEUED
        assert job.ready_at(now) == job.not_before
