"""Who writes: which attempt of the job, as which of how many ranks."""

from __future__ import annotations

import os
from dataclasses import dataclass

from chipwise.job import names


def fresh_mark() -> str:
    return os.urandom(6).hex()


@dataclass(frozen=True, slots=True)
class Writer:
    attempt: int
    rank: int
    world: int
    replicated: bool  # all ranks have the same state, and rank 0 writes it

    @property
    def commits(self) -> bool:
        return self.rank == 0

    @property
    def sharded(self) -> bool:
        return self.world > 1 and not self.replicated

    def temporary(self) -> str:
        return names.temporary(self.attempt, self.rank, fresh_mark())
