"""What all ranks must decide alike: to save now, to leave now.

Each rank says 0 (go on), 1 (a save is due) or 2 (leave); the greatest counts. With `agree=`, a function that gives the
greatest number over all ranks (one tiny all-reduce, for example `chipwise.job.torch.agree`), that is all. Without it, ranks
agree through files: rank 0 says after which step all leave, far enough ahead that every rank hears it before it gets there.
That holds where a step of one rank needs a step of the others, as in synchronous training; a save must then be due by the
step number alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from chipwise.errors import OutsideFailed
from chipwise.job import claiming, names
from chipwise.job.store import Store
from chipwise.job.writer import Writer

GO_ON, SAVE, LEAVE = 0, 1, 2
Agree = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Own:
    """What this rank would do by itself."""

    save: bool
    leave: bool

    @property
    def number(self) -> int:
        return LEAVE if self.leave else SAVE if self.save else GO_ON


class Agreement(Protocol):
    def decide(self, own: Own, step: int, rate: float | None) -> int: ...


class Alone:
    def decide(self, own: Own, step: int, rate: float | None) -> int:
        return own.number


class ByFunction:
    def __init__(self, agree: Agree) -> None:
        self._agree = agree

    def decide(self, own: Own, step: int, rate: float | None) -> int:
        return int(self._agree(own.number))


class ByFiles:
    def __init__(self, store: Store, writer: Writer) -> None:
        self._store = store
        self._writer = writer
        self._pause_s = 0.0 if store.quick else 1.0
        self._looked = -1e9
        self._leave_after: int | None = None
        self._wished = False

    def decide(self, own: Own, step: int, rate: float | None) -> int:
        if self._leave_after is None:
            self._hear(own.leave, step, rate)
        if self._leave_after is not None and step >= self._leave_after:
            return LEAVE
        return SAVE if own.save else GO_ON  # being told to leave is no reason for a save that other ranks do not make

    def _hear(self, leave: bool, step: int, rate: float | None) -> None:
        if not leave and time.monotonic() - self._looked < self._pause_s:
            return
        self._looked = time.monotonic()
        if self._writer.commits:
            if leave or self._number(names.wish(self._writer.attempt)) is not None:
                ahead = 2 + int(3 * self._pause_s * (rate or 0))  # another rank is a step ahead at most, and looks this often
                self._say(names.leave(self._writer.attempt), step + ahead)
                self._leave_after = step + ahead
        else:
            self._leave_after = self._number(names.leave(self._writer.attempt))
            if leave and not self._wished and self._leave_after is None:
                self._say(names.wish(self._writer.attempt), step)
                self._wished = True

    def _say(self, name: str, step: int) -> None:
        word = {"session": claiming.read_session(self._store, self._writer), "step": step}
        claiming.put_json(self._store, name, word, self._writer, lasting=False)

    def _number(self, name: str) -> int | None:
        try:
            content = json.loads(bytes(self._store.read(name)))
            step = int(content["step"])
        except (FileNotFoundError, ValueError, KeyError, TypeError, OutsideFailed):
            return None
        return step if content.get("session") == claiming.read_session(self._store, self._writer) else None
