"""Packaged measurements: the share of the peak each reached, and pairs that differ in one thing only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from statistics import median

import numpy as np

from chipwise.calibration.families import route
from chipwise.calibration.measurements import packaged
from chipwise.perf.family_inference import arithmetic
from chipwise.perf.family_training import ARITHMETIC
from chipwise.perf.part import Part, Parts
from chipwise.perf.published_inference import InferenceCase
from chipwise.perf.published_training import TrainingCase
from chipwise.perf.published_vision import VisionCase
from chipwise.perf.rows import Row
from chipwise.perf.training import flop_per_token
from chipwise.perf.transformer import Layer, Transformers

SAME = (
    "source_repo",
    "model",
    "chip",
    "engine",
    "chips",
    "tp",
    "pp",
    "cp",
    "ep",
    "seq_len",
    "micro_batch",
    "global_batch_sequences",
    "activation_checkpointing",
    "batch_or_concurrency",
    "input_len",
    "output_len",
    "metric_name",
    "task",
)
RATES = ("output_tokens_per_s", "total_tokens_per_s", "requests_per_s", "samples_per_s", "tokens_per_s_per_chip")
KIND = {"prefill": "prefill", "decode": "decode", "static": "batch", "full": "batch", "closed": "serving", "open": "serving"}


@dataclass(frozen=True, slots=True)
class Reached:
    kind: str  # training, prefill, decode, batch, serving, vision
    chip: str
    share: float  # of the dense peak at its precision
    low: float = 1.0  # ends of a prediction's band, of the share; a measurement has none
    high: float = 1.0


def _layer_flop(layer: Layer, context: float) -> float:
    """Forward FLOP of a token with so much before it."""
    one = Transformers.of([layer])
    trained = flop_per_token(one, np.array([2 * context]), np.zeros(1), np.zeros(1))
    return float(trained[0]) / 3


def reached(parts: Parts) -> Iterator[Reached]:
    for row in packaged():
        value = row.number("metric_value", 0.0)
        routed = route(row, parts)
        if isinstance(routed, str) or value <= 0:
            continue
        case = routed[1]
        found = _training(case, value) if isinstance(case, TrainingCase) else _generation(case, value)
        if found is not None and found.share > 0:
            yield found


def _peak(part: Part, precision: str) -> float:
    name = ARITHMETIC.get(precision, precision)
    return part.rate(name if part.has(name) else "bf16")


def _training(case: TrainingCase, value: float) -> Reached | None:
    frozen = float(case.method != "full")
    flop = float(flop_per_token(Transformers.of([case.layer]), np.array([case.seq]), np.array([frozen]), np.zeros(1))[0])
    per_chip = {
        "tokens_per_s_per_chip": value,
        "samples_per_s": value * case.seq / case.chips,
        "model_tflops_per_chip": value * 1e12 / flop,
        "mfu": value * case.part.rate("bf16") / flop,
        "step_time_s": case.global_batch * case.seq / case.chips / value,
    }[case.metric]
    return Reached("training", case.part.name, per_chip * case.filled * flop / _peak(case.part, case.precision))


def _generation(case: InferenceCase | VisionCase, value: float) -> Reached | None:
    if isinstance(case, VisionCase):
        return _samples(case, value)
    peak = case.part.rate(arithmetic(case.weights, case.part))
    forward = _layer_flop(case.layer, case.input_len + case.output_len / 2)
    prompt = _layer_flop(case.layer, case.input_len / 2) * case.input_len
    whole = prompt + forward * case.output_len
    kind = KIND.get(case.scenario, "serving")
    out, chips = max(case.output_len, 1.0), case.chips
    done = {
        "output_tokens_per_s": value * (forward if kind == "decode" else whole / out),
        "requests_per_s": value * whole,
        "total_tokens_per_s": value * whole / (case.input_len + out),
    }.get(case.metric)
    if case.metric == "ttft_ms" and kind == "prefill":
        done = prompt * case.batch / (value / 1e3)
    if case.metric == "tpot_ms" and kind == "decode":
        done = forward * case.batch / (value / 1e3)
    if case.metric == "latency_ms" and kind == "batch":
        done = whole * case.batch / (value / 1e3)
    return None if done is None else Reached(kind, case.part.name, done / (chips * peak))


def _samples(case: VisionCase, value: float) -> Reached | None:
    """Pictures and encoded texts: offline they are batch work, one by one they wait for latency and are left out."""
    if (
        case.metric != "samples_per_s"
        or case.part.kind in ("cpu", "edge")
        or case.scenario not in ("offline", "static", "train")
    ):
        return None
    passes = 3.0 if case.training else 1.0
    share = value * case.net.flop * passes / (case.chips * _peak(case.part, case.precision))
    return Reached("training" if case.training else "batch", case.part.name, share)


@cache
def _grouped(first: str, second: str) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in packaged():
        value, precision = row.number("metric_value", 0.0), _precision(row)
        if value > 0 and precision in (first, second) and row.text("metric_name") in RATES:
            found["|".join(row.text(name) for name in SAME)][precision].append(value)
    return found


def _precision(row: Row) -> str:
    return (row.text("precision_weights") or row.text("precision")).lower()


def precision_pairs(parts: Parts, first: str, second: str) -> list[float]:
    """Rates in the first over those in the second, of measurements alike in everything else that is stated."""
    return [median(one[first]) / median(one[second]) for one in _grouped(first, second).values() if len(one) == 2]


def chip_pairs(first: str, second: str, metric: str = "output_tokens_per_s", task: str = "decode") -> list[float]:
    """Rates on the first chip over those on the second, of measurements alike in everything else that is stated."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    same = [*(name for name in SAME if name not in ("chip", "source_repo")), "precision_weights", "precision_kv"]
    for row in packaged():
        value, chip = row.number("metric_value", 0.0), row.text("chip_key") or row.text("chip")
        if value > 0 and chip in (first, second) and row.text("metric_name") == metric and task in row.text("task"):
            found["|".join(row.text(name) for name in same)][chip].append(value)
    return [median(one[first]) / median(one[second]) for one in found.values() if len(one) == 2]
