"""`bench` as a verb: the same work on several engines or machines, one run after the other, and what each made of it.

A run is a job like any other, so that its record holds what was predicted and what was measured. Runs follow one another, since
two at a time on one machine would measure each other. What is simulated is a formula, and is never taken for a measurement.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from chipwise.api.running import asking, jobs, predicting
from chipwise.api.running.installed import runs_here
from chipwise.errors import BadInput, ChipwiseError
from chipwise.runner.bench import rows as bench_rows
from chipwise.runner.bench.measuring import speed_of, why_unmeasured
from chipwise.runner.bench.values import Allocation, BenchPlace, BenchRequest, Result, Run, Unknown
from chipwise.runner.comparing import number, steps_of
from chipwise.runner.events import Measured
from chipwise.runner.job import LIVE, PLACED, Job, Phase, Wish, Work
from chipwise.runner.record import Wanted as WantedJobs
from chipwise.runner.submission.predicted import on_machine, predict, work_of
from chipwise.workload.common import Common

if TYPE_CHECKING:
    from chipwise.api.running.asking import RunRequest, Runtime
    from chipwise.api.session.wiring import Session

LOOKS_S = 0.2
LABEL = "bench"
Report = Callable[[int, int | None, str], None]
Tell = Callable[[int, int, int], None]  # the run, its steps so far, of how many; 0: nobody says


def check_rows(session: Session, wanted: BenchRequest) -> None:
    """Refuses a file that could hold no row, before anything runs."""
    bench_rows.check_rows(session.known, wanted)


def rows(session: Session, wanted: BenchRequest, results: Sequence[Result]) -> tuple[str, list[str]]:
    """A CSV, which is empty where there is no row, and why places are not in it."""
    return bench_rows.rows(session.known, wanted, results)


def bench(
    session: Session, wanted: BenchRequest, report: Report, say: Callable[[str], None] = lambda line: None
) -> list[Result]:
    """One place after the other. Whoever interrupts it leaves no job behind. What a place refuses is told with the rest.
    `say`: for what is sent to a rented machine, once."""
    mark = f"{LABEL}={secrets.token_hex(4)}"
    results: list[Result] = []
    refused: list[ChipwiseError] = []
    with asking.opened(session, makes=True) as runtime:
        _check_devices(runtime, wanted)
        try:
            for place in wanted.places:
                try:
                    results.append(_bench_place(runtime, wanted, place, mark, _part(report, wanted, len(results)), say))
                except ChipwiseError as error:
                    refused.append(error)
                    results.append(Result(place=place, unit="", runs=(), predicted={}, allocation=Unknown(str(error))))
        except BaseException:
            _stop(runtime, mark)
            raise
    if len(refused) == len(wanted.places):
        raise refused[0]
    return results


def _check_devices(runtime: Runtime, wanted: BenchRequest) -> None:
    """What this machine does not have is known before the first run."""
    config = runtime.engine.config
    for place in wanted.places:
        for device, count, available in (("GPUs", place.gpus, config.gpus), ("CPUs", place.cpus, config.cpus)):
            if (count or 0) > len(available):
                raise BadInput(
                    f"--on {place.text} asks for {count} {device}, and this machine has {len(available)}.",
                    remedy="Ask for fewer.",
                )


def _part(report: Report, wanted: BenchRequest, before: int) -> Tell:
    """Steps so far over all runs where their number is given, else those of the run."""
    runs = len(wanted.places) * wanted.repeat

    def tell(run: int, step: int, total: int) -> None:
        label = f"{wanted.places[before].text} {run + 1} of {wanted.repeat}"
        if total:
            report((before * wanted.repeat + run) * total + min(step, total), runs * total, label)
        else:
            report(step, None, label)

    return tell


def _bench_place(
    runtime: Runtime, wanted: BenchRequest, place: BenchPlace, mark: str, tell: Tell, say: Callable[[str], None]
) -> Result:
    work = wanted.work
    unit = work_of(work)
    if place.simulated:
        return _simulated(runtime, wanted, place, unit)
    runs: list[Run] = []
    job: Job | None = None
    for run in range(wanted.repeat):
        submitted = asking.run(runtime.session, _request(wanted, place, mark), say if run == 0 else lambda line: None)[0]
        job = _watched(runtime, submitted.id, wanted, partial(tell, run))
        runs.append(_run(runtime, job, unit, wanted.steps))
        _sweep(runtime, job)
        if runs[-1].speed is None:
            break  # the next would tell no more
    assert job is not None
    allocation = _allocation(runtime.session, job)
    predicted = dict(job.spec.predicted)
    if number(predicted.get("throughput")) is None and "why_not" not in predicted:
        predicted = {**predicted, **predict(runtime.session.known, wanted.path, work, allocation)}
    return Result(place=place, unit=unit.unit or "steps", runs=tuple(runs), predicted=predicted, allocation=allocation)


def _request(wanted: BenchRequest, place: BenchPlace, mark: str) -> RunRequest:
    """On a named machine nothing is planned: a plan would choose the machine itself."""
    work = wanted.work
    settings = [f"CHIPWISE_STEPS={wanted.steps}"] if wanted.steps is not None else []
    return asking.RunRequest(
        words=(wanted.path,),
        is_command=False,
        engine=place.engine,
        gpus=place.gpus,
        cpus=place.cpus,
        context=place.context,
        machine=place.machine,
        labels=(mark,),
        settings=tuple(settings),
        retries=0,
        environment=wanted.environment,
        checkpoints=_own(work, mark),
    )


def _own(work: Common, mark: str) -> str | None:
    """A place of their own for checkpoints where the file names one: a run must not go on from what another saved. Each run
    has its own, by the job's number."""
    folder = work.program.checkpoints if work.program is not None else None
    return None if folder is None else f"{folder.rstrip('/')}/{mark.replace('=', '-')}-{secrets.token_hex(3)}"


def _watched(runtime: Runtime, id: str, wanted: BenchRequest, tell: Callable[[int, int], None]) -> Job:
    stopping = False
    while not (job := runtime.job(id)).phase.over:
        attempt, now = job.attempt, time.time()
        step = _step(runtime, job, now) if job.phase is Phase.RUNNING else 0
        tell(step, wanted.steps or int(number(job.spec.predicted.get("steps")) or 0))
        ran = now - attempt.begun if attempt is not None and attempt.begun is not None else 0.0
        if wanted.longest is not None and ran > wanted.longest and not stopping and job.phase is Phase.RUNNING:
            jobs.ask(runtime.record, job, Wish.STOP, reason="measured for long enough")
            stopping = True
        time.sleep(LOOKS_S)
    return job


def _step(runtime: Runtime, job: Job, now: float) -> int:
    """Of other engines it is known when the job is over: looking costs them requests."""
    if not runs_here(job.spec.engine):
        return 0
    sight = runtime.local_engine(job).look([job], now).attempts.get((job.id, len(job.attempts)))
    return sight.step or 0 if sight is not None else 0


def _run(runtime: Runtime, job: Job, work: Work, step_limit: int | None) -> Run:
    events = [one.event for one in runtime.record.events(job.id) if isinstance(one.event, Measured)]
    measured: Mapping[str, object] = events[-1].measured if events else {}
    last = job.attempt
    price = last.where.usd_per_hour if last is not None else None
    now = time.time()
    neighbours = runtime.record.rows(WantedJobs(phases=PLACED, place=job.spec.place))
    steps = measured.get("steps")
    speed = speed_of(measured, work, step_limit)
    return Run(
        job=job.id,
        speed=speed,
        seconds=number(measured.get("seconds")) or job.runtime_s(now),
        steps=steps if isinstance(steps, int) else None,
        attempts=len(job.attempts),
        usd=job.usd(now) if price else None,
        usd_per_hour=None if price is None or last is None else price * last.machines,
        neighbours=len(neighbours),
        reason="" if speed is not None else why_unmeasured(job, measured, work, step_limit),
    )


def _allocation(session: Session, job: Job) -> Allocation | Unknown:
    if runs_here(job.spec.engine):
        return predicting.local_allocation(session, job.spec.needs)
    location = job.attempts[-1].where if job.attempts else None
    if location is None or not location.machine:
        return Unknown("the engine does not say which machine it was")
    return on_machine(
        session.known, f"{location.provider} {location.machine}".strip(), job.spec.needs.machines, location.usd_per_hour
    )


def _simulated(runtime: Runtime, wanted: BenchRequest, place: BenchPlace, unit: Work) -> Result:
    """The machines of the plan by the formulas: what nobody ran."""
    from chipwise.api.running.planned import with_plan
    from chipwise.runner.job import Spec

    spec = with_plan(runtime.session, wanted.path, wanted.environment, Spec((), wanted.work.name), time.time())
    first = spec.places[0]
    allocation = on_machine(runtime.session.known, f"{first.provider} {first.machine}", spec.needs.machines, first.usd_per_hour)
    if isinstance(allocation, Allocation):
        allocation = replace(allocation, chips=float(spec.needs.gpus * spec.needs.machines) or allocation.chips)
    predicted = {
        **predict(runtime.session.known, wanted.path, wanted.work, allocation),
        "seconds": spec.predicted["seconds"],
    }
    if wanted.steps is not None and (
        total_steps := steps_of(replace(spec, work=unit))
    ):  # fewer take less, after the same start
        seconds, start_s = (number(spec.predicted[name]) or 0.0 for name in ("seconds", "start_s"))
        part = min(wanted.steps / total_steps, 1.0)
        predicted |= {"steps": min(wanted.steps, total_steps), "seconds": start_s + (seconds - start_s) * part}
    return Result(place=place, unit=unit.unit or "steps", runs=(), predicted=predicted, allocation=allocation, formula=True)


def _sweep(runtime: Runtime, job: Job) -> None:
    """Checkpoints of a run that nobody will go on with; its output stays."""
    if runs_here(job.spec.engine) and not job.spec.checkpoints:
        shutil.rmtree(runtime.root / job.id / "checkpoints", ignore_errors=True)


def _stop(runtime: Runtime, mark: str) -> None:
    """Whatever was begun under this mark, be it recorded a moment ago."""
    name, _, value = mark.partition("=")
    live = runtime.record.jobs(WantedJobs(phases=LIVE))
    marked = [job for job in live if job.spec.labels.get(name) == value]
    for job in marked:
        jobs.ask(runtime.record, job, Wish.STOP, reason="its benchmark was interrupted")
    for job in marked:
        late = time.monotonic() + job.spec.grace_s + 30.0
        while not runtime.job(job.id).phase.over and time.monotonic() < late:
            time.sleep(LOOKS_S)
        _sweep(runtime, job)
