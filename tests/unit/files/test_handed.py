"""What a path can name beside a file: nothing of it is waited for without end, and what a shell pipes in is read."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from chipwise.calibration.measurements import LARGEST
from chipwise.errors import BadInput
from chipwise.files import handed
from chipwise.files.handed import opened, read_bytes
from chipwise.files.source import MAX_BYTES, read_text
from chipwise.workload.demand import Trace
from chipwise.workload.model.huggingface import read_config
from chipwise.workload.trace import read_trace

TRACE = "arrival,input_tokens,output_tokens\n" + "".join(f"{second},10,20\n" for second in range(0, 600, 5))


def _fifo(folder: Path) -> str:
    os.mkfifo(folder / "pipe")
    return str(folder / "pipe")


def _socket(folder: Path) -> str:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "socket"))
    return str(folder / "socket")


def _link(folder: Path) -> str:
    (folder / "link").symlink_to("/proc/self/status")
    return str(folder / "link")


OTHERS: dict[str, Callable[[Path], str]] = {
    "a FIFO without a writer": _fifo,
    "a socket": _socket,
    "a device without end": lambda folder: "/dev/zero",
    "a device that is empty": lambda folder: os.devnull,
    "a terminal": lambda folder: "/dev/ptmx",
    "a file of the system": lambda folder: "/proc/kmsg",
    "a link to one": _link,
}
DOORS: dict[str, Callable[[str], object]] = {
    "workload": read_text,
    "model": lambda path: read_config(Path(path)),
    "trace": lambda path: read_trace(Trace(path=path), "w.yaml"),
    "bytes": lambda path: read_bytes(Path(path), int(LARGEST)),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("other", OTHERS)
def test_only_a_file_is_opened(tmp_path: Path, door: str, other: str) -> None:
    with pytest.raises(BadInput, match="no file"):
        DOORS[door](OTHERS[other](tmp_path))


def piped(content: bytes, use: Callable[[str], object]) -> object:
    """As a shell passes `<(command)`: the command writes while we read."""
    receiving, sending = os.pipe()

    def write() -> None:
        with os.fdopen(sending, "wb") as file:
            file.write(content)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        return use(f"/dev/fd/{receiving}")
    finally:
        os.close(receiving)
        writer.join()


def test_what_a_shell_pipes_in_is_read() -> None:
    assert piped(b"kind: serve\n" * 20_000, read_text) == "kind: serve\n" * 20_000
    assert piped(b'{"model_type": "llama"}', lambda path: read_config(Path(path))) == {"model_type": "llama"}
    assert piped(TRACE.encode(), lambda path: read_trace(Trace(path=path), "w.yaml").requests) == 120


def test_a_pipe_that_brings_too_much_is_read_to_the_limit_and_no_further() -> None:
    receiving, sending = os.pipe()
    over = threading.Event()

    def write() -> None:
        with os.fdopen(sending, "wb", buffering=0) as file:
            try:
                while not over.is_set():
                    file.write(b"a" * 65536)
            except BrokenPipeError:
                pass

    writer = threading.Thread(target=write)
    writer.start()
    with pytest.raises(BadInput, match="too large"):
        read_text(f"/dev/fd/{receiving}")
    assert len(read_bytes(Path(f"/dev/fd/{receiving}"), MAX_BYTES)) == MAX_BYTES + 1
    over.set()
    os.close(receiving)
    writer.join()


def test_a_pipe_that_stays_silent_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handed, "PATIENCE_S", 0.05)
    receiving, sending = os.pipe()
    try:
        with pytest.raises(BadInput, match=r"Nothing came from /dev/fd/\d+ for 0\.05 s"):
            read_text(f"/dev/fd/{receiving}")
    finally:
        os.close(receiving)
        os.close(sending)


def test_a_file_is_read_through_a_link_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    with opened(tmp_path / "link") as stream:
        assert stream.read() == b"abc"
    assert read_bytes(tmp_path / "file", 1) == b"ab"
