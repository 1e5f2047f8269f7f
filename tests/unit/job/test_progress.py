"""How fast a job is: steps per second once it is warm."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import chipwise.job as job
from chipwise.errors import InvalidSettings
from chipwise.job import progress
from chipwise.job.checkpoints import Checkpoints


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


# In a pod


@pytest.fixture
def message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that a kubelet makes for a container, and mounts at /dev/termination-log."""
    path = tmp_path / "termination-log"
    path.touch()
    monkeypatch.setenv("CHIPWISE_TERMINATION_MESSAGE", str(path))
    monkeypatch.setenv("CHIPWISE_ATTEMPT", "2")
    return path


def test_the_newest_is_written_in_place_and_fits_into_what_a_kubelet_reads(clock: Clock, message: Path) -> None:
    message.write_text("what an earlier run left\n" * 400)
    file = message.stat().st_ino
    told = progress.Progress(10**15, 0, 0)
    for step in (1, 10**15, 2):
        told.tell(step, step, 1 / 3, now=True)
        assert message.stat().st_size == 512
        found = json.loads(message.read_text())
        assert (found["step"], found["saved_step"], found["attempt"]) == (step, step, 2)
    assert message.stat().st_ino == file, "a mount cannot be renamed over"
    assert all(one is None or isinstance(one, int | float) for one in found.values()), "only numbers: no secret gets in"


def test_only_rank_0_writes_it(message: Path) -> None:
    progress.Progress(None, 0, 1).tell(3, 3, None, now=True)
    assert message.read_text() == ""


def test_an_error_within_a_step_leaves_the_step_it_was_in(message: Path, tmp_path: Path) -> None:
    def train() -> None:
        kept = Checkpoints(tmp_path / "kept")
        for step in job.steps({"n": 0}, total=9, every=2, checkpoints=kept):
            kept.flush()  # a save that comes while another is under way is left out
            if step == 5:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()
    found = json.loads(message.read_text())
    assert (found["step"], found["saved_step"]) == (5, 4)
    for step in job.steps({"n": 0}, total=9, every=2, directory=tmp_path / "kept"):
        assert step >= 4
    assert json.loads(message.read_text())["step"] == 9


@pytest.mark.parametrize("what", ["nothing", "a folder", "a pipe", "read-only"])
def test_what_cannot_be_written_disturbs_nobody(
    message: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    if what == "read-only":
        monkeypatch.setenv("CHIPWISE_TERMINATION_MESSAGE", "/proc/self/status")
    else:
        message.unlink()
        if what == "a folder":
            message.mkdir()
        elif what == "a pipe":  # nobody reads it, and opening it would wait for ever
            os.mkfifo(message)
    assert len(list(job.steps({"n": 0}, total=5, every=1, directory=tmp_path / "kept"))) == 5
    assert len([one for one in caplog.records if "cannot be reported" in one.message]) == 1


def test_whoever_is_killed_at_any_moment_leaves_a_message_that_is_whole(message: Path) -> None:
    """What the file holds between any two calls of the system, as a kubelet would read it then."""
    told = progress.Progress(None, 0, 0)
    told.tell(1, None, None, now=True)
    seen: list[str] = []
    real = {name: getattr(os, name) for name in ("open", "pwrite", "ftruncate", "close")}

    def after(name: str) -> Callable[..., object]:
        def call(*words: object) -> object:
            result = real[name](*words)
            seen.append(message.read_bytes().decode())
            return result

        return call

    with pytest.MonkeyPatch.context() as patched:
        for name in real:
            patched.setattr(os, name, after(name))
        told.tell(2, None, None, now=True)
    assert [json.loads(one)["step"] for one in seen] == [1, 2, 2, 2]


def test_each_checkpoint_is_told_at_once_since_whoever_is_killed_tells_nothing_more(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first attempt that was killed within its first second was said to go on from its first checkpoint."""
    monkeypatch.setenv("CHIPWISE_RUN_DIR", str(tmp_path))
    told = progress.Progress(None, 0, 0)
    for step in range(1, 24):
        clock.now += 0.01
        told.tell(step, step // 5 * 5 or None, 0.001)
    written = json.loads((tmp_path / "progress.json").read_text())
    assert (written["step"], written["saved_step"]) == (20, 20)


KILLED_IN_THE_STEP_AFTER = """
for step in job.steps({"n": 0}, total=9, every=2, directory=place):
    if step == 2:
        until_there(), os.kill(os.getpid(), signal.SIGKILL)
"""
KILLED_AFTER_A_SAVE_BY_HAND = """
job.Checkpoints(place).save(2, {"n": 0}, wait=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
PREPARED = """
import os, pathlib, signal, sys, time
import chipwise.job as job
place = pathlib.Path(sys.argv[1])
def until_there():
    while not list(place.glob("*.manifest.json")):
        time.sleep(0.01)
    time.sleep(0.5)  # the manifest is there a moment before its report
"""


@pytest.mark.parametrize(
    ("program", "step"),
    [(KILLED_IN_THE_STEP_AFTER, 2), (KILLED_AFTER_A_SAVE_BY_HAND, None)],
    ids=["in the next step", "by hand"],
)
def test_a_checkpoint_is_reported_when_it_is_committed_and_not_a_step_later(
    tmp_path: Path, program: str, step: int | None
) -> None:
    """Whoever saves by hand reports no step: such programs end with 0 also when they were asked to save and go."""
    command = [sys.executable, "-c", PREPARED + program, str(tmp_path / "kept")]
    ended = subprocess.run(
        command, env={**os.environ, "CHIPWISE_RUN_DIR": str(tmp_path)}, timeout=60, capture_output=True, text=True
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    written = json.loads((tmp_path / "progress.json").read_text())
    assert (written["saved_step"], written["step"]) == (2, step)


def test_saves_by_hand_beside_a_loop_do_not_replace_what_the_loop_reports(tmp_path: Path, message: Path) -> None:
    best = Checkpoints(tmp_path / "best")
    for step in job.steps({"n": 0}, total=5, every=2, directory=tmp_path / "kept"):
        best.save(100 + step, {"n": 0}, wait=True)
    best.save(200, {"n": 0}, wait=True)
    found = json.loads(message.read_text())
    assert (found["step"], found["saved_step"]) == (5, 5)
    best.close()


LOADS_BY_HAND = "found = job.Checkpoints(place).load(); os._exit(0)"
LOADS_IN_A_LOOP = """
for step in job.steps({"n": 0}, total=9, every=1, directory=place):
    if step > 4:
        time.sleep(1.1)
    if step == 6:
        os._exit(0)
"""


@pytest.mark.parametrize("program", [LOADS_BY_HAND, LOADS_IN_A_LOOP], ids=["by hand", "loop"])
@pytest.mark.parametrize("harm", ["none", "damaged", "removed"])
def test_the_checkpoint_that_was_really_loaded_is_told(tmp_path: Path, program: str, harm: str) -> None:
    """Who watches expects the newest that was saved, which may be damaged or gone."""
    place = tmp_path / "kept"
    with Checkpoints(place) as kept:
        for step in (3, 4):
            kept.save(step, {"n": 0}, wait=True)
    if harm == "removed":
        shutil.rmtree(place)
    if harm == "damaged":
        [newest] = [one for one in place.glob("*.manifest.json") if "4" in one.name.split(".")[0]]
        newest.write_bytes(b"")
    command = [sys.executable, "-c", PREPARED + program, str(place)]
    subprocess.run(command, env={**os.environ, "CHIPWISE_RUN_DIR": str(tmp_path)}, timeout=60, check=True)
    written = json.loads((tmp_path / "progress.json").read_text())
    assert written["resumed_step"] == {"none": 4, "damaged": 3, "removed": 0}[harm]
