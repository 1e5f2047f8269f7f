"""What a workload will take on what its job holds: recorded with the job, and held against what it took.

A job that holds some of a processor's cores is given their share of its arithmetic and of its memory's bandwidth: a rule of
thumb, since few cores draw more of the bandwidth than their share. A prediction that cannot be made is a reason and no error:
no job waits or fails for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chipwise.catalog.chip import ChipKind
from chipwise.errors import ChipwiseError
from chipwise.runner.job import Work
from chipwise.workload.common import Common
from chipwise.workload.kinds import Batch, Hpc, Learning, Render, Transcode
from chipwise.workload.model.registry import Model, Registry

if TYPE_CHECKING:
    from chipwise.predictor.known import Known, Models
    from chipwise.predictor.values import FitResult, MemoryUse, Prediction

THREADS = 2.0
Figures = dict[str, object]
_AS_TRAINED = ("tp", "pp", "cp", "ep", "micro_batch", "global_batch", "seq", "recompute", "zero_stage")


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a job holds: so many chips of the catalog, or a share of one processor."""

    chip: str
    chips: float = 1.0
    share: float = 1.0  # of each chip
    usd_per_hour: float | None = None  # of what it holds; None: nobody says what it costs


@dataclass(frozen=True, slots=True)
class Unknown:
    reason: str


@dataclass(frozen=True, slots=True)
class _Offline:
    """Models that are at hand: none is fetched for a prediction that nobody waits for."""

    models: Models

    @property
    def registry(self) -> Registry:
        return self.models.registry

    def find(self, name: str, online: bool = True) -> Model:
        return self.models.find(name, online=False)


def work_of(work: Common) -> Work:
    """What is counted of it, how much there is in all, and in one of its steps."""
    match work:
        case Learning(tokens=None):
            return Work("samples", (work.samples or 0.0) * work.epochs or None, work.batch_samples)
        case Learning():
            by_length = (work.batch_samples or 0.0) * (work.sequence_length or 0.0)
            return Work("tokens", (work.tokens or 0.0) * work.epochs, work.batch_tokens or by_length or None)
        case Hpc():
            return Work("steps", work.steps * work.runs, 1.0)
        case Batch():
            return Work("items", work.items)
        case Render():
            return Work("frames", work.frames)
        case Transcode(duration=float()):
            return Work("seconds of video", work.duration)
    return Work()


def on_machine(known: Known, name: str, machines: int = 1, usd_per_hour: float | None = None) -> Allocation | Unknown:
    """Machines that a cloud rents, by the catalog's name."""
    matches = known.names.machines_or_none(name)
    if not matches or not matches[0].chip:
        return Unknown(f"the machine {name} is not in the catalog, or its chip is not")
    machine, cost = matches[0], None if usd_per_hour is None else usd_per_hour * machines
    if machine.chips:
        return Allocation(str(machine.chip), max(machine.chips, 1.0) * machines, usd_per_hour=cost)
    cores = next((row.cores for row in known.catalog.rows("cpus") if row.name == machine.chip and row.cores), None)
    used_cores = (machine.vcpus or 2.0) / THREADS  # a vCPU is a thread, and two of them share a core on most machines
    return Allocation(str(machine.chip), float(machines), min(used_cores / cores, 1.0) if cores else 1.0, cost)


def predict(known: Known, path: str, work: Common, allocation: Allocation | Unknown) -> Figures:
    """Figures by name, each with its interval where it has one; only `why_not` where nothing can be predicted."""
    if isinstance(allocation, Unknown):
        return {"why_not": allocation.reason}
    from chipwise.predictor.kinds.ask import Ask, kind_of
    from chipwise.predictor.work import predict_work
    from chipwise.runner.submission.described import described

    try:
        options = {"chips": allocation.chips} if allocation.chips > 1 else {}
        here = _apart(known, allocation)
        predicted = predict_work(Ask(here, path, allocation.chip, options), work)
        values = figures(predicted, work_of(work), allocation)
        if "seconds" not in values and "throughput" not in values:
            return {"why_not": f"a workload of the kind {kind_of(work)} has neither an end nor a speed"}
        cells = described(here, path, work)
        return values if cells is None else {**values, "row": cells}
    except ChipwiseError as error:
        return {"why_not": str(error)}
    except Exception as error:  # a bug in chipwise, and no reason to keep somebody's job from running
        return {"why_not": f"a bug in chipwise: {type(error).__name__}: {str(error)[:200]}"}


def figures(predicted: Prediction, work: Work, allocation: Allocation) -> Figures:
    values: Figures = {"chip": allocation.chip, "chips": allocation.chips}
    if allocation.share < 1.0:
        values["share"] = allocation.share
    if predicted.job is not None:
        time = predicted.job.time
        values |= {"seconds": time.value, "seconds_low": time.low, "seconds_high": time.high}
        if work.amount:
            rate = time.of(work.amount)
            values |= {"throughput": rate.value, "throughput_low": rate.low, "throughput_high": rate.high, "unit": work.unit}
        if work.amount and work.per_step:
            values["steps"] = math.ceil(work.amount / work.per_step)
        values["usd"] = (allocation.usd_per_hour or 0.0) * time.value / 3600.0
    values |= _of_model(predicted)
    return {name: value for name, value in values.items() if not isinstance(value, float) or math.isfinite(value)}


def _of_model(predicted: Prediction) -> Figures:
    """Speed without an end, memory, how near to measurements, and what was assumed where the file leaves it open."""
    from chipwise.predictor.values import GenerationPrediction, RenderPrediction, SamplePrediction, TrainingPrediction

    match predicted:
        case TrainingPrediction():
            setup = predicted.setup
            run_as = {name: getattr(setup, name) for name in _AS_TRAINED} | {"framework": predicted.framework}
            return _memory(predicted.memory, predicted.fit) | {
                "provenance": predicted.step_time.provenance,
                "as_run": run_as,
            }
        case GenerationPrediction():
            values: Figures = {}
            if predicted.job is None and (rate := predicted.metrics.get("requests_per_s")) is not None:
                values = {"throughput": rate.value, "throughput_low": rate.low, "throughput_high": rate.high}
                values["unit"] = "requests"
            tokens = predicted.metrics.get("output_tokens_per_s")
            return (
                values
                | _memory(predicted.memory, predicted.fit)
                | {
                    "provenance": tokens.provenance if tokens is not None else "formula",
                    "as_run": {"tp": predicted.setup.tp, "pp": predicted.setup.pp, "engine": predicted.engine},
                }
            )
        case SamplePrediction():
            return _memory(predicted.memory, predicted.fit) | {
                "provenance": predicted.samples_per_s.provenance,
                "as_run": {"engine": predicted.engine, "batch": predicted.batch},
            }
        case RenderPrediction():
            return {"provenance": predicted.provenance, "as_run": {"engine": predicted.engine}}
    return {"provenance": "formula"}


def _memory(memory: MemoryUse, fit: FitResult | None) -> Figures:
    found: Figures = {"memory_bytes": memory.total_bytes}
    return found if fit is None or fit.fits else found | {"fits": False}


def _apart(known: Known, allocation: Allocation) -> Known:
    """Without a hub and, where the job holds a share of a processor, with that share as the part."""
    models = _Offline(known.models)
    if allocation.share < 1.0 and known.catalog.chips[allocation.chip].kind is ChipKind.CPU:
        part = known.parts[allocation.chip]
        rates = {name: rate * allocation.share for name, rate in part.rates.items()}
        less = replace(part, rates=rates, bandwidth=part.bandwidth * allocation.share, power_w=part.power_w * allocation.share)
        return known.changed(models=models, parts=known.parts.joined([less]))
    return known.changed(models=models)
