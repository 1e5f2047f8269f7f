"""`watch` as a verb: samples of this machine, of a process, of a job that its supervisor records, or of a recording."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.adapters.sample_sources import Followed, Live, SampleSource, live, recorder_to
from chipwise.errors import BadInput, NoResult
from chipwise.observe.current import CurrentFinding
from chipwise.observe.sample import Recording, Sample
from chipwise.observe.series import SampleStore
from chipwise.observe.summary import Summary
from chipwise.views.watch import view as view

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.runner.job import Job

LEAST_EVERY_S = 0.05
RECORDED_EVERY_S = 0.2
FIRST_S = 0.5  # until shares of host and program are known


@dataclass(frozen=True, slots=True)
class WatchTarget:
    """What is to be watched; nothing of it: this machine."""

    job: str | None = None
    pid: int | None = None
    scrape: tuple[str, ...] = ()

    def check(self, everything: bool = False) -> None:
        if sum((self.job is not None, self.pid is not None, everything)) > 1:
            raise BadInput("A job, --pid and --all cannot be combined.", remedy="Give one of them.")


def opened(session: Session, wanted: WatchTarget) -> SampleSource:
    if wanted.job is not None:
        return _of_job(session, wanted.job, wanted.scrape)
    return live(wanted.pid, wanted.scrape, labels={"pid": str(wanted.pid)} if wanted.pid is not None else {})


def _of_job(session: Session, name: str, scrape: Sequence[str]) -> SampleSource:
    from chipwise.adapters.recordings import NAME, Follower
    from chipwise.api.running import held, jobs, place

    with held.opened(session) as runtime:
        job = jobs.find(runtime.record, name)
        if not place.is_here(session, job.spec):
            if scrape:
                return live(None, scrape, labels={"job": job.id})
            raise BadInput(
                f"{job.id} runs at {job.spec.place or job.spec.engine}, and is not sampled on this machine.",
                remedy="Give the address of its exporter: --scrape http://HOST:PORT/metrics.",
            )
        if not job.attempts:
            raise NoResult(f"{job.id} has not started: there is nothing to watch.", remedy=f"See chipwise describe {job.id}.")
        engine, number = runtime.local_engine(job), len(job.attempts)
        path = engine.folder(job.id, number) / NAME
        if not path.exists():
            if job.phase.placed and engine.supervisor_of(job.id, number) is not None:
                return live(None, scrape, _job_labels(job), lambda: [one.pid for one in engine.processes_of(job.id, number)])
            raise NoResult(f"There is no recording of {job.id}.", remedy="It ended before it was sampled, or was forgotten.")
    follower = Follower(path)
    samples, _ = follower.look()
    if follower.header is None:
        raise NoResult(f"The recording of {job.id} is empty so far.", remedy="Try again in a second.")
    waiting = [samples]

    def look() -> tuple[list[Sample], bool]:
        return (waiting.pop(), False) if waiting else follower.look()

    return Followed(follower.header, (), look, lambda: _is_over(session, job.id, number))


def _is_over(session: Session, id: str, number: int) -> bool:
    from chipwise.api.running import held

    with held.opened(session) as runtime:
        job = runtime.record.job(id)
    return job is None or job.phase.over or len(job.attempts) > number


def _job_labels(job: Job) -> dict[str, str]:
    labels = {"job": job.id, "owner": job.spec.owner, "team": job.spec.team, "engine": job.spec.engine}
    return {name: text for name, text in labels.items() if text}


@dataclass(slots=True)
class LiveWatch:
    """Samples as they come: in the store, in the summary, in a recording."""

    source: SampleSource
    store: SampleStore
    summary: Summary
    current: CurrentFinding
    record: Callable[[Sequence[Sample]], None] | None = None

    def turn(self) -> list[Sample]:
        samples, is_again = self.source.look()
        if is_again:
            self.store, self.summary = SampleStore(), _summary(self.source.header)
        for sample in samples:
            self.store.add(sample)
        self.summary.add_all(samples)
        self.current.add(samples, is_again=is_again)
        if self.record is not None:
            self.record(samples)
        return samples

    @property
    def header(self) -> Recording:
        return self.source.header

    def finding(self) -> str:
        """The doctor's first finding over the last minute, in one line; empty while there is too little to judge by."""
        from chipwise.views.doctor import headline

        diagnosis = self.current.diagnosis()
        return "" if diagnosis is None else headline(diagnosis)

    def summary_words(self) -> str:
        """In one sentence; empty where no device was read."""
        from chipwise.observe.summary import sentence
        from chipwise.text import usd

        value = self.summary.value()
        parts = [part for part in (sentence(value), usd(value["usd"]) if value.get("usd") else "") if part]
        return f"So far (medians): {', '.join(parts)}." if parts else ""

    def close(self) -> None:
        self.source.close()


def begun(session: Session, wanted: WatchTarget, record: Path | None = None) -> LiveWatch:
    source = opened(session, wanted)
    recorder = recorder_to(record, source.header) if record is not None else None
    return _watch(session, source, recorder)


def _watch(session: Session, source: SampleSource, recorder: Callable[[Sequence[Sample]], None] | None = None) -> LiveWatch:
    header = source.header
    return LiveWatch(source, SampleStore(), _summary(header), CurrentFinding(lambda: session.chip_names, header), recorder)


def _summary(header: Recording) -> Summary:
    return Summary(header.devices, header.usd_per_hour, header.kg_per_kwh)


def turns(watch: LiveWatch, every_s: float, for_s: float | None = None) -> Iterator[list[Sample]]:
    """One after another until the time or what is watched is over. The first comes when what is counted between two samples is
    known."""
    every_s = max(every_s, LEAST_EVERY_S)
    begin = time.monotonic()
    if isinstance(watch.source, Live):
        watch.turn()
        time.sleep(min(max(every_s, FIRST_S), 1.0))
    due = time.monotonic()
    while True:
        yield watch.turn()
        due = max(due + every_s, time.monotonic())
        if watch.source.is_over() or (for_s is not None and due - begin > for_s):
            return
        time.sleep(max(due - time.monotonic(), 0.0))


def replayed(session: Session, path: Path) -> tuple[LiveWatch, bool]:
    """A recording as if it had just been watched; and whether its end is missing."""
    from chipwise.observe.recording import load

    loaded = load(path)
    header = replace(loaded.recording, samples=())
    waiting = [list(loaded.recording.samples)]
    source = Followed(header, (), lambda: (waiting.pop() if waiting else [], False), lambda: True)
    watch = _watch(session, source)
    watch.turn()
    return watch, loaded.is_cut


def served(watch: LiveWatch, address: str) -> tuple[str, Callable[[], None]]:
    """Where its metrics can be read, and what ends that."""
    from chipwise.adapters import exposition_server
    from chipwise.observe.exposition import CONTENT_TYPE, exposed

    host, port = exposition_server.address(address)
    server = exposition_server.Server(
        (host, port), lambda: exposed(list(watch.store.newest.values()), watch.header), CONTENT_TYPE
    )
    return f"http://{host}:{server.port}/metrics", server.close


def recorded(
    session: Session,
    seconds: float,
    *,
    job: str | None = None,
    pid: int | None = None,
    tick: Callable[[float], None] = lambda passed_s: None,
) -> Recording:
    """Neither a job nor a process: the devices and the host."""
    source = opened(session, WatchTarget(job=job, pid=pid))
    samples: list[Sample] = []
    started = time.monotonic()
    try:
        while (passed := time.monotonic() - started) < seconds and not source.is_over():
            new, came_again = source.look()
            samples = [*new] if came_again else [*samples, *new]
            tick(passed)
            time.sleep(max(RECORDED_EVERY_S - (time.monotonic() - started - passed), 0.0))
        header = source.header
    finally:
        source.close()
    return replace(header, samples=tuple(samples))
