"""From the two steps to what users feel: throughput and latencies of a replica under a way of loading it.

With p = prefill of one request, s = one decode step, B sequences in flight, o output tokens, C requests offered at once:
  prefill  one batch of prompts                      ttft = p
  decode   one step                                  tpot = s
  static   B prompts together, then o - 1 steps      latency = p + (o - 1) s
  full     requests without end, B as memory allows  as many callers as there are slots (closed, C = B)
  closed   C requests always in flight, whose work is done once in the time T of an answer, B p + o s:
             ttft = p + s + fixed + x p + (C/B - 1) T                             (x prompts ahead of it; slots, if C > B)
             tpot = s + (B - 1 - x)/o p                                           (the others' prompts stretch every step)
             B - 1 - x = (B - 1) / ((1 + q p / (o s)) (1 + q w / 2)), at most o f / p: x grows with the share of time that
             prompts take and with waves, and where a step has no room: at most `CHUNK` prompt tokens, which take f.
             (B - 1 - x) p never falls with p, so a longer prompt never makes steps shorter
             throughput = B / T, T = ttft + (o - 1) tpot without the wait for a slot: C requests in T C/B (Little's law)
  open     rate r: B from Little's law B = r (ttft + o tpot), r p / (1 - r p) prompts ahead of a first token, and as many
           answers as requests up to the capacity; a finite burst at rate infinity is a queue of N prompts, done with its last
           answer:
             throughput = N / (N p + (N - B) o s / B + the end), `flowing` counts B and the end
Every answer is a sum of named terms. q is fitted per engine, as are the times of the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chipwise.perf.arrays import Array, Coded, has_nonzero, pick, soft_one
from chipwise.perf.inference import BASES, Serving, decode, prefill

SCENARIOS = ("prefill", "decode", "static", "full", "closed", "open")
TIMES = ("ttft_ms", "tpot_ms", "latency_ms")
RATES = ("output_tokens_per_s", "total_tokens_per_s", "requests_per_s", "samples_per_s")
CHUNK = 8192.0  # prompt tokens that engines put into one step
LEAST_FULL = 0.25  # of what steps have room for: with fewer prompt tokens nobody asks how long full steps take
WAVES = 0.1  # share of the requests that come together with all others, as at the start of a test;
EQUAL_WAVES = 1.0  # and of requests that all have answers of the same length, so that those that start together end so
FIXED_S = 12e-3  # from the socket to the scheduler and back, without load
BUSIEST = 0.95  # share of the time that prompts take, beyond which nobody asks how many are ahead
RIDING = 0.6  # of the time of a lone prompt, what it adds to a step that runs anyway, to find how many are in flight
SLOWER = 1.1  # a loaded replica against the bare formula, to find how many requests are in flight
_NOTHING, _HALF, _UNIT, _MILLI, _FIXED, _WAVES = (np.array([one]) for one in (0.0, 0.5, 1.0, 1e3, FIXED_S, WAVES))
TERMS = (
    "prefill matrix",
    "prefill attention",
    "prefill elementwise",
    "prefill communication",
    "prefill host",
    "weights",
    "cache",
    "communication",
    "launches",
    "engine",
    "sequences",
    "fixed",
    "waiting",
    "slots",
    "arrival",
)


class Weights(NamedTuple):
    """How often each part of the work is in what is asked, by scenario and metric; columns of numbers."""

    shared: Array  # 1: memory limits the sequences in flight
    together: Array  # 1: all prompts are one batch
    decode: Array  # 1: one decode step alone
    open: Array
    closed: Array  # 1: as many callers as sequences, each with a request in flight
    prefills: Array
    steps: Array  # decode steps, and
    steps_per_token: Array  # more of them per token of the answer
    stretched: Array  # 1: other prompts stretch the steps
    waiting: Array
    queued: Array  # 1: waits for a slot
    per_slot: Array  # 1: prompts of all sequences in flight are in it
    steps_per_slot: Array  # 1: steps serve all sequences in flight
    tail: Array  # 1: a rate of requests that arrive on their own
    time: Array  # 1: asked for in milliseconds
    counted: Array  # what is counted otherwise: requests, samples, the token of one step,
    counted_in: Array  # tokens of the prompt,
    counted_out: Array  # tokens of the answer


@cache
def _weights(scenario: str, metric: str) -> Weights:
    first, token, latency = (float(metric == name) for name in TIMES)
    rate = 1.0 - first - token - latency
    prompts, step, static, full, closed, opened = (float(scenario == name) for name in SCENARIOS)
    callers = closed + full * rate
    online = callers + opened
    ttft = first + latency + rate * (prompts + online)
    steps, steps_per_token = token + first * online - latency * full, latency + rate * online
    if static:
        steps, steps_per_token = token - (latency + rate), latency + rate
    if step:
        steps, steps_per_token = max(token, 1.0 - first), 0.0
    out, total = float(metric == "output_tokens_per_s"), float(metric == "total_tokens_per_s")
    weights = {
        "shared": closed + opened + full,
        "together": prompts + static,
        "decode": step,
        "open": opened,
        "closed": callers,
        "prefills": 0.0 if step else ttft + rate * static,
        "steps": steps * (1.0 - prompts),
        "steps_per_token": steps_per_token * (1.0 - prompts),
        "stretched": closed + opened + full,
        "waiting": online * ttft,
        "queued": online * ttft * (1.0 - rate),
        "per_slot": rate * (1.0 - opened),
        "steps_per_slot": rate * (1.0 - opened),
        "tail": rate * opened,
        "time": 1.0 - rate,
        "counted": float(metric in ("requests_per_s", "samples_per_s")) + out * step,
        "counted_in": total,
        "counted_out": out * (1.0 - step) + total * (1.0 - prompts),
    }
    return Weights(**{name: np.array([value]) for name, value in weights.items()})


@dataclass(frozen=True)
class Load:
    """Columns: how a replica is used, and what is asked."""

    scenario: Coded
    metric: Coded
    batch: Array  # sequences at once (prefill, decode, static) or offered at once (closed); the engine's limit (full, open)
    slots: Array  # sequences that memory and the engine let run together
    input_len: Array
    output_len: Array
    rate: Array  # requests per second and replica (open); 0 with `requests`: all at once
    requests: Array  # how many are sent in all (open)
    prefix: Array  # tokens of the prompt that are already cached
    beams: Array
    accepted: Array = field(default_factory=lambda: _UNIT)  # tokens of one step,
    checked: Array = field(default_factory=lambda: _UNIT)  # of so many that it computes: those beyond were drafted and refused
    late: Array = field(default_factory=lambda: _UNIT)  # of a wait's mean, which is asked
    waves: Array = field(default_factory=lambda: _WAVES)  # share of the requests that come together
    alike: Array = field(default_factory=lambda: _NOTHING)  # 1: all answers have the same length

    @cached_property
    def weights(self) -> Weights:
        if len(self.scenario) == 1 and len(self.metric) == 1:
            return _weights(self.scenario.name_at(0), self.metric.name_at(0))
        tables = [[_weights(way, asked) for asked in self.metric.names] for way in self.scenario.names]
        table = np.array(tables)[..., 0]
        return Weights(*np.moveaxis(table[self.scenario.index, self.metric.index], -1, 0))

    @cached_property
    def burst(self) -> NDArray[np.bool_]:
        """All requests come at once."""
        return np.asarray((self.weights.open > 0) & (self.rate <= 0))

    @cached_property
    def fresh(self) -> Array:
        """Prompt tokens that are not cached."""
        return np.maximum(self.input_len - self.prefix, 1.0)

    @cached_property
    def capacity(self) -> Array:
        """Sequences that can run together."""
        return np.maximum(np.minimum(self.batch, self.slots), 1.0)

    @cached_property
    def out(self) -> Array:
        return np.maximum(self.output_len, 1.0)


class Pace(NamedTuple):
    """Of a replica before anybody says how often requests come: what counting those in flight starts from."""

    alone: Array  # seconds of a prompt
    step: Array  # seconds of a step of one sequence
    slope: Array  # and of every sequence more


def pace(run: Serving, load: Load) -> Pace:
    alone = _sum(prefill(run, load.fresh, load.input_len, _UNIT, load.prefix))
    steps = (decode(run, count, load.input_len + load.output_len / 2, load.checked) for count in (_UNIT, load.capacity))
    step, full = (_sum(_decode_terms(one)) for one in steps)
    return Pace(alone, step, (full - step) / np.maximum(load.capacity - 1.0, 1.0))


def in_flight(run: Serving, load: Load, known: Pace | None = None) -> Array:
    """Sequences that run together, whatever is asked of them. `known` is their pace, where somebody asked before."""
    weights, capacity = load.weights, load.capacity
    sequences = pick(weights.shared > 0, capacity, np.maximum(load.batch, 1.0))
    if not has_nonzero(weights.open):
        return sequences
    alone, step, slope = known or pace(run, load)
    rate = load.rate * SLOWER
    room = 1.0 - rate * (load.output_len * slope + RIDING * alone)
    little = rate * (alone + load.output_len * step) / np.maximum(room, 0.1)
    burst = np.minimum(capacity, np.where(np.isfinite(load.requests), load.requests, capacity))
    flowing = np.minimum(np.maximum(np.where(room > 0, little, capacity), 1.0), burst)
    return pick(weights.open > 0, pick(load.rate > 0, flowing, burst), sequences)


def bases(run: Serving, load: Load, sequences: Array) -> dict[str, Array]:
    """Seconds of each kind of work, whatever is asked: prefill of one request or of the whole static batch, one decode step."""
    batched = load.weights.together > 0
    together = np.minimum(np.maximum(np.floor(CHUNK / load.fresh), 1.0) * run.dp, sequences)
    together = pick(run.apart > 0, np.minimum(run.dp, sequences), together)
    prompts = pick(batched, sequences, together)
    share = 1.0 / pick(batched, _UNIT, prompts)
    seconds = prefill(run, prompts * load.fresh, load.input_len, prompts, load.prefix)
    seconds = {name: values * share for name, values in seconds.items()}
    middle = pick(load.weights.decode > 0, load.input_len, load.input_len + load.output_len / 2)
    seconds |= decode(run, sequences * load.beams, np.maximum(middle, 1.0), load.checked)
    seconds["request_host"] = _FIXED
    seconds["queue"] = _UNIT
    seconds["stretch"] = _UNIT
    return seconds


def full_step(run: Serving, load: Load, work: Mapping[str, Array], sequences: Array) -> dict[str, Array] | None:
    """How many times the work of one prompt a step has that is full of prompts, by kind of work. None where steps of callers
    have room for all prompts anyway."""
    needed = load.weights.closed * sequences * load.fresh * load.accepted / (CHUNK * load.out)
    if not has_nonzero(needed > LEAST_FULL):
        return None
    full = prefill(run, CHUNK * run.dp, load.input_len, run.dp, load.prefix)
    return {name: values / np.where(work[name] > 0, work[name], np.inf) for name, values in full.items()}


def unit(load: Load) -> tuple[Array, Array]:
    """(scale, power) such that the metric is scale * seconds ** power: milliseconds for times, amounts over time for rates."""
    weights = load.weights
    if not has_nonzero(weights.time == 0):
        return _MILLI, _UNIT
    amount = weights.counted + weights.counted_in * load.input_len + weights.counted_out * load.out
    return pick(weights.time > 0, _MILLI, amount), pick(weights.time > 0, _UNIT, -_UNIT)


def answer(load: Load, sequences: Array, base: dict[str, Array], full: Mapping[str, Array] | None = None) -> dict[str, Array]:
    """Terms in seconds of what is asked; `full` is `full_step` of the same work."""
    weights, out = load.weights, load.out
    pres, stepped = _prefill_terms(base), _decode_terms(base)
    tokens = weights.steps + weights.steps_per_token * out
    steps = tokens / load.accepted
    neighbours = np.maximum(sequences - 1.0, 0.0)
    ahead: Array = _NOTHING
    stretch: Array = np.zeros(1)
    if has_nonzero(weights.stretched):  # so it is wherever a prompt waits for others
        prompt = _sum(pres)
        ahead = _waiting(load, sequences, prompt, _sum(stepped)) * pick(load.burst, _UNIT, base["queue"])
        stretching = neighbours * pick(load.burst, _HALF, _UNIT)
        if has_nonzero(weights.closed):
            beside = _beside(load, neighbours, prompt, _sum(stepped), base["queue"])
            if full is not None:
                step = _sum(_prefill_terms({name: base[name] * times for name, times in full.items()}))
                beside = np.minimum(beside, load.out / load.accepted * step / prompt)
            # Those that came together take as long as alone; the others are read together, as those beside steps are.
            together = neighbours - neighbours / (1.0 + base["queue"] * load.waves / 2.0)
            ahead = pick(weights.closed > 0, together + (neighbours - beside - together) * base["stretch"], ahead)
            stretching = pick(weights.closed > 0, beside, stretching)
        stretch = weights.stretched * stretching / out * base["stretch"]
    # Throughputs: seconds per request of the replica.
    per = pick(weights.tail > 0, load.requests, pick(weights.per_slot > 0, sequences, _UNIT))
    steps_per = pick(weights.tail > 0, load.requests, pick(weights.steps_per_slot > 0, sequences, _UNIT))
    last = pick(load.burst, 1.0 - weights.tail, _UNIT)  # a burst is over when its work is done: its last answer is in that
    prefills, steps = last * (weights.prefills + tokens * stretch) / per, last * steps / steps_per
    if has_nonzero(weights.tail):  # besides the last answer, the time that every request takes of the replica
        prefills = prefills + weights.tail * (1.0 + _beside_steps(load, sequences) * (base["stretch"] - 1.0))
        steps = steps + weights.tail * out / (load.accepted * sequences)
    terms = {name: values * prefills for name, values in pres.items()}
    terms |= {name: values * steps for name, values in stepped.items()}
    terms["fixed"] = weights.waiting * base["request_host"] / per
    waiting: Array = _NOTHING
    if has_nonzero(weights.waiting):
        late = pick(weights.time > 0, load.late, _UNIT)
        waiting = last * weights.waiting * late * _sum(pres) * ahead
    terms["waiting"] = waiting / per
    terms["slots"] = _NOTHING
    if has_nonzero(weights.queued):
        answer_s = _sum(pres) * (1.0 + out * stretch) + _sum(stepped) * out / load.accepted + base["request_host"] + waiting
        terms["slots"] = _slots(load, sequences, answer_s)
    terms["arrival"] = _NOTHING
    if has_nonzero(weights.tail):
        terms["arrival"] = _arrival(load, prompt_beside_s(base) + out / load.accepted * _sum(stepped) / sequences)
    return terms


def _beside_steps(load: Load, sequences: Array) -> Array:
    """Of requests that arrive on their own, the share whose prompts are read beside steps that run anyway: of a burst, those
    for whom there was no slot at first."""
    return pick(load.burst, 1.0 - np.minimum(sequences / load.requests, 1.0), _UNIT)


def _waiting(load: Load, sequences: Array, prompt: Array, step: Array) -> Array:
    """How many prompts are ahead of the first token: of those in flight as many as the share of time that prompts take lets
    queue up, from that share itself where answers are long to all others where they are short (a closed queue); at a rate, as
    many as queue up where requests come at random."""
    others, prompts = np.maximum(sequences - 1.0, 0.0), sequences * prompt
    busy = prompts / np.maximum(prompts + load.out / load.accepted * step, 1e-12)
    crowd = others * busy / (others * (1.0 - busy) + 1.0) + load.waves * others / 2.0
    if has_nonzero(load.burst):
        crowd = pick(load.burst, np.maximum(np.minimum(sequences, load.requests) - 1.0, 0.0) / 2.0, crowd)
    if has_nonzero(load.weights.open):
        busy = np.minimum(load.rate * prompt, BUSIEST)
        crowd = pick((load.weights.open > 0) & (load.rate > 0), busy / (1.0 - busy), crowd)
    return crowd


def _beside(load: Load, neighbours: Array, prompt: Array, step: Array, queue: Array) -> Array:
    """How many of the callers' prompts run beside the steps of an answer; the others are ahead of its first token (a closed
    queue). Times the seconds of a prompt it never falls with them."""
    crowd = queue * prompt / np.maximum(load.out / load.accepted * step, 1e-12)
    return np.asarray(neighbours / ((1.0 + crowd) * (1.0 + queue * load.waves / 2.0)))


def _slots(load: Load, sequences: Array, answer_s: Array) -> Array:
    """Until one of those in flight is done, where more are offered than can run. Of callers who wait for their answers as many
    are in the system as there are callers, so that those beyond the slots take their share of the time (Little's law)."""
    offered = pick(load.burst, load.requests, load.batch)
    beyond = np.maximum(offered / sequences - 1.0, 0.0)
    excess = pick(load.burst, np.minimum(beyond, 4.0) * _HALF, beyond)
    waits = (load.weights.queued > 0) & ((load.weights.open == 0) | load.burst)
    return pick(waits, excess * answer_s, _NOTHING)


def _arrival(load: Load, service: Array) -> Array:
    """Requests are answered no faster than they come: the time that the replica is idle between them."""
    apart = np.where(load.rate > 0, 1.0 / np.maximum(load.rate, 1e-9), 0.0)
    return pick(load.weights.tail > 0, np.maximum(apart - service, 0.0), _NOTHING)


def prompt_beside_s(base: dict[str, Array]) -> Array:
    """Seconds that a prompt takes of a server whose steps run anyway."""
    return _sum(_prefill_terms(base)) * base["stretch"]


def step_s(base: dict[str, Array]) -> Array:
    return _sum(_decode_terms(base))


def _sum(bases: dict[str, Array]) -> Array:
    return sum(bases.values(), _NOTHING)


def _prefill_terms(base: dict[str, Array]) -> dict[str, Array]:
    device = base["prefill_matrix"] + base["prefill_attention"] + base["prefill_element"] + base["prefill_link"]
    return {
        "prefill matrix": base["prefill_matrix"],
        "prefill attention": base["prefill_attention"],
        "prefill elementwise": base["prefill_element"],
        "prefill communication": base["prefill_link"],
        "prefill host": device * (soft_one(base["prefill_host"] / np.maximum(device, 1e-12)) - 1.0),
    }


def _decode_terms(base: dict[str, Array]) -> dict[str, Array]:
    """Launches of a replayed graph leave gaps; those made one by one show by as much as they take longer than the kernels."""
    launches = base["layer_host"]
    if has_nonzero(base["launch_host"]):
        device = base["decode_matrix"] + base["decode_cache"] + base["decode_link"]
        launches = launches + device * (soft_one(base["launch_host"] / np.maximum(device, 1e-12)) - 1.0)
    return {
        "weights": base["decode_matrix"],
        "cache": base["decode_cache"],
        "communication": base["decode_link"],
        "launches": launches,
        "engine": base["step_host"],
        "sequences": base["sequence_host"],
    }


__all__ = ["BASES", "RATES", "SCENARIOS", "TERMS", "TIMES", "Load", "answer", "bases", "full_step", "in_flight", "unit"]
