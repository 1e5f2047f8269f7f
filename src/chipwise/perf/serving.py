"""From the two steps to what users feel: throughput and latencies of a replica under a way of loading it.

With p = prefill of one request, s = one decode step, B sequences in flight, o output tokens, C requests offered at once:
  prefill  one batch of prompts                      ttft = p
  decode   one step                                  tpot = s
  static   B prompts together, then o - 1 steps      latency = p + (o - 1) s
  full     requests without end, B as memory allows  seconds per request = p + o s / B
  closed   C requests always in flight:              tpot = s + (B - 1)/o p     (the others' prompts stretch every step)
             ttft = p + s + fixed + q p (B - 1)^0.6 + (C/B - 1) o tpot            (prompts ahead of it; slots, if C > B)
  open     rate r: B from Little's law B = r (ttft + o tpot); a finite burst at rate infinity is a queue of N prompts
All are linear in the bases, so every answer is a sum of named terms. q and the exponent's slope are fitted per engine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.perf.arrays import Array, Coded
from chipwise.perf.inference import BASES, Serving, decode, prefill

SCENARIOS = ("prefill", "decode", "static", "full", "closed", "open")
TIMES = ("ttft_ms", "tpot_ms", "latency_ms")
RATES = ("output_tokens_per_s", "total_tokens_per_s", "requests_per_s", "samples_per_s")
CHUNK = 8192.0  # prompt tokens that engines put into one step
CROWD = 0.6  # how waiting grows with the requests in flight
FIXED_S = 12e-3  # from the socket to the scheduler and back, without load
SLOWER = 1.1  # a loaded replica against the bare formula, to find how many requests are in flight
TERMS = (
    "prefill matrix", "prefill attention", "prefill elementwise", "prefill communication", "prefill host", "weights", "cache",
    "communication", "launches", "engine", "sequences", "fixed", "waiting", "slots", "arrival",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
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

    def is_in(self, *scenarios: str) -> Array:
        return self.scenario.look_up(lambda name: float(name in scenarios))


def in_flight(run: Serving, load: Load) -> Array:
    """Sequences that run together."""
    most = np.maximum(np.minimum(load.batch, load.slots), 1.0)
    shared = load.is_in("full", "closed", "open")
    held = np.where(shared > 0, most, np.maximum(load.batch, 1.0))
    if not np.any(load.is_in("open") > 0):
        return held
    one, many = (sum(decode(run, b, load.input_len + load.output_len / 2).values()) for b in (np.ones_like(most), most))
    slope = (many - one) / np.maximum(most - 1.0, 1.0)
    fresh = np.maximum(load.input_len - load.prefix, 1.0)
    alone = sum(prefill(run, fresh, load.input_len, np.ones_like(fresh), load.prefix).values())
    rate = load.rate * SLOWER
    room = 1.0 - rate * (load.output_len * slope + alone)
    little = rate * (alone + load.output_len * one) / np.maximum(room, 0.1)
    burst = np.minimum(most, np.where(np.isfinite(load.requests), load.requests, most))
    flowing = np.clip(np.where(room > 0, little, most), 1.0, burst)
    return np.where(load.is_in("open") > 0, np.where(load.rate > 0, flowing, burst), held)


def bases(run: Serving, load: Load, held: Array) -> dict[str, Array]:
    """Seconds of each kind of work: prefill of one request (or of the whole static batch), one decode step."""
    static = load.is_in("prefill", "static")
    fresh = np.maximum(load.input_len - load.prefix, 1.0)
    together = np.minimum(np.maximum(np.floor(CHUNK / fresh), 1.0), held)
    many = np.where(static > 0, held, together)
    found = prefill(run, many * fresh, load.input_len, many, load.prefix)
    per = np.where(static > 0, 1.0, many)
    found = {name: values / per for name, values in found.items()}
    middle = np.where(load.is_in("decode") > 0, load.input_len, load.input_len + load.output_len / 2)
    found |= decode(run, held * load.beams, np.maximum(middle, 1.0))
    found["request_host"] = FIXED_S * np.ones_like(held)
    found["queue"] = np.ones_like(held)
    return found


def unit(load: Load) -> tuple[Array, Array]:
    """(scale, power) such that the metric is scale * seconds ** power: milliseconds for times, amounts over time for rates."""
    out = np.maximum(load.output_len, 1.0)
    first = np.where(load.is_in("decode") > 0, 1.0, out)
    both = np.where(load.is_in("prefill") > 0, load.input_len, load.input_len + out)
    asked = load.metric
    amount = asked.look_up(lambda name: float(name == "output_tokens_per_s")) * first
    amount = amount + asked.look_up(lambda name: float(name == "total_tokens_per_s")) * both
    amount = amount + asked.look_up(lambda name: float(name in ("requests_per_s", "samples_per_s")))
    times = asked.look_up(lambda name: float(name in TIMES))
    return np.where(times > 0, 1e3, amount), np.where(times > 0, 1.0, -1.0)


def answer(load: Load, held: Array, base: dict[str, Array]) -> dict[str, Array]:
    """Terms in seconds of what is asked."""
    first, token, whole = (load.metric.look_up(lambda name, ask=ask: float(name == ask)) for ask in TIMES)  # type: ignore[misc]
    rate = 1.0 - first - token - whole
    static, step_only, full, closed, opened = (load.is_in(name) for name in ("static", "decode", "full", "closed", "open"))
    pre_only = load.is_in("prefill")
    burst = opened * (load.rate <= 0)
    online = closed + opened
    out = np.maximum(load.output_len, 1.0)
    ttft = first + whole + rate * (pre_only + online)  # weight of the time to first token in the answer
    steps = token + (whole + rate * online) * (out - 1.0) + rate * full * out + (first * online)
    steps = np.where(static > 0, token + (whole + rate) * (out - 1.0), steps)
    steps = np.where(step_only > 0, np.maximum(token, 1.0 - first), steps) * (1.0 - pre_only)
    stretch = (online + full * (1.0 - rate)) * np.maximum(held - 1.0, 0.0) / out * np.where(burst > 0, 0.5, 1.0)
    pre = np.where(step_only > 0, 0.0, ttft + rate * (static + full) + steps * stretch)
    pre = np.where(full * rate > 0, 1.0, pre)
    per = np.where(rate > 0, held * (1.0 - full) + full, 1.0)  # throughputs: seconds per request of the replica
    decode_per = np.where(rate * full > 0, held, per)
    tail = rate * opened
    per = np.where(tail > 0, np.where(np.isfinite(load.requests), load.requests, np.inf), per)
    decode_per = np.where(tail > 0, per, decode_per)
    pres, stepped = _prefill_terms(base), _decode_terms(base)
    one_pre, one_step = sum(pres.values()), sum(stepped.values())
    crowd = np.where(
        burst > 0, np.maximum(np.minimum(held, load.requests) - 1.0, 0.0) / 2.0, np.maximum(held - 1.0, 0.0) ** CROWD
    )
    waiting = online * ttft * base["queue"] * one_pre * crowd
    offered = np.where(burst > 0, load.requests, load.batch)
    excess = np.clip(offered / held - 1.2, 0.0, 4.0) * np.where(burst > 0, 0.5, 1.0)
    residence = out * (one_step + stretch * one_pre)
    slots = np.where((closed + burst) * ttft * (1.0 - rate) > 0, excess * residence, 0.0)
    service = one_pre + out * one_step / held
    arrival = np.where(tail > 0, np.maximum(np.where(load.rate > 0, 1.0 / np.maximum(load.rate, 1e-9), 0.0), service), 0.0)
    terms = {name: values * pre / per for name, values in pres.items()}
    terms |= {name: values * steps / decode_per for name, values in stepped.items()}
    terms["fixed"] = online * ttft * base["request_host"] / per
    terms["waiting"] = waiting / per
    terms["slots"] = slots
    terms["arrival"] = arrival
    return terms


def _prefill_terms(base: dict[str, Array]) -> dict[str, Array]:
    device = base["prefill_matrix"] + base["prefill_attention"] + base["prefill_element"] + base["prefill_link"]
    ratio = base["prefill_host"] / np.maximum(device, 1e-12)
    return {
        "prefill matrix": base["prefill_matrix"], "prefill attention": base["prefill_attention"],
        "prefill elementwise": base["prefill_element"], "prefill communication": base["prefill_link"],
        "prefill host": device * ((1.0 + ratio**4) ** 0.25 - 1.0),
    }  # fmt: skip


def _decode_terms(base: dict[str, Array]) -> dict[str, Array]:
    return {
        "weights": base["decode_matrix"], "cache": base["decode_cache"], "communication": base["decode_link"],
        "launches": base["layer_host"], "engine": base["step_host"], "sequences": base["sequence_host"],
    }  # fmt: skip


__all__ = ["BASES", "RATES", "SCENARIOS", "TERMS", "TIMES", "Load", "answer", "bases", "in_flight", "unit"]
