"""The world of a simulation, as values: where machines are, how programs behave, and what goes wrong when.

Times are seconds on one virtual clock, the same as that of deadlines. A program is steps of equal length that saves now and
then: what happens in between does not matter to a scheduler. Machines are lost by script, at random by a rate, or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import floor, inf

from chipwise.runner.job import MachinePlace

from . import NAME

LEFT = 75  # what a program exits with that saved because it was asked to go
_ROUNDING = 1e-6  # of a clock that counts from 1970: finer is lost


@dataclass(frozen=True, slots=True)
class Pool:
    """Machines of one kind at one place."""

    place: MachinePlace = field(default_factory=MachinePlace)
    machines: int | None = None  # that can be had at once; None: as many as are asked for
    starts_s: float = 60.0  # from the machine's coming until the job runs on it
    interruptions_per_hour: float = 0.0  # of one machine
    notice_s: float = 120.0  # between the notice and the loss; 0: it is gone without a word
    closed: tuple[tuple[float, float], ...] = ()  # from, until: no machine comes, and those that came stay

    def open_at(self, now: float) -> bool:
        return not any(since <= now < until for since, until in self.closed)


@dataclass(frozen=True, slots=True)
class Exit:
    """An end that the program brings about by itself."""

    code: int
    step: int | None = None  # on reaching it
    after_s: float | None = None  # of running; with neither it ends as soon as it begins
    attempts: frozenset[int] = frozenset()  # empty: each


@dataclass(frozen=True, slots=True)
class Program:
    """How a job behaves once it runs. `steps` None: it never ends by itself, as a service."""

    steps: int | None = 100
    step_s: float = 10.0
    save_every: int = 10  # steps; 0: never
    save_s: float = 0.0  # in which no step is done
    load_s: float = 0.0  # before the first step, where there is something to load
    exits: tuple[Exit, ...] = ()
    heeds: bool = True  # saves and goes when it is asked to
    left_code: int = LEFT
    tells: bool = True  # its steps
    guessed: bool = False  # nobody said how long it takes
    starts_s: Mapping[int, float] = field(default_factory=dict)  # of single attempts, where they differ from their pool

    def at_share(self, share: float) -> Program:
        """The same on a share of its workers: slower in proportion, which is the worst that it can be."""
        return self if share >= 1.0 else replace(self, step_s=self.step_s / share)

    def progress(self, first: int, ran_s: float) -> tuple[int, int]:
        """The step that is reached and the one that is saved, of one that began after `first` steps."""
        if ran_s >= self.finish_s(first) - _ROUNDING:
            assert self.steps is not None
            return self.steps, self.steps
        worked = ran_s - (self.load_s if first else 0.0) + _ROUNDING
        if worked < 0:
            return first, first
        if not self.save_every:
            return first + floor(worked / self.step_s), first
        cycles, rest = divmod(worked, self.save_every * self.step_s + self.save_s)
        saved = first + int(cycles) * self.save_every
        return saved + min(floor(rest / self.step_s), self.save_every), saved

    def finish_s(self, first: int) -> float:
        return inf if self.steps is None else self.reaches_s(first, self.steps)

    def reaches_s(self, first: int, step: int) -> float:
        """How long after its beginning; never, where the step lies behind it."""
        if step < first:
            return inf
        steps = step - first
        saves = (steps - 1) // self.save_every if self.save_every and steps else 0
        return (self.load_s if first else 0.0) + steps * self.step_s + saves * self.save_s

    def exit_s(self, first: int, attempt: int) -> tuple[float, int]:
        """When the attempt ends by itself, and its code."""
        ends = [(self.finish_s(first), 0)]
        for exit_rule in self.exits:
            if exit_rule.attempts and attempt not in exit_rule.attempts:
                continue
            end_s = self.reaches_s(first, exit_rule.step) if exit_rule.step is not None else exit_rule.after_s or 0.0
            ends.append((end_s, exit_rule.code))
        return min(ends, key=lambda end: (end[0], end[1] == 0))  # a bug in the last step comes before its end


@dataclass(frozen=True, slots=True)
class Loss:
    """Machines that go away at a time: all, those of a zone, or those of a job (by id or name)."""

    moment: float
    notice_s: float = 0.0
    zone: str = ""
    job: str = ""
    announced: bool = True  # False: a supervisor that is gone while its processes live on until the end of `notice_s`


class Fails(StrEnum):
    LOOK = "look"
    DO = "do"  # and nothing is done
    ANSWER = "answer"  # it is done, and the answer is lost


@dataclass(frozen=True, slots=True)
class Outage:
    since: float
    until: float
    affects: Fails = Fails.LOOK


@dataclass(frozen=True, slots=True)
class World:
    """`gpus` and `cpus`: devices of our own, which the controller gives out; None: the engine finds machines by itself."""

    pools: tuple[Pool, ...] = ()
    programs: Mapping[str, Program] = field(default_factory=dict)  # by the job's name
    other: Program = Program()  # of jobs that are not named
    losses: tuple[Loss, ...] = ()
    outages: tuple[Outage, ...] = ()
    refuses: Mapping[str, str] = field(default_factory=dict)  # starts of jobs by name, and the reason
    gpus: int | None = None
    cpus: int | None = None
    tells_offers: bool = False
    begins: float = 0.0
    seed: int = 0
    place: str = NAME

    def program(self, name: str) -> Program:
        return self.programs.get(name, self.other)

    def pool(self, place: MachinePlace) -> Pool:
        """Of a place that is not described there is always one more machine."""
        site = replace(place, usd_per_hour=None)
        for pool in self.pools:
            if replace(pool.place, usd_per_hour=None) == site:
                return pool
        return Pool(place, starts_s=0.0)
