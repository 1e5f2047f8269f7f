"""Replicas, a gateway and clients as real processes, for tests that kill, stop and replace them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np

from chipwise.adapters.http.load import LoadTest, Patience, Target
from chipwise.serving.arrivals import constant
from chipwise.serving.load_report import Shots
from chipwise.serving.replica import Address

HERE = Path(__file__).resolve().parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
Process = subprocess.Popen[str]


def started(program: str, *arguments: object) -> tuple[Process, int]:
    """One of the programs beside this file, and the port that it prints."""
    command = [sys.executable, str(HERE / program), *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        process.stdout.close()
        process.wait(10)
        raise RuntimeError(f"{program} ended with {process.returncode} before it served")
    return process, int(line)


@contextmanager
def ending(processes: Sequence[Process]) -> Iterator[None]:
    """All of them, however the test ends; those that were stopped by a signal too."""
    try:
        yield
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait(10)
            if process.stdout is not None:
                process.stdout.close()


def change(port: int, **faults: object) -> dict[str, Any]:
    """What goes wrong at a stand-in from now on."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5.0)
    try:
        connection.request("POST", "/faults", json.dumps(faults))
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
        return answer
    finally:
        connection.close()


async def sent(port: int, per_s: float, duration_s: float, bodies: Sequence[bytes], answer_s: float = 20.0) -> Shots:
    due = np.asarray(constant(per_s, duration_s))
    test = LoadTest(Target(Address("127.0.0.1", port)), due, bodies, Patience(connections=2000, answer_s=answer_s))
    return await test.run()
