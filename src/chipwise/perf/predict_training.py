"""Predicts training: step time with its terms, throughput, utilisation, memory and power, over arrays of candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from chipwise.perf.arrays import Array, Coded, Filling, column, combinations, has_nonzero, pick
from chipwise.perf.family_training import (
    ARITHMETIC,
    FLOORS,
    TERM_OF,
    WEIGHT_BYTES,
    TrainingNames,
    features,
    kind_of,
    levels,
    nominal,
    settings_of,
)
from chipwise.perf.hardware import Hardware
from chipwise.perf.memory import Memory
from chipwise.perf.memory_training import training_memory
from chipwise.perf.model import Estimate, Joining, Model
from chipwise.perf.part import Part
from chipwise.perf.pooling import Groups
from chipwise.perf.power import Power, power
from chipwise.perf.published_training import is_loose, unfused_stacks
from chipwise.perf.question import Question
from chipwise.perf.seen import CLASSES, FORMULA
from chipwise.perf.setup import TrainingSetup
from chipwise.perf.training import Steps, bases, compose, flop_per_token
from chipwise.perf.transformer import Transformers

CHUNK = 32768  # rows at a time, so that columns stay in the cache
# Shares of the forward pass done again (none, selective, full): of products, and of norms and activation functions.
RECOMPUTED, NORMS_AGAIN = (0.0, 0.0, 1.0), (0.0, 1.0, 1.0)
_UNIT = column(1.0)
_POWER = ("chip", "host", "facility")  # lines of it
_KINDS = (kind_of("", 1, 1), kind_of("", 0, 1), kind_of("", 0, 0))
FRAMEWORKS = {
    "tpu": "maxtext-recipes",
    "neuron": "neuron",
    "gaudi": "mlperf-lora",
    "AMD": "primus",
    "adapters": "torchtune",
    "split": "megatron-bridge",
    "sharded": "composer",
    "one": "pytorch",
}
_STACKS = tuple(dict.fromkeys(FRAMEWORKS.values()))
_PLACE = {name: float(at) for at, name in enumerate(_STACKS)}


@dataclass(frozen=True, slots=True)
class Training:
    """What is asked: models x hardware x setups, each a column or one for all."""

    model: Transformers
    name: Coded
    hardware: Hardware
    setup: TrainingSetup
    framework: Coded | None = None  # None: what is usual for the part and the split

    def __len__(self) -> int:
        return max(len(self.model.layers), len(self.name), len(self.hardware), len(self.setup))

    def rows(self, selection: slice) -> Training:
        stack = None if self.framework is None else self.framework.rows(selection)
        return Training(
            model=self.model.rows(selection),
            name=self.name.rows(selection),
            hardware=self.hardware.rows(selection),
            setup=self.setup.rows(selection),
            framework=stack,
        )


@dataclass(frozen=True, slots=True)
class TrainingEstimate:
    step: Estimate  # seconds
    tokens_per_s: Array  # of all chips
    mfu: Array  # model FLOP over the 16-bit dense peak
    memory: Memory | None
    power: Power


def usual_framework(ask: Training) -> Coded:
    """By part; on NVIDIA by what is split: PyTorch alone on one chip, FSDP where weights are sharded, Megatron where layers
    are split or the optimiser's state alone is."""
    setup, hardware = ask.setup, ask.hardware

    def fixed(key: str) -> float:
        part = hardware.parts[key]
        known = FRAMEWORKS.get(part.kind) or FRAMEWORKS.get(part.vendor)
        return _PLACE[known] if known else -1.0

    preset = hardware.part.look_up(fixed)
    chosen = np.where(
        setup.by_megatron, _PLACE["megatron-bridge"], np.where(setup.chips <= 1, _PLACE["pytorch"], _PLACE["composer"])
    )
    adapters = setup.method.look_up(lambda name: float(name != "full"))
    if has_nonzero(adapters):
        chosen = np.where(adapters > 0, _PLACE["torchtune"], chosen)
    return Coded(_STACKS, np.where(preset >= 0, preset, chosen).astype(np.intp))


def steps(ask: Training) -> Steps:
    setup, hardware = ask.setup, ask.hardware
    framework = ask.framework or usual_framework(ask)
    frozen = setup.method.look_up(lambda name: float(name != "full"))
    halves = setup.precision.map(lambda name: name if name in ("fp32", "tf32") else "bf16")
    return Steps(
        model=ask.model,
        peak=hardware.rate(setup.precision.map(lambda name: ARITHMETIC.get(name, name))),
        half_peak=hardware.rate(halves),
        bandwidth=hardware.get("bandwidth"),
        network=hardware.network(),
        chips=setup.chips,
        seq=setup.seq,
        micro_batch=setup.micro_batch,
        global_batch=setup.global_batch,
        tp=setup.tp,
        pp=setup.pp,
        cp=setup.cp,
        ep=setup.ep,
        shard=setup.shard,
        interleave=setup.interleave,
        recompute=np.array(RECOMPUTED)[setup.recompute.astype(np.intp)],
        norms_again=np.array(NORMS_AGAIN)[setup.recompute.astype(np.intp)],
        frozen=frozen,
        adapted=frozen * setup.targets,
        loose=framework.look_up(lambda name: float(is_loose(name))),
        dropout=np.zeros(1),
        weight_bytes=setup.precision.look_up(lambda name: WEIGHT_BYTES.get(name, 2.0)),
        packed=setup.method.look_up(lambda name: float(name == "qlora")),
        filled=_UNIT,
        unfused=np.maximum(1.0 - setup.flash, framework.look_up(lambda name: float(name in unfused_stacks()))),
        offload=np.zeros(1),
    )


def _levels(ask: Training) -> Groups:
    """What rows have in common with measured ones, found once per combination of names."""
    setup = ask.setup
    precision = setup.precision
    if "qlora" in setup.method.names:
        packed = setup.method.map(lambda name: "nf4" if name == "qlora" else "")
        precision = packed.cross(precision).map(lambda pair: "nf4" if pair.startswith("nf4|") else pair[1:])
    name_columns = (ask.hardware.part, precision, ask.framework or usual_framework(ask), setup.method, _kinds(ask), ask.name)
    (part, precision, stack, method, kind, model), rows = combinations(name_columns)
    if len(rows) == 1:
        return _one_row(
            ask.hardware.parts[part.name_at(0)], *(one.name_at(0) for one in (precision, stack, method, kind, model))
        )
    names = TrainingNames(
        part=part, precision=precision, stack=stack, variant=Coded.of(""), method=method, kind=kind, model=model
    )
    return Groups(levels(names, dict(ask.hardware.parts)), rows)


@lru_cache(maxsize=4096)
def _one_row(part: Part, precision: str, stack: str, method: str, kind: str, model: str) -> Groups:
    """Who asks row by row asks for the same few names again and again."""
    names = TrainingNames(*map(Coded.of, (part.name, precision, stack, "", method, kind, model)))
    return Groups(levels(names, {part.name: part}), np.zeros(1, dtype=np.intp))


def predict(ask: Training, model: Model, memory: bool = True) -> TrainingEstimate:
    """Every column of the answer has one row per candidate."""
    count = len(ask)
    alike = _levels(ask)
    if count <= CHUNK:
        return _predict(ask, alike, model, memory)
    step, rest = Joining(count), Filling(count)
    for start in range(0, count, CHUNK):
        selection = slice(start, start + CHUNK)
        part = _predict(ask.rows(selection), alike.rows(selection), model, memory)
        step.add(selection, part.step)
        rest.add(selection, {"tokens_per_s": part.tokens_per_s, "mfu": part.mfu})
        rest.add(selection, {name: getattr(part.power, name) for name in _POWER})
        if part.memory is not None:
            rest.add(selection, part.memory.lines())
    columns = rest.columns
    drawn = Power(**{name: columns.pop(name) for name in _POWER})
    rate, mfu = columns.pop("tokens_per_s"), columns.pop("mfu")
    return TrainingEstimate(
        step=step.estimate(), tokens_per_s=rate, mfu=mfu, memory=Memory(**columns) if memory else None, power=drawn
    )


def _predict(ask: Training, alike: Groups, model: Model, memory: bool) -> TrainingEstimate:
    run = steps(ask)
    hardware = ask.hardware
    node = np.maximum(pick(hardware.node > 0, hardware.node, np.minimum(run.chips, run.network.domain)), 1.0)
    work = bases(run)
    question = Question(
        bases=work,
        compose=partial(compose, run),
        scale=_UNIT,
        power=_UNIT,
        levels=alike,
        features=features(run, node),
        term_of=TERM_OF,
        floors=FLOORS,
        settings=settings_of(run),
        nominal=nominal(run, work),
    )
    estimate = model.estimate("training", question, Coded.of("never measured" if ask.model.paired else "training"))
    if ask.model.paired:  # pairs were measured as one stack only, so nothing tells how far the formula is off
        estimate = replace(estimate, provenance=estimate.provenance.map(lambda name: FORMULA if name in CLASSES else name))
    rate = run.tokens / estimate.seconds
    flop = flop_per_token(run.model, run.seq, run.frozen, np.zeros(1))
    used = flop * rate / run.chips
    busy = np.minimum((estimate.terms["elementwise"] + estimate.terms["optimizer"]) / estimate.seconds + 0.3, 1.0)
    drawn = power(hardware.kind, hardware.get("power_w"), np.minimum(used / run.peak, 1.0), busy)
    needed_memory = training_memory(ask.model, ask.setup) if memory else None
    return TrainingEstimate(
        step=estimate, tokens_per_s=rate, mfu=used / hardware.rate(Coded.of("bf16")), memory=needed_memory, power=drawn
    )


def _kinds(ask: Training) -> Coded:
    code = np.where(ask.model.has_experts, 0, np.where(ask.model.is_causal, 1, 2))
    return Coded(_KINDS, code)


def scaling_efficiency(ask: Training, estimate: TrainingEstimate, model: Model) -> Array:
    """Throughput per chip against the same replica alone (dp = 1), its share of the global batch kept."""
    alone = ask.setup.change(
        dp=column(1.0), global_batch=np.maximum(ask.setup.global_batch / ask.setup.dp, ask.setup.micro_batch)
    )
    baseline = predict(
        Training(
            model=ask.model, name=ask.name, hardware=ask.hardware, setup=alone, framework=ask.framework or usual_framework(ask)
        ),
        model,
        memory=False,
    )
    return (estimate.tokens_per_s / ask.setup.chips) / (baseline.tokens_per_s / alone.chips)
