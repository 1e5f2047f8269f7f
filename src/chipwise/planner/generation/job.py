"""What is asked of every machine that serves a language model, and the question it becomes for rows of splits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.hardware import Hardware
from chipwise.perf.part import Part
from chipwise.perf.predict_serving import Generation, usual_engines
from chipwise.perf.queueing import Traffic
from chipwise.perf.setup import ServingSetup
from chipwise.perf.transformer import Layer, Transformers
from chipwise.planner.fleet import Fleet, Index
from chipwise.predictor.settings import reads


@dataclass(frozen=True, slots=True)
class ServingJob:
    model: str
    layer: Layer
    input_len: float
    output_len: float
    prefix_len: float
    precisions: tuple[str, ...]
    kv_precision: str | None
    goals: Mapping[tuple[str, float], float]  # ("ttft", 0.9) -> seconds
    rate: float  # requests per second at the peak; 0: as many as possible (offline)
    concurrency: float = 0.0  # callers who each wait for their answer, instead of a rate
    longest: float = 0.0  # tokens of one sequence that must fit; 0: the mean one
    least_replicas: float = 1.0
    most_replicas: float = np.inf
    least_rate: float = 0.0  # requests per second that must be possible, whatever arrives
    headroom: float = 0.0  # above the rate, as a share of it
    spared: float = 0.0  # of the headroom, points that may be missing where filling them costs much more
    published: str = ""  # format of the weights as they are published; empty: 16 bits
    burstiness: float = 1.0  # coefficient of variation of the times between arrivals
    confidence: float | None = None  # with which the load is carried; None: headroom is all
    sigmas: tuple[float, float] = (0.0, 0.0)  # of the logarithms of prompt and answer lengths


def formats(job: ServingJob, part: Part) -> list[str]:
    """Of the job's formats those that a chip has: of fp16 and bf16, which are as good, bf16 alone where it has both."""
    able = [one for one in job.precisions if runs(part, one) or reads(part, one, job.published)]
    return [one for one in able if one != "fp16" or "bf16" not in able]


def runs(part: Part, precision: str) -> bool:
    return precision in ("int8", "int4", "fp32") or part.has(precision)


def ask_of(job: ServingJob, fleet: Fleet, shape: Index, precision: Coded, tp: Array, pp: Array) -> Generation:
    parts = _used(Coded.of([one.part for one in fleet.shapes]), shape)
    node = np.array([float(one.chips) for one in fleet.shapes])
    fabric = np.array([one.fabric for one in fleet.shapes])
    hardware = Hardware.of(parts, fleet.parts.by_name, node[shape], fabric[shape])
    cache = job.kv_precision or "bf16"
    setup = ServingSetup.of(
        batch=1.0,
        input_len=job.input_len,
        output_len=job.output_len,
        prefix_len=job.prefix_len,
        tp=tp,
        pp=pp,
        precision_weights=precision,
        precision_kv=cache,
        engine=usual_engines(hardware),
    )
    return Generation(
        model=Transformers.of([job.layer]),
        name=Coded.of(job.model),
        hardware=hardware,
        setup=setup,
        scenario=Coded.of("full"),
        rate=column(0.0),
        replicas=column(1.0),
        traffic=Traffic(
            burstiness=column(job.burstiness), prompt_sigma=column(job.sigmas[0]), answer_sigma=column(job.sigmas[1])
        ),
    )


def _used(names: Coded, rows: Index) -> Coded:
    """The rows with only the names that they have: every prediction looks all names up, and most shapes are processors."""
    index = names.index[rows]
    present = np.flatnonzero(np.bincount(index, minlength=len(names.names)))
    place = np.zeros(len(names.names), dtype=np.intp)
    place[present] = np.arange(len(present))
    return Coded(tuple(names.names[at] for at in present.tolist()), place[index])
