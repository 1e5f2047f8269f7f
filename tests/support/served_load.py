"""Requests at a steady rate to a service while something happens to it, and what became of each."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from urllib.parse import urlsplit

import numpy as np

from chipwise.adapters.http.load import LoadTest, Patience, Target
from chipwise.serving.load_report import Shots
from chipwise.serving.replica import Address

CUT = "answer_cut"  # a stream that had begun


def loaded(
    url: str, per_s: float, seconds: float, then: Callable[[], object], *, tokens: int = 8, after_s: float = 1.0
) -> list[Shots]:
    """Streams through `url`, and `then` in a thread beside them after a while; for so long, and again until that has ended:
    a busy machine takes its time."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    target = Target(Address(parts.hostname, parts.port))
    prompt = {"model": "tiny", "messages": [{"role": "user", "content": "When a replica is lost"}], "stream": True}
    body = json.dumps({**prompt, "max_tokens": tokens}).encode()
    due = np.arange(int(per_s * seconds)) / per_s

    async def main() -> list[Shots]:
        async def act() -> None:
            await asyncio.sleep(after_s)
            await asyncio.to_thread(then)

        acting = asyncio.ensure_future(act())
        shots = [await LoadTest(target, due, [body], Patience(answer_s=180.0)).run()]
        while not acting.done():
            shots.append(await LoadTest(target, due, [body], Patience(answer_s=180.0)).run())
        await acting
        return shots

    return asyncio.run(main())


def errors(rounds: list[Shots]) -> Counter[str]:
    return Counter(error for shots in rounds for error in shots.errors if error)


def slow(rounds: list[Shots], limit_s: float) -> int:
    """Answers whose first token came later than this."""
    late = (shots.first_s - shots.due_s > limit_s for shots in rounds)
    return int(sum(np.count_nonzero(part) for part in late))


def sent(rounds: list[Shots]) -> int:
    return sum(len(shots.errors) for shots in rounds)
