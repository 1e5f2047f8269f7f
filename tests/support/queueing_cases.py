"""Served models that the queueing model is held against the simulation with, and by how much the two differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.perf.arrays import column
from chipwise.perf.predict_serving import service
from chipwise.perf.queueing import Service, Traffic, waits
from chipwise.perf.serving import CHUNK
from chipwise.predictor.known import Known
from chipwise.predictor.transformer import serve
from serving_simulation import Latencies, Server, simulate

LOADS = (0.3, 0.6, 0.85)  # of the capacity
BURSTS = (1.0, 3.0, 6.0)
SHARES = (0.5, 0.9, 0.99)
TIMES = ("ttft", "tpot")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    model: str
    chip: str
    tp: float = 1.0
    input_len: float
    output_len: float
    sigmas: tuple[float, float]


SETUPS = {
    "8B on H100, chat": Setup(model="llama-3.1-8b", chip="h100-sxm", input_len=1100, output_len=240, sigmas=(0.6, 0.8)),
    "8B on A10G, few slots": Setup(model="llama-3.1-8b", chip="a10g", input_len=500, output_len=500, sigmas=(0.6, 0.8)),
    "70B on 4 x H200, all alike": Setup(
        model="llama-3.1-70b", chip="h200", tp=4.0, input_len=2000, output_len=400, sigmas=(0.0, 0.0)
    ),
    "70B on 8 x H100, long prompts": Setup(
        model="llama-3.1-70b", chip="h100-sxm", tp=8.0, input_len=8000, output_len=200, sigmas=(0.7, 0.6)
    ),
    "Mixtral on 2 x H100, experts": Setup(
        model="mixtral-8x7b", chip="h100-sxm", tp=2.0, input_len=1000, output_len=300, sigmas=(0.5, 0.5)
    ),
}


def service_for(known: Known, name: str, burstiness: float) -> Service:
    setup = SETUPS[name]
    traffic = Traffic(burstiness=column(burstiness), prompt_sigma=column(setup.sigmas[0]), answer_sigma=column(setup.sigmas[1]))
    served = serve(
        known,
        setup.model,
        on=setup.chip,
        tp=setup.tp,
        input_len=setup.input_len,
        output_len=setup.output_len,
        metrics=("requests_per_s",),
        traffic=traffic,
        fit=False,
    )
    return service(served.ask, known.model)


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


def differences(row: Service, load: float, count: int, seed: int = 1) -> dict[tuple[str, float], float]:
    """Model over simulation, less one, by metric and share."""
    done = simulated(row, load, count, seed)
    loaded = waits(row, load * row.capacity)
    return {
        (name, share): float(loaded.seconds(name, share)[0] / np.quantile(getattr(done, name), share) - 1.0)
        for name in TIMES
        for share in SHARES
    }
