"""What a controller is started with is not readable by the jobs beside it, and it still has all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from chipwise.adapters.private_environment import HANDLE, handed_over

LOOK = """
import ctypes, json, os, sys
from chipwise.adapters import private_environment
private_environment.{entrance}()
child = __import__("subprocess").run([sys.executable, "-c", "import os; print(os.getppid())"], capture_output=True)
seen = open("/proc/self/environ", "rb").read().decode() if os.path.exists("/proc/self/environ") else ""
closed = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0 if sys.platform == "linux" else True
environ = os.environ
print(json.dumps([environ.get("CHIPWISE_RECORD"), environ.get("ODD"), "{handle}" in environ, seen, closed, child.returncode]))
"""
SETTINGS = {"CHIPWISE_RECORD": "postgresql://mia:pass-word@db/x", "ODD": "\udcff'\"\n$"}


def _answers(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    record, odd, has_handle, seen, closed, code = json.loads(done.stdout)
    assert (record, odd, has_handle, code) == (SETTINGS["CHIPWISE_RECORD"], SETTINGS["ODD"], False, 0)
    assert "pass-word" not in seen
    assert closed


def test_a_program_gets_what_nobody_else_can_read() -> None:
    with handed_over({**os.environ, **SETTINGS}) as (visible, inherited):
        assert "CHIPWISE_RECORD" not in visible
        script = LOOK.format(entrance="receive", handle=HANDLE)
        _answers(
            subprocess.run(
                [sys.executable, "-c", script], env=visible, pass_fds=inherited, capture_output=True, text=True, timeout=60
            )
        )


def test_a_program_that_was_started_by_hand_starts_itself_anew(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(LOOK.format(entrance="start_anew", handle=HANDLE))
    env = {**os.environ, **SETTINGS}
    _answers(subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=60))


@pytest.mark.parametrize("handle", ["", "x", "99", "-1"])
def test_a_handle_that_is_none_changes_nothing(handle: str) -> None:
    script = "from chipwise.adapters import private_environment; private_environment.receive(); print('well')"
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, HANDLE: handle}, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout.strip(), done.stderr) == ("well", "")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="/proc of Linux")
def test_what_is_handed_over_is_not_read_in_proc_before_the_program_takes_it() -> None:
    """A job of the same system user that looks at every new process reads neither its environment nor its open files."""
    with handed_over({**os.environ, **SETTINGS}) as (visible, inherited):
        starting = subprocess.Popen(["sleep", "60"], env=visible, pass_fds=inherited)
    try:
        folder = Path(f"/proc/{starting.pid}")
        texts = [(folder / "environ").read_bytes()]
        for descriptor in (folder / "fd").iterdir():
            with suppress(OSError):
                file = os.open(descriptor, os.O_RDONLY | os.O_NONBLOCK)
                texts.append(os.read(file, 1 << 20))
                os.close(file)
        assert not any(b"pass-word" in text for text in texts)
    finally:
        starting.kill()
        starting.wait()
