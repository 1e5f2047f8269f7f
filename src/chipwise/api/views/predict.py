"""Predictions as plain dictionaries: what `chipwise predict --json` prints, with units in the names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from chipwise.perf.steadiness import Steadiness
from chipwise.predictor.values import (
    ArchivePrediction,
    DevicePrediction,
    FitPrediction,
    FitResult,
    GenerationPrediction,
    Goal,
    HpcPrediction,
    HybridPrediction,
    InteractivePrediction,
    Interval,
    KernelPrediction,
    LivePrediction,
    MemoryUse,
    Metric,
    PipelinePrediction,
    Prediction,
    RenderPrediction,
    SamplePrediction,
    StreamPrediction,
    TrainingPrediction,
    WholeJob,
)

View = dict[str, Any]


def prediction_view(found: Prediction | PipelinePrediction) -> View:
    if isinstance(found, PipelinePrediction):
        return _pipeline(found)
    return _of_kind(found) | _of_all(found)


def fits_view(found: FitPrediction) -> View:
    return {
        "title": found.title,
        "model": found.model,
        "chip": found.chip,
        "chips": found.chips,
        "task": found.task,
        "memory": _memory(found.memory),
        "fit": _fit(found.fit),
        "largest": dict(found.largest),
        "notes": list(found.notes),
    }


def steadiness_view(found: Steadiness) -> View:
    return {"kind": found.kind, "relative_sd": found.log_sd}


def _of_kind(found: Prediction) -> View:
    match found:
        case TrainingPrediction():
            return _training(found)
        case GenerationPrediction():
            return _generation(found)
        case SamplePrediction():
            return _samples(found)
        case InteractivePrediction():
            return _interactive(found)
        case KernelPrediction():
            return _kernel(found)
    raise AssertionError(type(found).__name__)


def _of_all(found: Prediction) -> View:
    """What a workload file adds, and what stands last."""
    view: View = {} if found.name is None else {"name": found.name}
    if found.job is not None:
        view |= _job(found.job)
    if found.goals is not None:
        view["goals"] = [_goal(one) for one in found.goals]
    if found.needs is not None:
        view["needs"] = dict(found.needs)
    if found.steadiness is not None:
        view["steadiness"] = steadiness_view(found.steadiness)
    return view | {"notes": list(found.notes)}


def _job(job: WholeJob) -> View:
    view: View = {"job_time_s": _interval(job.time)}
    if job.energy_kwh is not None:
        view |= {"energy_kwh": job.energy_kwh, "feeding": None if job.feeding is None else asdict(job.feeding)}
    return view


def _goal(one: Goal) -> View:
    return {
        "goal": one.goal,
        "percentile": one.percentile,
        "limit_s": one.limit_s,
        "predicted_s": one.predicted_s,
        "met": one.met,
    }


def _interval(one: Interval) -> View:
    return {"value": one.value, "low": one.low, "high": one.high}


def _metric(one: Metric) -> View:
    return _interval(one) | {"unit": one.unit, "provenance": one.provenance, "terms_s": dict(one.terms_s)}


def _memory(one: MemoryUse) -> View:
    allocated = {} if one.allocated_bytes is None else {"allocated_bytes": one.allocated_bytes}
    return {"lines_bytes": dict(one.lines_bytes), **allocated, "total_bytes": one.total_bytes}


def _fit(one: FitResult) -> View:
    return asdict(one) | {"tried": [asdict(change) for change in one.tried]}


def _shares(by: Mapping[float, float | None]) -> View:
    return {f"p{share * 100:g}": seconds for share, seconds in by.items()}


def _training(found: TrainingPrediction) -> View:
    return {
        "task": "train",
        "model": found.model,
        "chip": found.chip,
        "chips": found.chips,
        "framework": found.framework,
        "setup": asdict(found.setup),
        "step_time": _metric(found.step_time),
        "tokens_per_s": _interval(found.tokens_per_s),
        "tokens_per_s_per_chip": found.tokens_per_s.value / found.chips,
        "mfu": found.mfu,
        "scaling_efficiency": found.scaling_efficiency,
        "memory": _memory(found.memory),
        "fit": None if found.fit is None else _fit(found.fit),
        "power_per_chip": asdict(found.power),
        "energy_per_million_tokens_kwh": found.energy_per_million_tokens_kwh,
    }


def _generation(found: GenerationPrediction) -> View:
    spread = found.percentiles
    view = {
        "task": "serve",
        "model": found.model,
        "chip": found.chip,
        "chips": found.chips,
        "replicas": found.replicas,
        "engine": found.engine,
        "scenario": found.scenario,
        "setup": asdict(found.setup),
        **{name: _metric(one) for name, one in found.metrics.items()},
        "percentiles": None if spread is None else {f"{name}_s": _shares(by) for name, by in spread.items()},
        "most_sequences": found.most_sequences,
        "memory": _memory(found.memory),
        "fit": None if found.fit is None else _fit(found.fit),
        "power_per_chip": asdict(found.power),
        "energy_per_million_tokens_kwh": found.energy_per_million_tokens_kwh,
    }
    rates = {"most_requests_per_s": found.most_requests_per_s, "highest_rate_per_s": found.highest_rate_per_s}
    return view | {name: rate for name, rate in rates.items() if rate is not None}


def _samples(found: SamplePrediction) -> View:
    view: View = {
        "task": "samples",
        "doing": found.doing,
        "model": found.model,
        "chip": found.chip,
        "chips": found.chips,
        "engine": found.engine,
        "precision": found.precision,
        "batch": found.batch,
        "copies": found.copies,
        "tp": found.tp,
        "sample": dict(found.sample),
        "samples_per_s": _metric(found.samples_per_s),
        "latency_ms": _metric(found.latency_ms),
        "provenance": found.samples_per_s.provenance,
        "terms_s": dict(found.latency_ms.terms_s),
        "flop_per_sample": found.flop_per_sample,
        "utilisation": found.utilisation,
        "memory": _memory(found.memory),
        "fit": _fit(found.fit),
        "power_per_chip": asdict(found.power),
        "energy_per_million_samples_kwh": found.energy_per_million_samples_kwh,
    }
    if (come := found.arrivals) is not None:
        view |= {
            "rate_per_s": come.rate_per_s,
            "percentiles": {"latency_s": _shares(come.latency_s)},
            "busy_share": come.busy_share,
        }
    if found.highest_rate_per_s is not None:
        view["highest_rate_per_s"] = found.highest_rate_per_s
    return view | ({"devices": found.devices} if found.from_file else {})


def _interactive(found: InteractivePrediction) -> View:
    return {
        "task": "interactive",
        "chip": found.chip,
        "chips": found.chips,
        "time_s": None,
        "time_of": "",
        "terms_s": {},
        "bottleneck": "memory",
        "people": found.people,
        "at_once": found.at_once,
        "people_per_chip": found.people_per_chip,
        "profile": found.profile,
        "sharing": found.sharing,
        "slower_by": found.slower_by,
        "busy_share": found.busy_share,
        "memory_bytes": found.memory_bytes,
        "provenance": "formula",
    }


def _kernel(found: KernelPrediction) -> View:
    task, own = _own(found)
    return {
        "task": task,
        "chip": found.chip,
        "chips": found.chips,
        "time_s": _interval(found.time),
        "time_of": found.time_of,
        "terms_s": dict(found.terms_s),
        "bottleneck": found.bottleneck,
        "provenance": found.provenance,
    } | own


def _own(found: KernelPrediction) -> tuple[str, View]:
    """The task's name, and what no other kind of work has."""
    match found:
        case HpcPrediction():
            return "hpc", _named(found, "precision", "steps", "runs", "working_set_bytes", "fits")
        case RenderPrediction():
            return "render", _named(found, "frames", "engine", "frame_s", "scene_bytes", "measured_on", "fits")
        case ArchivePrediction():
            return "transcode", {"duration_s": found.duration_s, "streams": None}
        case LivePrediction():
            return "transcode", _named(found, "streams", "streams_per_chip", "busy_share") | {"duration_s": None}
        case StreamPrediction():
            return "stream", {
                "messages_per_s": _interval(found.messages_per_s),
                "fits": found.fits,
                "share_of_device": dict(found.share_of_device),
                "operations": [asdict(one) for one in found.operations],
            }
        case HybridPrediction():
            names = ("device", "technology", "iterations", "circuits", "shots", "price_usd")
            return "hybrid", _named(found, *names) | {"price_lines_usd": dict(found.price_lines_usd)}
        case DevicePrediction():
            lengths = ("input_tokens", "output_tokens", "first_token_s", "tokens_per_s")
            return "edge", _named(found, "model", "precision", *lengths, "devices", "fits")
    raise AssertionError(type(found).__name__)


def _named(found: KernelPrediction, *names: str) -> View:
    return {name: getattr(found, name) for name in names}


def _pipeline(found: PipelinePrediction) -> View:
    return {
        "task": "pipeline",
        "name": found.name,
        "stages": [prediction_view(one) for one in found.stages],
        "job_time_s": _interval(found.time),
        "time_s": _interval(found.time),
        "goals": [_goal(one) for one in found.goals],
        "notes": list(found.notes),
        "price_usd": found.price_usd,
        "steadiness": steadiness_view(found.steadiness),
    }
