"""`python -m chipwise.adapters.notices COMMAND...`: runs a command on a machine of a cloud, and passes on its notices.

For programs that no engine of ours runs: under Slurm, a unit of systemd, or by hand. A notice is written to
`$CHIPWISE_RUN_DIR/notice.json`, which `chipwise.job` reads, and SIGTERM follows, which every program hears. Signals to this
program are passed on, and the command's exit code is ours.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from chipwise.adapters.notices.notice import Notice
from chipwise.adapters.notices.watching import Watch

TICK_S = 0.25


def main(command: list[str]) -> int:
    command = command[1:] if command[:1] == ["--"] else command
    if not command:
        print("What should run? Write python -m chipwise.adapters.notices COMMAND...", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="chipwise-") as own:
        folder = Path(os.environ.get("CHIPWISE_RUN_DIR") or own)
        return _run(command, folder)


def _run(command: list[str], folder: Path) -> int:
    grace_s = float(os.environ.get("CHIPWISE_GRACE_SECONDS") or 30.0)
    running: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def on_signal(number: int, _: object) -> None:
        if running:
            _pass_on(running[0], number)
        else:
            early.append(number)

    for caught in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(caught, on_signal)
    try:
        child = subprocess.Popen(command, env={**os.environ, "CHIPWISE_RUN_DIR": str(folder)})
    except OSError as error:
        print(f"The command {command[0]!r} cannot be started: {error.strerror}.", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126
    running.append(child)
    for number in early:
        _pass_on(child, number)
    watch = Watch()
    watch.begin()
    warned = False
    while True:
        with suppress(subprocess.TimeoutExpired):
            code = child.wait(TICK_S)
            return code if code >= 0 else 128 - code
        if not warned and (notice := watch.due(grace_s)) is not None:
            warned = True
            _write(folder, notice)
            _pass_on(child, signal.SIGTERM)


def _pass_on(child: subprocess.Popen[bytes], number: int) -> None:
    if child.poll() is None:
        child.send_signal(number)


def _write(folder: Path, notice: Notice) -> None:
    """Whole or not at all."""
    new = folder / ".notice.json.new"
    new.write_text(json.dumps({"reason": notice.reason, "until": notice.deadline}))
    os.replace(new, folder / "notice.json")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
