"""Fits the surface of `chipwise.perf.queueing` to simulated servers, and writes `data/perf/queueing.csv`.

    python tools/fit_queue.py [--samples FILE.npz]      about two hours on one core; with simulated samples, some minutes

Thousands of servers are drawn at random (steps that grow with the sequences, prompts, slots, lengths, bursts, load) and
simulated by `tests/support/serving_simulation.py`. The surface has two layers of smooth steps and is fitted by Adam to the
logarithms of percentiles and means over their scales; errors far above 10% count less than their square, since rare
percentiles are noisy.
Seeds are fixed: the same numbers come out again. Servers that the tests ask about are not among those drawn.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.perf.queueing import METRICS, MOST_USED, SHARES, Service, Traffic, _features
from chipwise.perf.serving import CHUNK
from chipwise.perf.tables import DATA

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from serving_simulation import Server, simulate  # noqa: E402

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
# First seed, servers, how they are used, requests of each.
SEEDS = (
    (1_000_000, 5500, "any", 100_000),
    (2_000_000, 5500, "any", 100_000),
    (3_000_000, 500, "seldom", 100_000),
    (4_000_000, 750, "busy", 200_000),
)
HIDDEN = (56, 56)
ROUNDS, PIECE, PACE = 900, 512, 6e-3
STEP_S = 0.01  # of one sequence: times scale with it
GRID = 33  # numbers of sequences at which the fit knows a step: so many that it may be straight between


@dataclass(frozen=True, slots=True)
class Drawn:
    """A server and how it is used. The step of n sequences is s(1) (1 + (growth - 1) ((n - 1) / (K - 1)) ** bend)."""

    burstiness: float
    used: float
    slots: int
    answer_tokens: float
    prompt_tokens: float
    bend: float
    growth: float
    prompt_sigma: float
    answer_sigma: float
    prompt_s: float

    @property
    def batches(self) -> Floats:
        return np.asarray(float(self.slots) ** np.linspace(0.0, 1.0, GRID))

    def steps_s(self, sequences: Floats) -> Floats:
        along = np.maximum(sequences - 1.0, 0.0) / max(self.slots - 1, 1)
        return np.asarray(STEP_S * (1.0 + (self.growth - 1.0) * along**self.bend))

    @property
    def server(self) -> Server:
        return Server(
            prompt_s=self.prompt_s,
            steps_s=self.steps_s(np.arange(self.slots + 1.0)),
            slots=self.slots,
            prompt_tokens=self.prompt_tokens,
            answer_tokens=self.answer_tokens,
            prompt_sigma=self.prompt_sigma,
            answer_sigma=self.answer_sigma,
            chunk=CHUNK,
        )


def draw(random: np.random.Generator, use: str) -> Drawn:
    def between(low: float, high: float) -> float:
        return float(np.exp(random.uniform(np.log(low), np.log(high))))

    while True:
        wide = random.random() < 0.4 and use != "busy"  # beyond what is usual
        burstiness = 1.0 if random.random() < 0.25 else between(0.9 if use == "busy" else 0.5, 8.0)
        used = random.uniform(0.25 if use == "busy" else 0.03, MOST_USED)
        if wide:
            slots, answer, prompt = round(between(1, 2048)), between(2, 4000), between(30, 30000)
            share = 1.0 / (1.0 + np.exp(-random.uniform(-4, 4)))
        else:
            slots, answer, prompt = round(between(12, 1024)), between(40, 1200), between(150, 10000)
            share = random.uniform(0.08, 0.97)
        bend = 1.0 if random.random() < 0.5 else random.uniform(0.45, 1.2)
        growth = min(1.0 + max(slots - 1, 0) * between(0.0015, 0.06), 30.0)
        sigmas = [0.0 if random.random() < 0.35 else random.uniform(0.2, 1.3) for _ in range(2)]
        prompt_s = share / (1.0 - share) * answer * STEP_S * growth / slots
        if 0.05 < prompt_s / STEP_S < 400:
            used = between(0.002, 0.06) if use == "seldom" else used
            return Drawn(burstiness, used, slots, answer, prompt, bend, growth, sigmas[0], sigmas[1], prompt_s)


def samples() -> Iterator[tuple[int, Drawn, int]]:
    """Seeds, what is drawn with them, and how many requests it is simulated with."""
    for first, count, use, requests in SEEDS:
        for seed in range(first, first + count):
            yield seed, draw(np.random.default_rng(seed), use), requests


def measured(seed: int, drawn: Drawn, requests: int) -> Floats:
    """Percentiles and means by metric; NaN where too few answers have two tokens."""
    done = simulate(drawn.server, drawn.used * drawn.server.capacity, drawn.burstiness, requests, seed, warm_up=0.1)
    if len(done.tpot) < 1000:
        return np.full(len(METRICS) * (len(SHARES) + 1), np.nan)
    times = (done.ttft, done.tpot, done.latency)
    return np.concatenate([[*np.quantile(one, SHARES), one.mean()] for one in times])


def service_of(drawn: list[Drawn]) -> tuple[Service, Floats]:
    """As the model sees them, and the rates."""

    def column(name: str) -> Floats:
        return np.array([float(getattr(one, name)) for one in drawn])

    service = Service(
        prompt_s=column("prompt_s"),
        batches=np.array([one.batches for one in drawn]),
        steps_s=np.array([one.steps_s(one.batches) for one in drawn]),
        prompt_tokens=column("prompt_tokens"),
        answer_tokens=column("answer_tokens"),
        fixed_s=np.zeros(len(drawn)),
        extra_prompt_s=np.zeros(len(drawn)),
        traffic=Traffic(
            burstiness=column("burstiness"), prompt_sigma=column("prompt_sigma"), answer_sigma=column("answer_sigma")
        ),
    )
    return service, column("used")


@dataclass(frozen=True, slots=True)
class Surface:
    middle: Floats
    width: Floats
    weights: list[NDArray[Any]]
    offsets: list[NDArray[Any]]

    def values(self, features: Floats) -> list[NDArray[Any]]:
        layers = [(features - self.middle) / self.width]
        for weights, offsets in zip(self.weights[:-1], self.offsets[:-1], strict=True):
            inner = layers[-1] @ weights + offsets
            layers.append(inner / np.sqrt(1.0 + inner * inner))
        return [*layers, layers[-1] @ self.weights[-1] + self.offsets[-1]]


def fitted(features: Floats, targets: Floats, seed: int = 0) -> Surface:
    """In 32 bits, which is twice as fast and exact enough."""
    random = np.random.default_rng(seed)
    features, targets = features.astype(np.float32), targets.astype(np.float32)
    mean, spread = targets.mean(axis=0), targets.std(axis=0)
    sizes = (features.shape[1], *HIDDEN, targets.shape[1])
    weights = [random.normal(0.0, 1.0 / np.sqrt(a), (a, b)).astype(np.float32) for a, b in pairwise(sizes)]
    offsets = [np.zeros(size, dtype=np.float32) for size in sizes[1:]]
    surface = Surface(features.mean(axis=0), features.std(axis=0), weights, offsets)
    parts = [*surface.weights, *surface.offsets]
    first, second = ([np.zeros_like(part) for part in parts] for _ in range(2))
    steps, turn = ROUNDS * (len(features) // PIECE), 0
    for _ in range(ROUNDS):
        order = random.permutation(len(features))
        for begin in range(0, len(features) - PIECE + 1, PIECE):
            chosen = order[begin : begin + PIECE]
            layers = surface.values(features[chosen])
            miss = (layers[-1] * spread + mean - targets[chosen]) / 0.1
            slope = np.tanh(miss) * spread / PIECE
            slopes: list[Floats] = []
            for place in range(len(weights) - 1, -1, -1):
                slopes = [layers[place].T @ slope, *slopes, slope.sum(axis=0)]
                slope = (slope @ surface.weights[place].T) * (1.0 - layers[place] ** 2) ** 1.5 if place else slope
            slopes = [*slopes[: len(weights)], *slopes[: len(weights) - 1 : -1]]
            turn += 1
            pace = float(PACE * 0.5 * (1.0 + np.cos(np.pi * turn / steps)) + 2e-5)
            for part, change, one, two in zip(parts, slopes, first, second, strict=True):
                one += 0.1 * (change - one)
                two += 0.001 * (change * change - two)
                part -= pace * (one / (1.0 - 0.9**turn)) / (np.sqrt(two / (1.0 - 0.999**turn)) + 1e-8)
    surface.weights[-1] *= spread
    surface.offsets[-1][:] = surface.offsets[-1] * spread + mean
    return surface


def write(surface: Surface, features: Floats) -> None:
    low, high = np.quantile(features, (0.001, 0.999), axis=0)
    rows = [("middle", surface.middle), ("width", surface.width), ("low", low), ("high", high)]
    for place, (weights, offsets) in enumerate(zip(surface.weights, surface.offsets, strict=True)):
        rows += [*((f"weights {place}", row) for row in weights), (f"offsets {place}", offsets)]
    lines = ["part,values", *(f"{name},{' '.join(f'{value:.6g}' for value in row)}" for name, row in rows)]
    (DATA / "queueing.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", help="simulated percentiles: read where the file is there, else written")
    file = parser.parse_args().samples
    servers = list(samples())
    if file and Path(file).exists():
        results = np.load(file)["results"]
    else:
        results = np.array([measured(*one) for one in servers])
        if file:
            np.savez(file, results=results)
    known = np.isfinite(results).all(axis=1)
    service, used = service_of([drawn for (_, drawn, _), fine in zip(servers, known, strict=True) if fine])
    features, scales = _features(service, used * service.capacity, used, service.fluid(used * service.capacity))
    targets = np.log(results[known]) - np.log(np.repeat(np.stack(scales, axis=1), len(SHARES) + 1, axis=1))
    tried = np.arange(len(features)) % 10 == 0  # left out first, to see how good it is
    surface = fitted(features[~tried], targets[~tried])
    missed = np.abs(surface.values(features[tried])[-1] - targets[tried])
    print("median error of servers left out, by metric and share:", np.round(np.median(missed, axis=0).reshape(3, -1), 3))
    print("90th percentile of it:", np.round(np.quantile(missed, 0.9, axis=0).reshape(3, -1), 3))
    write(fitted(features, targets), features)


if __name__ == "__main__":
    main()
