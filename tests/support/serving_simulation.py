"""A server with continuous batching, step by step: what the queueing model is held against.

Every step gives one token to each sequence that has its first, and computes up to `chunk` tokens of prompts, those that came
first before the others; it takes `step_s(sequences) + prompt_s * tokens / mean tokens`. A request is let in, in the order of
arrival, while fewer than `slots` are inside. Times between arrivals are gamma distributed with the coefficient of variation
`burstiness` (1: exponential), lengths are lognormal with the stated mean and sigma. Steps in which nothing comes or goes are
taken together, so that a hundred thousand requests take about a second.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What one replica is, in the terms of `chipwise.perf.queueing.Service`, of one row."""

    prompt_s: float  # of a prompt of mean length
    steps_s: Floats  # of a step by sequences, from 0 to `slots`
    slots: int
    prompt_tokens: float
    answer_tokens: float
    prompt_sigma: float
    answer_sigma: float
    chunk: float
    fixed_s: float = 0.0  # before the scheduler and after it
    extra_prompt_s: float = 0.0  # of one's own prompt, which nobody else waits for

    @property
    def capacity(self) -> float:
        """Requests per second with all slots taken."""
        return 1.0 / (self.prompt_s + self.answer_tokens * float(self.steps_s[self.slots]) / self.slots)


@dataclass(frozen=True, slots=True)
class Latencies:
    """Of the requests after the warm-up."""

    ttft: Floats
    tpot: Floats  # of answers with at least two tokens
    latency: Floats  # from arrival to the last token
    in_flight: float  # mean over time, with those that wait for a slot
    rate: float  # requests per second that were answered
    sojourn: float  # mean seconds from arrival to the last token


def _lengths(random: np.random.Generator, mean: float, sigma: float, count: int) -> Floats:
    if sigma <= 0:
        return np.full(count, float(max(round(mean), 1)))
    drawn = random.lognormal(np.log(mean) - sigma**2 / 2, sigma, count)
    return np.maximum(np.round(drawn), 1.0)


def simulate(server: Server, rate: float, burstiness: float, count: int, seed: int = 1, warm_up: float = 0.05) -> Latencies:
    random = np.random.default_rng(seed)
    shape = 1.0 / burstiness**2
    arrivals = np.cumsum(random.gamma(shape, 1.0 / (shape * rate), count)).tolist()
    prompts = _lengths(random, server.prompt_tokens, server.prompt_sigma, count).tolist()
    answers = _lengths(random, server.answer_tokens, server.answer_sigma, count).tolist()
    per_token, steps_s = server.prompt_s / server.prompt_tokens, server.steps_s.tolist()
    first, last = [0.0] * count, [0.0] * count
    waiting: deque[int] = deque()
    reading: deque[list[float]] = deque()  # [request, tokens left]
    writing: list[tuple[int, int]] = []  # the step after which an answer ends, and whose
    now, step, upcoming, inside, slots, chunk = 0.0, 0, 0, 0, server.slots, server.chunk
    while True:
        while upcoming < count and arrivals[upcoming] <= now:
            waiting.append(upcoming)
            upcoming += 1
        while waiting and inside < slots:
            request = waiting.popleft()
            reading.append([request, prompts[request]])
            inside += 1
        sequences = len(writing)
        if reading:
            left, ended = chunk, []
            while reading and left > 0:
                head = reading[0]
                taken = head[1] if head[1] < left else left
                left -= taken
                head[1] -= taken
                if head[1] <= 0:
                    ended.append(int(head[0]))
                    reading.popleft()
            now += steps_s[min(max(sequences + len(ended), 1), slots)] + per_token * (chunk - left)
            step += 1
            for request in ended:
                first[request] = last[request] = now
                if answers[request] > 1:
                    heappush(writing, (step + int(answers[request]) - 1, request))
                else:
                    inside -= 1
        elif sequences:
            lasts, most = steps_s[sequences], writing[0][0] - step
            if upcoming < count:
                most = min(most, int((arrivals[upcoming] - now) / lasts) + 1)
            now += most * lasts
            step += most
        elif upcoming < count:
            now = arrivals[upcoming]
        else:
            break
        while writing and writing[0][0] <= step:
            last[heappop(writing)[1]] = now
            inside -= 1
    kept = slice(int(count * warm_up), None)
    times = (np.array(arrivals)[kept], np.array(first)[kept], np.array(last)[kept])
    return _measured(server, times, np.array(prompts)[kept], np.array(answers)[kept])


def _measured(server: Server, times: tuple[Floats, Floats, Floats], prompts: Floats, answers: Floats) -> Latencies:
    arrivals, first, last = times
    own = server.fixed_s + server.extra_prompt_s * prompts / server.prompt_tokens
    several = answers > 1
    tpot = (last - first)[several] / (answers[several] - 1)
    sojourn = float((last - arrivals).mean())
    rate = len(arrivals) / (arrivals[-1] - arrivals[0])
    return Latencies(first - arrivals + own, tpot, last - arrivals + own, rate * sojourn, rate, sojourn)
