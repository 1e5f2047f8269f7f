"""Answers with their latency goals, which come from options or from a workload file, and the highest rate that keeps them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chipwise.errors import BadInput, InvalidSettings, Problem
from chipwise.perf.predict_serving import highest_rate
from chipwise.predictor.kinds.goals import goal_view
from chipwise.predictor.options import GOALS, LOADS, SERVING_OPTIONS
from chipwise.predictor.samples import predict_samples, resolve, sample_curve
from chipwise.predictor.transformer import serve
from chipwise.predictor.views import View, served_view
from chipwise.workload.goals import Goals

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

Wanted = tuple[str, float, float]  # a name of GOALS, a percentile, seconds
PERCENTILE = 90.0  # of a goal that an option states


def wanted_goals(goals: Goals | None, given: Mapping[str, Any]) -> list[Wanted]:
    """Those of the options; of the file where the options say nothing of them."""
    found: list[Wanted] = []
    for name in GOALS:
        stated = getattr(goals, name) if goals is not None else None
        if name in given:
            found.append((name, float(given.get("percentile", PERCENTILE)), float(given[name])))
        elif stated is not None:
            found += [(name, percentile, limit) for percentile, limit in stated.limits]
    return found


def serve_tokens(known: Known, model: str, on: str, settings: Mapping[str, Any], wanted: Sequence[Wanted]) -> View:
    """`settings` are options by name."""
    each = float(settings.get("tp", 1)) * float(settings.get("pp", 1))
    chips = settings.get("chips")
    if chips is not None and chips % each:
        told = f"{chips:g} is not a multiple of tp x pp = {each:g}"
        raise InvalidSettings(Problem("chips", told, None, "multiples of tp x pp"))
    chosen = {name: settings[key] for key, name in SERVING_OPTIONS.items() if key in settings}
    asked = {name: settings[name] for name in (*LOADS, "engine", "chips_per_node") if name in settings}
    copies = chips / each if chips is not None else settings.get("replicas", 1.0)
    found = serve(known, model, on=on, replicas=copies, **asked, **chosen)
    shares = tuple(sorted({0.5, 0.9, 0.99} | {_share(percentile) for _, percentile, _ in wanted}))
    view = served_view(found, shares=shares)
    rate, overloaded = settings.get("rate"), False
    if rate is not None:
        full = serve(
            known,
            model,
            on=on,
            replicas=copies,
            scenario="full",
            metrics=("requests_per_s",),
            fit=False,
            engine=asked.get("engine"),
            chips_per_node=asked.get("chips_per_node"),
            **chosen,
        )
        view["most_requests_per_s"] = most = float(full.metrics["requests_per_s"].value[0])
        overloaded = rate > most
        if overloaded:  # told once, with the rate that it is held against
            view["notes"] = [note for note in view["notes"] if not note.endswith("waits grow without end.")]
            view["notes"].append(f"Overloaded: {rate:g} requests per second come, {most:.3g} can be answered; the queue grows.")
    if wanted:
        if view["scenario"] != "full":  # without a load nobody waits for anything
            view["goals"] = [
                goal_view(name, limit, _took(view, name, share, overloaded), share) for name, share, limit in wanted
            ]
        limits = {(name, _share(percentile)): limit for name, percentile, limit in wanted}
        view["highest_rate_per_s"] = float(highest_rate(found.ask, known.model, limits)[0])
        view["needs"] = _replicas(rate, view["highest_rate_per_s"], float(copies))
    return view


def _took(view: View, name: str, percentile: float, overloaded: bool) -> float | None:
    """Seconds; None: the queue has no end. In one static batch all take the same."""
    held = view["percentiles"]
    if held is None:
        return float(view[f"{name}_ms"]["value"]) / 1e3
    return None if overloaded else float(held[f"{name}_s"][f"p{_share(percentile) * 100:g}"])


def _share(percentile: float) -> float:
    """Of all requests; nobody can promise all of them."""
    return min(percentile / 100, 0.9999)


def _replicas(rate: float | None, highest: float, copies: float) -> View:
    needed = math.ceil(rate * copies / highest - 1e-9) if rate is not None and highest > 0 else None
    return {"replicas": None if needed is None else float(max(needed, 1))}


def serve_samples(known: Known, model: str, on: str, settings: Mapping[str, Any], wanted: Sequence[Wanted]) -> View:
    """`settings` are those of `predict_samples`. The first answer is the whole one."""
    view = predict_samples(known, model, on, settings)
    if any(name == "tpot" for name, _, _ in wanted):
        raise BadInput(f"--tpot does not go with {view['model']}, which generates no tokens.", remedy="Give --latency instead.")
    stated = [one for one in wanted if one[0] == "latency"] or list(wanted)
    if stated:
        curve, rate = sample_curve(resolve(known, model, on, settings)), settings.get("rate")
        burst = float(settings.get("burstiness", 1.0))

        def took(share: float) -> float | None:
            return view["latency_ms"]["value"] / 1e3 if rate is None else curve.latency(float(rate), share, burst)

        view["goals"] = [goal_view("latency", limit, took(_share(percentile)), percentile) for _, percentile, limit in stated]
        view["highest_rate_per_s"] = curve.highest_rate({_share(percentile): limit for _, percentile, limit in stated}, burst)
        view["needs"] = _replicas(rate, view["highest_rate_per_s"], view["copies"])
    return view
