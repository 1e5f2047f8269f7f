"""What a job printed, where its program put something else in place of its log."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from chipwise.adapters.engines.local import printed
from chipwise.errors import OutsideFailed
from chipwise.runner.job import Attempt, Job, MachinePlace, Spec

JOB = Job("j1", Spec(name="j", command=("true",)), 1.0, attempts=(Attempt(1, MachinePlace()),))
READERS: dict[str, Callable[[Path], Iterator[bytes] | bytes]] = {
    "logs": lambda root: printed.printed(root, JOB),
    "logs --tail": lambda root: printed.tail(root, JOB, None, 5),
    "logs --follow": lambda root: printed.follow(root, lambda: JOB),
    "attach": lambda root: printed.follow(root, lambda: JOB, from_end=True),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("other", ["pipe", "device", "folder", "socket", "link to nothing"])
def test_what_is_no_file_is_told_and_not_waited_for(tmp_path: Path, reader: str, other: str) -> None:
    folder = tmp_path / "j1" / "1"
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        _put(other, folder / "log", stack)
        with pytest.raises(OutsideFailed, match="is not a file"):
            list(READERS[reader](tmp_path))


def _put(other: str, log: Path, stack: ExitStack) -> None:
    if other == "pipe":
        os.mkfifo(log)
    elif other == "folder":
        log.mkdir()
    elif other == "socket":
        stack.enter_context(socket.socket(socket.AF_UNIX)).bind(str(log))
    else:
        log.symlink_to("/dev/zero" if other == "device" else "/nowhere/at/all")


def test_a_log_is_read_in_the_order_of_its_parts(tmp_path: Path) -> None:
    folder = tmp_path / "j1" / "1"
    folder.mkdir(parents=True)
    (folder / "log.1").write_bytes(b"a\n")
    (folder / "log").write_bytes(b"b\nc\n")
    assert b"".join(printed.printed(tmp_path, JOB)) == b"a\nb\nc\n"
    assert printed.tail(tmp_path, JOB, None, 2) == b"b\nc\n"


def test_a_link_in_place_of_a_log_is_not_followed(tmp_path: Path) -> None:
    """It may lead to a file of whoever reads the log."""
    (tmp_path / "private").write_text("key")
    (tmp_path / "log").symlink_to(tmp_path / "private")
    with pytest.raises(OutsideFailed, match="is not a file"):
        printed._opened(tmp_path / "log")
