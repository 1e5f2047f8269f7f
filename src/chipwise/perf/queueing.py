"""A replica that requests come to at random: how many are in flight, and how long first tokens, tokens and answers take.

The server (Yu et al. 2022, Orca; Agrawal et al. 2024, arXiv:2403.02310) works in steps. A step gives one token to each of the n
sequences in flight and computes up to `CHUNK` tokens of prompts: s(n) + p x (prompts in it). Of K slots, o tokens of an answer:
  capacity    C = 1 / (p + o s(K) / K)     above it the queue grows without end: nothing here is stable beyond it
  in flight   n = r o s(n) / (1 - r p)     Little's law at the rate r, if all came evenly (its smallest root)
  prompt      p (1 + r p (c^2 + d^2) / (2 (1 - r p))) + s(n)     first token; c, d: coefficients of variation (Kingman 1961)
  token       s(n) / (1 - r p)             prompts of others take their share of the time
These say where the scale lies. What bursts, lengths, chunks and slots make of them has no closed form: `data/perf/queueing.csv`
holds a smooth surface over fourteen dimensionless quantities, fitted to thousands of simulated servers by `tools/fit_queue.py`.
It gives the logarithm of each percentile and mean over its scale. Simulations of other servers judge it, in the tests.

Arrivals: times between them are gamma distributed with the coefficient of variation `burstiness`, as load generators have it.
Lengths are lognormal. Limits: first come, first served; slots, not bytes, are what is full; c from 0.5 to 8, beyond as there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache

import numpy as np

from chipwise.perf.arrays import Array, Index, column, cut
from chipwise.perf.serving import CHUNK
from chipwise.perf.tables import rows

UTILISATION = 0.8  # of the capacity, at most: above it waits grow fast, and so does their uncertainty
MOST_USED = 0.93  # of the capacity, up to which the surface was fitted; from there on: `_beyond`
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
METRICS = ("ttft", "tpot", "latency")
MEAN = "mean"
GRID = 5  # numbers of sequences at which a step is known
_WIDTH = len(SHARES) + 1
_PIECE = 256  # rows that are multiplied at a time: larger products are spread over threads, which costs more than it gains
_DEPTH = -np.log1p(-np.array(SHARES))  # how deep in the tail
_SELDOM = 3.0  # with a third of a request in flight, what is said of one alone counts by a third
_WAITED = np.append(_DEPTH, 1.0)  # of a mean wait, by share and on average: long queues are exponential


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Columns: how requests vary."""

    burstiness: Array = field(default_factory=lambda: column(1.0))
    prompt_sigma: Array = field(default_factory=lambda: column(0.0))  # of the logarithm of lengths
    answer_sigma: Array = field(default_factory=lambda: column(0.0))

    def of_one(self, copies: Array) -> Traffic:
        """What one of so many copies sees of it, each request going to any of them: a part of a burst is steadier."""
        return replace(self, burstiness=share_of_burst(self.burstiness, copies))

    def rows(self, selection: slice | Index) -> Traffic:
        return Traffic(**{name: cut(values, selection) for name, values in _columns(self).items()})


def share_of_burst(burstiness: Array, copies: Array) -> Array:
    """The coefficient of variation of the times between arrivals at one of so many copies, which each request is sent to by
    chance: a sum of a geometric number of gaps. Arrivals that are steadier than chance lose that too."""
    varied: Array = np.sqrt(1.0 + (burstiness**2 - 1.0) / np.maximum(copies, 1.0))
    return varied


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Columns: what one replica does in which time."""

    prompt_s: Array  # of the server, for a prompt of mean length
    batches: Array  # rows x GRID: sequences, from 1 to the slots
    steps_s: Array  # rows x GRID: a step of so many
    prompt_tokens: Array  # that are computed
    answer_tokens: Array
    fixed_s: Array  # before the scheduler and after it
    extra_prompt_s: Array  # of one's own prompt, which nobody else waits for; may be below 0
    traffic: Traffic = field(default_factory=Traffic)

    @property
    def slots(self) -> Array:
        return self.batches[:, -1]

    @property
    def capacity(self) -> Array:
        """Requests per second that can be answered, whatever they wait."""
        return 1.0 / (self.prompt_s + self.answer_tokens * self.steps_s[:, -1] / self.slots)

    def step_s(self, sequences: Array) -> Array:
        """Straight between the known numbers."""
        inside = np.clip(sequences[:, None], self.batches[:, :1], self.batches[:, -1:])
        along = np.clip(inside - self.batches[:, :-1], 0.0, np.diff(self.batches, axis=1))
        return np.asarray(self.steps_s[:, 0] + np.sum(along * self._slopes(), axis=1))

    def fluid(self, rate: Array) -> Array:
        """Sequences in flight if all came evenly; at most the slots."""
        free = np.maximum(1.0 - rate * self.prompt_s, 1e-9)
        work = (rate * self.answer_tokens)[:, None]
        short = self.batches * free[:, None] - work * self.steps_s  # below 0: more come than so many can answer
        enough = short >= 0
        last = np.argmax(enough, axis=1)
        before, row = np.maximum(last - 1, 0), np.arange(len(last))
        low, high = short[row, before], short[row, last]
        part = np.where(high > low, -low / np.maximum(high - low, 1e-300), 0.0)
        left, right = self.batches[row, before], self.batches[row, last]
        between = np.where(last > 0, left + (right - left) * part, work[:, 0] * self.steps_s[:, 0] / free)
        return np.where(enough.any(axis=1), between, self.slots)

    def _slopes(self) -> Array:
        return np.asarray(np.diff(self.steps_s, axis=1) / np.maximum(np.diff(self.batches, axis=1), 1e-12))


@dataclass(frozen=True, slots=True)
class Waits:
    """Of one replica under a load: seconds by percentile and on average, one row per candidate."""

    values: Mapping[str, Array]  # by metric: rows x (SHARES, mean)

    def seconds(self, metric: str, share: float) -> Array:
        """That `share` of the requests stay below; between and beyond the fitted shares straight in -log(1 - share)."""
        (right, part), known = _between(share), self.values[metric]
        return np.asarray(known[:, right - 1] + part * (known[:, right] - known[:, right - 1]))

    def mean(self, metric: str) -> Array:
        return self.values[metric][:, -1]


@lru_cache(maxsize=256)
def _between(share: float) -> tuple[int, float]:
    """The place of the fitted share above it, and how far it is from the one below."""
    at = -np.log1p(-min(max(share, SHARES[0]), 0.99999))
    right = int(np.clip(np.searchsorted(_DEPTH, at), 1, len(_DEPTH) - 1))
    return right, float((at - _DEPTH[right - 1]) / (_DEPTH[right] - _DEPTH[right - 1]))


def waits(service: Service, rate: Array, metrics: Sequence[str] = METRICS) -> Waits:
    """At `rate` requests per second of the replica. Above the capacity as just below it: the queue has no end there."""
    surface = _surface()
    capacity = service.capacity
    used = np.clip(rate / capacity, 1e-4, 0.999)
    inside = np.minimum(used, MOST_USED)
    running = service.fluid(inside * capacity)
    features, scales = _features(service, inside * capacity, inside, running)
    places = [METRICS.index(name) for name in metrics]
    logs = surface.logs(features, _last_layer(tuple(places)))
    own = service.fixed_s + service.extra_prompt_s
    accompanied = _accompanied(service.traffic, running)
    growth, waiting = _beyond(service, capacity, used, scales[1])
    grown = {"ttft": np.zeros(1), "tpot": growth, "latency": growth * service.answer_tokens}
    values: dict[str, Array] = {}
    for order, (name, place) in enumerate(zip(metrics, places, strict=True)):
        above = logs[:, order * _WIDTH : (order + 1) * _WIDTH] * accompanied[name][:, None]
        seconds = np.exp(above) * scales[place][:, None] + grown[name][:, None]
        if name != "tpot":
            seconds += own[:, None] + waiting[:, None] * _WAITED
        seconds = np.maximum(seconds, service.steps_s[:, :1])
        seconds[:, :-1] = np.maximum.accumulate(seconds[:, :-1], axis=1)
        values[name] = seconds
    return Waits(values)


def _beyond(service: Service, capacity: Array, used: Array, token: Array) -> tuple[Array, Array]:
    """Above `MOST_USED` of the capacity: seconds more than a `token` takes there, since more sequences have a slot, and seconds
    more that a request waits for a slot on average (heavy traffic, Kingman 1961, by as many slots as are taken; half of it, and
    its square, is what simulations show)."""
    if not (used > MOST_USED).any():
        return np.zeros(1), np.zeros(1)
    inside, traffic = np.minimum(used, MOST_USED), service.traffic
    burst = np.clip(traffic.burstiness, 0.5, 8.0)
    varied = burst**2 + np.expm1(np.maximum(traffic.answer_sigma, traffic.prompt_sigma) ** 2)
    running = service.fluid(used * capacity)
    used_slots = running / service.slots
    waiting = used_slots**2 / 2.0 * varied / (2.0 * capacity) * (1.0 / (1.0 - used) - 1.0 / (1.0 - inside))
    return _token(service, used * capacity, running) - token, waiting


def _accompanied(traffic: Traffic, running: Array) -> dict[str, Array]:
    """How much of what the surface says counts, by metric: nothing where a request is alone and all are alike, for then the
    scales are exact."""
    alone = np.exp(-_SELDOM * running) * np.minimum(1.0, 1.0 / traffic.burstiness**2)
    alike = {"ttft": traffic.prompt_sigma == 0, "tpot": np.ones(1, dtype=np.bool_), "latency": traffic.answer_sigma == 0}
    return {name: 1.0 - np.where(same, alone, 0.0) for name, same in alike.items()}


def _token(service: Service, rate: Array, running: Array) -> Array:
    """Seconds of a token, if all requests came evenly."""
    return np.asarray(service.step_s(np.maximum(running, 1.0)) / (1.0 - rate * service.prompt_s))


def in_flight(service: Service, rate: Array, loaded: Waits) -> Array:
    """Sequences that have a slot on average: what Little's law gives, at most all slots."""
    return np.clip(rate * loaded.mean("latency"), 1.0, service.slots)


def _features(service: Service, rate: Array, used: Array, running: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    traffic, slots, first = service.traffic, service.slots, service.steps_s[:, 0]
    busy = rate * service.prompt_s
    step = service.step_s(np.maximum(running, 1.0))
    burst, answer = np.clip(traffic.burstiness, 0.5, 8.0), np.maximum(service.answer_tokens, 2.0)
    varied = np.expm1(traffic.prompt_sigma**2)
    token = step / (1.0 - busy)
    scales = (
        service.prompt_s * (1.0 + busy * (burst**2 + varied) / (2.0 * (1.0 - busy))) + step,
        token,
        service.prompt_s + answer * token,
    )
    columns = (
        np.log(burst),
        np.log(used / (1.0 - used)),
        np.log(busy / (1.0 - busy)),
        np.log(slots),
        np.log(service.steps_s[:, -1] / first),
        np.log(answer),
        traffic.prompt_sigma,
        traffic.answer_sigma,
        np.log(CHUNK / service.prompt_tokens),
        np.log(step / first),
        np.log(np.maximum(running, 1e-6)),
        np.log(service.prompt_s / first),
        np.arcsinh((slots - running) / np.sqrt(running * (1.0 + burst**2) / 2.0 + 1.0)),
        np.log((1.0 + burst**2) / 2.0 / (1.0 - used) / (rate / used) / (service.prompt_s + first)),
    )
    features = np.empty((len(used), len(columns)))
    for place, values in enumerate(columns):
        features[:, place] = values
    return features, scales


@dataclass(frozen=True, slots=True)
class _Surface:
    """Two layers of smooth steps x / sqrt(1 + x^2) over the features, and straight lines above them."""

    middle: Array  # of each feature, what is taken off it,
    width: Array  # and what it is divided by
    low: Array  # features are not followed beyond what was fitted
    high: Array
    layers: tuple[tuple[Array, Array], ...]  # (inputs x outputs, outputs)

    def logs(self, features: Array, last: tuple[Array, Array]) -> Array:
        """`last` is the last layer, or what of it is asked for."""
        weights, offsets = last
        pieces = [features[begin : begin + _PIECE] for begin in range(0, len(features), _PIECE)]
        return np.concatenate([self._hidden(piece) @ weights + offsets for piece in pieces])

    def _hidden(self, features: Array) -> Array:
        values: Array = (np.clip(features, self.low, self.high) - self.middle) / self.width
        for weights, offsets in self.layers[:-1]:
            values = values @ weights + offsets
            values /= np.sqrt(1.0 + values * values)
        return values


@cache
def _surface() -> _Surface:
    by_name: dict[str, list[list[float]]] = {}
    for row in rows("queueing.csv"):
        by_name.setdefault(row["part"], []).append([float(one) for one in row["values"].split()])
    matrix = {name: np.array(values) for name, values in by_name.items()}
    count = sum(name.startswith("weights") for name in matrix)
    layers = tuple((matrix[f"weights {at}"], matrix[f"offsets {at}"][0]) for at in range(count))
    middle, width, low, high = (matrix[name][0] for name in ("middle", "width", "low", "high"))
    return _Surface(middle=middle, width=width, low=low, high=high, layers=layers)


@cache
def _last_layer(places: tuple[int, ...]) -> tuple[Array, Array]:
    """Its outputs for some of the metrics."""
    weights, offsets = _surface().layers[-1]
    chosen = np.concatenate([np.arange(place * _WIDTH, (place + 1) * _WIDTH) for place in places])
    return np.ascontiguousarray(weights[:, chosen]), offsets[chosen]


def _columns(values: Traffic | Service) -> dict[str, Array]:
    return {one.name: getattr(values, one.name) for one in fields(values)}


def selected(service: Service, which: Index) -> Service:
    """Some rows of it."""
    columns = {name: cut(values, which) for name, values in _columns(service).items() if name != "traffic"}
    traffic = Traffic(**{name: cut(values, which) for name, values in _columns(service.traffic).items()})
    return replace(service, **columns, traffic=traffic)
