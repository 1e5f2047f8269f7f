"""Whole lives of jobs on the simulated engine: spot losses, deadlines, budgets, queues, stages. Nothing sleeps."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.adapters.engines.simulated.play import Play, Played, Wishes, played, simulate, world_of
from chipwise.adapters.engines.simulated.world import Exit, Fails, Loss, Outage, Pool, Program, World
from chipwise.catalog.offer import Purchase
from chipwise.runner.events import Placed
from chipwise.runner.job import Job, MachinePlace, Needs, Outcome, Phase, Spec, Wish
from chipwise.runner.queue import Rules, Share
from chipwise.views.played import lines, view
from command import Chipwise
from effort import cases
from played_pipeline import PIPELINE
from run_jobs import SPOT_A, SPOT_B, STAYS, shared_devices, spec, twice_at_once

HOUR = 3600.0
HOURLONG = Program(360, 10.0, 30)  # saves every five minutes


def one(wanted: Spec, world: World, seed: int = 0, **more: object) -> tuple[Job, Played]:
    done = simulate([("j1", wanted)], world, seed, **more)  # type: ignore[arg-type]
    return done.courses[0].job, done


def pools(*losing: Pool, rate: float = 0.0) -> World:
    spot = losing or (Pool(SPOT_A, interruptions_per_hour=rate), Pool(SPOT_B, interruptions_per_hour=rate))
    return World((*spot, Pool(STAYS)), other=HOURLONG)


on_spot = spec(places=(SPOT_A, SPOT_B, STAYS), expected_s=HOUR, predicted={"steps": 360})


# Spot, and what is lost with it


def test_a_job_with_ample_time_runs_on_spot_alone() -> None:
    job, done = one(replace(on_spot, deadline=5 * HOUR), pools())
    assert job.phase is Phase.DONE
    assert set(done.hours) == {Purchase.SPOT}


def test_a_notice_costs_no_work_and_a_loss_without_one_what_was_not_saved() -> None:
    _, warned = one(on_spot, replace(pools(), losses=(Loss(1000.0, 120.0),)))
    assert warned.interruptions == 1
    assert warned.lost_work_s == 0.0
    _, sudden = one(on_spot, replace(pools(), losses=(Loss(1000.0),)))
    assert 0.0 < sudden.lost_work_s <= 300.0


@settings(max_examples=cases(40))
@given(st.lists(st.tuples(st.floats(0, 2 * HOUR), st.sampled_from([0.0, 20.0, 120.0])), max_size=6), st.booleans())
def test_no_step_is_lost_beyond_the_last_checkpoint_and_none_after_it_done_twice(
    script: list[tuple[float, float]], heeds: bool
) -> None:
    world = replace(pools(), losses=tuple(Loss(at, notice) for at, notice in script), other=replace(HOURLONG, heeds=heeds))
    play = Play(world)
    play.submit([("j1", on_spot)])
    for _ in play.turns(10 * HOUR):
        pass
    done, stays = played(play), [stay for stay in play.engine.history if stay.reached]
    assert done.courses[0].job.phase is Phase.DONE
    assert twice_at_once(play.engine.history) == []
    for before, then in pairwise(stays):
        assert then.first == before.saved, "it goes on from what was saved"
        assert before.reached - before.saved <= HOURLONG.save_every
    assert stays[-1].reached == 360


def test_a_job_lost_twice_moves_to_another_zone() -> None:
    job, _ = one(on_spot, replace(pools(), losses=tuple(Loss(at, zone="eu-west-1a") for at in (500.0, 1000.0, 1500.0))))
    assert [attempt.where.zone for attempt in job.attempts] == ["eu-west-1a", "eu-west-1a", "eu-west-1b"]


def test_a_zone_without_machines_is_left_for_another() -> None:
    job, done = one(on_spot, pools(Pool(SPOT_A, machines=0), Pool(SPOT_B)))
    assert job.phase is Phase.DONE
    assert [attempt.where.zone for attempt in job.attempts] == ["eu-west-1a", "eu-west-1b"]
    assert done.usd == pytest.approx(0.4, rel=0.05)


def test_where_an_engine_tells_what_can_be_had_a_job_takes_that_and_goes_to_spot_when_it_comes_back() -> None:
    shut = ((0.0, 1500.0),)
    spot = (Pool(SPOT_A, closed=shut), Pool(SPOT_B, closed=shut))
    world = World((*spot, Pool(STAYS)), other=Program(1440, 10.0, 30), tells_offers=True)
    job, done = one(replace(on_spot, expected_s=4 * HOUR, predicted={"steps": 1440}), world)
    assert job.phase is Phase.DONE
    assert [attempt.where.purchase for attempt in job.attempts] == [Purchase.ON_DEMAND, Purchase.SPOT]
    assert done.lost_work_s == 0.0


def test_a_supervisor_that_is_gone_is_not_taken_for_gone_processes() -> None:
    world = World(other=HOURLONG, losses=(Loss(1000.0, 200.0, announced=False),))
    job, _ = one(spec(), world)
    assert [attempt.outcome for attempt in job.attempts] == [Outcome.LOST, Outcome.DONE]
    assert job.attempts[1].placed >= 1200.0


# Deadlines


@settings(max_examples=cases(60))
@given(
    losses=st.lists(st.tuples(st.floats(0, 3 * HOUR), st.sampled_from([0.0, 30.0, 120.0])), max_size=12),
    closed=st.lists(st.tuples(st.floats(0, 2 * HOUR), st.floats(60, HOUR)), max_size=3),
    slack_s=st.floats(120, 2 * HOUR),
    rate=st.sampled_from([0.0, 2.0, 10.0]),
    tells=st.booleans(),
    heeds=st.booleans(),
    seed=st.integers(0, 99),
)
def test_never_late_is_never_late_when_the_time_on_machines_that_stay_fits(
    losses: list[tuple[float, float]],
    closed: list[tuple[float, float]],
    slack_s: float,
    rate: float,
    tells: bool,
    heeds: bool,
    seed: int,
) -> None:
    """Spot machines go whenever they like and may not come at all; machines on demand stay, and come within a minute."""
    shut = tuple((since, since + lasts) for since, lasts in closed)
    spot = tuple(Pool(where, interruptions_per_hour=rate, closed=shut) for where in (SPOT_A, SPOT_B))
    world = World(
        (*spot, Pool(STAYS)),
        losses=tuple(Loss(at, notice, zone=zone) for at, notice in losses for zone in ("eu-west-1b",)),
        other=replace(HOURLONG, tells=tells, heeds=heeds, load_s=20.0),
    )
    job, done = one(replace(on_spot, deadline=HOUR + slack_s, grace_s=30.0), world, seed)
    assert job.phase is Phase.DONE
    assert done.late == ()


def test_a_deadline_that_leaves_no_slack_is_kept_on_demand_from_the_start() -> None:
    job, done = one(replace(on_spot, deadline=HOUR + 400.0), pools(rate=5.0))
    assert set(done.hours) == {Purchase.ON_DEMAND}
    assert done.late == ()
    assert len(job.attempts) == 1


def test_much_slack_makes_it_cheaper() -> None:
    def usd(hours: float) -> float:
        return sum(one(replace(on_spot, deadline=hours * HOUR), pools(rate=3.0), seed)[1].usd for seed in range(5))

    assert usd(6.0) <= usd(1.3) < usd(1.1)


def test_what_comes_too_late_is_said() -> None:
    _, done = one(replace(on_spot, deadline=0.5 * HOUR), pools())
    assert len(done.late) == 1
    assert "after its deadline" in "\n".join(lines(done))


# Money


@settings(max_examples=cases(40))
@given(st.floats(0.05, 0.9), st.booleans(), st.sampled_from([10.0, 30.0]), st.lists(st.floats(0, HOUR), max_size=4))
def test_a_budget_is_never_exceeded_by_more_than_a_tick_and_the_grace(
    budget: float, heeds: bool, tick_s: float, losses: list[float]
) -> None:
    world = World((Pool(STAYS),), other=replace(HOURLONG, heeds=heeds), losses=tuple(map(Loss, losses)))
    job, done = one(spec(places=(STAYS,), budget_usd=budget, grace_s=30.0), world, tick_s=tick_s)
    assert job.phase is Phase.FAILED
    assert done.usd <= budget + (tick_s + 30.0) / HOUR + 1e-9
    assert done.usd >= budget - (30.0 + 2 * tick_s + 60.0) / HOUR
    assert "allowed" in job.reason or "are spent" in job.reason


def test_hours_and_money_are_told_by_purchase_option() -> None:
    world = replace(pools(), losses=tuple(Loss(at) for at in (900.0, 1800.0)))
    _, done = one(replace(on_spot, deadline=HOUR + 1000.0), world)
    assert set(done.hours) == {Purchase.SPOT, Purchase.ON_DEMAND}
    assert done.usd == pytest.approx(done.courses[0].job.usd(done.until))


# Bugs


def test_a_bug_ends_after_three_tries_and_a_missing_command_after_one() -> None:
    job, _ = one(spec(), World(other=replace(HOURLONG, exits=(Exit(1, 100),))))
    assert job.phase is Phase.FAILED
    assert len(job.attempts) == 3
    job, _ = one(spec(), World(other=replace(HOURLONG, exits=(Exit(127),))))
    assert job.phase is Phase.FAILED
    assert len(job.attempts) == 1


def test_a_failure_that_happens_once_is_survived() -> None:
    job, _ = one(spec(), World(other=replace(HOURLONG, exits=(Exit(1, 100, attempts=frozenset({1})),))))
    assert job.phase is Phase.DONE
    assert job.attempts[1].step == 360


def test_engines_that_do_not_answer_delay_and_lose_nothing() -> None:
    outages = (Outage(30.0, 300.0), Outage(600.0, 900.0, Fails.DO), Outage(1200.0, 1500.0, Fails.ANSWER))
    job, done = one(on_spot, replace(pools(rate=2.0), outages=outages))
    assert job.phase is Phase.DONE
    assert done.trouble


# Stops


@pytest.mark.parametrize("at", [0.0, 30.0, 60.0, 90.0, 1000.0, 1040.0])
def test_a_stop_at_any_time_ends_as_stopped(at: float) -> None:
    world = replace(pools(), losses=(Loss(1000.0, 120.0),), other=replace(HOURLONG, save_s=60.0))
    play = Play(world, wishes=[Wishes(at, "j1")])
    play.submit([("j1", on_spot)])
    for _ in play.turns(3 * HOUR):
        pass
    [course] = played(play).courses
    assert course.job.phase is Phase.STOPPED
    assert not any(stay.lives for stay in play.engine.history)
    assert play.engine.look([], play.now + 1.0).strays == ()


def test_one_that_is_wanted_again_goes_on_from_where_it_was() -> None:
    wishes = [Wishes(1000.0, "j1"), Wishes(2000.0, "j1", Wish.RUN)]
    job, done = one(on_spot, pools(), wishes=wishes)
    assert job.phase is Phase.DONE
    assert done.lost_work_s == 0.0
    assert done.until < 2000.0 + HOUR


# Queues and stages


def test_a_queue_of_many_is_served_without_sharing_a_device_or_breaking_a_quota() -> None:
    rules = Rules({"a": Share(gpus=4)})
    play = Play(World(gpus=8, cpus=16, other=Program(6, 10.0)), rules, tick_s=10.0)
    play.submit([(f"j{n:02}", spec(f"t{n}", needs=Needs(1 + n % 4, 1), team="ab"[n % 2])) for n in range(40)])
    for _ in play.turns(HOUR):
        stays = [stay for stay in play.engine.history if stay.lives and stay.attempt.devices]
        held = [len(stay.attempt.devices) for stay in stays if int(stay.job[1:]) % 2 == 0]
        assert sum(held) <= 4
    assert played(play).is_over
    assert shared_devices(play.engine.history) == []


def test_stages_run_one_after_the_other() -> None:
    specs = [("c", spec("c", after=("a", "b"))), ("a", spec("a")), ("b", spec("b", after=("a",)))]
    done = simulate(specs, World(other=Program(6, 10.0)))
    placed = [happened.job for happened in done.story if isinstance(happened.event, Placed)]
    assert placed == ["a", "b", "c"]
    assert done.is_over


def test_what_can_never_start_does_not_hold_up_the_play() -> None:
    done = simulate([("j1", spec(needs=Needs(9, 1)))], World(gpus=8, cpus=8))
    assert not done.is_over
    assert "1 job would not have finished" in lines(done)[-1]


# The play itself


@given(st.integers(0, 5))
@settings(max_examples=cases(6))
def test_the_same_seed_gives_the_same_play(seed: int) -> None:
    assert one(on_spot, pools(rate=3.0), seed) == one(on_spot, pools(rate=3.0), seed)


def test_another_seed_gives_another_play() -> None:
    assert len({one(on_spot, pools(rate=3.0), seed)[1].until for seed in range(6)}) > 1


def test_interruptions_come_at_their_rate() -> None:
    total = [one(replace(on_spot, places=(SPOT_A,)), pools(rate=1.0), seed)[1] for seed in range(60)]
    hours = sum(done.hours[Purchase.SPOT] for done in total)
    assert sum(done.interruptions for done in total) / hours == pytest.approx(1.0, rel=0.3)


def test_a_world_is_made_of_what_the_jobs_say() -> None:
    wanted = replace(on_spot, interruptions_per_hour=2.0, checkpoints="s3://bucket/run")
    world = world_of([wanted])
    assert {pool.place: pool.interruptions_per_hour for pool in world.pools} == {SPOT_A: 2.0, SPOT_B: 2.0, STAYS: 0.0}
    assert world.program("train").finish_s(0) == pytest.approx(HOUR)
    done = simulate([("j1", wanted)])
    assert done.is_over
    assert world_of([spec(needs=Needs(2, 4))]).gpus == 2


def test_a_play_is_told_in_words_and_values() -> None:
    _, done = one(replace(on_spot, deadline=3 * HOUR), replace(pools(), losses=(Loss(1000.0, 120.0),)))
    text = "\n".join(lines(done))
    assert "attempt 1 on 1 x aws g6.xlarge in eu-west-1a, spot" in text
    assert "1 interruption, 0 s of work repeated" in text
    assert "before its deadline" in text
    assert "Machine-hours: 1." in text
    shown = view(done)
    assert shown["over"] is True
    assert shown["usd"] == pytest.approx(done.usd, abs=1e-3)


def test_a_place_that_the_world_does_not_describe_always_has_a_machine() -> None:
    unknown = MachinePlace(Purchase.ON_DEMAND, "gcp", "x", "y", "a3", 5.0)
    assert one(spec(places=(unknown,)), World(other=Program(6, 10.0)))[0].phase is Phase.DONE


# What nobody says is not told


def test_a_workload_is_played_with_its_own_steps_and_one_start(chipwise: Chipwise, tmp_path: Path) -> None:
    text = "kind: hpc\nname: h\nsteps: 300\nflop_per_step: 2TFLOP\nbytes_per_step: 100GB\nprogram: {command: [python, h.py]}\n"
    (tmp_path / "h.yaml").write_text(text)
    done = chipwise("run", "--simulate", "h.yaml", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    told = [event["text"] for event in done.json["story"]]
    assert "attempt 1 is done at step 300" in told
    [compared] = [line for line in told if "predicted" in line]
    assert compared.startswith("simulated: ")
    assert "measured" not in compared
    took, thought = re.findall(r"([\d.]+) (?:min|h)\b", compared)[:2]
    assert float(took) == pytest.approx(float(thought), rel=0.15), "within a tick"


SPOT_ONLY = """kind: train
name: tt
model: llama-3.1-8b
tokens: 5B tokens
sequence_length: 4096
batch_tokens: 1M tokens
checkpoint_every: 30min
goals: {deadline: 14h, objective: cost}
limits: {clouds: [aws], interruptible: true}
program: {command: [python, train.py]}
"""


def test_a_machine_costs_what_its_offer_says_and_the_wait_for_it_nothing(chipwise: Chipwise, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(SPOT_ONLY)
    best = chipwise("plan", "t.yaml", "--json", cwd=tmp_path).json["winner"]
    assert (best["purchase"], best["first_wait_s"] > 600) == ("spot", True)
    done = chipwise("run", "--simulate", "t.yaml", "--json", cwd=tmp_path)
    assert done.json["usd"] == pytest.approx(done.json["hours"]["spot"] * best["usd_per_machine_hour"], rel=1e-3)
    assert done.json["hours"]["spot"] < (best["seconds"]["value"] - best["first_wait_s"]) / 3600 * best["machines"] * 1.02
    assert any("of waiting for them, which costs nothing" in line for line in done.json["not_played"])


def test_a_command_of_unknown_length_says_what_was_assumed_and_tells_no_steps(chipwise: Chipwise) -> None:
    done = chipwise("run", "--simulate", "--", "true")
    assert done.out.startswith("The duration of true is not known: an hour is assumed")
    assert "step" not in done.out
    given = chipwise("run", "--simulate", "--expected", "10m", "--", "true")
    assert "assumed" not in given.out


def test_work_that_is_done_again_is_counted_where_no_step_is_told() -> None:
    world = replace(pools(), losses=(Loss(1000.0),), other=replace(HOURLONG, tells=False))
    _, done = one(on_spot, world)
    assert 0.0 < done.lost_work_s <= 300.0


def test_a_long_line_of_a_story_goes_on_under_itself(chipwise: Chipwise) -> None:
    done = chipwise("run", "--simulate", "--expected", "2h", "--", "true", *("word" for _ in range(30)))
    first, more = done.out.splitlines()[:2]
    assert more.startswith(" " * first.index("submitted") + "word")


def test_a_pipeline_of_which_a_stage_fits_nowhere_says_so(chipwise: Chipwise, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE + "limits: {clouds: [ovh], chips: [tpu-v5e]}\n")
    done = chipwise("run", "--simulate", "p.yaml", cwd=tmp_path)
    assert done.code in (1, 2)
    assert "a bug in chipwise" not in done.err
