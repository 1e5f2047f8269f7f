"""One attempt in a simulated world, from the order to what is left of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from chipwise.runner.engine import Sight, State
from chipwise.runner.job import Attempt

from .world import Pool, Program

KILLED = 137


@dataclass(slots=True, eq=False)
class Stay:
    job: str
    name: str
    attempt: Attempt
    pool: Pool
    program: Program
    requested: float
    first: int  # steps that were saved before
    arrived: float | None = None  # its machines
    begins: float = inf  # on them
    lost: float = inf  # its machines go away
    notice: float | None = None  # came at
    announced: bool = True
    leaves: float = inf  # has saved, and goes
    leaving_step: int = 0
    ended: float | None = None
    state: State = State.PENDING
    code: int | None = None
    reason: str = ""
    reached: int = 0
    saved: int = 0
    stamp: int = field(default=0)  # grows when what comes next changes

    @property
    def key(self) -> tuple[str, int]:
        return (self.job, self.attempt.number)

    @property
    def handle(self) -> str:
        return f"{self.job}/{self.attempt.number}"

    @property
    def lives(self) -> bool:
        return self.ended is None

    @property
    def next_at(self) -> float:
        """When something happens to it by itself."""
        if not self.lives or self.arrived is None:
            return inf
        if self.state is State.PENDING:
            return min(self.begins, self.lost)
        return min(self.lost, self.leaves if self.leaves < inf else self.begins + self._exit()[0])

    def pass_(self, now: float) -> None:
        """What `next_at` announced happens. A machine that goes takes with it what would have been saved at that moment."""
        self.stamp += 1
        if self.lost <= now:
            self.end(now, State.LOST, None, "its machine was removed" if self.announced else "its supervisor is gone")
        elif self.state is State.PENDING:
            self.state = State.RUNNING
        elif self.leaves <= now:
            self.reached = self.saved = self.leaving_step
            self.end(now, State.EXITED, self.program.left_code, "", settled=True)
        else:
            self.end(now, State.EXITED, self._exit()[1], "")

    def leave(self, now: float) -> None:
        if self.state is State.PENDING:
            self.end(now, State.EXITED, None, "it had not begun")
        elif self.program.heeds and self.leaves == inf:
            self.stamp += 1
            self.leaving_step = self.program.progress(self.first, now - self.begins)[0]
            self.leaves = now + self.program.save_s

    def end(self, now: float, state: State, code: int | None, reason: str, *, settled: bool = False) -> None:
        if not settled:
            self.reached, self.saved = self.standing(now)
        self.stamp += 1
        self.ended, self.state, self.code, self.reason = now, state, code, reason

    def standing(self, now: float) -> tuple[int, int]:
        """Steps that are reached and saved; who leaves does no more of them."""
        if self.state is State.PENDING:
            return self.first, self.first
        reached, saved = self.program.progress(self.first, now - self.begins)
        return (min(reached, self.leaving_step), min(saved, self.leaving_step)) if self.leaves < inf else (reached, saved)

    def sight(self, now: float) -> Sight:
        reached, saved = (self.reached, self.saved) if not self.lives else self.standing(now)
        began = self.begins if self.begins <= now and self.state is not State.PENDING else None
        if self.ended is not None and self.begins > self.ended:
            began = None
        tells = self.program.tells and began is not None
        return Sight(
            state=self.state,
            code=self.code,
            reason=self.reason or self._doing(),
            since=began,
            until=self.ended,
            step=reached if tells else None,
            handle=self.handle,
            leave_by=self.lost if self.lives and self.notice is not None and self.announced else None,
            place=self.pool.place if self.pool.place.machine else None,
            saved=saved if tells else None,
            held_since=self.arrived,
        )

    def _exit(self) -> tuple[float, int]:
        return self.program.exit_s(self.first, self.attempt.number)

    def _doing(self) -> str:
        if not self.lives or self.state is not State.PENDING:
            return ""
        if self.arrived is not None:
            return "its machine is booting"
        place = self.pool.place
        return f"no {place.purchase} machine is available in {place.zone or place.region or 'the pool'}"
