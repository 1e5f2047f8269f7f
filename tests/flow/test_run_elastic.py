"""Whole lives of jobs that move and change their size, on the simulated engine. Nothing sleeps."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.adapters.engines.simulated.play import Play, Played, played, simulate
from chipwise.adapters.engines.simulated.world import Loss, Pool, Program, World
from chipwise.catalog.offer import Purchase
from chipwise.runner.events import Leaving, Placed
from chipwise.runner.job import Job, LeaveReason, MachinePlace, Move, Needs, Outcome, Phase, Retry, Spec
from chipwise.runner.loop import Controller
from chipwise.runner.story import event_sentence
from effort import cases
from run_jobs import SPOT_A, SPOT_B, STAYS, Died, Fuse, MortalEngine, MortalRecord, shared_devices, spec, twice_at_once

HOURLONG = Program(360, 10.0, 30)  # saves every five minutes
ABROAD = replace(SPOT_A, region="us-east-1", zone="us-east-1a")
PLACES = (SPOT_A, SPOT_B, ABROAD, STAYS)


def one(wanted: Spec, world: World) -> tuple[Job, Played]:
    done = simulate([("j1", wanted)], world, 0)
    return done.courses[0].job, done


def pools(**having: int) -> World:
    named = {"a": SPOT_A, "b": SPOT_B, "abroad": ABROAD, "stays": STAYS}
    return World(tuple(Pool(where, machines=having.get(name)) for name, where in named.items()), other=HOURLONG)


def story(done: Played) -> str:
    return "\n".join(event_sentence(one.event) for one in done.story)


def sites(job: Job) -> list[MachinePlace]:
    return [replace(attempt.where, usd_per_hour=None) for attempt in job.attempts]


def bare(*where: MachinePlace) -> list[MachinePlace]:
    return [replace(one, usd_per_hour=None) for one in where]


# Where to


def test_a_lost_job_starts_at_the_same_place_first() -> None:
    job, _ = one(spec(places=PLACES), replace(pools(), losses=(Loss(1000.0),)))
    assert sites(job) == bare(SPOT_A, SPOT_A)


def test_with_another_zone_named_first_one_loss_is_enough() -> None:
    job, done = one(spec(places=PLACES, recover=(Move.ZONE, Move.SAME)), replace(pools(), losses=(Loss(1000.0),)))
    assert sites(job) == bare(SPOT_A, SPOT_B)
    assert "another zone, since eu-west-1a was lost" in story(done)


def test_with_another_region_named_first_it_leaves_the_region() -> None:
    job, done = one(spec(places=PLACES, recover=(Move.REGION, Move.SAME)), replace(pools(), losses=(Loss(1000.0),)))
    assert sites(job) == bare(SPOT_A, ABROAD)
    assert "another region, since eu-west-1a was lost" in story(done)


def test_by_default_it_goes_from_zone_to_region_to_machines_that_cost_more_and_each_is_told() -> None:
    job, done = one(spec(places=PLACES), pools(a=0, b=0, abroad=0))
    assert job.phase is Phase.DONE
    assert sites(job) == bare(SPOT_A, SPOT_B, ABROAD, STAYS)
    for told_ in (
        "another zone, since",
        "another region, since",
        "another purchase option, since no machine came in us-east-1a",
    ):
        assert told_ in story(done)


def test_without_leave_to_pay_more_it_goes_on_looking_for_spot() -> None:
    recover = (Move.SAME, Move.ZONE, Move.REGION)
    shut = Pool(SPOT_A, closed=((0.0, 5000.0),))
    world = World((shut, Pool(SPOT_B, machines=0), Pool(STAYS)), other=HOURLONG)
    job, _ = one(spec(places=(SPOT_A, SPOT_B, STAYS), recover=recover), world)
    assert job.phase is Phase.DONE
    assert {attempt.where.purchase for attempt in job.attempts} == {Purchase.SPOT}


# How many machines


def test_where_eight_machines_do_not_come_four_do_and_the_work_takes_twice_as_long() -> None:
    wanted = spec(needs=Needs(machines=8, machines_least=2), places=(SPOT_A,))
    job, done = one(wanted, World((Pool(SPOT_A, machines=5),), other=HOURLONG))
    assert [attempt.machines for attempt in job.attempts] == [8, 4]
    assert job.phase is Phase.DONE
    last = job.attempts[-1]
    assert last.ended is not None
    assert last.begun is not None
    assert last.ended - last.begun >= 2 * 3600.0
    assert "continues with 4 of 8 machines, since no more came" in story(done)


def test_after_a_loss_an_hour_later_it_asks_for_all_of_them_again() -> None:
    pool = Pool(SPOT_A, machines=8, closed=((0.0, 1100.0),))
    wanted = spec(needs=Needs(machines=8, machines_least=2), places=(SPOT_A,))
    job, _ = one(wanted, World((pool,), other=HOURLONG, losses=(Loss(5000.0, 120.0),)))
    assert [attempt.machines for attempt in job.attempts] == [8, 4, 8]
    assert job.phase is Phase.DONE


def test_a_job_that_asks_for_exactly_eight_waits_for_eight() -> None:
    job, _ = one(spec(needs=Needs(machines=8), places=(SPOT_A,)), World((Pool(SPOT_A, machines=5),), other=HOURLONG))
    assert job.phase is Phase.STARTING
    assert len(job.attempts) == 1


# How many GPUs of this machine


def own(gpus: int = 4, **more: object) -> World:
    return World(other=HOURLONG, gpus=gpus, cpus=8, **more)  # type: ignore[arg-type]


def test_it_starts_with_two_grows_to_four_when_the_other_ends_and_loses_nothing() -> None:
    other, wide = spec("other", needs=Needs(2)), spec("wide", needs=Needs(4, gpus_least=2))
    done = simulate([("a", other), ("b", wide)], own(), 0)
    first, second = (course.job for course in done.courses)
    assert [len(attempt.devices) for attempt in second.attempts] == [2, 4]
    assert [attempt.outcome for attempt in second.attempts] == [Outcome.LEFT, Outcome.DONE]
    assert first.ended is not None
    assert second.attempts[0].ended is not None
    assert first.ended <= second.attempts[0].ended <= first.ended + 60.0
    assert done.lost_work_s == 0.0
    text = story(done)
    assert "starts with 2 of 4 GPUs: the other 2 are in use by other" in text
    assert "2 more GPUs are free: it continues with 4 of 4" in text


def test_a_lost_one_goes_on_with_what_others_left_of_its_gpus_and_says_so() -> None:
    wide = spec("wide", needs=Needs(4, gpus_least=1), retry=Retry(wait_s=30.0))
    play = Play(own(losses=(Loss(1000.0, job="a"), Loss(1010.0, job="a"))))
    play.submit([("a", wide)])
    for now in play.turns(9e9):
        if now >= 1000.0 and play.record.job("b") is None:
            play.submit([("b", spec("late", needs=Needs(3), priority=1))])
    a = play.record.job("a")
    assert a is not None
    assert min(len(attempt.devices) for attempt in a.attempts) == 1
    assert a.phase is Phase.DONE
    placed = [one.event for one in play.record.events("a") if isinstance(one.event, Placed)]
    assert any("continues with 1 of 4 GPUs: the other 3 are in use by late" in one.reason for one in placed)


@settings(max_examples=cases(40), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(-1, 1), st.booleans()), min_size=1, max_size=6),
    st.lists(st.tuples(st.floats(0, 20_000), st.sampled_from([0.0, 60.0])), max_size=5),
    st.sampled_from([60.0, 300.0, 1200.0]),
)
def test_laws_of_size(jobs: list[tuple[int, int, int, bool]], losses: list[tuple[float, float]], grow_after_s: float) -> None:
    """Devices are never shared, numbers stay in their range, a job grows at most every so often, and everything gets done."""
    specs = [
        (
            f"j{at}",
            spec(
                f"j{at}",
                needs=Needs(max(one, two), gpus_least=min(one, two)),
                priority=priority,
                retry=Retry(grow_after_s=grow_after_s),
                recover=(Move.SAME, Move.MORE, *((Move.FEWER,) * fewer)),
            ),
        )
        for at, (one, two, priority, fewer) in enumerate(jobs)
    ]
    play = Play(own(losses=tuple(Loss(at, notice) for at, notice in losses)))
    play.submit(specs)
    for _ in play.turns(9e9):
        pass
    done = played(play)
    assert twice_at_once(play.engine.history) == []
    assert shared_devices(play.engine.history) == []
    for course in done.courses:
        job, needs = course.job, course.job.spec.needs
        assert job.phase is Phase.DONE
        assert all(needs.fewest_gpus <= len(attempt.devices) <= needs.gpus for attempt in job.attempts)
        moves = [
            one for one in play.record.events(job.id) if isinstance(one.event, Leaving) and one.event.why is LeaveReason.MOVE
        ]
        for move in moves:
            assert isinstance(move.event, Leaving)
            before = job.attempts[move.event.number - 1]
            assert before.begun is not None
            assert move.moment - before.begun >= grow_after_s
            later = job.attempts[move.event.number]
            alone = not any(at - 200.0 <= move.moment <= at + 200.0 for at, _ in losses)
            assert len(later.devices) > len(before.devices) or not alone


def led(
    deaths: frozenset[int], losses: list[tuple[float, float]], wanted: list[Spec], tick: float
) -> tuple[MortalRecord, MortalEngine]:
    """By one controller after another, each of which dies at its moment."""
    fuse = Fuse(deaths)
    programs = {"holder": Program(20, 5.0, 4)}
    world = World(
        programs=programs,
        other=Program(60, 5.0, 4),
        gpus=4,
        cpus=8,
        losses=tuple(Loss(at, notice) for at, notice in losses),
    )
    record, engine = MortalRecord(fuse=fuse), MortalEngine(world, fuse=fuse)
    record.submit([(one.name, one) for one in wanted], 0.0)
    controller, now, born = Controller(record, engine, "c0"), 0.0, 0
    while now < 9000.0:
        try:
            turn = controller.turn(now)
            if turn.leads and not turn.live:
                break
        except Died:
            born += 1
            controller = Controller(record, engine, f"c{born}")
        now += tick
    assert twice_at_once(engine.history) == []
    assert shared_devices(engine.history) == []
    for one in wanted:
        job = record.job(one.name)
        assert job is not None
        assert job.phase is Phase.DONE
        assert all(one.needs.fewest_gpus <= len(attempt.devices) <= one.needs.gpus for attempt in job.attempts)
        stays = [stay for stay in engine.history if stay.job == job.id and stay.reached]
        assert all(then.first == before.saved for before, then in pairwise(stays)), "no step is lost or done twice after a save"
    return record, engine


def sized(name: str, least: int, most: int) -> Spec:
    retry = Retry(wait_s=1.0, longest_wait_s=20.0, grow_after_s=30.0)
    return spec(name, needs=Needs(most, gpus_least=least), retry=retry, place="simulated")


def test_at_whichever_moment_a_controller_dies_it_starts_with_two_and_ends_with_four() -> None:
    """Also between asking it to leave for more and starting it larger: each moment once."""
    both = [sized("holder", 2, 2), sized("wide", 2, 4)]
    _, engine = led(frozenset(), [], both, 10.0)
    assert engine.fuse.moments > 30
    for moment in range(1, engine.fuse.moments + 1):
        record, _ = led(frozenset({moment}), [], both, 10.0)
        job = record.job("wide")
        assert job is not None
        assert [len(attempt.devices) for attempt in job.attempts] == [2, 4], moment


@settings(max_examples=cases(40), deadline=None)
@given(
    st.frozensets(st.integers(1, 150), max_size=15),
    st.lists(st.tuples(st.floats(0, 600), st.sampled_from([0.0, 15.0])), max_size=3),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=4),
    st.floats(3.0, 20.0),
)
def test_wherever_controllers_die_and_machines_are_lost_sizes_and_devices_are_right(
    deaths: frozenset[int], losses: list[tuple[float, float]], sizes: list[tuple[int, int]], tick: float
) -> None:
    led(deaths, losses, [sized("holder", 2, 2), *(sized(f"t{at}", min(one), max(one)) for at, one in enumerate(sizes))], tick)
