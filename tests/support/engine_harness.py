"""What the contract suite needs to know of an engine: how to get one, what to run on it, and how to harm it.

Each engine has a file `tests/support/engines/<name>.py` that defines `harness(folder) -> Harness`, and `CAN`: which of "lose"
and "notice" can be done to it from here. `E2E = True` says that it needs real outside parts, which `make e2e` starts;
`PROVEN_IN` names the file that runs the suite, where they are the parts of other tests too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from chipwise.runner.engine import Engine
from chipwise.runner.job import Job, MachinePlace, Spec


class Harness(Protocol):
    engine: Engine
    patience_s: float  # in which anything that the engine does is seen, by its own clock

    def again(self) -> Engine:
        """Another view of the same place, as after a restart of ours."""
        ...

    def spec(self, behaviour: str) -> Spec:
        """steps: runs briefly and ends with 0. long: runs until it is asked, saves and leaves. deaf: runs and heeds nothing.
        fails: ends with 3. missing: a command that does not exist."""
        ...

    @property
    def where(self) -> MachinePlace: ...

    def ready(self, job: Job) -> bool:
        """Whether its program is so far that it heeds, or does not heed, what it is told."""
        ...

    def now(self) -> float: ...

    def wait(self, seconds: float) -> None: ...

    def lose(self, job: Job) -> None:
        """Its machine or its supervisor is gone."""
        ...

    def notice(self, job: Job) -> None:
        """Its machine will go away."""
        ...

    def lives(self, job: Job) -> int:
        """How many copies of the current attempt really run, whatever the engine says."""
        ...

    def close(self) -> None: ...


def folder_of(harnesses: str = "engines") -> Path:
    return Path(__file__).parent / harnesses
