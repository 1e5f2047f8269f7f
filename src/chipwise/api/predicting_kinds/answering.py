"""Serving and batch inference from a workload file: by tokens, by samples, or on a small device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chipwise.api.estimate_views import View, served_view
from chipwise.api.estimating import own_model, serve
from chipwise.api.options import LOADS, SERVING_OPTIONS
from chipwise.api.predicting_kinds.ask import Ask, known_model
from chipwise.api.predicting_kinds.device import answer_on_device, check_mode
from chipwise.api.predicting_kinds.goals import goal_view, stretch, time_limits, whole_job
from chipwise.api.predicting_kinds.trace import recorded_load
from chipwise.api.predicting_samples import able_chip, by_samples, predict_samples, resolve, sample_curve
from chipwise.errors import BadInput
from chipwise.perf.predict_serving import highest_rate
from chipwise.workload.kinds import Batch, Serve


def predict_answers(ask: Ask, work: Serve | Batch) -> View:
    session, model, shape = known_model(ask, work)
    chip = able_chip(session, ask.on, "serve")
    asked = replace(ask, session=session)
    settings, notes = _load(ask, work)
    if chip.kind.value == "edge":
        check_mode(asked, work, chip)
    if by_samples(shape, "serve"):
        view = _answer_samples(asked, work, model, settings)
    elif chip.kind.value == "edge" and isinstance(work, Serve):
        view = answer_on_device(asked, work, model, settings)
    else:
        view = _answer_tokens(asked, work, model, settings)
    view["notes"] += notes
    if isinstance(work, Batch):
        rate = view["samples_per_s"] if view["task"] == "samples" else view["requests_per_s"]
        view |= whole_job(view, None, work.items, rate)
        late = [view["job_time_s"]["value"] * stretch(work) / limit for _, limit in time_limits(ask, work) if limit > 0]
        view["needs"] = {"chips_for_deadline": math.ceil(max(late) - 1e-9) * view["chips"] if late else None}
    return view


def _load(ask: Ask, work: Serve | Batch) -> tuple[dict[str, Any], list[str]]:
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
        if not any(name in ask.given for name in LOADS):
            if arrival.concurrency is not None:
                settings["concurrency"] = float(arrival.concurrency)
            elif arrival.rate is not None:
                settings["rate"] = arrival.rate
            elif arrival.trace is not None:
                found = recorded_load(arrival.trace, ask.path)
                settings |= found
                notes.append(f"The trace's means are used: {found['rate']:.3g} requests per second.")
    return settings | dict(ask.given), notes


def _answer_tokens(ask: Ask, work: Serve | Batch, model: str, settings: Mapping[str, Any]) -> View:
    each = float(settings.get("tp", 1)) * float(settings.get("pp", 1))
    if ask.chips is not None and ask.chips % each:
        raise BadInput(
            f"chips: {ask.chips:g} is not a multiple of tp x pp = {each:g}.", remedy="Give --tp and --pp that divide it."
        )
    chosen = {name: settings[key] for key, name in SERVING_OPTIONS.items() if key in settings}
    asked = {name: settings[name] for name in (*LOADS, "engine", "chips_per_node") if name in settings}
    if "input_len" in chosen and "output_len" not in chosen:
        chosen["output_len"] = 1.0  # nothing is generated, as in embedding
    copies = ask.chips / each if ask.chips is not None else settings.get("replicas", 1.0)
    found = serve(ask.session, model, on=ask.on, replicas=copies, **asked, **chosen)
    goals = work.goals
    wanted = [
        (name, percentile, limit)
        for name, goal in (("ttft", goals.ttft), ("tpot", goals.tpot), ("latency", goals.latency))
        if goal is not None
        for percentile, limit in goal.limits
    ]
    shares = tuple(sorted({0.5, 0.9, 0.99} | {_share(percentile) for _, percentile, _ in wanted}))
    view = served_view(found, shares=shares)
    rate, held = settings.get("rate"), view["percentiles"]
    overloaded = False
    if rate is not None:
        full = serve(ask.session, model, on=ask.on, replicas=copies, scenario="full", metrics=("requests_per_s",), fit=False,
                     engine=asked.get("engine"), chips_per_node=asked.get("chips_per_node"), **chosen)  # fmt: skip
        view["most_requests_per_s"] = most = float(full.metrics["requests_per_s"].value[0])
        overloaded = rate > most
        if overloaded:
            view["notes"].append(f"Overloaded: {rate:g} requests per second come, {most:.3g} can be answered; the queue grows.")
    if held and wanted:
        view["goals"] = [
            goal_view(name, limit, None if overloaded else held[f"{name}_s"][f"p{_share(percentile) * 100:g}"], percentile)
            for name, percentile, limit in wanted
        ]
        limits = {(name, _share(percentile)): limit for name, percentile, limit in wanted}
        view["highest_rate_per_s"] = float(highest_rate(found.ask, own_model(ask.session), limits)[0])
        view["needs"] = _replicas(rate, view["highest_rate_per_s"], float(copies))
    return view


def _share(percentile: float) -> float:
    """Of all requests; nobody can promise all of them."""
    return min(percentile / 100, 0.9999)


def _replicas(rate: float | None, highest: float, copies: float) -> View:
    needed = math.ceil(rate * copies / highest - 1e-9) if rate is not None and highest > 0 else None
    return {"replicas": None if needed is None else float(max(needed, 1))}


def _answer_samples(ask: Ask, work: Serve | Batch, model: str, settings: Mapping[str, Any]) -> View:
    asked = {name: value for name, value in settings.items() if name not in ("prefix", "kv") or name in ask.given} | {
        "task": "serve"
    }
    burst = work.arrival.burstiness if isinstance(work, Serve) else 1.0
    asked |= {"burstiness": burst, "power_watts": work.limits.power_watts}
    view = predict_samples(ask.session, model, ask.on, asked)
    view["devices"] = work.devices if isinstance(work, Serve) else None
    goal = work.goals.latency or work.goals.ttft
    if isinstance(work, Serve) and goal is not None:
        curve = sample_curve(resolve(ask.session, model, ask.on, asked))
        limits = {_share(percentile): limit for percentile, limit in goal.limits}
        rate = settings.get("rate")

        def took(share: float) -> float | None:
            return view["latency_ms"]["value"] / 1e3 if rate is None else curve.latency(float(rate), share, burst)

        view["goals"] = [goal_view("latency", limit, took(_share(percentile)), percentile) for percentile, limit in goal.limits]
        view["highest_rate_per_s"] = curve.highest_rate(limits, burst)
        view["needs"] = _replicas(rate, view["highest_rate_per_s"], view["copies"])
    if view["devices"]:
        view["needs"] = {"devices": float(view["devices"]) * (view.get("needs", {}).get("replicas") or 1.0)}
    return view
