"""The commands of the tutorial on running, in their order, as a reader types them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial" / "run-here.md"


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    os.symlink(ROOT / "examples", tmp_path / "examples")
    home = Path(sys.executable).parent
    env = {
        **os.environ,
        "PATH": f"{home}:{os.environ['PATH']}",
        "CHIPWISE_DATA_DIR": str(tmp_path / "data"),
        "CHIPWISE_CONFIG_DIR": str(tmp_path / "config"),
        "CHIPWISE_GPUS": "none",
    }
    lines = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL))
    assert lines.count("chipwise ") >= 10
    try:
        done = subprocess.run(["bash", "-eu", "-c", lines], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.startswith("hello\n")
        assert "step  299" in done.stdout
        assert "not-a-real-one" not in done.stdout
    finally:
        with suppress(OSError, ValueError, psutil.Error):
            pid = int((tmp_path / "data" / "run" / "controller.lock").read_text())
            if "control" in psutil.Process(pid).cmdline():
                os.kill(pid, signal.SIGTERM)
