"""Jobs that are over, with what was predicted and measured of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chipwise.runner.accuracy.runs import MeasuredRun, measured_run
from chipwise.runner.events import Ended, Measured, Over, Submitted
from chipwise.runner.job import Job, Needs, Outcome, Phase, Spec, Work
from chipwise.runner.record import Happened
from run_jobs import added, queued, running

PREDICTED: Mapping[str, object] = {
    "chip": "H200",
    "chips": 1.0,
    "throughput": 100.0,
    "throughput_low": 90.0,
    "throughput_high": 110.0,
    "unit": "tokens",
}
DAY_S = 86400.0
SPEC = Spec(("python", "train.py"), "train", needs=Needs(1, 4), work=Work("tokens", 1e6, 10.0), workload="w.yaml")


def watched(driver: str = "560.1", program: str = "train.py 0a0a0a0a", **more: object) -> dict[str, object]:
    device = {"name": "NVIDIA H200", "processes": 1.0, "temperature_max_c": 60.0}
    return {"devices": {"nvidia:0": device}, "conditions": {"driver": driver, "program": program}, **more}


def events(spec: Spec, measured: Mapping[str, object], number: int) -> tuple[Job, Measured]:
    at = number * DAY_S
    measurement = Measured(dict(spec.predicted), dict(measured))
    job = running(queued(f"{spec.name}-{number}", spec, at), gpus=(0,), at=at)
    return added(job, Ended(1, Outcome.DONE, 0), measurement, Over(Phase.DONE, ""), at=at + 60.0), measurement


def finished(
    number: int, speed: float, conditions: Mapping[str, object] | None = None, spec: Spec | None = None, **asked: object
) -> MeasuredRun:
    """The run of that day; `speed`: of its tokens."""
    spec = replace(spec or SPEC, **asked) if asked else spec or SPEC  # type: ignore[arg-type]
    spec = spec if spec.predicted else replace(spec, predicted=dict(PREDICTED))
    measured = {"throughput": speed, "unit": "tokens", "watched": dict(conditions if conditions is not None else watched())}
    job, measurement = events(spec, measured, number)
    run = measured_run(job, [Happened(1, job.id, 0.0, Submitted(spec)), Happened(2, job.id, 1.0, measurement)])
    assert run is not None
    return run
