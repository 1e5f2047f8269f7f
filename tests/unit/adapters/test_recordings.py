"""Recordings on a disk: killed writers, full disks, bounds, and readers beside a writer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chipwise.adapters.recordings import Appender, Follower
from chipwise.errors import BadInput
from chipwise.observe.recording import load
from chipwise.observe.sample import HOST, Recording, Sample

HEADER = Recording("2026-11-18T08:00:00Z", labels={"job": "x"})


def host(at_s: float) -> Sample:
    return Sample(at_s, HOST, {"cpu": at_s % 8 / 8, "disk_read": 1000.0 * at_s, "load": 1.0})


def test_what_was_added_is_there_when_the_call_returns(tmp_path: Path) -> None:
    appender = Appender(tmp_path / "r", HEADER)
    for second in range(5):
        appender.add([host(float(second))])
        assert len(load(tmp_path / "r").recording.samples) == second + 1


WRITER = """
import sys
from pathlib import Path
from chipwise.adapters.recordings import Appender
from chipwise.observe.sample import Recording, Sample
appender = Appender(Path(sys.argv[1]), Recording(""), most_bytes=20_000)
at = 0
while True:
    appender.add([Sample(float(at), "host", {"cpu": at % 100 / 100, "disk_read": float(at)})])
    at += 1
    if at % 50 == 0:
        print(at, flush=True)
"""


def test_a_killed_writer_loses_nothing_that_it_wrote(tmp_path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "r")], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    for _ in range(40):
        told = int(writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    samples = load(tmp_path / "r").recording.samples
    assert samples[-1].at_s >= told - 1
    assert samples[0].at_s == 0.0


def test_a_long_recording_stays_small_and_keeps_start_and_end(tmp_path: Path) -> None:
    appender = Appender(tmp_path / "r", HEADER, most_bytes=60_000)
    for second in range(5_000):
        appender.add([host(float(second))])
    assert (tmp_path / "r").stat().st_size <= 90_000
    samples = load(tmp_path / "r").recording.samples
    assert samples[0].at_s == 0.0
    assert samples[-1] == host(4_999.0)
    assert [sample.at_s for sample in samples[-100:]] == [float(at) for at in range(4_900, 5_000)]
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    appender = Appender(tmp_path / "r", HEADER)
    appender.add([host(0.0)])
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda handle, content: write(handle, content[:10]))
        with pytest.raises(OSError, match="full"):
            appender.add([host(1.0)])
    appender.add([host(2.0)])
    loaded = load(tmp_path / "r")
    assert not loaded.is_cut
    assert loaded.recording.samples == (host(0.0), host(2.0))


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("mine")
    with pytest.raises(FileExistsError):
        Appender(tmp_path / "r", HEADER)


def test_a_follower_sees_what_comes_and_that_a_file_was_written_again(tmp_path: Path) -> None:
    appender = Appender(tmp_path / "r", HEADER, most_bytes=12_000)
    follower = Follower(tmp_path / "r")
    assert follower.look() == ([], False)
    assert follower.header is not None
    assert follower.header.labels == {"job": "x"}
    appender.add([host(0.0), host(1.0)])
    assert follower.look() == ([host(0.0), host(1.0)], False)
    again = False
    for second in range(2, 400):
        appender.add([host(float(second))])
        samples, is_new = follower.look()
        again = again or is_new
        assert samples[-1] == host(float(second))
    assert again


def test_a_follower_of_another_file(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("hello\nworld\n")
    with pytest.raises(BadInput, match="not a recording"):
        Follower(tmp_path / "r").look()
