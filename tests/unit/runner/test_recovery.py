"""What becomes of a job whose attempt ended: its own bugs are told from lost machines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.runner.engine import Seen, Sight, State
from chipwise.runner.events import Again, Begun, Ended, Measured, Over, Told, Wished
from chipwise.runner.job import Job, LeaveReason, Outcome, Phase, Retry, Spec, Wish, Work
from chipwise.runner.recovery import LEFT, UNBEGUN, after_end
from chipwise.runner.step import step as turn
from chipwise.runner.story import event_sentence
from run_jobs import SPOT_A, added, leaving, queued, running, spec, starting

LOST = Sight(State.LOST)


def end(job: Job, sight: Sight, now: float = 10.0) -> Job:
    return added(job, *after_end(job, sight, now), at=now)


def exited(code: int, step: int | None = None, **more: object) -> Sight:
    return Sight(State.EXITED, code, step=step, **more)  # type: ignore[arg-type]


def again(job: Job, sight: Sight, times: int, lasts_s: float = 0.0) -> list[Job]:
    """The job after each of its attempts, as long as it is started again."""
    now, seen = 0.0, []
    for _ in range(times):
        now = max(now, job.not_before)
        job = end(running(job, SPOT_A, at=now), sight, now + lasts_s)
        now += lasts_s
        seen.append(job)
        if job.phase.over:
            break
    return seen


def test_exit_code_0_is_done() -> None:
    assert end(running(queued()), exited(0)).phase is Phase.DONE


def test_a_bug_is_not_started_for_ever() -> None:
    seen = again(queued(), exited(1), 50)
    assert seen[-1].phase is Phase.FAILED
    assert len(seen) == 1 + Retry().failures
    assert "exit code 1" in seen[-1].reason


def test_failures_at_one_step_end_a_job_that_may_fail_often() -> None:
    patient = queued(wanted=spec(retry=Retry(failures=1000, same_step=3)))
    seen = again(patient, exited(1, step=40), 1100)
    assert len(seen) == 4
    assert "4 times at step 40" in seen[-1].reason


def test_failures_further_on_each_time_are_not_one_bug() -> None:
    job = queued(wanted=spec(retry=Retry(failures=1000, same_step=1)))
    for step in range(20):
        job = end(running(job), exited(1, step=step))
    assert job.phase is Phase.QUEUED


def test_a_lost_machine_between_does_not_hide_a_bug() -> None:
    job = queued(wanted=spec(retry=Retry(failures=1000, same_step=2)))
    for sight in (exited(1, 7), LOST, exited(1, 7), LOST, exited(1, 7)):
        job = end(running(job), sight)
    assert job.phase is Phase.FAILED


@given(st.integers(0, 60))
def test_lost_machines_are_nobodys_fault(losses: int) -> None:
    seen = again(queued(), LOST, losses)
    assert all(job.phase is Phase.QUEUED for job in seen)


def test_losses_have_an_end_all_the_same() -> None:
    seen = again(queued(wanted=spec(retry=Retry(losses=7))), LOST, 50)
    assert len(seen) == 8
    assert seen[-1].phase is Phase.FAILED
    assert "interrupted 8 times" in seen[-1].reason


def test_machines_that_never_came_are_not_counted_as_losses() -> None:
    job = queued(wanted=spec(retry=Retry(losses=2)))
    for _ in range(20):
        job = end(leaving(starting(job, SPOT_A), LeaveReason.MOVE, 5.0), Sight(State.ABSENT))
    assert job.phase is Phase.QUEUED


@pytest.mark.parametrize("code", [126, 127])
@pytest.mark.parametrize("service", [False, True])
def test_a_command_that_cannot_be_run_is_final(code: int, service: bool) -> None:
    job = end(running(queued(wanted=spec(service=service))), exited(code))
    assert job.phase is Phase.FAILED
    assert "the command" in job.reason


def test_what_an_engine_says_of_a_start_that_it_refuses_is_the_reason() -> None:
    job = end(starting(queued()), Sight(State.EXITED, 127, "No image is called x."))
    assert job.reason == "No image is called x."


@pytest.mark.parametrize("sight", [LOST, Sight(State.ABSENT), exited(0), exited(1), exited(LEFT, 3), exited(143), exited(127)])
@pytest.mark.parametrize("why", [LeaveReason.WISH, LeaveReason.NOTICE, LeaveReason.MOVE])
def test_a_job_that_is_stopped_while_it_leaves_is_stopped_however_it_ends(sight: Sight, why: LeaveReason) -> None:
    asked = added(leaving(running(queued()), why, 30.0), Wished(Wish.STOP))
    job = end(asked, sight)
    assert job.phase is Phase.STOPPED
    assert job.attempts[-1].outcome is Outcome.STOPPED


def test_exit_code_0_of_one_that_was_asked_to_go_does_not_mean_that_its_work_is_done() -> None:
    job = end(leaving(running(queued()), LeaveReason.NOTICE, 30.0), exited(0))
    assert job.phase is Phase.QUEUED
    assert job.attempts[-1].outcome is Outcome.LEFT


def test_exit_code_0_of_one_that_tells_its_steps_means_that_its_work_is_done() -> None:
    assert end(leaving(running(queued()), LeaveReason.NOTICE, 30.0), exited(0, step=100)).phase is Phase.DONE


def test_whoever_exits_after_a_notice_that_only_its_engine_saw_has_left() -> None:
    job = end(running(queued()), exited(143, leave_by=50.0))
    assert job.attempts[-1].outcome is Outcome.LEFT


def test_a_job_that_is_wanted_again_while_it_is_stopped_goes_on() -> None:
    asked = added(leaving(running(queued()), LeaveReason.WISH, 30.0), Wished(Wish.RUN))
    assert end(asked, exited(143)).phase is Phase.QUEUED


def test_one_that_took_too_long_is_not_started_again() -> None:
    job = end(leaving(running(queued(wanted=spec(longest_s=60.0))), LeaveReason.OVERDUE, 30.0), exited(137))
    assert job.phase is Phase.FAILED
    assert "60 s" in job.reason


def test_one_that_spent_its_budget_failed_and_says_so() -> None:
    job = end(
        leaving(running(queued(wanted=spec(budget_usd=1.0)), SPOT_A), LeaveReason.BUDGET, 30.0), exited(LEFT), now=36_000.0
    )
    assert job.phase is Phase.FAILED
    assert "$3.00 spent" in job.reason


def test_waits_double_up_to_the_longest() -> None:
    seen = again(queued(wanted=spec(retry=Retry(failures=99, same_step=99))), exited(1), 12)
    waits = [job.not_before - (job.attempts[-1].ended or 0.0) for job in seen]
    assert waits == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, *[600.0] * 5]


def test_the_first_loss_costs_no_wait() -> None:
    assert end(running(queued()), LOST, now=10.0).not_before == 10.0


def test_a_loss_after_long_work_costs_no_wait_however_many_there_were() -> None:
    assert all(job.not_before <= (job.attempts[-1].ended or 0.0) for job in again(queued(), LOST, 20, lasts_s=3600.0))


def test_a_job_with_a_deadline_never_waits_for_long_after_a_loss() -> None:
    seen = again(queued(wanted=spec(deadline=1e6)), LOST, 20)
    assert max(job.not_before - (job.attempts[-1].ended or 0.0) for job in seen) <= Retry().wait_s


def test_a_service_that_ends_is_started_again_for_ever_with_longer_and_longer_waits() -> None:
    seen = again(queued(wanted=spec(service=True)), exited(0), 30)
    assert len(seen) == 30
    assert seen[-1].phase is Phase.QUEUED
    assert seen[0].waiting == "failed: a service exited"
    assert seen[-1].not_before - (seen[-1].attempts[-1].ended or 0.0) == 600.0


def test_a_service_that_was_well_for_long_is_started_again_soon() -> None:
    seen = again(queued(wanted=spec(service=True)), exited(1), 10, lasts_s=7200.0)
    assert seen[-1].not_before - (seen[-1].attempts[-1].ended or 0.0) == 5.0


def test_one_that_began_and_ended_between_two_looks_has_both_times() -> None:
    events = after_end(starting(queued()), Sight(State.EXITED, 0, since=3.0, until=7.0), 20.0)
    assert [type(one) for one in events] == [Begun, Ended, Measured, Over]
    attempt = added(starting(queued()), *events, at=20.0).attempts[0]
    assert (attempt.begun, attempt.ended) == (3.0, 7.0)


def test_a_signal_is_told_by_its_name() -> None:
    assert "TERM" in end(running(queued()), exited(143)).waiting
    assert "out-of-memory" in end(running(queued()), exited(137)).waiting


def test_want_of_memory_is_not_blamed_for_what_its_owner_or_its_time_ended() -> None:
    asked = added(running(queued()), Wished(Wish.END, "mia"))
    for job in (asked, leaving(running(queued()), LeaveReason.OVERDUE, 5.0)):
        [ended] = [one for one in after_end(job, exited(137), 10.0) if isinstance(one, Ended)]
        assert ended.reason == "killed by SIGKILL"


def test_one_failure_is_not_counted() -> None:
    assert end(running(queued(wanted=spec(retry=Retry(failures=0)))), exited(4)).reason == "exit code 4"
    assert end(running(queued(wanted=spec(retry=Retry(failures=0)))), exited(137)).reason.count("failed") == 0


def test_what_follows_an_end_is_always_one_decision() -> None:
    for sight in (LOST, exited(0), exited(1), exited(75)):
        events = after_end(running(queued()), sight, 1.0)
        assert isinstance(events[0], Ended)
        decided = [one for one in events if not isinstance(one, Ended | Measured)]
        assert len(decided) == 1
        assert isinstance(decided[0], Again | Over)


def test_what_is_done_leaves_a_measurement_beside_what_was_predicted() -> None:
    job = running(queued(wanted=spec(predicted={"seconds": 50.0})))
    [measured] = [
        one for one in after_end(job, Sight(State.EXITED, 0, since=1.0, until=41.0, step=7), 60.0) if isinstance(one, Measured)
    ]
    assert measured.predicted == {"seconds": 50.0}
    assert measured.measured["steps"] == 7
    assert "50 s predicted" in event_sentence(measured)


def measured_of(wanted: Spec, sight: Sight, stops: bool = False) -> Measured:
    job = running(queued(wanted=wanted))
    if stops:
        job = added(job, Wished(Wish.STOP))
    [found] = [one for one in after_end(job, sight, 60.0) if isinstance(one, Measured)]
    return found


def done(step: int | None, rate: float | None) -> Sight:
    return Sight(State.EXITED, 0, since=1.0, until=41.0, step=step, rate=rate)


TOKENS = Work("tokens", 1000.0, 10.0)


def test_a_speed_is_that_of_the_steps_once_they_were_warm() -> None:
    found = measured_of(spec(work=TOKENS, predicted={"throughput": 40.0, "seconds": 50.0}), done(100, 5.0))
    assert (found.measured["throughput"], found.measured["unit"], found.measured["steps_per_s"]) == (50.0, "tokens", 5.0)
    assert found.whole
    assert "50 tokens/s (40 predicted)" in event_sentence(found)


def test_a_part_of_the_work_is_not_held_against_a_prediction_of_all_of_it() -> None:
    found = measured_of(spec(work=TOKENS, predicted={"throughput": 40.0, "seconds": 50.0}), done(20, 5.0))
    assert not found.whole
    assert "(part of the work)" in event_sentence(found)
    assert "50 s predicted" not in event_sentence(found)
    assert "40 predicted" in event_sentence(found)  # its speed can be compared all the same


def test_what_tells_no_steps_has_the_speed_of_the_whole_run() -> None:
    found = measured_of(spec(work=Work("frames", 400.0)), done(None, None))
    assert found.measured["throughput"] == 400.0 / float(str(found.measured["seconds"]))


def test_one_that_was_told_to_do_fewer_steps_and_tells_none_has_no_speed() -> None:
    found = measured_of(spec(work=TOKENS, env={"CHIPWISE_STEPS": "3"}), done(None, None))
    assert (found.whole, "throughput" in found.measured) == (False, False)


def test_steps_that_were_over_before_they_were_warm_have_no_speed() -> None:
    found = measured_of(spec(work=TOKENS), done(100, None))
    assert "throughput" not in found.measured


def test_one_that_was_stopped_leaves_a_measurement_of_what_it_did() -> None:
    found = measured_of(spec(work=TOKENS), Sight(State.EXITED, 75, since=1.0, until=41.0, step=20, rate=5.0), stops=True)
    assert not found.whole
    assert found.measured["throughput"] == 50.0


def test_one_that_goes_on_is_not_measured_yet() -> None:
    job = running(queued(wanted=spec(work=TOKENS)))
    assert not [one for one in after_end(job, replace(done(5, 5.0), code=75), 60.0) if isinstance(one, Measured)]


WATCHED = {"seconds": 60.0, "devices": {"nvidia:0": {"busy": {"p50": 0.9}, "dram_active": {"p50": 0.25}}}, "energy_kwh": 0.5}


def test_what_its_devices_did_is_in_the_history_and_in_the_measurement() -> None:
    sight = replace(done(100, 5.0), watched=WATCHED)
    assert measured_of(spec(work=TOKENS), sight).measured["watched"] == WATCHED
    events = after_end(running(queued(wanted=spec(work=TOKENS))), sight, 60.0)
    assert Told(1, "its devices (median): busy 90.0%, memory bandwidth 25.0%, 0.5 kWh") in events


@pytest.mark.parametrize("watched", [{}, {**WATCHED, "seconds": 2.0}, {"seconds": "x"}, {"seconds": 60.0, "devices": []}])
def test_what_was_watched_for_a_moment_or_not_at_all_adds_no_line(watched: dict[str, object]) -> None:
    sight = replace(done(100, 5.0), watched=watched)
    events = after_end(running(queued(wanted=spec(work=TOKENS))), sight, 60.0)
    assert not [one for one in events if isinstance(one, Told)]


# Killed, with a checkpoint to go on from.

COMMAND = Retry(failures=0)  # as for a command that a person typed


def killed(step: int | None, saved: int | None) -> Sight:
    return exited(137, step, saved=saved)


def kill_at(steps: list[int | None], retry: Retry = COMMAND, saved: int | None = 1) -> Job:
    job = queued(wanted=spec(retry=retry))
    for step in steps:
        assert job.phase is Phase.QUEUED
        job = end(running(job), killed(step, saved))
    return job


def test_a_program_that_is_killed_goes_on_from_its_checkpoint() -> None:
    job = kill_at([40])
    assert job.phase is Phase.QUEUED
    assert "checkpoint: step 1" in job.waiting
    assert "SIGKILL" in job.waiting


def test_a_program_that_is_killed_and_saved_nothing_is_not_started_over() -> None:
    job = kill_at([40], saved=None)
    assert job.phase is Phase.FAILED


def test_a_program_that_is_killed_again_at_the_same_step_has_failed() -> None:
    job = kill_at([40, 40])
    assert job.phase is Phase.FAILED
    assert "2 times after step 40" in job.reason
    assert kill_at([40, 60]).phase is Phase.QUEUED
    assert kill_at([40, 60, 40]).phase is Phase.FAILED


def test_a_program_that_saves_by_hand_is_continued_as_long_as_it_saves_more() -> None:
    job = queued(wanted=spec(retry=COMMAND))
    for saved in (20, 40):
        job = end(running(job), killed(None, saved))
        assert job.phase is Phase.QUEUED
        assert f"checkpoint: step {saved}" in job.waiting
    assert end(running(job), killed(None, None)).phase is Phase.FAILED
    job = end(running(job), killed(None, 40))
    assert job.phase is Phase.FAILED
    assert "2 times after step 40" in job.reason


@given(st.integers(0, 12), st.integers(0, 5))
def test_kills_have_an_end_however_far_it_came(kills: int, failures: int) -> None:
    job = queued(wanted=spec(retry=Retry(failures=failures, kills=kills)))
    for step in range(max(kills, failures) + 1):
        assert job.phase is Phase.QUEUED
        job = end(running(job), killed(step, 0))
    assert job.phase is Phase.FAILED


def test_kills_and_failures_together_are_no_more_than_what_was_asked_for() -> None:
    """As with `--retries 2`."""
    assert kill_at([10, 20, 30], Retry(failures=2, kills=2)).phase is Phase.FAILED
    job = end(running(kill_at([10, 20], Retry(failures=2, kills=2))), exited(1, step=35, saved=30))
    assert job.phase is Phase.FAILED


def test_one_that_is_killed_is_said_to_have_been_killed() -> None:
    job = kill_at([40])
    assert event_sentence(Again(0.0, job.waiting)).startswith("goes back to the queue, since it was killed (SIGKILL)")


def test_kills_that_it_went_on_after_do_not_use_up_the_tries_for_its_own_failures() -> None:
    job = kill_at([10, 20, 30], Retry(failures=1))
    job = end(running(job), exited(1, step=35, saved=30))
    assert job.phase is Phase.QUEUED
    assert end(running(job), exited(1, step=36, saved=30)).phase is Phase.FAILED


def test_what_its_owner_or_its_time_killed_does_not_go_on() -> None:
    asked = added(running(queued(wanted=spec(retry=COMMAND))), Wished(Wish.END, "mia"))
    overdue = leaving(running(queued(wanted=spec(retry=COMMAND))), LeaveReason.OVERDUE, 5.0)
    assert end(asked, killed(4, 1)).phase is Phase.STOPPED
    assert end(overdue, killed(4, 1)).phase is Phase.FAILED


def test_other_signals_are_its_own_failures() -> None:
    assert end(running(queued(wanted=spec(retry=COMMAND))), exited(139, 4, saved=1)).phase is Phase.FAILED


def test_a_retry_of_its_owner_forgives_kills() -> None:
    job = kill_at([40, 40])
    again = added(job, Wished(Wish.RUN))
    assert again.phase is Phase.QUEUED
    assert end(running(again), killed(40, 1)).phase is Phase.QUEUED


def test_supervisors_that_end_before_they_begin_again_and_again_fail_the_job() -> None:
    job, sight = queued(), Sight(State.LOST, reason="its supervisor was killed before it started anything: ValueError")
    for now in range(20):
        job = end(starting(job, cpus=(0,), at=float(now)), sight, float(now))
        if job.phase.over:
            break
    assert job.phase is Phase.FAILED
    assert len(job.attempts) == UNBEGUN + 1
    assert job.reason == f"{sight.reason}; {UNBEGUN + 1} times in a row"


def test_machines_that_never_come_elsewhere_do_not_fail_a_job() -> None:
    job = queued()
    for now in range(20):
        job = end(starting(job, SPOT_A, at=float(now)), LOST, float(now))
    assert job.phase is Phase.QUEUED


def test_what_a_program_really_loaded_corrects_what_was_expected() -> None:
    """The newest checkpoint may be damaged or gone when the next attempt looks for it."""
    job = end(running(queued()), killed(5, 4))
    assert "continues" not in job.waiting
    assert "last reported checkpoint: step 4" in job.waiting
    job = running(job)
    for loaded, words in ((4, ""), (3, ", not of step 4"), (0, "no checkpoint was found")):
        sight = Sight(State.RUNNING, resumed=loaded)
        [act] = turn({"j1": job}, Seen(20.0, {("j1", 2): sight}), 20.0)
        [told] = act.events
        assert words in event_sentence(told)
        assert str(loaded) in event_sentence(told)
        corrected = added(job, told)
        assert corrected.attempts[-1].resumed == loaded
        assert turn({"j1": corrected}, Seen(21.0, {("j1", 2): sight}), 21.0) == [], "it is said once"


def test_what_it_loaded_is_known_though_it_was_over_between_two_looks() -> None:
    job = starting(end(running(queued()), killed(5, 4)))
    events = after_end(job, exited(0, 8, resumed=3, since=11.0), 30.0)
    assert [type(one) for one in events[:3]] == [Begun, Told, Ended]
    assert added(job, *events).attempts[-1].resumed == 3


def test_a_first_attempt_that_begins_at_the_beginning_is_no_news() -> None:
    assert not any(isinstance(one, Told) for one in after_end(running(queued()), exited(0, 8, resumed=0), 30.0))
