"""What is said of a job by what is seen of it, and not by what was recorded once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.runner.engine import Sight, State
from chipwise.runner.sighting import Sighting, of_sight
from run_jobs import queued, running, starting

JOB = running(queued(), at=100.0)


@pytest.mark.parametrize(
    ("sight", "sighting"),
    [
        (Sight(State.RUNNING), Sighting("running", 500.0)),
        (Sight(State.RUNNING, reason="its supervisor is gone"), Sighting("running", 500.0, "its supervisor is gone")),
        (Sight(State.LOST, until=488.0), Sighting("lost", 488.0, "process gone, seen 12 s ago")),
        (Sight(State.LOST, until=900.0), Sighting("lost", 900.0, "process gone, seen 0 s ago")),
        (Sight(State.LOST), Sighting("lost", None, "process gone")),
        (Sight(State.EXITED, 3, until=260.0), Sighting("ended", 260.0, "4 min ago with exit code 3; not recorded yet")),
        (Sight(State.PENDING), None),
        (Sight(State.PENDING, since=490.0), Sighting("starting")),
    ],
)
def test_only_what_is_alive_is_said_to_run(sight: Sight, sighting: Sighting | None) -> None:
    assert of_sight(JOB, sight, 500.0) == sighting


def test_one_that_ended_and_waits_for_the_store_of_its_output_says_so() -> None:
    waits = replace(JOB, waiting="it ended well; looks for what it made: no answer within 60 s")
    seen = of_sight(waits, Sight(State.EXITED, 0, until=260.0), 500.0)
    assert seen == Sighting("ended", 260.0, "4 min ago with exit code 0; looks for what it made: no answer within 60 s")


def test_one_that_has_not_begun_is_starting() -> None:
    assert of_sight(starting(queued()), Sight(State.PENDING), 500.0) == Sighting("starting")


def test_a_phase_that_may_have_changed_has_a_question_mark() -> None:
    assert Sighting("running", 1.0, "seen 4 min ago", is_certain=False).label == "running?"
    assert Sighting("running", 1.0).label == "running"
    assert Sighting("lost", 1.0).is_gone
