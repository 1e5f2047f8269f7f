"""`reap` as a verb: what stands at a cluster or an account, costs, and belongs to no live job of this record, is ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from chipwise.api.running import engines
from chipwise.api.running.held import Runtime, opened
from chipwise.errors import BadInput, ChipwiseError
from chipwise.runner.abilities import Reaps
from chipwise.runner.engine import Clear
from chipwise.runner.job import PLACED, Job
from chipwise.runner.record import Wanted

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.runner.engine import Engine


@dataclass(frozen=True, slots=True)
class Left:
    """What was found, and ended unless it was only looked for."""

    place: str
    kind: str  # machine, launch template, objects
    name: str
    job: str = ""
    attempt: int = 0
    type: str = ""
    region: str = ""


@dataclass(frozen=True, slots=True)
class Reaped:
    left: tuple[Left, ...]
    not_reached: tuple[str, ...] = ()  # why, of each place


def reap(session: Session, name: str | None, *, dry_run: bool) -> Reaped:
    """Of one engine, or of all places that jobs of this record went to. One that cannot be reached is told, and the others are
    looked at all the same."""
    leftovers: list[Left] = []
    failed: list[ChipwiseError] = []
    with opened(session) as runtime:
        for make in _engines(session, name):
            try:
                engine = make()
                with closing(engine):
                    leftovers += _leftovers(runtime, engine, dry_run)
            except ChipwiseError as error:
                failed.append(error)
    if failed and name is not None:
        raise failed[0]
    return Reaped(tuple(leftovers), tuple(error.message for error in failed))


def _engines(session: Session, name: str | None) -> Iterator[Callable[[], Engine]]:
    if name is None:
        yield from (partial(engines.of_place, session, place) for place in engines.places(session))
        return
    reach = engines.reach(session, name)
    if reach.is_local:
        raise BadInput("The controller of this machine cleans up after its jobs itself.", remedy="Name another engine.")
    yield partial(engines.connect, session, reach)


def _leftovers(runtime: Runtime, engine: Engine, dry_run: bool) -> list[Left]:
    def live() -> list[Job]:
        wanted = Wanted(phases=PLACED, place=engine.place)
        return [
            *runtime.record.jobs(wanted),
            *(one.job for one in runtime.record.damaged(wanted)),
        ]  # of those nobody knows enough

    if isinstance(engine, Reaps):
        reaped = engine.reap(lambda: [(job.id, len(job.attempts)) for job in live()], dry_run=dry_run)
        return [
            Left(
                place=engine.place,
                kind=leftover.kind,
                name=leftover.name,
                job=leftover.job,
                attempt=leftover.attempt,
                type=leftover.type,
                region=leftover.region,
            )
            for leftover in reaped
        ]
    seen = engine.look(live(), time.time())
    if not dry_run:
        for handle in seen.strays:
            engine.do(Clear(handle))
    return [Left(engine.place, "objects", handle) for handle in seen.strays]
