"""`bench` as a verb: the same work on several engines or machines, one run after the other, and what each made of it.

A run is a job like any other, so that its record holds what was predicted and what was measured. Runs follow one another, since
two at a time on one machine would measure each other. What is simulated is a formula, and is never taken for a measurement.
"""

from __future__ import annotations

import secrets
import shutil
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from chipwise.api.measure.places import Place, Wanted
from chipwise.api.running import asking, jobs, predicting
from chipwise.api.running.installed import runs_here
from chipwise.errors import BadInput, ChipwiseError
from chipwise.runner.comparing import number, steps_of
from chipwise.runner.events import Measured
from chipwise.runner.job import LIVE, PLACED, Job, Phase, Wish, Work
from chipwise.runner.record import Wanted as WantedJobs
from chipwise.workload.kinds import Common

if TYPE_CHECKING:
    from chipwise.api.running.asking import Asked, Held
    from chipwise.api.session.wiring import Session

LOOKS_S = 0.2
LABEL = "bench"
Report = Callable[[int, int | None, str], None]
Tell = Callable[[int, int, int], None]  # the run, its steps so far, of how many; 0: nobody says


@dataclass(frozen=True, slots=True)
class Run:
    """One job, over."""

    job: str
    speed: float | None  # units per second
    seconds: float
    steps: int | None
    attempts: int
    usd: float | None
    usd_per_hour: float | None
    beside: int  # other jobs that held devices of the same place at its end
    why: str  # there is no speed; empty where there is one


@dataclass(frozen=True, slots=True)
class Result:
    place: Place
    unit: str
    runs: tuple[Run, ...]
    predicted: Mapping[str, object]
    held: predicting.Held | predicting.Unknown
    formula: bool = False

    @property
    def speeds(self) -> list[float]:
        return [run.speed for run in self.runs if run.speed is not None]

    @property
    def speed(self) -> float | None:
        return statistics.median(self.speeds) if self.speeds else None

    @property
    def spread(self) -> float | None:
        """Between the fastest and the slowest run, relative to the median."""
        speeds = self.speeds
        return (max(speeds) - min(speeds)) / statistics.median(speeds) if len(speeds) > 1 else None

    @property
    def expected(self) -> float | None:
        return number(self.predicted.get("throughput"))

    @property
    def ratio(self) -> float | None:
        return self.speed / self.expected if self.speed and self.expected else None

    @property
    def seconds(self) -> float | None:
        return statistics.median(run.seconds for run in self.runs) if self.runs else number(self.predicted.get("seconds"))

    @property
    def attempts(self) -> int:
        return sum(run.attempts for run in self.runs)

    @property
    def usd_per_unit(self) -> float | None:
        """What the machines cost for as long as one unit takes; None where nobody says what an hour of them costs."""
        hourly = next((run.usd_per_hour for run in self.runs if run.usd_per_hour), None)
        speed = self.speed if not self.formula else self.expected
        if self.formula and isinstance(self.held, predicting.Held):
            hourly = self.held.usd_per_hour
        return hourly / 3600.0 / speed if hourly and speed else None

    @property
    def why(self) -> str:
        """Why it was not measured."""
        if not self.runs and not self.formula and isinstance(self.held, predicting.Unknown):
            return self.held.reason
        return next((run.why for run in self.runs if run.why), "")


# What is done


def bench(session: Session, wanted: Wanted, report: Report, say: Callable[[str], None] = lambda line: None) -> list[Result]:
    """One place after the other. Whoever interrupts it leaves no job behind. What a place refuses is told with the rest.
    `say`: for what is sent to a rented machine, once."""
    mark = f"{LABEL}={secrets.token_hex(4)}"
    results: list[Result] = []
    refused: list[ChipwiseError] = []
    with asking.opened(session) as held:
        _there(held, wanted)
        try:
            for one in wanted.places:
                try:
                    results.append(_at(held, wanted, one, mark, _part(report, wanted, len(results)), say))
                except ChipwiseError as error:
                    refused.append(error)
                    results.append(Result(one, "", (), {}, predicting.Unknown(str(error))))
        except BaseException:
            _stop(held, mark)
            raise
    if len(refused) == len(wanted.places):
        raise refused[0]
    return results


def _there(held: Held, wanted: Wanted) -> None:
    """What this machine does not have is known before the first run."""
    config = held.engine.config
    for one in wanted.places:
        for what, asked, there in (("GPUs", one.gpus, config.gpus), ("CPUs", one.cpus, config.cpus)):
            if (asked or 0) > len(there):
                raise BadInput(
                    f"--on {one.text} asks for {asked} {what}, and this machine gives {len(there)}.", remedy="Ask for fewer."
                )


def _part(report: Report, wanted: Wanted, before: int) -> Tell:
    """Steps so far over all runs where their number is given, else those of the run."""
    runs = len(wanted.places) * wanted.repeat

    def tell(run: int, step: int, total: int) -> None:
        what = f"{wanted.places[before].text} {run + 1} of {wanted.repeat}"
        if total:
            report((before * wanted.repeat + run) * total + min(step, total), runs * total, what)
        else:
            report(step, None, what)

    return tell


def _at(held: Held, wanted: Wanted, place: Place, mark: str, tell: Tell, say: Callable[[str], None]) -> Result:
    work = wanted.work
    unit = predicting.work_of(work)
    if place.simulated:
        return _simulated(held, wanted, place, unit)
    runs: list[Run] = []
    job: Job | None = None
    for run in range(wanted.repeat):
        submitted = asking.run(held.session, _asked(wanted, place, mark), say if run == 0 else lambda line: None)[0]
        job = _watched(held, submitted.id, wanted, partial(tell, run))
        runs.append(_run(held, job, unit, wanted.steps))
        _sweep(held, job)
        if runs[-1].speed is None:
            break  # the next would tell no more
    assert job is not None
    on = _held(held.session, job)
    predicted = dict(job.spec.predicted)
    if number(predicted.get("throughput")) is None and "why_not" not in predicted:
        predicted = {**predicted, **predicting.predict(held.session, wanted.path, work, on)}
    return Result(place, unit.unit or "steps", tuple(runs), predicted, on)


def _asked(wanted: Wanted, place: Place, mark: str) -> Asked:
    """On a named machine nothing is planned: a plan would choose the machine itself."""
    work = wanted.work
    settings = [f"CHIPWISE_STEPS={wanted.steps}"] if wanted.steps is not None else []
    return asking.Asked(
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
    kept = work.program.checkpoints if work.program is not None else None
    return None if kept is None else f"{kept.rstrip('/')}/{mark.replace('=', '-')}-{secrets.token_hex(3)}"


def _watched(held: Held, id: str, wanted: Wanted, tell: Callable[[int, int], None]) -> Job:
    asked = False
    while not (job := held.job(id)).phase.over:
        attempt, now = job.attempt, time.time()
        step = _step(held, job, now) if job.phase is Phase.RUNNING else 0
        tell(step, wanted.steps or int(number(job.spec.predicted.get("steps")) or 0))
        ran = now - attempt.begun if attempt is not None and attempt.begun is not None else 0.0
        if wanted.longest is not None and ran > wanted.longest and not asked and job.phase is Phase.RUNNING:
            jobs.ask(held.record, job, Wish.STOP, reason="measured for long enough")
            asked = True
        time.sleep(LOOKS_S)
    return job


def _step(held: Held, job: Job, now: float) -> int:
    """Of other engines it is known when the job is over: looking costs them requests."""
    if not runs_here(job.spec.engine):
        return 0
    sight = held.here(job).look([job], now).attempts.get((job.id, len(job.attempts)))
    return sight.step or 0 if sight is not None else 0


def _run(held: Held, job: Job, work: Work, asked: int | None) -> Run:
    events = [one.event for one in held.record.events(job.id) if isinstance(one.event, Measured)]
    measured: Mapping[str, object] = events[-1].measured if events else {}
    last = job.attempt
    price = last.where.usd_per_hour if last is not None else None
    now = time.time()
    beside = held.record.rows(WantedJobs(phases=PLACED, place=job.spec.place))
    steps = measured.get("steps")
    speed = _speed(measured, work, asked)
    return Run(
        job=job.id,
        speed=speed,
        seconds=number(measured.get("seconds")) or job.runtime_s(now),
        steps=steps if isinstance(steps, int) else None,
        attempts=len(job.attempts),
        usd=job.usd(now) if price else None,
        usd_per_hour=None if price is None or last is None else price * last.machines,
        beside=len(beside),
        why="" if speed is not None else _why(job, measured, work, asked),
    )


def _speed(measured: Mapping[str, object], work: Work, asked: int | None) -> float | None:
    """`asked`: so many steps and no more. Where nobody tells any, it may have done those, or all of its work."""
    if asked is not None and "steps" not in measured:
        return None
    told, rate = number(measured.get("throughput")), number(measured.get("steps_per_s"))
    if told is not None:
        return told
    if rate is None or (work.unit and not work.per_step):
        return None
    return rate * (work.per_step or 1.0)


def _why(job: Job, measured: Mapping[str, object], work: Work, asked: int | None) -> str:
    if job.phase is Phase.FAILED or not measured:
        return f"{job.phase}: {job.reason or 'nothing of it ran'} (chipwise logs {job.id})"
    if "steps" not in measured and asked is not None and job.phase is Phase.DONE:
        return f"it reports no steps (chipwise.job.steps does): it is not known whether it did {asked} or all of them"
    if "steps" not in measured:
        return "it reports no steps (chipwise.job.steps does) and was not run to its end"
    if "steps_per_s" not in measured:
        return f"{measured['steps']} steps were over before it was warm, or none was left to do: let it run for longer"
    return f"its file does not say how many {work.unit} a step is: let it run to its end"


def _held(session: Session, job: Job) -> predicting.Held | predicting.Unknown:
    if runs_here(job.spec.engine):
        return predicting.here(session, job.spec.needs)
    where = job.attempts[-1].where if job.attempts else None
    if where is None or not where.machine:
        return predicting.Unknown("the engine does not say which machine it was")
    return predicting.on_machine(
        session, f"{where.provider} {where.machine}".strip(), job.spec.needs.machines, where.usd_per_hour
    )


def _simulated(held: Held, wanted: Wanted, place: Place, unit: Work) -> Result:
    """The machines of the plan by the formulas: what nobody ran."""
    from chipwise.api.running.planned import with_plan
    from chipwise.runner.job import Spec

    spec = with_plan(held.session, wanted.path, wanted.environment, Spec((), wanted.work.name), time.time())
    first = spec.places[0]
    on = predicting.on_machine(held.session, f"{first.provider} {first.machine}", spec.needs.machines, first.usd_per_hour)
    if isinstance(on, predicting.Held):
        on = replace(on, chips=float(spec.needs.gpus * spec.needs.machines) or on.chips)
    predicted = {**predicting.predict(held.session, wanted.path, wanted.work, on), "seconds": spec.predicted["seconds"]}
    if wanted.steps is not None and (whole := steps_of(replace(spec, work=unit))):  # fewer take less, after the same start
        seconds, start_s = (number(spec.predicted[name]) or 0.0 for name in ("seconds", "start_s"))
        part = min(wanted.steps / whole, 1.0)
        predicted |= {"steps": min(wanted.steps, whole), "seconds": start_s + (seconds - start_s) * part}
    return Result(place, unit.unit or "steps", (), predicted, on, formula=True)


def _sweep(held: Held, job: Job) -> None:
    """Checkpoints of a run that nobody will go on with; its output stays."""
    if runs_here(job.spec.engine) and not job.spec.checkpoints:
        shutil.rmtree(held.root / job.id / "checkpoints", ignore_errors=True)


def _stop(held: Held, mark: str) -> None:
    """Whatever was begun under this mark, be it recorded a moment ago."""
    name, _, value = mark.partition("=")
    live = held.record.jobs(WantedJobs(phases=LIVE))
    mine = [job for job in live if job.spec.labels.get(name) == value]
    for job in mine:
        jobs.ask(held.record, job, Wish.STOP, reason="its benchmark was interrupted")
    for job in mine:
        late = time.monotonic() + job.spec.grace_s + 30.0
        while not held.job(job.id).phase.over and time.monotonic() < late:
            time.sleep(LOOKS_S)
        _sweep(held, job)
