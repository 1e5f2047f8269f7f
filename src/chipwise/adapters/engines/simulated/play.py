"""What would happen: jobs played through on a virtual clock, with the controller that would really lead them.

`simulate(specs, world, seed)` is the whole of it; `views/played.py` makes lines of its answer. Where no world is given, one is
made of what the jobs say: their places and prices, their expected time, and how often machines there are interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from chipwise.adapters.stores.memory_record import MemoryRecord
from chipwise.catalog.offer import Purchase
from chipwise.runner.comparing import number, steps_of
from chipwise.runner.events import Wished
from chipwise.runner.job import Job, MachinePlace, Outcome, Spec, Wish
from chipwise.runner.loop import Controller
from chipwise.runner.played import Course
from chipwise.runner.played import Played as Played
from chipwise.runner.policy import NeverLate, Policy
from chipwise.runner.queue import Rules
from chipwise.runner.record import Change, Wanted

from .engine import Simulated, connect
from .world import Pool, Program, World

TICK_S = 30.0
LONGEST_S = 90 * 86400.0
_IDLE_TICKS = 20  # that are passed over at once while nothing happens
_FINE_TICKS = 10_000  # of a play with limits that are all looked at; then as many at once as are one in so many of those before
_HOPELESS_S = 3 * 3600.0  # without anything happening or being due
_STEPS = 1000  # into which the time of a job is cut that does not say how many it has; of these none is told
_SAVES_EVERY_S = 600.0
_LEAST_S = 1e-3  # that a job runs: less is a prediction of nothing
_UNKNOWN_S = 3600.0  # that a job takes of which nobody knows


@dataclass(frozen=True, slots=True)
class Wishes:
    """What an owner asks for in the middle of the play."""

    moment: float
    job: str
    wish: Wish = Wish.STOP


@dataclass(slots=True)
class Play:
    """A world, its record and its controller, tick by tick, for whoever wants to look in between."""

    world: World
    rules: Rules = field(default_factory=Rules)
    policy: Policy = field(default_factory=NeverLate)
    wishes: Sequence[Wishes] = ()
    tick_s: float = TICK_S
    record: MemoryRecord = field(default_factory=MemoryRecord)
    engine: Simulated = field(init=False)
    controller: Controller = field(init=False)
    now: float = field(init=False)
    trouble: dict[str, None] = field(default_factory=dict)
    _watched: bool = False  # some job has a limit that time alone reaches

    def __post_init__(self) -> None:
        self.engine, self.now = connect(self.world), self.world.begins
        self.controller = self.make_controller("controller")

    def make_controller(self, holder: str) -> Controller:
        return Controller(record=self.record, engine=self.engine, holder=holder, rules=self.rules, policy=self.policy)

    def submit(self, specs: Sequence[tuple[str, Spec]]) -> list[Job]:
        local_specs = [(id, replace(spec, engine=self.engine.name, place=self.engine.place)) for id, spec in specs]
        self._watched |= any(
            limit is not None for _, spec in local_specs for limit in (spec.deadline, spec.budget_usd, spec.longest_s)
        )
        return self.record.submit(local_specs, self.now)

    def turns(self, until: float) -> Iterator[float]:
        """The time of each tick, until all is over, nothing can happen any more, or the time is reached."""
        wishes = sorted(self.wishes, key=lambda one: one.moment)
        quiet_since = self.now
        while True:
            while wishes and wishes[0].moment <= self.now:
                self._wish(wishes.pop(0))
            turn = self.controller.turn(self.now)
            self.trouble |= dict.fromkeys(turn.trouble)
            yield self.now
            if (turn.leads and not turn.live and not turn.behind and not wishes) or self.now >= until:
                return
            due = [at for at in (self.engine.next_at, turn.next_at, wishes[0].moment if wishes else None) if at is not None]
            if turn.written or turn.ordered or turn.trouble or due:
                quiet_since = self.now
            elif self.now - quiet_since > max(_HOPELESS_S, 2 * self.rules.patience_s):
                return
            self.now = min(self._next(due, bool(turn.written or turn.ordered or turn.trouble or turn.behind)), until)

    def _next(self, due: Sequence[float], busy: bool) -> float:
        """The next tick; while nothing happens, the one before which nothing is due. Policies and limits are asked now and
        then all the same, since time alone may change their mind."""
        if busy:
            return self.now + self.tick_s
        ticks = ceil((min(due, default=self.now) - self.now) / self.tick_s) if due else _IDLE_TICKS
        most = int((self.now - self.world.begins) / self.tick_s / _FINE_TICKS) if self._watched else _IDLE_TICKS
        return self.now + self.tick_s * min(max(ticks, 1), max(most, 1))

    def _wish(self, wish: Wishes) -> None:
        if (job := self.record.job(wish.job)) is not None:
            self.record.write([Change(job, (Wished(wish.wish),))], self.now)


def simulate(
    specs: Sequence[tuple[str, Spec]],
    world: World | None = None,
    seed: int = 0,
    *,
    rules: Rules | None = None,
    policy: Policy | None = None,
    wishes: Sequence[Wishes] = (),
    tick_s: float = TICK_S,
    until: float | None = None,
) -> Played:
    """Jobs by id, played until all are over or the time is reached. The same arguments give the same play."""
    world = replace(world if world is not None else world_of([spec for _, spec in specs]), seed=seed)
    play = Play(world=world, rules=rules or Rules(), policy=policy or NeverLate(), wishes=wishes, tick_s=tick_s)
    play.submit(specs)
    turns = sum(1 for _ in play.turns(until if until is not None else world.begins + LONGEST_S))
    return played(play, turns)


def played(play: Play, turns: int = 0) -> Played:
    jobs = sorted(play.record.jobs(Wanted()), key=lambda job: play.record.events(job.id)[0].number)  # as they were submitted
    story = sorted((one for job in jobs for one in play.record.events(job.id)), key=lambda one: one.number)
    lost: dict[str, float] = {}
    for stay in play.engine.history:
        lost[stay.job] = lost.get(stay.job, 0.0) + max(stay.reached - stay.saved, 0) * stay.program.step_s
    courses = tuple(_course(job, play.world.program(job.spec.name), lost.get(job.id, 0.0), play.now) for job in jobs)
    finished = all(job.phase.over for job in jobs)
    return Played(
        begins=play.world.begins,
        until=play.now,
        is_over=finished,
        courses=courses,
        story=tuple(story),
        turns=turns,
        trouble=tuple(play.trouble),
    )


def _course(job: Job, program: Program, lost_s: float, until: float) -> Course:
    hours: dict[Purchase, float] = {}
    for attempt in job.attempts:
        hours[attempt.where.purchase] = hours.get(attempt.where.purchase, 0.0) + attempt.hours(until)
    interrupted = [one for one in job.attempts if one.outcome in (Outcome.LOST, Outcome.LEFT) and one.begun is not None]
    guessed_s = program.finish_s(0) if program.guessed else None
    return Course(
        job=job,
        hours=hours,
        usd=job.usd(until),
        interruptions=len(interrupted),
        lost_work_s=lost_s,
        until=until,
        guessed_s=guessed_s,
    )


def world_of(specs: Sequence[Spec], begins: float = 0.0) -> World:
    """What the jobs say of themselves and of their places; of what they do not say the usual is taken."""
    pools: dict[MachinePlace, Pool] = {}
    for spec in specs:
        for place in spec.places:
            rate = spec.interruptions_per_hour or 0.0 if place.purchase is Purchase.SPOT else 0.0
            starts_s = number(spec.predicted.get("start_s"))
            pool = Pool(place, interruptions_per_hour=rate)
            pool = pool if starts_s is None else replace(pool, starts_s=starts_s)
            pools.setdefault(replace(place, usd_per_hour=None), pool)
    programs = {spec.name: program_of(spec) for spec in specs}
    if pools:
        return World(tuple(pools.values()), programs, begins=begins)
    gpus = max((spec.needs.gpus for spec in specs), default=0)
    cpus = max((spec.needs.cpus for spec in specs), default=1)
    return World(programs=programs, gpus=gpus, cpus=cpus, begins=begins)


def program_of(spec: Spec) -> Program:
    """A plan's time holds one start already (`start_s`), which the pool takes for itself."""
    stated = steps_of(spec)
    steps = stated if stated is not None else _STEPS
    guessed = not spec.expected_s and not spec.service
    start_s = number(spec.predicted.get("start_s")) or 0.0
    works_s = max(spec.expected_s - start_s, _LEAST_S) if spec.expected_s else _UNKNOWN_S
    step_s = works_s / steps
    saves = min(max(round(_SAVES_EVERY_S / step_s), 1), steps)
    saves = saves if spec.checkpoints else 0
    return Program(
        steps=None if spec.service else steps, step_s=step_s, save_every=saves, tells=stated is not None, guessed=guessed
    )
