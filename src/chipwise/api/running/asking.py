"""`run` as a verb: what was asked for becomes jobs in the record, and somebody who carries them out."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.api.running import controlling, place, submitting
from chipwise.errors import BadInput, UnknownName
from chipwise.run.job import Job, Needs, Phase, Retry, Spec, Wish
from chipwise.spelling import nearest

if TYPE_CHECKING:
    from chipwise.adapters.engines.local import Local
    from chipwise.api.simulating import Played
    from chipwise.api.wiring import Session
    from chipwise.run.queue import Rules
    from chipwise.run.record import Record

ENGINES = ("local",)


@dataclass(frozen=True, slots=True)
class Asked:
    """Options of `chipwise run`. None: not given."""

    words: tuple[str, ...]
    is_command: bool = True
    name: str | None = None
    engine: str | None = None
    gpus: int | None = None
    cpus: int | None = None
    processes: int = 1
    team: str | None = None
    project: str | None = None
    labels: tuple[str, ...] = ()
    priority: int = 0
    settings: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    folder: Path | None = None
    longest: float | None = None
    expected: float | None = None
    retries: int | None = None
    grace: float | None = None
    budget: float | None = None
    checkpoints: str | None = None
    after: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    environment: str | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """The parts that stay open while a job is followed."""

    record: Record
    engine: Local
    rules: Rules
    root: Path
    session: Session

    def job(self, id: str) -> Job:
        """As it is recorded now; whoever watches a job sees to it that somebody carries it out."""
        found = self.record.job(id)
        if found is None:
            raise UnknownName("job", id)
        if not found.phase.over:
            controlling.awake(self.session)
        return found


@contextmanager
def opened(session: Session) -> Iterator[Held]:
    record = place.open_record(session)
    try:
        engine = place.local_engine(session)
        yield Held(record, engine, place.rules(session), engine.config.root, session)
    finally:
        record.close()


def run(session: Session, asked: Asked) -> list[Job]:
    """Submitted, and a controller is there."""
    engine = asked.engine or "local"
    if engine not in ENGINES:
        raise UnknownName("engine", engine, nearest(engine, ENGINES), remedy=f"There is: {', '.join(ENGINES)}.")
    if not asked.words:
        raise BadInput("There is nothing to run.", remedy="chipwise run -- COMMAND, or chipwise run WORKLOAD.yaml.")
    with opened(session) as held:
        named = _named(session, asked, held)
        for _, spec in named:
            submitting.checked(spec, held.engine, held.rules)
        jobs = submitting.submit(held.record, named, place.passing_dir(session), _values(asked.secrets))
    controlling.awake(session)
    return jobs


def simulate(session: Session, asked: Asked, seed: int) -> Played:
    """What would happen, by a virtual clock: a workload on the machines of its plan, a command for its expected time."""
    from chipwise.api import simulating
    from chipwise.api.running.planned import with_plan

    with opened(session) as held:
        named = _named(session, asked, held)
        rules = held.rules
    now = time.time()
    if not asked.is_command:
        named = [(id, with_plan(session, asked.words[0], asked.environment, spec, now)) for id, spec in named]
    world = simulating.world_of([spec for _, spec in named], begins=now)
    return simulating.simulate(named, world, seed, rules=rules)


def _named(session: Session, asked: Asked, held: Held) -> list[tuple[str, Spec]]:
    """Jobs by id."""
    if asked.is_command:
        spec = _of_command(asked, held)
        return [(submitting.new_id(spec.name), spec)]
    if len(asked.words) > 1:
        raise BadInput(f"{' '.join(asked.words)[:80]!r} is more than one workload.", remedy="Write -- before a command.")
    from chipwise.api.running.workloads import specs_of

    rest = _of_command(replace(asked, words=("true",)), held)
    return specs_of(session, asked.words[0], asked.environment, rest)


def _of_command(asked: Asked, held: Held) -> Spec:
    # What a person types at a terminal fails at once, so that they can mend it; a lost machine is made good all the same.
    retry = Retry(failures=asked.retries if asked.retries is not None else 0 if asked.is_command else Retry().failures)
    cpus = asked.cpus if asked.cpus is not None else 1
    folder = str((asked.folder or Path.cwd()).absolute())
    return Spec(
        command=asked.words,
        name=asked.name or Path(_said(asked.words)).stem or "job",
        place=held.engine.place,
        folder=folder,
        env=submitting.environment(asked.settings),
        secrets={one.partition("=")[0]: one.partition("=")[2] for one in asked.secrets},
        needs=Needs(gpus=asked.gpus or 0, cpus=cpus, processes=asked.processes),
        owner=submitting.submitter(),
        team=asked.team or "",
        project=asked.project or "",
        labels=_labels(asked.labels),
        priority=asked.priority,
        retry=retry,
        grace_s=asked.grace if asked.grace is not None else 30.0,
        longest_s=asked.longest,
        expected_s=asked.expected,
        budget_usd=asked.budget,
        checkpoints=asked.checkpoints or "",
        after=tuple(_known(held, one) for one in asked.after),
        produces=asked.produces,
    )


def _known(held: Held, text: str) -> str:
    from chipwise.api.running import jobs

    return jobs.find(held.record, text).id


def _said(words: Sequence[str]) -> str:
    """What a person would call it: the script rather than its interpreter."""
    for word in words[1:]:
        if word.endswith((".py", ".sh", ".jl", ".R")):
            return word
    return words[0]


def _labels(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"{one[:60]!r} is no label.", remedy="Write --label NAME=VALUE.")
        found[name.strip()] = value
    return found


def _values(secrets: Sequence[str]) -> dict[str, str]:
    """Secrets that are in the environment now and are kept nowhere else."""
    found: dict[str, str] = {}
    for one in secrets:
        name, kept, _ = one.partition("=")
        if kept:
            continue
        if name not in os.environ:
            raise BadInput(
                f"The secret {name} is not set here.", remedy=f"Set it, or write --secret {name}=NAME/KEY of a stored one."
            )
        found[name] = os.environ[name]
    return found


def short(held: Held, job: Job) -> str:
    """Where it stands, for whoever watches; empty while it runs."""
    if job.phase is Phase.QUEUED and job.waiting and job.attempts:
        return f"{job.id} goes back to the queue: {job.waiting}"
    if job.phase is Phase.STARTING and len(job.attempts) > 1:
        return f"{job.id} starts again, attempt {len(job.attempts)}"
    return ""


def ask(session: Session, names: Sequence[str], wish: Wish) -> list[str]:
    """All are found before the first is asked."""
    from chipwise.api.running import jobs

    with opened(session) as held:
        found = [jobs.find(held.record, name) for name in names]
        for job in found:
            jobs.ask(held.record, job, wish, submitting.submitter())
    controlling.awake(session)
    return [job.id for job in found]


def exit_code(job: Job) -> int:
    """Of a command that followed it to its end: the job's own where it has one."""
    if job.phase is Phase.DONE:
        return 0
    last = job.attempt
    return last.code if last is not None and last.code else 1
