"""Jobs that can do with fewer workers: never more than wanted, never fewer than the least, and no going up and down."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.runner.engine import End, Leave, Room, Seen, Sight, Start, State
from chipwise.runner.events import Ended, Leaving, Measured, Placed, Waiting, after
from chipwise.runner.job import RECOVER, Job, LeaveReason, MachinePlace, Move, Needs, Outcome, Retry, Spec
from chipwise.runner.queue import Rules, Share, admit, why_waiting
from chipwise.runner.recovery import after_end
from chipwise.runner.reservation import Seat, least_gpus, limit_s
from chipwise.runner.step import Act, step
from chipwise.runner.story import event_sentence
from effort import cases
from run_jobs import added, asking, leaving, queued, running, spec, starting

ROOM = Room(tuple(range(8)), tuple(range(32)))
FOUR = Room((0, 1, 2, 3), tuple(range(8)))
RULES = Rules({"a": Share(gpus=3), "none": Share(gpus=0)})


def elastic(id: str, least: int, most: int, cpus: int = 1, at: float = 0.0, **asked: Any) -> Job:
    return queued(id, spec(id, needs=Needs(most, cpus, gpus_least=least), **asked), at)


rows = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.none() | st.integers(-1, 9),
        st.integers(1, 8),
        st.sampled_from(["a", "b", "none", ""]),
        st.integers(-1, 1),
        st.floats(0, 100),
        st.none() | st.floats(1, 1000),
    ),
    max_size=25,
)


def made(found: list[tuple[Any, ...]], prefix: str = "j") -> list[Job]:
    return [
        queued(
            f"{prefix}{at}",
            spec(f"{prefix}{at}", needs=Needs(most, cpus, gpus_least=least), team=team, priority=priority, expected_s=lasts),
            when,
        )
        for at, (most, least, cpus, team, priority, when, lasts) in enumerate(found)
    ]


def seated(seats: list[Seat], now: float = 0.0) -> list[Job]:
    return [running(seat.job, gpus=seat.gpus, cpus=seat.cpus, at=now) for seat in seats]


# Who gets how many


@settings(max_examples=cases(60))
@given(rows, rows)
def test_between_least_and_most_and_no_device_twice(before: list[tuple[Any, ...]], later: list[tuple[Any, ...]]) -> None:
    held = seated(admit(made(before), ROOM, RULES, 200.0))
    seats = admit([*held, *made(later, "later")], ROOM, RULES, 300.0)
    given_out = [one for job in [*held, *seated(seats)] for one in job.attempts[-1].devices]
    assert len(set(given_out)) == len(given_out)
    for seat in seats:
        needs = seat.job.spec.needs
        assert needs.fewest_gpus <= len(seat.gpus) <= needs.gpus
        assert len(seat.cpus) == needs.cpus
        assert bool(seat.short) == (len(seat.gpus) < needs.gpus)


@settings(max_examples=cases(60))
@given(rows)
def test_quotas_hold(found: list[tuple[Any, ...]]) -> None:
    held: Counter[str] = Counter()
    for seat in admit(made(found), ROOM, RULES, 200.0):
        held[seat.job.spec.team] += len(seat.gpus)
    assert held["a"] <= 3
    assert held["none"] == 0


@settings(max_examples=cases(60))
@given(rows, rows)
def test_where_the_least_is_the_most_all_is_as_if_nobody_had_said_it(
    before: list[tuple[Any, ...]], later: list[tuple[Any, ...]]
) -> None:
    def both(found: list[tuple[Any, ...]], prefix: str) -> tuple[list[Job], list[Job]]:
        exact = [
            replace(job, spec=replace(job.spec, needs=replace(job.spec.needs, gpus_least=None))) for job in made(found, prefix)
        ]
        said = [
            replace(job, spec=replace(job.spec, needs=replace(job.spec.needs, gpus_least=job.spec.needs.gpus))) for job in exact
        ]
        return exact, said

    plain, said = both(before, "j"), both(later, "later")
    found = []
    for which in (0, 1):
        held = seated(admit(plain[which], ROOM, RULES, 200.0))
        seats = admit([*held, *said[which]], ROOM, RULES, 300.0)
        found.append([(seat.job.id, seat.gpus, seat.cpus, seat.short) for seat in seats])
    assert found[0] == found[1]


@settings(max_examples=cases(40))
@given(rows)
def test_one_that_can_do_with_fewer_never_waits_where_an_exact_one_of_its_least_would_start(
    found: list[tuple[Any, ...]],
) -> None:
    """Alone in the room: whether it starts is decided by the least, how large by the most."""
    for job in made(found):
        least = replace(
            job, spec=replace(job.spec, needs=replace(job.spec.needs, gpus=job.spec.needs.fewest_gpus, gpus_least=None))
        )
        assert len(admit([job], ROOM, RULES, 200.0)) == len(admit([least], ROOM, RULES, 200.0))


def test_it_takes_what_is_free_and_says_who_has_the_rest() -> None:
    other = running(asking("other", 2), gpus=(0, 1), cpus=(0,))
    [seat] = admit([other, elastic("wide", 2, 4)], FOUR, Rules(), 0.0)
    assert seat.gpus == (2, 3)
    assert seat.short == "starts with 2 of 4 GPUs: the other 2 are in use by other"
    [alone] = admit([elastic("wide", 2, 4)], FOUR, Rules(), 0.0)
    assert (alone.gpus, alone.short) == ((0, 1, 2, 3), "")


def test_its_team_may_hold_no_more_and_that_is_what_is_said() -> None:
    [seat] = admit([elastic("wide", 2, 4, team="a")], FOUR, RULES, 0.0)
    assert len(seat.gpus) == 3
    assert seat.short == "starts with 3 of 4 GPUs: the other is more than team a may use now"


def test_below_its_least_it_waits_and_says_what_it_needs() -> None:
    other = running(asking("other", 3), gpus=(0, 1, 2), cpus=(0,))
    wide = elastic("wide", 2, 4)
    assert admit([other, wide], FOUR, Rules(), 0.0) == []
    assert why_waiting(wide, [other, wide], FOUR, Rules(), 0.0) == "2 GPUs are needed, and 1 of 4 is free"


def test_what_is_kept_for_one_that_waits_is_not_taken_by_one_that_could_do_without() -> None:
    """Two are free; at 100 s eight are, of which the first that waits needs seven: one that stays longer may have one."""
    long = running(asking("long", 6, expected_s=100.0), gpus=tuple(range(6)), cpus=(0,))
    big = asking("big", 7, priority=1)
    [seat] = admit([long, big, elastic("wide", 1, 4, at=1.0)], ROOM, Rules(), 0.0)
    assert (seat.job.id, len(seat.gpus)) == ("wide", 1)
    assert "the other 3 are reserved for big" in seat.short
    short = elastic("brief", 1, 2, at=1.0, expected_s=50.0)
    [brief] = admit([long, big, short], ROOM, Rules(), 0.0)
    assert len(brief.gpus) == 2


def test_on_fewer_it_is_thought_to_take_longer_so_that_nobody_behind_it_is_misled() -> None:
    wide = elastic("wide", 1, 4, expected_s=100.0)
    assert [limit_s(wide, gpus) for gpus in (None, 4, 2, 1)] == [100.0, 100.0, 200.0, 400.0]
    assert limit_s(asking("exact", 4, expected_s=100.0), 2) == 100.0
    assert limit_s(elastic("bound", 1, 4, expected_s=100.0, longest_s=150.0), 1) == 150.0


def test_after_a_loss_fewer_are_taken_only_where_that_may_be_tried() -> None:
    def lost(**asked: Any) -> Job:
        return added(running(elastic("wide", 1, 4, **asked), gpus=(0, 1, 2)), Ended(1, Outcome.LOST))

    held = running(asking("other", 3), gpus=(0, 1, 2), cpus=(0,))
    [seat] = admit([held, lost()], FOUR, Rules(), 0.0)
    assert seat.short == "continues with 1 of 4 GPUs: the other 3 are in use by other"
    kept = lost(recover=(Move.SAME,))
    assert least_gpus(kept) == 3
    assert admit([held, kept], FOUR, Rules(), 0.0) == []


# Processes


def test_processes_follow_the_gpus_where_each_has_its_own() -> None:
    assert [Needs(4, processes=4, gpus_least=1).processes_on(gpus) for gpus in (4, 3, 1)] == [4, 3, 1]
    assert [Needs(4, processes=8, gpus_least=1).processes_on(gpus) for gpus in (4, 2)] == [8, 4]
    assert [Needs(4, processes=1, gpus_least=2).processes_on(gpus) for gpus in (4, 2)] == [1, 1]
    assert [Needs(4, processes=3, gpus_least=2).processes_on(gpus) for gpus in (4, 2)] == [3, 3]
    assert Needs(4, processes=4).processes_on(0) == 4  # exactly four were asked for, and given


@given(st.integers(0, 9), st.none() | st.integers(-2, 12), st.integers(1, 9), st.integers(0, 9))
def test_there_is_always_a_process_and_the_full_number_gets_what_was_asked(
    most: int, least: int | None, each: int, has: int
) -> None:
    needs = Needs(most, processes=each, gpus_least=least)
    assert needs.processes_on(has) >= 1
    assert needs.processes_on(most) == each
    assert 0 <= needs.fewest_gpus <= most


# Growing


SAVED = Sight(State.RUNNING, since=0.0, step=8, saved=5, handle="h")


def turn(jobs: list[Job], now: float, sight: Sight = SAVED, room: Room = FOUR, rules: Rules | None = None) -> list[Act]:
    seen = Seen(now, {(job.id, len(job.attempts)): sight for job in jobs if job.phase.placed}, room)
    return step({job.id: job for job in jobs}, seen, now, rules)


def small(**asked: Any) -> Job:
    return running(elastic("wide", 2, 4, **asked), gpus=(0, 1), cpus=(0,))


def grows(found: list[Act]) -> bool:
    return any(isinstance(event, Leaving) and event.why is LeaveReason.MOVE for act in found for event in act.events)


def test_when_more_are_free_for_a_while_it_is_asked_to_leave_for_them() -> None:
    assert turn([small()], 299.0) == []
    [act] = turn([small()], 300.0)
    [event] = act.events
    assert event == Leaving(1, 330.0, LeaveReason.MOVE, "2 more GPUs are free: it continues with 4 of 4")
    assert [type(order) for order in act.orders] == [Leave]
    assert "asked to save and exit: 2 more GPUs are free" in event_sentence(event)
    gone = added(after(small(), event, 300.0), Ended(1, Outcome.LEFT, 75), at=310.0)
    [again] = turn([gone], 310.0)
    assert [order.job.attempts[-1].devices for order in again.orders if isinstance(order, Start)] == [(0, 1, 2, 3)]


def test_it_is_not_moved_where_that_would_cost_more_than_it_gives() -> None:
    unsaved = replace(SAVED, saved=None)
    assert not grows(turn([small()], 400.0, unsaved)), "it would begin anew"
    assert not grows(turn([small(recover=tuple(one for one in RECOVER if one is not Move.MORE))], 400.0)), "it may not"
    nearly = small(expected_s=1000.0, predicted={"steps": 100})
    assert not grows(turn([nearly], 400.0, replace(SAVED, saved=90))), "less is saved than a restart takes"
    assert grows(turn([nearly], 400.0))
    assert not grows(turn([small(retry=Retry(grow_after_s=1e9))], 400.0))
    assert not grows(turn([running(asking("exact", 4), gpus=(0, 1), cpus=(0,))], 400.0)), "it asked for no range"
    full = running(elastic("wide", 2, 4), gpus=(0, 1, 2, 3), cpus=(0,))
    assert not grows(turn([full], 400.0))


def test_it_does_not_take_what_others_wait_for() -> None:
    assert not grows(turn([small(), asking("waits", 3, at=5.0)], 400.0))
    later = replace(asking("backs off", 2, at=5.0), not_before=1000.0)
    assert not grows(turn([small(), later], 400.0))
    assert grows(turn([small(), asking("hopeless", 9, at=5.0)], 400.0))
    assert grows(turn([small(), asking("over quota", 1, at=5.0, team="none")], 400.0, rules=RULES))


def test_it_does_not_move_while_something_else_does() -> None:
    coming = starting(asking("coming", 1), gpus=(2,), cpus=(1,))
    assert not grows(turn([small(), coming], 400.0))
    going = leaving(running(asking("going", 1), gpus=(2,), cpus=(1,)), LeaveReason.WISH, 500.0)
    assert not grows(turn([small(), going], 400.0))
    waits = added(coming, Waiting("it starts"))
    sights = {("wide", 1): SAVED, ("coming", 1): Sight(State.PENDING, reason="it starts")}
    assert step({"wide": small(), "coming": waits}, Seen(400.0, sights, FOUR), 400.0) == [], "nothing is new, and yet it moves"


def test_of_two_that_could_grow_one_does_and_its_quota_holds() -> None:
    two = [small(), replace(running(elastic("other", 1, 4, at=1.0), gpus=(2,), cpus=(1,)), id="other")]
    assert sum(grows([act]) for act in turn(two, 400.0)) == 1
    assert not grows(turn([running(elastic("wide", 2, 4, team="a"), gpus=(0, 1, 2), cpus=(0,))], 400.0, rules=RULES))


@settings(max_examples=cases(60))
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4), st.booleans()), min_size=1, max_size=4), st.floats(0, 1000))
def test_a_move_for_more_ends_with_more_if_nobody_comes_in_between(wanted: list[tuple[int, int, bool]], now: float) -> None:
    jobs = [elastic(f"j{at}", min(least, most), most) for at, (least, most, _) in enumerate(wanted)]
    held = seated(admit(jobs, FOUR, Rules(), 0.0))
    left = [job for job, (_, _, stays) in zip(held, wanted, strict=False) if stays]
    for act in turn(left, now):
        assert act.job is not None
        if not grows([act]):
            continue
        job = added(act.job, *act.events, Ended(len(act.job.attempts), Outcome.LEFT, 75), at=now)
        rest = [one for one in left if one.id != job.id]
        [seat] = admit([*rest, job], FOUR, Rules(), now)
        assert len(act.job.attempts[-1].devices) < len(seat.gpus) <= job.spec.needs.gpus


# Machines that an engine finds


def wide(**asked: Any) -> Spec:
    return spec("wide", needs=Needs(machines=8, machines_least=2), **asked)


def test_one_that_waits_for_its_machines_in_vain_is_ended_to_try_with_fewer() -> None:
    job = added(queued(wanted=wide()), Placed(1, MachinePlace(), machines=8))
    pending = Sight(State.PENDING, reason="no machine")
    [act] = step({job.id: job}, Seen(700.0, {(job.id, 1): pending}), 700.0)
    assert [type(order) for order in act.orders] == [End]
    gone = added(job, *act.events, Ended(1, Outcome.LEFT), at=700.0)
    [again] = step({job.id: gone}, Seen(701.0), 701.0)
    [event] = again.events
    assert isinstance(event, Placed)
    assert (event.machines, event.reason) == (4, "continues with 4 of 8 machines, since no more came")


def test_an_exact_number_of_machines_is_waited_for() -> None:
    job = added(queued(wanted=spec("exact", needs=Needs(machines=8))), Placed(1, MachinePlace(), machines=8))
    assert [act for act in step({job.id: job}, Seen(7e5, {(job.id, 1): Sight(State.PENDING)}), 7e5) if act.orders] == []


# What is measured


def test_a_run_on_fewer_workers_is_not_held_against_what_was_predicted_of_all() -> None:
    job = running(elastic("wide", 2, 4, predicted={"seconds": 50.0}), gpus=(0, 1), cpus=(0,))
    done = Sight(State.EXITED, 0, since=0.0, until=100.0, step=8, rate=3.0)
    [measured] = [event for event in after_end(job, done, 100.0) if isinstance(event, Measured)]
    assert measured.measured["least_share_of_workers"] == 0.5
    assert "steps_per_s" not in measured.measured
    assert not measured.whole
    assert event_sentence(measured).startswith("measured (on fewer workers at times): 100 s")
    full = running(elastic("wide", 2, 4, predicted={"seconds": 50.0}), gpus=(0, 1, 2, 3), cpus=(0,))
    [measured] = [event for event in after_end(full, done, 100.0) if isinstance(event, Measured)]
    assert measured.whole
    assert measured.measured["steps_per_s"] == 3.0
