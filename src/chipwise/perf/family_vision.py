"""The family of vision, encoders and diffusion: which rows are alike, and the question made of them.

Levels are what rows have in common, features what a factor may lean on (centred logarithms), BLOCKS how far each factor is
expected to stray: those of sources, engines and designs chosen by leaving out whole sources, the rest learnt from rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from chipwise.perf.arrays import Array, Coded
from chipwise.perf.collective import Network
from chipwise.perf.net import DIFFUSION, Net
from chipwise.perf.operators import COMPUTE_EFFICIENCY
from chipwise.perf.part import Part
from chipwise.perf.pooling import FactorBlock
from chipwise.perf.published_vision import ENGINES, FORMATS, VisionCase, clock, stacked
from chipwise.perf.question import Question
from chipwise.perf.vision import (
    FIXED_S,
    KEPT_BYTES,
    OTHER_FIXED_S,
    OTHER_START_S,
    START_S,
    Pass,
    PassQuery,
    answer,
    bases,
    compose,
)
from chipwise.workload.model.networks import family_of

TERM_OF = {
    "matrix": "matrix",
    "stream": "memory",
    "attention": "attention",
    "element": "elementwise",
    "start": "starts",
    "launch": "launches",
    "feed": "input",
    "fixed": "fixed",
    "link": "communication",
    "optimizer": "optimizer",
    "lookup": "lookup",
    "exchange": "communication",
}
_FULL = ("fp32", "tf32")  # formats whose attention is not done in 16 bits
_HEARD = ("whisper", "jasper", "quartznet", "paraformer")  # designs
_PICTURE = 20_000.0  # values from which an input is no text
_USUAL_CLOCK = 0.7  # guaranteed over boost
# Expected spreads of plain factors by level and base; two names joined by `|` are a level of their own.
_SPREADS: dict[str, dict[str, float]] = {
    "all": {
        "matrix": 0.1,
        "stream": 0.05,
        "attention": 0.1,
        "element": 0.1,
        "start": 0.1,
        "launch": 0.15,
        "feed": 0.05,
        "fixed": 0.1,
        "link": 0.04,
        "optimizer": 0.29,
        "lookup": 0.3,
    },
    "vendor": {"stream": 0.05, "element": 0.05, "start": 0.05, "launch": 0.25, "feed": 0.3, "fixed": 0.1},
    "engine": {"matrix": 0.12, "stream": 0.1, "element": 0.35, "start": 0.25, "launch": 0.3, "fixed": 0.15},
    "memory": {"matrix": 0.15, "stream": 0.15, "element": 0.25},
    "architecture": {"matrix": 0.12, "stream": 0.06, "attention": 0.17, "element": 0.15, "start": 0.11},
    "kind": {"matrix": 0.6, "stream": 0.4, "element": 0.3, "start": 0.2, "fixed": 0.18, "attention": 0.15},
    "source": {"*": 0.12, "element": 0.1, "launch": 0.14, "feed": 0.17, "start": 0.1},
    "design": {"matrix": 0.2, "stream": 0.1, "element": 0.3, "start": 0.25, "launch": 0.2},
    "model": {"matrix": 0.06, "element": 0.25, "start": 0.2},
    "chip": {"matrix": 0.06, "stream": 0.05, "start": 0.07},
    "setting": {"*": 0.08, "element": 0.2},
    "setting|kind": {"*": 0.08},
    "scenario|kind": {"*": 0.08},
    "architecture|precision": {"matrix": 0.12},
    "kind|precision": {"matrix": 0.2},
    "engine|precision": {"matrix": 0.25},
    "engine|architecture": {"matrix": 0.06, "start": 0.12},
    "architecture|kind": {"stream": 0.35, "matrix": 0.08},
    "engine|kind": {"matrix": 0.2, "stream": 0.15, "element": 0.15},
    "engine|chip": {"*": 0.03},
    "architecture|model": {"*": 0.03},
    "chip|model": {"*": 0.03},
    "version|model": {"*": 0.05},
    "model|scenario": {"*": 0.08},
    "chip|scenario": {"*": 0.03},
    "source|chip|model|scenario": {"*": 0.07},
}
_LEANING: tuple[FactorBlock, ...] = (
    FactorBlock("all", "matrix", "clock", 0.51),
    FactorBlock("architecture", "matrix", "batch", 0.04),
    FactorBlock("source|scenario", "*", "chips", 0.06),
    FactorBlock("source|scenario", "*", "batch", 0.03),
)
BLOCKS: tuple[FactorBlock, ...] = (
    *(FactorBlock(level, base, "1", sd) for level, spreads in _SPREADS.items() for base, sd in spreads.items()),
    *_LEANING,
)


def answer_kind(case: VisionCase) -> str:
    """Of which intervals are kept apart: what is trained, drawn, heard, read, seen."""
    if case.training:
        return "vision training"
    if case.net.kind == DIFFUSION:
        return "diffusion"
    if family_of(case.model) in _HEARD:
        return "speech"
    return "encoder" if case.net.inputs < _PICTURE else "vision"


@dataclass(frozen=True, slots=True)
class VisionNames:
    """What rows are called, as columns."""

    part: Coded
    precision: Coded
    engine: Coded  # family
    version: Coded  # family and release
    scenario: Coded
    source: Coded  # who measured, with what engine
    kind: Coded  # of network
    model: Coded
    design: Coded  # networks of one name: convnext, efficientnet
    setting: Coded  # layout and mixed precision


def levels(names: VisionNames, parts: Mapping[str, Part]) -> dict[str, Coded]:
    def architecture(name: str) -> str:
        part = parts[name]
        return f"{part.architecture} {'HBM' if stacked(part) else 'GDDR'}" if part.kind == "gpu" else part.architecture

    plain = {
        "all": names.part.map(lambda name: "all"),
        "vendor": names.part.map(lambda name: f"{parts[name].vendor} {parts[name].kind}"),
        "architecture": names.part.map(architecture),
        "memory": names.part.map(lambda name: "HBM" if stacked(parts[name]) else "GDDR"),
        "chip": names.part,
        "precision": names.precision,
        "engine": names.engine,
        "version": names.version,
        "scenario": names.scenario,
        "source": names.source,
        "kind": names.kind,
        "model": names.model,
        "design": names.design,
        "setting": names.setting,
    }
    wanted = dict.fromkeys(block.level for block in BLOCKS)
    return {level: reduce(Coded.cross, (plain[name] for name in level.split("|"))) for level in wanted}


def features(run: Pass, part: Coded, parts: Mapping[str, Part], chips: Array) -> dict[str, Array]:
    return {
        "clock": part.look_up(lambda name: float(np.log(clock(parts[name]) / _USUAL_CLOCK))),
        "batch": np.log(run.batch / 32.0),
        "chips": np.log(chips),
    }


def question(run: Pass, query: PassQuery, names: VisionNames, parts: Mapping[str, Part], chips: Array) -> Question:
    scale, power = answer(query, run.batch)
    leaning = features(run, names.part, parts, chips)
    work = bases(run)
    return Question(
        bases=work,
        compose=partial(compose, run),
        scale=scale,
        power=power,
        levels=levels(names, parts),
        features=leaning,
        term_of=TERM_OF,
        nominal=work["matrix"] * COMPUTE_EFFICIENCY,
    )


def question_of(cases: Sequence[VisionCase]) -> Question:
    def column(value: Callable[[VisionCase], float]) -> Array:
        return np.array([value(case) for case in cases], dtype=np.float64)

    def coded(value: Callable[[VisionCase], str]) -> Coded:
        return Coded.of([value(case) for case in cases])

    names = VisionNames(
        part=coded(lambda case: case.part.name),
        precision=coded(lambda case: case.precision),
        engine=coded(lambda case: case.engine),
        version=coded(lambda case: case.version),
        scenario=coded(lambda case: case.scenario),
        source=coded(lambda case: f"{case.source} {case.engine}"),
        kind=coded(lambda case: case.net.kind),
        model=coded(lambda case: f"{case.model} training" if case.training else case.model),
        design=coded(lambda case: family_of(case.model)),
        setting=coded(lambda case: case.setting),
    )
    query = PassQuery(coded(lambda case: case.metric), column(lambda case: case.copies), column(lambda case: case.in_flight))
    parts = {case.part.name: case.part for case in cases}
    return question(pass_of(cases), query, names, parts, column(lambda case: case.chips))


def pass_of(cases: Sequence[VisionCase]) -> Pass:
    def column(value: Callable[[VisionCase], float]) -> Array:
        return np.array([value(case) for case in cases], dtype=np.float64)

    known: dict[Net, int] = {}
    net_index = np.fromiter((known.setdefault(case.net, len(known)) for case in cases), dtype=np.intp, count=len(cases))
    domain = column(lambda case: max(min(case.node, float(case.part.domain)), 1.0))
    return Pass(
        nets=tuple(known),
        net_index=net_index,
        batch=column(lambda case: case.batch),
        peak=column(lambda case: case.part.rate(case.precision) * case.share),
        half_peak=column(lambda case: case.part.rate(case.precision if case.precision in _FULL else "bf16") * case.share),
        bandwidth=column(lambda case: case.part.bandwidth * case.share),
        pcie=column(lambda case: case.part.pcie * case.share),
        network=Network(column(lambda case: case.part.link), domain, column(lambda case: case.part.fabric)),
        value_bytes=column(lambda case: FORMATS[case.precision][0]),
        weight_bytes=column(lambda case: FORMATS[case.precision][1]),
        unfused=column(lambda case: ENGINES[case.engine].unfused),
        unfused_scores=column(lambda case: ENGINES[case.engine].scores),
        kernels=column(lambda case: ENGINES[case.engine].kernels),
        start_s=column(lambda case: START_S.get(case.part.kind, OTHER_START_S)),
        launch_s=column(lambda case: ENGINES[case.engine].launch_s),
        fixed_s=column(lambda case: FIXED_S.get(case.part.kind, OTHER_FIXED_S)),
        kept_bytes=column(lambda case: KEPT_BYTES.get(case.part.kind, 0.0)),
        tensor=column(lambda case: case.tensor),
        stages=column(lambda case: case.stages),
        training=column(lambda case: float(case.training)),
        data_ways=column(lambda case: case.copies if case.training else 1.0),
        decoded=column(lambda case: case.decoded),
        input_width=column(lambda case: case.input_width),
        overlapped=column(lambda case: float(case.overlapped)),
        table_ways=column(lambda case: case.table_ways),
        copies_per_chip=column(lambda case: 1.0 / case.share),
    )
