"""Saving by hand: in the background, bounded, kept, and loud when it fails."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chipwise.errors import InvalidSettings
from chipwise.job import background
from chipwise.job.checkpoints import Checkpoints
from chipwise.job.errors import CannotKeep, CannotSave
from chipwise.job.local import Files, Local
from chipwise.job.store import Buffer
from chipwise.job.tree import Snapshot


class FullDisk(Files):
    """Takes so many bytes and no more."""

    def __init__(self, room: int, number: int = errno.ENOSPC) -> None:
        self.room = room
        self.number = number

    def write(self, descriptor: int, data: Buffer) -> int:
        if self.room < len(data):
            raise OSError(self.number, os.strerror(self.number))
        self.room -= len(data)
        return super().write(descriptor, data)


class SlowDisk(Files):
    def __init__(self) -> None:
        self.may_go_on = threading.Event()

    def write(self, descriptor: int, data: Buffer) -> int:
        assert self.may_go_on.wait(20)
        return super().write(descriptor, data)


def steps_in(directory: Path) -> list[int]:
    return sorted(int(path.name[5:17]) for path in directory.glob("*.manifest.json"))


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    with Checkpoints(tmp_path) as kept:
        assert kept.load() is None
        assert kept.save(7, {"w": np.arange(5), "n": 1})
        found = kept.load()  # waits for what is being written
    assert found is not None
    assert found.step == 7
    assert found.state["w"].tolist() == [0, 1, 2, 3, 4]
    found.state["w"] += 1  # and is the caller's own


def test_training_goes_on_while_a_slow_disk_writes_and_the_snapshot_is_of_the_call(tmp_path: Path) -> None:
    disk = SlowDisk()
    kept = Checkpoints(store=Local(tmp_path, disk))
    w = np.zeros(10)
    start = time.monotonic()
    kept.save(1, {"w": w})
    w += 1
    assert time.monotonic() - start < 5
    disk.may_go_on.set()
    kept.close()
    found = Checkpoints(tmp_path).load()
    assert found is not None
    assert not found.state["w"].any()


def test_at_most_one_is_written_and_one_waits_and_others_are_skipped_with_a_count(tmp_path: Path) -> None:
    disk = SlowDisk()
    kept = Checkpoints(store=Local(tmp_path, disk), keep=9)
    taken = []
    for step in range(1, 7):
        taken.append(kept.save(step, {"w": np.zeros(10)}))
        time.sleep(0.05)
    assert taken == [True, True, False, False, False, False]
    assert kept.skipped == 4
    disk.may_go_on.set()
    kept.save(7, {"w": np.zeros(10)}, wait=True)  # one that must not be skipped waits
    kept.close()
    assert steps_in(tmp_path) == [1, 2, 7]


def test_a_skipped_save_takes_no_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from chipwise.job import tree

    made: list[int] = []
    real = tree.snapshot

    def counted(state: Any, outline: list[list[str]] | None = None) -> Snapshot:
        made.append(1)
        return real(state, outline)

    monkeypatch.setattr(tree, "snapshot", counted)
    disk = SlowDisk()
    kept = Checkpoints(store=Local(tmp_path, disk))
    for step in range(1, 7):
        kept.save(step, {"n": step})
        time.sleep(0.05)
    assert len(made) == 2
    disk.may_go_on.set()
    kept.close()


def test_a_full_disk_is_told_at_the_next_call_with_what_is_missing_and_earlier_ones_stay(tmp_path: Path) -> None:
    with Checkpoints(tmp_path) as kept:
        kept.save(1, {"w": np.ones(1000)}, wait=True)
    kept = Checkpoints(store=Local(tmp_path, FullDisk(100)))
    state = {"w": np.full(100_000, 2.0)}
    assert kept.save(2, state)
    kept._background.idle()
    with pytest.raises(CannotSave) as caught:
        kept.save(3, state)
    told = str(caught.value)
    assert "step 2 was not written" in told
    assert "800,000 bytes" in told
    assert "Earlier ones are untouched" in told
    assert "lower keep=" in told
    assert state["w"][0] == 2.0
    assert sorted(path.suffix for path in tmp_path.iterdir() if not path.name.startswith(".writer")) == [".json", ".state"]
    found = Checkpoints(tmp_path).load()
    assert found is not None
    assert found.step == 1
    kept.close()


def test_a_save_that_waits_raises_its_own_error_and_the_next_may_succeed(tmp_path: Path) -> None:
    disk = FullDisk(100, errno.EDQUOT)
    kept = Checkpoints(store=Local(tmp_path, disk))
    with pytest.raises(CannotSave, match="quota"):
        kept.save(2, {"w": np.zeros(1000)}, wait=True)
    disk.room = 1 << 20
    kept.save(3, {"w": np.zeros(1000)}, wait=True)
    kept.close()
    assert steps_in(tmp_path) == [3]


def test_close_raises_what_nobody_has_heard_yet(tmp_path: Path) -> None:
    kept = Checkpoints(store=Local(tmp_path, FullDisk(0)))
    kept.save(1, {"n": 1})
    with pytest.raises(CannotSave):
        kept.close()


def test_the_last_ones_are_kept_and_others_deleted_after_a_newer_is_committed(tmp_path: Path) -> None:
    with Checkpoints(tmp_path, keep=3) as kept:
        for step in range(1, 9):
            kept.save(step, {"n": step}, wait=True)
            assert steps_in(tmp_path) == list(range(max(1, step - 2), step + 1))
    assert len(list(tmp_path.iterdir())) == 6


def test_files_of_others_are_never_touched(tmp_path: Path) -> None:
    for name in ("notes.txt", "step-1.state", ".tmp", "model.manifest.json"):
        (tmp_path / name).write_text("mine")
    with Checkpoints(tmp_path, keep=1) as kept:
        for step in range(1, 4):
            kept.save(step, {"n": step}, wait=True)
    assert {"notes.txt", "step-1.state", ".tmp", "model.manifest.json"} <= {path.name for path in tmp_path.iterdir()}


def test_a_state_that_cannot_be_kept_is_refused_at_the_call(tmp_path: Path) -> None:
    with Checkpoints(tmp_path) as kept, pytest.raises(CannotKeep, match=r"state\.f"):
        kept.save(1, {"f": print})


def test_a_program_that_ends_without_close_still_has_what_it_saved(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = f"import chipwise.job as job; job.Checkpoints({str(tmp_path)!r}).save(5, {{'w': bytes(10_000_000)}})"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert steps_in(tmp_path) == [5]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"keep": 0}, "keep"),
        ({"rank": 3, "world": 2}, "RANK"),
        ({"world": 0}, "WORLD_SIZE"),
        ({"attempt": -1}, "CHIPWISE_ATTEMPT"),
    ],
)
def test_settings_that_cannot_be_are_named(tmp_path: Path, settings: dict[str, int], told: str) -> None:
    with pytest.raises(InvalidSettings, match=told):
        Checkpoints(tmp_path, **settings)  # type: ignore[arg-type]


def test_ranks_and_place_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIPWISE_CHECKPOINTS", f"file://{tmp_path}/a%20b")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("CHIPWISE_ATTEMPT", "3")
    kept = Checkpoints()
    assert kept.store.location == f"{tmp_path}/a b"
    assert (kept.writer.rank, kept.writer.world, kept.writer.attempt) == (1, 4, 3)


@pytest.mark.parametrize("url", ["file://", "file://checkpoints/mine", "file://checkpoints"])
def test_a_file_url_whose_path_is_taken_for_a_host_is_refused(url: str) -> None:
    """By what is left of it the checkpoints would lie at the root of this machine."""
    with pytest.raises(InvalidSettings, match="names no directory of this machine"):
        Checkpoints(url)


@pytest.mark.parametrize("url", ["file:////", "file:///.", "file:///%2F", "file:///a/..", "/", "//", "/.."])
def test_the_root_of_the_machine_is_no_place_for_checkpoints_however_it_is_spelt(url: str) -> None:
    with pytest.raises(InvalidSettings, match=r"is the root of this machine\. Allowed: a folder"):
        Checkpoints(url)


def test_a_place_that_cannot_be_written_is_told_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotSave, match=r"Checkpoints cannot be written to .*file/below"):
        Checkpoints(tmp_path / "file" / "below").claim()


def test_a_forked_child_that_ends_does_not_wait_for_the_writer_it_has_not(tmp_path: Path) -> None:
    disk = SlowDisk()
    kept = Checkpoints(store=Local(tmp_path, disk))
    kept.save(1, {"n": 1})
    child = os.fork()
    if child == 0:
        kept.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    disk.may_go_on.set()
    kept.close()
    assert steps_in(tmp_path) == [1]


def test_a_limit_on_file_size_is_an_error_like_a_full_disk(tmp_path: Path) -> None:
    """The real limit of the system, in a process of its own."""
    import subprocess
    import sys

    code = f"""
import resource, chipwise.job as job
kept = job.Checkpoints({str(tmp_path)!r})
kept.save(1, {{"w": bytes(1000)}}, wait=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    kept.save(2, {{"w": bytes(1_000_000)}}, wait=True)
except job.CannotSave as error:
    print(error)
print(kept.load().step)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "file too large" in done.stdout
    assert done.stdout.splitlines()[-1] == "1"


HANGS = """
import pathlib, sys, threading
import chipwise.job as job
from chipwise.job.local import Local
class Hangs(Local):
    def put(self, name, *words, **named):
        threading.Event().wait() if name.endswith(".state") else super().put(name, *words, **named)
checkpoints = job.Checkpoints(store=Hangs(pathlib.Path(sys.argv[1])))
for step in job.steps({"n": 0}, total=3, every=100, checkpoints=checkpoints):
    pass
"""


def test_a_store_that_hangs_is_given_up_and_the_program_ends_with_an_error(tmp_path: Path) -> None:
    """Its devices would be held for ever, without a word."""
    ended = subprocess.run(
        [sys.executable, "-c", HANGS, str(tmp_path / "kept")],
        env={**os.environ, "CHIPWISE_SAVE_WITHIN_S": "0.5"},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ended.returncode == 1
    assert "did not take a checkpoint within 0.5 s" in ended.stderr


HANGS_AT = """
import pathlib, sys, threading
import chipwise.job as job
from chipwise.job.local import Local
if len(sys.argv) > 3:
    job.Checkpoints(sys.argv[1]).save(1, {"n": 0}, wait=True)
class Hangs(Local):
    pass
def hang(*words, **named):
    threading.Event().wait()
setattr(Hangs, sys.argv[2], hang)
checkpoints = job.Checkpoints(store=Hangs(pathlib.Path(sys.argv[1])), attempt=1)
"""
LOADS = "checkpoints.load()"
SAVES = "checkpoints.save(1, {'n': 0}, wait=True)"


@pytest.mark.parametrize(
    ("operation", "action", "message"),
    [
        ("names", LOADS, "did not answer the search for checkpoints within 0.5 s"),
        ("read", LOADS, "did not answer the search for checkpoints within 0.5 s"),
        ("hold", LOADS, "did not answer the search for checkpoints within 0.5 s"),
        ("names", SAVES, "did not take a checkpoint within 0.5 s"),
        ("prepare", SAVES, "did not take a checkpoint within 0.5 s"),
        ("hold", SAVES, "did not take a checkpoint within 0.5 s"),
    ],
)
def test_a_store_that_hangs_before_the_first_checkpoint_is_given_up_too(
    tmp_path: Path, operation: str, action: str, message: str
) -> None:
    before = ["saved"] if operation == "read" else []
    ended = subprocess.run(
        [sys.executable, "-c", HANGS_AT + action, str(tmp_path / "kept"), operation, *before],
        env={**os.environ, "CHIPWISE_SAVE_WITHIN_S": "0.5"},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert ended.returncode == 1
    assert message in ended.stderr


ENDS_UNSAVED = """
import atexit, logging, pathlib, sys, threading
atexit.register(lambda: print("later handlers run", flush=True))
logging.basicConfig(level=logging.CRITICAL)
import chipwise.job as job
from chipwise.job.local import Local
class Fails(Local):
    def put(self, name, *words, **named):
        if name.endswith(".state"):
            FAILS
        super().put(name, *words, **named)
checkpoints = job.Checkpoints(store=Fails(pathlib.Path(sys.argv[1])))
checkpoints.save(1, {"n": 0})
print("end without close")
"""


@pytest.mark.parametrize("failure", ["raise OSError(28, 'No space left on device')", "threading.Event().wait()"])
@pytest.mark.parametrize("ending", ["", "sys.exit(0)", "sys.exit(75)"])
def test_a_program_that_ends_before_its_last_checkpoint_is_written_does_not_end_well(
    tmp_path: Path, failure: str, ending: str
) -> None:
    """Else the record would call it done, or say that it can go on from there."""
    ended = subprocess.run(
        [sys.executable, "-c", ENDS_UNSAVED.replace("FAILS", failure) + ending, str(tmp_path / "kept")],
        env={**os.environ, "CHIPWISE_SAVE_WITHIN_S": "0.5"},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert ended.returncode not in (0, 75)
    assert "The last checkpoint was not written" in ended.stderr
    assert ended.stdout.splitlines() == ["end without close", "later handlers run"]


def test_a_program_that_ends_without_closing_is_given_what_it_saved(tmp_path: Path) -> None:
    code = ENDS_UNSAVED.replace("FAILS", "pass")
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path / "kept")], capture_output=True, text=True, timeout=20)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert steps_in(tmp_path / "kept") == [1]


def test_reading_that_goes_on_is_not_given_up_however_long_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Local):
        def names(self) -> list[str]:
            time.sleep(0.5)
            return super().names()

        def size(self, name: str) -> int:
            time.sleep(0.5)
            return super().size(name)

        def read(self, name: str) -> bytearray:
            time.sleep(0.5)
            return super().read(name)

    with Checkpoints(tmp_path) as kept:
        kept.save(1, {"n": 7}, wait=True)
    monkeypatch.setenv("CHIPWISE_SAVE_WITHIN_S", "1.5")
    begun = time.monotonic()
    loaded = Checkpoints(store=Slow(tmp_path)).load()
    assert loaded is not None
    assert loaded.state == {"n": 7}
    assert time.monotonic() - begun > 1.5


def test_a_wait_that_is_long_is_said_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "SAYS_AFTER_S", 0.05)
    go = threading.Event()
    kept = Checkpoints(tmp_path)
    monkeypatch.setattr(kept._background, "_write", lambda work: go.wait(20))
    kept.save(1, {"n": 0})
    threading.Timer(0.3, go.set).start()
    kept.flush()
    assert [record.message for record in caplog.records] == [f"Still waiting for {tmp_path}; given up after 600 s"]
    kept.close()


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon"])
def test_a_limit_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("CHIPWISE_SAVE_WITHIN_S", text)
    with pytest.raises(InvalidSettings, match="CHIPWISE_SAVE_WITHIN_S"):
        Checkpoints(tmp_path)
