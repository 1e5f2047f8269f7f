"""Replicas that answer token by token: continuous batching in steps, with a limit of slots and of KV memory.

A step gives one token to each sequence that has its first, and computes up to `chunk` tokens of prompts, those that came first
before the others; it takes the time that the performance model has for so many sequences, and for these prompt tokens. A
request is let in, in the order of arrival, when a slot is free and the KV memory holds all its tokens, prompt and answer, so
that nobody is put out again. Steps in which nothing comes or goes are read together.

Requests go to the ready replicas in turn; a replica that is no longer wanted answers what it has. `advance` is plain Python
over arrays, and is compiled where numba is installed (`pip install chipwise[fast]`): both give the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import BadInput
from chipwise.scale.load import Floats

Counts = NDArray[np.int64]
CHUNK = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSpeed:
    """What one replica does in which time."""

    steps_s: Floats  # of a step by sequences, from 0 to the slots
    prompt_token_s: float
    kv_tokens: int  # that fit into its memory
    chunk: int = CHUNK

    @property
    def slots(self) -> int:
        return len(self.steps_s) - 1

    def capacity_per_s(self, prompt: float, answer: float) -> float:
        """Requests of such mean lengths that a replica answers with all slots read, or as many as its memory holds."""
        inside = min(float(self.slots), self.kv_tokens / (prompt + answer))
        step_s = float(np.interp(inside, np.arange(self.slots + 1), self.steps_s))
        return 1.0 / (self.prompt_token_s * prompt + answer * step_s / inside)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLoad:
    times_s: Floats  # rising
    prompts: Counts  # tokens
    answers: Counts

    def check(self, speed: TokenSpeed) -> None:
        longest = int((self.prompts + self.answers).max(initial=0))
        if longest > speed.kv_tokens:
            raise BadInput(f"A request of {longest:,} tokens does not fit into {speed.kv_tokens:,} tokens of KV memory.")
        if (self.prompts < 1).any() or (self.answers < 1).any():
            raise BadInput("Prompts and answers have at least one token each.")


class TokenReplica:
    """One replica and what it has to do, given to it in the order of arrival."""

    def __init__(self, speed: TokenSpeed, ready_s: float = 0.0) -> None:
        self.speed = speed
        self.queue = np.zeros(0, np.int64)
        self.owner, self.prompt_left, self.answer_left = (np.zeros(speed.slots, np.int64) for _ in range(3))
        self.marks = np.zeros(4, np.int64)  # of the queue: its head, its tail; sequences inside; KV tokens in use
        self.clock = np.array([ready_s, 0.0])  # now, and how long it has been busy

    def give(self, requests: Counts) -> None:
        self.queue = np.concatenate([self.queue[self.marks[0] :], requests])
        self.marks[0], self.marks[1] = 0, len(self.queue)

    @property
    def has_work(self) -> bool:
        return self.waiting > 0 or bool(self.marks[2] > 0)

    def busy_until(self, until_s: float) -> float:
        """For how long it was busy by then: its last step may end later."""
        return float(self.clock[1] - max(self.clock[0] - until_s, 0.0))

    @property
    def waiting(self) -> int:
        return int(self.marks[1] - self.marks[0])

    def pass_to(self, until_s: float, load: TokenLoad, begins: Floats, ends: Floats, step: Callable[..., None]) -> None:
        state = (self.queue, self.owner, self.prompt_left, self.answer_left, self.marks, self.clock)
        lengths = (load.times_s, load.prompts, load.answers)
        speed = self.speed
        step(until_s, *lengths, *state, begins, ends, speed.steps_s, speed.prompt_token_s, speed.kv_tokens, speed.chunk)


def answered(
    load: TokenLoad, speed: TokenSpeed, replicas: int, *, compiled: bool | None = None
) -> tuple[Floats, Floats, Floats]:
    """When each request was let in, when it ended, and how long each replica was busy. `compiled`: None where it can be."""
    load.check(speed)
    begins, ends = np.zeros(len(load.times_s)), np.zeros(len(load.times_s))
    step = stepping(compiled)
    busy_s = np.zeros(replicas)
    for place in range(replicas):
        share = np.arange(place, len(load.times_s), replicas)
        replica = TokenReplica(speed)
        replica.give(share)
        replica.pass_to(np.inf, load, begins, ends, step)
        busy_s[place] = replica.clock[1]
    return begins, ends, busy_s


@cache
def stepping(compiled: bool | None = None) -> Callable[..., None]:
    if compiled is False:
        return advance
    try:
        import numba
    except ImportError:
        if compiled:
            raise BadInput("numba is not installed.", remedy="pip install 'chipwise[fast]'") from None
        return advance
    faster: Callable[..., None] = numba.njit(cache=False)(advance)
    return faster


def advance(
    until_s: float,
    times_s: Any,
    prompts: Any,
    answers: Any,
    queue: Any,
    owner: Any,
    prompt_left: Any,
    answer_left: Any,
    marks: Any,
    clock: Any,
    begins: Any,
    ends: Any,
    steps_s: Any,
    prompt_token_s: float,
    kv_tokens: int,
    chunk: int,
) -> None:
    """Steps of one replica until `until_s`; the last may end later. Sequences stand in the first `inside` places, in the order
    in which they were let in. Names are kept plain and numbers explicit so that it compiles as it stands."""
    head, tail, inside, used = marks[0], marks[1], marks[2], marks[3]
    now, busy = clock[0], clock[1]
    slots = len(steps_s) - 1
    while True:
        while head < tail and inside < slots:
            request = queue[head]
            tokens = prompts[request] + answers[request]
            if times_s[request] > now or used + tokens > kv_tokens:
                break
            begins[request] = now
            owner[inside], prompt_left[inside], answer_left[inside] = request, prompts[request], answers[request]
            inside, used, head = inside + 1, used + tokens, head + 1
        if inside == 0:
            if head == tail or times_s[queue[head]] >= until_s:
                break
            now = times_s[queue[head]]
            continue
        if now >= until_s:
            break
        began, left, sequences, steps = now, chunk, 0, 1
        fewest = -1
        for place in range(inside):
            if prompt_left[place] > 0:
                read = min(prompt_left[place], left)
                prompt_left[place], left = prompt_left[place] - read, left - read
                if prompt_left[place] > 0 or read == 0:
                    continue
            sequences += 1
            if fewest < 0 or answer_left[place] < fewest:
                fewest = answer_left[place]
        lasts = steps_s[max(sequences, 1)]
        if left == chunk:  # no prompts: as many steps as nothing changes
            steps = fewest
            stop = until_s
            if head < tail and inside < slots and times_s[queue[head]] > now:
                stop = min(stop, times_s[queue[head]])
            if stop - now < steps * lasts:
                steps = max(min(steps, int(np.ceil((stop - now) / lasts))), 1)
            now += steps * lasts
        else:
            now += lasts + prompt_token_s * (chunk - left)
        busy += now - began
        stays = 0
        for place in range(inside):
            if prompt_left[place] == 0:
                answer_left[place] -= steps
            if prompt_left[place] == 0 and answer_left[place] <= 0:
                request = owner[place]
                ends[request] = now
                used -= prompts[request] + answers[request]
                continue
            owner[stays], prompt_left[stays], answer_left[stays] = owner[place], prompt_left[place], answer_left[place]
            stays += 1
        inside = stays
    marks[0], marks[2], marks[3] = head, inside, used
    clock[0], clock[1] = now, busy
