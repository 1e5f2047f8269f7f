"""How fast a job is: steps per second once it is warm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import chipwise.job as job
from chipwise.errors import InvalidSettings
from chipwise.job import progress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def test_steps_of_the_first_second_do_not_count(clock: Clock) -> None:
    told = progress.Progress(None, 0, 0)
    for step, took in enumerate([0.9, 0.9, *[0.1] * 50], start=1):  # it compiles in the first two
        clock.now += took
        told.count(step)
    assert told.steady == pytest.approx(10.0)


def test_two_steps_at_least_warm_it_up(clock: Clock) -> None:
    told = progress.Progress(None, 0, 0)
    for step, took in enumerate([60.0, 20.0], start=1):
        clock.now += took
        told.count(step)
    assert told.steady is None
    clock.now += 20.0
    told.count(3)
    assert told.steady == pytest.approx(0.05)


def test_what_an_attempt_before_did_does_not_count(clock: Clock) -> None:
    told = progress.Progress(1000, 900, 0)
    for step in range(901, 921):
        clock.now += 0.5
        told.count(step)
    assert told.steady == pytest.approx(2.0)


def test_what_is_saved_after_the_last_step_is_no_part_of_its_speed(clock: Clock) -> None:
    told = progress.Progress(None, 0, 0)
    for step in range(1, 31):
        clock.now += 0.1
        told.count(step)
    before = told.steady
    clock.now += 30.0
    told.tell(30, 30, 30.0, now=True)
    assert told.steady == before


def test_the_speed_is_told_to_whoever_watches(clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIPWISE_RUN_DIR", str(tmp_path))
    told = progress.Progress(None, 0, 0)
    for step in range(1, 31):
        clock.now += 0.1
        told.count(step)
        told.tell(step, None, None)
    assert json.loads((tmp_path / "progress.json").read_text())["steady"] == pytest.approx(10.0)


@pytest.mark.parametrize(("total", "most", "done"), [(10, "4", 4), (3, "4", 3), (None, "4", 4), (5, "", 5), (5, "0", 0)])
def test_a_measurement_may_ask_for_fewer_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: int | None, most: str, done: int
) -> None:
    monkeypatch.setenv("CHIPWISE_STEPS", most)
    assert list(job.steps({"n": 0}, total=total, directory=tmp_path)) == list(range(done))


@pytest.mark.parametrize("text", ["-1", "four", "1e3", "٣", "9" * 20])
def test_a_number_of_steps_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("CHIPWISE_STEPS", text)
    with pytest.raises(InvalidSettings, match="CHIPWISE_STEPS"):
        job.steps({"n": 0}, total=4, directory=tmp_path)
