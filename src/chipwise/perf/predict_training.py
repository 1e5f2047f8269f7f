"""Predicts training: step time with its terms, throughput, utilisation, memory and power, over arrays of candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.family_training import ARITHMETIC, WEIGHT_BYTES, Names, kind_of, question
from chipwise.perf.hardware import Hardware
from chipwise.perf.memory import Memory
from chipwise.perf.memory_training import training_memory
from chipwise.perf.model import Estimate, Model, joined
from chipwise.perf.power import Power, power
from chipwise.perf.setup import TrainingSetup
from chipwise.perf.training import Steps, flop_per_token
from chipwise.perf.transformer import Transformers

CHUNK = 32768  # rows at a time, so that columns stay in the cache
RECOMPUTED = (0.0, 0.3, 1.0)  # share of the forward pass done again: none, selective, full
FRAMEWORKS = {
    "tpu": "maxtext-recipes", "neuron": "neuron", "gaudi": "mlperf-lora", "AMD": "primus", "adapters": "torchtune",
    "split": "megatron-bridge", "sharded": "composer", "one": "pytorch",
}  # fmt: skip


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

    def rows(self, which: slice) -> Training:
        stack = None if self.framework is None else self.framework.rows(which)
        return Training(self.model.rows(which), self.name.rows(which), self.hardware.rows(which), self.setup.rows(which), stack)


@dataclass(frozen=True, slots=True)
class TrainingEstimate:
    step: Estimate  # seconds
    tokens_per_s: Array  # of all chips
    mfu: Array  # model FLOP over the 16-bit dense peak
    memory: Memory | None
    power: Power


def usual_framework(ask: Training) -> Coded:
    """By part; on NVIDIA by what is split: PyTorch alone on one chip, FSDP over many, Megatron where layers are split."""
    setup, hardware = ask.setup, ask.hardware
    names = tuple(dict.fromkeys(FRAMEWORKS.values()))
    place = {name: at for at, name in enumerate(names)}

    def fixed(key: str) -> float:
        part = hardware.parts[key]
        known = FRAMEWORKS.get(part.kind) or FRAMEWORKS.get(part.vendor)
        return float(place[known]) if known else -1.0

    given = hardware.part.look_up(fixed)
    split = (setup.tp * setup.pp * setup.ep) > 1
    alone = setup.chips <= 1
    adapters = setup.method.look_up(lambda name: float(name != "full")) > 0
    chosen = np.where(split, place["megatron-bridge"], np.where(alone, place["pytorch"], place["composer"]))
    chosen = np.where(adapters, place["torchtune"], chosen)
    return Coded(names, np.where(given >= 0, given, chosen).astype(np.intp))


def steps(ask: Training) -> Steps:
    setup, hardware = ask.setup, ask.hardware
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
        frozen=frozen,
        weight_bytes=setup.precision.look_up(lambda name: WEIGHT_BYTES.get(name, 2.0)),
        packed=setup.method.look_up(lambda name: float(name == "qlora")),
        filled=column(1.0),
        unfused=1.0 - setup.flash,
        offload=column(0.0),
    )


def _names(ask: Training, kinds: Coded) -> Names:
    setup = ask.setup
    packed = setup.method.map(lambda name: "nf4" if name == "qlora" else "")
    precision = setup.precision
    if "nf4" in packed.names:
        precision = packed.cross(setup.precision).map(lambda pair: "nf4" if pair.startswith("nf4|") else pair[1:])
    framework = ask.framework or usual_framework(ask)
    return Names(
        part=ask.hardware.part, precision=precision, stack=framework, variant=Coded.of(""), method=setup.method, kind=kinds,
        model=ask.name,
    )  # fmt: skip


def predict(ask: Training, model: Model, memory: bool = True) -> TrainingEstimate:
    """Every column of the answer has one row per candidate."""
    count = len(ask)
    if count <= CHUNK:
        return _predict(ask, model, memory)
    parts = [_predict(ask.rows(slice(at, at + CHUNK)), model, memory) for at in range(0, count, CHUNK)]
    return _joined(parts)


def _predict(ask: Training, model: Model, memory: bool) -> TrainingEstimate:
    run = steps(ask)
    kinds = _kinds(ask)
    node = np.maximum(np.where(ask.hardware.node > 0, ask.hardware.node, np.minimum(run.chips, ask.hardware.domain)), 1.0)
    asked = question(run, _names(ask, kinds), node, dict(ask.hardware.parts), column(1.0), column(1.0))
    found = model.estimate("training", asked, Coded.of("training"))
    rate = run.tokens / found.seconds
    flop = flop_per_token(run.model, run.seq, run.frozen, column(0.0))
    used = flop * rate / run.chips
    busy = np.minimum((found.terms["elementwise"] + found.terms["optimizer"]) / found.seconds + 0.3, 1.0)
    drawn = power(ask.hardware.kind, ask.hardware.get("power_w"), np.minimum(used / run.peak, 1.0), busy)
    held = training_memory(ask.model, ask.setup) if memory else None
    return TrainingEstimate(found, rate, used / ask.hardware.rate(Coded.of("bf16")), held, drawn)


def _kinds(ask: Training) -> Coded:
    code = np.where(ask.model.experts > 0, 0, np.where(ask.model.causal > 0, 1, 2)).astype(np.intp)
    return Coded((kind_of("", 1, 1), kind_of("", 0, 1), kind_of("", 0, 0)), code)


def _joined(parts: list[TrainingEstimate]) -> TrainingEstimate:
    def column_of(get: Callable[[TrainingEstimate], Array]) -> Array:
        return np.concatenate([np.broadcast_to(get(part), part.step.value.shape) for part in parts])

    held = None
    if parts[0].memory is not None:
        lines = [part.memory.lines() for part in parts if part.memory is not None]
        held = Memory(**{name: np.concatenate([line[name] for line in lines]) for name in lines[0]})
    return TrainingEstimate(
        joined([part.step for part in parts]),
        column_of(lambda part: part.tokens_per_s),
        column_of(lambda part: part.mfu),
        held,
        Power(
            column_of(lambda part: part.power.chip),
            column_of(lambda part: part.power.host),
            column_of(lambda part: part.power.facility),
        ),
    )


def scaling_efficiency(ask: Training, many: TrainingEstimate, model: Model) -> Array:
    """Throughput per chip against the same replica alone (dp = 1), its share of the global batch kept."""
    alone = ask.setup.change(
        dp=column(1.0), global_batch=np.maximum(ask.setup.global_batch / ask.setup.dp, ask.setup.micro_batch)
    )
    one = predict(
        Training(ask.model, ask.name, ask.hardware, alone, ask.framework or usual_framework(ask)), model, memory=False
    )
    return (many.tokens_per_s / ask.setup.chips) / (one.tokens_per_s / alone.chips)
