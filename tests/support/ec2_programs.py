"""Commands for stand-in machines of the ec2 engine: real programs, which say when they are so far that they heed a signal."""

from __future__ import annotations

import sys

LISTENS = "import os, signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(75)); "
READY = "open(os.environ['CHIPWISE_RUN_DIR'] + '/ready', 'w').close(); "
WAITS = LISTENS + READY + "time.sleep(60)"


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", code)


def done_at(attempt: int) -> tuple[str, ...]:
    """Waits to be told to leave until this attempt, which is done at once."""
    return python(
        LISTENS + f"sys.exit(0) if os.environ['CHIPWISE_ATTEMPT'] == '{attempt}' else None; " + READY + "time.sleep(60)"
    )
