"""A job is what its events add up to."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.adapters.engines.simulated.play import Wishes, simulate
from chipwise.adapters.engines.simulated.world import Exit, Loss, Program, World
from chipwise.runner.events import (
    Again,
    Begun,
    Ended,
    Event,
    Impossible,
    Leaving,
    Over,
    Placed,
    Submitted,
    Told,
    Waiting,
    Wished,
    after,
    first,
)
from chipwise.runner.job import Job, LeaveReason, MachinePlace, Outcome, Phase, Wish
from effort import cases
from run_jobs import SPOT_A, STAYS, added, asking, queued, running, spec, starting


@settings(max_examples=cases(30))
@given(
    losses=st.lists(st.floats(0, 900), max_size=4),
    code=st.sampled_from([0, 1, 75, 127]),
    stop=st.none() | st.floats(0, 900),
    seed=st.integers(0, 3),
)
def test_the_events_of_a_job_fold_to_the_job(losses: list[float], code: int, stop: float | None, seed: int) -> None:
    world = World(
        gpus=2,
        cpus=4,
        losses=tuple(Loss(at, 20.0 * seed) for at in losses),
        other=Program(30, 10.0, 5, exits=(Exit(code, 20),)),
    )
    wishes = [Wishes(stop, "j1")] if stop is not None else []
    done = simulate([("j1", spec("a")), ("j2", spec("b", after=("j1",)))], world, seed, wishes=wishes, until=5_000.0)
    for course in done.courses:
        events = [one for one in done.story if one.job == course.job.id]
        assert isinstance(events[0].event, Submitted)
        job = first(course.job.id, events[0].event, events[0].moment)
        for one in events[1:]:
            job = after(job, one.event, one.moment)
        assert job == course.job
        assert job.version == len(events)


IMPOSSIBLE: list[tuple[Job, Event]] = [
    (queued(), Submitted(spec())),
    (queued(), Placed(2, MachinePlace())),
    (starting(queued()), Placed(2, MachinePlace())),
    (queued(), Begun(1)),
    (running(queued()), Begun(2)),
    (running(queued()), Ended(0, Outcome.LOST)),
    (queued(), Ended(1, Outcome.LOST)),
    (queued(), Leaving(1, 5.0, LeaveReason.WISH)),
    (running(queued()), Again(0.0, "")),
    (running(queued()), Over(Phase.DONE, "")),
    (added(queued(), Over(Phase.STOPPED, "")), Over(Phase.STOPPED, "")),
    (added(queued(), Over(Phase.STOPPED, "")), Placed(1, MachinePlace())),
    (added(queued(), Over(Phase.STOPPED, "")), Waiting("a machine")),
    (queued(), Over(Phase.RUNNING, "")),
]


@pytest.mark.parametrize(("job", "event"), IMPOSSIBLE)
def test_what_cannot_follow_is_refused(job: Job, event: Event) -> None:
    with pytest.raises(Impossible):
        after(job, event, 1.0)


def test_what_is_told_late_of_an_attempt_that_is_over_is_refused() -> None:
    again = added(running(queued()), Ended(1, Outcome.LOST), Placed(2, MachinePlace()))
    with pytest.raises(Impossible):
        after(again, Ended(1, Outcome.DONE), 5.0)


def test_a_job_that_is_wanted_again_has_a_clean_slate_and_keeps_its_story() -> None:
    failed = added(running(queued()), Ended(1, Outcome.FAILED, 1), Over(Phase.FAILED, "exit code 1"), Wished(Wish.STOP))
    again = after(failed, Wished(Wish.RUN), 50.0)
    assert (again.phase, again.wish, again.ended, again.reason) == (Phase.QUEUED, Wish.RUN, None, "")
    assert len(again.attempts) == 1
    assert again.counted == ()


def test_a_wish_to_run_changes_nothing_of_one_that_runs() -> None:
    job = running(queued())
    assert after(job, Wished(Wish.RUN), 5.0).phase is Phase.RUNNING
    assert after(job, Told(1, "a word"), 5.0).attempts == job.attempts


def test_an_attempt_begins_and_ends_when_it_did_and_not_when_we_saw_it() -> None:
    placed = starting(queued(), SPOT_A, at=100.0)
    ended = added(placed, Begun(1, "h", at=160.0, held=130.0), Ended(1, Outcome.DONE, 0, at=3730.0), at=9000.0)
    attempt = ended.attempts[0]
    assert (attempt.placed, attempt.held, attempt.begun, attempt.ended) == (100.0, 130.0, 160.0, 3730.0)
    assert attempt.hours(99999.0) == 1.0
    assert attempt.usd(99999.0) == pytest.approx(0.3)


def test_waiting_for_a_machine_that_never_comes_costs_nothing() -> None:
    placed = starting(queued(), STAYS)
    assert placed.usd(7200.0) == 0.0
    assert added(placed, Ended(1, Outcome.LOST), at=7200.0).usd(7200.0) == 0.0


def test_a_machine_that_is_lost_while_it_boots_is_paid_for() -> None:
    lost = added(starting(queued(), STAYS), Ended(1, Outcome.LOST, held=1800.0), at=3600.0)
    assert lost.usd(9999.0) == pytest.approx(0.5)
    assert lost.attempts[0].begun is None


def test_devices_of_our_own_count_from_when_they_are_given_out() -> None:
    assert starting(asking("j1", 1), gpus=(0,), cpus=(0,)).attempts[0].hours(3600.0) == 1.0


def test_an_attempt_is_where_its_engine_found_a_machine() -> None:
    got = added(starting(queued(), SPOT_A), Begun(1, where=STAYS))
    assert got.attempts[0].where == STAYS


def test_what_a_job_waited_for_is_forgotten_when_it_begins() -> None:
    assert added(starting(queued()), Waiting("no machine"), Begun(1)).waiting == ""
