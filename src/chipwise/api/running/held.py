"""The parts that a verb about jobs works with: the record, this machine's engine, and others as they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.api.running import controlling, place
from chipwise.api.running.installed import runs_here
from chipwise.errors import UnknownName
from chipwise.runner.job import Job

if TYPE_CHECKING:
    from chipwise.api.running.engines import Reach
    from chipwise.api.session.wiring import Session
    from chipwise.runner.abilities import OnThisMachine
    from chipwise.runner.engine import Engine
    from chipwise.runner.queue import Rules
    from chipwise.runner.record import Record


@dataclass(frozen=True, slots=True)
class Runtime:
    """The parts that stay open while a job is followed."""

    record: Record
    engine: OnThisMachine  # that jobs of this machine get unless they name another
    rules: Rules
    root: Path
    session: Session
    elsewhere: dict[str, Engine] = field(default_factory=dict)  # by place
    reaches: dict[str, Reach] = field(default_factory=dict)  # how each of them was reached

    def job(self, id: str) -> Job:
        """As it is recorded now; whoever watches a job sees to it that somebody carries it out."""
        job = self.record.job(id)
        if job is None:
            raise UnknownName("job", id)
        if not job.phase.over:
            self.awake(job)
        return job

    def awake(self, job: Job) -> None:
        """Of this machine, or of a place elsewhere; jobs of another machine have a controller there."""
        site = job.spec.place
        if site == self.engine.place:
            controlling.awake(self.session, wait_s=controlling.REPLACES_WITHIN_S)
        elif not runs_here(job.spec.engine) or place.is_here(self.session, job.spec):
            controlling.awake(self.session, site, controlling.REPLACES_WITHIN_S)

    def local_engine(self, job: Job) -> OnThisMachine:
        """Its engine on this machine."""
        if job.spec.place == self.engine.place:
            return self.engine
        return place.engine_here(self.session, job.spec.engine)

    def engine_of(self, job: Job) -> Engine | None:
        """None: this machine's own, whose logs are files under `root`."""
        from chipwise.api.running.engines import of_place

        if runs_here(job.spec.engine):
            return None
        site = job.spec.place
        if site not in self.elsewhere:
            self.elsewhere[site] = of_place(self.session, site)
        return self.elsewhere[site]


@contextmanager
def opened(session: Session, *, makes: bool = False) -> Iterator[Runtime]:
    """`makes`: a record where there is none, for who submits or waits for jobs of others."""
    record = place.open_record(session, only_reads=not makes)
    elsewhere: dict[str, Engine] = {}
    try:
        engine = place.engine_here(session)
        yield Runtime(
            record=record,
            engine=engine,
            rules=place.rules(session),
            root=engine.config.root,
            session=session,
            elsewhere=elsewhere,
        )
    finally:
        for remote in elsewhere.values():
            remote.close()
        record.close()
