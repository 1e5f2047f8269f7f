"""The roofline of a plan's winner: its work predicted once more, with operations, bytes and seconds of one chip.

Bytes are the formulas' own: the same step on a chip with endless arithmetic takes its bytes over the bandwidth. What a chip
reaches is its data sheet times the formulas' efficiency over the fitted factor of that work, at most `MOST` of the sheet.
Models counted by samples and work without arithmetic of its own (video, streams, seats, circuits) have none here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.errors import ChipwiseError
from chipwise.perf.arrays import Array, column
from chipwise.perf.inference import decode, prefill
from chipwise.perf.kernels.chips import Chips
from chipwise.perf.kernels.hpc import step_of
from chipwise.perf.operators import COMPUTE_EFFICIENCY, MEMORY_EFFICIENCY
from chipwise.perf.part import Part
from chipwise.perf.predict_serving import replica
from chipwise.perf.predict_training import steps
from chipwise.perf.training import bases, flop_per_token
from chipwise.perf.transformer import Transformers
from chipwise.perf.under_load import running
from chipwise.planner.defaults import LORA_RANK
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import GenerationSplit, Runs, TrainingSplit
from chipwise.predictor.pairs import pairs_of
from chipwise.predictor.transformer import Served, Trained, serve, train
from chipwise.workload.common import Common
from chipwise.workload.kinds import Batch, Finetune, Hpc, Learning, Serve

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

MOST = 0.95  # of the data sheet: nothing was measured above
_ENDLESS = np.array([1e30])


@dataclass(frozen=True, slots=True)
class Roof:
    flop_per_s: float
    bytes_per_s: float

    @property
    def ridge(self) -> float:
        """FLOP per byte from which on arithmetic is the limit."""
        return self.flop_per_s / self.bytes_per_s

    def at(self, intensity: float) -> float:
        return min(self.flop_per_s, self.bytes_per_s * intensity)


@dataclass(frozen=True, slots=True)
class Point:
    """Some of the work: what it computes, moves and takes on one chip."""

    name: str
    flop: float
    moved_bytes: float
    seconds: float

    @property
    def intensity(self) -> float:
        return self.flop / self.moved_bytes

    @property
    def flop_per_s(self) -> float:
        return self.flop / self.seconds


@dataclass(frozen=True, slots=True)
class Roofline:
    chip: str
    precision: str
    nominal: Roof
    reached: Roof
    points: tuple[Point, ...]


def roofline_of(known: Known, work: Common, plan: Plan) -> Roofline | None:
    """None where there is no winner, or nothing to draw of its kind of work."""
    winner = plan.winner
    part = None if winner is None else known.parts.find(winner.chip)
    if winner is None or part is None:  # parts of chips are not drawn: their share of the bandwidth is no ceiling
        return None
    try:
        return _draw(known, work, winner, part)
    except ChipwiseError:  # what can be planned and not estimated alone: the report does without the picture
        return None


def _draw(known: Known, work: Common, choice: Choice, part: Part) -> Roofline | None:
    if work.is_unknown:
        return None
    if isinstance(work, Hpc):
        return _numerical(work, choice, part)
    if not isinstance(getattr(work, "model", None), str):
        return None
    if isinstance(work, Learning) and isinstance(choice.split, TrainingSplit):
        return _step(known, work, choice, choice.split, part)
    if isinstance(work, Serve | Batch) and isinstance(choice.split, GenerationSplit):
        return _generation(known, work, choice, choice.split, part)
    return None


def _step(known: Known, work: Learning, choice: Choice, split: TrainingSplit, part: Part) -> Roofline:
    """The whole optimiser step, and its matrix products."""
    chips = float(choice.chips * choice.machines)
    pairs = pairs_of(known.find_model(str(work.model)), work.sequence_length, work.target_length)
    seq = float(work.sequence_length or 2048) if pairs is None else float(pairs.tokens[0])
    samples = work.batch_samples or (work.batch_tokens or 0.0) / seq
    micro = float(split.micro_batch)
    round_size = micro * split.dp  # sequences that all replicas take at once; the plan's last round may be a part of it
    batch = round_size * max(math.ceil(samples / round_size), 1)
    chosen: dict[str, Any] = {name: float(getattr(split, name)) for name in ("tp", "pp", "cp", "ep", "shard", "recompute")}
    if isinstance(work, Finetune):
        chosen |= {"method": work.method.value, "rank": float(work.rank or LORA_RANK)}
    chosen |= {"seq": seq} if pairs is None else {"seq": float(pairs.inputs[0]), "target": float(pairs.targets[0])}
    trained = train(
        known,
        str(work.model),
        on=part.name,
        chips=chips,
        chips_per_node=float(choice.chips),
        micro_batch=micro,
        global_batch=batch,
        precision=choice.precision,
        optimizer=work.optimizer.value,
        fit=False,
        **chosen,
    )
    return _trained(trained, choice, part)


def _trained(trained: Trained, choice: Choice, part: Part) -> Roofline:
    run = steps(trained.ask)
    plain, bytes_only = bases(run), bases(replace(run, peak=_ENDLESS, half_peak=_ENDLESS))
    micro_batches, terms, speed = _scalar(run.micro_batches), trained.step.terms, part.bandwidth * MEMORY_EFFICIENCY

    def moved(*names: str) -> float:
        return micro_batches * sum(_scalar(bytes_only[name]) for name in names) * speed

    flop = _scalar(flop_per_token(run.model, run.seq, run.frozen, np.zeros(1))) * _scalar(run.tokens) / _scalar(run.chips)
    model = run.model
    layers = model.layers * (model.attention_weights + model.mlp_weights)
    products = 2.0 * (layers * model.token_share + model.head * model.headed)
    passes = 3.0 - _scalar(run.frozen) + _scalar(run.recompute)
    matrix = _scalar(products) * passes * _scalar(run.tokens) / _scalar(run.chips)
    traffic = moved("matrix", "attention", "elementwise", "dispatch", "unpack") + _scalar(bytes_only["optimizer"]) * speed
    peak = _scalar(run.peak)
    reached = Roof(
        _capped(peak * COMPUTE_EFFICIENCY / _ratio(terms["matrix"], micro_batches * plain["matrix"]), peak),
        _capped(
            speed / _ratio(terms["elementwise"], micro_batches * (plain["elementwise"] + plain["dispatch"])), part.bandwidth
        ),
    )
    points = (
        Point("whole step", flop, traffic, _scalar(trained.step.value)),
        Point("matrix products", matrix, moved("matrix"), _scalar(terms["matrix"])),
    )
    return Roofline(
        chip=part.name,
        precision=choice.precision,
        nominal=Roof(peak, part.bandwidth),
        reached=_above(reached, points),
        points=points,
    )


def _generation(known: Known, work: Serve | Batch, choice: Choice, split: GenerationSplit, part: Part) -> Roofline | None:
    """Prefill of one prompt, and a decode step of all sequences in flight."""
    if work.input_tokens is None or work.output_tokens is None:
        return None
    tp, pp, replicas = float(split.tp), float(split.pp), float(choice.replicas or 1)

    def ask(scenario: str, batch: float, metric: str, rate: float | None = None) -> Served:
        assert work.input_tokens is not None
        assert work.output_tokens is not None
        return serve(
            known,
            str(work.model),
            on=part.name,
            tp=tp,
            pp=pp,
            input_len=work.input_tokens.mean,
            rate=rate,
            batch=batch,
            output_len=work.output_tokens.mean,
            prefix_len=work.shared_prefix_tokens or 0.0,
            precision_weights=choice.precision,
            scenario=scenario,
            metrics=(metric,),
            chips_per_node=float(choice.chips),
            fit=False,
        )

    arriving = work.arrival.rate if isinstance(work, Serve) else None
    at_once = work.arrival.concurrency if isinstance(work, Serve) else None
    probe = ask(
        "open" if arriving else "closed" if at_once else "full",
        max((at_once or replicas) / replicas, 1.0),
        "tpot_ms",
        arriving / replicas if arriving else None,
    )
    sequences = max(round(_scalar(running(probe.ask, known.model))), 1)
    first, token = ask("prefill", 1.0, "ttft_ms"), ask("decode", float(sequences), "tpot_ms")
    run = replica(first.ask)
    free = replace(run, peak=_ENDLESS, half_peak=_ENDLESS)
    length = max(work.input_tokens.mean - (work.shared_prefix_tokens or 0.0), 1.0)
    context = work.input_tokens.mean + work.output_tokens.mean / 2
    size, speed = tp * pp, part.bandwidth * MEMORY_EFFICIENCY
    sent = [column(value) for value in (length, work.input_tokens.mean, 1.0, work.shared_prefix_tokens or 0.0)]
    prompt, plain = prefill(free, *sent), prefill(run, *sent)
    step, read = decode(free, column(sequences), column(context)), decode(run, column(sequences), column(context))
    ttft, tpot = first.metrics["ttft_ms"], token.metrics["tpot_ms"]
    peak = _scalar(run.peak)
    reached = Roof(
        _capped(peak * COMPUTE_EFFICIENCY / _ratio(ttft.terms["prefill matrix"], plain["prefill_matrix"]), peak),
        _capped(speed / _ratio(tpot.terms["weights"], read["decode_matrix"]), part.bandwidth),
    )
    prefill_s = sum(_scalar(prompt[name]) for name in ("prefill_matrix", "prefill_attention", "prefill_element"))
    points = (
        Point(
            f"prefill of {length:,.0f} tokens",
            _forward(run.model, length / 2) * length / size,
            prefill_s * speed / pp,
            _scalar(ttft.seconds),
        ),
        Point(
            f"decode of {sequences} sequence{'s' * (sequences > 1)}",
            _forward(run.model, context) * sequences / size,
            (_scalar(step["decode_matrix"]) + _scalar(step["decode_cache"])) * speed / pp,
            _scalar(tpot.seconds),
        ),
    )
    return Roofline(
        chip=part.name,
        precision=choice.precision,
        nominal=Roof(peak, part.bandwidth),
        reached=_above(reached, points),
        points=points,
    )


def _forward(model: Transformers, context: float) -> float:
    """FLOP of one token with so many before it: a third of training it."""
    return _scalar(flop_per_token(model, np.array([2.0 * context]), np.zeros(1), np.zeros(1))) / 3.0


def _numerical(work: Hpc, choice: Choice, part: Part) -> Roofline | None:
    """One step of one run, on one chip."""
    if not work.flop_per_step or not work.bytes_per_step:
        return None
    chips = Chips.of([part], work.precision.value)
    split = choice.split if isinstance(choice.split, Runs) else Runs(1, choice.chips * choice.machines)
    at_once, chips_each = float(split.at_once), float(split.chips_each)
    rounds = np.ceil(work.runs / at_once)
    seconds = choice.seconds / (work.steps * rounds)
    peak = _scalar(chips.matrix_rate if step_of(work).matrix else chips.rate)
    step = step_of(work)
    share = chips.achieved(step.kernel)
    nominal = Roof(peak, part.bandwidth)
    point = Point("one step", work.flop_per_step / chips_each, work.bytes_per_step / chips_each, seconds)
    reached = Roof(peak * _scalar(share.compute), part.bandwidth * _scalar(share.bandwidth))
    return Roofline(
        chip=part.name, precision=choice.precision or work.precision.value, nominal=nominal, reached=reached, points=(point,)
    )


def _above(roof: Roof, points: Sequence[Point]) -> Roof:
    """Work of other kinds may be fitted as faster than what the roof was taken from: what is reached can be reached."""
    fastest = max(one.flop_per_s for one in points)
    streamed = max((one.flop_per_s / one.intensity for one in points if one.intensity < roof.ridge), default=0.0)
    return Roof(max(roof.flop_per_s, fastest), max(roof.bytes_per_s, streamed))


def _scalar(values: Array | float) -> float:
    return float(np.asarray(values).reshape(-1)[0])


def _ratio(term: Array, base: Array) -> float:
    """The fitted factor on a kind of work; 1 where there is none of it."""
    below = _scalar(base)
    return _scalar(term) / below if below > 0 and _scalar(term) > 0 else 1.0


def _capped(value: float, sheet: float) -> float:
    return min(value, MOST * sheet)
