"""Serving and batch inference from a workload file: by tokens, by samples, or on a small device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chipwise.perf.arrays import column
from chipwise.perf.queueing import Traffic
from chipwise.predictor.ability import able_chip
from chipwise.predictor.kinds.ask import Ask, by_samples, known_model
from chipwise.predictor.kinds.device import answer_on_device, check_mode
from chipwise.predictor.kinds.goals import stretch, time_limits, whole_job
from chipwise.predictor.kinds.latencies import serve_samples, serve_tokens, wanted_goals
from chipwise.predictor.options import LOADS
from chipwise.predictor.sizes import check_sizes, refuse, sizes_of
from chipwise.predictor.values import DevicePrediction, GenerationPrediction, SamplePrediction
from chipwise.workload.kinds import Batch, Serve
from chipwise.workload.lengths import spread
from chipwise.workload.trace import read_trace


def predict_answers(ask: Ask, work: Serve | Batch) -> GenerationPrediction | SamplePrediction | DevicePrediction:
    known, model, shape = known_model(ask, work)
    chip = able_chip(known, ask.hardware, "serve")
    extended = replace(ask, known=known)
    settings, notes = load_of(ask, work)
    if chip.kind.value == "edge":
        check_mode(extended, work, chip)
    predicted: GenerationPrediction | SamplePrediction
    if by_samples(shape, "serve"):
        settings = sizes_of(work) | settings
        check_sizes(known.find_model(model), settings)
        predicted = _answer_samples(extended, work, model, settings)
    elif chip.kind.value == "edge" and isinstance(work, Serve):
        device = answer_on_device(extended, work, model, settings)
        return replace(device, notes=(*device.notes, *notes))
    else:
        if stated := sizes_of(work):
            refuse(model, list(stated), "counted by tokens")
        predicted = _answer_tokens(extended, work, model, settings)
    predicted = replace(predicted, notes=(*predicted.notes, *notes))
    if isinstance(work, Serve):
        return predicted
    rate = predicted.samples_per_s if isinstance(predicted, SamplePrediction) else predicted.metrics["requests_per_s"]
    job = whole_job(predicted.power, predicted.chips, None, work.items, rate)
    late = [job.time.value * stretch(work) / limit for _, limit in time_limits(ask, work) if limit > 0]
    needed = math.ceil(max(late) - 1e-9) * predicted.chips if late else None
    return replace(predicted, job=job, needs={"chips_for_deadline": needed})


def load_of(ask: Ask, work: Serve | Batch) -> tuple[dict[str, Any], list[str]]:
    """Options by name: the file's, then those of the command line over them."""
    settings: dict[str, Any] = {}
    notes: list[str] = []
    lengths = {"input_tokens": work.input_tokens, "output_tokens": work.output_tokens}
    settings |= {name: float(max(round(one.mean), 1)) for name, one in lengths.items() if one is not None}
    if work.shared_prefix_tokens is not None:
        settings["prefix"] = float(round(work.shared_prefix_tokens))
    if work.precision is not None:
        settings["precision"] = work.precision.value
    if isinstance(work, Serve):
        if work.kv_precision is not None:
            settings["kv"] = work.kv_precision.value
        if work.replicas.min is not None:
            settings["replicas"] = float(work.replicas.min)
        arrival = work.arrival
        if not any(name in ask.options for name in LOADS):
            if arrival.concurrency is not None:
                settings["concurrency"] = float(arrival.concurrency)
            elif arrival.peak is not None:
                settings["rate"] = arrival.peak
                notes.append(f"The peak of the day is used: {arrival.peak:.3g} requests per second.")
            elif arrival.rate is not None:
                settings["rate"] = arrival.rate
            elif arrival.trace is not None:
                trace = read_trace(arrival.trace, ask.path)
                settings["rate"] = trace.mean
                for name, length in (("input_tokens", trace.input_tokens), ("output_tokens", trace.output_tokens)):
                    if length is not None and length.mean > 1:
                        settings[name] = float(round(length.mean))
                notes.append(f"The trace's means are used: {trace.mean:.3g} requests per second.")
    return settings | dict(ask.options), notes


def _answer_tokens(ask: Ask, work: Serve | Batch, model: str, settings: Mapping[str, Any]) -> GenerationPrediction:
    silent = {} if "output_tokens" in settings or "input_tokens" not in settings else {"output_tokens": 1.0}  # as in embedding
    goals = wanted_goals(work.goals, ask.options)
    return serve_tokens(ask.known, model, ask.hardware, {**settings, **silent}, goals, traffic_of(ask, work))


def traffic_of(ask: Ask, work: Serve | Batch) -> Traffic:
    """How requests vary, as far as the file tells."""
    sigmas = [spread(one)[0] if one is not None else 0.0 for one in (work.input_tokens, work.output_tokens)]
    burst = work.arrival.burstiness if isinstance(work, Serve) else 1.0
    if isinstance(work, Serve) and work.arrival.trace is not None:
        burst = read_trace(work.arrival.trace, ask.path).burstiness
    return Traffic(burstiness=column(burst), prompt_sigma=column(sigmas[0]), answer_sigma=column(sigmas[1]))


def _answer_samples(ask: Ask, work: Serve | Batch, model: str, settings: Mapping[str, Any]) -> SamplePrediction:
    options = {name: value for name, value in settings.items() if name not in ("prefix", "kv") or name in ask.options} | {
        "task": "serve"
    }
    burst = work.arrival.burstiness if isinstance(work, Serve) else 1.0
    options |= {"burstiness": burst, "power_watts": work.limits.power_watts}
    wanted = wanted_goals(work.goals, ask.options) if isinstance(work, Serve) else []
    predicted = replace(serve_samples(ask.known, model, ask.hardware, options, wanted), from_file=True)
    if not isinstance(work, Serve) or not work.devices:
        return predicted
    copies = (predicted.needs or {}).get("replicas") or 1.0
    return replace(predicted, devices=work.devices, needs={"devices": float(work.devices) * copies})
