"""Answers with their latency goals, which come from options or from a workload file, and the highest rate that keeps them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.errors import BadInput, InvalidSettings, Problem
from chipwise.perf.arrays import Array
from chipwise.perf.queueing import Traffic
from chipwise.perf.under_load import highest_rate
from chipwise.predictor.named import layer_named
from chipwise.predictor.options import GOALS, LOADS, SERVING_OPTIONS
from chipwise.predictor.results import generation_prediction
from chipwise.predictor.samples import predict_samples, resolve, sample_curve
from chipwise.predictor.splits import USUAL_MACHINE, serving_splits
from chipwise.predictor.transformer import overload_note, serve
from chipwise.predictor.values import GenerationPrediction, Goal, SamplePrediction
from chipwise.text import plural
from chipwise.workload.goals import Goals

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

Wanted = tuple[str, float, float]  # a name of GOALS, a percentile, seconds
PERCENTILE = 90.0  # of a goal that an option states


def wanted_goals(goals: Goals | None, options: Mapping[str, Any]) -> list[Wanted]:
    """Those of the options; of the file where the options say nothing of them."""
    wanted: list[Wanted] = []
    for name in GOALS:
        stated = getattr(goals, name) if goals is not None else None
        if name in options:
            wanted.append((name, float(options.get("percentile", PERCENTILE)), float(options[name])))
        elif stated is not None:
            wanted += [(name, percentile, limit) for percentile, limit in stated.limits]
    return wanted


def serve_tokens(
    known: Known,
    model: str,
    chip: str,
    settings: Mapping[str, Any],
    wanted: Sequence[Wanted],
    traffic: Traffic | None = None,
) -> GenerationPrediction:
    """`settings` are options by name, `traffic` says how requests vary. Chips alone are split as a plan would split them."""
    chips = settings.get("chips")
    if chips is not None and not {"tp", "pp", "ep"} & set(settings):
        settings = _best_split(known, model, chip, settings, wanted, traffic)
        chips = None
    wide = _wide_experts(settings)
    copy_chips = float(wide.get("tp", settings.get("tp", 1))) * float(settings.get("pp", 1))
    if chips is not None and chips % copy_chips:
        text = f"{chips:g} is not a multiple of tp x pp = {copy_chips:g}"
        raise InvalidSettings(Problem("chips", text, None, "multiples of tp x pp"))
    chosen = {name: settings[key] for key, name in SERVING_OPTIONS.items() if key in settings} | wide
    load = {name: settings[name] for name in (*LOADS, "engine", "chips_per_node", "network") if name in settings}
    copies = chips / copy_chips if chips is not None else settings.get("replicas", 1.0)
    served = serve(known, model, on=chip, replicas=copies, traffic=traffic, **load, **chosen)
    shares = tuple(sorted({0.5, 0.9, 0.99} | {share_of(percentile) for _, percentile, _ in wanted}))
    predicted = generation_prediction(served, shares=shares)
    if split_notes := settings.get("split_notes"):
        predicted = replace(predicted, idle_chips=float(settings["idle"]), notes=(*predicted.notes, *split_notes))
    rate, overloaded = settings.get("rate"), False
    answered = float(served.metrics["requests_per_s"].value[0]) if "requests_per_s" in served.metrics else 0.0
    notes = tuple(note for note in predicted.notes if rate is None or note != overload_note(answered, rate))
    if predicted.fit is not None and not predicted.fit.fits:  # what has no room answers nothing
        return replace(predicted, notes=notes)
    if rate is not None:
        full = serve(
            known,
            model,
            on=chip,
            replicas=copies,
            scenario="full",
            metrics=("output_tokens_per_s", "requests_per_s"),
            fit=False,
            engine=load.get("engine"),
            chips_per_node=load.get("chips_per_node"),
            network=load.get("network"),
            **chosen,
        )
        capacity = float(full.metrics["requests_per_s"].value[0])
        overloaded = rate > capacity
        if overloaded:  # it runs full, and nobody can say how long a request waits
            text = f"Overloaded: {rate:g} requests per second come, {capacity:.3g} can be answered; the queue grows."
            at_most = generation_prediction(full)
            predicted = replace(at_most, scenario=predicted.scenario, fit=predicted.fit, notes=(*notes, text))
        elif rate > (lowest := float(full.metrics["requests_per_s"].low[0])):
            text = (
                f"The capacity may be as low as {lowest:.3g} requests/s: at {rate:g} the queue then grows, and no interval of"
                " a latency holds."
            )
            predicted = replace(predicted, notes=(*predicted.notes, text))
        predicted = replace(predicted, most_requests_per_s=capacity)
    if not wanted:
        return predicted
    limits = {(name, share_of(percentile)): limit for name, percentile, limit in wanted}
    highest = float(highest_rate(served.ask, known.model, limits)[0])
    goals = tuple(Goal(name, limit, _seconds(predicted, name, share, overloaded), share) for name, share, limit in wanted)
    return replace(
        predicted,
        goals=goals if predicted.scenario != "full" else None,  # without a load nobody waits for anything
        highest_rate_per_s=highest,
        needs=_replicas(rate, highest, float(copies)),
    )


def _wide_experts(settings: Mapping[str, Any]) -> dict[str, float]:
    """More chips with experts than share a sequence's attention: experts lie over all of them, attention is data parallel over
    groups of `tp`."""
    experts, ways = float(settings.get("ep", 1)), float(settings.get("tp", 1))
    if experts <= ways * float(settings.get("pp", 1)):
        return {}
    if settings.get("pp", 1) > 1 or experts % ways:
        raise InvalidSettings(Problem("ep", f"{experts:g} is not possible", None, "multiples of tp, without stages"))
    return {"tp": experts, "attention_dp": experts / ways, "ep": 1.0}


def _best_split(
    known: Known,
    model: str,
    chip: str,
    settings: Mapping[str, Any],
    wanted: Sequence[Wanted],
    traffic: Traffic | None,
) -> dict[str, Any]:
    """The settings with the split of `chips` that answers most requests within the goals, of those with room; where none has
    room, the one that lacks least."""
    chips, fewest = int(settings["chips"]), float(settings.get("replicas", 1.0))
    machine = min(int(settings.get("chips_per_node", USUAL_MACHINE)), chips)
    _, layer = layer_named(known, model)
    splits = [
        (tp, pp, chips // (tp * pp))
        for tp, pp in serving_splits(layer, machine, chips // machine)
        if tp * pp <= chips and chips // (tp * pp) >= fewest
    ] or [(1, 1, chips)]
    chosen = {name: settings[key] for key, name in SERVING_OPTIONS.items() if key in settings}
    load = {
        name: settings[name] for name in ("concurrency", "batch", "engine", "chips_per_node", "network") if name in settings
    }
    tp, pp, copies = (np.array(column, dtype=np.float64) for column in zip(*splits, strict=True))
    served = serve(
        known,
        model,
        on=chip,
        replicas=copies,
        metrics=("requests_per_s",),
        traffic=traffic,
        fit=True,
        **load,
        **chosen,
        tp=tp,
        pp=pp,
    )
    assert served.fit is not None
    full = answered = np.broadcast_to(served.metrics["requests_per_s"].value, tp.shape)
    keeping = bool(wanted) and "concurrency" not in settings and "batch" not in settings
    if keeping:
        limits = {(name, share_of(percentile)): limit for name, percentile, limit in wanted}
        rates = np.broadcast_to(highest_rate(served.ask, known.model, limits), tp.shape)
        answered = np.where(rates > 0, rates, answered * 1e-9)
    spare = np.broadcast_to(served.fit.spare, tp.shape)

    def first(rates: Array) -> int:
        return int(np.argmax(np.where(spare >= 0, rates, np.minimum(spare, 0.0))))

    best, fullest = first(answered), first(full)
    split = {"tp": float(tp[best]), "pp": float(pp[best]), "replicas": float(copies[best])}
    idle = chips - float(tp[best] * pp[best] * copies[best])
    notes: list[str] = []
    if idle:
        width = int(tp[best] * pp[best])
        used = f"{chips - idle:g} or {(chips // width + 1) * width} are used in full"
        notes.append(f"{plural(idle, 'chip')} of {chips} would be idle: one copy takes {width}, so {used}.")
    if np.count_nonzero(spare >= 0) > 1:
        notes.append(_split_note([_split_words(*splits[one]) for one in (best, fullest)], keeping))
    return {**settings, **split, "idle": idle, "split_notes": notes}


def _split_words(tp: int, pp: int, copies: int) -> str:
    stages = f", pp {pp}" if pp > 1 else ""
    return f"{'1 copy' if copies == 1 else f'{copies} copies'} with tp {tp}{stages}"


def _split_note(splits: Sequence[str], keeping: bool) -> str:
    """Which split was taken and by what, and the other one where a goal decides: `splits` has the split, and the one that
    answers most without goals."""
    if not keeping:
        return f"Of the splits with room, {splits[0]} is taken: it answers most. Goals on latency may take another."
    contrast = "as without goals" if splits[0] == splits[1] else f"without goals {splits[1]} would be"
    return f"Of the splits with room, {splits[0]} is taken: it answers most within the goals; {contrast}."


def _seconds(predicted: GenerationPrediction, name: str, percentile: float, overloaded: bool) -> float | None:
    """Seconds; None: the queue has no end. In one static batch all take the same."""
    if predicted.scenario == "full" or overloaded:
        return None
    if predicted.percentiles is None:
        return predicted.metrics[f"{name}_ms"].value / 1e3
    return predicted.percentiles[name][share_of(percentile)]


def share_of(percentile: float) -> float:
    """Of all requests; nobody can promise all of them."""
    return min(percentile / 100, 0.9999)


def _replicas(rate: float | None, highest: float, copies: float) -> dict[str, float | None]:
    needed = math.ceil(rate * copies / highest - 1e-9) if rate is not None and highest > 0 else None
    return {"replicas": None if needed is None else float(max(needed, 1))}


def serve_samples(
    known: Known, model: str, chip: str, settings: Mapping[str, Any], wanted: Sequence[Wanted]
) -> SamplePrediction:
    """`settings` are those of `predict_samples`. The first answer is the whole one."""
    predicted = predict_samples(known, model, chip, settings)
    if any(name == "tpot" for name, _, _ in wanted):
        raise BadInput(
            f"--tpot does not go with {predicted.model}, which generates no tokens.", remedy="Give --latency instead."
        )
    stated = [one for one in wanted if one[0] == "latency"] or list(wanted)
    if not stated:
        return predicted
    curve, rate = sample_curve(resolve(known, model, chip, settings)), settings.get("rate")
    burst = float(settings.get("burstiness", 1.0))

    def seconds(share: float) -> float | None:
        return predicted.latency_ms.value / 1e3 if rate is None else curve.latency(float(rate), share, burst)

    highest = curve.highest_rate({share_of(percentile): limit for _, percentile, limit in stated}, burst)
    return replace(
        predicted,
        goals=tuple(Goal("latency", limit, seconds(share_of(percentile)), percentile) for _, percentile, limit in stated),
        highest_rate_per_s=highest,
        needs=_replicas(rate, highest, predicted.copies),
    )
