"""Who writes: which attempt of the job, as which of how many ranks."""

from __future__ import annotations

import os
from dataclasses import dataclass

from chipwise.errors import Problem
from chipwise.job import names


def fresh_mark() -> str:
    return os.urandom(6).hex()


def whole_number(value: int | None, variable: str, default: int, problems: list[Problem]) -> int:
    """A number that was given, else the setting of that name; `default` is also the least that it can be. What is none joins
    the problems, so that all are told at once."""
    text = str(value) if value is not None else os.environ.get(variable) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= default):
        problems.append(Problem(variable, f"is {text!r:.40}", allowed=f"a whole number, {default} or more"))
        return default
    return int(text)


def ranks(rank: int | None, world: int | None, problems: list[Problem]) -> tuple[int, int]:
    """Which of how many; $RANK and $WORLD_SIZE where they are not given."""
    before = len(problems)
    own_rank, world_size = whole_number(rank, "RANK", 0, problems), whole_number(world, "WORLD_SIZE", 1, problems)
    if own_rank >= world_size and len(problems) == before:
        problems.append(Problem("RANK", f"is {own_rank} of {world_size}", allowed=f"0 to {world_size - 1}"))
    return own_rank, world_size


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
