"""Of the machines of an attempt some came: how long the others are waited for, and with how many it goes on."""

from __future__ import annotations

from dataclasses import replace

from chipwise.runner.engine import End, Seen, Sight, State
from chipwise.runner.events import Again, Begun, Ended, Leaving, Over, Placed, Told, Waiting, Wished
from chipwise.runner.job import Job, Lack, LeaveReason, MachinePlace, Needs, Outcome, Phase, Retry, Wish
from chipwise.runner.next_machine import choose
from chipwise.runner.policy import NeverLate
from chipwise.runner.step import step
from run_jobs import added, queued, spec

SOON = Retry(no_machine_s=60.0)


def _see(job: Job, sight: Sight) -> Seen:
    return Seen(9.0, {(job.id, len(job.attempts)): sight})


def _wide(least: int = 2) -> Job:
    needs = Needs(machines=8, machines_least=least)
    return added(
        queued(wanted=spec("wide", engine="kubernetes", needs=needs, retry=SOON)), Placed(1, MachinePlace(), machines=8)
    )


def _came(job: Job, came: int, at: float) -> Leaving | None:
    sight = Sight(State.PENDING, reason=f"{came} of 8 pods run", held_since=1.0, machines_arrived=came)
    for act in step({job.id: job}, _see(job, sight), at):
        for event in act.events:
            if isinstance(event, Leaving):
                assert isinstance(act.orders[0], End), "one that waits has nothing to save"
                return event
    return None


def test_others_are_waited_for_as_long_as_the_job_says() -> None:
    job = _wide()
    assert _came(job, 6, 59.0) is None
    found = _came(job, 6, 61.0)
    assert found is not None
    assert (found.why, found.came, found.reason) == (LeaveReason.MOVE, 6, "6 of 8 machines came in 61 s")
    assert _came(_wide(least=8), 6, 1e6) is None, "one that needs all of them waits on"


def test_the_next_attempt_has_as_many_as_came_and_never_fewer_than_it_can_do_with() -> None:
    for came, many in ((6, 6), (1, 2), (None, 4)):
        left = added(_wide(), Leaving(1, 61.0, LeaveReason.MOVE, "", came), Ended(1, Outcome.LOST), Again(62.0, ""), at=62.0)
        found = choose(left, NeverLate(), 63.0)
        assert found is not None
        assert (found.machines, found.reason) == (many, f"continues with {many} of 8 machines, since no more came")


def test_whoever_starts_it_anew_asks_for_all_again() -> None:
    fewer = added(_wide(), Ended(1, Outcome.LOST), Placed(2, MachinePlace(), machines=4), Begun(2), at=5.0)
    stopped = added(fewer, Ended(2, Outcome.STOPPED), Over(Phase.STOPPED, "on request"), Wished(Wish.RUN), at=6.0)
    found = choose(stopped, NeverLate(), 7.0)
    assert found is not None
    assert (found.machines, found.reason) == (8, "all 8 machines again")


def test_a_service_tells_why_some_of_it_does_not_serve_and_when_that_is_over() -> None:
    job = added(queued(wanted=spec("chat", engine="kubernetes", service=True)), Placed(1, MachinePlace()), Begun(1))
    [act] = step({job.id: job}, _see(job, Sight(State.RUNNING, reason="1 of 2 replicas serve")), 9.0)
    assert act.events == (Waiting("1 of 2 replicas serve"),)
    troubled = replace(job, waiting="1 of 2 replicas serve")
    [act] = step({job.id: troubled}, _see(troubled, Sight(State.RUNNING)), 9.0)
    assert act.events == (Waiting(""), Told(1, "the trouble is over: its replicas serve, or are starting"))


def test_when_a_service_answers_its_check_for_the_first_time_is_told() -> None:
    silent = "it does not pass its health check yet (http://127.0.0.1:8000/health)"
    job = added(queued(wanted=spec("chat", service=True)), Placed(1, MachinePlace()), Begun(1))
    [act] = step({job.id: job}, _see(job, Sight(State.RUNNING, reason=silent, lack=Lack.CHECK)), 9.0)
    assert act.events == (Waiting(silent, Lack.CHECK),)
    waits = added(job, *act.events)
    [act] = step({job.id: waits}, _see(waits, Sight(State.RUNNING)), 9.0)
    assert act.events == (Waiting(""), Told(1, "it passes its health check"))
