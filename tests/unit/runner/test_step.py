"""One decision at a time: every standing of a job against everything that an engine can say."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.observe.health.decide import Cordon
from chipwise.runner.engine import Clear, End, Leave, Order, Room, Seen, Sight, Start, State
from chipwise.runner.events import Again, Begun, Ended, Leaving, Over, Placed, Waiting, Wished, after
from chipwise.runner.job import Job, Lack, LeaveReason, Outcome, Phase, Wish
from chipwise.runner.next_machine import NO_MACHINE_S
from chipwise.runner.step import NO_PLACE, UNREAD, Act, step
from run_jobs import SPOT_A, SPOT_B, STAYS, added, asking, leaving, queued, running, spec, starting

PHASES = {
    Phase.QUEUED: queued(),
    Phase.STARTING: starting(queued()),
    Phase.RUNNING: running(queued()),
    Phase.LEAVING: leaving(running(queued()), LeaveReason.NOTICE, 60.0),
}


def see(job: Job, sight: Sight | None, now: float = 10.0, room: Room = Room()) -> Seen:  # noqa: B008
    return Seen(now, {(job.id, len(job.attempts)): sight} if sight is not None else {}, room)


def acts(job: Job, sight: Sight | None = None, now: float = 10.0, **more: Job) -> list[Act]:
    return step({job.id: job}, see(job, sight, now), now, elsewhere=more)


def act(job: Job, sight: Sight | None = None, now: float = 10.0) -> Act:
    [only] = acts(job, sight, now)
    return only


def orders(found: list[Act]) -> list[Order]:
    return [order for one in found for order in one.orders]


def stopped(job: Job) -> Job:
    return added(job, Wished(Wish.STOP))


sights = st.builds(
    Sight,
    st.sampled_from(list(State)),
    code=st.none() | st.sampled_from([0, 1, 75, 126, 137]),
    reason=st.sampled_from(["", "a reason"]),
    since=st.none() | st.just(5.0),
    until=st.none() | st.just(9.0),
    step=st.none() | st.integers(0, 5),
    leave_by=st.none() | st.just(70.0),
    held_since=st.none() | st.just(4.0),
)


@given(st.sampled_from(list(PHASES)), sights, st.booleans(), st.floats(0, 200))
def test_whatever_is_seen_the_events_follow_and_no_second_attempt_is_started(
    phase: Phase, sight: Sight, stop: bool, now: float
) -> None:
    job = stopped(PHASES[phase]) if stop else PHASES[phase]
    for one in acts(job, sight if phase.placed else None, now):
        assert one.job is job
        changed = added(job, *one.events, at=now)
        for order in one.orders:
            if isinstance(order, Start):
                assert order.key == (job.id, len(job.attempts) or 1)
                assert not stop
                assert sight.state is State.ABSENT or phase is Phase.QUEUED
                assert changed.phase is Phase.STARTING
            elif not isinstance(order, Clear | Cordon):
                assert order.job.attempts[-1].number == len(job.attempts)


@given(st.sampled_from([phase for phase in PHASES if phase.placed]), sights, st.booleans(), st.floats(0, 200))
def test_an_attempt_ends_in_the_record_only_when_nothing_of_it_runs(phase: Phase, sight: Sight, stop: bool, now: float) -> None:
    job = stopped(PHASES[phase]) if stop else PHASES[phase]
    ended = [event for one in acts(job, sight, now) for event in one.events if isinstance(event, Ended)]
    if sight.state in (State.PENDING, State.RUNNING):
        assert not ended
    if sight.state in (State.EXITED, State.LOST):
        assert len(ended) == 1


@given(sights, st.floats(0, 200))
def test_a_decision_that_was_carried_out_is_not_taken_again(sight: Sight, now: float) -> None:
    """Events are written once; only orders, which do nothing the second time, are given again."""
    for job in PHASES.values():
        changed = job
        for one in acts(job, sight if job.phase.placed else None, now):
            changed = added(changed, *one.events, at=now)
        if changed.phase is job.phase and changed.phase.placed:
            assert not [event for one in acts(changed, sight, now) for event in one.events]


def test_a_start_is_recorded_with_the_order_for_that_attempt() -> None:
    found = act(queued())
    assert isinstance(found.events[0], Placed)
    assert isinstance(found.orders[0], Start)
    assert found.orders[0].job == after(queued(), found.events[0], 10.0)


def test_a_start_that_was_recorded_and_never_ordered_is_ordered() -> None:
    found = act(PHASES[Phase.STARTING])
    assert found.events == ()
    assert found.orders == (Start(PHASES[Phase.STARTING]),)


def test_one_that_ran_and_is_absent_was_lost() -> None:
    job = added(PHASES[Phase.RUNNING], *act(PHASES[Phase.RUNNING]).events)
    assert job.attempts[-1].outcome is Outcome.LOST


def test_what_runs_has_begun_when_its_engine_says_so() -> None:
    [begun] = act(PHASES[Phase.STARTING], Sight(State.RUNNING, since=7.0, held_since=3.0, handle="h", place=STAYS)).events
    assert begun == Begun(1, "h", 7.0, 3.0, STAYS)


@pytest.mark.parametrize("phase", list(PHASES))
@pytest.mark.parametrize("state", [State.ABSENT, State.PENDING, State.RUNNING])
def test_a_stop_ends_as_stopped_exactly_once(phase: Phase, state: State) -> None:
    """Played until it is over: a program that does not heed is ended when its time is up."""
    ordered: list[Order] = []
    job, seen, now, overs = stopped(PHASES[phase]), state, 10.0, 0
    for _ in range(30):
        sight = Sight(seen, handle="h") if job.phase.placed else None
        for one in acts(job, sight, now):
            overs += sum(isinstance(event, Over) for event in one.events)
            job = added(job, *one.events, at=now)
            ordered += one.orders
            if any(isinstance(order, End) for order in one.orders):
                seen = State.EXITED
        now += 10.0
        if job.phase.over:
            break
    assert job.phase is Phase.STOPPED
    assert overs == 1
    assert not any(isinstance(order, Start) for order in ordered)
    assert step({}, Seen(now), now) == []


def test_one_that_is_asked_to_leave_is_ended_when_its_time_is_up_and_not_before() -> None:
    job = PHASES[Phase.LEAVING]
    assert isinstance(act(job, Sight(State.RUNNING), 59.0).orders[0], Leave)
    assert isinstance(act(job, Sight(State.RUNNING), 60.0).orders[0], End)


def test_a_stop_leaves_the_grace_that_was_asked_for() -> None:
    job = stopped(running(queued(wanted=spec(grace_s=45.0))))
    [event] = act(job, Sight(State.RUNNING), 100.0).events
    assert event == Leaving(1, 145.0, LeaveReason.WISH, "requested by its owner")


def test_what_only_waits_for_a_machine_is_ended_at_once() -> None:
    found = act(stopped(PHASES[Phase.STARTING]), Sight(State.PENDING))
    assert isinstance(found.events[0], Leaving)
    assert isinstance(found.orders[0], End)
    later = added(stopped(PHASES[Phase.STARTING]), *found.events)
    assert isinstance(act(later, Sight(State.PENDING)).orders[0], End)


def test_a_notice_becomes_an_order_to_leave_within_its_time() -> None:
    found = act(PHASES[Phase.RUNNING], Sight(State.RUNNING, leave_by=70.0))
    assert found.events == (Leaving(1, 70.0, LeaveReason.NOTICE, "its machine is being removed"),)
    assert found.orders == (Leave(PHASES[Phase.RUNNING], 70.0, "its machine is being removed"),)


def test_one_attempt_may_not_take_longer_than_it_may() -> None:
    job = running(queued(wanted=spec(longest_s=100.0)))
    assert acts(job, Sight(State.RUNNING), 100.0) == []
    [event] = act(job, Sight(State.RUNNING), 101.0).events
    assert isinstance(event, Leaving)
    assert event.why is LeaveReason.OVERDUE


def test_one_that_has_ended_is_not_asked_to_leave_while_what_it_made_is_looked_for_and_says_what_is_in_the_way() -> None:
    job = running(queued(wanted=spec(longest_s=100.0, budget_usd=1.0, places=(STAYS,))), STAYS)
    ended = Sight(State.RUNNING, ended=True)
    assert acts(job, ended, 9000.0) == []
    assert act(job, replace(ended, reason="no route"), 9000.0).events == (Waiting("no route"),)
    assert acts(added(job, Waiting("no route")), replace(ended, reason="no route"), 9000.0) == []


def test_the_budget_counts_what_leaving_costs() -> None:
    job = running(queued(wanted=spec(budget_usd=1.0, places=(STAYS,), grace_s=360.0)), STAYS)
    assert acts(job, Sight(State.RUNNING), 3239.0) == []
    [event] = act(job, Sight(State.RUNNING), 3240.0).events
    assert isinstance(event, Leaving)
    assert event.why is LeaveReason.BUDGET


def test_a_machine_that_boots_for_ever_spends_the_budget_too() -> None:
    job = starting(queued(wanted=spec(budget_usd=1.0, places=(STAYS,))), STAYS)
    [found] = acts(job, Sight(State.PENDING, held_since=0.0), 4000.0)
    assert isinstance(found.orders[0], End)


def test_a_spot_job_moves_when_the_deadline_comes_near() -> None:
    wanted = spec(places=(SPOT_A, STAYS), deadline=5000.0, expected_s=4000.0, predicted={"steps": 100})
    job = running(queued(wanted=wanted), SPOT_A)
    assert acts(job, Sight(State.RUNNING, step=0, saved=0), 300.0) == []
    [moved] = acts(job, Sight(State.RUNNING, step=5, saved=0), 400.0)
    assert isinstance(moved.events[0], Leaving)
    assert moved.events[0].why is LeaveReason.MOVE
    assert acts(job, Sight(State.RUNNING, step=50, saved=50), 400.0) == []  # what is saved need not be done again


def test_a_spot_machine_that_does_not_come_is_not_waited_for_beyond_the_deadline() -> None:
    wanted = spec(places=(SPOT_A, STAYS), deadline=5000.0, expected_s=4000.0)
    found = act(starting(queued(wanted=wanted), SPOT_A), Sight(State.PENDING), 450.0)
    assert isinstance(found.events[0], Leaving)
    assert isinstance(found.orders[0], End)


def test_one_that_is_much_faster_than_was_thought_goes_back_to_spot() -> None:
    wanted = spec(places=(SPOT_A, STAYS), deadline=20_000.0, expected_s=15_000.0, predicted={"steps": 100})
    job = running(queued(wanted=wanted), STAYS)
    assert acts(job, Sight(State.RUNNING, step=10, saved=10), 6000.0) == []
    [found] = acts(job, Sight(State.RUNNING, step=60, saved=60), 6000.0)
    assert isinstance(found.events[0], Leaving)
    assert found.events[0].why is LeaveReason.MOVE
    assert acts(job, Sight(State.RUNNING, step=95, saved=95), 6000.0) == []  # what is left is not worth a move
    seen = replace(see(job, Sight(State.RUNNING, step=60, saved=60)), offers=(STAYS,))
    assert step({job.id: job}, seen, 6000.0) == []  # no spot machine is to be had


def test_who_got_a_machine_that_stays_for_want_of_a_spot_machine_keeps_it_where_nobody_knows_of_another() -> None:
    """It would leave, find no spot machine, get the same kind of machine again, and so on."""
    wanted = spec(places=(SPOT_A, STAYS), expected_s=50_000.0)
    job = running(queued(wanted=wanted), STAYS)
    assert acts(job, Sight(State.RUNNING), 6000.0) == []
    known = replace(see(job, Sight(State.RUNNING)), offers=(SPOT_A, STAYS))
    [found] = step({job.id: job}, known, 6000.0)
    assert isinstance(found.events[0], Leaving)


def test_who_has_a_spot_machine_keeps_it_where_no_other_is_to_be_had() -> None:
    job = running(queued(wanted=spec(places=(SPOT_A, STAYS))), SPOT_A)
    seen = replace(see(job, Sight(State.RUNNING)), offers=(STAYS,))
    assert step({job.id: job}, seen, 6000.0) == []


def test_where_no_machine_comes_another_place_is_tried() -> None:
    job = starting(queued(wanted=spec(places=(SPOT_A, SPOT_B))), SPOT_A)
    assert acts(job, Sight(State.PENDING), NO_MACHINE_S) == []
    assert isinstance(act(job, Sight(State.PENDING), NO_MACHINE_S + 1).orders[0], End)
    assert acts(job, Sight(State.PENDING, held_since=5.0), 1e6) == []  # it came, and loads its image
    only = starting(queued(wanted=spec(places=(SPOT_A,))), SPOT_A)
    assert acts(only, Sight(State.PENDING), 1e6) == []


def test_why_it_waits_is_written_when_it_changes() -> None:
    job = PHASES[Phase.STARTING]
    [event] = act(job, Sight(State.PENDING, reason="no quota")).events
    assert event == Waiting("no quota")
    assert acts(added(job, event), Sight(State.PENDING, reason="no quota")) == []


def test_a_job_for_which_there_is_no_place_says_so_once() -> None:
    job = queued(wanted=spec(places=(SPOT_A,)))
    seen = Seen(10.0, offers=())
    [found] = step({job.id: job}, seen, 10.0)
    assert found.events == (Waiting(NO_PLACE),)
    assert step({job.id: added(job, *found.events)}, seen, 10.0) == []


def test_what_is_left_of_one_that_ended_is_cleared_after_it_is_recorded() -> None:
    found = act(PHASES[Phase.RUNNING], Sight(State.EXITED, 0, handle="h"))
    assert found.orders == (Clear("h"),)
    assert isinstance(found.events[-1], Over)


def test_what_is_cleared_of_one_that_was_lost_leaves_what_the_next_attempt_needs() -> None:
    found = act(PHASES[Phase.RUNNING], Sight(State.LOST, handle="h"))
    assert found.orders == (Clear("h", goes_on=True),)
    assert isinstance(found.events[-1], Again)


def test_strays_are_cleared() -> None:
    assert orders(step({}, Seen(1.0, strays=("x", "y")), 1.0)) == [Clear("x"), Clear("y")]


# Stages


def test_a_stage_waits_for_the_one_before_wherever_that_runs() -> None:
    second = queued("second", spec("second", after=("first",)))
    before = queued("first", spec("first"))
    [unread] = acts(second)
    assert (unread.events, unread.orders) == ((Waiting(f"first, {UNREAD}", Lack.PREDECESSOR),), ())
    told = added(second, *unread.events)
    assert acts(told) == []
    assert acts(told, first=before)[0].events == (Waiting(""),), "it can be read again"
    assert acts(second, first=before) == []
    assert acts(second, first=running(before)) == []
    done = added(before, Over(Phase.DONE, ""))
    assert isinstance(orders(acts(second, first=done))[0], Start)


@pytest.mark.parametrize(("phase", "how"), [(Phase.FAILED, "failed"), (Phase.STOPPED, "was stopped")])
def test_a_stage_fails_with_the_one_before(phase: Phase, how: str) -> None:
    second = queued("second", spec("second", after=("first",)))
    before = added(queued("first", spec("prepare")), Over(phase, ""))
    [found] = acts(second, first=before)
    assert found.events == (Over(Phase.FAILED, f"prepare {how} before it (first)"),)


def test_jobs_of_elsewhere_are_neither_started_nor_ended_here() -> None:
    second = queued("second", spec("second", after=("first", "other")))
    others = {"first": queued("first"), "other": running(queued("other"))}
    assert step({"second": second}, Seen(1.0), 1.0, elsewhere=others) == []


def test_a_job_that_spent_its_budget_is_not_started_again() -> None:
    spent = added(running(queued(wanted=spec(budget_usd=0.5, places=(STAYS,))), STAYS), Ended(1, Outcome.LOST), at=3600.0)
    [found] = acts(spent, now=4000.0)
    assert isinstance(found.events[0], Over)
    assert found.events[0].phase is Phase.FAILED


def test_with_devices_of_our_own_only_what_fits_starts() -> None:
    jobs = {f"j{n}": asking(f"j{n}", 3, at=float(n)) for n in range(4)}
    found = step(jobs, Seen(10.0, room=Room(tuple(range(8)), tuple(range(8)))), 10.0)
    assert [one.job.id for one in found if one.job] == ["j0", "j1"]


@pytest.mark.parametrize(("phase", "state"), list(product(PHASES, State)))
def test_deciding_changes_nothing(phase: Phase, state: State) -> None:
    job = PHASES[phase]
    before = replace(job)
    first, second = acts(job, Sight(state)), acts(job, Sight(state))
    assert first == second
    assert job == before


@given(st.sampled_from(list(PHASES)), sights, st.booleans(), st.floats(0, 200))
def test_one_that_its_owner_ends_gets_no_grace_whatever_it_was_doing(
    phase: Phase, sight: Sight, stopped_before: bool, now: float
) -> None:
    """Also when its controller died after writing: what is recorded gives the same order again."""
    job = stopped(PHASES[phase]) if stopped_before else PHASES[phase]
    job = added(job, Wished(Wish.END))
    found = acts(job, sight if phase.placed else None, now)
    assert not [order for order in orders(found) if isinstance(order, Start | Leave)]
    if phase.placed and sight.state in (State.PENDING, State.RUNNING):
        assert orders(found) == [End(job)]
        later = added(job, *found[0].events, at=now)
        assert (later.phase, later.leaving) == (Phase.LEAVING, LeaveReason.END)
        assert later.leave_by is not None
        assert later.leave_by <= now
        again = acts(later, sight, now)
        assert orders(again) == [End(later)]
        assert not [event for one in again for event in one.events], "it is told once"
        over = added(later, *act(later, Sight(State.EXITED, 137), now + 1.0).events, at=now + 1.0)
        assert over.phase is Phase.STOPPED
    else:
        assert added(job, *found[0].events, at=now).phase.over


def test_one_that_waits_is_over_at_once_when_its_owner_ends_it() -> None:
    found = act(added(queued(), Wished(Wish.END)))
    assert found.events == (Over(Phase.STOPPED, "on request"),)
