"""A wall clock that is set, forward or back, while jobs run, wait or leave: nothing is cut short and nothing lasts longer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.runner.clock_steps import ClockSteps
from chipwise.runner.engine import End, Leave, Room, Seen, Sight, Start, State
from chipwise.runner.events import Again, Ended, Leaving, Placed
from chipwise.runner.job import Job, LeaveReason, MachinePlace, Needs, Outcome, Retry
from chipwise.runner.step import step
from run_jobs import added, leaving, queued, running, spec

NOW = 1_800_000_000.0
steps = st.floats(-30 * 86400.0, 30 * 86400.0).filter(lambda by: abs(by) >= 1.0)


def decide(job: Job, sight: Sight | None, now: float, room: Room | None = None) -> list[object]:
    seen = Seen(now, {} if sight is None else {(job.id, len(job.attempts)): sight}, room or Room())
    return [order for act in step({job.id: job}, seen, now) for order in act.orders]


@given(steps, st.floats(0.0, 3600.0))
def test_a_time_limit_counts_the_seconds_that_passed(by: float, lasted: float) -> None:
    job = running(queued(wanted=spec(longest_s=600.0)), at=NOW)
    orders = decide(job, Sight(State.RUNNING, since=NOW, lasted_s=lasted), NOW + lasted + by)
    assert any(isinstance(order, Leave) for order in orders) == (lasted > 600.0)


@given(steps, st.booleans())
def test_a_grace_counts_the_seconds_that_passed(by: float, over: bool) -> None:
    job = leaving(running(queued(wanted=spec(grace_s=30.0)), at=NOW), LeaveReason.WISH, NOW + 30.0)
    orders = decide(job, Sight(State.RUNNING, overstays=over), NOW + by)
    assert any(isinstance(order, End) for order in orders) == over


@given(steps, st.floats(0.5, 590.0))
def test_a_wait_before_the_next_try_is_as_long_as_it_was(by: float, wait: float) -> None:
    job = queued(wanted=spec(needs=Needs(0, 1)), at=NOW - 100.0)
    job = added(job, Placed(1, MachinePlace()), Ended(1, Outcome.FAILED, 1), Again(NOW + wait, "failed"), at=NOW)
    clock = ClockSteps()
    clock.hear(NOW, 50.0, {job.id: job})
    for passed in (wait * 0.4, wait * 0.9, wait + 0.1):
        clock.hear(NOW + by + passed, 50.0 + passed, {job.id: job})
        seen = clock.today({job.id: job})[job.id]
        starts = any(isinstance(order, Start) for order in decide(seen, None, NOW + by + passed, Room((), (0,))))
        assert starts == (passed >= wait)


@given(steps, st.floats(1.0, 29.0))
def test_a_grace_of_an_engine_elsewhere_is_as_long_as_it_was(by: float, passed: float) -> None:
    job = added(running(queued(), at=NOW), Leaving(1, NOW + 30.0, LeaveReason.WISH), at=NOW)
    clock = ClockSteps()
    clock.hear(NOW, 0.0, {job.id: job})
    clock.hear(NOW + by + passed, passed, {job.id: job})
    seen = clock.today({job.id: job})[job.id]
    assert seen.leave_by == pytest.approx(NOW + 30.0 + by, abs=1e-3)
    assert not any(isinstance(order, End) for order in decide(seen, Sight(State.RUNNING), NOW + by + passed))


@given(steps)
def test_patience_for_machines_counts_the_seconds_that_passed(by: float) -> None:
    job = queued(wanted=spec(retry=Retry(no_machine_s=600.0), places=(MachinePlace(zone="a"), MachinePlace(zone="b"))))
    job = added(job, Placed(1, MachinePlace(zone="a")), at=NOW)
    clock = ClockSteps()
    clock.hear(NOW, 0.0, {job.id: job})
    for passed, moves in ((300.0, False), (601.0, True)):
        clock.hear(NOW + by + passed, passed, {job.id: job})
        seen = clock.today({job.id: job})[job.id]
        assert any(isinstance(order, End) for order in decide(seen, Sight(State.PENDING), NOW + by + passed)) == moves


def test_a_time_that_is_written_after_the_clock_was_set_is_not_moved() -> None:
    job = replace(queued(), not_before=NOW + 5.0)
    clock = ClockSteps()
    clock.hear(NOW, 0.0, {job.id: job})
    assert clock.hear(NOW + 3601.0, 1.0, {job.id: job}) == 3600.0
    later = replace(job, not_before=NOW + 3610.0)
    assert clock.today({job.id: later})[job.id].not_before == NOW + 3610.0


def test_a_notice_names_a_time_of_its_clouds_clock() -> None:
    job = leaving(running(queued(), at=NOW), LeaveReason.NOTICE, NOW + 120.0)
    clock = ClockSteps()
    clock.hear(NOW, 0.0, {job.id: job})
    clock.hear(NOW - 59.0, 1.0, {job.id: job})
    assert clock.today({job.id: job})[job.id].leave_by == NOW + 120.0


def test_a_controller_without_another_clock_takes_the_time_as_it_comes() -> None:
    job = replace(queued(), not_before=NOW + 5.0)
    clock = ClockSteps()
    for passed in (0.0, 1.0, 7200.0):
        assert clock.hear(NOW + passed, 0.0, {job.id: job}) == 0.0
    assert clock.today({job.id: job})[job.id] is job
