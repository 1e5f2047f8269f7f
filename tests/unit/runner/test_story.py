"""A story is for people: words, and figures as they read them."""

from __future__ import annotations

import pytest

from chipwise.runner.events import Again, Ended, Leaving, Measured, Submitted, Waiting, Wished
from chipwise.runner.job import LeaveReason, Outcome, Spec, Wish
from chipwise.runner.story import event_sentence


def test_a_long_command_is_cut_with_a_mark() -> None:
    assert event_sentence(Submitted(Spec(("python", "x" * 500), "a"))).endswith("x…")
    assert "…" not in event_sentence(Submitted(Spec(("python", "x" * 20), "a")))


def test_where_there_is_no_command_none_is_announced() -> None:
    assert event_sentence(Submitted(Spec((), "a", owner="mia"))) == "submitted by mia"


def test_one_that_was_lost_was_last_seen_at_a_step_and_may_have_come_further() -> None:
    assert event_sentence(Ended(1, Outcome.LOST, step=876)) == "attempt 1 was lost, last seen at step 876"
    killed = Ended(1, Outcome.FAILED, 137, "killed", step=20)
    assert event_sentence(killed) == "attempt 1 failed, last seen at step 20: killed"
    assert event_sentence(Ended(1, Outcome.DONE, step=900)) == "attempt 1 is done at step 900"


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("usd", 1.778e-05, "< $0.01"),
        ("usd", 0.5312, "$0.53"),
        ("seconds", 0.0, "0 s"),
        ("seconds", 4e-5, "under 1 ms"),
        ("seconds", 3.0, "3 s"),
        ("interruptions", 2.39e-05, "0 interruptions"),
        ("interruptions", 2.0, "2 interruptions"),
    ],
)
def test_figures_are_those_that_people_read(name: str, value: float, shown: str) -> None:
    assert event_sentence(Measured({}, {name: value})) == f"measured: {shown}"
    assert event_sentence(Measured({name: value}, {name: 1})).endswith(f"({shown.removesuffix(' interruptions')} predicted)")


def test_a_story_says_that_there_was_no_time_to_save() -> None:
    assert event_sentence(Wished(Wish.END, "alice")) == "asked to be killed at once by alice"
    assert event_sentence(Leaving(2, 5.0, LeaveReason.END, "requested by its owner")) == (
        "attempt 2 is killed at once, without time to save: requested by its owner"
    )


def test_why_an_attempt_ended_is_told_once() -> None:
    assert event_sentence(Ended(1, Outcome.FAILED, 3, reason="exit code 3")) == "attempt 1 failed: exit code 3"
    assert event_sentence(Again(5.0, "failed: exit code 3")) == "goes back to the queue, since it failed"


def test_one_that_was_killed_is_not_said_to_have_saved() -> None:
    killed = event_sentence(Ended(1, Outcome.LEFT, 137, "killed by SIGKILL"))
    assert killed == "attempt 1 did not exit in time: killed by SIGKILL"
    assert event_sentence(Ended(1, Outcome.LEFT, 75, step=4)) == "attempt 1 saved and exited at step 4"


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("1 GPU is needed", "waits: 1 GPU is needed"),
        ("waits for make", "waits for make"),
        ("waiting: vision has 8 of 8 GPUs in use", "waits: vision has 8 of 8 GPUs in use"),
        ("waiting in queue vision: no quota", "waits in queue vision: no quota"),
        ("waiting for the scheduler", "waits for the scheduler"),
        ("", ""),
    ],
)
def test_that_it_waits_is_said_once(reason: str, said: str) -> None:
    assert event_sentence(Waiting(reason)) == said
