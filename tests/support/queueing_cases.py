"""Served models that the queueing model is held against the simulation with, and by how much the two differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from chipwise.perf.arrays import column
from chipwise.perf.queueing import GRID, Service, Traffic, waits
from chipwise.perf.serving import CHUNK
from serving_simulation import Latencies, Server, simulate

LOADS = (0.3, 0.6, 0.85)  # of the capacity
BURSTS = (1.0, 3.0, 6.0)
SHARES = (0.5, 0.9, 0.99)
TIMES = ("ttft", "tpot")
Percentile = tuple[str, float]  # metric and share


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A server as it was fitted in November 2026. They stay as they are, whatever is fitted later: what is judged is how the
    surface follows a given server."""

    model: str
    chip: str
    tp: float = 1.0
    input_len: float
    output_len: float
    sigmas: tuple[float, float]
    slots: int
    prompt_s: float
    steps_s: tuple[float, ...]  # of 1 to `slots` sequences, in equal ratios
    fixed_s: float
    extra_prompt_s: float


SETUPS = {
    "8B on H100, chat": Setup(
        model="llama-3.1-8b",
        chip="h100-sxm",
        input_len=1100,
        output_len=240,
        sigmas=(0.6, 0.8),
        slots=340,
        prompt_s=0.05827967,
        steps_s=(0.006575081, 0.006983195, 0.00854083, 0.01463036, 0.04122188),
        fixed_s=0.03138317,
        extra_prompt_s=-0.01402509,
    ),
    "8B on A10G, few slots": Setup(
        model="llama-3.1-8b",
        chip="a10g",
        input_len=500,
        output_len=500,
        sigmas=(0.6, 0.8),
        slots=33,
        prompt_s=0.1787887,
        steps_s=(0.02686376, 0.02734862, 0.02838577, 0.030708, 0.0360741),
        fixed_s=0.03165954,
        extra_prompt_s=-0.05483766,
    ),
    "70B on 4 x H200, all alike": Setup(
        model="llama-3.1-70b",
        chip="h200",
        tp=4.0,
        input_len=2000,
        output_len=400,
        sigmas=(0.0, 0.0),
        slots=497,
        prompt_s=0.285862,
        steps_s=(0.01392923, 0.01436295, 0.01618532, 0.02455148, 0.07299636),
        fixed_s=0.0327262,
        extra_prompt_s=-0.0686262,
    ),
    "70B on 8 x H100, long prompts": Setup(
        model="llama-3.1-70b",
        chip="h100-sxm",
        tp=8.0,
        input_len=8000,
        output_len=200,
        sigmas=(0.7, 0.6),
        slots=169,
        prompt_s=0.7718139,
        steps_s=(0.01299706, 0.0136794, 0.0156994, 0.02241881, 0.04646656),
        fixed_s=0.03226073,
        extra_prompt_s=-0.1874545,
    ),
    "Mixtral on 2 x H100, experts": Setup(
        model="mixtral-8x7b",
        chip="h100-sxm",
        tp=2.0,
        input_len=1000,
        output_len=300,
        sigmas=(0.5, 0.5),
        slots=326,
        prompt_s=0.04332526,
        steps_s=(0.00770707, 0.01300437, 0.01739605, 0.02165319, 0.03753062),
        fixed_s=0.03172943,
        extra_prompt_s=-0.006190017,
    ),
}


def service_for(name: str, burstiness: float) -> Service:
    setup = SETUPS[name]
    return Service(
        prompt_s=column(setup.prompt_s),
        batches=setup.slots ** (np.arange(GRID) / (GRID - 1))[None, :],
        steps_s=np.array([setup.steps_s]),
        prompt_tokens=column(setup.input_len),
        answer_tokens=column(setup.output_len),
        fixed_s=column(setup.fixed_s),
        extra_prompt_s=column(setup.extra_prompt_s),
        traffic=Traffic(
            burstiness=column(burstiness), prompt_sigma=column(setup.sigmas[0]), answer_sigma=column(setup.sigmas[1])
        ),
    )


def server_of(row: Service) -> Server:
    """The first row, as the simulation wants it: the same times of prompts and steps."""
    slots = int(row.slots[0])
    return Server(
        prompt_s=float(row.prompt_s[0]),
        steps_s=np.interp(np.arange(slots + 1), row.batches[0], row.steps_s[0]),
        slots=slots,
        prompt_tokens=float(row.prompt_tokens[0]),
        answer_tokens=float(row.answer_tokens[0]),
        prompt_sigma=float(row.traffic.prompt_sigma[0]),
        answer_sigma=float(row.traffic.answer_sigma[0]),
        chunk=CHUNK,
        fixed_s=float(row.fixed_s[0]),
        extra_prompt_s=float(row.extra_prompt_s[0]),
    )


def simulated(row: Service, load: float, count: int, seed: int = 1) -> Latencies:
    rate, burstiness = load * float(row.capacity[0]), float(row.traffic.burstiness[0])
    return simulate(server_of(row), rate, burstiness, count, seed)


def percentiles(row: Service, load: float, count: int, seed: int = 1) -> dict[Percentile, float]:
    """Seconds, simulated."""
    done = simulated(row, load, count, seed)
    return {(name, share): float(np.quantile(getattr(done, name), share)) for name in TIMES for share in SHARES}


def apart(row: Service, load: float, seconds: Mapping[Percentile, float]) -> dict[Percentile, float]:
    """Model over simulation, less one."""
    loaded = waits(row, load * row.capacity)
    return {(name, share): float(loaded.seconds(name, share)[0] / value - 1.0) for (name, share), value in seconds.items()}


def differences(row: Service, load: float, count: int, seed: int = 1) -> dict[Percentile, float]:
    return apart(row, load, percentiles(row, load, count, seed))
