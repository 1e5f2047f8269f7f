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
    UnknownPrediction,
    WholeJob,
)

View = dict[str, Any]
_RUNNING = frozenset(  # what only something that runs has
    {
        *("step_time", "tokens_per_s", "tokens_per_s_per_chip", "mfu", "scaling_efficiency"),
        *("ttft_ms", "tpot_ms", "latency_ms", "output_tokens_per_s", "requests_per_s", "percentiles", "most_sequences"),
        *("samples_per_s", "utilisation", "busy_share", "terms_s", "provenance"),
        *("power_per_chip", "energy_per_million_tokens_kwh", "energy_per_million_samples_kwh"),
        *("most_requests_per_s", "highest_rate_per_s", "job_time_s", "time_s", "energy_kwh", "feeding", "goals", "needs"),
    }
)


def prediction_view(prediction: Prediction | PipelinePrediction) -> View:
    if isinstance(prediction, PipelinePrediction):
        return _pipeline(prediction)
    view = _of_kind(prediction) | _of_all(prediction)
    return view if has_room(view) else {name: None if name in _RUNNING else value for name, value in view.items()}


def has_room(view: View) -> bool:
    """False where a model does not fit its chips: then it has no speed, and keeps no goal. Of a pipeline, any stage's."""
    return all(map(has_room, view.get("stages", ()))) and ((fit := view.get("fit")) is None or bool(fit["fits"]))


def fits_view(prediction: FitPrediction) -> View:
    return {
        "title": prediction.title,
        "model": prediction.model,
        "chip": prediction.chip,
        "chips": prediction.chips,
        "task": prediction.task,
        "memory": _memory(prediction.memory),
        "fit": _fit(prediction.fit),
        "largest": dict(prediction.largest),
        "tokens": prediction.tokens,
        "notes": list(prediction.notes),
    }


def steadiness_view(found: Steadiness) -> View:
    return {"kind": found.kind, "relative_sd": found.log_sd}


def _of_kind(prediction: Prediction) -> View:
    match prediction:
        case TrainingPrediction():
            return _training(prediction)
        case GenerationPrediction():
            return _generation(prediction)
        case SamplePrediction():
            return _samples(prediction)
        case InteractivePrediction():
            return _interactive(prediction)
        case KernelPrediction():
            return _kernel(prediction)
    raise AssertionError(type(prediction).__name__)


def _of_all(prediction: Prediction) -> View:
    """What a workload file adds, and what stands last."""
    view: View = {} if prediction.name is None else {"name": prediction.name}
    if prediction.job is not None:
        view |= _job(prediction.job)
    if prediction.goals is not None:
        view["goals"] = [_goal(one) for one in prediction.goals]
    if prediction.needs is not None:
        view["needs"] = dict(prediction.needs)
    if prediction.steadiness is not None:
        view["steadiness"] = steadiness_view(prediction.steadiness)
    return view | {"notes": list(prediction.notes)}


def _job(job: WholeJob) -> View:
    view: View = {"job_time_s": _interval(job.time)}
    if job.energy_kwh is not None:
        view |= {"energy_kwh": job.energy_kwh, "feeding": None if job.feeding is None else asdict(job.feeding)}
    return view


def _goal(goal: Goal) -> View:
    return {
        "goal": goal.goal,
        "percentile": goal.percentile,
        "limit_s": goal.limit_s,
        "predicted_s": goal.predicted_s,
        "met": goal.is_met,
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


def _training(prediction: TrainingPrediction) -> View:
    return {
        "task": "train",
        "model": prediction.model,
        "chip": prediction.chip,
        "chips": prediction.chips,
        "framework": prediction.framework,
        "setup": asdict(prediction.setup),
        "step_time": _metric(prediction.step_time),
        "tokens_per_s": _interval(prediction.tokens_per_s),
        "tokens_per_s_per_chip": prediction.tokens_per_s.value / prediction.chips,
        "mfu": prediction.mfu,
        "scaling_efficiency": prediction.scaling_efficiency,
        "memory": _memory(prediction.memory),
        "fit": None if prediction.fit is None else _fit(prediction.fit),
        "power_per_chip": asdict(prediction.power),
        "energy_per_million_tokens_kwh": prediction.energy_per_million_tokens_kwh,
    }


def _generation(prediction: GenerationPrediction) -> View:
    spread = prediction.percentiles
    view = {
        "task": "serve",
        "model": prediction.model,
        "chip": prediction.chip,
        "chips": prediction.chips,
        **({"idle_chips": prediction.idle_chips} if prediction.idle_chips else {}),
        "replicas": prediction.replicas,
        "engine": prediction.engine,
        "scenario": prediction.scenario,
        "setup": asdict(prediction.setup),
        **{name: _metric(one) for name, one in prediction.metrics.items()},
        "percentiles": None if spread is None else {f"{name}_s": _shares(by) for name, by in spread.items()},
        "most_sequences": prediction.most_sequences,
        "memory": _memory(prediction.memory),
        "fit": None if prediction.fit is None else _fit(prediction.fit),
        "power_per_chip": asdict(prediction.power),
        "energy_per_million_tokens_kwh": prediction.energy_per_million_tokens_kwh,
    }
    rates = {"most_requests_per_s": prediction.most_requests_per_s, "highest_rate_per_s": prediction.highest_rate_per_s}
    return view | {name: rate for name, rate in rates.items() if rate is not None}


def _samples(prediction: SamplePrediction) -> View:
    view: View = {
        "task": "samples",
        "doing": prediction.doing,
        "model": prediction.model,
        "chip": prediction.chip,
        "chips": prediction.chips,
        "engine": prediction.engine,
        "precision": prediction.precision,
        "batch": prediction.batch,
        "copies": prediction.copies,
        "tp": prediction.tp,
        "sample": dict(prediction.sample),
        "samples_per_s": _metric(prediction.samples_per_s),
        "latency_ms": _metric(prediction.latency_ms),
        "provenance": prediction.samples_per_s.provenance,
        "terms_s": dict(prediction.latency_ms.terms_s),
        "flop_per_sample": prediction.flop_per_sample,
        "utilisation": prediction.utilisation,
        "memory": _memory(prediction.memory),
        "fit": _fit(prediction.fit),
        "power_per_chip": asdict(prediction.power),
        "energy_per_million_samples_kwh": prediction.energy_per_million_samples_kwh,
    }
    if (come := prediction.arrivals) is not None:
        view |= {
            "rate_per_s": come.rate_per_s,
            "percentiles": {"latency_s": _shares(come.latency_s)},
            "busy_share": come.busy_share,
        }
    if prediction.highest_rate_per_s is not None:
        view["highest_rate_per_s"] = prediction.highest_rate_per_s
    return view | ({"devices": prediction.devices} if prediction.from_file else {})


def _interactive(prediction: InteractivePrediction) -> View:
    return {
        "task": "interactive",
        "chip": prediction.chip,
        "chips": prediction.chips,
        "time_s": None,
        "time_of": "",
        "terms_s": {},
        "bottleneck": "memory",
        "people": prediction.people,
        "at_once": prediction.at_once,
        "people_per_chip": prediction.people_per_chip,
        "profile": prediction.profile,
        "sharing": prediction.sharing,
        "slower_by": prediction.slower_by,
        "busy_share": prediction.busy_share,
        "memory_bytes": prediction.memory_bytes,
        "provenance": "formula",
    }


def _kernel(prediction: KernelPrediction) -> View:
    task, own = _own(prediction)
    return {
        "task": task,
        "chip": prediction.chip,
        "chips": prediction.chips,
        "time_s": _interval(prediction.time),
        "time_of": prediction.time_of,
        "terms_s": dict(prediction.terms_s),
        "bottleneck": prediction.bottleneck,
        "provenance": prediction.provenance,
    } | own


def _own(prediction: KernelPrediction) -> tuple[str, View]:
    """The task's name, and what no other kind of work has."""
    match prediction:
        case HpcPrediction():
            return "hpc", _fields(prediction, "precision", "steps", "runs", "working_set_bytes", "fits")
        case UnknownPrediction():
            rate = None if prediction.requests_per_s is None else _interval(prediction.requests_per_s)
            return "unknown", {**_fields(prediction, "kind", "memory_bytes", "fits"), "requests_per_s": rate}
        case RenderPrediction():
            return "render", _fields(prediction, "frames", "engine", "frame_s", "scene_bytes", "measured_on", "fits")
        case ArchivePrediction():
            return "transcode", {"duration_s": prediction.duration_s, "streams": None}
        case LivePrediction():
            return "transcode", _fields(prediction, "streams", "streams_per_chip", "busy_share") | {"duration_s": None}
        case StreamPrediction():
            return "stream", {
                "messages_per_s": _interval(prediction.messages_per_s),
                "fits": prediction.fits,
                "share_of_device": dict(prediction.share_of_device),
                "operations": [asdict(one) for one in prediction.operations],
            }
        case HybridPrediction():
            names = ("device", "technology", "iterations", "circuits", "shots", "price_usd")
            return "hybrid", _fields(prediction, *names) | {"price_lines_usd": dict(prediction.price_lines_usd)}
        case DevicePrediction():
            lengths = ("input_tokens", "output_tokens", "first_token_s", "tokens_per_s")
            return "edge", _fields(prediction, "model", "precision", *lengths, "devices", "fits")
    raise AssertionError(type(prediction).__name__)


def _fields(found: KernelPrediction, *names: str) -> View:
    return {name: getattr(found, name) for name in names}


def _pipeline(prediction: PipelinePrediction) -> View:
    view = {
        "task": "pipeline",
        "name": prediction.name,
        "stages": [prediction_view(one) for one in prediction.stages],
        "job_time_s": _interval(prediction.time),
        "time_s": _interval(prediction.time),
        "goals": [_goal(one) for one in prediction.goals],
        "notes": list(prediction.notes),
        "price_usd": prediction.price_usd,
        "steadiness": steadiness_view(prediction.steadiness),
    }
    return view if has_room(view) else view | {"job_time_s": None, "time_s": None, "goals": None}
